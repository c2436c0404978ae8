"""ROW_NUMBER, and LIMIT with or without ORDER BY, over rows that come and go.

Within each value of the keys (a LIMIT is over all rows) rows are put in order once, those of all instants; a
row's life is then cut where its number changes. Only values that a row came to or left on the way are looked
at, and where only the first so many rows count, only those that may be among them.

Cost: O(n log n) of the rows that are looked at, and for each event up to as many rows as count.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from engine.changes.lives import Input, Lives, Touched, Way
from engine.changes.pieces import cut
from engine.kernels import grouping, ranks
from engine.language.query import Limit, RowNumber, Sort
from engine.model.batch import Column, Int64Array
from engine.model.lazy_columns import LazyColumns
from engine.model.limits import Limits
from engine.model.types import BIGINT
from engine.operators.keys import encode
from engine.operators.sort import first_rows, leading, sort_arrays
from tureen.errors import LimitExceeded

ALL = 2**62
"""More rows than there are."""


def can(stage: RowNumber, below: Input) -> bool:
    """Whether lives are enough: rows that equal in all keys are numbered as they stand."""
    return below.ordered


def can_first(sort: Sort | None, limit: Limit, below: Input) -> bool:
    """The same of LIMIT."""
    return below.ordered


class Numbered:
    """What ROW_NUMBER gives: the rows in their order, their numbers behind them."""

    def __init__(self, stage: RowNumber, below: Input, limits: Limits) -> None:
        self._stage = stage
        self._below = below
        self._rows_max = limits.intermediate_rows_max
        self._changed: Lives | None = None
        self._all: Lives | None = None

    @property
    def way(self) -> Way:
        return self._below.way

    @property
    def ordered(self) -> bool:
        return self._below.ordered

    def changed(self) -> Lives:
        """Rows with a number that comes or goes on the way. Raises LimitExceeded."""
        if self._changed is None:
            moved = self._below.changed()
            values, _ = moved.relation.values_of(self._stage.keys)
            touched = Touched(self._stage.keys, tuple(values), len(moved))
            rows = self._below.alive(touched) if len(moved) else moved
            self._changed = self._given(rows).changing(self.way)
        return self._changed

    def alive(self, touched: Touched | None = None) -> Lives:
        """All rows, or those that equal one of ``touched``. Raises LimitExceeded."""
        if self._all is None:
            self._all = self._given(self._below.alive())
        return self._all if touched is None else self._all.where(touched.among(self._all.relation))

    def _given(self, rows: Lives) -> Lives:
        stage = self._stage
        keys, _ = rows.relation.values_of(stage.keys)
        codes, firsts = encode(keys, len(rows))
        if stage.count is not None:
            few = self._candidates(rows, codes, len(firsts), stage.count)
            rows, codes = rows.take(few), codes[few]
        arrays, _ = sort_arrays(stage.order, rows.relation)
        most = ALL if stage.count is None else stage.count
        runs = _runs(rows, arrays, codes, len(firsts), self.way, most, self._rows_max)
        runs = runs.take(np.argsort(runs.rows, kind="stable"))
        below = rows.relation.take(runs.rows)
        width, last = len(below.columns), Column(BIGINT, runs.numbers)
        columns = LazyColumns(width + 1, lambda place: last if place == width else below.columns[place])
        return Lives(below.with_columns(columns), runs.begins, runs.ends)

    def _candidates(self, rows: Lives, codes: Int64Array, groups: int, most: int) -> Int64Array:
        """Rows, ascending, that may ever be among the first ``most`` of their groups: at an instant not more
        rows are missing before them than move.
        """
        way, order = self.way, self._stage.order
        moving = way.among(rows.begins) | way.among(rows.ends)
        room = np.minimum(most, np.bincount(codes, minlength=groups))
        room += np.bincount(codes[moving], minlength=groups)
        starts = np.concatenate([[0], np.cumsum(np.maximum(room, 1))])
        keys = np.arange(len(rows))
        if order:
            (column,), _ = rows.relation.values_of([order[0].expression])
            keys = leading(order[0], column)
        bounds = np.empty(groups, np.int64)
        ranks.bounds(keys, codes, starts, np.empty(starts[-1], np.int64), bounds)
        return np.flatnonzero(keys <= bounds[codes])


class Firsts:
    """What LIMIT gives, with or without ORDER BY before it."""

    def __init__(self, sort: Sort | None, limit: Limit, below: Input, limits: Limits) -> None:
        self._keys = () if sort is None else sort.keys
        self._limit = limit
        self._below = below
        self._rows_max = limits.intermediate_rows_max
        self._all: Lives | None = None

    ordered = True

    @property
    def way(self) -> Way:
        return self._below.way

    def changed(self) -> Lives:
        """Rows that come among the first or leave them. Raises LimitExceeded."""
        moved = self._below.changed()
        return self.alive().changing(self.way) if len(moved) else moved

    def alive(self, touched: Touched | None = None) -> Lives:
        """All rows, or those that equal one of ``touched``. Raises LimitExceeded."""
        if self._all is None:
            self._all = self._given(self._below.alive())
        return self._all if touched is None else self._all.where(touched.among(self._all.relation))

    def _given(self, rows: Lives) -> Lives:
        limit = self._limit
        most = ALL if limit.count is None else limit.offset + limit.count
        if most < len(rows):
            moving = len(rows.changing(self.way))
            candidates = first_rows(self._keys, rows.relation, most + moving)
            if candidates is not None:
                rows = rows.take(candidates)
        arrays, _ = sort_arrays(self._keys, rows.relation)
        codes = np.zeros(len(rows), np.int64)
        runs = _runs(rows, arrays, codes, 1, self.way, most, self._rows_max)
        runs = runs.take(np.flatnonzero(runs.numbers > limit.offset))
        runs = runs.take(np.lexsort((runs.begins, runs.places))).joined()
        return Lives(rows.relation.take(runs.rows), runs.begins, runs.ends)


@dataclass(frozen=True, slots=True)
class _Runs:
    """Rows with a number and for how long they have it. places: of the rows in the order of numbers."""

    rows: Int64Array
    places: Int64Array
    numbers: Int64Array
    begins: Int64Array
    ends: Int64Array

    def take(self, runs: Int64Array) -> _Runs:
        """The runs at these places, in that order."""
        return _Runs(
            self.rows[runs], self.places[runs], self.numbers[runs], self.begins[runs], self.ends[runs]
        )

    def joined(self) -> _Runs:
        """Without regard to the numbers: runs of one row that follow each other are one. By row and time."""
        if not len(self.rows):
            return self
        goes_on = (self.rows[1:] == self.rows[:-1]) & (self.begins[1:] == self.ends[:-1])
        first = np.flatnonzero(np.concatenate([[True], ~goes_on]))
        last = np.concatenate([first[1:] - 1, [len(self.rows) - 1]])
        return _Runs(
            self.rows[first], self.places[first], self.numbers[first], self.begins[first], self.ends[last]
        )


def _runs(
    rows: Lives,
    arrays: Sequence[Int64Array],
    codes: Int64Array,
    groups: int,
    way: Way,
    most: int,
    rows_max: int,
) -> _Runs:
    """Numbers up to ``most`` within each group. arrays: by which rows are sorted, the first weighs most."""
    order = np.lexsort([*arrays[::-1], codes]) if arrays else _together(codes, groups)
    rows, codes = rows.take(order), codes[order]
    placed = cut(rows, codes, groups, way)
    pieces = placed.pieces
    starts = np.concatenate([[0], np.cumsum(np.bincount(codes, minlength=groups))])
    events = placed.events(placed.moving)
    room = len(rows) + 64 * len(pieces)
    while True:
        found = [np.empty(room, np.int64) for _ in range(4)]
        there = placed.at_first(placed.moving)
        count = ranks.numbers(starts, pieces.starts, *events, there, most, *found)
        if count <= room:
            break
        if count > rows_max:
            hint = "number fewer rows, as with WHERE n <= 10 or LIMIT 10, or narrow the window"
            raise LimitExceeded("intermediate_rows_max", rows_max, count, hint=hint)
        room = count
    places, numbers, first, end = (array[:count] for array in found)
    return _Runs(order[places], places, numbers, pieces.begins[first], pieces.ends[end - 1])


def _together(codes: Int64Array, groups: int) -> Int64Array:
    """Rows group by group."""
    order = np.empty(len(codes), np.int64)
    grouping.bring_together(codes, np.empty(groups + 1, np.int64), order)
    return order
