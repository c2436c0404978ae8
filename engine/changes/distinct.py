"""DISTINCT over rows that come and go: of equal rows the first that is there.

A value is there while any of its rows is. When the first goes and another takes its place, the one row ends
and the other begins. Cost: O(rows of the values that were touched), hashing, and a sort of those that move.
"""

from __future__ import annotations

import numpy as np

from engine.changes.calls import firsts
from engine.changes.lives import Input, Lives, Touched, Way
from engine.changes.pieces import cut
from engine.language.expressions import Column as ColumnOf
from engine.model.types import Kind
from engine.operators.distinct import with_plain_zeros
from engine.operators.keys import encode


class Distincts:
    """What DISTINCT gives."""

    def __init__(self, below: Input) -> None:
        self._below = below
        self._changed: Lives | None = None
        self._all: Lives | None = None

    @property
    def way(self) -> Way:
        return self._below.way

    @property
    def ordered(self) -> bool:
        return self._below.ordered

    def changed(self) -> Lives:
        """The rows that come or go on the way."""
        if self._changed is None:
            moved = self._below.changed()
            keys = [
                (ColumnOf(place, "", column.type), column)
                for place, column in enumerate(moved.relation.columns)
                if column.type.kind is not Kind.ARRAY
            ]
            touched = Touched(tuple(key for key, _ in keys), tuple(column for _, column in keys), len(moved))
            self._changed = self.alive(touched).changing(self.way) if len(moved) else moved
        return self._changed

    def alive(self, touched: Touched | None = None) -> Lives:
        """All rows, or those that equal one of ``touched``."""
        if touched is not None and self._all is None and all(isinstance(k, ColumnOf) for k in touched.keys):
            return self._first_ones(self._below.alive(touched))
        if self._all is None:
            self._all = self._first_ones(self._below.alive())
        return self._all if touched is None else self._all.where(touched.among(self._all.relation))

    def _first_ones(self, rows: Lives) -> Lives:
        n = len(rows)
        codes, groups = encode(rows.relation.columns, n)
        if len(groups) == n:
            return Lives(with_plain_zeros(rows.relation), rows.begins, rows.ends)
        placed = cut(rows, codes, len(groups), self.way)
        pieces, first = placed.pieces, firsts(placed, placed.staying())
        there = np.flatnonzero(first >= 0)
        first, begins, ends = first[there], pieces.begins[there], pieces.ends[there]
        begun = np.flatnonzero(
            np.concatenate([[True], (first[1:] != first[:-1]) | (begins[1:] != ends[:-1])])
        )
        ended = np.concatenate([begun[1:] - 1, [len(first) - 1]])
        order = np.argsort(first[begun], kind="stable")
        begun, ended = begun[order], ended[order]
        return Lives(with_plain_zeros(rows.relation.take(first[begun])), begins[begun], ends[ended])
