"""Joins: from rows to their partners.

Partners are found by :mod:`engine.kernels.key_table`. A composite is a row of int32, one part an input in the
order of the shape, each relative to an origin.

Steps and checks name arrays by their addresses, so that one compiled kernel serves any number of inputs; who
calls keeps the arrays alive.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from engine.kernels.compiled import kernel
from engine.kernels.key_table import EMPTY, home, place_of

Int32Array = npt.NDArray[np.int32]
Int64Array = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

NEVER = 2**62
"""Above all ordinals."""
LISTED_MAX = 256
"""Partners of one key that are written down, not to walk their chain for each combination of the others."""

# Columns of a step: the input that is probed, from which input's keys, by which index.
INPUT, FROM, FROM_KEYS, FROM_BACK, FROM_FIRST, TABLE, MASK, GONE, KEYS, BACK, FIRST, CHECKS, CHECKS_END = (
    range(13)
)
STEP_COLUMNS = 13
# Columns of a check: of an input that is bound already, then of the one that is probed.
CHECK_INPUT, CHECK_KEYS, CHECK_BACK, CHECK_FIRST, OWN_KEYS, OWN_BACK, OWN_FIRST = range(7)
CHECK_COLUMNS = 7
# Columns of what was counted: tuples that probed, partners that passed, chains that a window cut.
GIVEN, PASSED, CUT = range(3)


class ProbeOrder(NamedTuple):
    """The input whose rows are combined with those of the others, which are probed in this order.

    steps: int64[inputs - 1, STEP_COLUMNS]. checks: int64[., CHECK_COLUMNS], more equalities that the rows of
    a step's CHECKS .. CHECKS_END-1 must satisfy.
    """

    driver: int
    steps: Int64Array
    checks: Int64Array


class Meeting(NamedTuple):
    """Which rows may meet. floor, upper: of each input rows floor <= ordinal < upper may take part. new_from:
    rows from there on are new: low[j, new_at[i] + (row - new_from[i])] is the first row of input j that may
    meet this row of i, when it enters or later, ascending in the rows of i; NEVER where no row of the input
    brings bounds with it.
    """

    floor: Int64Array
    upper: Int64Array
    new_from: Int64Array
    new_at: Int64Array
    low: Int64Array


class TwoIndexes(NamedTuple):
    """keys, own_back, own_first: the driving input's index; the rest the other's."""

    keys: Int64Array
    own_back: Int32Array
    own_first: int
    table: Int32Array
    gone: int
    others: Int64Array
    back: Int32Array
    first: int


class TwoBounds(NamedTuple):
    """floor, upper: of the other's rows. low: for each driving row the first of the other's rows it may meet,
    none where low_self is above the row; of no length where rows bring no bounds with them. The other's rows
    from ``fresh`` on are new: row r meets driving rows from fresh_low[r - fresh] on, and none where
    fresh_self[r - fresh] is above r. Bounds ascend.
    """

    floor: int
    upper: int
    low: Int64Array
    low_self: Int64Array
    fresh: int
    fresh_low: Int64Array
    fresh_self: Int64Array


class ListedPartners(NamedTuple):
    """Room for the partners of keys. heads: int64[a power of two], the newest rows whose lists there are;
    spans: int64[as many, 4], of each list its begin, the end of the new ones, its end, and the first row
    beyond it; lists: int32, room for more than LISTED_MAX.
    """

    heads: Int64Array
    spans: Int64Array
    lists: Int32Array


class TwoParts(NamedTuple):
    """Room for composites of two: int32[room, 2], less an origin each. place: where the driving input's parts
    stand.
    """

    place: int
    own_origin: int
    origin: int
    parts: Int32Array


def _loads(bits: int) -> Callable[[int], int]:
    """A function of compiled code: the signed integer of so many bits at an address, as int64."""

    def load(typingctx: Any, address: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            pointer = builder.inttoptr(arguments[0], ir.IntType(bits).as_pointer())
            loaded = builder.load(pointer, align=bits // 8)
            return loaded if bits == 64 else builder.sext(loaded, ir.IntType(64))

        return types.int64(types.int64), generate

    return cast("Callable[[int], int]", intrinsic(load))


load32 = _loads(32)
load64 = _loads(64)


@kernel
def _newest(step: Int64Array, key: int) -> int:
    """The newest row of a key in the index that a step probes, EMPTY if there is none."""
    table, mask, gone = step[TABLE], step[MASK], step[GONE]
    place = home(key, mask)
    while True:
        row = load32(table + (place << 2))
        if row == EMPTY:
            return EMPTY
        if row >= gone and load64(step[KEYS] + ((row - gone) << 3)) == key:
            return int(step[FIRST] + row - gone)
        place = (place + 1) & mask


@kernel
def first_at_or_after(instants: Int64Array, shift: int, among: Int64Array, at: int, out: Int64Array) -> None:
    """out[i] = min(out[i], at + the first place in ``among`` at or above instants[i] + shift).

    Both ascend. O(both).
    """
    place = 0
    size = among.shape[0]
    for i in range(instants.shape[0]):
        instant = instants[i] + shift
        while place < size and among[place] < instant:
            place += 1
        out[i] = min(out[i], at + place)


@kernel
def combine(
    order: ProbeOrder,
    start: int,
    stop: int,
    meeting: Meeting,
    origin: Int64Array,
    parts: Int32Array,
    count: int,
    counted: Int64Array,
) -> tuple[int, int]:
    """Write the combinations of the driving input's rows start .. stop-1 with rows of all others.

    parts: int32[room, inputs], written from ``count`` on, less origin. counted: int64[inputs - 1, 3], added
    to. Returns (the first row of the driving input that is not done, the composites there are then): it ends
    early, between two rows, where there is no more room.
    O(rows + partners met).
    """
    # One loop for all levels, so as one function: a level goes on where it was left, with the same state.
    driver, steps, checks = order
    floor, upper, new_from, new_at, low = meeting
    inputs = floor.shape[0]
    last = steps.shape[0] - 1
    room = parts.shape[0]
    flat = parts.reshape(room * inputs)
    part = np.zeros(inputs, np.int64)
    line = np.zeros(inputs, np.int32)
    bound = np.zeros((last + 2, inputs), np.int64)
    cursor = np.zeros(last + 1, np.int64)
    known = np.zeros(last + 1, np.bool_)
    known_key = np.zeros(last + 1, np.int64)
    newest = np.zeros(last + 1, np.int64)
    listed = np.empty(LISTED_MAX, np.int32)
    listed_head, listed_oldest, listed_end, listed_count, listed_fresh = NEVER, 0, 0, 0, 0
    for row in range(start, stop):
        began = count
        for j in range(inputs):
            bound[0, j] = floor[j]
        if row >= new_from[driver]:
            column = new_at[driver] + row - new_from[driver]
            for j in range(inputs):
                bound[0, j] = max(bound[0, j], low[j, column])
        if row < bound[0, driver]:
            continue
        part[driver] = row
        line[driver] = row - origin[driver]
        level = 0
        enters = True
        while level >= 0:
            j = steps[level, INPUT]
            if enters:
                bound_row = part[steps[level, FROM]] - steps[level, FROM_FIRST]
                if load32(steps[level, FROM_BACK] + (bound_row << 2)) < 0:  # its key is NULL, or it is absent
                    cursor[level] = EMPTY
                else:
                    counted[level, GIVEN] += 1
                    key = load64(steps[level, FROM_KEYS] + (bound_row << 3))
                    if not known[level] or key != known_key[level]:  # partners mostly have one key
                        known[level], known_key[level] = True, key
                        newest[level] = _newest(steps[level], key)
                    cursor[level] = newest[level]
                enters = False
            here = cursor[level]
            oldest = bound[level, j]
            highest = upper[j]
            back = steps[level, BACK] - (steps[level, FIRST] << 2)
            fresh = new_from[j]
            checked = steps[level, CHECKS] < steps[level, CHECKS_END]
            if level == last and not checked:
                if here != listed_head or bound[0, j] != listed_oldest:
                    listed_head, listed_oldest, listed_count, listed_fresh = here, bound[0, j], 0, 0
                    listed_end = here
                    while listed_end >= listed_oldest:
                        if listed_end < highest:
                            if listed_count == LISTED_MAX:
                                listed_head = NEVER  # too many
                                break
                            listed[listed_count] = listed_end - origin[j]
                            if listed_end < fresh:
                                listed_count += 1
                            elif listed_end >= low[j, new_at[j] + listed_end - fresh]:
                                listed_count += 1
                                listed_fresh += 1
                        behind = load32(back + (listed_end << 2))
                        listed_end = listed_end - behind if behind > 0 else EMPTY
                if listed_head == here:
                    begin, end = 0, listed_count
                    while end > 0 and listed[end - 1] + origin[j] < oldest:
                        end -= 1
                    while begin < min(end, listed_fresh):  # bounds ascend: what one may meet, older ones may
                        column = new_at[j] + listed[begin] + origin[j] - fresh
                        inside = part[driver] >= low[driver, column]
                        for before in range(level):
                            k = steps[before, INPUT]
                            inside = inside and part[k] >= low[k, column]
                        if inside:
                            break
                        begin += 1
                    if count + end - begin > room:
                        return row, began
                    at = count * inputs
                    if inputs == 3:  # three stores a composite, without loops in the loop
                        one, two = line[0 if j else 1], line[1 if j == 2 else 2]
                        own, first, second = j, 0 if j else 1, 1 if j == 2 else 2
                        for i in range(begin, end):
                            flat[at + first] = one
                            flat[at + second] = two
                            flat[at + own] = listed[i]
                            at += 3
                    else:
                        for i in range(begin, end):
                            for k in range(inputs):
                                flat[at + k] = line[k]
                            flat[at + j] = listed[i]
                            at += inputs
                    count += end - begin
                    counted[level, PASSED] += end - begin
                    if end < listed_count or listed_end >= floor[j]:
                        counted[level, CUT] += 1
                    level -= 1
                    continue
            passed = 0
            while here >= oldest:
                candidate = here
                behind = load32(back + (here << 2))
                here = here - behind if behind > 0 else EMPTY
                if candidate >= highest:
                    continue
                if checked:
                    equal = True
                    for c in range(steps[level, CHECKS], steps[level, CHECKS_END]):
                        one = part[checks[c, CHECK_INPUT]] - checks[c, CHECK_FIRST]
                        own = candidate - checks[c, OWN_FIRST]
                        if (
                            load32(checks[c, CHECK_BACK] + (one << 2)) < 0
                            or load32(checks[c, OWN_BACK] + (own << 2)) < 0
                            or load64(checks[c, CHECK_KEYS] + (one << 3))
                            != load64(checks[c, OWN_KEYS] + (own << 3))
                        ):
                            equal = False
                            break
                    if not equal:
                        continue
                if candidate >= fresh:
                    column = new_at[j] + candidate - fresh
                    inside = candidate >= low[j, column] and part[driver] >= low[driver, column]
                    for before in range(level):
                        k = steps[before, INPUT]
                        inside = inside and part[k] >= low[k, column]
                    if not inside:
                        continue
                passed += 1
                line[j] = candidate - origin[j]
                if level < last:
                    part[j] = candidate
                    enters = True
                    break
                if count == room:
                    return row, began
                for k in range(inputs):
                    parts[count, k] = line[k]
                count += 1
            counted[level, PASSED] += passed
            if enters:
                cursor[level] = here
                for k in range(inputs):
                    bound[level + 1, k] = bound[level, k]
                if part[j] >= fresh:
                    column = new_at[j] + part[j] - fresh
                    for k in range(inputs):
                        bound[level + 1, k] = max(bound[level + 1, k], low[k, column])
                level += 1
            else:
                if here >= floor[j]:
                    counted[level, CUT] += 1
                level -= 1
    return stop, count


@kernel
def combine_two(
    start: int,
    stop: int,
    indexes: TwoIndexes,
    bounds: TwoBounds,
    listed_partners: ListedPartners,
    out: TwoParts,
    count: int,
    counted: Int64Array,
) -> tuple[int, int]:
    """:func:`combine` of two inputs, several times as fast.

    The partners of a key are listed once for all its rows, and each takes the beginning of the list. What is
    listed is overwritten.
    """
    # One function: making a list, cutting it and writing it all move the same four numbers of its span.
    keys, own_back, own_first, table, gone, others, back, first = indexes
    floor, upper, low, low_self, fresh, fresh_low, fresh_self = bounds
    heads, spans, lists = listed_partners
    place, own_origin, origin, parts = out
    room = parts.shape[0]
    other = 1 - place
    bounded = low.shape[0] > 0
    slots = heads.shape[0] - 1
    heads[:] = EMPTY
    used = 0
    given = 0
    cut = 0
    begun = count
    for row in range(start, stop):
        began = count
        if own_back[row - own_first] < 0:  # its key is NULL, or it is absent
            continue
        oldest = floor
        if bounded:
            oldest = max(floor, low[row - start])
            if low_self[row - start] > row:
                continue
        given += 1
        newest = int(table[place_of(keys[row - own_first], table, others, gone)])
        head = EMPTY if newest == EMPTY else first + newest - gone
        if head < oldest:  # none at all, too
            cut += head >= floor
            continue
        slot = head & slots
        if heads[slot] != head:
            if used + LISTED_MAX > lists.shape[0]:
                heads[:] = EMPTY
                used = 0
            here = head
            while here >= upper:
                behind = back[here - first]
                here = here - behind if behind > 0 else EMPTY
            spans[slot, 0] = used
            while here >= fresh and here >= oldest and used < lists.shape[0]:
                lists[used] = here - origin
                used += 1
                behind = back[here - first]
                here = here - behind if behind > 0 else EMPTY
            spans[slot, 1] = used
            while here >= oldest and used < lists.shape[0]:
                lists[used] = here - origin
                used += 1
                behind = back[here - first]
                here = here - behind if behind > 0 else EMPTY
            spans[slot, 2] = used
            spans[slot, 3] = here
            heads[slot] = head
        listed, settled, end, beyond = spans[slot, 0], spans[slot, 1], spans[slot, 2], spans[slot, 3]
        part = np.int32(row - own_origin)
        least = oldest - origin
        while end > listed and lists[end - 1] < least:  # as it is for all rows that follow
            end -= 1
            beyond = lists[end] + origin
        spans[slot, 2] = end
        spans[slot, 3] = beyond
        for i in range(listed, min(settled, end)):
            here = lists[i] + origin
            if row >= fresh_low[here - fresh] and here >= fresh_self[here - fresh]:
                if count == room:
                    return row, began
                parts[count, place] = part
                parts[count, other] = lists[i]
                count += 1
        if end > settled:
            if count + end - settled > room:
                return row, began
            for i in range(settled, end):
                parts[count, place] = part
                parts[count, other] = lists[i]
                count += 1
        while beyond >= oldest:  # more than a list holds
            if beyond < fresh or (row >= fresh_low[beyond - fresh] and beyond >= fresh_self[beyond - fresh]):
                if count == room:
                    return row, began
                parts[count, place] = part
                parts[count, other] = beyond - origin
                count += 1
            behind = back[beyond - first]
            beyond = beyond - behind if behind > 0 else EMPTY
        if beyond >= floor:
            cut += 1
    counted[0, GIVEN] += given
    counted[0, PASSED] += count - begun
    counted[0, CUT] += cut
    return stop, count
