"""Selective predicates: from a row's key to the few queries that may want it, and which of them do.

Entries lie in *runs*, one a key (or a range of keys): run r holds entries run_start[r] .. + run_count[r],
with room to run_room[r]. An entry is one way to satisfy one term of a predicate: its slot, a first test
(attribute, low, last; attribute -1: none) and whether the rest of the term is to be tested too. A run that is
full moves to the end of the pool with twice the room.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from engine.kernels.compiled import kernel

EMPTY = -1
MORE = 16
"""Flag of an entry: its term says more than the first test. The lower bits are the term's number."""

_MIX = 0x9E3779B97F4A7C15


@kernel
def _home(key: int, mask: int) -> np.int64:
    mixed = np.uint64(key) * np.uint64(_MIX)
    return np.int64((mixed ^ (mixed >> np.uint64(32))) & np.uint64(mask))


@kernel
def find_runs(
    keys: npt.NDArray[np.int64],
    table_keys: npt.NDArray[np.int64],
    table_runs: npt.NDArray[np.int32],
    out: npt.NDArray[np.int32],
) -> None:
    """out[i] = the run of keys[i], EMPTY if it has none. Open addressing in a power of two. O(n)."""
    mask = table_keys.shape[0] - 1
    for i in range(keys.shape[0]):
        key = keys[i]
        place = _home(key, mask)
        while table_runs[place] != EMPTY and table_keys[place] != key:
            place = (place + 1) & mask
        out[i] = table_runs[place]


@kernel
def name_runs(
    keys: npt.NDArray[np.int64],
    table_keys: npt.NDArray[np.int64],
    table_runs: npt.NDArray[np.int32],
    runs: int,
    out: npt.NDArray[np.int32],
) -> int:
    """As :func:`find_runs`, but keys without a run get runs, runs + 1, ...; returns how many there are then.

    The table must have room for all of them and more.
    """
    mask = table_keys.shape[0] - 1
    for i in range(keys.shape[0]):
        key = keys[i]
        place = _home(key, mask)
        while table_runs[place] != EMPTY and table_keys[place] != key:
            place = (place + 1) & mask
        if table_runs[place] == EMPTY:
            table_keys[place] = key
            table_runs[place] = runs
            runs += 1
        out[i] = table_runs[place]
    return runs


@kernel
def entries_of(
    slots: npt.NDArray[np.int64],
    start: npt.NDArray[np.int32],
    count: npt.NDArray[np.int32],
    attribute: npt.NDArray[np.int16],
    term: npt.NDArray[np.uint8],
    flags: npt.NDArray[np.uint8],
    low: npt.NDArray[np.int64],
    last: npt.NDArray[np.int64],
    through: int,
    points: bool,
    e_from: npt.NDArray[np.int64],
    e_to: npt.NDArray[np.int64],
    e_slot: npt.NDArray[np.int32],
    e_attribute: npt.NDArray[np.int16],
    e_low: npt.NDArray[np.int64],
    e_last: npt.NDArray[np.int64],
    e_flags: npt.NDArray[np.uint8],
) -> int:
    """Write the entries of these slots on the access path of attribute ``through``; return how many.

    start .. last: the store of regions; rows with flag 2 are those by which their term is reached. points:
    single keys only, else intervals only. e_from, e_to: the keys an entry is found by.
    """
    made = 0
    for s in range(slots.shape[0]):
        slot = slots[s]
        row = start[slot]
        end = row + count[slot]
        while row < end:
            first = row
            while row < end and term[row] == term[first]:
                row += 1
            reached = -1
            single = True
            other = -1
            rest = 0
            i = first
            while i < row:
                j = i
                while j < row and attribute[j] == attribute[i]:
                    single_here = low[j] == last[j]
                    if flags[j] & 2:
                        reached = i
                        single = single and single_here
                    j += 1
                if not flags[i] & 2:
                    rest += 1
                    if other < 0:
                        other = i
                i = j
            if reached < 0 or attribute[reached] != through or single != points:
                continue
            place = reached
            while place < row and attribute[place] == through:
                e_from[made] = low[place]
                e_to[made] = last[place]
                e_slot[made] = slot
                e_flags[made] = term[first]
                e_attribute[made] = -1
                e_low[made] = 0
                e_last[made] = 0
                if not points:
                    e_attribute[made] = through
                    e_low[made] = low[place]
                    e_last[made] = last[place]
                    if rest > 0:
                        e_flags[made] = term[first] | MORE
                elif rest > 0:
                    upto = other
                    while upto < row and attribute[upto] == attribute[other]:
                        upto += 1
                    if rest > 1 or upto - other > 1 or flags[other] & 1:
                        e_flags[made] = term[first] | MORE
                    if not flags[other] & 1:
                        e_attribute[made] = attribute[other]
                        e_low[made] = low[other]
                        e_last[made] = last[upto - 1]
                made += 1
                place += 1
    return made


@kernel
def room_wanted(
    runs: npt.NDArray[np.int32],
    run_count: npt.NDArray[np.int32],
    run_room: npt.NDArray[np.int32],
    coming: npt.NDArray[np.int32],
) -> int:
    """How many more places of the pool it takes to add an entry to each of these runs.

    coming: int32[runs], zero; written: how many come to each.
    """
    for i in range(runs.shape[0]):
        coming[runs[i]] += 1
    wanted = 0
    for i in range(runs.shape[0]):
        r = runs[i]
        if coming[r] > 0:
            if run_count[r] + coming[r] > run_room[r]:
                wanted += run_count[r] + coming[r] + (run_room[r] >> 1)
            coming[r] = -coming[r]  # seen
    for i in range(runs.shape[0]):
        coming[runs[i]] = abs(coming[runs[i]])
    return wanted


