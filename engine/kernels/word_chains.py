"""Chains of the left rows of a value, and for each of 64 queries where its answer begins in them.

A *word* is 64 columns, a query each. A *cell* is one value in one word, an *entry* a left row in a cell, with
two words of bits: the queries that have the row, and those of them in whose answer it is. ``planes`` count
for each query of a cell how many left rows it has more than right rows, bit by bit (two's complement, the
last plane is the sign): of D more, the last D of the query's entries are in its answer.

The entries of a cell are a chain, in the order of their rows. What is in an answer changes at its *border*,
the first entry in it: the last row outside comes in (:func:`bring_in`), or the first one inside goes out
(:func:`push_out`). In a short chain these are looked for, for all queries at once, from ``outer`` and
``inner`` on: no entry before ``outer`` is in an answer, none behind ``inner`` outside of one. A long one has
a *block*, the border of each query.

Cost: of a short chain, its length at most; of a long one, for each query the entries between two of its own.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from engine.kernels.bits import bit_of
from engine.kernels.compiled import borrowing, step

BoolArray = npt.NDArray[np.bool_]
Int32Array = npt.NDArray[np.int32]
Int64Array = npt.NDArray[np.int64]
UInt64Array = npt.NDArray[np.uint64]

NONE = -1
LEFT = -2
LONG = 192
"""A chain of more entries has a block."""
SHORT = 96
"""A chain of fewer entries has none any more."""

NO_BITS = np.uint64(0)
ONE = np.uint64(1)


class Order(NamedTuple):
    """words: int64[slots, W], compared word by word, the order of rows; exits: int64 by slot, FOREVER of a
    row of which that is not known. at_front: rows that come are the first, as a rule, else the last.
    tells: exits are told.
    """

    words: Int64Array
    exits: Int64Array
    at_front: bool
    tells: bool


class ChainEntries(NamedTuple):
    """By entry. bits, inside: its queries, those in whose answer it is; before: those at the beginning of an
    instant that touched it. numbers: in which order entries came, each another one. previous: LEFT of one
    that left. told: the last record of this turn (:mod:`engine.kernels.except_words`).
    """

    slots: Int32Array
    cells: Int32Array
    bits: UInt64Array
    inside: UInt64Array
    before: UInt64Array
    touched: BoolArray
    numbers: Int64Array
    previous: Int32Array
    following: Int32Array
    told: Int32Array


class Cells(NamedTuple):
    """By cell: the ends of the chain, where borders are looked for and the block, int32, NONE where there is
    none; lengths, int32; planes, uint64[cells, P]. borders: int32[blocks, 64], NONE of an answer without
    rows. free: blocks, the first free[free_count[0]] of which are not in use.
    """

    first: Int32Array
    last: Int32Array
    outer: Int32Array
    inner: Int32Array
    blocks: Int32Array
    lengths: Int32Array
    planes: UInt64Array
    borders: Int32Array
    free: Int32Array
    free_count: Int64Array


class Touched(NamedTuple):
    """int32: entries whose bits an instant changed, top[0] of them."""

    entries: Int32Array
    top: Int64Array


# --- counts ---------------------------------------------------------------------------------------


@step
def raise_counts(planes: UInt64Array, cell: int, bits: np.uint64) -> None:
    """One more for each of these queries."""
    place = 0
    while bits != NO_BITS and place < planes.shape[1]:
        plane = planes[cell, place]
        planes[cell, place] = plane ^ bits
        bits &= plane
        place += 1


@step
def lower_counts(planes: UInt64Array, cell: int, bits: np.uint64) -> None:
    """One less for each of these queries."""
    place = 0
    while bits != NO_BITS and place < planes.shape[1]:
        plane = planes[cell, place]
        planes[cell, place] = plane ^ bits
        bits &= ~plane
        place += 1


@step
def at_least_zero(planes: UInt64Array, cell: int, bits: np.uint64) -> np.uint64:
    """Those of some queries whose count is not below 0."""
    return np.uint64(bits & ~planes[cell, planes.shape[1] - 1])


@step
def above_zero(planes: UInt64Array, cell: int, bits: np.uint64) -> np.uint64:
    """Those of some queries whose count is above 0."""
    wanted = at_least_zero(planes, cell, bits)
    found = NO_BITS
    place = 0
    while found != wanted and place < planes.shape[1] - 1:
        found |= planes[cell, place] & wanted
        place += 1
    return found


# --- chains ---------------------------------------------------------------------------------------


@step
def _is_before(one: int, other: int, order: Order, held: ChainEntries) -> bool:
    """Whether an entry stands before another of its chain."""
    slot, beside, words = held.slots[one], held.slots[other], order.words
    for word in range(words.shape[1]):
        if words[slot, word] != words[beside, word]:
            return bool(words[slot, word] < words[beside, word])
    return bool((held.numbers[one] < held.numbers[other]) != order.at_front)


@borrowing
def link(entry: int, order: Order, held: ChainEntries, cells: Cells) -> None:
    """An entry joins the chain of its cell, in no answer."""
    cell = held.cells[entry]
    if order.at_front:
        before, after = NONE, cells.first[cell]
        while after != NONE and _is_before(after, entry, order, held):
            before, after = after, held.following[after]
    else:
        before, after = cells.last[cell], NONE
        while before != NONE and _is_before(entry, before, order, held):
            before, after = held.previous[before], before
    held.inside[entry] = NO_BITS
    held.previous[entry], held.following[entry] = before, after
    if before == NONE:
        cells.first[cell] = entry
    else:
        held.following[before] = entry
    if after == NONE:
        cells.last[cell] = entry
    else:
        held.previous[after] = entry
    inner = cells.inner[cell]
    if after == NONE or inner == NONE or _is_before(inner, entry, order, held):
        cells.inner[cell] = entry
    cells.lengths[cell] += 1
    if cells.lengths[cell] > LONG and cells.blocks[cell] == NONE:
        _take_block(cell, held, cells)


@borrowing
def unlink(entry: int, held: ChainEntries, cells: Cells) -> None:
    """An entry leaves its chain, and the answers that it is in."""
    cell, before, after = held.cells[entry], held.previous[entry], held.following[entry]
    if cells.blocks[cell] != NONE:
        _give_way(entry, held, cells)
    held.inside[entry] = NO_BITS
    if before == NONE:
        cells.first[cell] = after
    else:
        held.following[before] = after
    if after == NONE:
        cells.last[cell] = before
    else:
        held.previous[after] = before
    if cells.outer[cell] == entry:
        cells.outer[cell] = after
    if cells.inner[cell] == entry:
        cells.inner[cell] = before
    held.previous[entry] = LEFT
    cells.lengths[cell] -= 1
    if cells.lengths[cell] < SHORT and cells.blocks[cell] != NONE:
        cells.free[cells.free_count[0]] = cells.blocks[cell]
        cells.free_count[0] += 1
        cells.blocks[cell] = NONE
        cells.outer[cell], cells.inner[cell] = cells.first[cell], cells.last[cell]


@borrowing
def _take_block(cell: int, held: ChainEntries, cells: Cells) -> None:
    cells.free_count[0] -= 1
    block = cells.free[cells.free_count[0]]
    cells.blocks[cell] = block
    for query in range(64):
        cells.borders[block, query] = NONE
    entry, seen = cells.first[cell], NO_BITS
    while entry != NONE:
        new = held.inside[entry] & ~seen
        seen |= new
        while new != NO_BITS:
            lowest = new & (~new + ONE)
            new ^= lowest
            cells.borders[block, bit_of(lowest)] = entry
        entry = held.following[entry]


@step
def _next_of(entry: int, bit: np.uint64, held: ChainEntries) -> int:
    """The first entry of a query from one on; NONE where there is none."""
    while entry != NONE and held.bits[entry] & bit == NO_BITS:
        entry = held.following[entry]
    return int(entry)


@step
def _give_way(entry: int, held: ChainEntries, cells: Cells) -> None:
    """An entry is the border of no query any more."""
    block, left = cells.blocks[held.cells[entry]], held.inside[entry]
    while left != NO_BITS:
        lowest = left & (~left + ONE)
        left ^= lowest
        query = bit_of(lowest)
        if cells.borders[block, query] == entry:
            cells.borders[block, query] = _next_of(held.following[entry], lowest, held)


# --- borders --------------------------------------------------------------------------------------


@step
def touch(entry: int, held: ChainEntries, touched: Touched) -> None:
    """The bits of an entry are going to change."""
    if not held.touched[entry]:
        held.touched[entry] = True
        held.before[entry] = held.inside[entry]
        touched.entries[touched.top[0]] = entry
        touched.top[0] += 1


@step
def _bring_in_each(cell: int, bits: np.uint64, held: ChainEntries, cells: Cells, touched: Touched) -> None:
    block = cells.blocks[cell]
    while bits != NO_BITS:
        lowest = bits & (~bits + ONE)
        bits ^= lowest
        query = bit_of(lowest)
        border = cells.borders[block, query]
        entry = cells.last[cell] if border == NONE else held.previous[border]
        while held.bits[entry] & lowest == NO_BITS:
            entry = held.previous[entry]
        touch(entry, held, touched)
        held.inside[entry] |= lowest
        cells.borders[block, query] = entry


@borrowing
def bring_in(
    cell: int, bits: np.uint64, order: Order, held: ChainEntries, cells: Cells, touched: Touched
) -> None:
    """The last row outside the answer of each of these queries, which all have one, comes into it."""
    if cells.blocks[cell] != NONE:
        _bring_in_each(cell, bits, held, cells, touched)
        return
    entry = cells.inner[cell]
    while held.bits[entry] == held.inside[entry]:
        entry = held.previous[entry]
    cells.inner[cell] = entry
    last = entry
    while bits != NO_BITS:
        hit = held.bits[entry] & ~held.inside[entry] & bits
        if hit != NO_BITS:
            touch(entry, held, touched)
            held.inside[entry] |= hit
            bits ^= hit
            last = entry
        entry = held.previous[entry]
    outer = cells.outer[cell]
    if outer == NONE or _is_before(last, outer, order, held):
        cells.outer[cell] = last


@step
def _push_out_each(cell: int, bits: np.uint64, held: ChainEntries, cells: Cells, touched: Touched) -> None:
    block = cells.blocks[cell]
    while bits != NO_BITS:
        lowest = bits & (~bits + ONE)
        bits ^= lowest
        query = bit_of(lowest)
        border = cells.borders[block, query]
        touch(border, held, touched)
        held.inside[border] ^= lowest
        cells.borders[block, query] = _next_of(held.following[border], lowest, held)


@borrowing
def push_out(
    cell: int, bits: np.uint64, order: Order, held: ChainEntries, cells: Cells, touched: Touched
) -> None:
    """The first row inside the answer of each of these queries, which all have one, goes out of it."""
    if cells.blocks[cell] != NONE:
        _push_out_each(cell, bits, held, cells, touched)
        return
    entry = cells.outer[cell]
    while held.inside[entry] == NO_BITS:
        entry = held.following[entry]
    cells.outer[cell] = entry
    last = entry
    while bits != NO_BITS:
        hit = held.inside[entry] & bits
        if hit != NO_BITS:
            touch(entry, held, touched)
            held.inside[entry] ^= hit
            bits ^= hit
            last = entry
        entry = held.following[entry]
    inner = cells.inner[cell]
    if inner == NONE or _is_before(inner, last, order, held):
        cells.inner[cell] = last


@step
def answer_of(entry: int, bits: np.uint64, order: Order, held: ChainEntries, cells: Cells) -> np.uint64:
    """For which of some queries an entry that came, and is in no answer yet, stands behind the border."""
    block = cells.blocks[held.cells[entry]]
    found = NO_BITS
    while block != NONE and bits != NO_BITS:
        lowest = bits & (~bits + ONE)
        bits ^= lowest
        border = cells.borders[block, bit_of(lowest)]
        if border != NONE and _is_before(border, entry, order, held):
            found |= lowest
    return found


@step
def set_borders(cell: int, entry: int, bits: np.uint64, cells: Cells) -> None:
    """The answers of these queries begin with an entry; NONE: they have no rows."""
    block = cells.blocks[cell]
    while block != NONE and bits != NO_BITS:
        lowest = bits & (~bits + ONE)
        bits ^= lowest
        cells.borders[block, bit_of(lowest)] = entry
