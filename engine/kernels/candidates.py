"""Selective predicates: from a row's key to the few queries that may want it, and which of them do.

Entries lie in *runs*, one a key (or a range of keys): run r holds entries start .. start + count of the pool,
with room for more. An entry is one way to satisfy one term of a predicate: its slot, a first test and whether
the rest of the term is to be tested too. Entries of a run ascend by the low end of that test. What all of
them allow is the run's *bound*: most rows are outside of it, and no entry is looked at for them. A run that
is full moves to the end of the pool with more room.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from engine.kernels.compiled import borrowing, kernel, step
from engine.kernels.streaming import LINE_BYTES, prefetch

EMPTY = -1
NO_TEST = -1
MORE = 16
"""Flag of an entry: its term says more than the first test. The lower bits are the term's number."""

ENTRY = np.dtype(
    [("low", np.int64), ("last", np.int64), ("slot", np.int32), ("attribute", np.int16), ("flags", np.uint8)],
    align=True,
)
"""24 bytes. The first test: low <= key of the attribute <= last; NO_TEST: there is none."""

RUN = np.dtype(
    [
        ("low", np.int64),
        ("last", np.int64),
        ("start", np.int32),
        ("count", np.int32),
        ("room", np.int32),
        ("attribute", np.int32),
    ]
)
"""32 bytes. low, last: the bound, of keys of ``attribute``; NO_TEST: the first tests are not all of one."""

NAMED = np.dtype([("key", np.int64), ("run", np.int32)], align=True)
"""A place of the hash table of keys that have runs; run EMPTY: nothing is there."""

Records = npt.NDArray[Any]
"""A structured array."""

FETCHED_LINES = 3
"""Cache lines of a run's entries that are prefetched before the entries are looked at."""

_MIX = 0x9E3779B97F4A7C15


class Regions(NamedTuple):
    """The store of regions: rows start[slot] .. + counts[slot] are a slot's, one term after another."""

    start: npt.NDArray[np.int32]
    counts: npt.NDArray[np.int32]
    attribute: npt.NDArray[np.int16]
    term: npt.NDArray[np.uint8]
    flags: npt.NDArray[np.uint8]
    """1: NULL too; 2: the term is reached by this attribute."""
    low: npt.NDArray[np.int64]
    last: npt.NDArray[np.int64]


class RowKeys(NamedTuple):
    """What rows are tested by."""

    keys: npt.NDArray[np.int64]
    """[attributes, n]"""
    null: npt.NDArray[np.bool_]
    """[attributes, n], read where ``has_null``."""
    has_null: npt.NDArray[np.bool_]
    """[attributes]"""


@kernel
def _home_shift(table: Records) -> np.uint64:
    """See :func:`_home`. O(log places)."""
    bits = 1
    while 1 << bits < table.shape[0]:
        bits += 1
    return np.uint64(64 - bits)


@kernel
def _home(key: int, shift: np.uint64) -> np.int64:
    """The place of a key: the uppermost bits of its product, which all of its bits have part in. Numbers in a
    row lie evenly, and so do labels of strings, which end in 40 zeros.
    """
    return np.int64((np.uint64(key) * np.uint64(_MIX)) >> shift)


@kernel
def find_runs(keys: npt.NDArray[np.int64], table: Records, out: npt.NDArray[np.int32]) -> None:
    """out[i] = the run of keys[i], EMPTY if it has none. Open addressing in a power of two. O(n).

    table: NAMED.
    """
    mask, shift = table.shape[0] - 1, _home_shift(table)
    for i in range(keys.shape[0]):
        key = keys[i]
        place = _home(key, shift)
        while table[place].run != EMPTY and table[place].key != key:
            place = (place + 1) & mask
        out[i] = table[place].run


@kernel
def name_runs(keys: npt.NDArray[np.int64], table: Records, runs: int, out: npt.NDArray[np.int32]) -> int:
    """As :func:`find_runs`, but keys without a run get runs, runs + 1, ...; returns how many there are then.

    The table must have room for all of them and more.
    """
    mask, shift = table.shape[0] - 1, _home_shift(table)
    for i in range(keys.shape[0]):
        key = keys[i]
        place = _home(key, shift)
        while table[place].run != EMPTY and table[place].key != key:
            place = (place + 1) & mask
        if table[place].run == EMPTY:
            table[place].key = key
            table[place].run = runs
            runs += 1
        out[i] = table[place].run
    return runs


@step
def _tests(begin: int, end: int, regions: Regions) -> tuple[int, bool, int, int]:
    """The tests of one term: where the attribute begins that it is reached by (-1: none), whether all regions
    of that are single keys, where the first other attribute begins, and how many others there are.
    """
    attribute, flags = regions.attribute, regions.flags
    reached, single, other, rest = -1, True, -1, 0
    i = begin
    while i < end:
        j = i
        while j < end and attribute[j] == attribute[i]:
            if flags[j] & 2:
                reached = i
                single = single and regions.low[j] == regions.last[j]
            j += 1
        if not flags[i] & 2:
            rest += 1
            if other < 0:
                other = i
        i = j
    return reached, single, other, rest