@kernel
def add_entries(
    runs: npt.NDArray[np.int32],
    slot: npt.NDArray[np.int32],
    attribute: npt.NDArray[np.int16],
    low: npt.NDArray[np.int64],
    last: npt.NDArray[np.int64],
    flags: npt.NDArray[np.uint8],
    coming: npt.NDArray[np.int32],
    run_start: npt.NDArray[np.int32],
    run_count: npt.NDArray[np.int32],
    run_room: npt.NDArray[np.int32],
    p_slot: npt.NDArray[np.int32],
    p_attribute: npt.NDArray[np.int16],
    p_low: npt.NDArray[np.int64],
    p_last: npt.NDArray[np.int64],
    p_flags: npt.NDArray[np.uint8],
    used: int,
) -> int:
    """Put each entry in its run; returns the end of the pool, which has room for what is wanted.

    coming: as :func:`room_wanted` left it. O(entries + entries of runs that move).
    """
    for i in range(runs.shape[0]):
        r = runs[i]
        if run_count[r] == run_room[r]:
            before = run_start[r]
            held = run_count[r]
            for j in range(held):
                p_slot[used + j] = p_slot[before + j]
                p_attribute[used + j] = p_attribute[before + j]
                p_low[used + j] = p_low[before + j]
                p_last[used + j] = p_last[before + j]
                p_flags[used + j] = p_flags[before + j]
            run_start[r] = used
            run_room[r] = held + coming[r] + (held >> 1)  # held: all the room it had
            used += run_room[r]
        coming[r] -= 1
        place = run_start[r] + run_count[r]
        p_slot[place] = slot[i]
        p_attribute[place] = attribute[i]
        p_low[place] = low[i]
        p_last[place] = last[i]
        p_flags[place] = flags[i]
        run_count[r] += 1
    return used


@kernel
def remove_entries(
    runs: npt.NDArray[np.int32],
    slot: int,
    run_start: npt.NDArray[np.int32],
    run_count: npt.NDArray[np.int32],
    p_slot: npt.NDArray[np.int32],
    p_attribute: npt.NDArray[np.int16],
    p_low: npt.NDArray[np.int64],
    p_last: npt.NDArray[np.int64],
    p_flags: npt.NDArray[np.uint8],
) -> int:
    """Take a slot's entries out of these runs; returns how many there were. O(entries of the runs)."""
    removed = 0
    for i in range(runs.shape[0]):
        r = runs[i]
        if r < 0:
            continue
        place = run_start[r]
        while place < run_start[r] + run_count[r]:
            if p_slot[place] != slot:
                place += 1
                continue
            end = run_start[r] + run_count[r] - 1
            p_slot[place] = p_slot[end]
            p_attribute[place] = p_attribute[end]
            p_low[place] = p_low[end]
            p_last[place] = p_last[end]
            p_flags[place] = p_flags[end]
            run_count[r] -= 1
            removed += 1
    return removed


@kernel
def count_candidates(runs: npt.NDArray[np.int32], run_count: npt.NDArray[np.int32]) -> int:
    """Entries of all these runs; EMPTY has none."""
    total = 0
    for i in range(runs.shape[0]):
        if runs[i] >= 0:
            total += run_count[runs[i]]
    return total


@kernel
def accepted(
    runs: npt.NDArray[np.int32],
    run_start: npt.NDArray[np.int32],
    run_count: npt.NDArray[np.int32],
    p_slot: npt.NDArray[np.int32],
    p_attribute: npt.NDArray[np.int16],
    p_low: npt.NDArray[np.int64],
    p_last: npt.NDArray[np.int64],
    p_flags: npt.NDArray[np.uint8],
    keys: npt.NDArray[np.int64],
    null: npt.NDArray[np.bool_],
    has_null: npt.NDArray[np.bool_],
    start: npt.NDArray[np.int32],
    count: npt.NDArray[np.int32],
    attribute: npt.NDArray[np.int16],
    term: npt.NDArray[np.uint8],
    flags: npt.NDArray[np.uint8],
    low: npt.NDArray[np.int64],
    last: npt.NDArray[np.int64],
    out_row: npt.NDArray[np.uint16],
    out_slot: npt.NDArray[np.int32],
) -> int:
    """Write the pairs (row, slot) where a candidate's term holds, rows ascending; return how many.

    runs: int32[n], the run of each row or EMPTY. keys, null: [attributes, n]; null is read where has_null.
    start .. last: the store of regions, for terms that say more than the first test.
    out_row, out_slot: as many as there are candidates. O(n + candidates).
    """
    found = 0
    for row in range(runs.shape[0]):
        run = runs[row]
        if run < 0:
            continue
        begin = run_start[run]
        tested = -1
        key = np.int64(0)
        for place in range(begin, begin + run_count[run]):
            a = p_attribute[place]
            if a >= 0:
                if a != tested:  # mostly the same for a whole run
                    tested = a
                    key = keys[a, row]
                if key < p_low[place] or key > p_last[place]:
                    continue
                if has_null[a] and null[a, row]:
                    continue
            if p_flags[place] & MORE:
                slot = p_slot[place]
                number = p_flags[place] & (MORE - 1)
                i = start[slot]
                end = i + count[slot]
                holds = True
                while i < end and holds:
                    if term[i] != number:
                        i += 1
                        continue
                    b = attribute[i]
                    is_null = has_null[b] and null[b, row]
                    value = keys[b, row]
                    inside = is_null and (flags[i] & 1) != 0
                    while i < end and term[i] == number and attribute[i] == b:
                        if not is_null and low[i] <= value and value <= last[i]:
                            inside = True
                        i += 1
                    holds = inside
                if not holds:
                    continue
            out_row[found] = row
            out_slot[found] = p_slot[place]
            found += 1
    return found


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
