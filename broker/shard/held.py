"""A shard that is held: it does not come back by itself.

Either that ended its worker again and again, or there is too little memory for what it holds. A held shard
knows what stands on it, without a row: queries and sources are listed, and can be removed. Nothing is read or
answered. What is removed is noted in a file of the shard's before that is confirmed. After removals, and when
an operator says so, the shard tries to come back without them, leaving out the rows that only removed queries
need. Once it is back the removals are made as steps like any other, and the file goes.

Registrations wait (PENDING ``shard_held``); the control process says them again until they are carried out.
Used by the shard's thread alone.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from broker.base.internal import Outcome
from broker.shard.shard_command import ShardCommand
from broker.shard.shard_state import ShardState
from engine.engine import Engine
from engine.model.batch import Batch
from engine.model.persistence import HeldState, QueryState, SourceState, StateSource
from engine.model.source import Derived, SourceName
from engine.model.state_tree import Tree
from engine.model.step import Position
from engine.queries.summaries import PARTS as SUMMARIES
from engine.queries.summaries import uncounted
from engine.queries.swapped_set import PARTS as SWAPPED
from tureen.errors import ShardHeld, TureenError


@dataclass
class Removals:
    """Queries and sources (streams, tables, views) that are removed while their shard is held."""

    path: Path
    queries: set[str] = field(default_factory=set)
    sources: list[str] = field(default_factory=list)
    """In the order in which they were dropped: what reads others goes before them."""
    made_at: Position | None = None
    """The step by which they were made at last."""

    def __len__(self) -> int:
        return len(self.queries) + len(self.sources)

    @classmethod
    def read(cls, path: Path) -> Removals:
        """As noted; none where there is no file. Raises OSError."""
        if not path.is_file():
            return cls(path)
        noted = json.loads(path.read_bytes())
        return cls(path, set(noted["queries"]), list(noted["sources"]))

    def note(self) -> None:
        """Write them down. Raises OSError."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        beside = self.path.with_suffix(".tmp")
        beside.write_text(json.dumps({"queries": sorted(self.queries), "sources": self.sources}))
        beside.replace(self.path)

    def forget_if_saved(self, saved: Position | None) -> None:
        """Once the store has no word of what was removed, a start needs not leave it out."""
        if self and saved is not None and self.made_at is not None and saved >= self.made_at:
            self.queries.clear()
            self.sources.clear()
            self.path.unlink(missing_ok=True)


def carried_out(
    command: ShardCommand, shard_state: ShardState, removals: Removals, error: TureenError
) -> Outcome:
    """What becomes of a command while the shard is held. error: why it is."""
    waits: Outcome = {"state": "PENDING", "error": error.as_dict(), "position": None}
    stands: Outcome = {"state": "RUNNING", "error": None, "position": None}
    match command.kind:
        case "unregister":
            if shard_state.queries.pop(command.name, None) is not None:
                removals.queries.add(command.name)
            return {"state": "GONE", "error": None, "position": None}
        case "drop":
            if shard_state.sources.pop(command.name, None) is not None:
                removals.sources.append(command.name)
            return {"state": "GONE", "error": None, "position": None}
        case "prove":
            return stands
        case "register":
            return stands if shard_state.queries.get(command.name) == command.standing else waits
        case "create_summary":
            there = shard_state.summaries.get(command.name)
            return stands if there is not None and there.definition == command.summary else waits
        case "heartbeat" | "allocate" | "drop_summary":
            return {"state": "ERROR", "error": error.as_dict(), "position": None}
        case _:
            return stands if shard_state.sources.get(command.name) == command.source else waits


