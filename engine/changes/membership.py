"""IN and EXISTS over a way.

Most are joins that keep rows with a partner, or without one. EXISTS without a key asks only whether anything
is there, so all that is there is as good as one row. NOT IN holds a row back also while NULL is among the
others, and a NULL while anything is: it looks at all rows of both sides.
"""

from __future__ import annotations

import numpy as np

from engine.changes.course import FOREVER, NEVER
from engine.changes.joins import Joining, Pairs, both, pieces, while_both
from engine.changes.lives import Input, Lives, Touched, Way
from engine.kernels import covers as kernels
from engine.language.expressions import Column as ColumnOf
from engine.language.query import Join, SemiJoin
from engine.model.batch import BoolArray, Column, Int64Array
from engine.model.limits import Limits
from engine.model.types import Kind
from engine.operators.keys import pair_codes
from engine.operators.partners import PartnerKeys, ranges
from engine.operators.relation import Relation
from tureen.errors import LimitExceeded


def membership(stage: SemiJoin, left: Input, right: Input, limits: Limits) -> Input:
    """What IN or EXISTS gives; right: what ``stage.inner`` does."""
    if stage.null_aware and stage.negated:
        return NotIn(stage, left, right, limits)
    keys = tuple((key, ColumnOf(place, "", key.type)) for place, key in enumerate(stage.keys))
    join = Join(stage.inner, "anti" if stage.negated else "semi", keys)
    return Joining(join, left, right if keys else Presence(right), limits)


class Presence:
    """One row, without columns, while anything is there."""

    ordered = True

    def __init__(self, below: Input) -> None:
        self.way: Way = below.way
        self._below = below
        self._lives: Lives | None = None

    def changed(self) -> Lives:
        """It comes when the first row does, and goes with the last."""
        return self.alive().changing(self.way)

    def alive(self, touched: Touched | None = None) -> Lives:
        """Whenever it is there."""
        if self._lives is None:
            begins, ends = united(self._below.alive())
            self._lives = Lives(Relation([], len(begins)), begins, ends)
        return self._lives


class NotIn:
    """Rows whose key equals none of the others, for certain."""

    def __init__(self, stage: SemiJoin, left: Input, right: Input, limits: Limits) -> None:
        self.way: Way = left.way
        self.ordered = left.ordered
        self._key = stage.keys[0]
        self._left = left
        self._right = right
        self._limits = limits
        self._all: Lives | None = None

    def changed(self) -> Lives:
        """Rows that come or go. Raises LimitExceeded."""
        return self.alive().changing(self.way)

    def alive(self, touched: Touched | None = None) -> Lives:
        """Rows that are there at some instant. Raises LimitExceeded."""
        if self._all is None:
            self._all = self._kept(self._left.alive(), self._right.alive()).there(self.way)
        return self._all if touched is None else self._all.where(touched.among(self._all.relation))

    def _kept(self, left: Lives, right: Lives) -> Lives:
        (key,), _ = left.relation.values_of([self._key])
        other = right.relation.columns[0]
        found = ranges(PartnerKeys(*pair_codes([key], [other], len(left), len(right))))
        known, unknown = _valid(key), united(right.where(~_valid(other)))
        anything = united(right)
        candidates = found.count() + len(left) * max(len(unknown[0]), len(anything[0]))
        if candidates > self._limits.join_candidates_max:
            hint = "write NOT EXISTS, which ignores NULLs"
            raise LimitExceeded(
                "join_candidates_max", self._limits.join_candidates_max, candidates, hint=hint
            )
        covers = both(
            while_both(left, right, *found.pairs()),
            _while(left, np.flatnonzero(known), *unknown),
            _while(left, np.flatnonzero(~known), *anything),
        )
        covers = covers.where(covers.begins < covers.ends)
        rows, begins, ends = pieces(left, np.arange(len(left)), covers.left, covers, inside=False)
        return Lives(left.relation.take(rows), begins, ends)


def united(lives: Lives) -> tuple[Int64Array, Int64Array]:
    """The times at which any of the rows is there: begins and ends."""
    order = np.argsort(lives.begins)
    n = len(lives)
    rows, begins, ends = np.empty(n + 1, np.int64), np.empty(n + 1, np.int64), np.empty(n + 1, np.int64)
    always = np.array([NEVER]), np.array([FOREVER])
    covers = np.array([0, n]), lives.begins[order], lives.ends[order]
    count = kernels.cut_out(*always, *covers, True, rows, begins, ends)
    return begins[:count], ends[:count]


def _while(left: Lives, rows: Int64Array, begins: Int64Array, ends: Int64Array) -> Pairs:
    """Each of these rows with each of these times."""
    times = len(begins)
    of = np.repeat(rows, times)
    from_ms = np.maximum(left.begins[of], np.tile(begins, len(rows)))
    to_ms = np.minimum(left.ends[of], np.tile(ends, len(rows)))
    return Pairs(of, np.full(len(of), -1), from_ms, to_ms)


def _valid(column: Column) -> BoolArray:
    if column.type.kind is Kind.NULL:
        return np.zeros(len(column), np.bool_)
    return np.ones(len(column), np.bool_) if column.valid is None else column.valid
