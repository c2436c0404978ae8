"""Registrations and removals of queries, on their way to their shards.

A query stands on the shard that its sources choose; those that live elsewhere have replicas there. One that
moves leaves its old shard before it comes to the new one; beyond that shards work side by side. Of many
commands some hundreds at a time are handed over, while a shard carries out those before, so that it need not
wait.

Used on the event loop, one batch at a time; what registrations mean is found in another thread.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from typing import Any

from broker.base import options
from broker.base.entries import QueryEntry
from broker.base.internal import Outcome, State
from broker.memory.levels import Level, Memory
from broker.node.admission import Admission, Admitted
from broker.node.directory import Directory
from broker.node.hosting import Hosting
from broker.node.shards import Shards
from broker.shard.inbox import COMMANDS_AT_ONCE
from broker.shard.shard_command import ShardCommand
from topics.control_records import Command
from topics.outputs import Outputs, emits, is_awaited
from topics.wording import said
from tureen.errors import (
    BeingRegistered,
    BeingRemoved,
    LimitExceeded,
    NameInUse,
    PreparationTooLong,
    TureenError,
    UnknownQuery,
    UnknownSource,
    UnknownSummary,
)

PARTS_AT_WORK = 2
"""Parts of a batch that wait for their shards at once, while the next is looked at."""


@dataclass(slots=True)
class _Change:
    """What a command makes of a query.

    entry: None where it goes. before: what runs until now on the same shard, and remains where the text in
    ``entry`` is refused. outcome: its shard's, once there is one. leaves: the shard that it has yet to leave.
    """

    name: str
    entry: QueryEntry | None
    before: QueryEntry | None = None
    outcome: Outcome | None = None
    leaves: int | None = None


@dataclass(slots=True)
class _Moves:
    """What a batch does to shards. standing: how many queries stand with those that have come so far.

    coming: with the change that a command carries out, None where it brings a replica.
    """

    standing: int
    leaving: dict[int, list[ShardCommand]] = field(default_factory=dict)
    coming: dict[int, list[tuple[_Change | None, ShardCommand]]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Begun:
    """Commands that were handed over. changes: one each. at_work: what shards do for them, with the change
    that each of their commands carries out. standing: how many queries stand with them.
    """

    changes: list[_Change]
    at_work: Sequence[tuple[list[_Change | None], asyncio.Future[list[Outcome]]]]
    standing: int


class Registrations:
    """Carries out commands of the kinds register, refuse and unregister."""

    def __init__(
        self,
        queries_max: int,
        directory: Directory,
        shards: Shards,
        hosting: Hosting,
        outputs: Outputs,
        admission: Admission,
        memory: Memory,
    ) -> None:
        self._queries_max = queries_max
        self._directory = directory
        self._shards = shards
        self._hosting = hosting
        self._outputs = outputs
        self._admission = admission
        self._memory = memory
        self._leaving: dict[str, bool] = {}
        """Queries that shards have yet to let go of, and whether others of their ids are to come then."""
        self._partings: set[asyncio.Task[None]] = set()

    async def apply(self, commands: Sequence[Command]) -> list[Outcome]:
        """Carry out commands of distinct queries; one outcome each. Idempotent."""
        repeated = [self._repeated(command) for command in commands]
        if any(repeated):
            others = [command for command, outcome in zip(commands, repeated, strict=True) if outcome is None]
            rest = iter(await self.apply(others) if others else ())
            return [next(rest) if outcome is None else outcome for outcome in repeated]
        standing = self._directory.standing()
        begun: deque[_Begun] = deque()
        outcomes: list[Outcome] = []
        for first in range(0, len(commands), COMMANDS_AT_ONCE):
            part = commands[first : first + COMMANDS_AT_ONCE]
            begun.append(await self._begin(part, standing))
            standing = begun[-1].standing
            if len(begun) > PARTS_AT_WORK:
                outcomes += await self._finish(begun.popleft())
        while begun:
            outcomes += await self._finish(begun.popleft())
        await self._hosting.drop_unneeded()
        return outcomes

    async def _begin(self, commands: Sequence[Command], standing: int) -> _Begun:
        """Find what commands mean and hand them over. standing: how many queries stand, or are to."""
        bound = await asyncio.to_thread(self._admission.bind_all, commands)
        self._directory.unheard.difference_update(command["name"] for command in commands)
        moves = _Moves(standing)
        changes = [
            self._decided(command, found, moves) for command, found in zip(commands, bound, strict=True)
        ]
        left = await asyncio.gather(
            *(self._shards.hand_over(number, leaving) for number, leaving in moves.leaving.items())
        )
        self._hold_back(changes, moves, left)
        self._announce(moves)
        at_work = [
            (
                [change for change, _ in pairs],
                asyncio.ensure_future(self._shards.hand_over(number, [command for _, command in pairs])),
            )
            for number, pairs in moves.coming.items()
        ]
        await asyncio.sleep(0)  # they are in their shards' inboxes
        return _Begun(changes, at_work, moves.standing)

    def _hold_back(self, changes: Sequence[_Change], moves: _Moves, left: Sequence[list[Outcome]]) -> None:
        """What a shard has yet to let go of does not come elsewhere before. left: what became of the removals
        of each shard.
        """
        held = {
            command.name: (number, outcome)
            for (number, leaving), outcomes in zip(moves.leaving.items(), left, strict=True)
            for command, outcome in zip(leaving, outcomes, strict=True)
            if outcome["state"] == "PENDING"
        }
        if not held:
            return
        for change in changes:
            if change.name in held:
                change.leaves, change.outcome = held[change.name]
        for number, pairs in moves.coming.items():
            waiting = {change.name for change, _ in pairs if change is not None and change.leaves is not None}
            for name in waiting:
                self._hosting.release(name, number)
            pairs[:] = [pair for pair in pairs if pair[0] is None or pair[0].name not in waiting]

    def _announce(self, moves: _Moves) -> None:
        """List queries that do not stand yet before their shards get them: their first work may take long, or
        end the worker.
        """
        for number, pairs in moves.coming.items():
            on_its_way = BeingRegistered(number).as_dict()
            for change, _ in pairs:
                if change is None or change.entry is None:
                    continue
                old, new = self._directory.queries.get(change.name), change.entry
                if old is not None and (old.shard is not None or old.is_tried_on(number, new)):
                    continue
                self._directory.queries[change.name] = replace(
                    new, state="PENDING", error=on_its_way, shard=None, tried=number
                )

    async def _finish(self, begun: _Begun) -> list[Outcome]:
        """Wait for commands that were handed over, and note what became of them."""
        for changes, at_work in begun.at_work:
            for change, outcome in zip(changes, await at_work, strict=True):
                if change is not None:
                    change.outcome = outcome
        return [await self._settled(change) for change in begun.changes]

    def _repeated(self, command: Command) -> Outcome | None:
        """The outcome of what is said again, and stands as it is said; None of everything else, and of
        queries that emit. O(1): most of what the registry says at a start is this.
        """
        entry = self._directory.queries.get(command["name"])
        if command["kind"] != "register" or "origin" in command or entry is None or entry.sql is None:
            return None
        if entry.shard is None or self._shards[entry.shard].state != "live" or emits(entry.sql):
            return None
        if (
            entry.state == "PENDING"
            or entry.waits
            or not self._directory.summaries.keys() >= set(entry.summaries)
        ):
            return None
        given = command.get("options", {})
        if entry.said != said(command["sql"], command.get("parameters")):
            return None
        if given or entry.options:
            if options.as_text(given) != options.as_text(entry.options):
                return None
            entry.options, entry.error = given, options.pause_reason(given)
            self._directory.queries.note(command["name"])
            self._note_paused(command["name"], entry)
        return entry.outcome()

    def _note_paused(self, name: str, entry: QueryEntry | None) -> None:
        """Know whether the broker itself has paused a query. entry: None where it goes."""
        if entry is None or entry.state != "PAUSED" or entry.error is None:
            self._directory.paused_by_broker.discard(name)
        else:
            self._directory.paused_by_broker.add(name)

    def _decided(self, command: Command, bound: Admitted | TureenError | None, moves: _Moves) -> _Change:
        """What a command makes of its query, and what shards are to do for that."""
        names, known = self._directory.queries.names, self._directory.queries.get(command["name"])
        if command["kind"] == "unregister":
            self._leave(command["name"], moves)
            if known is not None:
                names.release(known.query_name, command["name"])
            return _Change(command["name"], None)
        wanted = options.query_name(command.get("options") or options.NONE)
        try:
            names.require(wanted, command["name"])
        except NameInUse as taken:
            bound = taken
            self._outputs.release(command["name"])
            if known is not None and known.shard is not None:
                refused: Outcome = {"state": "ERROR", "error": taken.as_dict(), "position": None}
                return _Change(command["name"], known, known, refused)
        names.take(wanted, command["name"])
        if isinstance(bound, Admitted):
            return self._coming(command, bound, moves)
        waits = isinstance(bound, UnknownSource) or is_awaited(bound)
        error = command.get("error") or (bound.as_dict() if bound else None)
        entry = _not_standing(command, "PENDING" if waits else "ERROR", error)
        if isinstance(bound, UnknownSummary) and (kept := self._kept(command)) is not None:
            return _Change(command["name"], replace(kept, state="PENDING", error=error))
        before = self._altered(command)
        if before is not None and not waits and command["kind"] == "register":
            refused = {"state": "ERROR", "error": error, "position": None}
            return _Change(command["name"], entry, before, refused)
        self._leave(command["name"], moves)
        return _Change(command["name"], entry)

    def _kept(self, command: Command) -> QueryEntry | None:
        """A query of which a summary was dropped: it stands on its shard as it is, with the answer that it
        has, and what is said again of it. None: it does not stand, or gets another text.
        """
        old = self._directory.queries.get(command["name"])
        if old is None or old.shard is None or not old.summaries or self._altered(command) is not None:
            return None
        return replace(old, options=command.get("options") or options.NONE)

    def _altered(self, command: Command) -> QueryEntry | None:
        """The running query that a registration gives another text."""
        old = self._directory.queries.get(command["name"])
        if old is None or old.shard is None or "sql" not in command:
            return None
        return None if old.said == said(command["sql"], command.get("parameters")) else old

    def _coming(self, command: Command, admitted: Admitted, moves: _Moves) -> _Change:
        name, query = command["name"], admitted.template
        old = self._directory.queries.get(name)
        if old is None or old.shard is None:
            moves.standing += 1
        if moves.standing > self._queries_max:
            moves.standing -= 1
            self._leave(name, moves)
            refused = LimitExceeded("queries_max", self._queries_max, moves.standing + 1)
            return _Change(name, _not_standing(command, "ERROR", refused.as_dict()))
        if old is None or old.shard is None:
            short = self._memory.refuses(Level.REFUSE, "no new query is begun")
            if short is not None:
                moves.standing -= 1
                # What the registry says again stood before, and does so again once there is room.
                state: State = "ERROR" if "origin" in command else "PENDING"
                return _Change(name, _not_standing(command, state, short.as_dict()))
        number = self._directory.home_of(query.sources)
        if old is not None and old.shard != number:
            self._leave(name, moves, stays=number)
        before = self._altered(command)
        given = command.get("options") or options.NONE
        stands: State = "PAUSED" if options.is_paused(given) else "RUNNING"
        sql, parameters = command["sql"], command.get("parameters")
        if parameters is not None:
            sql = sys.intern(sql)
        paused = options.pause_reason(given)
        entry = QueryEntry(
            sql,
            stands,
            paused,
            number,
            query.sources,
            given,
            query.uses,
            parameters,
            admitted.output,
            query.summaries,
        )
        change = _Change(name, entry, before if before is not None and before.shard == number else None)
        pairs = moves.coming.setdefault(number, [])
        replicas = self._hosting.required(name, number, query.sources, query.uses, query.summaries)
        pairs += ((None, replica) for replica in replicas)
        register = ShardCommand.register(name, sql, given, parameters, admitted.bound)
        pairs.append((change, register))
        return change

    def _leave(self, name: str, moves: _Moves, stays: int | None = None) -> None:
        """Have a query go from where it stands, or is worked out. stays: the shard to which it comes."""
        old = self._directory.queries.get(name)
        if old is None:
            return
        where = old.tried if old.shard is None else old.shard
        if where is not None and where != stays:
            moves.leaving.setdefault(where, []).append(ShardCommand.unregister(name))
            self._hosting.release(name, where)

    async def _settled(self, change: _Change) -> Outcome:
        """Note what became of a query."""
        name, entry, outcome, before = change.name, change.entry, change.outcome, change.before
        if before is None and _code(outcome) == PreparationTooLong.code:
            before = self._standing(name)
        if before is not None and name in self._directory.queries and _is_refused(outcome):
            await asyncio.to_thread(self._admission.kept, name)
            assert outcome is not None
            before.error, before.coming = outcome.get("error"), None
            self._directory.queries.note(name)
            kept = before.outcome(outcome.get("position"))
            return {**kept, "output": before.output, "refused": True}
        if outcome is not None and outcome["state"] == "PENDING":
            await self._waits(change, outcome.get("error"))
            return outcome
        self._note_paused(name, entry)
        if entry is None:
            self._directory.queries.pop(name, None)
            return {"state": "GONE"}
        self._directory.queries[name] = entry
        if outcome is None:
            return entry.outcome()
        if outcome["state"] == "ERROR":
            if entry.shard is not None:
                self._hosting.release(name, entry.shard)
                entry.tried = entry.shard
            self._directory.queries.ended(name, "ERROR", outcome.get("error"))
            self._outputs.release(name)
            return outcome
        told: Outcome = {**outcome, "state": entry.state, "error": entry.error, "output": entry.output}
        if entry.shard is not None:
            with contextlib.suppress(UnknownQuery):  # it is just being replaced
                tags = self._shards[entry.shard].view().approximation(name)
                told["approximation"] = [tag.as_dict() for tag in tags]
        return told

    def _standing(self, name: str) -> QueryEntry | None:
        """A query where it stands."""
        old = self._directory.queries.get(name)
        return None if old is None or old.shard is None else old

    async def _waits(self, change: _Change, error: dict[str, Any] | None) -> None:
        """A command waits for its step: what stands until then remains, and says why. What is to come in the
        place of what leaves is listed instead.
        """
        name, entry, old = change.name, change.entry, self._directory.queries.get(change.name)
        leaves = change.leaves
        if _code(change.outcome) == BeingRemoved.code:
            if leaves is None and entry is not None:
                leaves = entry.shard
            assert leaves is not None
            self._see_off(name, leaves, follows=entry is not None)
        if entry is not None and (leaves is not None or self._standing(name) is None):
            entry.tried = entry.shard if leaves is None else leaves
            entry.state, entry.error, entry.shard = "PENDING", error, None
            self._directory.queries[name] = entry
        elif old is not None:
            old.error, old.coming = error, entry
            self._directory.queries.note(name)
            if old.shard is not None:
                await asyncio.to_thread(self._admission.kept, name)

    def _see_off(self, name: str, number: int, *, follows: bool) -> None:
        """A shard has yet to let go of a query. follows: another of its id is to come then."""
        is_known = name in self._leaving
        self._leaving[name] = follows
        if not is_known:
            parting = asyncio.create_task(self._parted(name, self._shards[number].preparations.removal(name)))
            self._partings.add(parting)
            parting.add_done_callback(self._partings.discard)

    async def _parted(self, name: str, over: Future[None] | None) -> None:
        """Wait until a query has gone, and note it. over: None where it has gone already."""
        if over is not None:
            ended = asyncio.wrap_future(over)
            await asyncio.wait([ended])
            if ended.cancelled():  # its shard has ended: the registry says what is to be there
                del self._leaving[name]
                return
        if self._leaving.pop(name):
            self._directory.unheard.add(name)
            return
        entry = self._directory.queries.get(name)
        if entry is not None and (entry.error or {}).get("code") == BeingRemoved.code:
            del self._directory.queries[name]
            self._outputs.release(name)
            self._note_paused(name, None)


def _is_refused(outcome: Outcome | None) -> bool:
    return outcome is not None and outcome["state"] == "ERROR"


def _code(outcome: Outcome | None) -> str | None:
    """The code of the error of an outcome."""
    return None if outcome is None else (outcome.get("error") or {}).get("code")


def _not_standing(command: Command, state: State, error: dict[str, Any] | None) -> QueryEntry:
    return QueryEntry(
        command.get("sql"),
        state,
        error,
        options=command.get("options") or options.NONE,
        parameters=command.get("parameters"),
    )
