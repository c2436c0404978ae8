"""The way to the broker by topics alone: what any Kafka client in any language can do.

A registration is a record on ``.queries`` under the id of a handle made here; the outcome comes on
``.status``. A snapshot is asked for on ``.snapshot-requests`` and comes, in chunks, on a reply topic that
belongs to this client and goes with it; chunks are put together by correlation id and number.

Keys are spread over partitions as Java's clients do, so that all writers of a key agree.
Not to be shared among threads.
"""

from __future__ import annotations

import json
import logging
import re
import time
import uuid
from collections.abc import Callable, Container, Generator, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tureen.answers import Dropped
from tureen.errors import (
    UNCONFIRMED,
    BrokerUnavailable,
    HandleNeeded,
    KafkaUnavailable,
    NameInUse,
    SettingsError,
    TopicMissing,
    UnknownQuery,
)
from tureen.facts import QueryStatus, Source, error_from
from tureen.period import Period
from tureen.protocol import (
    HEADER_CHUNK,
    HEADER_CHUNKS,
    HEADER_CORRELATION_ID,
    HEADER_STATUS,
    QUERY_ID_CHARACTERS,
    SnapshotFormat,
    TopicNames,
    query_id,
)
from tureen.snapshot import Reply
from tureen.topic_records import headers_of, key_of, registration_of, source_key, status_of, take_status
from tureen.transport import Progress, Publication

PUBLISHED = "PUBLISHED"
"""The state of a query that is on the topic, while nothing was told of it in the time given."""

REPLY_RETENTION_MS = 3_600_000
METADATA_TIMEOUT_S = 10.0
ELECTING = (KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.LEADER_NOT_AVAILABLE)
"""What is answered of a topic that was made a moment ago."""
ELECTED_S = 0.1
"""Between two looks at whether a partition has a leader."""
CONFIRMED_S = 4.0
"""How long Kafka may take to confirm a single record."""
POLLED_AT_ONCE = 2_000
SERVED_HINT = "it is created at the start of `tureen serve`, or of a scale-out"
UNCHANGED_AFTER_S = 2.0
"""A registration that changed nothing is not told again, so after this the whole status topic is read."""

_NAME = re.compile("[a-z_][a-z0-9_-]{0,99}")
HANDLE_CHARACTERS = 32
"""A handle that Tureen made has so many, and no query has one as its name."""
_QUERY_ID = re.compile(rf"[a-z2-7]{{{QUERY_ID_CHARACTERS}}}")
_log = logging.getLogger("tureen.kafka")
_log.addHandler(logging.NullHandler())  # heard only where the application set logging up
Found = TypeVar("Found")
Made = TypeVar("Made")


def made(kind: Callable[[dict[str, Any]], Made], settings: dict[str, Any]) -> Made:
    """A Kafka client of these settings. Raises SettingsError where it does not take one of them."""
    try:
        return kind(settings)
    except KafkaException as error:
        raise SettingsError(
            f"Kafka's client refuses a setting: {error.args[0].str()}",
            hint="it comes from --kafka or TUREEN_KAFKA__...; CONFIGURATION.md of librdkafka lists them",
        ) from None


