"""Groups over time: the time of each group is cut into pieces, and each row is there in a run of them.

Pieces are numbered through, group after group: those of group g are ``starts[g] <= p < starts[g + 1]``, in
the order of time. Most rows *stay*: they are there in all pieces of their group. A few *move*: ``moving``
holds them, ascending, and the i-th of them is there in pieces ``low[i] <= p < high[i]``. What is done for
those may cost a sort, for the others there is one pass over what they are about.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from engine.kernels.aggregates import LOW_BITS, LOW_MASK
from engine.kernels.compiled import kernel

Int64Array = npt.NDArray[np.int64]


@kernel
def cut(
    event_starts: Int64Array,
    instants: Int64Array,
    what: Int64Array,
    codes: Int64Array,
    low: Int64Array,
    high: Int64Array,
    starts: Int64Array,
    begins: Int64Array,
) -> int:
    """Number the pieces; return how many there are.

    The events of group g are event_starts[g] to event_starts[g + 1], their instants ascending. what: twice
    the place among moving rows of the one that comes, and one more where it goes. codes: their groups. low,
    high: -1, and set. starts: int64[groups + 1], begins: int64[>= groups + events]: when each piece begins,
    but for the first of a group.
    """
    pieces = 0
    for group in range(starts.shape[0] - 1):
        starts[group] = pieces
        pieces += 1
        for i in range(event_starts[group], event_starts[group + 1]):
            if i == event_starts[group] or instants[i] != instants[i - 1]:
                begins[pieces] = instants[i]
                pieces += 1
            if what[i] & 1:
                high[what[i] >> 1] = pieces - 1
            else:
                low[what[i] >> 1] = pieces - 1
    starts[starts.shape[0] - 1] = pieces
    for i in range(codes.shape[0]):
        if low[i] < 0:
            low[i] = starts[codes[i]]
        if high[i] < 0:
            high[i] = starts[codes[i] + 1]
    return pieces


@kernel
def staying(codes: Int64Array, moving: Int64Array, out: Int64Array) -> None:
    """out[g] = how many rows of each group stay. codes: int64[n], the group of each row."""
    out[:] = 0
    for i in range(codes.shape[0]):
        out[codes[i]] += 1
    for i in range(moving.shape[0]):
        out[codes[moving[i]]] -= 1


@kernel
def counts(stay: Int64Array, low: Int64Array, high: Int64Array, starts: Int64Array, out: Int64Array) -> None:
    """out[p] = how many rows are there in each piece. stay: int64[groups], how many stay.

    out: int64[pieces + 1], the last for nothing.
    """
    out[:] = 0
    for group in range(stay.shape[0]):
        out[starts[group]] += stay[group]
        out[starts[group + 1]] -= stay[group]
    for i in range(low.shape[0]):
        out[low[i]] += 1
        out[high[i]] -= 1
    for piece in range(1, out.shape[0]):
        out[piece] += out[piece - 1]


@kernel
def totals(
    values: Int64Array,
    codes: Int64Array,
    moving: Int64Array,
    low: Int64Array,
    high: Int64Array,
    starts: Int64Array,
    above: Int64Array,
    below: Int64Array,
) -> None:
    """The exact total of each piece, in two limbs (:mod:`engine.kernels.aggregates`).

    above, below: int64[pieces + 1], the last for nothing.
    """
    groups = starts.shape[0] - 1
    upper, lower = np.zeros(groups, np.int64), np.zeros(groups, np.int64)
    for i in range(values.shape[0]):
        upper[codes[i]] += values[i] >> LOW_BITS
        lower[codes[i]] += values[i] & LOW_MASK
    above[:] = 0
    below[:] = 0
    for i in range(moving.shape[0]):
        value, group = values[moving[i]], codes[moving[i]]
        upper[group] -= value >> LOW_BITS
        lower[group] -= value & LOW_MASK
        above[low[i]] += value >> LOW_BITS
        below[low[i]] += value & LOW_MASK
        above[high[i]] -= value >> LOW_BITS
        below[high[i]] -= value & LOW_MASK
    for group in range(groups):
        above[starts[group]] += upper[group]
        below[starts[group]] += lower[group]
        above[starts[group + 1]] -= upper[group]
        below[starts[group + 1]] -= lower[group]
    high_sum, low_sum = np.int64(0), np.int64(0)
    for piece in range(above.shape[0]):
        high_sum += above[piece]
        low_sum += below[piece]
        above[piece] = high_sum + (low_sum >> LOW_BITS)
        below[piece] = low_sum & LOW_MASK


@kernel
def best_staying(keys: Int64Array, codes: Int64Array, moving: Int64Array, best: Int64Array) -> None:
    """best[g] = the first of the rows with the least key that stay in a group; -1 of none."""
    best[:] = -1
    start = 0
    for i in range(moving.shape[0] + 1):
        stop = moving[i] if i < moving.shape[0] else keys.shape[0]
        for row in range(start, stop):
            held = best[codes[row]]
            if held < 0 or keys[row] < keys[held]:
                best[codes[row]] = row
        start = stop + 1


@kernel
def end_staying(
    codes: Int64Array, moving: Int64Array, stay: Int64Array, last: bool, best: Int64Array
) -> None:
    """best[g] = the first, or the ``last``, of the rows that stay in a group; -1 of none. stay: how many do.

    O(moving rows, and others until each group has its own).
    """
    best[:] = -1
    wanted = 0
    for group in range(stay.shape[0]):
        if stay[group] > 0:
            wanted += 1
    n, m = codes.shape[0], moving.shape[0]
    passed = 0
    for i in range(n):
        if wanted == 0:
            break
        row = n - 1 - i if last else i
        if passed < m and moving[m - 1 - passed if last else passed] == row:
            passed += 1
        elif best[codes[row]] < 0:
            best[codes[row]] = row
            wanted -= 1


@kernel
def least(
    keys: Int64Array,
    moving: Int64Array,
    by_key: Int64Array,
    low: Int64Array,
    high: Int64Array,
    starts: Int64Array,
    best: Int64Array,
    best_keys: Int64Array,
    out: Int64Array,
) -> None:
    """out[p] = the first of the rows with the least key that are there in each piece; -1 of none.

    keys: int64[moving rows]; by_key: their places by key, those of one key ascending. best, best_keys:
    int64[groups], the best of those that stay, and its key. Each moving row in turn claims the pieces that
    none has; ``free[p]`` leads to the next of those from p on.
    """
    out[:] = -1
    free = np.arange(out.shape[0] + 1)
    for i in range(by_key.shape[0]):
        place = by_key[i]
        piece = low[place]
        while True:
            while free[piece] != piece:
                free[piece] = free[free[piece]]
                piece = free[piece]
            if piece >= high[place]:
                break
            out[piece] = place
            free[piece] = piece + 1
    for group in range(best.shape[0]):
        row = best[group]
        for piece in range(starts[group], starts[group + 1]):
            place = out[piece]
            if place < 0:
                out[piece] = row
                continue
            other = moving[place]
            better = row >= 0 and (
                best_keys[group] < keys[place] or (best_keys[group] == keys[place] and row < other)
            )
            out[piece] = row if better else other


@kernel
def unite(
    same: Int64Array, moving: Int64Array, rows: Int64Array, stays: npt.NDArray[np.bool_], left: Int64Array
) -> tuple[int, int]:
    """Of rows that are the same (equal codes) the first that stays, and the places among moving rows of those
    of which none does. Return how many each are.

    rows, left: [>= rows, >= moving rows], written from the front. stays: bool[codes].
    """
    stays[:] = False
    found, start = 0, 0
    for i in range(moving.shape[0] + 1):
        stop = moving[i] if i < moving.shape[0] else same.shape[0]
        for row in range(start, stop):
            if not stays[same[row]]:
                stays[same[row]] = True
                rows[found] = row
                found += 1
        start = stop + 1
    count = 0
    for i in range(moving.shape[0]):
        if not stays[same[moving[i]]]:
            left[count] = i
            count += 1
    return found, count


@kernel
def join_runs(
    same: Int64Array,
    places: Int64Array,
    low: Int64Array,
    high: Int64Array,
    kept: Int64Array,
    lows: Int64Array,
    highs: Int64Array,
) -> int:
    """The runs in which at least one of the same rows is there; return how many they are.

    same: the code of each moving row; places: of them, by code, then by low. kept, lows, highs: [>= places],
    a place and the run, written from the front.
    """
    found = 0
    for i in range(places.shape[0]):
        place = places[i]
        if found > 0 and same[kept[found - 1]] == same[place] and low[place] <= highs[found - 1]:
            highs[found - 1] = max(highs[found - 1], high[place])
        else:
            kept[found] = place
            lows[found] = low[place]
            highs[found] = high[place]
            found += 1
    return found


@kernel
def together(
    codes: Int64Array, moving: Int64Array, starts: Int64Array, order: Int64Array, places: Int64Array
) -> None:
    """Rows by code, those of one code in the order they had (:func:`engine.kernels.grouping.bring_together`).

    places: int64[moving rows], where they come to stand.
    """
    starts[:] = 0
    for row in range(codes.shape[0]):
        starts[codes[row] + 1] += 1
    for group in range(1, starts.shape[0]):
        starts[group] += starts[group - 1]
    cursor = starts[:-1].copy()
    start = 0
    for i in range(moving.shape[0] + 1):
        stop = moving[i] if i < moving.shape[0] else codes.shape[0]
        for row in range(start, stop):
            order[cursor[codes[row]]] = row
            cursor[codes[row]] += 1
        if i < moving.shape[0]:
            places[i] = cursor[codes[stop]]
            order[places[i]] = stop
            cursor[codes[stop]] += 1
        start = stop + 1


@kernel
def events(
    rows: Int64Array,
    low: Int64Array,
    high: Int64Array,
    firsts: Int64Array,
    lasts: Int64Array,
    event_starts: Int64Array,
    what: Int64Array,
) -> None:
    """Which moving rows come to a piece or leave it: what[event_starts[p]:event_starts[p + 1]], twice the
    row, and one more where it goes.

    rows: int64[moving rows], in any order. firsts, lasts: the first piece of their group, and the one behind
    its last. event_starts: int64[pieces + 1]; what: int64[>= events].
    """
    event_starts[:] = 0
    for i in range(rows.shape[0]):
        if low[i] > firsts[i]:
            event_starts[low[i] + 1] += 1
        if high[i] < lasts[i]:
            event_starts[high[i] + 1] += 1
    for piece in range(1, event_starts.shape[0]):
        event_starts[piece] += event_starts[piece - 1]
    cursor = event_starts[:-1].copy()
    for i in range(rows.shape[0]):
        if low[i] > firsts[i]:
            what[cursor[low[i]]] = 2 * rows[i]
            cursor[low[i]] += 1
        if high[i] < lasts[i]:
            what[cursor[high[i]]] = 2 * rows[i] + 1
            cursor[high[i]] += 1
