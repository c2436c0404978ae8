"""The node: which stream and which query lives on which shard, and the way of a command to its shard.

A stream lives on the shard that its name chooses, a query on its stream's. Shards are started when they get
something to do, or when the journal or a store says that they have. Runs on the event loop; a shard is a
thread of its own, reached by futures.

Commands are idempotent: registering the text that stands, creating the stream that stands, and removing
what is not there are answered and change nothing.
"""

from __future__ import annotations

import asyncio
import secrets
import time
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence

from broker import logs
from broker.internal import Command, Outcome, State
from broker.settings import Settings
from broker.worker.entries import QueryEntry, SourceEntry
from broker.worker.parsed import Parsed
from broker.worker.shard import Shard
from broker.worker.shard_command import ShardCommand
from broker.worker.waiters import Waiters
from engine.language.query import CreateStream, Query, Statement
from engine.language.statements import parse
from engine.limits import Limits
from engine.model.source import Stream
from topics.admin import Admin
from tureen.errors import (
    LimitExceeded,
    NotSupported,
    QueryError,
    SourceConflict,
    TureenError,
    UnknownSource,
)

log = logs.get()


def limits(settings: Settings) -> Limits:
    """The engine's limits as the settings say."""
    return Limits(
        sql_bytes_max=settings.sql_bytes_max,
        nesting_max=settings.nesting_max,
        queries_max=settings.queries_max,
        snapshot_rows_max=settings.snapshot_rows_max,
    )


def shard_of(sources: Iterable[str], shards: int) -> int:
    """The shard that a set of sources chooses; the same on every machine and in every release."""
    return zlib.crc32("\0".join(sorted(sources)).encode()) % shards


