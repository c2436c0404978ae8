"""How many rows of an answer are equal, so that which copy of a row comes or goes can be told.

The second of two equal rows is copy 2, whichever came first; when one of them goes, copy 2 does.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from engine.dataflow.arrangements.word_table import WordTable
from engine.dataflow.arrangements.words import NULL_BITS, Words
from engine.dataflow.columns import KeyNumbers
from engine.model.batch import Column, Int32Array, Int64Array
from engine.model.capacities import USUAL, Capacities
from engine.model.changes import Weights
from engine.model.types import Type

OWNER_SHIFT = 32
"""Bits below the owner in the last word of a row; they say which columns are NULL."""


class CopyCounts:
    """Counts the copies of the rows in the answers of some queries. One writer."""

    def __init__(self, types: Sequence[Type], capacities: Capacities = USUAL) -> None:
        self._words = Words(types, capacities)
        self._has_room = len(self._words.types) % NULL_BITS <= OWNER_SHIFT
        """Whether the last word of a row has room for whose it is; else that is a word of its own."""
        self._table = WordTable(self._words.width + (not self._has_room), capacities)
        """Gives ids to tuples: the words of a row with its owner."""
        self._counts: Int64Array = np.zeros(self._table.capacity, np.int64)
        self._numbers: KeyNumbers[str] = KeyNumbers()

    def number(
        self, columns: Sequence[Column], query_ids: Sequence[str], owners: Int32Array, weights: Weights
    ) -> Int32Array:
        """int32[n]: which copy each change brings or takes away. n changes, in the order in which they are.
        owners: whose each is, a place among query_ids.
        """
        n, whose = len(owners), np.flatnonzero(np.bincount(owners))
        numbers = np.zeros(len(query_ids), np.int64)
        numbers[whose] = [self._numbers.number(query_ids[place]) for place in whose.tolist()]
        rows = self._words.encode(columns, n)
        if not self._has_room:
            rows = np.hstack([rows, np.zeros((n, 1), np.int64)])
        if numbers.any():
            rows[:, -1] |= numbers[owners] << OWNER_SHIFT
        copies, self._counts = self._table.number_copies(rows, weights, self._counts)
        self._shrink()
        return copies

    def _shrink(self) -> None:
        if self._words.is_wasteful(len(self._table)):
            self._words.shrink(self._table.words, self._table.used())
            self._table.renew()

    def leave(self, query_id: str) -> None:
        """A query goes. O(rows of all)."""
        if query_id not in self._numbers:
            return
        number = self._numbers.number(query_id)
        self._numbers.give_back(number)
        ids = self._table.used()
        ids = ids[self._table.words[ids, -1] >> OWNER_SHIFT == number]
        self._table.release(ids)
        self._shrink()

    @property
    def nbytes(self) -> int:
        return self._words.nbytes + self._table.nbytes + self._counts.nbytes

    def _check(self) -> None:
        self._table._check()
        assert bool((self._counts[self._table.used()] > 0).all())


def grown(counts: Int64Array, room: int) -> Int64Array:
    """As long as is needed, with zeros."""
    if len(counts) >= room:
        return counts
    longer = np.zeros(room, np.int64)
    longer[: len(counts)] = counts
    return longer
