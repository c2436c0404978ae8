"""Counters of summaries: rows are entered, values estimated, zones ended where the stream changes.

A *cell* is ``int32[size]``: t rows of b counters. A value meets one counter in each of the t rows; which,
and whether it counts up or down there, is its *places*, ``int32[t]``: twice the counter's index in the cell,
and 1 more where it counts down. So one set of kernels serves count sketches, where places come of hashes, and
histograms, where t is 1 and nothing counts down.

Source: Charikar, Chen, Farach-Colton, *Finding Frequent Items in Data Streams* (ICALP 2002), section 3.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from engine.kernels.compiled import kernel, step
from engine.kernels.sampling import GAMMA, mixed
from engine.kernels.strings import HashArray, Int32Array, Int64Array

Float64Array = npt.NDArray[np.float64]

ROWS, REFERENCE = 0, 1
"""Of a zone's progress, float64[2]: rows that were entered, and v0, negative before there is one."""


@kernel
def sketch_places(hashes: HashArray, width: int, out: Int32Array) -> None:
    """Places in a count sketch of t = out.shape[1] rows of ``width`` counters: two rows of each 64 bits."""
    t = out.shape[1]
    half, low = np.uint64(32), np.uint64(0xFFFFFFFF)
    for i in range(hashes.shape[0]):
        word = np.uint64(0)
        for r in range(t):
            if r & 1:
                bits = np.int64(word >> half)
            else:
                word = mixed(hashes[i] + GAMMA * np.uint64((r >> 1) + 1))
                bits = np.int64(word & low)
            counter = r * width + (((bits >> 1) * width) >> 31)
            out[i, r] = counter << 1 | bits & 1


@kernel
def hash_buckets(hashes: HashArray, buckets: int, out: Int32Array) -> None:
    """The bucket 0..buckets - 1 of each value, by the upper half of its hash."""
    for i in range(hashes.shape[0]):
        out[i] = np.int32((np.int64(hashes[i] >> np.uint64(32)) * buckets) >> 32)


@step
def median_of(numbers: Int64Array) -> int:
    """The median of a few numbers, the mean rounded down of the middle two of an even number; sorts them."""
    n = numbers.shape[0]
    for i in range(1, n):
        number, j = numbers[i], i - 1
        while j >= 0 and numbers[j] > number:
            numbers[j + 1] = numbers[j]
            j -= 1
        numbers[j + 1] = number
    if n & 1:
        return int(numbers[n >> 1])
    return int((numbers[(n >> 1) - 1] + numbers[n >> 1]) >> 1)


@kernel
def summarise(
    counters: Int32Array,
    cell_rows: Int32Array,
    squares: Int64Array,
    progress: Float64Array,
    places: Int32Array,
    bucket: Int32Array,
    first: int,
    stop: int,
    theta: float,
    rows_min: int,
) -> int:
    """Enter rows of one zone one by one, until its confidence is below theta.

    counters: int32[buckets, size], cell_rows: int32[buckets + 1], of the zone; the last bucket is of rows
    without a value. squares: int64[t], of each sketch row the sum of its counters' squares over all cells.
    progress: float64[2], see ROWS, REFERENCE. places: int32[n, t]; bucket: int32[n].
    theta: 0 or less: the zone is never ended. rows_min: at least 2.
    Returns the row after the one that ended the zone, or -1 where none did and all up to ``stop`` are in.

    Confidence = min(v / v0, v0 / v), v = (median of squares - n) / (n (n - 1)): what is expected of two rows
    of the zone being of one value, without bias by n. A v below 1 / rows_min counts as that, since so few
    rows cannot tell it from none. O(t) a row.
    """
    t = places.shape[1]
    without = cell_rows.shape[0] - 1
    least = 1.0 / rows_min
    sorted_squares = np.empty(t, np.int64)
    rows, reference = progress[ROWS], progress[REFERENCE]
    ended = -1
    for i in range(first, stop):
        cell = bucket[i]
        cell_rows[cell] += 1
        if cell == without:
            continue
        for r in range(t):
            place = places[i, r]
            sign = 1 - 2 * (place & 1)
            before = counters[cell, place >> 1]
            counters[cell, place >> 1] = before + sign
            squares[r] += 2 * sign * np.int64(before) + 1
        rows += 1.0
        if rows < rows_min or (theta <= 0.0 and reference >= 0.0):
            continue
        sorted_squares[:] = squares
        pairs = rows * (rows - 1.0)
        v = max((median_of(sorted_squares) - rows) / pairs, least)
        if reference < 0.0:
            reference = v
        if v < theta * reference or theta * v > reference:
            ended = i + 1
            break
    progress[ROWS], progress[REFERENCE] = rows, reference
    return ended


@kernel
def estimates(
    counters: Int32Array,
    cell_rows: Int32Array,
    places: Int32Array,
    bucket: Int32Array,
    share: Int32Array,
    slots: Int64Array,
    out: Int32Array,
) -> None:
    """out[i, j]: the estimated rows of value i in its cell of the zone in slot slots[j], 0..rows of the cell.

    counters: int32[slots, buckets, size]; cell_rows: int32[slots, buckets + 1]. share: int32[n], by how many
    values the counters of value i are shared. The median over the t rows of the sketch. O(t) each.
    """
    t = places.shape[1]
    found = np.empty(t, np.int64)
    for i in range(places.shape[0]):
        cell = bucket[i]
        for j in range(slots.shape[0]):
            slot = slots[j]
            most = cell_rows[slot, cell]
            if most == 0 or cell == cell_rows.shape[1] - 1:
                out[i, j] = 0
                continue
            for r in range(t):
                place = places[i, r]
                count = np.int64(counters[slot, cell, place >> 1])
                found[r] = -count if place & 1 else count
            about = median_of(found)
            if share[i] > 1 and about > 0:
                about = max(1, about // share[i])
            out[i, j] = min(max(about, 0), most)
