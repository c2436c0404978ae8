"""Words of match bits that lie in chunks here and there in memory.

A *block* of up to eight words is given by ``at``, int64[chunks], the addresses of its chunks, and ``used``,
int64[chunks], how many of its words each of them has. Chunk c holds rows c * rows to (c + 1) * rows - 1 of
each word, one word after another, uint64 each. Rows of a word that a chunk does not have are zero. Whoever
calls keeps the chunks alive.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numba.np import numpy_support

from engine.kernels.bits import bit_of, ones
from engine.kernels.compiled import kernel

Int32Array = npt.NDArray[np.int32]
Int64Array = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]

carray: Any = numpy_support.carray

_WORD: Any = types.CPointer(types.uint64)  # type: ignore[no-untyped-call]


@intrinsic
def _typed_pointer(typingctx: Any, address: Any) -> Any:
    """An address as a pointer to uint64."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], ir.IntType(64).as_pointer())

    return _WORD(types.int64), generate


_pointer: Any = _typed_pointer


@kernel
def column_at(address: int, rows: int, word: int, first: int, last: int) -> Words:
    """Rows first .. last-1 of a word of the chunk at an address."""
    column: Words = carray(_pointer(address + 8 * (rows * word + first)), (last - first,))
    return column


@kernel
def rows_with_bit(
    at: Int64Array, used: Int64Array, rows: int, place: int, first: int, last: int, out: Int64Array
) -> int:
    """Write the places of rows first .. last-1 in which bit (place & 63) of word (place >> 6) is set,
    ascending; return how many. out: int64[>= last - first].
    """
    word, shift, one = place >> 6, np.uint64(place & 63), np.uint64(1)
    count = 0
    for chunk in range(first // rows, -(-last // rows)):
        begin = chunk * rows
        low, high = max(first, begin), min(last, begin + rows)
        if used[chunk] > word:
            column = column_at(at[chunk], rows, word, low - begin, high - begin)
            for i in range(high - low):
                out[count] = low + i
                count += int((column[i] >> shift) & one)
    return count


@kernel
def count_bit(at: Int64Array, used: Int64Array, rows: int, place: int, first: int, last: int) -> int:
    """How many of rows first .. last-1 have the bit set."""
    word, shift, one = place >> 6, np.uint64(place & 63), np.uint64(1)
    count = np.uint64(0)
    for chunk in range(first // rows, -(-last // rows)):
        begin = chunk * rows
        low, high = max(first, begin), min(last, begin + rows)
        if used[chunk] > word:
            column = column_at(at[chunk], rows, word, low - begin, high - begin)
            for i in range(high - low):
                count += (column[i] >> shift) & one
    return int(count)


@kernel
def read(at: Int64Array, used: Int64Array, rows: int, word: int, first: int, out: Words) -> None:
    """out[i] = row first + i of a word."""
    last = first + out.shape[0]
    for chunk in range(first // rows, -(-last // rows)):
        begin = chunk * rows
        low, high = max(first, begin), min(last, begin + rows)
        if used[chunk] > word:
            column = column_at(at[chunk], rows, word, low - begin, high - begin)
            for i in range(high - low):
                out[low - first + i] = column[i]
        else:
            out[low - first : high - first] = 0


@kernel
def write(at: Int64Array, rows: int, word: int, first: int, bits: Words, mask: np.uint64) -> None:
    """Rows from ``first`` on of a word, which their chunks have, take the masked bits of these."""
    last = first + bits.shape[0]
    m = np.uint64(mask)
    for chunk in range(first // rows, -(-last // rows)):
        begin = chunk * rows
        low, high = max(first, begin), min(last, begin + rows)
        column = column_at(at[chunk], rows, word, low - begin, high - begin)
        for i in range(high - low):
            column[i] = (column[i] & ~m) | (bits[low - first + i] & m)


@kernel
def end(at: Int64Array, used: Int64Array, rows: int, word: int, places: Int64Array, ended: Words) -> None:
    """Rows at places[i] of a word, as far as their chunks have it, lose the bits of ended[i]."""
    for i in range(places.shape[0]):
        chunk = places[i] // rows
        if word < used[chunk]:
            row = places[i] - chunk * rows
            column_at(at[chunk], rows, word, row, row + 1)[0] &= ~ended[i]


@kernel
def zero(address: int, rows: int, words: int, last_word: int, first: int, last: int) -> None:
    """Rows first .. last-1 of words ``words`` .. last_word-1 of a chunk become zeros."""
    for word in range(words, last_word):
        column_at(address, rows, word, first, last)[:] = 0


PAGE_WORDS = 512


@kernel
def touch(address: int, words: int) -> None:
    """Let the system find memory for so many words."""
    for first in range(0, words, PAGE_WORDS):
        column_at(address, words, 0, first, first + 1)[0] = 0


@kernel
def unite(at: Int64Array, used: Int64Array, rows: int, first: int, step: int, out: Words) -> None:
    """out[i] takes the bits of all words of row first + i * step besides its own."""
    for i in range(out.shape[0]):
        row = first + i * step
        chunk = row // rows
        row -= chunk * rows
        for word in range(used[chunk]):
            out[i] |= column_at(at[chunk], rows, word, row, row + 1)[0]


SAMPLE_RUN = 32
"""Rows read together when bits are sampled: some lines one after another cost little more than one."""


@kernel
def sample(at: Int64Array, used: Int64Array, rows: int, n: int, runs: int) -> int:
    """An estimate of how many bits are set in rows below n of all words, from so many runs of rows of each
    word of each chunk. Exact where the runs would cover all rows.
    """
    total = 0
    for chunk in range(-(-n // rows)):
        here = min(rows, n - chunk * rows)
        for word in range(used[chunk]):
            column = column_at(at[chunk], rows, word, 0, here)
            if runs * SAMPLE_RUN >= here:
                total += _bits_in(column)
                continue
            found = 0
            for i in range(runs):
                first = (here - SAMPLE_RUN) * i // max(1, runs - 1)
                found += _bits_in(column[first : first + SAMPLE_RUN])
            total += found * here // (runs * SAMPLE_RUN)
    return total


@kernel
def _bits_in(column: Words) -> int:
    total = np.uint64(0)
    for row in range(column.shape[0]):
        total += ones(column[row])
    return int(total)


@kernel
def pairs(
    at: Int64Array,
    used: Int64Array,
    rows: int,
    masks: Words,
    names: Int32Array,
    first: int,
    last: int,
    found_rows: Int64Array,
    found_names: Int32Array,
) -> int:
    """Write row and name of every masked bit that is set in rows first .. last-1; return how many there are,
    whether or not there is room.

    masks: uint64[8], of the words of the block. names: int32[512], of its places. found_rows, found_names:
    [room].
    """
    one, count, room = np.uint64(1), 0, found_rows.shape[0]
    for chunk in range(first // rows, -(-last // rows)):
        begin = chunk * rows
        low, high = max(first, begin), min(last, begin + rows)
        for word in range(used[chunk]):
            if masks[word] == 0:
                continue
            column = column_at(at[chunk], rows, word, low - begin, high - begin)
            for i in range(high - low):
                bits = column[i] & masks[word]
                while bits != 0:
                    if count < room:
                        lowest = bits & (~bits + one)
                        found_rows[count] = low + i
                        found_names[count] = names[64 * word + bit_of(lowest)]
                    count += 1
                    bits &= bits - one
    return count


@kernel
def pairs_of_rows(
    at: Int64Array,
    used: Int64Array,
    rows: int,
    masks: Words,
    names: Int32Array,
    wanted: Int64Array,
    found_places: Int64Array,
    found_names: Int32Array,
) -> int:
    """Write, for some rows of many blocks, the row's place in ``wanted`` and the name of every masked bit
    that is set, row by row; return how many there are, whether or not there is room.

    at, used: int64[blocks, chunks]. masks: uint64[8 * blocks]. names: int32[512 * blocks].
    """
    one, count, room = np.uint64(1), 0, found_places.shape[0]
    for place in range(wanted.shape[0]):
        chunk = wanted[place] // rows
        row = wanted[place] - chunk * rows
        for block in range(at.shape[0]):
            for word in range(used[block, chunk]):
                mask = masks[8 * block + word]
                if mask == 0:
                    continue
                bits = column_at(at[block, chunk], rows, word, row, row + 1)[0] & mask
                while bits != 0:
                    if count < room:
                        lowest = bits & (~bits + one)
                        found_places[count] = place
                        found_names[count] = names[512 * block + 64 * word + bit_of(lowest)]
                    count += 1
                    bits &= bits - one
    return count


@kernel
def pairs_of_lists(
    starts: Int64Array,
    places: npt.NDArray[np.uint16],
    mask: np.uint64,
    names: Int32Array,
    first: int,
    last: int,
    found_rows: Int64Array,
    found_names: Int32Array,
) -> int:
    """Write row and name as :func:`pairs` does, for one word that is stored as row lists
    (:mod:`engine.store.matches.row_lists`). names: int32[64].
    """
    count, room = 0, found_rows.shape[0]
    for bit in range(64):
        if (np.uint64(mask) >> np.uint64(bit)) & np.uint64(1) == 0:
            continue
        low, high = starts[bit], starts[bit + 1]
        while low < high:
            middle = (low + high) >> 1
            if places[middle] < first:
                low = middle + 1
            else:
                high = middle
        while low < starts[bit + 1] and places[low] < last:
            if count < room:
                found_rows[count] = places[low]
                found_names[count] = names[bit]
            count += 1
            low += 1
    return count


@kernel
def masks_of(places: Int32Array, masks: Words, names: Int32Array, name_of: Int32Array) -> None:
    """masks: uint64[words], zeros, get the bit of each place >= 0; name_of[place] = its name."""
    for i in range(places.shape[0]):
        place = places[i]
        if place >= 0:
            masks[place >> 6] |= np.uint64(1) << np.uint64(place & 63)
            name_of[place] = names[i]