@borrowing
def entries_of(
    slots: npt.NDArray[np.int64],
    regions: Regions,
    through: int,
    points: bool,
    first: npt.NDArray[np.int64],
    last: npt.NDArray[np.int64],
    entries: Records,
) -> int:
    """Write the entries of these slots on the access path of attribute ``through``; return how many.

    points: single keys only, else intervals only. first, last: the keys an entry is found by.
    """
    attribute, term, flags = regions.attribute, regions.term, regions.flags
    low, high = regions.low, regions.last
    made = 0
    for s in range(slots.shape[0]):
        slot = slots[s]
        row = regions.start[slot]
        end = row + regions.counts[slot]
        while row < end:
            begin = row
            while row < end and term[row] == term[begin]:
                row += 1
            reached, single, other, rest = _tests(begin, row, regions)
            if reached < 0 or attribute[reached] != through or single != points:
                continue
            place = reached
            while place < row and attribute[place] == through:
                first[made] = low[place]
                last[made] = high[place]
                entries[made].slot = slot
                entries[made].flags = term[begin]
                entries[made].attribute = NO_TEST
                entries[made].low = 0
                entries[made].last = 0
                if not points:
                    entries[made].attribute = through
                    entries[made].low = low[place]
                    entries[made].last = high[place]
                    if rest > 0:
                        entries[made].flags = term[begin] | MORE
                elif rest > 0:
                    upto = other
                    while upto < row and attribute[upto] == attribute[other]:
                        upto += 1
                    if rest > 1 or upto - other > 1 or flags[other] & 1:
                        entries[made].flags = term[begin] | MORE
                    if not flags[other] & 1:
                        entries[made].attribute = attribute[other]
                        entries[made].low = low[other]
                        entries[made].last = high[upto - 1]
                made += 1
                place += 1
    return made


@kernel
def room_wanted(which: npt.NDArray[np.int32], runs: Records) -> int:
    """How many more places of the pool it takes to add an entry to each of these runs, ascending."""
    wanted = 0
    first = 0
    while first < which.shape[0]:
        run = which[first]
        after = _end_of_group(which, first)
        if runs[run].count + after - first > runs[run].room:
            wanted += _room(runs, run, after - first)
        first = after
    return wanted


@kernel
def _end_of_group(which: npt.NDArray[np.int32], first: int) -> int:
    after = first + 1
    while after < which.shape[0] and which[after] == which[first]:
        after += 1
    return after


@kernel
def _room(runs: Records, run: int, coming: int) -> int:
    """The new room of a run that is too small for ``coming`` more entries: half of its present room is left
    free.
    """
    return int(runs[run].count + coming + (runs[run].room >> 1))


@kernel
def add_entries(
    which: npt.NDArray[np.int32], entries: Records, runs: Records, pool: Records, used: int
) -> int:
    """Put each entry in its run; returns the end of the pool, which has room for what is wanted.

    which, entries: by (run, low). O(entries + entries of their runs).
    """
    first = 0
    while first < which.shape[0]:
        run = which[first]
        after = _end_of_group(which, first)
        held = runs[run].count
        coming = after - first
        if held + coming > runs[run].room:
            before = runs[run].start
            for j in range(held):
                pool[used + j] = pool[before + j]
            runs[run].room = _room(runs, run, coming)
            runs[run].start = used
            used += runs[run].room
        start = runs[run].start
        left = held - 1
        right = coming - 1
        while right >= 0:  # from the end, so that nothing is overwritten that is needed
            if left >= 0 and pool[start + left].low > entries[first + right].low:
                pool[start + left + right + 1] = pool[start + left]
                left -= 1
            else:
                pool[start + left + right + 1] = entries[first + right]
                right -= 1
        for j in range(first, after):
            _widen(runs, run, entries[j].attribute, entries[j].low, entries[j].last)
            runs[run].count += 1
        first = after
    return used


@kernel
def _widen(runs: Records, run: int, attribute: int, low: int, last: int) -> None:
    """The bound of a run takes in one entry more."""
    if runs[run].count == 0:
        runs[run].attribute = attribute
        runs[run].low = low
        runs[run].last = last
    elif runs[run].attribute != attribute:
        runs[run].attribute = NO_TEST
    else:
        runs[run].low = min(runs[run].low, low)
        runs[run].last = max(runs[run].last, last)


