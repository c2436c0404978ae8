"""The greatest value of windows of many sizes over one stream, from the rows that can still become it.

A row behind which one comes that is no less is the greatest of no window that ends at NOW from then on.
What is left is a *stair*: rows in the order of time whose values fall. The greatest of a window is the first
of the stair that is inside, so one stair serves windows of all sizes. Each row comes and goes once.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from engine.kernels.compiled import borrowing, step

Int32Array = npt.NDArray[np.int32]
Int64Array = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

NONE = -1
NEVER = np.iinfo(np.int64).min
FOREVER = np.iinfo(np.int64).max


class Stairs(NamedTuple):
    """Rows by stair, each in the order of time: those of stair i stand from starts[i] to starts[i + 1]."""

    starts: Int64Array
    at: Int64Array
    """Instants of entry, in halves."""
    word: Int64Array
    """Values; the greatest is looked for."""


class StairWindows(NamedTuple):
    """Windows over stairs: those over stair i stand from starts[i] to starts[i + 1]."""

    starts: Int64Array
    column: Int32Array
    held: Int64Array
    """For how many halves of a ms they hold a row."""


class VersionsOut(NamedTuple):
    """What windows had for their greatest, as it is found: of a column one after the other."""

    column: Int32Array
    word: Int64Array
    """0 where the window was empty."""
    there: BoolArray
    """Whether it was not."""
    valid_from: Int64Array
    valid_to: Int64Array


@borrowing
def join_stairs(old: Stairs, new: Stairs, both: Stairs, greater: Int64Array, left: Stairs) -> int:
    """Rows enter stairs. both: written, of each stair the old rows, then the new ones. greater: written, of
    each of these the place of the next that is no less, the end of its stair where there is none. left:
    written, the stairs as they are then. Return how many rows they have. O(rows).
    """
    end, kept = 0, 0
    both.starts[0] = left.starts[0] = 0
    for stair in range(old.starts.shape[0] - 1):
        first = end
        for source in (old, new):
            for place in range(source.starts[stair], source.starts[stair + 1]):
                both.at[end], both.word[end] = source.at[place], source.word[place]
                end += 1
        both.starts[stair + 1] = end
        for place in range(end - 1, first - 1, -1):
            following = place + 1
            while following < end and both.word[following] < both.word[place]:
                following = greater[following]
            greater[place] = following
        for place in range(first, end):
            if greater[place] == end:
                left.at[kept], left.word[kept] = both.at[place], both.word[place]
                kept += 1
        left.starts[stair + 1] = kept
    return kept


@borrowing
def trim(stairs: Stairs, until: int, left: Stairs) -> int:
    """left: written, the rows that came after an instant. Return how many there are."""
    kept = 0
    left.starts[0] = 0
    for stair in range(stairs.starts.shape[0] - 1):
        for place in range(stairs.starts[stair], stairs.starts[stair + 1]):
            if stairs.at[place] > until:
                left.at[kept], left.word[kept] = stairs.at[place], stairs.word[place]
                kept += 1
        left.starts[stair + 1] = kept
    return kept


@step
def _first_inside(low: int, high: int, both: Stairs, held: int, since: int) -> int:
    """The first row that a window has not lost by an instant, and that may come later; ``high``: none."""
    while low < high:
        middle = (low + high) // 2
        if both.at[middle] + held <= since:
            low = middle + 1
        else:
            high = middle
    return low


@step
def _after(place: int, end: int, both: Stairs, greater: Int64Array, instant: int) -> int:
    """The greatest of the rows behind one that came by an instant; where none did, the next that comes."""
    place += 1
    if place < end and both.at[place] <= instant:
        while greater[place] < end and both.at[greater[place]] <= instant:
            place = greater[place]
    return place


@step
def _at_instant(
    here: int, there: bool, end: int, both: Stairs, greater: Int64Array, held: int, instant: int
) -> tuple[int, bool]:
    """The greatest row of a window, and whether there is one, after all that happens at an instant."""
    while True:
        if not there:
            there = here < end and both.at[here] <= instant
            if not there:
                break
        elif greater[here] < end and both.at[greater[here]] <= instant:
            here = greater[here]
        elif both.at[here] + held <= instant:
            here = _after(here, end, both, greater, instant)
            there = False
        else:
            break
    return here, there


@borrowing
def versions(
    stair: int,
    window: int,
    both: Stairs,
    greater: Int64Array,
    windows: StairWindows,
    since: int,
    until: int,
    out: VersionsOut,
) -> tuple[int, int, int]:
    """What windows have for their greatest from one instant to another, of those where that changes: the
    first version was there before. Return the stair and the window that there was no room for, and how many
    versions of windows before that there are. both, greater: of :func:`join_stairs`.

    stair, window: where to go on. O(windows + versions + rows that are passed over).
    """
    count, room = 0, out.column.shape[0]
    while stair < both.starts.shape[0] - 1:
        first, end = both.starts[stair], both.starts[stair + 1]
        while window < windows.starts[stair + 1]:
            before, held = count, windows.held[window]
            here = _first_inside(first, end, both, held, since)
            there = here < end and both.at[here] <= since
            while there and greater[here] < end and both.at[greater[here]] <= since:
                here = greater[here]
            told, began = here if there else NONE, NEVER
            while True:
                instant = FOREVER
                if there:
                    instant = both.at[here] + held
                    if greater[here] < end:
                        instant = min(instant, both.at[greater[here]])
                elif here < end:
                    instant = both.at[here]
                if instant > until:
                    break
                here, there = _at_instant(here, there, end, both, greater, held, instant)
                if there == (told != NONE) and (not there or both.word[here] == both.word[told]):
                    continue
                if count + 2 > room:
                    return stair, window, before
                out.column[count], out.there[count] = windows.column[window], told != NONE
                out.word[count] = both.word[told] if told != NONE else 0
                out.valid_from[count], out.valid_to[count] = began, instant
                count += 1
                told, began = here if there else NONE, instant
            if count > before:
                out.column[count], out.there[count] = windows.column[window], told != NONE
                out.word[count] = both.word[told] if told != NONE else 0
                out.valid_from[count], out.valid_to[count] = began, FOREVER
                count += 1
            window += 1
        stair += 1
    return stair, window, count
