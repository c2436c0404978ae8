"""Which rows of a partition have to be looked at again where some come and go.

Rows of *runs*, or of stretches of runs, stand run by run in order: those that are there at the end of a turn
and those that left in it, each with its life, begins <= t < ends. A *segment* is a part of it at an instant
at which rows come or go: all rows whose values may change (inner), and those around them that their values
are made of.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from engine.kernels.compiled import borrowing, step

Int32Array = npt.NDArray[np.int32]
Int64Array = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

NEVER = -(1 << 63)
FOREVER = (1 << 63) - 1


class Reach(NamedTuple):
    """How many rows before and behind one that comes or goes may change (low, high), and how many before and
    behind a row its value is made of (before, behind).
    """

    low: int
    high: int
    before: int
    behind: int


class Segments(NamedTuple):
    """int64[n] each: instants, the places from low to high, both included, and of the inner ones."""

    at: Int64Array
    low: Int64Array
    high: Int64Array
    inner_low: Int64Array
    inner_high: Int64Array


class Lives(NamedTuple):
    """By place: int64, the life of a row, and between which places its run is."""

    begins: Int64Array
    ends: Int64Array
    starts: Int64Array
    stops: Int64Array


@step
def _are_peers(one: int, other: int, words: Int64Array, width: int) -> bool:
    same = True
    for word in range(width):
        same = same and words[one, word] == words[other, word]
    return same


@borrowing
def appended(
    slots: Int32Array, of_stretch: Int32Array, lives: Lives, words: Int64Array, peers: int, firsts: Int64Array
) -> None:
    """firsts[i] = the first place of stretch i that has a row that came, where all that moves is rows that
    come behind all others, one not before another behind which it stands; -1: it is not so.

    peers: how many words are equal of rows that may not come at different instants; -1: all rows may.
    firsts: int64[stretches], written.
    """
    firsts[:] = -1
    broken = -2
    for place in range(of_stretch.shape[0]):
        stretch = of_stretch[place]
        first, begins = firsts[stretch], lives.begins[place]
        if first == broken:
            continue
        if lives.ends[place] != FOREVER or (begins == NEVER and first >= 0):
            firsts[stretch] = broken
            continue
        if begins == NEVER:
            continue
        if first < 0:
            firsts[stretch] = place
        if place > lives.starts[place]:
            before = lives.begins[place - 1]
            tied = before < begins and peers >= 0 and _are_peers(slots[place - 1], slots[place], words, peers)
            if before > begins or tied:
                firsts[stretch] = broken
    for stretch in range(firsts.shape[0]):
        firsts[stretch] = max(firsts[stretch], -1)


@step
def _before(place: int, at: int, lives: Lives) -> bool:
    return bool(lives.begins[place] < at <= lives.ends[place])


@step
def _after(place: int, at: int, lives: Lives) -> bool:
    return bool(lives.begins[place] <= at < lives.ends[place])


@borrowing
def _down(place: int, stop: int, at: int, count: int, lives: Lives) -> int:
    """The place so many rows before another, of those before the instant and of those behind it; the first
    of the run where there are fewer.
    """
    before, after = count, count
    while place > stop and (before > 0 or after > 0):
        place -= 1
        before -= int(_before(place, at, lives))
        after -= int(_after(place, at, lives))
    return place


@borrowing
def _up(place: int, stop: int, at: int, count: int, lives: Lives) -> int:
    """The place so many rows behind another; the last of the run where there are fewer."""
    before, after = count, count
    while place < stop - 1 and (before > 0 or after > 0):
        place += 1
        before -= int(_before(place, at, lives))
        after -= int(_after(place, at, lives))
    return place


@borrowing
def segments(at: Int64Array, places: Int64Array, reach: Reach, lives: Lives, made: Segments) -> int:
    """The segments of rows that come or go. at, places: by run, instant and place. made: written, with room
    for as many. Return how many there are. O(rows that come or go * rows of a segment).
    """
    n = 0
    for i in range(at.shape[0]):
        instant, place = at[i], places[i]
        start, stop = lives.starts[place], lives.stops[place]
        same = n > 0 and made.at[n - 1] == instant and made.low[n - 1] >= start and made.high[n - 1] < stop
        if same and made.high[n - 1] == stop - 1 and made.low[n - 1] == start:
            if made.inner_high[n - 1] < stop - 1:
                made.inner_high[n - 1] = _up(place, stop, instant, reach.high, lives)
            continue
        inner_low = _down(place, start, instant, reach.low, lives)
        inner_high = _up(place, stop, instant, reach.high, lives)
        low = _down(inner_low, start, instant, reach.before, lives)
        high = _up(inner_high, stop, instant, reach.behind, lives)
        if same and low <= made.high[n - 1] + 1:
            made.high[n - 1], made.inner_high[n - 1] = high, inner_high
            continue
        made.at[n], made.low[n], made.high[n] = instant, low, high
        made.inner_low[n], made.inner_high[n] = inner_low, inner_high
        n += 1
    return n


@borrowing
def rows_of(
    stretches: Segments, lives: Lives, places: Int64Array, parts: Int64Array, inner: BoolArray
) -> int:
    """The rows of segments: of each those before its instant, part 2 * segment, then those behind it, part 2
    * segment + 1; none, where no inner one is among them. Written, with room for two a place; return how many
    there are.
    """
    n = 0
    for segment in range(stretches.at.shape[0]):
        at = stretches.at[segment]
        inner_low, inner_high = stretches.inner_low[segment], stretches.inner_high[segment]
        for side in range(2):
            wanted = False
            for place in range(inner_low, inner_high + 1):
                wanted = wanted or (_after(place, at, lives) if side else _before(place, at, lives))
            if not wanted:
                continue
            for place in range(stretches.low[segment], stretches.high[segment] + 1):
                there = _after(place, at, lives) if side else _before(place, at, lives)
                if there:
                    places[n], parts[n] = place, 2 * segment + side
                    inner[n] = inner_low <= place <= inner_high
                    n += 1
    return n
