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
PIECES_MAX = 64
"""In so many pieces of time a run says where its rows lie; then each has the time of two."""
RUNS_MAX = 4_096
"""The most runs of a source that are known at once; with as many nothing more is shed."""


@dataclass(frozen=True, slots=True)
class Shed:
    """What a step of records sheds.

    level: 1 <= level <= LEVEL_MAX. ranges: of each partition that the step reads (first, until), offsets
    first <= offset < until. unread: so many records in them were passed over without being read.
    """

    level: int
    ranges: Mapping[int, tuple[int, int]]
    unread: int = 0


class ShedPiece(NamedTuple):
    """Records of a run by their time, in ms since 1970, spread over it evenly. rows: that were read; unread:
    that were not.
    """

    from_ms: int
    until_ms: int
    rows: int
    unread: int

    def share(self, from_ms: int | None) -> float:
        """The share of its records that are at or after an instant; None: all of them."""
        if from_ms is None or from_ms <= self.from_ms:
            return 1.0
        return max(0.0, (self.until_ms - from_ms + 1) / (self.until_ms - self.from_ms + 1))


@dataclass(frozen=True, slots=True)
class ShedRun:
    """Records shed one after another at one level.

    since: the step it began with. until_ms: no row of it is later. ranges: as in :class:`Shed`. rows: that
    were read; unread: records that were not. spent: when a later run began, all of its rows were gone.
    pieces: ascending; of runs from earlier stores not all records are in them.
    """

    since: Position
    until_ms: int
    level: int
    ranges: Mapping[int, tuple[int, int]]
    rows: int
    unread: int = 0
    spent: bool = False
    pieces: tuple[ShedPiece, ...] = ()

    def continued(
        self, shed: Shed, until_ms: int, rows: int, piece: ShedPiece | None = None
    ) -> ShedRun | None:
        """This run with what a later step sheds; None where that is another run. O(partitions)."""
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
            pieces=self.pieces if piece is None else _few((*self.pieces, piece)),
        )

    def records_since(self, from_ms: int | None) -> tuple[int, int]:
        """(rows read, records not read) at or after an instant; None: all. What no piece has counts as long
        as any of the run does. O(pieces).
        """
        if from_ms is not None and self.until_ms < from_ms:
            return 0, 0
        rows = self.rows - sum(piece.rows for piece in self.pieces)
        unread = self.unread - sum(piece.unread for piece in self.pieces)
        shares = [(piece, piece.share(from_ms)) for piece in self.pieces]
        rows += round(sum(share * piece.rows for piece, share in shares))
        return rows, unread + round(sum(share * piece.unread for piece, share in shares))


def _few(pieces: tuple[ShedPiece, ...]) -> tuple[ShedPiece, ...]:
    """Pieces for the same records, half as many where there are more than PIECES_MAX."""
    if len(pieces) <= PIECES_MAX:
        return pieces
    pairs = zip(pieces[::2], pieces[1::2], strict=False)
    found = [
        ShedPiece(
            min(one.from_ms, other.from_ms),
            max(one.until_ms, other.until_ms),
            one.rows + other.rows,
            one.unread + other.unread,
        )
        for one, other in pairs
    ]
    return (*found, pieces[-1]) if len(pieces) % 2 else tuple(found)


class _Bounds(NamedTuple):
    """The runs of one partition: int64[n] each, ascending and disjoint."""

    first: Int64Array
    until: Int64Array
    level: Int64Array


class Sheds:
    """The runs that one source shed. What readers see of it is replaced, never changed: they need no lock."""

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

    def note(
        self,
        shed: Shed,
        since: Position,
        until_ms: int,
        rows: int,
        oldest_ms: int,
        times: tuple[int, int] | None = None,
    ) -> bool:
        """A step sheds these. rows: that were read. oldest_ms: rows before it are not retained. times: the
        first and the last instant of its records, about; None: not known. Returns whether a run begins.
        O(runs) then, else O(partitions).

        Runs whose rows are gone are forgotten when the second run after that begins, so that readers of an
        earlier view still know them.
        """
        piece = None if times is None else ShedPiece(*times, rows, shed.unread)
        last = self.runs[-1].continued(shed, until_ms, rows, piece) if self.runs else None
        self._bounds = None
        if last is not None:
            self.runs = (*self.runs[:-1], last)
            return False
        kept = [
            replace(run, spent=True) if run.until_ms < oldest_ms else run
            for run in self.runs
            if not run.spent
        ]
        pieces = () if piece is None else (piece,)
        run = ShedRun(since, until_ms, shed.level, dict(shed.ranges), rows, shed.unread, pieces=pieces)
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
        """What queries that allow this level lack of the rows at or after an instant; None: nothing. from_ms:
        None: of all rows. O(runs * pieces).
        """
        rows = unread = 0
        since: Position | None = None
        intervals: list[tuple[int, int]] = []
        for run in self.runs:
            mine = run.records_since(from_ms) if run.level <= level else (0, 0)
            if not any(mine):
                continue
            since = run.since if since is None else since
            rows, unread = rows + mine[0], unread + mine[1]
            if run.pieces:
                first_ms = min(piece.from_ms for piece in run.pieces)
                last_ms = max(piece.until_ms for piece in run.pieces)
                intervals.append((first_ms if from_ms is None else max(first_ms, from_ms), last_ms))
        return None if since is None else ShedWithin(since, rows, unread, tuple(intervals))

    def _check(self) -> None:
        for partition, bounds in self._made().items():
            assert partition >= 0
            assert bool((bounds.first < bounds.until).all())
            assert bool((bounds.until[:-1] <= bounds.first[1:]).all())
        for run in self.runs:
            assert 1 <= run.level <= LEVEL_MAX


class ShedWithin(NamedTuple):
    """since: the step that the first of the runs began with. rows, unread: as of a run, summed. intervals:
    the first and the last instant of each run whose times are known, ascending.
    """

    since: Position
    rows: int
    unread: int
    intervals: tuple[tuple[int, int], ...] = ()
