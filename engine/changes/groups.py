"""GROUP BY over rows that come and go: one row for each group and piece of time, with its life.

Only groups that a row came to or left on the way are looked at; their rows are asked for, and the time of
each is cut at every begin and end among them (:mod:`engine.changes.pieces`). A group without rows has no row;
without keys there is one group, which always has. Rows stand in the order of the first row of their group
that is there.

Cost: O(rows of those groups + pieces) a call, see :mod:`engine.changes.calls`.
"""

from __future__ import annotations

import numpy as np

from engine.changes.calls import Calls
from engine.changes.lives import Input, Lives, Touched, Way
from engine.changes.pieces import cut
from engine.language.expressions import Column as ColumnOf
from engine.language.query import Aggregate
from engine.model.batch import Int64Array
from engine.model.limits import Limits
from engine.operators.aggregate import aggregate
from engine.operators.keys import encode, with_one_zero
from engine.operators.relation import Relation


def can(stage: Aggregate, below: Input) -> bool:
    """Whether lives are enough to tell every value: where the order of rows matters it must be known."""
    return below.ordered or not any(call.aggregate.order_dependent for call in stage.calls)


class Groups:
    """What an aggregate gives."""

    def __init__(self, stage: Aggregate, below: Input, limits: Limits) -> None:
        self._stage = stage
        self._below = below
        self._limits = limits
        self._changed: Lives | None = None
        self._all: Lives | None = None

    @property
    def way(self) -> Way:
        return self._below.way

    @property
    def ordered(self) -> bool:
        return self._below.ordered

    def changed(self) -> Lives:
        """The rows of pieces that begin or end on the way. Raises LimitExceeded."""
        if self._changed is None:
            moved = self._below.changed()
            if not self._stage.keys:
                rows = self.alive() if len(moved) else self._nothing()
            elif len(moved):
                keys = tuple(key.expression for key in self._stage.keys)
                values, _ = moved.relation.values_of(keys)
                rows = self._given(Touched(keys, tuple(values), len(moved)))
            else:
                rows = self._nothing()
            self._changed = rows.changing(self.way)
        return self._changed

    def alive(self, touched: Touched | None = None) -> Lives:
        """All rows, or those that equal one of ``touched``. Raises LimitExceeded."""
        if touched is None or self._all is not None:
            if self._all is None:
                self._all = self._given(None)
            return self._all if touched is None else self._all.where(touched.among(self._all.relation))
        below = self._touched_below(touched)
        if below is None:
            rows = self.alive()
        else:
            rows = self._given(below)
        return rows.where(touched.among(rows.relation))

    def _nothing(self) -> Lives:
        no_row = np.empty(0, np.int64)
        relation, _ = aggregate(self._stage, self._below.changed().relation.take(no_row))
        return Lives(relation.take(np.arange(0)), no_row, no_row)

    def _touched_below(self, touched: Touched) -> Touched | None:
        """Rows of groups by their keys, as far as those are asked for; None: by none."""
        found = [
            (self._stage.keys[key.index].expression, values)
            for key, values in zip(touched.keys, touched.values, strict=True)
            if isinstance(key, ColumnOf) and key.index < len(self._stage.keys)
        ]
        if not found:
            return None
        keys, values = zip(*found, strict=True)
        return Touched(keys, values, touched.n)

    def _given(self, touched: Touched | None) -> Lives:
        rows = self._below.alive(touched)
        relation, n = rows.relation, len(rows)
        keys, _ = relation.values_of(key.expression for key in self._stage.keys)
        if self._stage.keys and not n:
            return self._nothing()
        if self._stage.keys:
            codes, first_ones = encode(keys, n)
        else:
            codes, first_ones = np.zeros(n, np.int64), np.zeros(1, np.int64)
        placed = cut(rows, codes, len(first_ones), self.way)
        pieces = placed.pieces
        calls = Calls(relation, placed, self._limits)
        first_rows = calls.firsts() if self._stage.keys and self.ordered else None
        kept = self._there(calls.counts(), first_rows)
        of_keys = np.repeat(first_ones, np.diff(pieces.starts)) if first_rows is None else first_rows
        columns = [with_one_zero(key.take(of_keys[kept])) for key in keys]
        columns += [calls.column(call).take(kept) for call in self._stage.calls]
        return Lives(Relation(columns, len(kept)), pieces.begins[kept], pieces.ends[kept])

    def _there(self, counts: Int64Array, first_rows: Int64Array | None) -> Int64Array:
        """The pieces that have a row, in order."""
        if not self._stage.keys:
            return np.arange(len(counts))
        kept = np.flatnonzero(counts > 0)
        return kept if first_rows is None else kept[np.argsort(first_rows[kept], kind="stable")]
