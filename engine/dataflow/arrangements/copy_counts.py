"""How many rows of an answer are equal, so that which copy of a row comes or goes can be told.

The second of two equal rows is copy 2, whichever came first; when one of them goes, copy 2 does.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from engine.dataflow.arrangements.pairs import Pairs
from engine.dataflow.columns import Numbers
from engine.kernels.copies import number_copies
from engine.model.batch import Column, Int32Array, Int64Array
from engine.model.changes import Weights
from engine.model.types import Type


class CopyCounts:
    """Of the answers of some queries. One writer."""

    def __init__(self, types: Sequence[Type]) -> None:
        self._rows = Pairs(types)
        self._counts: Int64Array = np.zeros(self._rows.capacity, np.int64)
        self._numbers: Numbers[str] = Numbers()

    def number(
        self, columns: Sequence[Column], query_ids: Sequence[str], owners: Int32Array, weights: Weights
    ) -> Int32Array:
        """int32[n]: which copy each change brings or takes away. n changes, in the order in which they are.
        owners: whose each is, a place among query_ids.
        """
        whose, places = np.unique(owners, return_inverse=True)
        numbers = np.array([self._numbers.number(query_ids[place]) for place in whose.tolist()], np.int32)
        ids = self._rows.of(self._rows.number_keys(columns, len(owners)), numbers[places])
        self._counts = grown(self._counts, self._rows.capacity)
        copies = np.empty(len(owners), np.int32)
        number_copies(ids.astype(np.int64), weights, self._counts, copies)
        self._rows.release(np.unique(ids[self._counts[ids] == 0]))
        return copies

    def leave(self, query_id: str) -> None:
        """A query goes. O(rows of all)."""
        if query_id not in self._numbers:
            return
        number = self._numbers.number(query_id)
        self._numbers.give_back(number)
        ids = self._rows.used()
        ids = ids[self._rows.places_of(ids) == number]
        self._counts[ids] = 0
        self._rows.release(ids)

    @property
    def nbytes(self) -> int:
        return self._rows.nbytes + self._counts.nbytes

    def _check(self) -> None:
        self._rows._check()
        assert bool((self._counts[self._rows.used()] > 0).all())


def grown(counts: Int64Array, room: int) -> Int64Array:
    """As long as is needed, with zeros."""
    if len(counts) >= room:
        return counts
    longer = np.zeros(room, np.int64)
    longer[: len(counts)] = counts
    return longer
