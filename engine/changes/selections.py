"""What changed in many selections over one stream, in one pass for all that give the same columns.

A selection is a scan of a plain window and columns of its rows. Which rows came into a window on the way, and
which left it, are two ranges of ordinals, the same for all queries with that window; who accepts them is read
from the kept matches. So a step costs O(rows that came or went * words + matches), and next to nothing for
a query that none of them concerns.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from engine.changes.course import Course, Leg
from engine.changes.net import uncancelled
from engine.changes.ranges import moved_ranges
from engine.changes.windows import begins_of, ends_of
from engine.language.query import Project, Query
from engine.limits import Limits
from engine.model.batch import Int32Array, Int64Array
from engine.model.changes import Changes, Operator
from engine.operators.gather import project
from engine.results.accepted import Slots, accepted
from engine.stems.segment import Part
from engine.windows.clauses import TimeWindow

EVERY_ROW = -1
"""In place of a slot: no predicate."""


def served(query: Query, operator: Operator) -> bool:
    """Whether a query is such a selection."""
    scan = query.scan
    return (
        operator != "rstream"
        and len(query.stages) == 1
        and isinstance(query.stages[0], Project)
        and scan.assignment is None
        and isinstance(scan.window, TimeWindow)
    )


@dataclass(frozen=True, slots=True)
class _Alike:
    """What queries have in common that are told together."""

    stage: Project
    window: TimeWindow
    operator: Operator


@dataclass(slots=True)
class _Group:
    """members: the slot of each query's predicate, by query id."""

    members: dict[str, int] = field(default_factory=dict)
    known: tuple[tuple[str, ...], Int32Array, _Asked] | None = None

    def parts(self, many: int) -> Iterator[tuple[tuple[str, ...], _Asked]]:
        """The ids of up to so many queries at a time, and who of them asks for what."""
        if self.known is None:
            slots = np.array(list(self.members.values()), np.int32)
            self.known = tuple(self.members), slots, _Asked(slots)
        names, slots, asked = self.known
        if len(names) <= many:
            yield names, asked
            return
        for start in range(0, len(names), many):
            yield names[start : start + many], _Asked(slots[start : start + many])


