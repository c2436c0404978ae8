"""Numbers of columns: given to keys, given back, and spread over those that read them."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from typing import Generic, TypeVar

import numpy as np

from engine.dataflow.delta import Delta
from engine.kernels.told import ItemLists
from engine.model.batch import Int32Array, Int64Array
from engine.model.runs import places_of

Key = TypeVar("Key", bound=Hashable)


class KeyNumbers(Generic[Key]):
    """Small numbers for keys. One that is given back is used again."""

    def __init__(self) -> None:
        self._of: dict[Key, int] = {}
        self._keys: dict[int, Key] = {}
        self._free: list[int] = []

    def number(self, key: Key) -> int:
        """That of a key, which gets one where it has none."""
        number = self._of.get(key)
        if number is None:
            number = self._free.pop() if self._free else len(self._of)
            self._of[key] = number
            self._keys[number] = key
        return number

    def __contains__(self, key: Key) -> bool:
        return key in self._of

    def __getitem__(self, number: int) -> Key:
        return self._keys[number]

    def give_back(self, number: int) -> Key:
        """Its key has none any more; returns that."""
        key = self._keys.pop(number)
        del self._of[key]
        self._free.append(number)
        return key


class Readers:
    """Who reads which column. columns: int32[readers], what each of 0, 1, 2, ... reads."""

    def __init__(self, columns: Int32Array) -> None:
        self._order = np.argsort(columns, kind="stable").astype(np.int32)
        width = int(columns.max()) + 1 if len(columns) else 0
        self._starts = np.searchsorted(columns[self._order], np.arange(width + 1))
        self.lists = ItemLists(self._starts, self._order)
        """The readers of each column."""

    def of(self, owners: Int32Array) -> tuple[Int64Array, Int32Array]:
        """(pair, reader) of each reader of the column of a pair, pairs ascending. owners: int32[pairs]."""
        width = len(self._starts) - 1
        pairs = np.flatnonzero(owners < width)
        starts = self._starts[owners[pairs]]
        counts = self._starts[owners[pairs] + 1] - starts
        if len(counts) and counts.min() == counts.max() == 1:
            return pairs, self._order[starts]
        return np.repeat(pairs, counts), self._order[places_of(starts, counts)]


class Over(Readers):
    """Columns that are over others. below: int32, the one that each of ``columns`` is over."""

    def __init__(self, columns: Int32Array, below: Int32Array) -> None:
        super().__init__(below)
        self._columns = columns
        self.below: Int32Array = np.unique(below)
        self._alone: Int32Array | None = None
        """By column below the one that is over it, where that is one each, of 0, 1, 2, ..."""
        if len(below) and len(self.below) == len(below) == int(below.max()) + 1:
            self._alone = np.empty(len(below), np.int32)
            self._alone[below] = columns

    def read(self, owners: Int32Array) -> tuple[Int64Array, Int32Array]:
        """(pair, column) of each column over that of a pair, pairs ascending. owners: int32[pairs]."""
        pairs, readers = self.of(owners)
        return pairs, self._columns[readers]

    def spread(self, delta: Delta) -> Delta:
        """Passes the rows of a delta on to the columns that are over theirs."""
        delta = delta.apart()
        if self._alone is not None and int(delta.owners.max(initial=0)) < len(self._alone):
            return replace(delta, owners=self._alone[delta.owners])
        pairs, columns = self.read(delta.owners)
        return Delta(delta.temporal, np.searchsorted(pairs, delta.starts), columns, delta.ids)
