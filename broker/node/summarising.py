"""CREATE, ALTER and DROP of summaries, on their way to the shards.

A summary stands on the home of its stream, and has replicas on shards where queries that use it read a
replica of the stream. A summary whose stream is missing waits: it stands as soon as the stream does, if the
registry says it again. ALTER SUMMARY is said as the statement that would create what it makes.

Dropped while queries use it, it goes all the same, since the registry has it no more: these queries are
PENDING, find nothing more, and keep the answers that they have, until a summary that they can use comes.
"""

from __future__ import annotations

import asyncio

from broker.base.entries import SummaryEntry, WaitingView
from broker.base.internal import Outcome
from broker.memory.levels import Level, Memory
from broker.node.directory import Directory
from broker.node.hosting import Hosting
from broker.node.shards import Shards
from broker.shard.shard_command import ShardCommand
from engine.language.query import CreateSummary
from engine.queries.definitions import Create, Decision, Unbound, decide
from topics.control_records import Command
from tureen.errors import NotSupported, TureenError, UnknownSource, UnknownSummary
from tureen.protocol import SUMMARY_KEY


class Summarising:
    """Carries out commands of the kinds create and drop that are about summaries, one at a time. Used on the
    event loop.
    """

    def __init__(self, directory: Directory, shards: Shards, hosting: Hosting, memory: Memory) -> None:
        self._directory = directory
        self._shards = shards
        self._hosting = hosting
        self._memory = memory

    async def apply(self, command: Command) -> Outcome:
        """Idempotent: what stands already as it is told is answered and changes nothing. Raises its refusal,
        which is also noted where the summary waits.
        """
        name = command["name"].removeprefix(SUMMARY_KEY)
        if command["kind"] == "drop":
            return await self._drop(name)
        try:
            return await self._create(name, command["sql"], asked="origin" in command)
        except TureenError as refused:
            waiting = self._directory.waiting_summaries.get(name)
            if waiting is not None:
                waiting.error = refused.as_dict()
            raise

    async def _create(self, name: str, sql: str, *, asked: bool) -> Outcome:
        """asked: by a user; the registry says again what stood before."""
        there = self._directory
        try:
            statement = await there.understand(sql)
        except UnknownSource as missing:
            decide(name, Unbound(missing, of_summary=True), there.definitions)
            there.waiting_summaries[name] = WaitingView(sql, missing.as_dict())
            return {"state": "PENDING", "error": missing.as_dict()}
        if not isinstance(statement, CreateSummary):
            raise NotSupported("write CREATE SUMMARY", hint="keys that begin so are those of summaries")
        definition = statement.definition
        decision = decide(name, Create(definition, replaces=True), there.definitions)
        if decision is Decision.SAME:
            return {"state": "RUNNING"}
        if asked and decision is Decision.CREATE:
            short = self._memory.refuses(Level.REFUSE, "no summary is created")
            if short is not None:
                raise short
        if decision is Decision.CREATE:
            await asyncio.to_thread(there.refuse_if_unclear, definition)
        home = there.sources[definition.stream].shard
        made = ShardCommand.create_summary(definition, sql)
        (outcome,) = await self._shards.hand_over(home, [made])
        for number in self._hosting.shards_with(name):
            await self._shards.hand_over(number, [made])
        if outcome["state"] == "RUNNING":
            there.waiting_summaries.pop(name, None)
            there.summaries[name] = SummaryEntry(definition, sql, home)
            there.catalogue_changed()
        return outcome

    async def _drop(self, name: str) -> Outcome:
        there = self._directory
        there.waiting_summaries.pop(name, None)
        entry = there.summaries.get(name)
        if entry is None:
            return {"state": "GONE"}
        dropped = ShardCommand.drop_summary(name, forced=True)
        (outcome,) = await self._shards.hand_over(entry.shard, [dropped])
        if outcome["state"] != "GONE":
            return outcome
        for number in self._hosting.shards_with(name):
            await self._shards.hand_over(number, [dropped])
            self._hosting.summary_gone(number, name)
        del there.summaries[name]
        there.catalogue_changed()
        missing = UnknownSummary(name, f"the summary {name!r} was dropped", hint="make it again")
        for query_id in there.users(name):
            query = there.queries[query_id]
            query.state, query.error = "PENDING", missing.as_dict()
            there.unheard.add(query_id)
        return outcome
