"""Whole numbers that were there, beyond RETAIN, as the runs of successive ones that they make up.

Keys that count up, as most do, are one run however many there were, so that each that comes again is told. Of
more runs than there is room for those that went first are forgotten, as of
:class:`engine.sources.past_values.PastValues`, and their values counted.

Cost: O(log runs) a value, O(runs) a time that values went.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from engine.model.batch import BoolArray, Column, Int64Array
from engine.model.types import Kind
from engine.sources.past_values import VALUES_MAX, values_of

WHOLE = frozenset({Kind.INTEGER, Kind.BIGINT, Kind.DECIMAL, Kind.DATE, Kind.TIMESTAMP})
"""Values that are whole numbers."""


@dataclass(frozen=True, slots=True)
class NumberRuns:
    """Disjoint ranges, ascending, with a gap between two of them: int64[runs] each, both ends are in them."""

    first: Int64Array
    last: Int64Array

    @classmethod
    def of(cls, first: Int64Array, last: Int64Array) -> NumberRuns:
        """Returns the runs of ranges in any order, which may overlap. O(n log n)."""
        order = np.argsort(first, kind="stable")
        first, last = first[order], last[order]
        reached = np.maximum.accumulate(last)
        begins = np.ones(len(first), np.bool_)
        begins[1:] = (first[1:] > reached[:-1]) & (first[1:] - 1 != reached[:-1])
        ends = np.flatnonzero(begins)[1:] - 1
        return cls(first[begins], reached[np.append(ends, len(first) - 1)] if len(first) else reached)

    def __len__(self) -> int:
        return len(self.first)

    def united(self, other: NumberRuns) -> NumberRuns:
        """The numbers of both."""
        first = np.concatenate([self.first, other.first])
        return NumberRuns.of(first, np.concatenate([self.last, other.last]))

    def has(self, numbers: Int64Array) -> BoolArray:
        """Which of these are in it, bool[n]."""
        if not len(self):
            return np.zeros(len(numbers), np.bool_)
        at = np.searchsorted(self.first, numbers, side="right") - 1
        found: BoolArray = (at >= 0) & (numbers <= self.last[at])
        return found

    @property
    def count(self) -> int:
        """How many numbers it has."""
        return int((self.last - self.first).sum()) + len(self)

    @property
    def nbytes(self) -> int:
        return self.first.nbytes + self.last.nbytes

    def _check(self) -> None:
        assert bool((self.first <= self.last).all())
        assert bool((self.first[1:] - 1 > self.last[:-1]).all())


_NONE = NumberRuns(np.empty(0, np.int64), np.empty(0, np.int64))


class PastNumbers:
    """The past values of one constraint over one column of whole numbers. One writer. runs_max: how many runs
    it may hold.
    """

    def __init__(self, runs_max: int = VALUES_MAX) -> None:
        self._half = max(1, runs_max // 2)
        self.forgotten = 0
        """Values that are not known any more: one of them that comes again is not told."""
        self._old, self._young = _NONE, _NONE

    def codes(self, columns: Sequence[Column]) -> Int64Array:
        """int64[n]: what :meth:`add` and :meth:`has` take of values: themselves; any where one is NULL."""
        (column,) = columns
        return column.values.astype(np.int64, copy=False)

    def add(self, numbers: Int64Array) -> None:
        """Remember numbers that went."""
        if len(numbers):
            self._unite(NumberRuns.of(numbers, numbers))

    def _unite(self, runs: NumberRuns) -> None:
        self._young = self._young.united(runs)
        if len(self._young) > self._half:
            self.forgotten += self._old.united(self._young).count - self._young.count
            self._old, self._young = self._young, _NONE

    def has(self, numbers: Int64Array) -> BoolArray:
        """Which of these were there, bool[n]."""
        return self._old.has(numbers) | self._young.has(numbers)

    @property
    def nbytes(self) -> int:
        return self._old.nbytes + self._young.nbytes

    # --- the store's side -------------------------------------------------------------------------

    def saved(self, more: Int64Array) -> tuple[bytes, bytes]:
        """(no hashes, the runs) to be saved. more: numbers that are known otherwise."""
        runs = self._old.united(self._young).united(NumberRuns.of(more, more))
        return b"", np.concatenate([runs.first, runs.last]).tobytes()

    def restore(self, hashes: bytes, runs: bytes) -> None:
        """As saved. hashes: of numbers, as :class:`engine.sources.past_values.PastValues` saves them."""
        first, last = np.split(np.frombuffer(runs, np.int64), 2)
        self._unite(NumberRuns.of(first, last))
        self.add(values_of(np.frombuffer(hashes, np.int64)))

    def _check(self) -> None:
        self._old._check()
        self._young._check()