@dataclass(frozen=True, slots=True)
class Rowless:
    """What is stored, without any row and without removed queries."""

    stored: StateSource
    removals: Removals

    def position(self) -> Position | None:
        return self.stored.position()

    def sources(self) -> Iterator[SourceState]:
        for state in self.stored.sources():
            yield replace(state, base=state.end)

    def derived(self) -> Iterator[Derived]:
        yield from self.stored.derived()

    def rows(self, source: SourceName) -> Iterator[tuple[int, Batch]]:
        yield from ()

    def pending(self, source: SourceName) -> Iterator[tuple[int, Batch]]:
        yield from ()

    def queries(self) -> Iterator[QueryState]:
        for state in self.stored.queries():
            if state.registration.query_id not in self.removals.queries:
                yield state

    def held(self) -> Iterator[HeldState]:
        yield from ()

    def state_parts(self, prefix: str) -> Iterator[tuple[str, Tree]]:
        if prefix in (SWAPPED, SUMMARIES):
            for name, tree in self.stored.state_parts(prefix):
                yield name, tree if prefix == SWAPPED else uncounted(tree)


@dataclass(frozen=True, slots=True)
class Remaining:
    """What is stored, without removed queries, without rows of removed sources, and without rows that only
    removed queries need. begins: of sources that begin later than stored, their first ordinals.
    """

    stored: StateSource
    removals: Removals
    begins: dict[SourceName, int]

    def position(self) -> Position | None:
        return self.stored.position()

    def sources(self) -> Iterator[SourceState]:
        for state in self.stored.sources():
            begin = self.begins.get(state.stream.name, state.base)
            yield replace(state, base=max(begin, state.base))

    def derived(self) -> Iterator[Derived]:
        yield from self.stored.derived()

    def rows(self, source: SourceName) -> Iterator[tuple[int, Batch]]:
        begin = self.begins.get(source)
        for first, rows in self.stored.rows(source):
            if begin is None or first + len(rows) > begin:
                yield first, rows
            del rows

    def pending(self, source: SourceName) -> Iterator[tuple[int, Batch]]:
        if source not in self.removals.sources:
            yield from self.stored.pending(source)

    def queries(self) -> Iterator[QueryState]:
        for state in self.stored.queries():
            if state.registration.query_id not in self.removals.queries:
                yield state

    def held(self) -> Iterator[HeldState]:
        for state in self.stored.held():
            if state.source not in self.removals.sources:
                yield state

    def state_parts(self, prefix: str) -> Iterator[tuple[str, Tree]]:
        yield from self.stored.state_parts(prefix)


def reason(shard: int, causes: Collection[str], at: str = "") -> ShardHeld | None:
    """Why a shard is held from the start, by the causes that ended the worker's last lives again and again
    (:mod:`broker.runtime.lives`); None: it is not. at: what its thread was at as it hung last.
    """
    mine = f"shard-{shard}"
    if mine in causes:
        return ShardHeld(
            shard,
            mine,
            "its thread hung at work again and again, and the worker was replaced each time"
            + (f"; the last time: {at}" if at else ""),
            hint="see the stacks in the broker's log; unregister the query whose function does not end, or "
            "mend the function and start again; `tureen resume --held` has it try as it is",
        )
    if "memory" in causes:
        return ShardHeld(shard, "memory", "the worker was killed because memory ran out again and again")
    if "worker" in causes:
        return ShardHeld(
            shard,
            "worker",
            "the worker hung again and again, and was replaced each time",
            hint="see the stacks in the broker's log; unregister what hangs, then `tureen resume --held`",
        )
    return None


def begins_without(stored: StateSource, removals: Removals, rowless: Engine) -> dict[SourceName, int]:
    """Where the rows of sources begin that are needed once these are removed. O(rows), a piece at a time.

    rowless: the engine without any row and without the removed queries.
    """
    begins: dict[SourceName, int] = {}
    for state in stored.sources():
        name = state.stream.name
        if name in removals.sources:
            begins[name] = state.end
            continue
        needed = None if state.stream.is_table else rowless.needs.rows(name)
        if needed is None:
            continue
        from_ms, rows_back = needed
        begin = state.base
        for first, rows in stored.rows(name):
            end = first + len(rows)
            if end > state.end - rows_back or (len(rows) and int(rows.timestamp[-1]) >= from_ms):
                break
            begin = end
            del rows  # a piece may be large: not two at a time
        if begin > state.base:
            begins[name] = begin
    return begins
