"""Which rows of two relations may be partners: equal in keys, and within bounds.

The rows of one side are arranged, by keys and then by a value that is bounded, so that the partners of each
row of the other are a range of the arrangement. Finding the ranges is O(n + m), with bounds another
O((n + m) log m); pairs are spelled out from them, in pieces where a condition has yet to be looked at.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from engine.kernels import grouping
from engine.kernels import partners as kernels
from engine.model.batch import BoolArray, Int64Array

PIECE = 16_384
"""Pairs looked at at a time."""

Pairs = tuple[Int64Array, Int64Array]
"""Places of left rows and of right rows, of one length."""


class CandidatePairs(Protocol):
    """Pairs that are not spelled out yet."""

    def count(self) -> int:
        """How many there are."""
        ...

    def pairs(self) -> Pairs:
        """All pairs, by left row and then by right row."""
        ...

    def pieces(self) -> Iterator[Pairs]:
        """All pairs, at most PIECE at a time, each once, in any order."""
        ...

    def arranged(self, pairs: Sequence[Pairs]) -> Pairs:
        """What is left of the pieces, in their order, by left row and then by right row."""
        ...

    def matched(self) -> BoolArray:
        """bool[n]: which left rows have a partner."""
        ...


@dataclass(frozen=True, slots=True)
class PartnerKeys:
    """Keys of two relations as numbers: partners have the same, -1 has none. int64[n], int64[m]; all are
    below ``width``.
    """

    left: Int64Array
    right: Int64Array
    width: int


@dataclass(frozen=True, slots=True)
class Bound:
    """What the values of partners must not go below (lower) or above, or come up to at all (strict).

    values: int64, one for each row of the other side; usable: where there is one.
    """

    values: Int64Array
    usable: BoolArray
    lower: bool
    strict: bool


@dataclass(frozen=True, slots=True)
class BoundedValues:
    """Values of the rows of one side, int64, ``usable`` where there is one; bounds given by the other's.

    of_right: whether it is the right rows that have them.
    """

    of_right: bool
    values: Int64Array
    usable: BoolArray
    bounds: tuple[Bound, ...]


@dataclass(frozen=True, slots=True)
class Ranges:
    """The partners of row r are order[low[r] : high[r]]. by_right: rows are the right ones, and partners the
    left. ascending: whether partners ascend in every range.
    """

    low: Int64Array
    high: Int64Array
    order: Int64Array
    sizes: tuple[int, int]
    by_right: bool = False
    ascending: bool = True

    def count(self) -> int:
        """How many pairs there are."""
        return int((self.high - self.low).sum())

    def pairs(self) -> Pairs:
        """All pairs, by left row and then by right row."""
        total = self.count()
        rows, partners = np.empty(total, np.int64), np.empty(total, np.int64)
        if total:
            kernels.spell(self.low, self.high, self.order, 0, int(self.low[0]), rows, partners)
        return self.arranged([(partners, rows) if self.by_right else (rows, partners)])

    def pieces(self) -> Iterator[Pairs]:
        """At most PIECE pairs at a time, each pair once."""
        row, n, size = 0, len(self.low), min(PIECE, self.count())
        place = int(self.low[0]) if n else 0
        while row < n:
            rows, partners = np.empty(size, np.int64), np.empty(size, np.int64)
            written, row, place = kernels.spell(self.low, self.high, self.order, row, place, rows, partners)
            if written:
                rows, partners = rows[:written], partners[:written]
                yield (partners, rows) if self.by_right else (rows, partners)

    def arranged(self, pairs: Sequence[Pairs]) -> Pairs:
        """Pairs as pieces give them, by left row and then by right row."""
        left, right = joined(pairs)
        if self.ascending and not self.by_right:
            return left, right
        keys = left * self.sizes[1] + right
        keys.sort()
        left = keys // self.sizes[1]
        return left, keys - left * self.sizes[1]

    def matched(self) -> BoolArray:
        """bool[n]: which left rows have a partner."""
        if not self.by_right:
            return self.high > self.low
        return having(self.sizes[0], self.pieces())

    def last(self) -> Ranges:
        """The last partner of each row, where it has one."""
        low = np.maximum(self.low, self.high - 1)
        return Ranges(low, self.high, self.order, self.sizes, self.by_right)


@dataclass(frozen=True, slots=True)
class KnownPairs:
    """Pairs that are known, by left row and then by right row; ``n``: left rows."""

    left: Int64Array
    right: Int64Array
    n: int

    def count(self) -> int:
        """How many there are."""
        return len(self.left)

    def pairs(self) -> Pairs:
        """All pairs."""
        return self.left, self.right

    def pieces(self) -> Iterator[Pairs]:
        """The pairs, at most PIECE at a time."""
        for start in range(0, len(self.left), PIECE):
            yield self.left[start : start + PIECE], self.right[start : start + PIECE]

    def arranged(self, pairs: Sequence[Pairs]) -> Pairs:
        """They are already."""
        return joined(pairs)

    def matched(self) -> BoolArray:
        """bool[n]: which left rows have a partner."""
        return having(self.n, [(self.left, self.right)])


def joined(pairs: Sequence[Pairs]) -> Pairs:
    """One after another."""
    if len(pairs) == 1:
        return pairs[0]
    if not pairs:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    return np.concatenate([left for left, _ in pairs]), np.concatenate([right for _, right in pairs])


def having(n: int, pairs: Iterator[Pairs] | Sequence[Pairs]) -> BoolArray:
    """bool[n]: which left rows occur in pairs."""
    found = np.zeros(n, np.bool_)
    for left, _ in pairs:
        found[left] = True
    return found


def ranges(codes: PartnerKeys, bounded: BoundedValues | None = None) -> Ranges:
    """Pairs that are equal in keys, and whose values keep within the bounds."""
    of_right = bounded is None or bounded.of_right
    held, rows = (codes.right, codes.left) if of_right else (codes.left, codes.right)
    usable = held >= 0 if bounded is None else (held >= 0) & bounded.usable
    order: Int64Array = np.flatnonzero(usable)
    ascending = True
    if bounded is not None:
        values = bounded.values[order]
        if len(values) > 1 and bool((values[1:] < values[:-1]).any()):
            order, ascending = order[np.argsort(values, kind="stable")], False
    low, high, order = _grouped(held, order, rows, codes.width)
    if bounded is not None:
        values = bounded.values[order]
        for bound in bounded.bounds:
            kernels.narrow(values, bound.values, bound.usable, bound.lower, bound.strict, low, high)
    return Ranges(low, high, order, (len(codes.left), len(codes.right)), not of_right, ascending)


def _grouped(
    held: Int64Array, order: Int64Array, rows: Int64Array, width: int
) -> tuple[Int64Array, Int64Array, Int64Array]:
    """The places ``order`` of the held side by code; for each row where those of its code begin and end."""
    if width <= 1:  # 0: no row has a code
        starts = np.array([0, len(order)], np.int64)
    else:
        starts, grouped = np.empty(width + 1, np.int64), np.empty(len(order), np.int64)
        grouping.bring_together(held[order], starts, grouped)
        order = order[grouped]
    low, high = starts[:-1][rows], starts[1:][rows]
    without = rows < 0
    if without.any():
        high[without] = low[without]
    return low, high, order
