"""Set operations that tell left rows: of each value as many as the answer has, the youngest or the oldest.

A *cell* is one value of one query, an *entry* a left row in a cell. The entries of a cell are a chain in the
order of their rows, and those in the answer are one end of it, up to ``border``: the youngest or the oldest.
How many those are depends on how many rows the cell has left and right
(:func:`engine.kernels.set_copies.size_of`). All that happens at one instant is one change: rows join and
leave their chains first, then the border moves, by at most as many entries as there were events.

A *record* says from when until when an entry was in the answer; ``told`` is the number of its last one,
OUTSIDE of an entry that is not in the answer, and numbers below those of the step are of steps before.

Cost: O(1) an event and cell, and for a row that is not the last of its value, those behind it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from engine.kernels.compiled import borrowing, step
from engine.kernels.set_copies import Moves, count, next_instant, size_of
from engine.kernels.word_order import comes_before

Int32Array = npt.NDArray[np.int32]
Int64Array = npt.NDArray[np.int64]

NONE = -1
OUTSIDE = -1
NEVER = -(1 << 63)
FOREVER = (1 << 63) - 1

ENTERED, PREMATURE = range(2)


class Chains(NamedTuple):
    """words: int64[slots, W], compared word by word, the order of rows.

    By entry: slots, cells, previous and following, int32; told, int64. By cell: first, last and border,
    int32, NONE where there is none; left, right and size, int64.
    """

    words: Int64Array
    slots: Int32Array
    cells: Int32Array
    previous: Int32Array
    following: Int32Array
    told: Int64Array
    first: Int32Array
    last: Int32Array
    border: Int32Array
    left: Int64Array
    right: Int64Array
    size: Int64Array


class RowVersions(NamedTuple):
    """Records: int32[n] slots and cells, int64[n] instants. filled: int64[1], how many there are. stats:
    int64[2], how many rows ENTERED the answer, and how many left it PREMATURE, before they left the input.
    """

    slots: Int32Array
    cells: Int32Array
    valid_from: Int64Array
    valid_to: Int64Array
    filled: Int64Array
    stats: Int64Array


class Form(NamedTuple):
    """size: one of :mod:`engine.kernels.set_copies`. oldest: which end of chains the answer is. base: records
    have numbers from here on.
    """

    size: int
    oldest: bool
    base: int


@step
def _open(entry: int, at: int, base: int, held: Chains, made: RowVersions) -> None:
    """An entry comes into the answer."""
    n = made.filled[0]
    made.slots[n], made.cells[n] = held.slots[entry], held.cells[entry]
    made.valid_from[n], made.valid_to[n] = at, FOREVER
    held.told[entry] = base + n
    made.filled[0] += 1
    made.stats[ENTERED] += 1


@step
def _close(entry: int, at: int, base: int, by_border: bool, held: Chains, made: RowVersions) -> None:
    """An entry leaves the answer, because the border moves or because its row leaves."""
    record = held.told[entry] - base
    held.told[entry] = OUTSIDE
    if record >= 0 and made.valid_from[record] == at:
        made.stats[ENTERED] -= 1
    elif by_border:
        made.stats[PREMATURE] += 1
    if record >= 0:
        made.valid_to[record] = at
        return
    n = made.filled[0]
    made.slots[n], made.cells[n] = held.slots[entry], held.cells[entry]
    made.valid_from[n], made.valid_to[n] = NEVER, at
    made.filled[0] += 1


@step
def _link(entry: int, held: Chains) -> None:
    """An entry joins the chain of its cell."""
    cell = held.cells[entry]
    after, before = NONE, held.last[cell]
    while before != NONE and comes_before(held.slots[entry], held.slots[before], held.words):
        after, before = before, held.previous[before]
    held.previous[entry], held.following[entry] = before, after
    if before == NONE:
        held.first[cell] = entry
    else:
        held.following[before] = entry
    if after == NONE:
        held.last[cell] = entry
    else:
        held.previous[after] = entry


@step
def _unlink(entry: int, held: Chains) -> None:
    cell, before, after = held.cells[entry], held.previous[entry], held.following[entry]
    if before == NONE:
        held.first[cell] = after
    else:
        held.following[before] = after
    if after == NONE:
        held.last[cell] = before
    else:
        held.previous[after] = before


@step
def _inward(entry: int, oldest: bool, held: Chains) -> int:
    """The next entry of the answer, from the border on; NONE behind the last."""
    return int(held.previous[entry] if oldest else held.following[entry])


@step
def _outward(cell: int, oldest: bool, held: Chains) -> int:
    """The entry that comes into the answer next."""
    border = held.border[cell]
    if border == NONE:
        return int(held.first[cell] if oldest else held.last[cell])
    return int(held.following[border] if oldest else held.previous[border])


@step
def _enter(entry: int, at: int, form: Form, held: Chains, made: RowVersions) -> None:
    """A row enters, and with it the answer where its place is inside that."""
    _link(entry, held)
    held.told[entry] = OUTSIDE
    beside = held.following[entry] if form.oldest else held.previous[entry]
    if beside != NONE and held.told[beside] != OUTSIDE:
        _open(entry, at, form.base, held, made)
        held.size[held.cells[entry]] += 1


@step
def _leave(entry: int, at: int, form: Form, held: Chains, made: RowVersions) -> None:
    """A row leaves, and with it the answer where it is in that."""
    cell = held.cells[entry]
    if held.told[entry] != OUTSIDE:
        _close(entry, at, form.base, False, held, made)
        held.size[cell] -= 1
        if held.border[cell] == entry:
            held.border[cell] = _inward(entry, form.oldest, held)
    _unlink(entry, held)


@step
def _move_border(cell: int, at: int, form: Form, held: Chains, made: RowVersions) -> None:
    size = size_of(form.size, held.left[cell], held.right[cell])
    while held.size[cell] < size:
        entry = _outward(cell, form.oldest, held)
        _open(entry, at, form.base, held, made)
        held.border[cell] = entry
        held.size[cell] += 1
    while held.size[cell] > size:
        entry = held.border[cell]
        held.border[cell] = _inward(entry, form.oldest, held)
        _close(entry, at, form.base, True, held, made)
        held.size[cell] -= 1


@step
def _move_borders(moves: Moves, first: int, last: int, form: Form, held: Chains, made: RowVersions) -> None:
    """Move the borders of the cells of some events, all of one instant."""
    for event in range(first, last):
        row, at = moves.rows[event], moves.at[event]
        for pair in range(moves.starts[row], moves.starts[row + 1]):
            _move_border(moves.cells[pair], at, form, held, made)


@borrowing
def fold(left: Moves, entries: Int32Array, right: Moves, form: Form, held: Chains, made: RowVersions) -> None:
    """Rows of both inputs enter and leave; of one instant those that leave stand first. entries: of each pair
    of a left row and a cell. made: with room for three records a pair of a left event and a cell, and one a
    pair of a right event.
    """
    i, j = 0, 0
    while i < left.at.shape[0] or j < right.at.shape[0]:
        at = next_instant(left, i, right, j)
        k, m = count(left, i, at, held.left), count(right, j, at, held.right)
        for event in range(i, k):
            row = left.rows[event]
            for pair in range(left.starts[row], left.starts[row + 1]):
                if left.signs[event] < 0:
                    _leave(entries[pair], at, form, held, made)
                else:
                    _enter(entries[pair], at, form, held, made)
        _move_borders(left, i, k, form, held, made)
        _move_borders(right, j, m, form, held, made)
        i, j = k, m


@borrowing
def enter(entries: Int32Array, held: Chains) -> None:
    """Rows enter, and nobody asks for records; the answer stands after :func:`settle`."""
    for entry in entries:
        _link(entry, held)
        held.told[entry] = OUTSIDE
        held.left[held.cells[entry]] += 1


@borrowing
def settle(cells: Int32Array, form: Form, held: Chains) -> None:
    """The answers of cells whose rows entered."""
    for cell in cells:
        size = size_of(form.size, held.left[cell], held.right[cell])
        while held.size[cell] < size:
            entry = _outward(cell, form.oldest, held)
            held.told[entry] = 0
            held.border[cell] = entry
            held.size[cell] += 1


@borrowing
def listed(cells: Int32Array, oldest: bool, held: Chains, slots: Int32Array, of: Int32Array) -> int:
    """Write the rows of the answer of some cells, and their cells; return how many there are."""
    count = 0
    for cell in cells:
        entry = held.border[cell]
        while entry != NONE:
            slots[count], of[count] = held.slots[entry], cell
            count += 1
            entry = _inward(entry, oldest, held)
    return count


@borrowing
def entries_of(cells: Int32Array, held: Chains, entries: Int32Array) -> int:
    """Write all entries of some cells; return how many there are."""
    count = 0
    for cell in cells:
        entry = held.first[cell]
        while entry != NONE:
            entries[count] = entry
            count += 1
            entry = held.following[entry]
    return count
