"""Keys as numbers: rows whose keys are equal get the same int64, in every index of a shape.

A key of one column that is a number already stands for itself: integers, decimals, instants, dates, booleans,
doubles by their bits, with one NaN and one zero. Strings are numbered as they first come, and so are keys of
several columns. Numbers are given back when no row has them any more: :meth:`KeyCodes.compact` gives those
that are left new ones.

Cost: O(rows); for strings one look-up a distinct string of a batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from engine.kernels import intervals, key_table
from engine.model.batch import BoolArray, Column, Int64Array
from engine.model.capacities import USUAL, Capacities
from engine.model.string_table import StringTable
from engine.model.types import Kind, Type

TABLE_MIN = 1_024
NO_NULL: BoolArray = np.zeros(0, np.bool_)


@dataclass(frozen=True, slots=True)
class NumberedKeys:
    """keys: int64[n]; null: bool[n], where any part of the key is NULL, of no length where none is."""

    keys: Int64Array
    null: BoolArray


def kind_of(types: Sequence[Type]) -> tuple[str, ...]:
    """What keys must have in common to be numbered together: INTEGER and BIGINT are one."""
    return tuple("INTEGER" if one.is_integer else f"{one.kind.value}({one.scale})" for one in types)


class KeyCodes:
    """Numbers for keys of one kind. One writer."""

    def __init__(self, kinds: Sequence[str], capacities: Capacities = USUAL) -> None:
        self._strings = [StringTable(capacities) if kind.startswith("STRING") else None for kind in kinds]
        self._pairs = [NumberPairs(capacities) for _ in kinds[1:]]

    @property
    def given(self) -> int:
        """How many numbers were given since the last compaction, of the sort that was given most."""
        lengths = [len(strings) for strings in self._strings if strings is not None]
        return max(lengths + [len(pairs) for pairs in self._pairs], default=0)

    @property
    def is_plain(self) -> bool:
        """Whether keys stand for themselves."""
        return not self._pairs and self._strings[0] is None

    def number(self, columns: Sequence[Column]) -> NumberedKeys:
        """The numbers of n rows."""
        null = NO_NULL
        for column in columns:
            if column.valid is not None:
                null = ~column.valid if not len(null) else null | ~column.valid
        keys = self._plain(0, columns[0])
        for place, pairs in enumerate(self._pairs, 1):
            keys = pairs.number(keys, self._plain(place, columns[place]))
        return NumberedKeys(keys, null)

    def _plain(self, place: int, column: Column) -> Int64Array:
        if (strings := self._strings[place]) is not None:
            return column.codes_in(strings).astype(np.int64)
        if column.type.kind is Kind.DOUBLE:
            keys = np.empty(len(column), np.int64)
            values = np.ascontiguousarray(column.values)
            intervals.keys_of_doubles(values, values.view(np.int64), keys)
            return keys
        return column.values.astype(np.int64, copy=False)

    def compact(self, used: Int64Array) -> Int64Array:
        """Forget all numbers but these, distinct and ascending; returns the new number of each."""
        keys = used
        lefts, pieces = list[tuple[Int64Array, Int64Array]](), list[Int64Array]()
        for pairs in reversed(self._pairs):
            one, other = pairs.parts(keys)
            keys, inverse = np.unique(one, return_inverse=True)
            lefts.append((inverse, other))
        keys = self._compacted(0, keys)
        for place, (inverse, other) in enumerate(reversed(lefts)):
            pieces = [keys[inverse], self._compacted(place + 1, other)]
            self._pairs[place] = NumberPairs()
            keys = self._pairs[place].number(*pieces)
        return keys

    def _compacted(self, place: int, keys: Int64Array) -> Int64Array:
        strings = self._strings[place]
        if strings is None:
            return keys
        used, inverse = np.unique(keys, return_inverse=True)
        self._strings[place] = strings.only(used)
        renewed: Int64Array = np.arange(len(used))[inverse]
        return renewed

    @property
    def nbytes(self) -> int:
        held = sum(strings.nbytes for strings in self._strings if strings is not None)
        return held + sum(pairs.nbytes for pairs in self._pairs)


class NumberPairs:
    """Pairs of numbers and their own numbers 0, 1, 2, ..."""

    def __init__(self, capacities: Capacities = USUAL) -> None:
        room = capacities.first(TABLE_MIN)
        self._ones = np.empty(room, np.int64)
        self._others = np.empty(room, np.int64)
        self._table = np.full(4 * room, key_table.EMPTY, np.int32)
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def number(self, ones: Int64Array, others: Int64Array) -> Int64Array:
        """The number of each pair."""
        if self._count + len(ones) > len(self._ones):
            self._grow(2 * (self._count + len(ones)))
        numbers = np.empty(len(ones), np.int64)
        self._count = key_table.number_pairs(
            ones, others, self._ones, self._others, self._table, self._count, numbers
        )
        return numbers

    def parts(self, numbers: Int64Array) -> tuple[Int64Array, Int64Array]:
        """Both numbers of each of the pairs with these numbers."""
        return self._ones[numbers], self._others[numbers]

    def _grow(self, room: int) -> None:
        ones, others = self._ones[: self._count], self._others[: self._count]
        self._ones, self._others = np.empty(room, np.int64), np.empty(room, np.int64)
        self._table = np.full(1 << (2 * room - 1).bit_length(), key_table.EMPTY, np.int32)
        numbers = np.empty(self._count, np.int64)
        self._count = key_table.number_pairs(ones, others, self._ones, self._others, self._table, 0, numbers)

    @property
    def nbytes(self) -> int:
        return self._ones.nbytes + self._others.nbytes + self._table.nbytes
