"""Counters of summaries: rows are entered, values estimated, zones ended where the stream changes.

A *cell* is ``int32[size]``: t rows of b counters. A value meets one counter in each of the t rows; which,
and whether it counts up or down there, is its *places*, ``int32[t]``: twice the counter's index in the cell,
and 1 more where it counts down. So one set of kernels serves count sketches, where places come of hashes, and
histograms, where t is 1 and nothing counts down.

Source: Charikar, Chen, Farach-Colton, *Finding Frequent Items in Data Streams* (ICALP 2002), section 3.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from engine.kernels.compiled import borrowing, kernel, step
from engine.kernels.sampling import GAMMA, mixed
from engine.kernels.strings import HashArray, Int32Array, Int64Array

Float64Array = npt.NDArray[np.float64]

ROWS_MAX = 2**31 - 1
"""The most rows of a zone: no counter of it is beyond its rows, so none overflows."""
DEPTH = 5
"""Rows of a sketch by default, for which kernels have a path of their own."""
ROWS, REFERENCE, SEEN, BEFORE, LIKENESS = 0, 1, 2, 3, 4
"""Places in ``Tally.progress``, float64[5]: rows with a value; v0, negative before there is one; all rows;
rows with a value before the piece that is open; likeness of the last whole piece.
"""


class ZoneTally(NamedTuple):
    """What the confidence of a zone that grows is told by.

    squares: int64[t], of each sketch row the sum of its counters' squares over all cells. progress:
    float64[5]. before: int32[buckets, size], the counters before the piece that is open; before_squares:
    int64[t].
    """

    squares: Int64Array
    progress: Float64Array
    before: Int32Array
    before_squares: Int64Array


@step
def _place(bits: int, first: int, width: int) -> int:
    """The place that 32 bits of a hash select: the lowest bit is the sign, the others tell which of ``width``
    counters from ``first`` on.
    """
    return (first + (((bits >> 1) * width) >> 31)) << 1 | bits & 1


@borrowing
def sketch_places(hashes: HashArray, width: int, out: Int32Array) -> None:
    """Places in a count sketch of t = out.shape[1] rows of ``width`` counters: two rows of each 64 bits."""
    t = out.shape[1]
    half, low = np.uint64(32), np.uint64(0xFFFFFFFF)
    if t == DEPTH:  # the default, without loops in the loop
        for i in range(hashes.shape[0]):
            one = mixed(hashes[i] + GAMMA)
            two = mixed(hashes[i] + GAMMA * np.uint64(2))
            three = mixed(hashes[i] + GAMMA * np.uint64(3))
            out[i, 0] = _place(int(one & low), 0, width)
            out[i, 1] = _place(int(one >> half), width, width)
            out[i, 2] = _place(int(two & low), 2 * width, width)
            out[i, 3] = _place(int(two >> half), 3 * width, width)
            out[i, 4] = _place(int(three & low), 4 * width, width)
        return
    for i in range(hashes.shape[0]):
        word = np.uint64(0)
        for r in range(t):
            if r & 1:
                bits = np.int64(word >> half)
            else:
                word = mixed(hashes[i] + GAMMA * np.uint64((r >> 1) + 1))
                bits = np.int64(word & low)
            out[i, r] = _place(int(bits), r * width, width)


@kernel
def hash_buckets(hashes: HashArray, buckets: int, out: Int32Array) -> None:
    """The bucket 0..buckets - 1 of each value, by the upper half of its hash."""
    for i in range(hashes.shape[0]):
        out[i] = np.int32((np.int64(hashes[i] >> np.uint64(32)) * buckets) >> 32)


@step
def median_of_five(one: int, two: int, three: int, four: int, five: int) -> int:
    """Without a branch."""
    low = max(min(one, two), min(three, four))
    high = min(max(one, two), max(three, four))
    return max(min(low, high), min(max(low, high), five))


@step
def median_of(numbers: Int64Array) -> int:
    """The median of a few numbers, of an even number the mean, rounded down, of the middle two.

    Five are left as they are, others are sorted.
    """
    n = numbers.shape[0]
    if n == DEPTH:
        return median_of_five(
            int(numbers[0]), int(numbers[1]), int(numbers[2]), int(numbers[3]), int(numbers[4])
        )
    for i in range(1, n):
        number, j = numbers[i], i - 1
        while j >= 0 and numbers[j] > number:
            numbers[j + 1] = numbers[j]
            j -= 1
        numbers[j + 1] = number
    if n & 1:
        return int(numbers[n >> 1])
    return int((numbers[(n >> 1) - 1] + numbers[n >> 1]) >> 1)


@step
def estimate_at(cell: Int32Array, places: Int32Array, share: int, rows: int, counts: Int64Array) -> int:
    """The estimated rows of a value in a cell, int32[size], that has so many rows: 0..rows.

    The median over the t counters that it meets. counts: int64[t], room for them.
    """
    for r in range(counts.shape[0]):
        place = np.int64(places[r])
        down = place & 1
        counts[r] = (np.int64(cell[place >> 1]) ^ -down) + down
    about = median_of(counts)
    if share > 1 and about > 0:
        about = max(1, about // share)
    return min(max(about, 0), rows)


@borrowing
def summarise(
    counters: Int32Array,
    cell_rows: Int32Array,
    tally: ZoneTally,
    places: Int32Array,
    bucket: Int32Array,
    rows: tuple[int, int],
    theta: float,
    rows_min: int,
    piece: int,
    scratch: Int64Array,
) -> int:
    """Enter rows of one zone one by one, until its confidence is below theta.

    counters: int32[buckets, size], cell_rows: int32[buckets + 1], of the zone; the last bucket is of rows
    without a value. places: int32[n, t]; bucket: int32[n]. rows: the first and the end of those that are
    entered. theta: 0 or less: the zone is never ended. rows_min: at least 2. piece: rows of a piece.
    scratch: int64[t].
    Returns the row after the one that ended the zone, or -1 where none did and all are in.

    After each row, confidence = min(v / v0, v0 / v), v = (median of squares - n) / (n (n - 1)): what is
    expected of two rows of the zone being of one value, without bias by n. A v below 1 / rows_min counts as
    that, since so few rows cannot tell it from none. After each piece of rows besides the likeness of the
    piece to the zone before it, min(u / v, v / u), u = (median of inner products) / (rows of both): what is
    expected of a row of each being of one value. O(t) a row, O(counters) a piece.
    """
    at = rows[0]
    progress = tally.progress
    while at < rows[1]:
        stop = min(rows[1], at + piece - int(progress[SEEN]) % piece)
        ended = _summarise(
            counters, cell_rows, tally.squares, progress, places, bucket, (at, stop), theta, rows_min, scratch
        )
        if ended >= 0:
            progress[SEEN] += ended - at
            return ended
        progress[SEEN] += stop - at
        at = stop
        if theta > 0.0 and int(progress[SEEN]) % piece == 0:
            progress[LIKENESS] = _likeness(counters, tally, 1.0 / rows_min, scratch)
            _keep(counters, tally)
            if progress[LIKENESS] < theta:
                return at
    return -1


@borrowing
def summarise_hashes(
    counters: Int32Array,
    cell_rows: Int32Array,
    tally: ZoneTally,
    hashes: HashArray,
    bucket: Int32Array,
    rows: tuple[int, int],
    theta: float,
    rows_min: int,
    room: Int32Array,
    scratch: Int64Array,
) -> int:
    """:func:`summarise` of values in a count sketch, whose places are worked out piece by piece.

    hashes: uint64[n]. room: int32[piece, t].
    """
    piece, t = room.shape
    width = counters.shape[1] // t
    at = rows[0]
    while at < rows[1]:
        stop = min(rows[1], at + piece - int(tally.progress[SEEN]) % piece)
        count = stop - at
        sketch_places(hashes[at:stop], width, room[:count])
        ended = summarise(
            counters, cell_rows, tally, room, bucket[at:stop], (0, count), theta, rows_min, piece, scratch
        )
        if ended >= 0:
            return at + ended
        at = stop
    return -1


@borrowing
def _likeness(counters: Int32Array, tally: ZoneTally, least: float, scratch: Int64Array) -> float:
    """The likeness of the piece that is whole now to the zone before it; 1 where either has no row with a
    value.
    """
    t = scratch.shape[0]
    width = counters.shape[1] // t
    before, entered = tally.progress[BEFORE], tally.progress[ROWS] - tally.progress[BEFORE]
    if before < 2.0 or entered < 1.0:
        return 1.0
    for r in range(t):
        scratch[r] = tally.before_squares[r]
    v = max((np.float64(median_of(scratch)) - before) / (before * (before - 1.0)), least)
    for r in range(t):
        total = np.int64(0)
        for bucket in range(counters.shape[0]):
            now = counters[bucket, r * width : (r + 1) * width]
            then = tally.before[bucket, r * width : (r + 1) * width]
            for place in range(width):  # from 0, so that it is done many at a time
                total += np.int64(then[place]) * np.int64(now[place] - then[place])
        scratch[r] = total
    u = max(np.float64(median_of(scratch)) / (before * entered), least)
    return min(u / v, v / u)  # type: ignore[no-any-return]


@borrowing
def _keep(counters: Int32Array, tally: ZoneTally) -> None:
    """A piece begins."""
    for bucket in range(counters.shape[0]):
        now, then = counters[bucket], tally.before[bucket]
        for place in range(now.shape[0]):
            then[place] = now[place]
    for r in range(tally.squares.shape[0]):
        tally.before_squares[r] = tally.squares[r]
    tally.progress[BEFORE] = tally.progress[ROWS]


@borrowing
def _summarise(
    counters: Int32Array,
    cell_rows: Int32Array,
    squares: Int64Array,
    progress: Float64Array,
    places: Int32Array,
    bucket: Int32Array,
    rows: tuple[int, int],
    theta: float,
    rows_min: int,
    scratch: Int64Array,
) -> int:
    """summarise within a piece."""
    t = squares.shape[0]
    if t == DEPTH:
        return _summarise_five(counters, cell_rows, squares, progress, places, bucket, rows, theta, rows_min)
    without = cell_rows.shape[0] - 1
    least = 1.0 / rows_min
    entered, reference = progress[ROWS], progress[REFERENCE]
    ended = -1
    for i in range(rows[0], rows[1]):
        cell = bucket[i]
        cell_rows[cell] += 1
        if cell == without:
            continue
        for r in range(t):
            squares[r] += _count(counters[cell], int(places[i, r]))
        entered += 1.0
        if entered < rows_min or (theta <= 0.0 and reference >= 0.0):
            continue
        for r in range(t):
            scratch[r] = squares[r]
        pairs = entered * (entered - 1.0)
        above = max(np.float64(median_of(scratch)) - entered, least * pairs)
        if reference < 0.0:
            reference = above / pairs
        expected = reference * pairs
        if above < theta * expected or theta * above > expected:
            ended = i + 1
            break
    progress[ROWS], progress[REFERENCE] = entered, reference
    return ended


@step
def _count(cell: Int32Array, place: int) -> int:
    """Count a row; returns by how much the square of the counter grows."""
    sign = 1 - 2 * (place & 1)
    at = np.uint64(place >> 1)  # an index that cannot be negative costs less
    before = np.int64(cell[at])
    cell[at] = before + sign
    return 2 * sign * before + 1  # type: ignore[return-value]


@borrowing
def _summarise_five(
    counters: Int32Array,
    cell_rows: Int32Array,
    squares: Int64Array,
    progress: Float64Array,
    places: Int32Array,
    bucket: Int32Array,
    rows: tuple[int, int],
    theta: float,
    rows_min: int,
) -> int:
    """_summarise for t = 5, whose sums stay in registers."""
    without = cell_rows.shape[0] - 1
    least = 1.0 / rows_min
    entered, reference = progress[ROWS], progress[REFERENCE]
    first, second, third, fourth, fifth = squares[0], squares[1], squares[2], squares[3], squares[4]
    ended = -1
    for i in range(rows[0], rows[1]):
        bucket_of_row = np.int64(bucket[i])
        cell_rows[bucket_of_row] += 1
        if bucket_of_row == without:
            continue
        cell = counters[bucket_of_row]
        first += _count(cell, int(places[i, 0]))
        second += _count(cell, int(places[i, 1]))
        third += _count(cell, int(places[i, 2]))
        fourth += _count(cell, int(places[i, 3]))
        fifth += _count(cell, int(places[i, 4]))
        entered += 1.0
        if entered < rows_min or (theta <= 0.0 and reference >= 0.0):
            continue
        pairs = entered * (entered - 1.0)
        median = np.float64(median_of_five(first, second, third, fourth, fifth))
        above = max(median - entered, least * pairs)
        if reference < 0.0:
            reference = above / pairs
        expected = reference * pairs
        if above < theta * expected or theta * above > expected:
            ended = i + 1
            break
    squares[0], squares[1], squares[2], squares[3], squares[4] = first, second, third, fourth, fifth
    progress[ROWS], progress[REFERENCE] = entered, reference
    return ended


@borrowing
def estimates(
    counters: Int32Array,
    cell_rows: Int32Array,
    places: Int32Array,
    bucket: Int32Array,
    share: Int32Array,
    slots: Int64Array,
    scratch: Int64Array,
    out: Int32Array,
) -> None:
    """out[i, j]: the estimated rows of value i in its cell of the zone in slot slots[j], 0..rows of the cell.

    counters: int32[slots, buckets, size]; cell_rows: int32[slots, buckets + 1]. share: int32[n], by how many
    values the counters of value i are shared. scratch: int64[t]. O(t) each.
    """
    for i in range(places.shape[0]):
        cell = np.int64(bucket[i])
        is_missing = cell == cell_rows.shape[1] - 1
        for j in range(slots.shape[0]):
            slot = slots[j]
            rows = int(cell_rows[slot, cell])
            if rows == 0 or is_missing:
                out[i, j] = 0
            else:
                out[i, j] = estimate_at(counters[slot, cell], places[i], share[i], rows, scratch)


@borrowing
def fold(
    one: Int32Array, one_rows: Int32Array, other: Int32Array, other_rows: Int32Array, shift: int, sign: int
) -> bool:
    """Add (sign 1) or subtract (-1) the cells of the other zone: its bucket b is the one's b >> shift.

    one, other: int32[buckets, size]; their rows: int32[buckets + 1]; the last, of rows without a value, stays
    the last. No counter is beyond the rows of its cell. Returns whether all fits; if not, nothing is changed.
    O(buckets size).
    """
    buckets, size = other.shape
    total = np.int64(0)
    for bucket in range(buckets + 1):
        total += np.int64(one_rows[bucket]) + sign * np.int64(other_rows[bucket])
    if total > ROWS_MAX:
        return False
    for bucket in range(buckets):
        into = bucket >> shift
        one_rows[into] += sign * other_rows[bucket]
        target, source = one[into], other[bucket]
        if sign > 0:
            for place in range(size):
                target[place] += source[place]
        else:
            for place in range(size):
                target[place] -= source[place]
    one_rows[buckets] += sign * other_rows[buckets]
    return True


@kernel
def squared(counters: Int32Array, t: int, out: Int64Array) -> None:
    """out[s, b]: F2 of bucket b in slot s, the median over the t sketch rows of the sum of squared counters.

    counters: int32[slots, buckets, t * width]. O(counters).
    """
    width = counters.shape[2] // t
    sums = np.empty(t, np.int64)
    for slot in range(counters.shape[0]):
        for bucket in range(counters.shape[1]):
            for r in range(t):
                total = np.int64(0)
                for place in range(r * width, (r + 1) * width):
                    count = np.int64(counters[slot, bucket, place])
                    total += count * count
                sums[r] = total
            out[slot, bucket] = median_of(sums)
