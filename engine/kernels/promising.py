"""Visits of promising entries, and pairs that they found.

*Stored rows* of an input have, from the ordinal ``first`` on, their bucket and how many ordinals before a row
the last row of the same bucket stands, 0 where none does: a chain from newest to oldest for each bucket.
An *entry* visits such a chain from its cursor down to its first ordinal, for a list of probing rows.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from engine.kernels.compiled import kernel
from engine.kernels.key_table import home

Int32Array = npt.NDArray[np.int32]
Int64Array = npt.NDArray[np.int64]
Float64Array = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]

VISITED, LAPSED, FINISHED = 0, 1, 2
"""Places of what :func:`visit` counts."""

ENDED = -1
"""The cursor of an entry that has no row left."""


class ChainedRows(NamedTuple):
    """Stored rows of an input from the ordinal ``first`` on. keys: int64, numbers that equal where the join
    keys do. wanted: bool, whether the row may have a partner. back: int32, as the module says.
    """

    first: int
    keys: Int64Array
    wanted: BoolArray
    back: Int32Array


class ProbingLists(NamedTuple):
    """Lists of rows with one key each. starts, counts: where they lie in ``rows``, int64[lists]; codes:
    int64[lists], the key. rows: int64, ascending ordinals of the other input.
    """

    starts: Int64Array
    counts: Int64Array
    codes: Int64Array
    rows: Int64Array


class VisitedEntries(NamedTuple):
    """Entries, by place. lists: int32, whose rows they look for partners of. first, cursor: int64, the oldest
    row they lead to and the next one to visit. left: int32, rows to visit.
    """

    lists: Int32Array
    first: Int64Array
    cursor: Int64Array
    left: Int32Array


class Visits(NamedTuple):
    """Which entries are visited, by place, and how many rows of each; int64. What is not used stays."""

    picked: Int64Array
    allotted: Int64Array


class Floors(NamedTuple):
    """The first stored row, and the first probing one, that is in a window."""

    stored: int
    probing: int


class PairsRoom(NamedTuple):
    """Room for pairs; int64."""

    stored: Int64Array
    probing: Int64Array


@kernel
def chain(
    buckets: Int32Array,
    start: int,
    stop: int,
    first: int,
    newest: Int64Array,
    counts: Int64Array,
    back: Int32Array,
) -> None:
    """Hang the rows start <= place < stop, the first of them ordinal ``first + start``, into their chains.

    newest, counts: int64[buckets], the newest row of each (-1: none) and how many there were; both go on.
    back: written. O(rows).
    """
    for place in range(start, stop):
        bucket = buckets[place]
        before = newest[bucket]
        back[place] = first + place - before if before >= 0 else 0
        newest[bucket] = first + place
        counts[bucket] += 1


@kernel
def number_in_order(codes: Int64Array, table: Int32Array, numbers: Int32Array, firsts: Int64Array) -> int:
    """Number distinct codes 0, 1, 2, ... as they first come; returns how many they are.

    table: a power of two above n, all -1. numbers: int32[n], written. firsts: int64[n], of each number the
    first place, written. O(n).
    """
    mask = table.shape[0] - 1
    known = 0
    for place in range(codes.shape[0]):
        code = codes[place]
        at = home(code, mask)
        while table[at] >= 0 and codes[firsts[table[at]]] != code:
            at = (at + 1) & mask
        if table[at] < 0:
            table[at] = known
            firsts[known] = place
            known += 1
        numbers[place] = table[at]
    return known


@kernel
def visit(
    visits: Visits,
    begin: int,
    entries: VisitedEntries,
    stored: ChainedRows,
    lists: ProbingLists,
    floors: Floors,
    out: PairsRoom,
    tally: Int64Array,
) -> tuple[int, int]:
    """Visit rows of the entries that were picked, from the place ``begin`` on, each at most as many as it was
    allotted. A chain that gets to the floor ends, and the rows that were left lapse. out: pairs, written.
    tally: int64[3], added to: units of the visits, units of rows that lapsed, entries finished. A visit is a
    unit for each row of the entry's list.
    Returns (the first entry that is not done with, pairs written); less than all where there is no room.
    Cost: O(rows visited + pairs).
    """
    found, room = 0, out.probing.shape[0]
    for place in range(begin, visits.picked.shape[0]):
        entry = visits.picked[place]
        low = max(entries.first[entry], floors.stored)
        chosen = entries.lists[entry]
        code, start, cost = lists.codes[chosen], lists.starts[chosen], lists.counts[chosen]
        stop = start + cost
        while start < stop and lists.rows[start] < floors.probing:
            start += 1
        at = entries.cursor[entry]
        todo, left = visits.allotted[place], entries.left[entry]
        full = False
        while todo > 0 and at >= low:
            row = at - stored.first
            if stored.wanted[row] and stored.keys[row] == code:
                if found + stop - start > room:
                    full = True
                    break
                for probing in range(start, stop):
                    out.probing[found] = lists.rows[probing]
                    out.stored[found] = at
                    found += 1
            todo -= 1
            left -= 1
            tally[VISITED] += cost
            at = at - stored.back[row] if stored.back[row] else ENDED
        if at < low:
            tally[LAPSED] += left * cost
            tally[FINISHED] += 1
            left = 0
            at = ENDED
        entries.cursor[entry] = at
        entries.left[entry] = left
        visits.allotted[place] = todo
        if full:
            return place, found
    return visits.picked.shape[0], found


@kernel
def _reached(level: float, pace: float, rows: int, left: int) -> int:
    """How many more visits bring an entry up to a level; the visit j of its rows is at (j + 1/2) / pace."""
    last = np.int64(np.floor(min(level * pace - 0.5, rows - 1.0)))
    return max(np.int64(0), last - (rows - left) + 1)  # type: ignore[return-value]


@kernel
def level_out(
    pace: Float64Array,
    rows: Int32Array,
    left: Int32Array,
    cost: Int64Array,
    highest: float,
    units: int,
    out: Int64Array,
) -> int:
    """Share units out among entries so that all come up to the same level, those that are behind first.

    pace: float64[n], visits of an entry as the level goes from 0 to 1, positive. rows, left: int32[n], rows
    of each entry and those to visit. cost: int64[n], units of a visit. highest: a level at which no entry has
    a row left or units are out. out: int64[n], written: visits of each; of visits at one level those of
    earlier entries come first. The last visit may take more units than there are.
    Returns the units of all visits. Cost: O(64 n).
    """
    n = pace.shape[0]
    bits = np.empty(1, np.int64)
    value = bits.view(np.float64)
    value[0] = highest
    low, high = np.int64(0), bits[0]  # positive doubles are ordered as their bits are
    while high - low > 1:
        bits[0] = low + ((high - low) >> 1)
        total = 0
        for entry in range(n):
            total += _reached(value[0], pace[entry], rows[entry], left[entry]) * cost[entry]
            if total > units:
                break
        if total > units:
            high = bits[0]
        else:
            low = bits[0]
    given = 0
    bits[0] = low
    for entry in range(n):
        out[entry] = _reached(value[0], pace[entry], rows[entry], left[entry])
        given += out[entry] * cost[entry]
    bits[0] = high
    for entry in range(n):
        if given >= units:
            break
        more = _reached(value[0], pace[entry], rows[entry], left[entry]) - out[entry]
        more = min(more, (units - given + cost[entry] - 1) // cost[entry])
        out[entry] += more
        given += more * cost[entry]
    return given


@kernel
def known_pairs(
    left: Int64Array, right: Int64Array, known_left: Int64Array, known_right: Int64Array, out: BoolArray
) -> None:
    """out[i]: whether (left[i], right[i]) is among the known pairs, which are in order. O(n log known)."""
    for pair in range(left.shape[0]):
        one, other = left[pair], right[pair]
        low, high = 0, known_left.shape[0]
        while low < high:
            middle = (low + high) >> 1
            if known_left[middle] < one or (known_left[middle] == one and known_right[middle] < other):
                low = middle + 1
            else:
                high = middle
        out[pair] = low < known_left.shape[0] and known_left[low] == one and known_right[low] == other


@kernel
def _first_at(ordinals: Int64Array, wanted: int, low: int) -> int:
    """The first place from ``low`` on whose ordinal is not below the wanted one; gallops, then bisects."""
    step, high = 1, low
    while high < ordinals.shape[0] and ordinals[high] < wanted:
        low = high + 1
        high += step
        step *= 2
    high = min(high, ordinals.shape[0])
    while low < high:
        middle = (low + high) >> 1
        if ordinals[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def places_of_pairs(
    pairs_left: Int64Array,
    pairs_right: Int64Array,
    left: Int64Array,
    right: Int64Array,
    out_left: Int64Array,
    out_right: Int64Array,
) -> int:
    """Places in ``left`` and ``right`` of the pairs with both parts there; returns how many they are.

    pairs: by left, then right ordinal. left, right: ascending, each once. out: with room for all pairs.
    Cost: O(pairs log right + left).
    """
    count = 0
    at = 0
    there = 0
    before = np.int64(-1)
    for pair in range(pairs_left.shape[0]):
        one = pairs_left[pair]
        if one != before:
            at = _first_at(left, one, at)
            there = 0
            before = one
            if at == left.shape[0]:
                break
        if left[at] != one:
            continue
        there = _first_at(right, pairs_right[pair], there)
        if there < right.shape[0] and right[there] == pairs_right[pair]:
            out_left[count] = at
            out_right[count] = there
            count += 1
    return count