@kernel
def remove_entries(which: npt.NDArray[np.int32], slot: int, runs: Records, pool: Records) -> int:
    """Take a slot's entries out of these runs; returns how many there were. O(entries of the runs).

    The others of a run are looked at once more, and its bound is theirs.
    """
    removed = 0
    for i in range(which.shape[0]):
        r = which[i]
        if r < 0:
            continue
        start = runs[r].start
        held = runs[r].count
        runs[r].count = 0
        for place in range(start, start + held):
            if pool[place].slot == slot:
                removed += 1
                continue
            _widen(runs, r, pool[place].attribute, pool[place].low, pool[place].last)
            pool[start + runs[r].count] = pool[place]
            runs[r].count += 1
    return removed


@kernel
def within_bounds(found: npt.NDArray[np.int32], runs: Records, pool: Records, rows: RowKeys) -> int:
    """Rows outside of the bound of their run have none any more; returns the candidates of the others.

    found: int32[n], the run of each row or EMPTY; written. The first entries of those that stay are fetched
    ahead. O(n).
    """
    total = 0
    base = pool.ctypes.data
    for row in range(found.shape[0]):
        run = found[row]
        if run < 0:
            continue
        a = runs[run].attribute
        if a >= 0:
            key = rows.keys[a, row]
            if key < runs[run].low or key > runs[run].last or (rows.has_null[a] and rows.null[a, row]):
                found[row] = EMPTY
                continue
        first = base + pool.itemsize * runs[run].start
        for line in range(FETCHED_LINES):
            prefetch(first + LINE_BYTES * line)  # type: ignore[call-arg]
        total += runs[run].count
    return total


@kernel
def accepted(
    found: npt.NDArray[np.int32],
    runs: Records,
    pool: Records,
    rows: RowKeys,
    regions: Regions,
    out_row: npt.NDArray[np.uint16],
    out_slot: npt.NDArray[np.int32],
) -> int:
    """Write the pairs (row, slot) where a candidate's term holds, rows ascending; return how many.

    found: int32[n], the run of each row or EMPTY. regions: for terms that say more than the first test.
    out_row, out_slot: as many as there are candidates. O(n + candidates).
    """
    made = 0
    for row in range(found.shape[0]):
        run = found[row]
        if run < 0:
            continue
        begin = runs[run].start
        end = begin + runs[run].count
        bounded = runs[run].attribute >= 0  # then the row has a key there, within the bound
        tested = runs[run].attribute
        key = rows.keys[max(tested, 0), row]
        for place in range(begin, end):
            if not bounded and pool[place].attribute != tested:
                tested = pool[place].attribute
                key = rows.keys[max(tested, 0), row]
            if tested >= 0:
                if key < pool[place].low:
                    if bounded:
                        break
                    continue
                if key > pool[place].last or (rows.has_null[tested] and rows.null[tested, row]):
                    continue
            slot, flags = pool[place].slot, pool[place].flags
            if flags & MORE and not _holds(slot, flags & (MORE - 1), row, rows, regions):
                continue
            out_row[made] = row
            out_slot[made] = slot
            made += 1
    return made


@kernel
def _holds(slot: int, number: int, row: int, rows: RowKeys, regions: Regions) -> bool:
    """Whether a row satisfies a slot's term of this number."""
    i = regions.start[slot]
    end = i + regions.counts[slot]
    while i < end:
        if regions.term[i] != number:
            i += 1
            continue
        a = regions.attribute[i]
        is_null = rows.has_null[a] and rows.null[a, row]
        value = rows.keys[a, row]
        inside = is_null and (regions.flags[i] & 1) != 0
        while i < end and regions.term[i] == number and regions.attribute[i] == a:
            if not is_null and regions.low[i] <= value and value <= regions.last[i]:
                inside = True
            i += 1
        if not inside:
            return False
    return True


@kernel
def spread_over_ranges(
    first: npt.NDArray[np.int64],
    after: npt.NDArray[np.int64],
    out_run: npt.NDArray[np.int32],
    out_entry: npt.NDArray[np.int64],
) -> None:
    """Entry i once for each of the ranges first[i] .. after[i]-1, one after another."""
    made = 0
    for i in range(first.shape[0]):
        for run in range(first[i], after[i]):
            out_run[made] = run
            out_entry[made] = i
            made += 1


@kernel
def lists_by_slot(
    rows: npt.NDArray[np.uint16],
    slots: npt.NDArray[np.int32],
    starts: npt.NDArray[np.int64],
    out: npt.NDArray[np.uint16],
) -> None:
    """Pairs as row lists, one a slot, rows in the order they come in.

    starts: int64[slots + 1], zero but overwritten: where each slot's list begins in out. O(pairs + slots).
    """
    for i in range(slots.shape[0]):
        starts[slots[i] + 1] += 1
    for s in range(1, starts.shape[0]):
        starts[s] += starts[s - 1]
    for i in range(slots.shape[0]):
        s = slots[i]
        out[starts[s]] = rows[i]
        starts[s] += 1
    for s in range(starts.shape[0] - 1, 0, -1):
        starts[s] = starts[s - 1]
    starts[0] = 0
