"""Where the changes of queries go: result topics, made and agreed upon before a query stands.

Queries that say no topic share two: rows by key go to ``<service>.results``, which is compacted; changes that
are no rows by key to ``<service>.results.log``, which forgets after ``results_retention_ms``. ``INTO name``
is ``<service>.results.<name>``, of the kind that its first query needs; all that write to it agree in format,
encoding and kind, and, where a schema registry has a say, in columns as far as that asks.

A topic that goes while queries write to it is made again, and readiness says so: what was in it is gone, and
a query that is unregistered and registered again under its handle writes its answer anew. It also says so of
one that somebody else made again.

What exists is looked at whenever a query comes, when writing fails, and once a minute of writing: its policy,
its partitions, and that the largest record fits. In between, and for schemas, every call is a look-up. Safe
to use from several threads.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

from engine.model.changes import Changes, Operator
from engine.model.paths import Path
from engine.model.step import Position
from topics.admin import Admin, TopicPolicy
from topics.destination import Destination, Encoding, Format
from topics.failures import is_refusal
from topics.insertions import Insertions
from topics.registry import RegistrySettings, SchemaKind
from topics.results import Records, encode
from topics.results_codec import AvroCodec, Codec, JsonCodec
from topics.results_protobuf import ProtobufCodec, protobuf_texts
from topics.results_schema import ResultSchemas
from topics.sizes import BATCH_BYTES, RECORD_BYTES_MAX, RECORD_OVERHEAD_BYTES
from tureen.errors import (
    KafkaUnavailable,
    LimitExceeded,
    NotSupported,
    OutputConflict,
    OutputRefused,
    RegistryUnavailable,
    TopicMissing,
    TureenError,
)
from tureen.protocol import TopicNames

if TYPE_CHECKING:
    from topics.registry_client import Registry

AWAITED = (RegistryUnavailable, KafkaUnavailable)
"""What keeps an output from being ready for a while only."""

LOOK_AGAIN_S = 60.0
_KINDS: Mapping[Encoding, SchemaKind] = {"avro": "AVRO", "json_schema": "JSON", "protobuf": "PROTOBUF"}

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class OutputSettings:
    """Settings of the topics and the schemas of results.

    registry: where schemas are registered; None: nowhere, and outputs with schemas are refused. retry_ms:
    least time for which a service that did not answer is left alone. record_bytes_max: most bytes of a record
    that the topics take which are made. letters: the topics for late rows and dead letters.
    """

    results_partitions: int = 4
    results_retention_ms: int = 7 * 86_400_000
    result_record_bytes_max: int = 1_000_000
    into_topics_max: int = 100
    retry_ms: int = 500
    registry: RegistrySettings | None = None
    record_bytes_max: int = RECORD_BYTES_MAX
    letters: tuple[TopicPolicy, ...] = ()


class Inserted(Protocol):
    """A stream that a query inserts into, and where its columns stand in the records."""

    @property
    def stream(self) -> str: ...

    @property
    def topic(self) -> str: ...

    @property
    def paths(self) -> tuple[Path, ...]: ...


class Emitted(Protocol):
    """What EMIT CHANGES says of where to, and how."""

    @property
    def into(self) -> str | None: ...

    @property
    def format(self) -> Format: ...

    @property
    def encoding(self) -> Encoding: ...

    @property
    def insert(self) -> Inserted | None: ...


class Output(Protocol):
    """What leaves a query, as :class:`engine.changes.output.ChangesOutput` says it."""

    @property
    def operator(self) -> Operator: ...

    @property
    def emit(self) -> Emitted | None: ...

    @property
    def key(self) -> tuple[int, ...] | None: ...


@dataclass(frozen=True, slots=True)
class Writer:
    """What the records of an output are made with."""

    codec: Codec
    partitions: int


@dataclass(frozen=True, slots=True)
class _Topic:
    """A topic when it was looked at last; id: differs from that of an earlier topic of the same name."""

    compacted: bool
    partitions: int
    id: str
    stale_s: float

    def is_stale(self) -> bool:
        """Whether it is to be looked at again."""
        return time.monotonic() >= self.stale_s


class Outputs:
    """Knows where the queries of one process write, and makes the topics and schemas for that."""

    def __init__(self, settings: OutputSettings, admin: Admin) -> None:
        """Raises SettingsError."""
        self._settings = settings
        self._admin = admin
        self._registry = None if settings.registry is None else _client(settings.registry)
        self._lock = threading.Lock()
        self._topics: dict[str, _Topic] = {}
        self._writers: dict[tuple[Destination, tuple[tuple[str, str], ...]], Writer] = {}
        self._made_again: dict[str, dict[str, Any]] = {}
        self._away: tuple[RegistryUnavailable, float] | None = None
        """A registry that did not answer, and until when, in s, it is left alone."""
        self._users: dict[str, Counter[_Kind]] = {}
        self._of: dict[str, Destination] = {}
        self._letters = {policy.name: policy for policy in settings.letters}
        self._inserting = Insertions()

    # --- who writes where -------------------------------------------------------------------------

    def agree(self, query_id: str, to: Destination, reads: Collection[str]) -> None:
        """A query is to write there; in the place of where it did until now. reads: streams and tables.

        Raises OutputConflict where those that write there do so otherwise, LimitExceeded (into_topics_max),
        NotSupported where what it inserts would come back to it.
        """
        self.release(query_id)
        if to.stream is not None:
            self._inserting.add(query_id, reads, to.stream)
        if to.shared:
            return
        users = self._users.get(to.topic)
        kind = _Kind.of(to)
        if users is None:
            if len(self._users) >= self._settings.into_topics_max:
                raise LimitExceeded(
                    "into_topics_max",
                    self._settings.into_topics_max,
                    len(self._users) + 1,
                    hint="let queries share a topic, or leave INTO out",
                )
            users = self._users[to.topic] = Counter()
        elif kind not in users:
            self._refuse(to.topic, kind, next(iter(users)))
        users[kind] += 1
        self._of[query_id] = to

    def release(self, query_id: str) -> None:
        """A query writes nowhere any more."""
        self._inserting.discard(query_id)
        to = self._of.pop(query_id, None)
        if to is None:
            return
        users = self._users[to.topic]
        users[_Kind.of(to)] -= 1
        if not +users:
            del self._users[to.topic]

    @staticmethod
    def _refuse(topic: str, wanted: _Kind, found: _Kind) -> None:
        for what, one, other in (
            ("format", wanted.format, found.format),
            ("encoding", wanted.encoding, found.encoding),
            ("changes of the kind", wanted.words, found.words),
        ):
            if one != other:
                raise OutputConflict(
                    topic,
                    what,
                    one,
                    other,
                    hint="write the same WITH (...), or EMIT CHANGES INTO another_name",
                )

    # --- topics and schemas --------------------------------------------------------------------------

    def writer(self, to: Destination, columns: pa.Schema, *, anew: bool = False) -> Writer:
        """What writes there, the topic and the schemas made where they are missing. Blocks.

        anew: look at the topic, whatever is known of it.
        Raises KafkaUnavailable, RegistryUnavailable (both pass), TopicPolicyMismatch, OutputRefused,
        SchemaRefused, NotSupported.
        """
        if to.stream is not None:
            self._inserting.topics.add(to.topic)
        known = (to, tuple((field.name, str(field.type)) for field in columns))
        topic = self._topics.get(to.topic)
        if topic is not None and topic.compacted == to.compacted and not anew and not topic.is_stale():
            found = self._writers.get(known)
            if found is not None:
                return found
        with self._lock:
            topic = self._topics.get(to.topic)
            if topic is None or topic.compacted != to.compacted or anew:
                topic = self._look(to.topic, to.compacted)
            elif topic.is_stale():
                try:
                    topic = self._look(to.topic, to.compacted)
                except KafkaUnavailable as away:  # nothing is known against it
                    log.warning("result topics are unknown: %s", away.message)
                    topic = self._known(to.topic, topic)
            found = self._writers.get(known)
            if found is None:
                found = self._writers[known] = Writer(self._asked(to, columns), topic.partitions)
        return found

    def encoded(
        self, changes: Changes, to: Destination, position: Position, numbered: dict[str, int]
    ) -> Records:
        """The records of changes that all go there; numbered: as :func:`topics.results.encode` has it.

        Blocks. Raises as :meth:`writer`, and RowsTooLarge.
        """
        writer = self.writer(to, changes.table.schema)
        return encode(
            changes,
            to,
            position,
            writer.codec,
            numbered=numbered,
            partitions=writer.partitions,
            bytes_max=self._settings.result_record_bytes_max,
        )

    def look(self, topics: Collection[str]) -> dict[str, int | TureenError]:
        """Look at topics of results and letters again since writing to them failed; those that are gone are
        made.

        Returns how many partitions each has, or why nothing can be written to it. Raises KafkaUnavailable.
        """
        found: dict[str, int | TureenError] = {}
        with self._lock:
            for name in sorted(set(topics)):
                try:
                    found[name] = self._look(
                        name, name in self._topics and self._topics[name].compacted
                    ).partitions
                except AWAITED:
                    raise
                except TureenError as refused:
                    found[name] = refused
        return found

    def _look(self, name: str, compacted: bool) -> _Topic:
        """What a topic is now, made where it is missing. The lock is held."""
        before = self._topics.get(name)
        if before is not None:
            self._topics[name] = replace(before, stale_s=0.0)  # whatever is found out, others are to know it
        try:
            if name not in self._inserting.topics:
                self._admin.ensure([self._letters.get(name) or self._policy(name, compacted)])
            partitions, topic_id = self._admin.partitions(name), self._admin.topic_id(name)
        except TopicMissing as gone:  # this very moment
            raise KafkaUnavailable(gone.message) from gone
        except KafkaUnavailable as away:
            if is_refusal(away):
                raise OutputRefused(name, away.message) from away
            raise
        if before is not None and before.id != topic_id and name not in self._inserting.topics:
            log.error("result topic %s was made again", name)
            self._made_again[name] = {
                "topic": name,
                "code": "result_topic_made_again",
                "message": f"{name} was deleted and created again: its earlier records are gone",
                "hint": "unregister the queries that write to it and register them again under their "
                "handles: their answers are then written again",
            }
        if before is not None and before.partitions != partitions:
            self._writers = {key: one for key, one in self._writers.items() if key[0].topic != name}
        return self._known(name, _Topic(compacted, partitions, topic_id, 0.0))

    def _known(self, name: str, topic: _Topic) -> _Topic:
        """It need not be looked at for a while."""
        known = self._topics[name] = replace(topic, stale_s=time.monotonic() + LOOK_AGAIN_S)
        return known

    def degraded(self) -> list[dict[str, Any]]:
        """What readiness tells of topics."""
        return list(self._made_again.values())

    def _policy(self, topic: str, compacted: bool) -> TopicPolicy:
        retention = str(self._settings.results_retention_ms)
        config = (
            {"cleanup.policy": "compact", "delete.retention.ms": retention}
            if compacted
            else {"cleanup.policy": "delete", "retention.ms": retention}
        )
        record_bytes_max = self._settings.result_record_bytes_max
        config["max.message.bytes"] = str(self._settings.record_bytes_max)
        least = {"max.message.bytes": max(BATCH_BYTES, record_bytes_max) + RECORD_OVERHEAD_BYTES}
        return TopicPolicy(topic, self._settings.results_partitions, config, least=least)

    def _asked(self, to: Destination, columns: pa.Schema) -> Codec:
        """A registry that did not answer is left alone for a while, the longer the longer it let us wait."""
        if to.encoding == "json":
            return JsonCodec()
        if self._away is not None and time.monotonic() < self._away[1]:
            raise self._away[0]
        began_s = time.monotonic()
        try:
            return self._codec(to, columns)
        except RegistryUnavailable as away:
            now_s = time.monotonic()
            self._away = away, now_s + max(self._settings.retry_ms / 1_000, 2 * (now_s - began_s))
            raise

    def _codec(self, to: Destination, columns: pa.Schema) -> Codec:
        if self._registry is None:
            raise NotSupported(
                f"encoding = '{to.encoding}' needs a schema registry, and none is configured",
                hint="set schema_registry_url, or leave the encoding out for json",
            )
        schemas = ResultSchemas(to.topic, columns, to.key, to.format)
        is_protobuf = to.encoding == "protobuf"
        key, value = protobuf_texts(schemas) if is_protobuf else schemas.texts(to.encoding)
        kind = _KINDS[to.encoding]
        key_id = self._registry.id_of(f"{to.topic}-key", key, kind)
        value_id = self._registry.id_of(f"{to.topic}-value", value, kind)
        if is_protobuf:
            return ProtobufCodec(schemas, key_id, value_id)
        if to.encoding == "avro":
            return AvroCodec(schemas, key_id, value_id)
        return JsonCodec(key_id, value_id)


@dataclass(frozen=True, slots=True)
class _Kind:
    """What queries that share a topic agree in."""

    format: str
    encoding: str
    compacted: bool

    @classmethod
    def of(cls, to: Destination) -> _Kind:
        return cls(to.format, to.encoding, to.compacted)

    @property
    def words(self) -> str:
        return "rows by key" if self.compacted else "records without a key"


def destination(names: TopicNames, output: Output) -> Destination | None:
    """Where EMIT CHANGES sends the changes of a query; None where it does not say so."""
    emit, operator = output.emit, output.operator
    if emit is None:
        return None
    insert = emit.insert
    if insert is not None:
        where = insert.stream, insert.paths
        return Destination(insert.topic, False, True, emit.format, emit.encoding, operator, None, *where)
    compacted = operator == "changes" and emit.format == "upsert"
    if emit.into is None:
        topic = names.results if compacted else names.results_log
    else:
        topic = names.results_into(emit.into)
    key = output.key if operator == "changes" else None
    return Destination(topic, compacted, emit.into is None, emit.format, emit.encoding, operator, key)


def facts(to: Destination, columns: pa.Schema) -> dict[str, Any]:
    """As states and lists show it. key: names of columns, None where rows have a hash or a number. stream:
    that it inserts into; then the format is ``record``.
    """
    told = {
        "topic": to.topic,
        "format": to.format if to.stream is None else "record",
        "encoding": to.encoding,
        "operator": to.operator,
        "key": None if to.key is None else [columns.names[number] for number in to.key],
    }
    return told if to.stream is None else told | {"stream": to.stream}


def _client(settings: RegistrySettings) -> Registry:
    """Loaded only where there is a registry. Raises SettingsError."""
    from topics.registry_client import Registry

    return Registry(settings)


def is_awaited(error: object) -> bool:
    """Whether trying again may do."""
    return isinstance(error, AWAITED)


def emits(sql: str) -> bool:
    """Whether a query may say EMIT or INSERT, without understanding it."""
    said = sql.lower()
    return "emit" in said or "insert" in said


class Readiness:
    """Makes the outputs of one batch of queries ready: each topic is looked at once, and a service that does
    not answer is asked once.
    """

    def __init__(self, outputs: Outputs) -> None:
        self._outputs = outputs
        self._looked_at: set[tuple[str, bool]] = set()
        self._away: dict[bool, TureenError] = {}

    def check(self, to: Destination, columns: pa.Schema) -> None:
        """Make what is missing. Raises as :meth:`Outputs.writer` does."""
        registered = to.encoding != "json"
        if registered in self._away:
            raise self._away[registered]
        try:
            self._outputs.writer(to, columns, anew=(to.topic, to.compacted) not in self._looked_at)
            self._looked_at.add((to.topic, to.compacted))
        except AWAITED as away:
            self._away[registered] = away
            raise
