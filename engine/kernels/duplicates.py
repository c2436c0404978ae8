"""Duplicate elimination with the whole input at hand: of each value one of its rows is given, and when that
leaves, another takes its place (Golab and Oezsu, section 5.3.1: the classic form).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from engine.kernels.compiled import borrowing, step
from engine.kernels.distinct import EmittedRows

Int8Array = npt.NDArray[np.int8]
Int32Array = npt.NDArray[np.int32]
Int64Array = npt.NDArray[np.int64]

NOBODY = -1
NEVER = -(1 << 63)
FOREVER = (1 << 63) - 1


class Entries(NamedTuple):
    """Rows of cells, in a chain for each, the youngest first."""

    first: Int32Array
    """By cell: the entry that its chain begins with, or NOBODY."""
    given: Int32Array
    """By cell: the entry that is given, or NOBODY."""
    told: Int64Array
    """By cell: where what is given stands among the rows of this turn, or NOBODY."""
    cell: Int32Array
    """By entry, as all that follow."""
    following: Int32Array
    previous: Int32Array
    valid_to: Int64Array
    """When it leaves, in halves of a ms; FOREVER where that is not known."""


@borrowing
def take(
    entries: Int32Array,
    at: Int64Array,
    enters: Int8Array,
    exits_known: bool,
    rows: Entries,
    given: EmittedRows,
) -> tuple[int, int]:
    """Entries enter (1) and leave (0) in the order of instants, those that enter an instant first. Return how
    many rows are given, and how many entries were looked at. O(events), and the entries of chains that have
    left and were not taken out.

    exits_known: a row is given until its exit, and another from then on; else as long as the value is there,
    with the exit when that is known. given: room for as many rows as events.
    """
    count = visited = 0
    for i in range(entries.shape[0]):
        entry, instant = entries[i], at[i]
        cell = rows.cell[entry]
        if enters[i] == 1:
            head = rows.first[cell]
            rows.following[entry], rows.previous[entry] = head, NOBODY
            if head != NOBODY:
                rows.previous[head] = entry
            rows.first[cell] = entry
            if rows.given[cell] == NOBODY:
                rows.given[cell] = entry
                rows.told[cell] = count
                until = rows.valid_to[entry] if exits_known else FOREVER
                count = _give(cell, instant, until, given, count)
            continue
        _unlink(entry, rows)
        if rows.given[cell] != entry:
            continue
        other = rows.first[cell]
        visited += 1
        rows.given[cell] = other
        if exits_known:
            if other != NOBODY and rows.valid_to[other] > instant:  # else it leaves at this instant, too
                count = _give(cell, instant, rows.valid_to[other], given, count)
        elif other == NOBODY:
            place = rows.told[cell]
            if place != NOBODY:
                given.valid_to[place] = instant
                rows.told[cell] = NOBODY
            else:
                count = _give(cell, NEVER, instant, given, count)
    for i in range(count):
        rows.told[given.cells[i]] = NOBODY
    return count, visited


@step
def _give(cell: int, since: int, until: int, given: EmittedRows, count: int) -> int:
    given.cells[count], given.valid_from[count], given.valid_to[count] = cell, since, until
    return count + 1


@step
def _unlink(entry: int, rows: Entries) -> None:
    before, after = rows.previous[entry], rows.following[entry]
    if before == NOBODY:
        rows.first[rows.cell[entry]] = after
    else:
        rows.following[before] = after
    if after != NOBODY:
        rows.previous[after] = before
