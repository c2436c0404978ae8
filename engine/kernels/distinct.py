"""Duplicate elimination over rows with exits that are known (Golab and Oezsu, section 5.3.1: delta*).

Of each value, a *cell*, two exits are kept: that of the row that is given for it, and the latest of its
duplicates, which takes its place.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from engine.kernels.compiled import borrowing, step

Int32Array = npt.NDArray[np.int32]
Int64Array = npt.NDArray[np.int64]

NONE = -(1 << 63)
"""The exit of a value that is not there, of a duplicate that there is not; the entry of a row that was there
before.
"""
FOREVER = (1 << 63) - 1
NOBODY = -1
UNLISTED = -2


GIVEN, LATEST, TOLD, WORDS = 0, 1, 2, 4
"""Columns of the state of cells, int64[cells, WORDS]. GIVEN: when the row that is given leaves, in halves of
a ms. LATEST: when the last of its duplicates leaves, if it stays longer. TOLD: the place of the value among
the rows given on this turn, NOBODY, or UNLISTED: neither a buffer has the cell, nor the list of those that
are new.
"""


class EmittedRows(NamedTuple):
    """Rows that are given, as they are found."""

    cells: Int32Array
    valid_from: Int64Array
    valid_to: Int64Array


@borrowing
def arrive(
    starts: Int64Array,
    cells: Int32Array,
    valid_from: Int64Array,
    valid_to: Int64Array,
    state: Int64Array,
    exits_known: bool,
    new: Int32Array,
    given: EmittedRows,
) -> tuple[int, int]:
    """Rows arrive, in the order of valid_from; row r is in cells[starts[r]:starts[r + 1]]. Write the cells
    that are not listed, and what is given; return how many each. O(pairs).

    exits_known: what is given is the row that stands for a value, with its exit, and another from then on;
    else the value as long as it is there: one that leaves and comes at one instant stays. new: as long as
    cells; given: twice as long.
    """
    n_new, n_given = 0, 0
    for row in range(valid_from.shape[0]):
        at, exit_at = valid_from[row], valid_to[row]
        for pair in range(starts[row], starts[row + 1]):
            cell = cells[pair]
            if state[cell, TOLD] == UNLISTED:
                state[cell, GIVEN] = state[cell, LATEST] = NONE
                state[cell, TOLD] = NOBODY
                new[n_new] = cell
                n_new += 1
            passed = at if exits_known or at == NONE else at - 1  # NONE: before all instants
            n_given = _pass(cell, passed, state, exits_known, given, n_given)
            if state[cell, GIVEN] == NONE:
                state[cell, GIVEN] = exit_at
                if not exits_known:
                    state[cell, TOLD] = n_given
                n_given = _give(cell, at, exit_at if exits_known else FOREVER, given, n_given)
            elif exit_at > state[cell, GIVEN]:
                state[cell, LATEST] = max(state[cell, LATEST], exit_at)
    return n_new, n_given


@borrowing
def expire(
    cells: Int32Array, until: int, state: Int64Array, exits_known: bool, given: EmittedRows, n_given: int
) -> tuple[int, int]:
    """The clock passes an instant, after the rows of a turn arrived, which gave so many rows. Write the cells
    whose value is there after it in front of the others; return how many these are, and how many rows are
    given on the turn. O(n). given: room for one more a cell.
    """
    kept = 0
    for i in range(cells.shape[0]):
        cell = cells[i]
        n_given = _pass(cell, until, state, exits_known, given, n_given)
        state[cell, TOLD] = NOBODY
        if state[cell, GIVEN] != NONE:
            cells[i], cells[kept] = cells[kept], cell
            kept += 1
        else:
            state[cell, TOLD] = UNLISTED
    return kept, n_given


@step
def _pass(cell: int, at: int, state: Int64Array, exits_known: bool, given: EmittedRows, n_given: int) -> int:
    """The clock comes to an instant."""
    out = state[cell, GIVEN]
    if out == NONE or out > at:
        return n_given
    then = state[cell, LATEST]
    state[cell, GIVEN] = state[cell, LATEST] = NONE
    if then != NONE:
        if exits_known:
            n_given = _give(cell, out, then, given, n_given)
        out = then
        if then > at:
            state[cell, GIVEN] = then
            return n_given
    if not exits_known:
        place = state[cell, TOLD]
        state[cell, TOLD] = NOBODY
        if place != NOBODY:
            given.valid_to[place] = out
        else:
            n_given = _give(cell, NONE, out, given, n_given)
    return n_given


@step
def _give(cell: int, at: int, exit_at: int, given: EmittedRows, n_given: int) -> int:
    given.cells[n_given], given.valid_from[n_given], given.valid_to[n_given] = cell, at, exit_at
    return n_given + 1
