"""Which queries of a join still want a row, as marks: a word a row, a bit for one or more queries.

A slot of a Query SteM has a mark, the bits of the queries that it is of. A row has the union of the marks of
the slots that accept it; a row that many slots accept has every bit instead, so that such rows cost no more
to mark than to pass over. A combination is wanted where the marks of all its parts have a bit in common.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from engine.kernels.bits import bit_of, ones
from engine.kernels.chunks import column_at
from engine.kernels.compiled import kernel
from engine.kernels.joins import load64

Int32Array = npt.NDArray[np.int32]
Int64Array = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]
RowNumbers = npt.NDArray[np.uint16]
Words = npt.NDArray[np.uint64]

EVERY = 0xFFFFFFFFFFFFFFFF
MANY = 8
"""A row that more slots of one word accept is marked with every bit."""
STRIP = 64
"""Rows whose words of a block are united before single bits are looked at."""

# Columns of an input's marks: the address of those that are, of those that were, of those that came, and the
# ordinal of the first row of all three.
NOW, BEFORE, CAME, FIRST = range(4)
MARK_COLUMNS = 4


@kernel
def mark_dense(
    at: Int64Array,
    used: Int64Array,
    rows: int,
    masks: Words,
    names: Int32Array,
    marks: Words,
    first: int,
    out: Words,
) -> None:
    """out[i] takes the marks of all masked places that accept row first + i of a block, as
    :mod:`engine.kernels.chunks` has them.

    masks: uint64[8]. names: int32[512], the slot of each place. marks: uint64[slots]. O(rows * words).
    """
    every, one = np.uint64(EVERY), np.uint64(1)
    last = first + out.shape[0]
    united = np.zeros(STRIP, np.uint64)
    start = first
    while start < last:
        chunk = start // rows
        begin = chunk * rows
        stop = min(last, start + STRIP, begin + rows)
        n = stop - start
        settled = True
        for i in range(n):
            settled = settled and out[start - first + i] == every
            united[i] = 0
        if settled:
            start = stop
            continue
        for word in range(used[chunk]):
            mask = masks[word]
            if mask != 0:
                column = column_at(at[chunk], rows, word, start - begin, stop - begin)
                for i in range(n):
                    united[i] |= column[i] & mask
        for i in range(n):
            mark = out[start - first + i]
            if united[i] == 0 or mark == every:
                continue
            for word in range(used[chunk]):
                if masks[word] == 0:
                    continue
                row = start - begin + i
                bits = column_at(at[chunk], rows, word, row, row + 1)[0] & masks[word]
                if ones(bits) > MANY:
                    mark = every
                    break
                while bits != 0:
                    lowest = bits & (~bits + one)
                    mark |= marks[names[64 * word + bit_of(lowest)]]
                    bits &= bits - one
            out[start - first + i] = mark
        start = stop


@kernel
def mark_pairs(
    rows: RowNumbers, slots: Int32Array, upto: Int64Array, marks: Words, first: int, out: Words
) -> None:
    """out[row - first] takes the mark of the slot of each pair whose row is in range, at or above
    upto[slot]. upto: int64[slots], as marks. O(pairs).
    """
    last = first + out.shape[0]
    for i in range(rows.shape[0]):
        row, slot = int(rows[i]), slots[i]
        if first <= row < last and slot < marks.shape[0] and row >= upto[slot]:
            out[row - first] |= marks[slot]


@kernel
def common(ordinals: Int64Array, first: int, marks: Words, bits: np.uint64) -> np.uint64:
    """Which of these bits all of some rows have. marks: of the ordinals from ``first`` on."""
    found = np.uint64(bits)
    for i in range(ordinals.shape[0]):
        found &= marks[ordinals[i] - first]
        if found == 0:
            break
    return found


@kernel
def keep_wanted(
    parts: Int32Array,
    begin: int,
    count: int,
    origin: Int64Array,
    marks: Int64Array,
    came: int,
    others: int,
) -> int:
    """Leave those of the composites begin .. count-1 that somebody wants, in order; returns where they end.

    marks: int64[inputs, MARK_COLUMNS]. came: -1; or an input: of composites that somebody wants now and
    nobody wanted before, those with a row that marks came to of this input, and of none of the inputs
    others .. came-1. O(composites).
    """
    inputs = origin.shape[0]
    at = begin
    for c in range(begin, count):
        now = before = np.uint64(EVERY)
        for j in range(inputs):
            place = (parts[c, j] + origin[j] - marks[j, FIRST]) << 3
            now &= np.uint64(load64(marks[j, NOW] + place))
            if came >= 0:
                before &= np.uint64(load64(marks[j, BEFORE] + place))
                if others <= j <= came and (load64(marks[j, CAME] + place) != 0) != (j == came):
                    now = np.uint64(0)
        if now == 0 or (came >= 0 and before != 0):
            continue
        for j in range(inputs):
            parts[at, j] = parts[c, j]
        at += 1
    return at
