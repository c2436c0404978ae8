"""How long rows of one stream wait for their partner in another: what REFERENCES would promise of a join.

Of one key in 1,024, or of every one, the first row that waits and the last partner are remembered, thousands
at most, and the instants of the last 64 batches, so that a longer wait may be told as less. It is told in
rows of the other stream and in ms, by instants and by its order, as the constraint counts
(:mod:`engine.sources.references`). Keys are numbers, dates or instants of one column.
"""

from __future__ import annotations

from collections import deque
from itertools import islice
from typing import TypeVar

import numpy as np

from engine.kernels import monitoring
from engine.model.batch import Batch, Column, Int64Array
from engine.model.source import SourceName
from engine.sources.needed import Needed

REMEMBERED_MAX = 8_192
"""At least so many, and at most twice as many."""
SAMPLED = 1_023
BATCHES_MAX = 64

Pair = tuple[SourceName, str, SourceName, str]
"""Rows of the first stream refer by a column to rows of the other, by one of its."""

Of = TypeVar("Of")

Some = tuple[Int64Array, Int64Array]
"""Places of rows, and their keys."""


class Waits:
    """How long rows of one pair of streams waited for their match. needed: in rows; longest_ms: None before
    the first match.
    """

    def __init__(self, places: tuple[int, int]) -> None:
        """places: of the columns in their streams."""
        self.needed = Needed()
        self.longest_ms: int | None = None
        self.places = places
        self._waiting: dict[int, int] = {}
        """By key the instant of the first row that waits."""
        self._there: dict[int, tuple[int, int]] = {}
        """By key the place of the target's last row among those that entered, and its instant."""
        self._batches: deque[tuple[int, Int64Array]] = deque(maxlen=BATCHES_MAX)
        """For each of the last batches of the target: how many rows came before, and the instants of its
        rows.
        """
        self._rows = 0
        self._met_by: list[tuple[int, int]] = []
        """For each match of the step at hand: how many rows and ms it was waited for."""

    def refer(self, rows: Batch, some: Some) -> None:
        """Rows of the referring stream entered. O(some)."""
        at, keys = some
        for key, stamp in zip(keys.tolist(), rows.timestamp[at].tolist(), strict=True):
            there = self._there.get(key)
            if there is None:
                self._waiting.setdefault(key, stamp)
            else:
                self._met(stamp, *there)
        self._count()
        self._waiting = _newest(self._waiting)

    def come(self, rows: Batch, some: Some) -> None:
        """Rows of the other stream entered. O(some)."""
        at, keys = some
        first = self._rows
        self._rows += len(rows)
        self._batches.append((first, rows.timestamp))
        found = zip(keys.tolist(), at.tolist(), rows.timestamp[at].tolist(), strict=True)
        for key, place, stamp in found:
            self._there.pop(key, None)
            self._there[key] = first + place, stamp
            waited = self._waiting.pop(key, None)
            if waited is not None:
                self._met(waited, first + place, stamp)
        self._count()
        self._there = _newest(self._there)

    def _met(self, stamp: int, number: int, there_ms: int) -> None:
        """A row of an instant has its partner."""
        k = 0
        if there_ms > stamp:
            k = max(0, number + 1 - self._before(stamp))
        self._met_by.append((k, there_ms - stamp))

    def _before(self, stamp: int) -> int:
        """How many rows of the target lie at or before an instant, which may be too many."""
        first = 0
        for first, stamps in reversed(self._batches):
            if stamps[0] <= stamp:
                return first + int(stamps.searchsorted(stamp, "right"))
        return first

    def _count(self) -> None:
        """The matches of a step."""
        if self._met_by:
            for k, _ in self._met_by:
                self.needed.histogram[k.bit_length()] += 1
            self.needed.saw(max(k for k, _ in self._met_by))
            self.longest_ms = max(self.longest_ms or 0, *(ms for _, ms in self._met_by))
            self._met_by.clear()


def some_of(column: Column, sampled: int) -> Some:
    """Places and keys of a sample of rows, with the same keys in every column. sampled: a mask; keys whose
    hash has one of these bits are left out (1,023: all but one in 1,024). O(rows).
    """
    keys = np.ascontiguousarray(column.values, np.int64)
    at = np.empty(len(keys), np.int64)
    at = at[: monitoring.sampled_places(keys, sampled, at)]
    if column.valid is not None:
        at = at[column.valid[at]]
    return at, keys[at]


def _newest(held: dict[int, Of]) -> dict[int, Of]:
    """As many as are remembered, now and then. O(1), amortised."""
    if len(held) <= 2 * REMEMBERED_MAX:
        return held
    return dict(islice(held.items(), len(held) - REMEMBERED_MAX, None))
