"""How many rows of an answer are equal, so that which copy of a row comes or goes can be told.

The second of two equal rows is copy 2, whichever came first; when one of them goes, copy 2 does. Only how
many there are is kept, under the row's fingerprint (:mod:`engine.kernels.fingerprints`): some 30 bytes a row
and query, whatever its columns hold.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from engine.changes.equality import double_bits
from engine.dataflow.columns import KeyNumbers
from engine.kernels import fingerprints as kernels
from engine.kernels.fingerprints import Slots, Uint64Array
from engine.model.batch import BoolArray, Column, Int32Array, Int64Array
from engine.model.capacities import USUAL, Capacities
from engine.model.changes import Weights
from engine.model.string_table import buffers_of
from engine.model.types import Kind

ROOM_MIN = 256
GROWTH = 1.25
FULL = 0.75
"""The share of slots that may be filled."""
SPARSE = 0.25
"""Fewer slots are filled: the table is made smaller."""
NOBODY = -1


class CopyCounts:
    """Counts the copies of the rows in the answers of some queries. One writer."""

    def __init__(self, capacities: Capacities = USUAL) -> None:
        self._room_min = capacities.first(ROOM_MIN)
        self._slots = _slots(self._room_min)
        self._used: Int64Array = np.zeros(1, np.int64)
        self._numbers: KeyNumbers[str] = KeyNumbers()
        self._seeds = np.random.SeedSequence().generate_state(4, np.uint64)
        """Where the two chains begin, and those of strings. From the system's entropy, on which no answer
        depends: nobody can choose rows that are taken for one.
        """

    def number(
        self, columns: Sequence[Column], query_ids: Sequence[str], owners: Int32Array, weights: Weights
    ) -> Int32Array:
        """int32[n]: which copy each change brings or takes away. n changes, in the order in which they are.
        owners: whose each is, a place among query_ids.
        """
        n, whose = len(owners), np.flatnonzero(np.bincount(owners))
        numbers = np.zeros(len(query_ids), np.int32)
        numbers[whose] = [self._numbers.number(query_ids[place]) for place in whose.tolist()]
        theirs = numbers[owners]
        first, second = self._fingerprints(columns, theirs)
        copies = np.empty(n, np.int32)
        done = 0
        while True:
            most = int(FULL * len(self._slots.first))
            done = kernels.number_copies(
                first, second, theirs, weights, done, self._slots, self._used, most, copies
            )
            if done == n:
                break
            self._move(int(GROWTH * len(self._slots.first)) + 2)
        if self._used[0] < SPARSE * len(self._slots.first) and len(self._slots.first) > 2 * self._room_min:
            self._move(int(self._used[0] * GROWTH / FULL))
        return copies

    def leave(self, query_id: str) -> None:
        """A query goes. O(rows of all)."""
        if query_id not in self._numbers:
            return
        number = self._numbers.number(query_id)
        self._numbers.give_back(number)
        self._move(len(self._slots.first), number)

    def _move(self, room: int, without: int = NOBODY) -> None:
        """All rows get other slots, so many at least; those of an owner go."""
        into = _slots(max(room, self._room_min))
        self._used[0] = kernels.move(self._slots, into, without)
        self._slots = into

    def _fingerprints(self, columns: Sequence[Column], owners: Int32Array) -> tuple[Uint64Array, Uint64Array]:
        """uint64[n] each. Values that nothing tells apart have the same: NULL is NULL, NaN is NaN, and 0.0 is
        another value than -0.0.
        """
        n = len(owners)
        chains = np.full(n, self._seeds[0], np.uint64), np.full(n, self._seeds[1], np.uint64)
        whose = owners.astype(np.int64)
        for chain in chains:
            kernels.mix(whose, _NO_NULL, chain)
        for column in columns:
            null = _nulls(column)
            for chain, words in zip(chains, self._words(column), strict=True):
                kernels.mix(words, null, chain)
        return chains

    def _words(self, column: Column) -> list[Int64Array]:
        """int64[n] for each chain: a word of each value; of strings, of their bytes by the chain's seed."""
        if column.type.kind is not Kind.STRING:
            double = column.type.kind is Kind.DOUBLE
            return 2 * [double_bits(column.values) if double else column.values.astype(np.int64)]
        assert column.dictionary is not None
        offsets, data = buffers_of(column.dictionary)
        words = [np.empty(len(column), np.int64) for _ in range(2)]
        for seed, out in zip(self._seeds[2:], words, strict=True):
            kernels.string_words(offsets, data, column.values, seed, out)
        return words

    @property
    def nbytes(self) -> int:
        return sum(each.nbytes for each in self._slots)

    def _check(self) -> None:
        assert int((self._slots.held > 0).sum()) == int(self._used[0]) < len(self._slots.held)
        assert bool((self._slots.held >= 0).all())
        assert kernels.misplaced(self._slots) == 0


_NO_NULL: BoolArray = np.zeros(0, np.bool_)


def _nulls(column: Column) -> BoolArray:
    """bool[n], or bool[0] where no row is NULL."""
    if column.type.kind is Kind.NULL:
        return np.ones(len(column), np.bool_)
    return _NO_NULL if column.valid is None else ~column.valid


def _slots(room: int) -> Slots:
    size = room + 2
    return Slots(
        np.zeros(size, np.uint64),
        np.zeros(size, np.uint32),
        np.zeros(size, np.int32),
        np.zeros(size, np.int32),
    )