class TopicTransport:
    """Implements :class:`tureen.transport.Transport`. Nothing connects before the first call."""

    def __init__(self, kafka: Mapping[str, Any], service_id: str, timeout_s: float) -> None:
        self._kafka = {"allow.auto.create.topics": False, **kafka}
        self._names = TopicNames(service_id)
        self._timeout_s = timeout_s
        self._producer: Producer | None = None
        self._replies: Consumer | None = None
        self._reply_to = f"{self._names.reply_prefix}{uuid.uuid4().hex}"

    def create(self, sql: str, wait_s: float) -> Source:
        """Publish a CREATE statement. A refusal goes to the dead letters: this topic has no status."""
        key, name = source_key(sql)
        self._publish([(self._names.sources, key, json.dumps({"sql": sql}))])
        return Source.of({"name": name, "sql": sql, "state": PUBLISHED})

    def drop(self, name: str, cascade: bool, wait_s: float) -> Dropped:
        self._publish([(self._names.sources, name, None)])
        return Dropped()

    def register(
        self, publications: Sequence[Publication], wait_s: float, progress: Progress | None = None
    ) -> list[QueryStatus]:
        """A query of which nothing is heard in ``wait_s`` is PUBLISHED; it stands once it is taken up."""
        ids = [str(query_id(one.handle)) for one in publications]
        records = [
            (self._names.queries, key, json.dumps(one.fields()))
            for key, one in zip(ids, publications, strict=True)
        ]
        if wait_s <= 0:
            self._publish(records)
            return [QueryStatus(key, PUBLISHED) for key in ids]
        consumer = self._consumer()
        try:
            consumer.assign(self._ends(consumer, self._names.status))
            self._publish(records)
            deadline = time.monotonic() + wait_s
            heard: dict[str, QueryStatus] = {}
            self._listen(consumer, set(ids), heard, deadline, progress, quiet_s=UNCHANGED_AFTER_S)
            if len(heard) < len(set(ids)):
                standing, _ = self._statuses(set(ids) - heard.keys())
                heard = {**standing, **heard}
                self._listen(consumer, set(ids), heard, deadline, progress)
        finally:
            consumer.close()
        return [heard.get(key) or QueryStatus(key, PUBLISHED) for key in ids]

    def status(self, handle: str) -> QueryStatus:
        """Reads the status topic through: O(queries). Raises UnknownQuery."""
        return next(self.standing(handle))

    def standing(self, handle: str) -> Generator[QueryStatus]:
        """How a query stands now, then each time that is asked; ends when it is gone.

        O(queries) to begin with, then O(what changed). Raises UnknownQuery, before anything is told.
        """
        key = str(query_id(handle))
        consumer = self._consumer()
        try:
            consumer.assign(self._ends(consumer, self._names.status))
            found, _ = self._statuses({key})
            if key not in found:
                raise UnknownQuery(
                    hint=f"{self._names.status} has no query with this handle's id, {key}; one that was "
                    "just registered appears when it is accepted: tureen queries --by-topic"
                )
            while key in found:
                yield found[key]
                for message in self._polled(consumer, time.monotonic()):
                    take_status(message, {key}, found)
        finally:
            consumer.close()

    def queries(self) -> list[QueryStatus]:
        """What was registered, and what was told of it; without any of that it is PUBLISHED. By query id.

        Reads ``.queries`` and ``.status`` through: O(queries). Raises KafkaUnavailable.
        """
        told, whole = self._statuses(None)
        texts, texts_whole = self._read(self._names.queries, None)
        if not (whole and texts_whole):
            raise self._unavailable(f"its topics could not be read through in {self._timeout_s:g} s")
        found = []
        for key in sorted(told.keys() | texts.keys()):
            status = told.get(key) or QueryStatus.of({"query_id": key, "state": PUBLISHED})
            said = registration_of(texts.get(key))
            found.append(replace(status, sql=said["sql"], facts={**said, **status.facts, "sql": said["sql"]}))
        return found

    def alter(self, publication: Publication, wait_s: float) -> QueryStatus:
        """Publish another text under a handle, with the options that are published there.

        Raises UnknownQuery where nothing is; what refuses the text, where that is told in time.
        """
        key = str(query_id(publication.handle))
        known, _ = self._read(self._names.queries, {key})
        if key not in known:
            raise self._unknown(publication.handle)
        options = registration_of(known[key])
        called = options.pop("name", None)
        options = {name: value for name, value in options.items() if name not in ("sql", "parameters")}
        merged = replace(publication, options={**options, **publication.options}, name=called)
        (status,) = self.register([merged], wait_s)
        if status.error is not None and status.state != "PENDING":
            raise status.error
        return replace(status, sql=publication.sql)

    def unregister(self, handle: str) -> None:
        """Publish the removal, of a handle, an id or a name; nobody answers, so an unknown one goes
        unnoticed.
        """
        own = str(query_id(handle))
        if _QUERY_ID.fullmatch(handle):
            known, _ = self._read(self._names.queries, {own, handle})
            own = handle if handle in known and own not in known else own
        elif _NAME.fullmatch(handle) and len(handle) != HANDLE_CHARACTERS:
            own = self._named(handle) or own
        self._publish([(self._names.queries, own, None)])

    def _named(self, name: str) -> str | None:
        """The id of the query that is registered under a name, and was not refused for it. O(queries)."""
        known, _ = self._read(self._names.queries, None)
        ids = [key for key, value in known.items() if registration_of(value).get("name") == name]
        if len(ids) > 1:
            told, _ = self._statuses(set(ids))
            refused = {key for key, one in told.items() if isinstance(one.error, NameInUse)}
            ids = [key for key in ids if key not in refused]
        return ids[0] if ids else None

    def _unknown(self, handle: str) -> UnknownQuery:
        """What is said of a handle that opens nothing: it may be a public id."""
        if _QUERY_ID.fullmatch(handle) and handle in self._read(self._names.queries, {handle})[0]:
            return HandleNeeded(handle)
        return UnknownQuery()

    def snapshot(
        self, handle: str, form: SnapshotFormat, at: int | Period | None, archive: bool | None = None
    ) -> Reply:
        """Raises UnknownQuery, InstantOutOfRange, LimitExceeded; BrokerUnavailable when no answer comes."""
        consumer = self._reply_consumer()
        correlation = uuid.uuid4().hex
        request = {
            "handle": handle,
            "format": form,
            "at": at.as_dict() if isinstance(at, Period) else at,
            "archive": archive,
            "reply_to": self._reply_to,
            "correlation_id": correlation,
        }
        self._publish([(self._names.snapshot_requests, str(query_id(handle)), json.dumps(request))])
        deadline = time.monotonic() + self._timeout_s
        chunks: dict[int, bytes] = {}
        while time.monotonic() < deadline:
            message = self._poll(consumer, deadline)
            headers = {} if message is None else headers_of(message)
            if message is None or headers.get(HEADER_CORRELATION_ID) != correlation:
                continue
            body = message.value() or b""
            if headers.get(HEADER_STATUS) == "error":
                refused = error_from(json.loads(body))
                raise self._unknown(handle) if isinstance(refused, UnknownQuery) else refused
            chunks[int(headers.get(HEADER_CHUNK, "0"))] = body
            if len(chunks) == int(headers.get(HEADER_CHUNKS, "1")):
                return Reply(b"".join(chunks[number] for number in sorted(chunks)), form, headers)
        raise BrokerUnavailable(
            f"no answer came on {self._reply_to} within {self._timeout_s:g} s",
            hint=f"does a broker run with service_id {self._names.service_id!r}? A scale-out answers no "
            "snapshots: `tureen watch --by-topic HANDLE` reads what it writes",
        )

    def close(self) -> None:
        """The reply topic goes as well; one that can't be removed expires by itself."""
        if self._replies is not None:
            self._replies.close()
            self._replies = None
            for done in made(AdminClient, self._common()).delete_topics([self._reply_to]).values():
                try:
                    done.result(METADATA_TIMEOUT_S)
                except (KafkaException, TimeoutError) as error:
                    _log.info("reply topic %s stays: %s", self._reply_to, error)
        if self._producer is not None:
            self._producer.flush(METADATA_TIMEOUT_S)
            self._producer = None

    # --- Kafka ------------------------------------------------------------------------------------

    def _common(self) -> dict[str, Any]:
        return {**self._kafka, "error_cb": _ignore, "logger": _log}

    def _consumer(self) -> Consumer:
        return made(
            Consumer,
            {
                **self._common(),
                "group.id": f"{self._names.service_id}-client",  # never joined: we assign by hand
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "enable.partition.eof": True,
                "fetch.wait.max.ms": 50,
                "isolation.level": "read_committed",
            },
        )

    def _publish(self, records: Sequence[tuple[str, str, str | None]]) -> None:
        """Write records (topic, key, value); returns once Kafka has them. Raises KafkaUnavailable."""
        if self._producer is None:
            self._producer = made(
                Producer,
                {
                    "partitioner": "murmur2_random",
                    "enable.idempotence": True,
                    "linger.ms": 2,
                    **self._common(),
                },
            )
        failures: list[KafkaError] = []

        def told(error: KafkaError | None, _: Message) -> None:
            if error is not None:
                failures.append(error)

        for topic, key, value in records:
            data = None if value is None else value.encode()
            while True:
                try:
                    self._producer.produce(topic, value=data, key=key.encode(), on_delivery=told)
                    break
                except BufferError:
                    self._producer.poll(0.1)
            self._producer.poll(0)
        left = self._producer.flush(self._timeout_s if len(records) > 1 else CONFIRMED_S)
        if failures:
            failed = self._failed(failures[0], records[0][0])
            raise failed if isinstance(failed, TopicMissing) else self._unconfirmed(failed.message)
        if left:
            self._producer.purge()
            raise self._unconfirmed(self._unavailable(f"{left:,} records wait").message)

    def _ends(self, consumer: Consumer, topic: str) -> list[TopicPartition]:
        """Every partition of a topic, at its end."""

        def end(partition: int) -> int:
            place = TopicPartition(topic, partition)
            return int(consumer.get_watermark_offsets(place, timeout=METADATA_TIMEOUT_S)[1])

        partitions = self._partitions(consumer, topic)
        return self._asked(lambda: [TopicPartition(topic, each, end(each)) for each in partitions])

    def _partitions(self, consumer: Consumer, topic: str) -> list[int]:
        found = self._asked(lambda: consumer.list_topics(topic, timeout=METADATA_TIMEOUT_S)).topics[topic]
        if found.error is not None or not found.partitions:
            raise TopicMissing(topic, hint=SERVED_HINT)
        return sorted(found.partitions)

    def _statuses(self, wanted: Container[str] | None) -> tuple[dict[str, QueryStatus], bool]:
        """What the status topic says of these ids, None: of all. As :meth:`_read`."""
        found, whole = self._read(self._names.status, wanted)
        return {key: status_of(key, value) for key, value in found.items()}, whole

    def _read(self, topic: str, wanted: Container[str] | None) -> tuple[dict[str, bytes], bool]:
        """The last value of each of these keys, None: of all, from the beginning to the end of now; whether
        that was reached in time."""
        consumer = self._consumer()
        try:
            ends = self._ends(consumer, topic)
            consumer.assign([TopicPartition(end.topic, end.partition, 0) for end in ends])
            unread = {end.partition for end in ends if end.offset > 0}
            found: dict[str, bytes] = {}
            deadline = time.monotonic() + self._timeout_s
            while unread and time.monotonic() < deadline:
                for message in consumer.consume(1_000, 0.2):
                    error = message.error()
                    if error is not None:
                        if error.code() == KafkaError._PARTITION_EOF:
                            unread.discard(message.partition())
                        continue
                    key, value = key_of(message), message.value()
                    if value is None:
                        found.pop(key, None)
                    elif wanted is None or key in wanted:
                        found[key] = value
            return found, not unread
        finally:
            consumer.close()

    def _listen(
        self,
        consumer: Consumer,
        wanted: set[str],
        heard: dict[str, QueryStatus],
        deadline: float,
        progress: Progress | None,
        *,
        quiet_s: float | None = None,
    ) -> None:
        """Until the state of each is heard, or nothing for so long."""
        last = time.monotonic()
        while len(heard) < len(wanted) and (now := time.monotonic()) < deadline:
            count = len(heard)
            for message in self._polled(consumer, deadline):
                take_status(message, wanted, heard)
            if len(heard) > count:
                last = now
                if progress is not None:
                    progress(len(heard))
            elif quiet_s is not None and now > last + quiet_s:
                return

    def _poll(self, consumer: Consumer, deadline: float) -> Message | None:
        """A record, None where there is none just now."""
        message = consumer.poll(max(0.0, min(0.5, deadline - time.monotonic())))
        return None if message is None or not self._is_record(message) else message

    def _polled(self, consumer: Consumer, deadline: float) -> Iterator[Message]:
        """Records that are there, at least one where one comes in a moment."""
        for message in consumer.consume(POLLED_AT_ONCE, max(0.0, min(0.05, deadline - time.monotonic()))):
            if self._is_record(message):
                yield message

    def _is_record(self, message: Message) -> bool:
        """False for what is told beside records. Raises what is no passing trouble."""
        error = message.error()
        if error is not None and error.code() not in _PASSING:
            raise self._failed(error, str(message.topic()))
        return error is None

    def _reply_consumer(self) -> Consumer:
        if self._replies is None:
            admin = made(AdminClient, self._common())
            topic = NewTopic(
                self._reply_to, num_partitions=1, config={"retention.ms": str(REPLY_RETENTION_MS)}
            )
            for done in admin.create_topics([topic], request_timeout=METADATA_TIMEOUT_S).values():
                try:
                    done.result(METADATA_TIMEOUT_S + 1)
                except KafkaException as error:
                    raise self._failed(error.args[0], self._reply_to) from None
            self._replies = self._consumer()
            self._replies.assign([TopicPartition(self._reply_to, 0, 0)])
        return self._replies

    def _asked(self, call: Callable[[], Found]) -> Found:
        """Ask, again while a partition has no leader yet. Raises KafkaUnavailable, TopicMissing."""
        deadline = time.monotonic() + METADATA_TIMEOUT_S
        while True:
            try:
                return call()
            except KafkaException as error:
                if error.args[0].code() not in ELECTING or time.monotonic() >= deadline:
                    raise self._failed(error.args[0], "") from None
            time.sleep(ELECTED_S)

    def _failed(self, error: KafkaError, topic: str) -> KafkaUnavailable | TopicMissing:
        if error.code() in (KafkaError._UNKNOWN_TOPIC, KafkaError.UNKNOWN_TOPIC_OR_PART):
            return TopicMissing(topic, hint=SERVED_HINT)
        return self._unavailable(error.str())

    @staticmethod
    def _unconfirmed(reason: str) -> KafkaUnavailable:
        return KafkaUnavailable(UNCONFIRMED, hint=f"{reason}; repeat it when Kafka is back")

    def _unavailable(self, reason: str) -> KafkaUnavailable:
        return KafkaUnavailable(
            f"no Kafka answers at {self._kafka.get('bootstrap.servers')}: {reason}",
            hint="start one with `tureen up`, or name yours by --kafka bootstrap.servers=host:port",
        )


_PASSING = {
    KafkaError._PARTITION_EOF,
    KafkaError._ALL_BROKERS_DOWN,
    KafkaError._TRANSPORT,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.UNKNOWN_TOPIC_OR_PART,
}
"""The Kafka client goes on by itself; our own deadline decides."""


def _ignore(_: KafkaError) -> None:
    """Errors come back from calls; what is told beside them is noise."""
