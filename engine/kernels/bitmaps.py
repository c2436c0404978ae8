"""Match bits: word columns, ``uint64[rows]`` for each 64 query slots.

Word columns lie ``[word][row]``, so that reading one query is one sequential pass.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from engine.kernels.bits import bit_of
from engine.kernels.chunks import column_at
from engine.kernels.compiled import kernel
from engine.kernels.streaming import stream

Words = npt.NDArray[np.uint64]

EVERY_BIT = 2**64 - 1

BLOCK_ROWS = 1_024
"""Rows a pass stays on before it takes the next word: their pieces and a word's table fit the first cache."""


@kernel
def intersect(
    codes: npt.NDArray[np.uint16],
    tables: Words,
    offsets: npt.NDArray[np.int64],
    pieces: npt.NDArray[np.int64],
    live: Words,
    at: npt.NDArray[np.int64],
    rows: int,
    start: int,
    scratch: Words,
    more: bool,
) -> None:
    """The fused pass of the grouped filters of a block of slots: which of its queries accept each row.

    codes: uint16[groups, n]: the piece of each row in each group. tables: uint64, flat; group g's table
    begins at offsets[g] as [words, pieces[g]]. live: uint64[words], slots in use. at: the chunks of ``rows``
    rows that are written (:mod:`engine.kernels.chunks`); with a = live[w] & AND over g of
    table_g[w, codes[g, r]], row start + r of word w becomes a, or where ``more``, gets a's bits too.
    scratch: uint64[BLOCK_ROWS].
    Cost: n * words * groups loads from tables that stay in cache, 8 bytes written for each row and word.
    """
    # One function with arrays of its own: with steps that cut the tables, one group took 70% longer.
    groups, n = codes.shape
    begin = 0
    while begin < n:
        chunk = (start + begin) // rows
        row = start + begin - chunk * rows
        end = min(n, begin + BLOCK_ROWS, begin + rows - row)
        for w in range(live.shape[0]):
            mask = live[w]
            if mask == 0 and more:
                continue
            target = column_at(at[chunk], rows, w, row, row + end - begin)
            if groups == 0 or mask == 0:
                for r in range(end - begin):
                    scratch[r] = mask
            elif groups == 1:
                t0 = tables[offsets[0] + w * pieces[0] : offsets[0] + (w + 1) * pieces[0]]
                c0 = codes[0, begin:end]
                for r in range(end - begin):
                    scratch[r] = mask & t0[c0[r]]
            else:
                t0 = tables[offsets[0] + w * pieces[0] : offsets[0] + (w + 1) * pieces[0]]
                t1 = tables[offsets[1] + w * pieces[1] : offsets[1] + (w + 1) * pieces[1]]
                c0 = codes[0, begin:end]
                c1 = codes[1, begin:end]
                for r in range(end - begin):
                    scratch[r] = mask & t0[c0[r]] & t1[c1[r]]
                paired = 2
                while paired + 1 < groups:
                    g, h = paired, paired + 1
                    t2 = tables[offsets[g] + w * pieces[g] : offsets[g] + (w + 1) * pieces[g]]
                    t3 = tables[offsets[h] + w * pieces[h] : offsets[h] + (w + 1) * pieces[h]]
                    c2, c3 = codes[g, begin:end], codes[h, begin:end]
                    for r in range(end - begin):
                        scratch[r] &= t2[c2[r]] & t3[c3[r]]
                    paired += 2
                if paired < groups:
                    t4 = tables[
                        offsets[paired] + w * pieces[paired] : offsets[paired] + (w + 1) * pieces[paired]
                    ]
                    c4 = codes[paired, begin:end]
                    for r in range(end - begin):
                        scratch[r] &= t4[c4[r]]
            if more:
                for r in range(end - begin):
                    target[r] |= scratch[r]
            else:
                stream(scratch, target, end - begin)
        begin = end


@kernel
def count_per_bit(column: Words, mask: np.uint64, n: int, counts: npt.NDArray[np.int64]) -> None:
    """counts[b] = number of rows < n with bit b, of the bits of mask; int64[64], overwritten.

    O(n + set bits).
    """
    counts[:] = 0
    one = np.uint64(1)
    kept = np.uint64(mask)
    for row in range(n):
        word = column[row] & kept
        while word != 0:
            lowest = word & (~word + one)
            counts[bit_of(lowest)] += 1
            word ^= lowest


@kernel
def to_row_lists(
    column: Words, mask: np.uint64, n: int, starts: npt.NDArray[np.int64], rows: npt.NDArray[np.uint16]
) -> None:
    """The bits of mask of a word column as ascending row lists, one a bit.

    starts: int64[65], where the list of each bit begins in rows (cumulated counts); rows: uint16[starts[64]].
    n <= 65,536. O(n + set bits).
    """
    cursor = starts[:64].copy()
    one = np.uint64(1)
    kept = np.uint64(mask)
    for row in range(n):
        word = column[row] & kept
        while word != 0:
            lowest = word & (~word + one)
            bit = bit_of(lowest)
            rows[cursor[bit]] = row
            cursor[bit] += 1
            word ^= lowest


@kernel
def from_row_lists(
    starts: npt.NDArray[np.int64], rows: npt.NDArray[np.uint16], first: int, out: Words
) -> None:
    """The inverse of :func:`to_row_lists`, for rows from ``first`` on; out: uint64[n], overwritten."""
    out[:] = 0
    n = out.shape[0]
    for b in range(64):
        bit = np.uint64(1) << np.uint64(b)
        for i in range(starts[b], starts[b + 1]):
            row = np.int64(rows[i]) - first
            if 0 <= row < n:
                out[row] |= bit


@kernel
def put_bit(flags: npt.NDArray[np.uint8], bit: int, target: Words) -> None:
    """target[r] |= flags[r] << bit; flags: uint8[n], 0 or 1."""
    shift = np.uint64(bit)
    for row in range(flags.shape[0]):
        target[row] |= np.uint64(flags[row]) << shift
