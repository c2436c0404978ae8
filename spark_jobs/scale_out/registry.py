"""The registry of a service, read by the driver: what stands, and what came and went since it was last asked.

Whatever is refused is told on ``.status`` as the broker tells it; a query over a stream that is missing waits
for it. Between two micro-batches the newest record of each key counts, and whether a stream was dropped
before it (:mod:`spark_jobs.scale_out.registry_topics`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import orjson

from engine.changes.output import output_of
from engine.language.functions import BUILT_IN
from engine.language.query import CreateFromQuery as DerivedStatement
from engine.language.query import CreateStream, CreateSummary, Query
from engine.language.statements import parse
from engine.model.limits import Limits
from engine.model.maintenance import QueryOptions
from engine.model.plain import compact
from engine.model.source import SourceName, Stream
from engine.model.step import CreateDerived, CreateSource, DropSource, Registration
from engine.operators.gather import schema_of
from engine.queries.catalogue import Catalogue
from engine.queries.definitions import (
    Decision,
    Definitions,
    Drop,
    Unbound,
    create_of,
    decide,
    referring,
)
from engine.queries.registrations import admitted, bound
from spark_jobs.scale_out.micro_batch import Definition, Placement, Plan
from spark_jobs.scale_out.registry_topics import RegistryTopics
from topics.admin import Admin, refuse_own
from topics.control_records import Command
from topics.outputs import AWAITED, Outputs, Readiness, destination, facts
from tureen.errors import (
    ChangesBroken,
    KafkaUnavailable,
    LimitExceeded,
    NotSupported,
    TureenError,
    UnknownSource,
    UnknownSummary,
)
from tureen.protocol import TopicNames

Place = Callable[[Query, Mapping[SourceName, Stream]], Placement]
"""Where a query is to be at work. Raises NotSupported."""


@dataclass(slots=True)
class RegistryEntry:
    """A registration and what became of it. query, placement: while it stands."""

    registration: Registration
    state: str = "PENDING"
    error: dict[str, Any] | None = None
    output: dict[str, Any] | None = None
    query: Query | None = None
    placement: Placement | None = None

    def as_status(self, position: str | None, lost: Mapping[SourceName, TureenError]) -> dict[str, Any]:
        """As ``.status`` has it. lost: streams of which nothing is read any more, and why."""
        told: dict[str, Any] = {"state": self.state, "error": self.error, "position": position}
        if self.output is not None:
            told["output"] = self.output
        if self.placement is not None:
            told["lane"] = self.placement
        degraded = [{"stream": name} | error.as_dict() for name, error in lost.items() if self.reads(name)]
        if degraded:
            told["degraded"] = degraded
        return told

    def reads(self, name: str) -> bool:
        """Whether it stands and reads this stream, table or view."""
        return self.query is not None and name in (*self.query.sources, *self.query.uses)


@dataclass(slots=True)
class Changes:
    """Since the last micro-batch. told: ids whose status is to be written, None: it is gone."""

    definitions: list[Definition] = field(default_factory=list)
    going: list[str] = field(default_factory=list)
    coming: list[tuple[Registration, Placement]] = field(default_factory=list)
    told: dict[str, RegistryEntry | None] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.definitions or self.going or self.coming)

    def lines(self) -> list[str]:
        """What became of queries, for people: how many of each state, and one of the errors."""
        states = Counter("gone" if one is None else one.state for one in self.told.values())
        if not states:
            return []
        counted = ", ".join(f"{count:,} {state}" for state, count in sorted(states.items()))
        refused = [(name, one.error) for name, one in self.told.items() if one is not None and one.error]
        shown = [f"{name}: {error['code']}: {error['message']}" for name, error in refused[:1]]
        return [f"queries: {counted}", *shown]


class Registry:
    """One for a run; used by the driver's thread alone."""

    def __init__(
        self,
        kafka: Mapping[str, str],
        names: TopicNames,
        limits: Limits,
        outputs: Outputs,
        place: Place,
        letter: Callable[[Any, TureenError], None],
    ) -> None:
        """letter: takes a record that is none, and why. Raises KafkaUnavailable, TopicMissing."""
        self._names = names
        self._limits = limits
        self._outputs = outputs
        self._place = place
        self._admin = Admin(dict(kafka))
        self._topics = RegistryTopics(kafka, self._admin, names, limits.sql_bytes_max, letter)
        self.catalogue = Catalogue(limits, BUILT_IN, None)
        self.entries: dict[str, RegistryEntry] = {}
        self._statements: dict[str, str] = {}
        """Texts of streams and views that stand, in the order in which they came."""
        self._waiting: dict[str, str] = {}
        """Statements over sources that are not there yet, by name."""
        self.version = 0

    def close(self) -> None:
        self._topics.close()

    @property
    def streams(self) -> dict[SourceName, Stream]:
        """Streams and tables by name."""
        return {source.stream.name: source.stream for source in self.catalogue.sources.values()}

    def plan(self) -> Plan:
        """Everything that stands."""
        return Plan(
            self.version,
            tuple((source.stream, source.sql) for source in self.catalogue.sources.values()),
            tuple(self.catalogue.derived.values()),
            tuple(
                (one.registration, one.placement)
                for one in self.entries.values()
                if one.placement is not None and one.state == "RUNNING"
            ),
            tuple(
                (one.registration, one.error)
                for one in self.entries.values()
                if one.error is not None and one.error["code"] == ChangesBroken.code
            ),
        )

    def needs_time(self, stream: Stream) -> bool:
        """Whether a query that runs may have something to tell when NOW of a stream goes on without a row.

        NOW of a query is that of its streams; a table's counts where it reads nothing else.
        """
        standing = (one.query for one in self.entries.values() if one.state == "RUNNING")
        return any(
            query is not None
            and stream.name in query.sources
            and (not stream.is_table or all(self.streams[name].is_table for name in query.sources))
            for query in standing
        )

    def begins(self, query_ids: Iterable[str]) -> dict[str, SourceName]:
        """By query that stands beside the rows and is to begin with its answer: the stream."""
        found = {}
        for query_id in query_ids:
            entry = self.entries[query_id]
            query = entry.query
            if (
                entry.placement == "rows"
                and query is not None
                and query.emit is not None
                and query.emit.snapshot
            ):
                found[query_id] = query.scan.source
        return found

    def adopt(self, plan: Plan) -> None:
        """Begin with what stood in the last micro-batch of an earlier run."""
        for stream, sql in plan.streams:
            self.catalogue.create(stream, sql)
            self._statements[stream.name] = sql
        for one in plan.derived:
            self.catalogue.derive(one)
            self._statements[one.name] = one.sql
        for registration, placement in plan.queries:
            query = bound(registration, self.catalogue).query
            to = destination(self._names, output_of(query, self.streams))
            assert to is not None
            self._outputs.agree(registration.query_id, to, query.sources)
            told = facts(to, schema_of(query.columns))
            self.entries[registration.query_id] = RegistryEntry(
                registration, "RUNNING", None, told, query, placement
            )
        for registration, error in plan.broken:
            self.entries[registration.query_id] = RegistryEntry(registration, "ERROR", dict(error))
        self.version = plan.version

    # --- what came ----------------------------------------------------------------------------------

    def poll(self, *, whole: bool = False) -> Changes:
        """What changed. whole: everything was read from the beginning, so that what was not in it is gone.

        Raises KafkaUnavailable.
        """
        came = self._topics.read()
        sources, queries = came.sources, came.queries
        changes = Changes()
        if whole:
            gone: list[Command] = [
                {"kind": "unregister", "name": name} for name in self.entries if name not in queries
            ]
            queries = {one["name"]: one for one in gone} | queries
            dropped: list[Command] = [
                {"kind": "drop", "name": name} for name in reversed(self._statements) if name not in sources
            ]
            sources = {one["name"]: one for one in dropped} | sources
        for command in queries.values():
            known = self.entries.get(command["name"])
            other = known is not None and known.registration != _registration(command)
            if command["kind"] == "unregister" or other:
                self._unregister(command["name"], changes)
        for name in sorted(came.dropped):
            anew = sources[name]
            if anew["kind"] == "create" and not (whole and self._statements.get(name) == anew["sql"]):
                self._drop(name, changes)
        self._define(sources, changes)
        ready = Readiness(self._outputs)
        for command in queries.values():
            if command["kind"] != "unregister":
                self._register(command, ready, changes)
        for query_id, entry in self.entries.items():
            if entry.state == "PENDING" and query_id not in queries:
                self._stand(entry, ready, changes)
        if changes:
            self.version += 1
        return changes

    # --- streams ------------------------------------------------------------------------------------

    def _define(self, commands: Mapping[str, Command], changes: Changes) -> None:
        for command in commands.values():
            name = command["name"]
            if command["kind"] == "drop":
                self._drop(name, changes)
            elif self._statements.get(name) != command["sql"]:
                self._waiting[name] = command["sql"]
        left = -1
        missing: dict[str, UnknownSource] = {}
        while self._waiting and len(self._waiting) != left:
            left = len(self._waiting)
            missing.clear()
            for name, sql in list(self._waiting.items()):
                try:
                    self._create(name, sql, changes)
                except UnknownSource as unknown:
                    missing[name] = unknown
        for name, one in missing.items():
            try:
                decide(name, Unbound(one), self._definitions())
            except TureenError as refused:
                del self._waiting[name]
                self._topics.refuse(name, refused)

    def _create(self, name: str, sql: str, changes: Changes) -> None:
        """Let a definition stand, or say why it does not. Raises UnknownSource: it has to wait."""
        others = {known: one for known, one in self.catalogue.definitions.items() if known != name}
        try:
            statement = parse(sql, others, self._limits, functions=BUILT_IN)
            match statement:
                case CreateStream() | DerivedStatement():
                    if (
                        decide(name, create_of(statement, self.catalogue.definitions), self._definitions())
                        is not Decision.SAME
                    ):
                        changes.definitions.append(self._made(statement))
                case CreateSummary():
                    raise _no_summaries()
                case _:
                    raise NotSupported("write CREATE STREAM, CREATE TABLE or CREATE VIEW")
        except (UnknownSource, KafkaUnavailable):
            raise
        except TureenError as refused:
            del self._waiting[name]
            self._topics.refuse(name, refused)
            return
        del self._waiting[name]
        self._statements[name] = sql

    def _made(self, statement: CreateStream | DerivedStatement) -> Definition:
        """What now stands. Raises NotSupported, TopicMissing, KafkaUnavailable."""
        if isinstance(statement, DerivedStatement):
            self.catalogue.derive(statement.derived)
            return CreateDerived(statement.derived)
        stream = statement.stream
        refuse_own(self._names, stream.topic)
        if not statement.create_topic:
            self._admin.partitions(stream.topic)
        self._admin.ensure_source_topic(
            stream.topic, statement.partitions, arrival_time=not stream.event_time, table=stream.is_table
        )
        self.catalogue.create(stream, statement.sql)
        # A part of the rows does not keep constraints.
        return CreateSource(replace(stream, constraints=()), statement.sql)

    def _definitions(self) -> Definitions:
        return Definitions(
            self.catalogue.definitions,
            readers=lambda name: sum(one.reads(name) for one in self.entries.values()),
            views=self.catalogue.views_of,
            referring=lambda name: referring(self.streams.values(), name),
        )

    def _drop(self, name: str, changes: Changes) -> None:
        self._waiting.pop(name, None)
        try:
            if decide(name, Drop(), self._definitions()) is Decision.ABSENT:
                return
            self.catalogue.drop(name)
            del self._statements[name]
        except TureenError as refused:
            self._topics.refuse(name, refused)
            return
        changes.definitions.append(DropSource(SourceName(name)))

    # --- queries ------------------------------------------------------------------------------------

    def _unregister(self, name: str, changes: Changes) -> None:
        entry = self.entries.pop(name, None)
        if entry is None:
            return
        if entry.state == "RUNNING":
            changes.going.append(name)
        self._outputs.release(name)
        changes.told[name] = None

    def _register(self, command: Command, ready: Readiness, changes: Changes) -> None:
        name = command["name"]
        old = self.entries.get(name)
        if old is not None and old.state != "PENDING":
            return
        registration = _registration(command)
        entry = self.entries[name] = RegistryEntry(registration)
        if "error" in command:
            entry.state, entry.error = "ERROR", command["error"]
            changes.told[name] = entry
            return
        self._stand(entry, ready, changes, anew=True)

    def _stand(self, entry: RegistryEntry, ready: Readiness, changes: Changes, *, anew: bool = False) -> None:
        """Let a registration stand, or say why it does not."""
        before = entry.state, entry.error
        registration = entry.registration
        try:
            paused = QueryOptions.of(registration.options).paused
            query = admitted(registration, self.catalogue).query
            if query.emit is None:
                raise NotSupported(
                    "a scale-out writes changes only: it has no snapshots",
                    hint="end the query in EMIT CHANGES",
                )
            if len(self.entries) > self._limits.queries_max:
                raise LimitExceeded("queries_max", self._limits.queries_max, len(self.entries))
            placement = self._place(query, self.streams)
            to = destination(self._names, output_of(query, self.streams))
            assert to is not None
            self._outputs.agree(registration.query_id, to, query.sources)
            columns = schema_of(query.columns)
            ready.check(to, columns)
        except UnknownSummary as missing:  # it will not come: a scale-out has none
            entry.state, entry.error = "ERROR", _no_summaries(missing).as_dict()
            self._outputs.release(registration.query_id)
        except (UnknownSource, *AWAITED) as missing:
            entry.state, entry.error = "PENDING", missing.as_dict()
        except TureenError as refused:
            entry.state, entry.error = "ERROR", refused.as_dict()
            self._outputs.release(registration.query_id)
        else:
            entry.error, entry.output = None, facts(to, columns)
            entry.query, entry.placement = query, placement
            entry.state = "PAUSED" if paused else "RUNNING"
            if not paused:
                changes.coming.append((registration, placement))
        if anew or before != (entry.state, entry.error):
            changes.told[registration.query_id] = entry

    def give_up(self, broken: Mapping[str, dict[str, Any]]) -> Changes:
        """Queries whose changes could not be told: they go."""
        changes = Changes()
        for name, error in broken.items():
            entry = self.entries.get(name)
            if entry is not None and entry.state == "RUNNING":
                entry.state, entry.error, entry.query, entry.placement = "ERROR", error, None, None
                self._outputs.release(name)
                changes.going.append(name)
                changes.told[name] = entry
        if changes:
            self.version += 1
        return changes


def _no_summaries(missing: UnknownSummary | None = None) -> NotSupported:
    """The refusal of a summary, and of a query with a preference, where it needs one."""
    return NotSupported(
        "a scale-out has no summaries and no queries with a preference: it has all the rows and no free time "
        "to measure",
        hint="register it with a broker, or leave WITH PREFERENCE out",
        line=None if missing is None else missing.line,
        column=None if missing is None else missing.column,
    )


def _registration(command: Command) -> Registration:
    """What a command asks for."""
    options = {
        key: str(value).lower() if isinstance(value, bool) else str(value)
        for key, value in command.get("options", {}).items()
    }
    return compact(
        command["name"], command.get("sql", ""), options=options, parameters=command.get("parameters")
    )


def as_record(
    query_id: str, entry: RegistryEntry | None, position: str | None, lost: Mapping[SourceName, TureenError]
) -> tuple[bytes, bytes | None]:
    """(key, value) of a record of ``.status``. lost: as :meth:`RegistryEntry.as_status` has it."""
    value = None if entry is None else orjson.dumps(entry.as_status(position, lost))
    return query_id.encode(), value
