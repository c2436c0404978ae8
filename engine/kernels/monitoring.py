"""How well rows keep what a constraint would promise: the k that each row needs, in a histogram.

Both passes count rows from 0 in the order in which they enter. ``histogram`` is int64[BUCKETS]: by the number
of bits of k, how many rows need such a k; bucket 0: k = 0. What is remembered is bounded: where it is full
the oldest goes, and k may be told as less than it was.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from engine.kernels.compiled import kernel
from engine.kernels.key_table import home

Int64Array = npt.NDArray[np.int64]

BUCKETS = 40
NOTHING = -(2**63)
EMPTY = -1
FIRST, STOP = 0, 1


class Maxima(NamedTuple):
    """Rows that were above all before them: int64[size] values, ascending, and numbers of rows, in a ring of
    a power of two. span: int64[2], the first one and the one behind the last, counted on.
    """

    values: Int64Array
    rows: Int64Array
    span: Int64Array


@kernel
def _bucket(k: int) -> int:
    """How many bits a number has."""
    bits = 0
    while k > 0:
        bits += 1
        k >>= 1
    return bits


@kernel
def displacements(values: Int64Array, count: int, maxima: Maxima, histogram: Int64Array) -> int:
    """The largest k that ORDERED takes for these rows: how many rows before a row the first one came whose
    value is larger. values: int64[n], NOTHING where NULL: passed over. count: rows before these.
    O(n), and O(log size) for a row that is not the largest so far.
    """
    mask = maxima.values.shape[0] - 1
    largest = 0
    first, stop = maxima.span[FIRST], maxima.span[STOP]
    for place in range(values.shape[0]):
        value = values[place]
        if value == NOTHING:
            continue
        if first == stop or value > maxima.values[(stop - 1) & mask]:
            if stop - first > mask:
                first += 1
            maxima.values[stop & mask] = value
            maxima.rows[stop & mask] = count + place
            stop += 1
        low, high = first, stop
        if value == maxima.values[(stop - 1) & mask]:
            low = stop
        while low < high:
            middle = (low + high) >> 1
            if maxima.values[middle & mask] > value:
                high = middle
            else:
                low = middle + 1
        k = 0 if low == stop else count + place - maxima.rows[low & mask]
        histogram[_bucket(k)] += 1
        largest = max(largest, k)
    maxima.span[FIRST], maxima.span[STOP] = first, stop
    return int(largest)


class Spreads(NamedTuple):
    """A hash table of keys. slots: int64[size, 3], (key, the number of its first row, how many rows it has),
    open addressing in a power of two; an empty slot has 0 rows. used: int64[1], how many slots are not empty.
    """

    slots: Int64Array
    used: Int64Array


@kernel
def spreads(keys: Int64Array, count: int, sampled: int, table: Spreads, histogram: Int64Array) -> int:
    """The largest k that CLUSTERED takes for these rows: how many rows with other keys came since the first
    row of a row's key. keys: int64[n], NOTHING where NULL: passed over. sampled: only keys whose hash has
    none of these bits are looked at. A full table begins anew. O(n).
    """
    mask = table.slots.shape[0] - 1
    largest = 0
    for place in range(keys.shape[0]):
        key = keys[place]
        hashed = home(key, -1)
        if key == NOTHING or hashed & sampled != 0:
            continue
        if 2 * table.used[0] > mask:
            table.slots[:, 2] = 0
            table.used[0] = 0
        slot = (hashed >> 20) & mask
        while table.slots[slot, 2] != 0 and table.slots[slot, 0] != key:
            slot = (slot + 1) & mask
        own = table.slots[slot, 2]
        k = 0
        if own == 0:
            table.slots[slot, 0] = key
            table.slots[slot, 1] = count + place
            table.used[0] += 1
        else:
            k = count + place - table.slots[slot, 1] - own
        table.slots[slot, 2] = own + 1
        histogram[_bucket(k)] += 1
        largest = max(largest, k)
    return int(largest)


@kernel
def sampled_places(keys: Int64Array, sampled: int, out: Int64Array) -> int:
    """Write the places of keys whose hash has none of these bits; return how many there are. O(n)."""
    count = 0
    for place in range(keys.shape[0]):
        if home(keys[place], sampled) == 0:
            out[count] = place
            count += 1
    return count
