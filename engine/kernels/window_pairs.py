"""Pairs of rows of two streams under windows of many sizes, from one store a stream.

Rows stand in the order of time. A row enters all windows at its own instant and leaves each when that has
passed it, so a store keeps it once, and a window is a bound on its age. Who accepts a row is one of few sets
of columns, held as runs of words: the numbers of the words that are not 0, ascending, and their bits.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from engine.kernels.bits import bit_of
from engine.kernels.compiled import borrowing, step

Int32Array = npt.NDArray[np.int32]
Int64Array = npt.NDArray[np.int64]
UInt64Array = npt.NDArray[np.uint64]

NOBODY = -1


class RowsStored(NamedTuple):
    """Rows of one stream, by place."""

    at: Int64Array
    """Instants of entry, in halves, ascending."""
    key: Int32Array
    """Numbers of their keys."""
    before: Int32Array
    """The last place before with the same key; NOBODY, or one that was let go of."""
    accepted: Int32Array
    """The set of columns that accept a row."""
    first: Int32Array
    """By key: the last place with it; NOBODY, or one that was let go of."""


class WordRuns(NamedTuple):
    """Sets of columns: the words of set i are those from starts[i] to ends[i]."""

    starts: Int64Array
    ends: Int64Array
    words: Int32Array
    bits: UInt64Array


class BothStreams(NamedTuple):
    """The rows of the near stream and of the far one, and the sets of columns that accept them. Far rows from
    far_low to far_high take part.
    """

    near: RowsStored
    far: RowsStored
    far_low: int
    far_high: int
    near_sets: WordRuns
    far_sets: WordRuns


class HeldFor(NamedTuple):
    """For how many halves of a ms windows hold a row, of the near stream and of the far one."""

    near: Int64Array
    far: Int64Array


class PairsOut(NamedTuple):
    """Pairs of places, as they are found; the owners of pair i end at ends[i]."""

    near: Int32Array
    far: Int32Array
    valid_from: Int64Array
    valid_to: Int64Array
    ends: Int64Array
    owners: Int32Array


class WindowExits(NamedTuple):
    """Which rows of the near stream leave which size of window: those from low to high one of ``size``."""

    size: Int32Array
    low: Int64Array
    high: Int64Array


@borrowing
def link(low: int, high: int, rows: RowsStored) -> None:
    """The rows of these places follow those before them. O(n)."""
    for place in range(low, high):
        key = rows.key[place]
        rows.before[place] = rows.first[key]
        rows.first[key] = place


@step
def _owners_staying(
    both: BothStreams,
    row: int,
    other: int,
    held: HeldFor,
    near_age: int,
    far_age: int,
    owners: Int32Array,
    filled: int,
) -> int:
    """The columns that accept both rows, and whose windows hold rows of these ages. Return where they end;
    NOBODY: there is no room.
    """
    near, far = both.near_sets, both.far_sets
    one, one_end = near.starts[both.near.accepted[row]], near.ends[both.near.accepted[row]]
    two, two_end = far.starts[both.far.accepted[other]], far.ends[both.far.accepted[other]]
    while one < one_end and two < two_end:
        if near.words[one] < far.words[two]:
            one += 1
        elif near.words[one] > far.words[two]:
            two += 1
        else:
            if owners.shape[0] - filled < 64:
                filled = NOBODY
                break
            bits = near.bits[one] & far.bits[two]
            while bits != 0:
                lowest = bits & (~bits + np.uint64(1))
                column = near.words[one] * 64 + bit_of(lowest)
                if held.near[column] > near_age and held.far[column] > far_age:
                    owners[filled] = np.int32(column)
                    filled += 1
                bits ^= lowest
            one += 1
            two += 1
    return filled


@borrowing
def staying(
    begin: int,
    end: int,
    both: BothStreams,
    held: HeldFor,
    most: HeldFor,
    until: int,
    out: PairsOut,
) -> tuple[int, int]:
    """The pairs of near rows, from place ``begin`` to ``end``, and far ones that are there at an instant,
    with the columns for whose windows they are. Return the place that there was no
    room for (end: none), and how many pairs of those before it there are.

    held: by column. most: int64[1], the widest windows. O(rows + partners * words of their sets + owners).
    """
    near, far, far_low = both.near, both.far, both.far_low
    count, filled = 0, 0
    for row in range(begin, end):
        near_age, before = until - near.at[row], count
        if most.near[0] <= near_age:
            continue
        other = far.first[near.key[row]]
        while other >= far_low:
            far_age = until - far.at[other]
            if most.far[0] <= far_age:
                break
            if other < both.far_high:
                if count == out.near.shape[0]:
                    return row, before
                stop = _owners_staying(both, row, other, held, near_age, far_age, out.owners, filled)
                if stop == NOBODY:
                    return row, before
                if stop > filled:
                    out.near[count], out.far[count] = row, other
                    out.valid_from[count] = max(near.at[row], far.at[other])
                    out.valid_to[count] = np.iinfo(np.int64).max
                    out.ends[count] = filled = stop
                    count += 1
            other = far.before[other]
    return end, count


@step
def _owners_leaving(
    both: BothStreams, row: int, other: int, columns: WordRuns, size: int, owners: Int32Array, filled: int
) -> int:
    """The columns of a size that accept both rows; as :func:`_owners_staying`."""
    near, far = both.near_sets, both.far_sets
    one, one_end = near.starts[both.near.accepted[row]], near.ends[both.near.accepted[row]]
    two, two_end = far.starts[both.far.accepted[other]], far.ends[both.far.accepted[other]]
    for place in range(columns.starts[size], columns.ends[size]):
        word = columns.words[place]
        while one < one_end and near.words[one] < word:
            one += 1
        while two < two_end and far.words[two] < word:
            two += 1
        if one == one_end or two == two_end:
            break
        if near.words[one] != word or far.words[two] != word:
            continue
        if owners.shape[0] - filled < 64:
            filled = NOBODY
            break
        bits = columns.bits[place] & near.bits[one] & far.bits[two]
        while bits != 0:
            lowest = bits & (~bits + np.uint64(1))
            owners[filled] = np.int32(word * 64 + bit_of(lowest))
            filled += 1
            bits ^= lowest
    return filled


@borrowing
def leaving(
    task: int,
    begin: int,
    tasks: WindowExits,
    both: BothStreams,
    columns: WordRuns,
    held: HeldFor,
    last: bool,
    out: PairsOut,
) -> tuple[int, int, int]:
    """The pairs that end since near rows leave their windows, the far ones being there until then, or longer
    (last: or just as long). Return the task and place that there was no room for, and how many pairs of those
    before them there are.

    begin: the place that the first task goes on at. columns: those of each size of windows. held: by size.
    O(rows of all tasks + partners * words of a size).
    """
    near, far, far_low = both.near, both.far, both.far_low
    count, filled = 0, 0
    while task < tasks.size.shape[0]:
        size = tasks.size[task]
        for row in range(max(begin, tasks.low[task]), tasks.high[task]):
            before = count
            end = near.at[row] + held.near[size]
            other = far.first[near.key[row]]
            while other >= far_low:
                if far.at[other] < end:
                    lasts = far.at[other] + held.far[size]
                    if lasts < end or (lasts == end and not last):
                        break
                    if count == out.near.shape[0]:
                        return task, row, before
                    stop = _owners_leaving(both, row, other, columns, size, out.owners, filled)
                    if stop == NOBODY:
                        return task, row, before
                    if stop > filled:
                        out.near[count], out.far[count] = row, other
                        out.valid_from[count] = max(near.at[row], far.at[other])
                        out.valid_to[count] = end
                        out.ends[count] = filled = stop
                        count += 1
                other = far.before[other]
        task, begin = task + 1, 0
    return task, 0, count
