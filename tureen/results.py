"""Answers folded from result topics: what ``EMIT CHANGES`` writes, read back by a Kafka client alone.

    with ResultTopic({"bootstrap.servers": "127.0.0.1:19092"}, query.query_id) as results:
        results.read()                  # all that is committed by now
        results.rows()
        results.poll(1.0)               # what comes next

Only committed records count, so no step is seen that the broker took back. What is folded is the answer at
``position``, once :meth:`ResultTopic.read` has returned True. Records are JSON; values are as JSON has them
(:mod:`tureen.columns` lists what they mean). A topic of ISTREAM or DSTREAM gives all rows it holds, which are
not an answer. Cost: O(records of the topic's partitions) to begin with, memory O(rows).
"""

from __future__ import annotations

import json
import time
import uuid
import zlib
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar

from confluent_kafka import Consumer, IsolationLevel, KafkaError, KafkaException, Message, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]

from tureen.approximation import Approximation, approximations_from
from tureen.changes import Operator
from tureen.errors import KafkaUnavailable, NotSupported, TopicMissing, TureenError
from tureen.protocol import HEADER_APPROXIMATION, HEADER_AT_MS, HEADER_POSITION, TopicNames
from tureen.topic_client import made

if TYPE_CHECKING:
    import pyarrow as pa

Format = Literal["upsert", "debezium", "diff"]

ASKED_S = 10.0
POLLED_AT_ONCE = 5_000

Found = TypeVar("Found")
Row = dict[str, Any]
Weighed = tuple[int, Row]
"""A row that came (1) or went (-1)."""


class ResultChange(NamedTuple):
    """A change that a record made: ``weight`` as :data:`Weighed` has it; position and instant of the step,
    and what of the answer is not exact after it.
    """

    weight: int
    row: Row
    at_ms: int | None
    position: str | None
    approximation: tuple[Approximation, ...] = ()


