"""From rows with lives to the changes that are told: when rows enter and leave, and to whom.

Instants are halves of milliseconds (:mod:`engine.changes.source_interval`): a whole one is told as its
millisecond.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from engine.kernels.compiled import borrowing
from engine.kernels.halves import FAR

Int8Array = npt.NDArray[np.int8]
Int32Array = npt.NDArray[np.int32]
Int64Array = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]


class Events(NamedTuple):
    """int64[n], int64[n], int8[n]: row ``rows[i]`` enters (weight 1) or leaves (-1) at ``at[i]``."""

    at: Int64Array
    rows: Int64Array
    weights: Int8Array


class ItemLists(NamedTuple):
    """One list for each of n things: thing i has items[starts[i]:starts[i + 1]]. starts: int64[n + 1]; items:
    int32.
    """

    starts: Int64Array
    items: Int32Array


@borrowing
def events(begins: Int64Array, ends: Int64Array, since: int, until: int, out: Events) -> int:
    """The rows that leave at an instant t, since < t <= until, then those that enter, both in their order.
    Return how many there are. out: with room for two a row. O(n).
    """
    count = 0
    for row in range(ends.shape[0]):
        if since < ends[row] <= until:
            out.at[count], out.rows[count], out.weights[count] = ends[row], row, -1
            count += 1
    for row in range(begins.shape[0]):
        if since < begins[row] <= until:
            out.at[count], out.rows[count], out.weights[count] = begins[row], row, 1
            count += 1
    return count


@borrowing
def of_columns(owners: ItemLists, wanted: Int32Array, kept: ItemLists) -> int:
    """Copy the lists of ``owners``, columns by row, to ``kept`` without the columns that are not wanted.

    wanted: int32, by column how often it is wanted; a column beyond its end is not. kept: as large as owners.
    Return how many pairs of row and column there are. O(pairs).
    """
    count = 0
    for row in range(owners.starts.shape[0] - 1):
        kept.starts[row] = count
        for pair in range(owners.starts[row], owners.starts[row + 1]):
            column = owners.items[pair]
            kept.items[count] = column
            count += int(column < wanted.shape[0] and wanted[column] > 0)
    kept.starts[owners.starts.shape[0] - 1] = count
    return count


@borrowing
def count(rows: Int64Array, owners: ItemLists, readers: ItemLists, counts: Int64Array) -> None:
    """counts: int64[readers]: more by how many of the rows each reads. owners: of each row the columns that
    it is of; readers: of each column who reads it, of columns beyond nobody. O(changes).
    """
    for row in rows:
        for pair in range(owners.starts[row], owners.starts[row + 1]):
            column = owners.items[pair]
            if column < readers.starts.shape[0] - 1:
                for place in range(readers.starts[column], readers.starts[column + 1]):
                    counts[readers.items[place]] += 1


@borrowing
def hand_out(
    happened: Events, base: int, owners: ItemLists, readers: ItemLists, cursors: Int64Array, told: Events
) -> None:
    """Tell events to those who read their rows, in their order.

    base: added to rows. cursors: int64[readers], where in ``told`` the next change of each is to stand; below
    0: who is not told. O(changes).
    """
    for event in range(happened.at.shape[0]):
        row, at = happened.rows[event], happened.at[event]
        if -2 * FAR < at < 2 * FAR:
            at >>= 1
        for pair in range(owners.starts[row], owners.starts[row + 1]):
            column = owners.items[pair]
            if column < readers.starts.shape[0] - 1:
                for place in range(readers.starts[column], readers.starts[column + 1]):
                    reader = readers.items[place]
                    cursor = cursors[reader]
                    if cursor >= 0:
                        told.at[cursor] = at
                        told.rows[cursor] = base + row
                        told.weights[cursor] = happened.weights[event]
                        cursors[reader] = cursor + 1


@borrowing
def mixed(
    readers: Int32Array, at: Int64Array, weights: Int8Array, places: Int64Array, groups: Int64Array
) -> tuple[int, int]:
    """The changes of those instants at which rows both enter and leave the same reader's answer.

    Changes stand by reader, and of each by instant. places, groups: int64[n], written: their places,
    ascending, and a number that those of one reader and instant have in common. Return (how many they are,
    the most of one reader and instant). O(n).
    """
    n = at.shape[0]
    count, widest, first = 0, 0, 0
    while first < n:
        stop, total = first, 0
        while stop < n and at[stop] == at[first] and readers[stop] == readers[first]:
            total += weights[stop]
            stop += 1
        if abs(total) < stop - first:
            widest = max(widest, stop - first)
            for place in range(first, stop):
                places[count], groups[count] = place, first
                count += 1
        first = stop
    return count, widest
