"""EXCEPT ALL for 64 queries at a time: which left rows are in the answers, as bits.

Of a query that has D left rows of a value more than right rows, the last D left ones are in its answer
(:mod:`engine.kernels.word_chains`). So a row that enters or leaves changes D and moves the border of an
answer by one entry, or changes D alone.

All that happens at one instant is one change: what is told is the difference of bits before and after. A
*record* says from when until when an entry was in the answers of some queries. ``told`` is the last one of
an entry in this turn, ``below`` the one under each. ``exits`` is when a row is known to leave: if exits are
not told, a record ends then, and an entry that leaves so needs no other.

Cost: O(planes) an event and cell, that of the border, and for a row that is not the last of its value, those
behind it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from engine.kernels.bits import ones
from engine.kernels.compiled import borrowing, step
from engine.kernels.word_chains import (
    LEFT,
    NO_BITS,
    NONE,
    Cells,
    ChainEntries,
    Order,
    Touched,
    above_zero,
    answer_of,
    at_least_zero,
    bring_in,
    link,
    lower_counts,
    push_out,
    raise_counts,
    set_borders,
    touch,
    unlink,
)

BoolArray = npt.NDArray[np.bool_]
Int8Array = npt.NDArray[np.int8]
Int32Array = npt.NDArray[np.int32]
Int64Array = npt.NDArray[np.int64]
UInt64Array = npt.NDArray[np.uint64]

NEVER = -(1 << 63)
FOREVER = (1 << 63) - 1

FILLED, LEFT_DONE, RIGHT_DONE, ENTERED, PREMATURE, ROOM, NUMBERED, STATES = range(8)
"""Places of ``Records.state``: how many records there are; the events that are done; rows that came into
answers; those that left them before the exit of their own; the room that there has to be for the next
instant; the number of the next entry that comes.
"""


class WordMoves(NamedTuple):
    """Rows of an input that enter and leave: at, rows, signs of each event, by instant; row r is in the cells
    of items[starts[r]:starts[r + 1]], entries of left rows and else cells, for the queries of ``bits``.
    """

    at: Int64Array
    rows: Int64Array
    signs: Int8Array
    starts: Int64Array
    items: Int32Array
    bits: UInt64Array


class Records(NamedTuple):
    """int32 entries and below, uint64 bits, int64 instants; touched: the entries of an instant."""

    entries: Int32Array
    bits: UInt64Array
    valid_from: Int64Array
    valid_to: Int64Array
    below: Int32Array
    touched: Touched
    state: Int64Array


@step
def _move_left(
    entry: int, sign: int, order: Order, held: ChainEntries, cells: Cells, made: Records
) -> tuple[np.uint64, np.uint64]:
    """A left row enters a cell, or leaves it: (queries into whose answers the last row outside comes, queries
    from whose answers the first one goes out).
    """
    cell, bits = held.cells[entry], held.bits[entry]
    comes = goes = NO_BITS
    if sign > 0:
        held.numbers[entry] = made.state[NUMBERED]
        made.state[NUMBERED] += 1
        link(entry, order, held, cells)
        touch(entry, held, made.touched)
        comes = at_least_zero(cells.planes, cell, bits)
        raise_counts(cells.planes, cell, bits)
        inside = answer_of(entry, comes, order, held, cells)
        held.inside[entry] = inside
        comes ^= inside
    else:
        touch(entry, held, made.touched)
        goes = above_zero(cells.planes, cell, bits & ~held.inside[entry])
        lower_counts(cells.planes, cell, bits)
        unlink(entry, held, cells)
    return comes, goes


@step
def _count_right(cell: int, bits: np.uint64, sign: int, cells: Cells) -> tuple[np.uint64, np.uint64]:
    """A right row enters a cell, or leaves it: what :func:`_move_left` returns."""
    comes = goes = NO_BITS
    if sign > 0:
        goes = above_zero(cells.planes, cell, bits)
        lower_counts(cells.planes, cell, bits)
    else:
        comes = at_least_zero(cells.planes, cell, bits)
        raise_counts(cells.planes, cell, bits)
    return comes, goes


@step
def _move(
    moves: WordMoves,
    event: int,
    of_left: bool,
    order: Order,
    held: ChainEntries,
    cells: Cells,
    made: Records,
) -> None:
    """An event happens."""
    row, sign = moves.rows[event], moves.signs[event]
    for place in range(moves.starts[row], moves.starts[row + 1]):
        item = moves.items[place]
        if of_left:
            cell = held.cells[item]
            comes, goes = _move_left(item, sign, order, held, cells, made)
        else:
            cell = item
            comes, goes = _count_right(item, moves.bits[place], sign, cells)
        if comes != NO_BITS:
            bring_in(cell, comes, order, held, cells, made.touched)
        if goes != NO_BITS:
            push_out(cell, goes, order, held, cells, made.touched)


# --- records --------------------------------------------------------------------------------------


@step
def _record(entry: int, bits: np.uint64, begin: int, end: int, made: Records) -> int:
    n = made.state[FILLED]
    made.entries[n], made.bits[n] = entry, bits
    made.valid_from[n], made.valid_to[n] = begin, end
    made.state[FILLED] += 1
    return int(n)


@step
def _close(entry: int, bits: np.uint64, at: int, order: Order, held: ChainEntries, made: Records) -> None:
    """An entry is in the answers of some queries no more."""
    exit_at = order.exits[held.slots[entry]]
    if at != exit_at and not (held.previous[entry] == LEFT and exit_at == FOREVER):
        made.state[PREMATURE] += int(ones(bits))
    if at == exit_at and not order.tells:
        return
    end = FOREVER if order.tells else exit_at
    record = held.told[entry]
    while record != NONE and bits != NO_BITS:
        hit = made.bits[record] & bits
        if hit != NO_BITS and made.valid_to[record] == end:
            bits ^= hit
            if hit == made.bits[record]:
                made.valid_to[record] = at
            else:
                made.bits[record] ^= hit
                _record(entry, hit, made.valid_from[record], at, made)
        record = made.below[record]
    if bits != NO_BITS:
        _record(entry, bits, NEVER, at, made)


@step
def _tell(at: int, order: Order, held: ChainEntries, made: Records) -> None:
    """What changed at an instant."""
    touched = made.touched
    for place in range(touched.top[0]):
        entry = touched.entries[place]
        now, was = held.inside[entry], held.before[entry]
        held.touched[entry] = False
        if was & ~now != NO_BITS:
            _close(entry, was & ~now, at, order, held, made)
        opened = now & ~was
        if opened != NO_BITS:
            end = FOREVER if order.tells else order.exits[held.slots[entry]]
            record = _record(entry, opened, at, end, made)
            made.below[record] = held.told[entry]
            held.told[entry] = record
            made.state[ENTERED] += int(ones(opened))
    touched.top[0] = 0


@step
def _ahead(moves: WordMoves, event: int, at: int, made: Records) -> int:
    """The first event of a later instant; what those before it need is added up."""
    while event < moves.at.shape[0] and moves.at[event] == at:
        row = moves.rows[event]
        for place in range(moves.starts[row], moves.starts[row + 1]):
            made.state[ROOM] += 1 + 2 * int(ones(moves.bits[place]))
        event += 1
    return event


@step
def _instant(left: WordMoves, i: int, right: WordMoves, j: int) -> int:
    """The earlier one of the next events of two inputs, at least one of which has one."""
    if i == left.at.shape[0]:
        return int(right.at[j])
    if j == right.at.shape[0]:
        return int(left.at[i])
    return int(min(left.at[i], right.at[j]))


@borrowing
def fold(
    left: WordMoves, right: WordMoves, order: Order, held: ChainEntries, cells: Cells, made: Records
) -> bool:
    """Rows of both inputs enter and leave, from the events on that are not done. Return whether all are; else
    there is too little room in ``made``. There are planes for as many more as there are events.
    """
    state = made.state
    while state[LEFT_DONE] < left.at.shape[0] or state[RIGHT_DONE] < right.at.shape[0]:
        i, j = state[LEFT_DONE], state[RIGHT_DONE]
        at = _instant(left, i, right, j)
        state[ROOM] = state[FILLED]
        k, m = _ahead(left, i, at, made), _ahead(right, j, at, made)
        if state[ROOM] > made.entries.shape[0]:
            return False
        for event in range(k - i + m - j):
            of_left = event < k - i
            moves = left if of_left else right
            _move(moves, event + i if of_left else event - k + i + j, of_left, order, held, cells, made)
        _tell(at, order, held, made)
        state[LEFT_DONE], state[RIGHT_DONE] = k, m
    for record in range(state[FILLED]):
        held.told[made.entries[record]] = NONE
    return True


# --- rows that stand ------------------------------------------------------------------------------


@borrowing
def enter(entries: Int32Array, first: int, order: Order, held: ChainEntries, cells: Cells) -> None:
    """Left rows enter, and nobody asks for records; the answers stand after :func:`settle`. first: the number
    of the first.
    """
    for place in range(entries.shape[0]):
        entry = entries[place]
        held.numbers[entry] = first + place
        link(entry, order, held, cells)
        raise_counts(cells.planes, held.cells[entry], held.bits[entry])


@borrowing
def enter_right(of: Int32Array, bits: UInt64Array, cells: Cells) -> None:
    """Right rows enter cells."""
    for place in range(of.shape[0]):
        lower_counts(cells.planes, of[place], bits[place])


@borrowing
def settle(of: Int32Array, bits: UInt64Array, held: ChainEntries, cells: Cells, counts: UInt64Array) -> int:
    """The answers of some queries of cells whose rows entered. counts: uint64[1, P], written. Return how many
    rows they have.
    """
    total = 0
    for place in range(of.shape[0]):
        cell = of[place]
        wanted = above_zero(cells.planes, cell, bits[place])
        for plane in range(counts.shape[1]):
            counts[0, plane] = cells.planes[cell, plane] & wanted
        entry = cells.last[cell]
        while wanted != NO_BITS:
            hit = held.bits[entry] & wanted
            if hit != NO_BITS:
                held.inside[entry] |= hit
                total += int(ones(hit))
                lower_counts(counts, 0, hit)
                left = above_zero(counts, 0, wanted)
                set_borders(cell, entry, wanted ^ left, cells)
                wanted = left
            entry = held.previous[entry]
        cells.outer[cell], cells.inner[cell] = cells.first[cell], cells.last[cell]
    return total


# --- what goes ------------------------------------------------------------------------------------


@borrowing
def drop(of: Int32Array, entries: Int32Array, dropped: UInt64Array, held: ChainEntries, cells: Cells) -> None:
    """Cells have some queries no more; entries of no query leave their chains. of: these cells; entries: all;
    dropped: by cell.
    """
    for cell in of:
        set_borders(cell, NONE, dropped[cell], cells)
        for plane in range(cells.planes.shape[1]):
            cells.planes[cell, plane] &= ~dropped[cell]
    for entry in entries:
        kept = ~dropped[held.cells[entry]]
        held.bits[entry] &= kept
        held.inside[entry] &= kept
        if held.bits[entry] == NO_BITS:
            unlink(entry, held, cells)


@step
def _is_empty(cell: int, cells: Cells) -> bool:
    """Whether a cell has no row: as many left as right ones, and no left one."""
    if cells.first[cell] != NONE:
        return False
    found = NO_BITS
    for plane in range(cells.planes.shape[1]):
        found |= cells.planes[cell, plane]
    return bool(found == NO_BITS)


@borrowing
def empty(some: Int32Array, cells: Cells, out: Int32Array) -> int:
    """Write those of some cells that have no row, each once, however often it is among them; return how many
    there are. O(n).
    """
    count = 0
    for cell in some:
        if _is_empty(cell, cells):
            cells.first[cell] = LEFT
            out[count] = cell
            count += 1
    for place in range(count):
        cells.first[out[place]] = NONE
    return count