class Selections:
    """The followed selections over one stream that is no table."""

    def __init__(self) -> None:
        self._groups: dict[_Alike, _Group] = {}
        self._of: dict[str, _Alike] = {}

    def __len__(self) -> int:
        return len(self._of)

    def add(self, query_id: str, query: Query, operator: Operator, slot: int | None) -> None:
        """slot: where the matches of its predicate are kept; None: it has no predicate."""
        stage, window = query.stages[0], query.scan.window
        assert isinstance(stage, Project)
        assert isinstance(window, TimeWindow)
        alike = _Alike(stage, window, operator)
        group = self._groups.setdefault(alike, _Group())
        group.members[query_id] = EVERY_ROW if slot is None else slot
        group.known = None
        self._of[query_id] = alike

    def remove(self, query_id: str) -> None:
        """Passed over where it is none of these."""
        alike = self._of.pop(query_id, None)
        if alike is None:
            return
        group = self._groups[alike]
        del group.members[query_id]
        group.known = None
        if not group.members:
            del self._groups[alike]

    def tell(self, course: Course, limits: Limits) -> Iterator[Changes]:
        """What changed on the way, of so many queries at a time that it stays within the limits."""
        if not self._groups:
            return
        (leg,) = course.legs.values()
        if not leg.moves:
            return  # retention alone takes nothing from a window that moves, and of others nothing is told
        for alike, group in self._groups.items():
            moved = sum(max(0, stop - start) for start, stop in moved_ranges(alike.window, course, leg))
            if not moved:
                continue
            for names, asked in group.parts(max(1, limits.changes_max // moved)):
                told = _told(alike, names, asked, course, leg)
                if told is not None:
                    yield told


@dataclass(frozen=True, slots=True)
class _Moved:
    """Rows of a part that came into a window or left it, by place, whose they are, and when."""

    part: Part
    rows: Int64Array
    owners: Int32Array
    at_ms: Int64Array
    weight: int


def _told(alike: _Alike, names: Sequence[str], asked: _Asked, course: Course, leg: Leg) -> Changes | None:
    moved = [one for one in _moved(alike, asked, course, leg) if len(one.rows)]
    if not moved:
        return None
    rows, _ = project(alike.stage.outputs, leg.at.rows.schema, [(one.part, one.rows) for one in moved])
    table = rows.table
    owners = np.concatenate([one.owners for one in moved])
    at_ms = np.concatenate([one.at_ms for one in moved])
    weights = np.repeat(np.array([one.weight for one in moved], np.int8), [len(one.rows) for one in moved])
    order = np.lexsort((weights, at_ms, owners))
    if not (order[1:] > order[:-1]).all():
        table, owners, at_ms, weights = table.take(order), owners[order], at_ms[order], weights[order]
    if weights.min() != weights.max():
        kept = uncancelled(table, weights, at_ms, owners)
        if len(kept) < len(weights):
            table, owners, at_ms, weights = table.take(kept), owners[kept], at_ms[kept], weights[kept]
    if alike.operator != "changes":
        kept = np.flatnonzero(weights == (1 if alike.operator == "istream" else -1))
        if len(kept) < len(weights):
            table, owners, at_ms, weights = table.take(kept), owners[kept], at_ms[kept], weights[kept]
    if not len(weights):
        return None
    whose, firsts = np.unique(owners, return_index=True)
    return Changes(
        tuple(names[place] for place in whose.tolist()),
        np.append(firsts, len(owners)),
        table,
        weights,
        course.told(at_ms),
        np.full(len(whose), course.until_ms),
    )


class _Asked:
    """slots: of the queries, EVERY_ROW for those without a predicate; who holds each."""

    def __init__(self, slots: Int32Array) -> None:
        self.unconditional = np.flatnonzero(slots == EVERY_ROW).astype(np.int32)
        held = np.flatnonzero(slots != EVERY_ROW).astype(np.int32)
        self._holders = held[np.argsort(slots[held], kind="stable")]
        self.slots = Slots(slots[held])
        self._starts = np.searchsorted(slots[self._holders], self.slots.slots)
        self._counts = np.diff(np.append(self._starts, len(held)))

    def pairs(self, part: Part, first: int, last: int) -> tuple[Int64Array, Int32Array]:
        """(place, query) of every row of a range that a query accepts."""
        if not len(self._holders):
            every = np.arange(first, last)
            rows = np.tile(every, len(self.unconditional))
            return rows, np.repeat(self.unconditional, len(every))
        rows, slots = accepted(part.matches, self.slots, first, last)
        which = self.slots.slots.searchsorted(slots)
        counts = self._counts[which]
        if len(self._holders) > len(self.slots.slots):
            starts = np.repeat(self._starts[which] - np.cumsum(counts) + counts, counts)
            owners = self._holders[starts + np.arange(len(starts))]
            rows = np.repeat(rows, counts)
        else:
            owners = self._holders[self._starts[which]]
        if len(self.unconditional):
            every = np.arange(first, last)
            rows = np.concatenate([rows, np.tile(every, len(self.unconditional))])
            owners = np.concatenate([owners, np.repeat(self.unconditional, len(every))])
        return rows, owners


def _moved(alike: _Alike, asked: _Asked, course: Course, leg: Leg) -> Iterator[_Moved]:
    window, rows = alike.window, leg.at.rows
    for weight, (start, stop) in zip((-1, 1), moved_ranges(window, course, leg), strict=True):
        for part, first, last in rows.ranges(start, stop):
            timestamps = part.timestamp[first:last]
            begins, ends = begins_of(window, timestamps), ends_of(window, timestamps)
            gone = leg.let_go_ms(timestamps, course.until_ms)
            if alike.operator != "istream":
                ends = np.minimum(ends, gone)
            instants = begins if weight > 0 else ends
            moves = (begins < ends) & (instants > course.since_ms) & (instants <= course.until_ms)
            if alike.operator == "istream":  # what retention takes cancels nothing that comes
                moves &= instants <= gone
            if not moves.any():
                continue
            places, owners = asked.pairs(part, first, last)
            if not moves.all():
                kept = moves[places - first]
                places, owners = places[kept], owners[kept]
            yield _Moved(part, places, owners, instants[places - first], weight)