class Node:
    """Shards, entries and outcomes of this worker."""

    def __init__(
        self,
        settings: Settings,
        kafka: dict[str, str],
        admin: Admin,
        prober: Admin,
        on_fenced: Callable[[int], None],
    ) -> None:
        self.settings = settings
        self.kafka = kafka
        self._admin = admin
        self._prober = prober
        self._on_fenced = on_fenced
        self.limits = limits(settings)
        self.instance = secrets.token_hex(8)
        self.reconciled = False
        self.started = False
        self.began_s = time.monotonic()
        self.control_seen_s = time.monotonic()
        self.shards: dict[int, Shard] = {}
        self.queries: dict[str, QueryEntry] = {}
        self.sources: dict[str, SourceEntry] = {}
        self.waiters = Waiters()
        self.reserved: dict[str, str] = {}
        self._parsed = Parsed({}, self.limits)
        self._order = asyncio.Lock()

    # --- life -------------------------------------------------------------------------------------

    async def start(self, numbers: Iterable[int]) -> None:
        """Bring back the shards that have a store or a journal; returns when all answer again."""
        for number in sorted(set(numbers)):
            self._start_shard(number)
        for shard in self.shards.values():
            await asyncio.wrap_future(shard.recovered)
            self._adopt(shard)
        self.started = True

    def control_seen(self) -> None:
        """The control process has called."""
        self.control_seen_s = time.monotonic()

    async def stop(self, timeout_s: float) -> bool:
        """Flush and end every shard; False when one still waits for Kafka: it has nothing to lose."""
        for shard in self.shards.values():
            shard.stop()
        deadline_s = time.monotonic() + timeout_s
        for shard in self.shards.values():
            await asyncio.to_thread(shard.join, max(0.0, deadline_s - time.monotonic()))
        return not any(shard.is_alive() for shard in self.shards.values())

    def _start_shard(self, number: int) -> Shard:
        shard = self.shards[number] = Shard(
            number, self.settings, self.kafka, self.limits, self._prober, self._on_fenced
        )
        shard.start()
        return shard

    def _adopt(self, shard: Shard) -> None:
        """Learn what a shard brought back from its store and its journal."""
        for name, (stream, sql) in shard.streams().items():
            self.sources[name] = SourceEntry(stream, sql, shard.number)
        self._catalogue_changed()
        for info in shard.view().queries():
            self.queries[info.query_id] = QueryEntry(
                info.sql, "RUNNING", None, shard.number, info.sources[0] if info.sources else None
            )

    async def _shard(self, number: int) -> Shard:
        shard = self.shards.get(number)
        if shard is None:
            shard = self._start_shard(number)
            await asyncio.wrap_future(shard.recovered)
        return shard

    def _catalogue_changed(self) -> None:
        streams = {name: entry.stream for name, entry in self.sources.items()}
        self._parsed = Parsed(streams, self.limits)

    # --- reading ----------------------------------------------------------------------------------

    @property
    def catalogue(self) -> Mapping[str, Stream]:
        """Every stream that stands; never changed in place."""
        return self._parsed.catalogue

    async def understand(self, sql: str) -> Statement:
        """As :meth:`parse`, in another thread where the text is new."""
        known = self._parsed.known(sql)
        return await asyncio.to_thread(self._parsed.statement, sql) if known is None else known

    def parse(self, sql: str) -> Statement:
        """A statement against what stands now. Raises QueryError, LimitExceeded."""
        return self._parsed.statement(sql)

    # --- commands ---------------------------------------------------------------------------------

    async def apply(self, commands: Sequence[Command]) -> list[Outcome]:
        """Carry out a batch in order; one outcome each."""
        async with self._order:
            outcomes: list[Outcome] = []
            start = 0
            while start < len(commands):
                kind = commands[start]["kind"]
                stop = start + 1
                if kind in ("create", "drop"):
                    outcomes.append(await self._source(commands[start]))
                else:
                    seen = {commands[start]["name"]}
                    while (
                        stop < len(commands)
                        and commands[stop]["kind"] not in ("create", "drop")
                        and commands[stop]["name"] not in seen
                    ):
                        seen.add(commands[stop]["name"])
                        stop += 1
                    outcomes += await self._queries(commands[start:stop])
                start = stop
            for command, outcome in zip(commands, outcomes, strict=True):
                if "origin" in command:
                    sources = command["kind"] in ("create", "drop")
                    topic = self.settings.names.sources if sources else self.settings.names.queries
                    partition, offset = command["origin"]
                    self.waiters.tell((topic, partition, offset), outcome)
            return outcomes

    async def reconcile(self, queries: Iterable[str], sources: Iterable[str]) -> None:
        """Everything was said again: what else stands here goes."""
        strangers = self.queries.keys() - set(queries)
        if strangers:
            log.info("queries_unknown_to_registry", removed=len(strangers))
            await self.apply([{"kind": "unregister", "name": name} for name in sorted(strangers)])
        for name in sorted(self.sources.keys() - set(sources)):
            log.info("stream_unknown_to_registry", stream=name)
            await self.apply([{"kind": "drop", "name": name}])
        self.reconciled = True

    async def prove(self) -> None:
        """Have every shard journal a step that changes nothing, so that a fenced one finds out."""
        await asyncio.gather(*(self._hand_over(number, [ShardCommand.prove()]) for number in self.shards))

    async def _queries(self, commands: Sequence[Command]) -> list[Outcome]:
        """Registrations and removals of distinct queries: they go to their shards side by side."""
        placed = await asyncio.to_thread(self._place, commands)
        outcomes: list[Outcome | None] = [None] * len(commands)
        leaving: dict[int, list[ShardCommand]] = {}
        coming: dict[int, list[tuple[int, ShardCommand]]] = {}
        entries: list[QueryEntry | None] = []
        standing = sum(entry.shard is not None for entry in self.queries.values())
        for place, (command, target) in enumerate(zip(commands, placed, strict=True)):
            name = command["name"]
            old = self.queries.get(name)
            entry: QueryEntry | None = None
            if command["kind"] == "unregister":
                outcomes[place] = {"state": "GONE"}
                if old is not None and old.shard is not None:
                    leaving.setdefault(old.shard, []).append(ShardCommand.unregister(name))
            elif isinstance(target, str):
                number = self.sources[target].shard
                if old is None or old.shard is None:
                    standing += 1
                if standing > self.settings.queries_max:
                    standing -= 1
                    refused = LimitExceeded("queries_max", self.settings.queries_max, standing + 1)
                    entry = QueryEntry(command.get("sql"), "ERROR", refused.as_dict())
                else:
                    if old is not None and old.shard is not None and old.shard != number:
                        leaving.setdefault(old.shard, []).append(ShardCommand.unregister(name))
                    entry = QueryEntry(
                        command["sql"], "RUNNING", None, number, target, command.get("options", {})
                    )
                    shard_command = ShardCommand.register(name, command["sql"], command.get("options", {}))
                    coming.setdefault(number, []).append((place, shard_command))
            else:
                state: State = "PENDING" if isinstance(target, UnknownSource) else "ERROR"
                error = command.get("error") or (target.as_dict() if target else None)
                entry = QueryEntry(command.get("sql"), state, error, None, None, command.get("options", {}))
                if old is not None and old.shard is not None:
                    leaving.setdefault(old.shard, []).append(ShardCommand.unregister(name))
            entries.append(entry)
        await asyncio.gather(
            *(self._hand_over(number, shard_commands) for number, shard_commands in leaving.items())
        )
        answers = await asyncio.gather(
            *(self._hand_over(number, [command for _, command in pairs]) for number, pairs in coming.items())
        )
        for pairs, results in zip(coming.values(), answers, strict=True):
            for (place, _), result in zip(pairs, results, strict=True):
                outcomes[place] = result
        told: list[Outcome] = []
        for command, entry, outcome in zip(commands, entries, outcomes, strict=True):
            if entry is None:
                self.queries.pop(command["name"], None)
            else:
                if outcome is not None and outcome["state"] == "ERROR":
                    entry.state, entry.error, entry.shard = "ERROR", outcome.get("error"), None
                self.queries[command["name"]] = entry
            told.append(outcome if outcome is not None else entry.outcome() if entry else {"state": "GONE"})
        return told

    async def _hand_over(self, number: int, commands: list[ShardCommand]) -> list[Outcome]:
        shard = await self._shard(number)
        return await asyncio.wrap_future(shard.submit(commands))

    def _place(self, commands: Sequence[Command]) -> list[str | TureenError | None]:
        """For each registration the stream it reads, or why it cannot stand. CPU only, any thread."""
        placed: list[str | TureenError | None] = []
        parsed = self._parsed
        for command in commands:
            if command["kind"] != "register":
                placed.append(None)
                continue
            try:
                statement = parsed.statement(command["sql"])
            except (QueryError, LimitExceeded) as refused:
                placed.append(refused)
                continue
            if isinstance(statement, Query):
                placed.append(str(statement.source))
            else:
                placed.append(
                    NotSupported(
                        "only a SELECT can stand as a query",
                        hint="CREATE STREAM and DROP STREAM go to POST /sources or the sources topic",
                    )
                )
        return placed

    async def _source(self, command: Command) -> Outcome:
        try:
            if command["kind"] == "drop":
                return await self._drop(command["name"])
            return await self._create(command["name"], command["sql"])
        except TureenError as refused:
            return {"state": "ERROR", "error": refused.as_dict()}

    async def _create(self, name: str, sql: str) -> Outcome:
        others = {known: stream for known, stream in self.catalogue.items() if known != name}
        statement = await asyncio.to_thread(parse, sql, others, self.limits)
        if not isinstance(statement, CreateStream):
            raise NotSupported("a stream is made by a CREATE STREAM statement")
        stream = statement.stream
        if stream.name != name:
            raise SourceConflict(
                f"the key is {name!r}, the statement makes {stream.name!r}", hint="use the same name in both"
            )
        own = (f"{self.settings.service_id}.", f"{self.settings.service_id}-control-", "__")
        if stream.topic.startswith(own):
            raise NotSupported(
                f"topic {stream.topic} belongs to the broker or to Kafka; reading what is written of it "
                "would never end",
                hint="copy what you want of it to another topic and make the stream over that",
            )
        old = self.sources.get(name)
        if old is not None:
            if old.stream == stream:
                return {"state": "RUNNING"}
            raise SourceConflict(
                f"a stream named {name!r} exists with another definition",
                hint=f"DROP STREAM {name} first, or choose another name",
            )
        number = shard_of([name], self.settings.shards)
        shard = await self._shard(number)
        await asyncio.to_thread(
            self._admin.ensure_source_topic,
            stream.topic,
            statement.partitions,
            arrival_time=not stream.event_time,
        )
        (outcome,) = await asyncio.wrap_future(shard.submit([ShardCommand.create(stream, sql)]))
        if outcome["state"] == "RUNNING":
            self.sources[name] = SourceEntry(stream, sql, number)
            self._catalogue_changed()
        return outcome

    async def _drop(self, name: str) -> Outcome:
        entry = self.sources.get(name)
        if entry is None:
            return {"state": "GONE"}
        readers = self.readers(name)
        if readers:
            raise SourceConflict(
                f"{readers:,} queries read the stream {name!r}", hint="unregister them first"
            )
        (outcome,) = await self._hand_over(entry.shard, [ShardCommand.drop(name)])
        if outcome["state"] == "GONE":
            del self.sources[name]
            self._catalogue_changed()
        return outcome

    def readers(self, name: str) -> int:
        """How many queries stand on a stream; O(queries)."""
        return sum(entry.source == name and entry.shard is not None for entry in self.queries.values())
