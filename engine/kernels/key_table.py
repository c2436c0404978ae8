"""Indexes of keys: where the newest row of each stands, and the row before it of the same key.

An *index* over one input holds for the ordinals from ``first`` on ``keys``, int64, and ``back``, int32: how
many ordinals before a row the last row of the same key stands, 0 where none does, UNKNOWN where the key is
NULL, ABSENT where the row is not in the index: nobody wants it. Its ``table`` finds the newest row of a key:
int32[size], how many ordinals from an ``origin`` on it stands, or EMPTY, open addressing in a power of two.
The key is that of the row. Nobody finds rows below ``first`` any more, which are those below ``gone`` = first
- origin as the table counts. Chains run from newest to oldest: whoever walks one stops at the first row that
is too old.
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
def place_of(key: int, table: Int32Array, keys: Int64Array, gone: int) -> int:
    """The place of a key in a table, or the empty one where it would be."""
    mask = table.shape[0] - 1
    place = home(key, mask)
    while table[place] != EMPTY and (table[place] < gone or keys[table[place] - gone] != key):
        place = (place + 1) & mask
    return place


class SomeRows(NamedTuple):
    """coming, null: of the rows at ``ordinals``, int64[n], ascending, as :func:`insert` has them."""

    coming: Int64Array
    null: BoolArray
    ordinals: Int64Array


class Index(NamedTuple):
    """table, gone, keys, back: see the module. Rows below ``base`` are gone, keys and back begin with
    ``first``.
    """

    table: Int32Array
    keys: Int64Array
    back: Int32Array
    base: int
    first: int
    gone: int


@kernel
def insert(
    coming: Int64Array, null: BoolArray, begin: int, index: Index, used: int, ordinal: int
) -> tuple[int, int]:
    """Put rows ``begin`` and on into an index, until its table is half full.

    coming: int64[n], the keys of ordinals ``ordinal``, ordinal + 1, ...; null: bool[n], or of no length where
    none is. used: how many keys the table holds.
    Returns (the first row that is not in, the keys that the table holds then). O(n).
    """
    table, keys, back, base, first, gone = index
    limit = table.shape[0] >> 1
    has_null = null.shape[0] > 0
    for row in range(begin, coming.shape[0]):
        here = ordinal + row - first
        key = coming[row]
        keys[here] = key
        if has_null and null[row]:
            back[here] = UNKNOWN
            continue
        place = place_of(key, table, keys, gone)
        before = EMPTY
        if table[place] == EMPTY:
            if used >= limit:
                return row, used
            used += 1
        else:
            before = int(table[place]) - gone
        back[here] = here - before if before >= base - first else 0
        table[place] = here + gone
    return coming.shape[0], used


@kernel
def insert_some(rows: SomeRows, begin: int, index: Index, used: int, steps: int) -> tuple[int, int, int]:
    """Put some rows, from the one at ``begin`` on, into an index, which may have later rows of their keys:
    where it has, their chains are walked, so many steps in all.

    Returns (the first row that is not in, the keys that the table holds then, the steps that are left): it
    ends early where the table is half full, or no step is left. O(n + steps).
    """
    coming, null, ordinals = rows
    table, keys, back, base, first, gone = index
    limit = table.shape[0] >> 1
    has_null = null.shape[0] > 0
    for row in range(begin, coming.shape[0]):
        here = ordinals[row] - first
        key = coming[row]
        keys[here] = key
        if has_null and null[row]:
            back[here] = UNKNOWN
            continue
        place = place_of(key, table, keys, gone)
        newest = EMPTY
        if table[place] == EMPTY:
            if used >= limit:
                return row, used, steps
            used += 1
        else:
            newest = int(table[place]) - gone
        if newest < here:
            back[here] = here - newest if newest >= base - first else 0
            table[place] = here + gone
            continue
        after = newest
        behind = back[after]
        while behind > 0 and after - behind > here and after - behind >= base - first:
            if steps <= 0:
                return row, used, 0
            steps -= 1
            after -= behind
            behind = back[after]
        older = after - behind if behind > 0 else EMPTY
        back[here] = here - older if older >= base - first else 0
        back[after] = after - here
    return coming.shape[0], used, steps


@kernel
def count_live(table: Int32Array, low: int) -> int:
    """How many keys have a row at or above ``low``, counted as the table counts."""
    live = 0
    for place in range(table.shape[0]):
        if table[place] >= low:
            live += 1
    return live


@kernel
def move_live(table: Int32Array, low: int, gone: int, keys: Int64Array, other: Int32Array) -> None:
    """Put the keys with a row at or above ``low``, at least ``gone``, into another table with room for them,
    whose origin is where keys begin.
    """
    mask = other.shape[0] - 1
    for place in range(table.shape[0]):
        if table[place] >= low:
            row = table[place] - gone
            there = home(keys[row], mask)
            while other[there] != EMPTY:
                there = (there + 1) & mask
            other[there] = row


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
