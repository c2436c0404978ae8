"""Indexes of keys: where the newest row of each stands, and the row before it of the same key.

An *index* over one input holds for the ordinals from ``first`` on ``keys``, int64, and ``back``, int32: how
many ordinals before a row the last row of the same key stands, 0 where none does, UNKNOWN where the key is
NULL, ABSENT where the row is not in the index: nobody wants it. Its ``table`` finds the newest row of a key:
int64[size, 2], (key, ordinal or EMPTY), open addressing in a power of two, so that a key and where it leads
lie side by side. Chains run from newest to oldest: whoever walks one stops at the first row that is too old.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from engine.kernels.compiled import kernel

Int32Array = npt.NDArray[np.int32]
Int64Array = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

EMPTY = -1
UNKNOWN = -1
ABSENT = -2

_MIX = 0x9E3779B97F4A7C15


@kernel
def home(key: int, mask: int) -> int:
    """Where the search for a key begins."""
    mixed = np.uint64(key) * np.uint64(_MIX)
    return np.int64((mixed ^ (mixed >> np.uint64(32))) & np.uint64(mask))  # type: ignore[return-value]


@kernel
def insert(
    coming: Int64Array,
    null: BoolArray,
    begin: int,
    table: Int64Array,
    used: int,
    base: int,
    first: int,
    ordinal: int,
    keys: Int64Array,
    back: Int32Array,
) -> tuple[int, int]:
    """Put rows ``begin`` and on into an index, until its table is half full.

    coming: int64[n], the keys of ordinals ``ordinal``, ordinal + 1, ...; null: bool[n], or of no length where
    none is. base: rows below it are gone. keys, back: of the ordinals from ``first`` on, written.
    Returns (the first row that is not in, the keys that the table holds then). O(n).
    """
    mask = table.shape[0] - 1
    limit = table.shape[0] >> 1
    has_null = null.shape[0] > 0
    for row in range(begin, coming.shape[0]):
        here = ordinal + row
        key = coming[row]
        keys[here - first] = key
        if has_null and null[row]:
            back[here - first] = UNKNOWN
            continue
        place = home(key, mask)
        while table[place, 1] != EMPTY and table[place, 0] != key:
            place = (place + 1) & mask
        before = table[place, 1]
        if before == EMPTY:
            if used >= limit:
                return row, used
            table[place, 0] = key
            used += 1
        back[here - first] = here - before if before >= base else 0
        table[place, 1] = here
    return coming.shape[0], used


class SomeRows(NamedTuple):
    """coming, null: of the rows at ``ordinals``, int64[n], ascending, as :func:`insert` has them."""

    coming: Int64Array
    null: BoolArray
    ordinals: Int64Array


class Index(NamedTuple):
    """table, keys, back: see the module. Rows below ``base`` are gone, keys and back begin with ``first``."""

    table: Int64Array
    keys: Int64Array
    back: Int32Array
    base: int
    first: int


@kernel
def insert_some(rows: SomeRows, begin: int, index: Index, used: int, steps: int) -> tuple[int, int, int]:
    """Put some rows, from the one at ``begin`` on, into an index, which may have later rows of their keys:
    where it has, their chains are walked, so many steps in all.

    Returns (the first row that is not in, the keys that the table holds then, the steps that are left): it
    ends early where the table is half full, or no step is left. O(n + steps).
    """
    coming, null, ordinals = rows
    table, keys, back, base, first = index
    mask = table.shape[0] - 1
    limit = table.shape[0] >> 1
    has_null = null.shape[0] > 0
    for row in range(begin, coming.shape[0]):
        here = ordinals[row]
        key = coming[row]
        keys[here - first] = key
        if has_null and null[row]:
            back[here - first] = UNKNOWN
            continue
        place = home(key, mask)
        while table[place, 1] != EMPTY and table[place, 0] != key:
            place = (place + 1) & mask
        newest = table[place, 1]
        if newest == EMPTY:
            if used >= limit:
                return row, used, steps
            table[place, 0] = key
            used += 1
        if newest < here:
            back[here - first] = here - newest if newest >= base else 0
            table[place, 1] = here
            continue
        after = newest
        behind = back[after - first]
        while behind > 0 and after - behind > here and after - behind >= base:
            if steps <= 0:
                return row, used, 0
            steps -= 1
            after -= behind
            behind = back[after - first]
        older = after - behind if behind > 0 else EMPTY
        back[here - first] = here - older if older >= base else 0
        back[after - first] = after - here
    return coming.shape[0], used, steps


@kernel
def count_live(table: Int64Array, base: int) -> int:
    """How many keys have a row at or above base."""
    live = 0
    for place in range(table.shape[0]):
        if table[place, 1] >= base:
            live += 1
    return live


@kernel
def move_live(table: Int64Array, base: int, other: Int64Array) -> None:
    """Put the keys with a row at or above base, not negative, into another table with room for them."""
    mask = other.shape[0] - 1
    for place in range(table.shape[0]):
        if table[place, 1] >= base:
            there = home(table[place, 0], mask)
            while other[there, 1] != EMPTY:
                there = (there + 1) & mask
            other[there, 0] = table[place, 0]
            other[there, 1] = table[place, 1]


@kernel
def number_pairs(
    ones: Int64Array,
    others: Int64Array,
    known_ones: Int64Array,
    known_others: Int64Array,
    table: Int32Array,
    known: int,
    out: Int64Array,
) -> int:
    """out[i]: the number of the pair (ones[i], others[i]); pairs that are not known get known, known + 1, ...

    known_ones, known_others: the pairs by number, with room for all that come. table: numbers or EMPTY, a
    power of two, larger than they are many. Returns how many are known then. O(n).
    """
    mask = table.shape[0] - 1
    for i in range(ones.shape[0]):
        one, other = ones[i], others[i]
        place = home(one * 31 + other, mask)
        while table[place] != EMPTY and (
            known_ones[table[place]] != one or known_others[table[place]] != other
        ):
            place = (place + 1) & mask
        if table[place] == EMPTY:
            table[place] = known
            known_ones[known] = one
            known_others[known] = other
            known += 1
        out[i] = table[place]
    return known