class ResultFold:
    """The answer of one query, as far as its records were applied, in the order of its partition.

    >>> fold = ResultFold("q")
    >>> fold.apply(b'{"query": "q", "key": {"city": "Bern"}}', b'{"city": "Bern", "n": 2}')
    True
    >>> fold.apply(b'{"query": "other", "key": {"city": "Zug"}}', b'{"city": "Zug", "n": 1}')
    False
    >>> fold.rows()
    [{'city': 'Bern', 'n': 2}]
    >>> fold.apply(b'{"query": "q", "key": {"city": "Bern"}}', None), fold.rows()
    (True, [])

    operator: of "dstream" and "rstream" every record stands for itself, and none is kept.
    """

    def __init__(self, query_id: str, form: Format = "upsert", operator: Operator = "changes") -> None:
        self._query_id = query_id
        self._form = form
        self._operator = operator
        self._rows: dict[bytes, Row] = {}
        self._counts: dict[bytes, int] = {}

    def apply(self, key: bytes | None, value: bytes | None) -> bool:
        """Take in a record; whether it is this query's. Raises as :meth:`changed`."""
        return self.changed(key, value) is not None

    def changed(self, key: bytes | None, value: bytes | None) -> list[Weighed] | None:
        """Take in a record; the rows that went (-1) and came (1) by it, None where it is not this query's.

        Raises NotSupported for what is no JSON of the format.

        >>> fold = ResultFold("q")
        >>> fold.changed(b'{"query": "q", "key": {}}', b'{"n": 1}')
        [(1, {'n': 1})]
        >>> fold.changed(b'{"query": "q", "key": {}}', b'{"n": 2}')
        [(-1, {'n': 1}), (1, {'n': 2})]
        """
        try:
            if json.loads(key or b"")["query"] != self._query_id:
                return None
            told = None if value is None else _object(json.loads(value))
            if self._operator in ("dstream", "rstream"):
                return [] if told is None else self._told_alone(told)
            if told is None or self._form == "upsert":
                return self._replace(key or b"", told)
            if self._form == "debezium":
                after = told["after"]
                return self._replace(key or b"", None if after is None else _object(after))
            return self._count(told)
        except (ValueError, KeyError, TypeError):
            raise NotSupported(
                f"a record is not JSON of the format {self._form}",
                hint="name the format of the query's WITH; Avro and JSON with a schema are not read here",
            ) from None

    def _told_alone(self, told: Row) -> list[Weighed]:
        """Read a record of a log that does not fold: the one row that it tells, with its weight."""
        if self._form == "diff":
            weight, row = int(told["weight"]), told["row"]
        elif self._form == "debezium":
            weight, row = (1, told["after"]) if told["after"] is not None else (-1, told["before"])
        else:
            weight, row = (-1 if self._operator == "dstream" else 1), told
        return [(weight, _object(row))]

    def _replace(self, key: bytes, after: Row | None) -> list[Weighed]:
        before = self._rows.get(key)
        if after is not None:
            self._rows[key] = after
        elif before is not None:
            del self._rows[key]
        if before == after:
            return []
        came: list[Weighed] = [] if after is None else [(1, after)]
        return came if before is None else [(-1, before), *came]

    def _count(self, message: Mapping[str, Any]) -> list[Weighed]:
        row, weight = _object(message["row"]), int(message["weight"])
        same = json.dumps(row, sort_keys=True).encode()
        count = self._counts.get(same, 0) + weight
        self._rows[same] = row
        self._counts[same] = count
        if not count:  # below it is one whose rows are still to come, from another partition
            del self._counts[same], self._rows[same]
        return [(weight // abs(weight), row)] * abs(weight)

    def rows(self) -> list[Row]:
        """All rows, equal ones as often as they are there."""
        if self._form != "diff":
            return list(self._rows.values())
        return [self._rows[same] for same, count in self._counts.items() for _ in range(count)]


class ResultTopic:
    """A result topic, folded for one query. Not to be shared among threads.

    kafka: plain Kafka settings, passed through. query_id: the public id of the query. into: the name behind
    INTO; None: the topic that queries without INTO share, "log" that of their changes which are no rows by
    key. form: as the query's WITH says it. operator: as :class:`ResultFold` has it. told: called with every
    change that a record makes, once it is applied. Nothing connects before the first call.
    """

    def __init__(
        self,
        kafka: Mapping[str, Any],
        query_id: str,
        *,
        into: str | None = None,
        form: Format = "upsert",
        operator: Operator = "changes",
        service_id: str = "tureen",
        told: Callable[[ResultChange], None] | None = None,
    ) -> None:
        names = TopicNames(service_id)
        self.topic = names.results if into is None else names.results_into(into)
        self.position: str | None = None
        self.at_ms: int | None = None
        self.approximation: tuple[Approximation, ...] = ()
        self._shared = self.topic in (names.results, names.results_log)
        # What the client says beside its answers would stand between the lines of a terminal.
        self._kafka = {"allow.auto.create.topics": False, "log_level": 0, **kafka, "error_cb": _ignore}
        self._query_id = query_id
        self._fold = ResultFold(query_id, form, operator)
        self._told = told
        self._consumer: Consumer | None = None
        self._admin: AdminClient | None = None
        self._read: dict[int, int] = {}
        """Partition -> the offset behind what was read of it."""

    def read(self, timeout: float = 30.0) -> bool:
        """Apply all that is committed now. True once that is whole steps, False if not in so many seconds.

        Raises KafkaUnavailable, TopicMissing, NotSupported (records of another format).
        """
        deadline = time.monotonic() + timeout
        consumer = self._connected(timeout)
        while True:
            ends = self._ends(IsolationLevel.READ_COMMITTED)
            while any(self._read[number] < end for number, end in ends.items()):
                if time.monotonic() >= deadline:
                    return False
                self._take(consumer, 0.1)
            # In one partition steps come whole; in several one may still be on its way to some of them.
            if len(ends) == 1 or self._ends(IsolationLevel.READ_UNCOMMITTED) == self._read:
                return True
            if time.monotonic() >= deadline:
                return False
            self._take(consumer, 0.1)

    def poll(self, timeout: float = 1.0) -> int:
        """Apply what comes in so many seconds, or is there; how many records of the query those were."""
        return self._take(self._connected(ASKED_S), timeout)

    def rows(self) -> list[Row]:
        """The answer as far as it was read, one dict a row."""
        return self._fold.rows()

    def to_arrow(self) -> pa.Table:
        """The answer as far as it was read, as an Arrow table; types are those that JSON shows."""
        import pyarrow as pa

        return pa.Table.from_pylist(self.rows())

    def close(self) -> None:
        if self._consumer is not None:
            self._consumer.close()
            self._consumer = None
        self._admin = None  # it has no close(): it ends with its last reference

    def __enter__(self) -> ResultTopic:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # --- Kafka ------------------------------------------------------------------------------------

    def _connected(self, timeout: float) -> Consumer:
        if self._consumer is None:
            consumer = made(
                Consumer,
                {
                    **self._kafka,
                    "group.id": f"results-{uuid.uuid4().hex}",  # never joined: we assign by hand
                    "enable.auto.commit": False,
                    "auto.offset.reset": "earliest",
                    "enable.partition.eof": True,
                    "isolation.level": "read_committed",
                },
            )
            asked_s = min(ASKED_S, max(timeout, 0.1))
            found = self._asked(lambda: consumer.list_topics(self.topic, timeout=asked_s)).topics[self.topic]
            if found.error is not None or not found.partitions:
                raise TopicMissing(self.topic, hint="a query with EMIT CHANGES creates it")
            numbers = sorted(found.partitions)
            if self._shared:
                numbers = [zlib.crc32(self._query_id.encode()) % len(numbers)]
            consumer.assign([TopicPartition(self.topic, number, 0) for number in numbers])
            self._read = dict.fromkeys(numbers, 0)
            self._consumer = consumer
        return self._consumer

    def _take(self, consumer: Consumer, timeout: float) -> int:
        found = 0
        for message in consumer.consume(POLLED_AT_ONCE, timeout):
            error = message.error()
            partition = int(message.partition() or 0)
            if error is None:
                self._read[partition] = int(message.offset() or 0) + 1
                found += self._record(message)
            elif error.code() == KafkaError._PARTITION_EOF:
                self._read[partition] = int(message.offset() or 0)
            elif error.fatal() or error.code() in (
                KafkaError._UNKNOWN_TOPIC,
                KafkaError.UNKNOWN_TOPIC_OR_PART,
            ):
                raise self._failed(error)
        return found

    def _record(self, message: Message) -> bool:
        changed = self._fold.changed(_bytes(message.key()), _bytes(message.value()))
        if changed is None:
            return False
        headers = dict(message.headers() or [])
        self.position = _text(headers.get(HEADER_POSITION)) or self.position
        at_ms = _text(headers.get(HEADER_AT_MS))
        self.at_ms = self.at_ms if at_ms is None else int(at_ms)
        self.approximation = approximations_from(_text(headers.get(HEADER_APPROXIMATION)))
        if self._told is not None:
            for weight, row in changed:
                self._told(ResultChange(weight, row, self.at_ms, self.position, self.approximation))
        return True

    def _ends(self, level: IsolationLevel) -> dict[int, int]:
        """The ends of the partitions, at this level of isolation."""
        if self._admin is None:
            self._admin = made(AdminClient, self._kafka)
        latest = OffsetSpec.latest()  # type: ignore[no-untyped-call]
        asked = {TopicPartition(self.topic, number): latest for number in self._read}
        futures = self._admin.list_offsets(asked, isolation_level=level, request_timeout=ASKED_S)
        return {one.partition: int(self._asked(done.result).offset) for one, done in futures.items()}

    def _asked(self, call: Callable[[], Found]) -> Found:
        try:
            return call()
        except KafkaException as error:
            raise self._failed(error.args[0]) from None

    def _failed(self, error: KafkaError) -> TureenError:
        if error.code() in (KafkaError._UNKNOWN_TOPIC, KafkaError.UNKNOWN_TOPIC_OR_PART):
            return TopicMissing(self.topic, hint="a query with EMIT CHANGES creates it")
        return KafkaUnavailable(
            f"no Kafka answers at {self._kafka.get('bootstrap.servers')}: {error.str()}",
            hint="start one with `tureen up`, or name yours",
        )


def _object(value: Any) -> Row:
    if not isinstance(value, dict):
        raise TypeError(value)
    return value


def _bytes(value: str | bytes | None) -> bytes | None:
    return value.encode() if isinstance(value, str) else value


def _text(value: str | bytes | None) -> str | None:
    return value.decode() if isinstance(value, bytes) else value


def _ignore(_: KafkaError) -> None:
    """Errors come back from calls; what is told beside them is noise."""
