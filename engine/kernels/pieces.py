"""Groups over time: the time of each group is cut into pieces, and each row is there in a run of them.

Pieces are numbered through, group after group: those of group g are ``starts[g] <= p < starts[g + 1]``, in
the order of time. Row i is there in pieces ``low[i] <= p < high[i]``, all of its own group. A row that is there
in all pieces of its group *stays*, others *move*; few move, so what is done for them may cost a sort.
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
    low: Int64Array,
    high: Int64Array,
    starts: Int64Array,
    begins: Int64Array,
) -> int:
    """Number the pieces; return how many there are.

    The events of group g are event_starts[g] to event_starts[g + 1], their instants ascending. what: twice the
    row that comes, and one more where it goes. low, high: set for rows with events. starts: int64[groups + 1],
    begins: int64[>= groups + events]: when each piece begins, but for the first of a group.
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
    return pieces


@kernel
def spread_out(codes: Int64Array, starts: Int64Array, low: Int64Array, high: Int64Array) -> None:
    """Where no event has set them (-1), rows are there from the first piece of their group, to the last."""
    for i in range(codes.shape[0]):
        if low[i] < 0:
            low[i] = starts[codes[i]]
        if high[i] < 0:
            high[i] = starts[codes[i] + 1]


@kernel
def counts(low: Int64Array, high: Int64Array, out: Int64Array) -> None:
    """out[p] = how many rows are there in each piece. out: int64[pieces + 1], the last for nothing."""
    out[:] = 0
    for i in range(low.shape[0]):
        out[low[i]] += 1
        out[high[i]] -= 1
    for piece in range(1, out.shape[0]):
        out[piece] += out[piece - 1]


@kernel
def totals(
    values: Int64Array, low: Int64Array, high: Int64Array, above: Int64Array, below: Int64Array
) -> None:
    """The exact total of each piece, in two limbs (:mod:`engine.kernels.aggregates`).

    above, below: int64[pieces + 1], the last for nothing.
    """
    above[:] = 0
    below[:] = 0
    for i in range(values.shape[0]):
        upper, lower = values[i] >> LOW_BITS, values[i] & LOW_MASK
        above[low[i]] += upper
        below[low[i]] += lower
        above[high[i]] -= upper
        below[high[i]] -= lower
    upper, lower = np.int64(0), np.int64(0)
    for piece in range(above.shape[0]):
        upper += above[piece]
        lower += below[piece]
        above[piece] = upper + (lower >> LOW_BITS)
        below[piece] = lower & LOW_MASK


@kernel
def part(
    keys: Int64Array,
    codes: Int64Array,
    low: Int64Array,
    high: Int64Array,
    starts: Int64Array,
    best: Int64Array,
    moving: Int64Array,
) -> int:
    """best[g] = the first of the rows with the least key that stay in a group, -1 of none; and the rows that
    move, ascending. Return how many these are.
    """
    best[:] = -1
    count = 0
    for i in range(keys.shape[0]):
        group = codes[i]
        if low[i] > starts[group] or high[i] < starts[group + 1]:
            moving[count] = i
            count += 1
        elif best[group] < 0 or keys[i] < keys[best[group]]:
            best[group] = i
    return count


@kernel
def least(
    keys: Int64Array,
    low: Int64Array,
    high: Int64Array,
    starts: Int64Array,
    best: Int64Array,
    moving: Int64Array,
    out: Int64Array,
) -> None:
    """out[p] = the first of the rows with the least key that are there in each piece; -1 of none.

    best: as ``part`` gives it. moving: the rows that move, by key, those of one key ascending. A piece goes to the
    first of them that is there; ``free[p]`` leads to the next piece from p on that none has.
    """
    out[:] = -1
    free = np.arange(out.shape[0] + 1)
    for i in range(moving.shape[0]):
        row = moving[i]
        piece = low[row]
        while True:
            while free[piece] != piece:
                free[piece] = free[free[piece]]
                piece = free[piece]
            if piece >= high[row]:
                break
            out[piece] = row
            free[piece] = piece + 1
    for group in range(best.shape[0]):
        row = best[group]
        if row < 0:
            continue
        for piece in range(starts[group], starts[group + 1]):
            held = out[piece]
            if held < 0 or keys[row] < keys[held] or (keys[row] == keys[held] and row < held):
                out[piece] = row


@kernel
def unite(
    same: Int64Array,
    codes: Int64Array,
    low: Int64Array,
    high: Int64Array,
    starts: Int64Array,
    rows: Int64Array,
    lows: Int64Array,
    highs: Int64Array,
    stays: npt.NDArray[np.bool_],
    moving: Int64Array,
) -> tuple[int, int]:
    """Of rows that are the same (equal codes, all of one group) one that stays, and those that move where none
    does. Return how many each are.

    rows, lows, highs: [>= n], the ones that stay, from the front. stays: bool[codes]. moving: the others.
    """
    stays[:] = False
    found, count = 0, 0
    for i in range(same.shape[0]):
        group = codes[i]
        if low[i] > starts[group] or high[i] < starts[group + 1]:
            moving[count] = i
            count += 1
        elif not stays[same[i]]:
            stays[same[i]] = True
            rows[found] = i
            lows[found] = low[i]
            highs[found] = high[i]
            found += 1
    left = 0
    for i in range(count):
        if not stays[same[moving[i]]]:
            moving[left] = moving[i]
            left += 1
    return found, left


@kernel
def join_runs(
    same: Int64Array,
    moving: Int64Array,
    low: Int64Array,
    high: Int64Array,
    rows: Int64Array,
    lows: Int64Array,
    highs: Int64Array,
    found: int,
) -> int:
    """Add the runs in which at least one of the same rows is there; return how many rows there are then.

    moving: by what is the same, then by low. found: how many rows stand already.
    """
    first = found
    for i in range(moving.shape[0]):
        row = moving[i]
        if found > first and same[rows[found - 1]] == same[row] and low[row] <= highs[found - 1]:
            highs[found - 1] = max(highs[found - 1], high[row])
        else:
            rows[found] = row
            lows[found] = low[row]
            highs[found] = high[row]
            found += 1
    return found
