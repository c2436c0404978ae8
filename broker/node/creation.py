"""CREATE and DROP of streams, tables, views and summaries, on their way to a shard.

A stream or a table lives on the shard that its name chooses. A view, or a stream derived from a query, lives
where a query over the same sources would, through however many views. A view whose stream is missing waits:
it stands as soon as the stream does, if the registry says it again.
"""

from __future__ import annotations

import asyncio

from broker.base.entries import SourceEntry, ViewEntry, WaitingView
from broker.base.internal import Outcome
from broker.base.placement import of_view
from broker.memory.levels import Level, Memory
from broker.node.directory import Directory
from broker.node.hosting import Hosting
from broker.node.shards import Shards
from broker.node.summarising import Summarising
from broker.shard.shard_command import ShardCommand
from engine.language.query import CreateFromQuery, CreateFromTopic, CreateStream
from engine.language.statements import parse
from engine.model.constraint import referred_to
from engine.queries.definitions import Decision, Drop, Unbound, create_of, decide
from topics.admin import Admin, refuse_own
from topics.control_records import Command
from tureen.errors import NotSupported, SourceConflict, TureenError, UnknownSource
from tureen.protocol import SUMMARY_KEY, TopicNames


class Creation:
    """Carries out commands of the kinds create and drop, one at a time. Used on the event loop."""

    def __init__(
        self,
        names: TopicNames,
        admin: Admin,
        directory: Directory,
        shards: Shards,
        hosting: Hosting,
        memory: Memory,
    ) -> None:
        self._names = names
        self._admin = admin
        self._directory = directory
        self._shards = shards
        self._hosting = hosting
        self._memory = memory
        self._summarising = Summarising(directory, shards, hosting, memory)

    async def apply(self, command: Command) -> Outcome:
        """Idempotent: what stands already as it is told is answered and changes nothing."""
        try:
            if command["name"].startswith(SUMMARY_KEY):
                return await self._summarising.apply(command)
            if command["kind"] == "drop":
                return await self._drop(command["name"])
            return await self._create(command["name"], command["sql"], asked="origin" in command)
        except TureenError as refused:
            waiting = self._directory.waiting.get(command["name"])
            if waiting is not None:
                waiting.error = refused.as_dict()
            return {"state": "ERROR", "error": refused.as_dict()}

    async def _create(self, name: str, sql: str, *, asked: bool) -> Outcome:
        """asked: by a user; the registry says again what stood before."""
        there = self._directory
        others = {known: source for known, source in there.catalogue.items() if known != name}
        try:
            engines = there.engines
            statement = await asyncio.to_thread(
                parse, sql, others, engines.limits, functions=engines.functions
            )
        except UnknownSource as missing:
            decide(name, Unbound(missing), there.definitions)
            there.waiting[name] = WaitingView(sql, missing.as_dict())
            return {"state": "PENDING", "error": missing.as_dict()}
        if isinstance(statement, CreateFromTopic):
            raise NotSupported(
                "columns are inferred from a topic's records before a statement is published",
                hint=f"publish what `tureen infer {statement.topic}` prints, or ask for it by HTTP",
            )
        if not isinstance(statement, CreateStream | CreateFromQuery):
            raise NotSupported("write CREATE STREAM, CREATE TABLE or CREATE VIEW")
        if isinstance(statement, CreateFromQuery) and statement.materialized is not None:
            raise NotSupported(
                "CREATE MATERIALIZED VIEW is a view and a query, which have topics of their own",
                hint=f"publish CREATE VIEW {name} AS SELECT ... here, and SELECT * FROM {name} as a query",
            )
        if decide(name, create_of(statement, there.catalogue), there.definitions) is Decision.SAME:
            return {"state": "RUNNING"}
        if asked and isinstance(statement, CreateStream):
            short = self._memory.refuses(Level.REFUSE, f"no {statement.stream.kind} is created")
            if short is not None:
                raise short
        outcome = await (
            self._create_stream(statement)
            if isinstance(statement, CreateStream)
            else self._create_view(statement)
        )
        if outcome["state"] == "RUNNING":
            there.waiting.pop(name, None)
            there.catalogue_changed()
        return outcome

    async def _create_stream(self, statement: CreateStream) -> Outcome:
        stream = statement.stream
        refuse_own(self._names, stream.topic)
        if not statement.create_topic:
            await asyncio.to_thread(self._admin.partitions, stream.topic)
        await asyncio.to_thread(
            self._admin.ensure_source_topic,
            stream.topic,
            statement.partitions,
            arrival_time=not stream.event_time,
            table=stream.is_table,
        )
        number = self._directory.home_of([stream.name])
        replicas = self._hosting.required(of_view(stream.name), number, referred_to(stream.constraints))
        created = ShardCommand.create(stream, statement.sql)
        *_, outcome = await self._shards.hand_over(number, [*replicas, created])
        if outcome["state"] == "RUNNING":
            self._directory.sources[stream.name] = SourceEntry(stream, statement.sql, number)
        elif stream.name not in self._directory.sources:
            self._hosting.release(of_view(stream.name), number)
        await self._hosting.drop_unneeded()
        return outcome

    async def _create_view(self, statement: CreateFromQuery) -> Outcome:
        derived, query = statement.derived, statement.query
        number = self._directory.home_of(query.sources)
        there = self._directory.views.get(derived.name)
        if there is not None and there.shard != number:
            raise SourceConflict(
                f"{derived.name} selects from another stream at present",
                hint=f"DROP VIEW {derived.name} first",
            )
        replicas = self._hosting.required(of_view(derived.name), number, query.sources, query.uses)
        created = ShardCommand.create_derived(derived)
        *_, outcome = await self._shards.hand_over(number, [*replicas, created])
        if outcome["state"] == "RUNNING":
            self._directory.views[derived.name] = ViewEntry(derived, number, query.sources, query.uses)
        elif there is None:
            self._hosting.release(of_view(derived.name), number)
        await self._hosting.drop_unneeded()
        return outcome

    async def _drop(self, name: str) -> Outcome:
        there = self._directory
        there.waiting.pop(name, None)
        if decide(name, Drop(), there.definitions) is Decision.ABSENT:
            return {"state": "GONE"}
        entry = there.sources.get(name) or there.views[name]
        (outcome,) = await self._shards.hand_over(entry.shard, [ShardCommand.drop(name)])
        if outcome["state"] == "GONE":
            there.sources.pop(name, None)
            there.views.pop(name, None)
            there.catalogue_changed()
            self._hosting.release(of_view(name), entry.shard)
            await self._hosting.drop_unneeded()
        return outcome
