"""Duplicate elimination over rows with exits that are known (Golab and Oezsu, section 5.3.1: delta*).

Of each value, a *cell*, two exits are kept: that of the row that is given for it, and the latest of its
duplicates, which takes its place.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from engine.kernels.compiled import kernel, step

Int32Array = npt.NDArray[np.int32]
Int64Array = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

NONE = -(1 << 63)
"""The exit of a value that is not there, of a duplicate that there is not."""


class Exits(NamedTuple):
    """By cell."""

    given: Int64Array
    """When the row that is given leaves, in halves of a ms."""
    latest: Int64Array
    """When the last of its duplicates does, if it stays longer."""
    listed: BoolArray
    """Whether a buffer has the cell, or the list of those that are new."""


class Given(NamedTuple):
    """Rows that are given, as they are found."""

    cells: Int32Array
    valid_from: Int64Array
    valid_to: Int64Array


@kernel
def arrive(
    starts: Int64Array,
    cells: Int32Array,
    valid_from: Int64Array,
    valid_to: Int64Array,
    exits: Exits,
    new: Int32Array,
    given: Given,
) -> tuple[int, int]:
    """Rows arrive, in the order of valid_from; row r is in cells[starts[r]:starts[r + 1]]. Write the cells
    that are not listed, and what is given; return how many each. O(pairs).

    new: as long as cells; given: twice as long.
    """
    n_new, n_given = 0, 0
    for row in range(valid_from.shape[0]):
        at, exit_at = valid_from[row], valid_to[row]
        for pair in range(starts[row], starts[row + 1]):
            cell = cells[pair]
            if not exits.listed[cell]:
                exits.listed[cell] = True
                exits.given[cell] = exits.latest[cell] = NONE
                new[n_new] = cell
                n_new += 1
            n_given = _pass(cell, at, exits, given, n_given)
            if exits.given[cell] == NONE:
                exits.given[cell] = exit_at
                n_given = _give(cell, at, exit_at, given, n_given)
            elif exit_at > exits.given[cell]:
                exits.latest[cell] = max(exits.latest[cell], exit_at)
    return n_new, n_given


@kernel
def expire(cells: Int32Array, until: int, exits: Exits, given: Given) -> tuple[int, int]:
    """The clock passes an instant: what is given in place of rows that leave. Write the cells whose value is
    there after it in front of the others; return how many these are, and how many rows are given. O(n).

    given: as long as cells.
    """
    kept, n_given = 0, 0
    for i in range(cells.shape[0]):
        cell = cells[i]
        n_given = _pass(cell, until, exits, given, n_given)
        if exits.given[cell] != NONE:
            cells[i], cells[kept] = cells[kept], cell
            kept += 1
        else:
            exits.listed[cell] = False
    return kept, n_given


@step
def _pass(cell: int, at: int, exits: Exits, given: Given, n_given: int) -> int:
    """The clock comes to an instant."""
    out = exits.given[cell]
    if out == NONE or out > at:
        return n_given
    exits.given[cell] = NONE
    then = exits.latest[cell]
    if then != NONE:
        n_given = _give(cell, out, then, given, n_given)
        exits.latest[cell] = NONE
        if then > at:
            exits.given[cell] = then
    return n_given


@step
def _give(cell: int, at: int, exit_at: int, given: Given, n_given: int) -> int:
    given.cells[n_given], given.valid_from[n_given], given.valid_to[n_given] = cell, at, exit_at
    return n_given + 1
