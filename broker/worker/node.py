"""The node: which stream and which query lives on which shard, and the way of a command to its shard.

A stream lives on the shard that its name chooses, a query on its stream's; one over several sources lives on
the shard that their set chooses, with those sources as guests (:mod:`broker.worker.placement`). Shards are
started when they get something to do, or when the journal or a store says that they have. Runs on the event
loop; a shard is a thread of its own, reached by futures.

Commands are idempotent: registering the text that stands, creating the stream that stands, and removing
what is not there are answered and change nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from broker import logs
from broker.archive.shelf import Shelf
from broker.internal import Outcome, State
from broker.settings import Settings
from broker.worker import options as query_options
from broker.worker.creation import Creation
from broker.worker.engines import Engines
from broker.worker.entries import QueryEntry, SourceEntry, ViewEntry, WaitingView
from broker.worker.listener import Listener
from broker.worker.outputs import destination_of, output_settings
from broker.worker.parsed import Parsed
from broker.worker.placement import Guests, shard_of
from broker.worker.questions import Found
from broker.worker.shard import Shard
from broker.worker.shard_command import ShardCommand
from broker.worker.waiters import Waiters
from engine.engine import Engine
from engine.language.query import Query, Statement
from engine.limits import Limits
from engine.model.source import Derived, Stream
from engine.operators.pipeline import schema_of
from topics.admin import Admin
from topics.control_records import Command
from topics.outputs import Outputs, Readiness, emits, facts, is_awaited
from topics.wording import Values, said
from tureen.errors import (
    BrokerUnavailable,
    ChangesBroken,
    LimitExceeded,
    NotSupported,
    OptionRefused,
    QueryError,
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
        changes_max=settings.changes_max,
        archive_rows_max=settings.archive_rows_max,
    )


class Node:
    """Shards, entries and outcomes of this worker."""

    def __init__(
        self,
        settings: Settings,
        kafka: dict[str, str],
        admin: Admin,
        prober: Admin,
        on_fenced: Callable[[int], None],
        engines: Engines,
        listener: Listener,
    ) -> None:
        self.shelf = Shelf(settings) if settings.archive else None
        """The archive, where one is configured."""
        self.settings = settings
        self.kafka = kafka
        self.admin = admin
        self._prober = prober
        self._listener = listener
        self._on_fenced = on_fenced
        self.limits = engines.limits
        self.engines = engines
        self.instance = secrets.token_hex(8)
        self.reconciled = False
        self.started = False
        self.began_s = time.monotonic()
        self.control_seen_s = time.monotonic()
        self.shards: dict[int, Shard] = {}
        self.queries: dict[str, QueryEntry] = {}
        self.sources: dict[str, SourceEntry] = {}
        self.views: dict[str, ViewEntry] = {}
        self.waiting: dict[str, WaitingView] = {}
        self.guests = Guests()
        self._arriving: dict[tuple[int, str], Mapping[int, int]] = {}
        self.outputs = Outputs(output_settings(settings), prober)
        self._broken: dict[str, ChangesBroken] = {}
        self._unheard: set[str] = set()
        self.waiters = Waiters()
        self.reserved: dict[str, str] = {}
        self._parsed = Parsed({}, self.limits, engines.functions)
        self._creation = Creation(self)
        self._order = asyncio.Lock()
        self._back = asyncio.Event()

    # --- life -------------------------------------------------------------------------------------

    async def start(self, numbers: Iterable[int]) -> None:
        """Bring back the shards that have a store or a journal; returns when all answer again."""
        for number in sorted(set(numbers)):
            self._start_shard(number)
        for shard in self.shards.values():
            await asyncio.wrap_future(shard.recovered)
            self._adopt(shard)
        self.catalogue_changed()
        self._creation.adopt([(one, n) for n, shard in self.shards.items() for one in shard.derived()])
        self.catalogue_changed()
        await asyncio.to_thread(self._adopt_outputs)
        self.started = True
        self._back.set()

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
        if self.shelf is not None:
            self.shelf.close()
        return not any(shard.is_alive() for shard in self.shards.values())

    def _start_shard(self, number: int) -> Shard:
        shard = self.shards[number] = Shard(
            number,
            self.settings,
            self.kafka,
            self.engines,
            self._prober,
            self.outputs,
            self._listener,
            self._on_fenced,
            self.shelf,
        )
        shard.start()
        return shard

    def _adopt(self, shard: Shard) -> None:
        """Learn what a shard brought back from its store and its journal."""
        infos = shard.view().queries()
        for name, (stream, sql) in shard.streams().items():
            if shard.number == self.home_of([name]):
                self.sources[name] = SourceEntry(stream, sql, shard.number)
            else:
                self.guests.found(shard.number, name, (one.query_id for one in infos if name in one.sources))
        for info in infos:
            self.queries[info.query_id] = QueryEntry(
                info.sql,
                "PAUSED" if info.paused else "RUNNING",
                None,
                shard.number,
                tuple(info.sources),
                parameters=list(held) if isinstance(held := info.parameters, tuple) else held,
            )

    def _adopt_outputs(self) -> None:
        """Learn where the queries emit that shards brought back: those that come later have to agree."""
        for name, entry in self.queries.items():
            if entry.sql is None or not emits(entry.sql):
                continue
            with contextlib.suppress(TureenError):  # one that this version refuses is said again, and told so
                query = self.parse(entry.sql, entry.parameters)
                assert isinstance(query, Query)
                to = destination_of(self.settings.names, query, self._streams())
                if to is not None:
                    entry.output = facts(to, schema_of(query.columns))
                    self.outputs.agree(name, to)

    def _streams(self) -> dict[str, Stream]:
        return {name: entry.stream for name, entry in self.sources.items()}

    async def _shard(self, number: int) -> Shard:
        shard = self.shards.get(number)
        if shard is None:
            shard = self._start_shard(number)
            await asyncio.wrap_future(shard.recovered)
        return shard

    def catalogue_changed(self) -> None:
        """A stream or a view has come or gone: texts may mean something else."""
        views = {name: entry.derived for name, entry in self.views.items()}
        self._parsed = Parsed({**self._streams(), **views}, self.limits, self.engines.functions)

    # --- reading ----------------------------------------------------------------------------------

    @property
    def catalogue(self) -> Mapping[str, Stream | Derived]:
        """Every stream and view that stands; never changed in place."""
        return self._parsed.catalogue

    async def understand(self, sql: str, parameters: Values | None = None) -> Statement:
        """As :meth:`parse`, in another thread, since a text of a new kind may take a millisecond."""
        return await asyncio.to_thread(self._parsed.statement, sql, parameters)

    def parse(self, sql: str, parameters: Values | None = None) -> Statement:
        """A statement against what stands now. Raises QueryError, LimitExceeded."""
        return self._parsed.statement(sql, parameters)

    async def ask(self, number: int, work: Callable[[Engine], Found]) -> Found:
        """What ``work`` finds in a shard's engine between two steps. Raises its errors, BrokerUnavailable."""
        future = asyncio.wrap_future(self.shards[number].ask(work))
        try:
            return await asyncio.wait_for(future, self.settings.outcome_wait_ms / 1_000)
        except TimeoutError:
            raise BrokerUnavailable(
                f"shard {number} has not answered in time", hint="/readycheck tells what it waits for"
            ) from None

    # --- commands ---------------------------------------------------------------------------------

    async def apply(self, commands: Sequence[Command]) -> list[Outcome]:
        """Carry out a batch in order; one outcome each. Waits until what stood before is back."""
        await self._back.wait()
        async with self._order:
            outcomes: list[Outcome] = []
            start = 0
            while start < len(commands):
                kind = commands[start]["kind"]
                stop = start + 1
                if kind in ("create", "drop"):
                    outcomes.append(await self._creation.apply(commands[start]))
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
        known = set(sources)
        # What was made later reads what was made before, so it goes first.
        for name in [*reversed(self.views), *reversed(self.sources), *self.waiting]:
            if name not in known:
                log.info("stream_unknown_to_registry", stream=name)
                await self.apply([{"kind": "drop", "name": name}])
        self.reconciled = True

    async def prove(self) -> None:
        """Have every shard journal a step that changes nothing, so that a fenced one finds out."""
        await asyncio.gather(*(self.hand_over(number, [ShardCommand.prove()]) for number in self.shards))

    async def _queries(self, commands: Sequence[Command]) -> list[Outcome]:
        """Registrations and removals of distinct queries: they go to their shards side by side."""
        placed, told_of = await asyncio.to_thread(self._place, commands)
        outcomes: list[Outcome | None] = [None] * len(commands)
        leaving: dict[int, list[ShardCommand]] = {}
        coming: dict[int, list[tuple[int | None, ShardCommand]]] = {}
        entries: list[QueryEntry | None] = []
        standing = sum(entry.shard is not None for entry in self.queries.values())
        for place, (command, target) in enumerate(zip(commands, placed, strict=True)):
            name = command["name"]
            old = self.queries.get(name)
            entry: QueryEntry | None = None
            if command["kind"] == "unregister":
                outcomes[place] = {"state": "GONE"}
                if old is not None and old.shard is not None:
                    self._leave(name, old.shard, leaving)
            elif isinstance(target, Query):
                number = self.home_of(target.sources)
                if old is None or old.shard is None:
                    standing += 1
                if standing > self.settings.queries_max:
                    standing -= 1
                    refused = LimitExceeded("queries_max", self.settings.queries_max, standing + 1)
                    entry = QueryEntry(
                        command.get("sql"), "ERROR", refused.as_dict(), parameters=command.get("parameters")
                    )
                else:
                    if old is not None and old.shard is not None and old.shard != number:
                        self._leave(name, old.shard, leaving)
                    options = command.get("options", {})
                    stands: State = "PAUSED" if query_options.is_paused(options) else "RUNNING"
                    sql, parameters = command["sql"], command.get("parameters")
                    if parameters is not None:
                        sql = sys.intern(sql)
                    entry = QueryEntry(
                        sql, stands, None, number, target.sources, options, target.uses, parameters
                    )
                    entry.output = told_of.get(name)
                    shard_command = ShardCommand.register(name, sql, options, parameters)
                    pairs = coming.setdefault(number, [])
                    pairs += ((None, guest) for guest in self.invited(name, number, target))
                    pairs.append((place, shard_command))
            else:
                waits = isinstance(target, UnknownSource) or is_awaited(target)
                state: State = "PENDING" if waits else "ERROR"
                error = command.get("error") or (target.as_dict() if target else None)
                entry = QueryEntry(
                    command.get("sql"),
                    state,
                    error,
                    options=command.get("options", {}),
                    parameters=command.get("parameters"),
                )
                if old is not None and old.shard is not None:
                    self._leave(name, old.shard, leaving)
            entries.append(entry)
        await asyncio.gather(
            *(self.hand_over(number, shard_commands) for number, shard_commands in leaving.items())
        )
        answers = await asyncio.gather(
            *(self.hand_over(number, [command for _, command in pairs]) for number, pairs in coming.items())
        )
        for pairs, results in zip(coming.values(), answers, strict=True):
            for (place_, _), result in zip(pairs, results, strict=True):
                if place_ is not None:
                    outcomes[place_] = result
        told: list[Outcome] = []
        for command, entry, outcome in zip(commands, entries, outcomes, strict=True):
            if entry is None:
                self.queries.pop(command["name"], None)
            else:
                if outcome is not None and outcome["state"] == "ERROR":
                    if entry.shard is not None:
                        self.guests.release(command["name"], entry.shard)
                    entry.state, entry.error, entry.shard = "ERROR", outcome.get("error"), None
                    self.outputs.release(command["name"])
                elif outcome is not None:
                    outcome = {**outcome, "state": entry.state, "output": entry.output}
                self.queries[command["name"]] = entry
            told.append(outcome if outcome is not None else entry.outcome() if entry else {"state": "GONE"})
        await self.see_off()
        return told

    def _leave(self, name: str, number: int, leaving: dict[int, list[ShardCommand]]) -> None:
        leaving.setdefault(number, []).append(ShardCommand.unregister(name))
        self.guests.release(name, number)

    def invited(self, who: str, number: int, query: Query) -> list[ShardCommand]:
        """What a shard is to be told before a query, or a view over it, comes there: its guests."""
        names: list[str] = [name for name in query.sources if self.sources[name].shard != number]
        views = (self.views[name] for name in query.uses)
        # A view names fewer views than one that names it.
        names += (
            view.derived.name for view in sorted(views, key=lambda one: len(one.uses)) if view.shard != number
        )
        if not names:
            return []
        commands = []
        for name in self.guests.need(who, number, names):
            if name in self.views:
                commands.append(ShardCommand.create_derived(self.views[name].derived))
                continue
            entry = self.sources[name]
            at_home = self.shards[entry.shard].view().sources()
            self._arriving[number, name] = next((one.next_offsets for one in at_home if one.name == name), {})
            commands.append(ShardCommand.create(entry.stream, entry.sql))
        return commands

    def is_arriving(self, number: int) -> bool:
        """Whether a guest of a shard has yet to read what its home had read when the guest came."""
        if not self._arriving:
            return False
        read = {info.name: info.next_offsets for info in self.shards[number].view().sources()}
        for shard, name in [key for key in self._arriving if key[0] == number]:
            offsets = read.get(name)
            wanted = self._arriving[shard, name]
            if offsets is None or all(offsets.get(part, 0) >= offset for part, offset in wanted.items()):
                del self._arriving[shard, name]
        return any(shard == number for shard, _ in self._arriving)

    async def see_off(self) -> None:
        """Drop guests that nobody needs any more."""
        for number, names in list(self.guests.unneeded()):
            outcomes = await self.hand_over(number, [ShardCommand.drop(name) for name in names])
            gone = [name for name, one in zip(names, outcomes, strict=True) if one["state"] == "GONE"]
            self.guests.gone(number, gone)

    async def hand_over(self, number: int, commands: list[ShardCommand]) -> list[Outcome]:
        """Have a shard carry out commands, in order; one outcome each."""
        shard = await self._shard(number)
        return await asyncio.wrap_future(shard.submit(commands))

    def changed(self) -> list[str]:
        """Queries whose state is another than the last outcome said, until they are said again."""
        for shard in self.shards.values():
            for name, broken in shard.broken.items():
                entry = self.queries.get(name)
                if name not in self._broken and entry is not None and entry.shard == shard.number:
                    self._broken[name] = broken
                    self._unheard.add(name)
                    entry.state, entry.error, entry.shard = "ERROR", broken.as_dict(), None
                    self.guests.release(name, shard.number)
                    self.outputs.release(name)
        return sorted(self._unheard)

    def _place(
        self, commands: Sequence[Command]
    ) -> tuple[list[Query | TureenError | None], dict[str, dict[str, Any]]]:
        """For each registration what it means, or why it cannot stand; and where those emit that do.

        May ask Kafka and the schema registry. Any thread, one at a time.
        """
        placed = self._understood(commands)
        told: dict[str, dict[str, Any]] = {}
        ready = Readiness(self.outputs)
        for place, (command, target) in enumerate(zip(commands, placed, strict=True)):
            self.outputs.release(command["name"])
            if not isinstance(target, Query) or target.emit is None:
                continue
            try:
                to = destination_of(self.settings.names, target, self._streams())
                assert to is not None
                columns = schema_of(target.columns)
                self.outputs.agree(command["name"], to)
                if not self._stands(command):
                    ready.check(to, columns)
                told[command["name"]] = facts(to, columns)
            except TureenError as refused:
                self.outputs.release(command["name"])
                placed[place] = refused
        return placed, told

    def _stands(self, command: Command) -> bool:
        """Whether it says what stands: its shard then waits for its output, where that is away."""
        old = self.queries.get(command["name"])
        return (
            old is not None
            and old.shard is not None
            and old.said == said(command["sql"], command.get("parameters"))
        )

    def _understood(self, commands: Sequence[Command]) -> list[Query | TureenError | None]:
        """For each registration what it means, or why it means nothing. CPU only."""
        placed: list[Query | TureenError | None] = []
        parsed = self._parsed
        for command in commands:
            broken = None
            if command["name"] in self._broken:
                self._unheard.discard(command["name"])
                if "origin" in command or command["kind"] == "unregister":
                    del self._broken[command["name"]]
                else:
                    broken = self._broken[command["name"]]
            if command["kind"] != "register" or broken is not None:
                placed.append(broken)
                continue
            try:
                query_options.check(command.get("options", {}))
                statement = parsed.statement(command["sql"], command.get("parameters"))
            except (OptionRefused, QueryError, LimitExceeded) as refused:
                placed.append(refused)
                continue
            if isinstance(statement, Query):
                placed.append(statement)
            else:
                placed.append(
                    NotSupported(
                        "only a SELECT can stand as a query",
                        hint="CREATE STREAM and DROP STREAM go to POST /sources or the sources topic",
                    )
                )
        return placed

    def home_of(self, sources: Iterable[str]) -> int:
        """The shard that a stream is for, or what reads just these sources."""
        return shard_of(sources, self.settings.shards)

    def readers(self, name: str) -> int:
        """How many queries stand on a source or a view; O(queries)."""
        return sum(
            entry.shard is not None and (name in entry.sources or name in entry.uses)
            for entry in self.queries.values()
        )
