"""Rows that were shed: left out of the answers of queries that allow it, since there was no time for them.

A source sheds *runs*: of each partition consecutive offsets. A run has a *level*, the share of rows in parts
per million that a query must allow to lose so that it does not see these rows; every other query sees them.
Rows nobody sees need not be read: then only the last record of each partition is, so that time goes on.

Each row of a source has a level by that, a column behind those that the source stores
(:data:`engine.model.source.SHED_LEVEL`): :data:`NOT_SHED` where it is in no run. A query that allows ``a``
parts per million has the condition that the level is above ``a``. The level of a row is known before the row
enters and does not change while it is there, so that whoever reads rows of an earlier view finds the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from engine.model.step import Position

Int32Array = npt.NDArray[np.int32]
Int64Array = npt.NDArray[np.int64]

LEVEL_MAX = 1_000_000
"""Parts per million: whoever sheds rows of this level sheds for queries alone that allow to lose all."""
NOT_SHED = LEVEL_MAX + 1
RUNS_MAX = 4_096
"""So many runs of a source are known at once; with as many nothing more is shed."""


@dataclass(frozen=True, slots=True)
class Shed:
    """What a step of records sheds.

    level: 1 <= level <= LEVEL_MAX. ranges: of each partition that the step reads (first, until), offsets
    first <= offset < until. unread: so many records in them were passed over without being read.
    """

    level: int
    ranges: Mapping[int, tuple[int, int]]
    unread: int = 0


@dataclass(frozen=True, slots=True)
class ShedRun:
    """Records shed one after another at one level.

    since: the step it began with. until_ms: no row of it is later. ranges: as in :class:`Shed`. rows: that
    were read; unread: records that were not. spent: when a later run began, all of its rows were gone.
    """

    since: Position
    until_ms: int
    level: int
    ranges: Mapping[int, tuple[int, int]]
    rows: int
    unread: int = 0
    spent: bool = False

    def continued(self, shed: Shed, until_ms: int, rows: int) -> ShedRun | None:
        """With what a later step sheds; None where that is another run. O(partitions)."""
        if shed.level != self.level:
            return None
        ranges = dict(self.ranges)
        for partition, (first, until) in shed.ranges.items():
            begins, ends = ranges.get(partition, (first, first))
            if not begins <= first <= ends:
                return None
            ranges[partition] = begins, max(ends, until)
        return replace(
            self,
            until_ms=max(self.until_ms, until_ms),
            ranges=ranges,
            rows=self.rows + rows,
            unread=self.unread + shed.unread,
        )


class _Bounds(NamedTuple):
    """Of one partition: int64[n] each, ascending and disjoint."""

    first: Int64Array
    until: Int64Array
    level: Int64Array


class Sheds:
    """Of one source. What readers see of it is replaced, never changed, so they need no lock."""

    def __init__(self, runs: Iterable[ShedRun] = ()) -> None:
        self.runs: tuple[ShedRun, ...] = tuple(runs)
        self._bounds: dict[int, _Bounds] | None = None

    def __bool__(self) -> bool:
        return bool(self.runs)

    @property
    def records(self) -> int:
        """How many were shed in the runs that are known. O(runs)."""
        return sum(run.rows + run.unread for run in self.runs)

    @property
    def is_full(self) -> bool:
        """Whether a further run cannot be taken."""
        return len(self.runs) >= RUNS_MAX

    def note(self, shed: Shed, since: Position, until_ms: int, rows: int, oldest_ms: int) -> bool:
        """A step sheds these. rows: that were read. oldest_ms: rows before it are not retained. Returns
        whether a run begins. O(runs) then, else O(partitions).

        Runs whose rows are gone are forgotten when the second run after that begins, so that readers of an
        earlier view still know them.
        """
        last = self.runs[-1].continued(shed, until_ms, rows) if self.runs else None
        self._bounds = None
        if last is not None:
            self.runs = (*self.runs[:-1], last)
            return False
        kept = [
            replace(run, spent=True) if run.until_ms < oldest_ms else run
            for run in self.runs
            if not run.spent
        ]
        run = ShedRun(since, until_ms, shed.level, dict(shed.ranges), rows, shed.unread)
        self.runs = (*kept, run)
        return True

    def levels(self, partition: Int32Array, offset: Int64Array) -> Int64Array:
        """int64[n]: of rows that come from there, int32[n] and int64[n]. O(n log runs)."""
        found = np.full(len(offset), NOT_SHED, np.int64)
        if not self.runs or not len(offset):
            return found
        bounds = self._bounds
        if bounds is None:
            bounds = self._bounds = self._made()
        for number, one in bounds.items():
            rows = np.flatnonzero(partition == number)
            if not len(rows):
                continue
            at = offset[rows]
            run = np.searchsorted(one.first, at, "right") - 1
            inside = (run >= 0) & (at < one.until[run])
            found[rows[inside]] = one.level[run[inside]]
        return found

    def _made(self) -> dict[int, _Bounds]:
        by_partition: dict[int, list[tuple[int, int, int]]] = {}
        for run in self.runs:
            for partition, (first, until) in run.ranges.items():
                by_partition.setdefault(partition, []).append((first, until, run.level))
        made = {}
        for partition, bounds in by_partition.items():
            columns = np.array(sorted(bounds), np.int64).T
            made[partition] = _Bounds(columns[0].copy(), columns[1].copy(), columns[2].copy())
        return made

    def within(self, level: int, from_ms: int | None) -> ShedWithin | None:
        """What queries that allow this level lack of the rows at or after an instant, at most; None: nothing.
        from_ms: None: of all rows. O(runs).
        """
        rows = unread = 0
        since: Position | None = None
        for run in self.runs:
            if run.level <= level and (from_ms is None or run.until_ms >= from_ms):
                since = run.since if since is None else since
                rows += run.rows
                unread += run.unread
        return None if since is None else ShedWithin(since, rows, unread)

    def _check(self) -> None:
        for partition, bounds in self._made().items():
            assert partition >= 0
            assert bool((bounds.first < bounds.until).all())
            assert bool((bounds.until[:-1] <= bounds.first[1:]).all())
        for run in self.runs:
            assert 1 <= run.level <= LEVEL_MAX


class ShedWithin(NamedTuple):
    """since: the step that the first of the runs began with. rows, unread: as of a run, summed."""

    since: Position
    rows: int
    unread: int
