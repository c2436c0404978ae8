"""The values of a cell with the largest estimates.

A list has room for TOP values of each bucket, by estimate, the largest first, then by hash. ``estimate`` is 0
where there is none, and a value whose estimate is 0 is in no list.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from engine.kernels.compiled import borrowing
from engine.kernels.sketches import estimate_at
from engine.kernels.strings import HashArray, Int32Array, Int64Array

TOP = 32


class Values(NamedTuple):
    """n values. hash: uint64[n]; bucket: int32[n]; places: int32[n, t]; share: int32[n]."""

    hash: HashArray
    bucket: Int32Array
    places: Int32Array
    share: Int32Array


class Top(NamedTuple):
    """The lists of one zone. hash: uint64[buckets, TOP], row: int64, estimate and share: int32 of that shape;
    places: int32[buckets, TOP, t].
    """

    hash: HashArray
    row: Int64Array
    estimate: Int32Array
    share: Int32Array
    places: Int32Array


class TopRoom(NamedTuple):
    """Room for one value. counts: int64[t]; places: int32[t]."""

    counts: Int64Array
    places: Int32Array


@borrowing
def latest(
    values: Values,
    count: int,
    first: int,
    top: Top,
    table: HashArray,
    out: Int64Array,
    times: Int32Array,
) -> int:
    """out[:returned]: of the first ``count`` values the last place of each distinct hash, in the order
    of their first ones. Those whose bucket has no list have no value.

    times: int32[n], how often each came; 0: it is listed, and its row in the list is the last one. first: the
    ordinal of the first value's row. table: uint64[power of two from 2 * count, 2], a hash and 1 more than
    its place in ``out``, 0 where none is; none before and afterwards. O(count + buckets TOP).
    """
    one_more = np.uint64(1)
    mask = np.uint64(table.shape[0] - 1)
    buckets = top.hash.shape[0]
    found = 0
    for i in range(count):
        if values.bucket[i] >= buckets:
            continue
        hash_ = values.hash[i]
        place = hash_ & mask
        while table[place, 1] != 0 and table[place, 0] != hash_:
            place = (place + one_more) & mask
        if table[place, 1] == 0:
            table[place, 0], table[place, 1] = hash_, found + 1
            out[found], times[found] = i, 1
            found += 1
        else:
            known = np.int64(table[place, 1]) - 1
            out[known] = i
            times[known] += 1
    for bucket in range(buckets):
        hashes, estimates = top.hash[bucket], top.estimate[bucket]
        for at in range(TOP):
            if estimates[at] == 0:
                break
            place = hashes[at] & mask
            while table[place, 1] != 0 and table[place, 0] != hashes[at]:
                place = (place + one_more) & mask
            if table[place, 1] != 0:
                known = np.int64(table[place, 1]) - 1
                times[known] = 0
                top.row[bucket, at] = max(top.row[bucket, at], first + out[known])
    for one in range(found):
        place = values.hash[out[one]] & mask
        while table[place, 1] != 0:
            table[place, 1] = 0
            place = (place + one_more) & mask
    return found


@borrowing
def refresh(counters: Int32Array, rows: Int32Array, top: Top, scratch: TopRoom) -> None:
    """Estimate the listed values anew by the counters of the zone, and order them. O(buckets TOP t).

    counters: int32[buckets, size]; rows: int32[buckets + 1].
    """
    for bucket in range(top.hash.shape[0]):
        kept = 0
        for at in range(TOP):
            if top.estimate[bucket, at] == 0:
                break
            _copy(top.places[bucket, at], scratch.places)
            hash_, row, share = top.hash[bucket, at], top.row[bucket, at], top.share[bucket, at]
            top.estimate[bucket, at] = 0
            of_cell = int(rows[bucket])
            about = estimate_at(counters[bucket], scratch.places, int(share), of_cell, scratch.counts)
            if about > 0:
                _put(top, bucket, kept, hash_, row, about, share, scratch.places)
                kept += 1


@borrowing
def offer(
    counters: Int32Array,
    rows: Int32Array,
    values: Values,
    chosen: Int64Array,
    times: Int32Array,
    count: int,
    first: int,
    full: npt.NDArray[np.bool_],
    top: Top,
    scratch: TopRoom,
) -> None:
    """Take the values chosen[:count] into the lists where they belong, but for those that are listed.

    times: see latest. full: bool[buckets], lists that were full before; into these only values that came
    several times.
    first: the ordinal of the first value's row. The lists are up to date, see refresh.
    O(count t), and O(TOP) for each value that is taken.
    """
    for one in range(count):
        if times[one] == 0 or (times[one] == 1 and full[values.bucket[chosen[one]]]):
            continue
        _take(counters, rows, values, chosen[one], first + chosen[one], top, scratch)


@borrowing
def offer_listed(
    counters: Int32Array, rows: Int32Array, values: Values, row: Int64Array, top: Top, scratch: TopRoom
) -> None:
    """Offer values as :func:`offer` does, where each has an ordinal of its own, row: int64[n]."""
    for i in range(row.shape[0]):
        _take(counters, rows, values, i, row[i], top, scratch)


@borrowing
def _take(
    counters: Int32Array, rows: Int32Array, values: Values, i: int, row: int, top: Top, scratch: TopRoom
) -> None:
    bucket = int(values.bucket[i])
    cell, places, share = counters[bucket], values.places[i], int(values.share[i])
    least = int(top.estimate[bucket, TOP - 1])
    if share == 1:  # most values are rare, and more than half of their counters say so
        below, bound = 0, (places.shape[0] >> 1) + 1
        for r in range(places.shape[0]):
            place = np.int64(places[r])
            down = place & 1
            if (np.int64(cell[place >> 1]) ^ -down) + down < least:
                below += 1
        if below >= bound:
            return
    about = estimate_at(cell, places, share, int(rows[bucket]), scratch.counts)
    if about <= 0 or about < least:
        return
    hash_ = values.hash[i]
    held = 0
    while held < TOP and top.estimate[bucket, held] > 0:
        if top.hash[bucket, held] == hash_:
            top.row[bucket, held] = max(top.row[bucket, held], row)
            return
        held += 1
    _put(top, bucket, held, hash_, row, about, share, places)


@borrowing
def _put(
    top: Top, bucket: int, held: int, hash_: np.uint64, row: int, about: int, share: int, places: Int32Array
) -> None:
    """Into a list that has ``held`` values; the last one falls out of a full one."""
    at = min(held, TOP - 1)
    if held == TOP and (
        top.estimate[bucket, at] > about
        or (top.estimate[bucket, at] == about and top.hash[bucket, at] < hash_)
    ):
        return
    while at > 0 and (
        top.estimate[bucket, at - 1] < about
        or (top.estimate[bucket, at - 1] == about and top.hash[bucket, at - 1] > hash_)
    ):
        top.hash[bucket, at] = top.hash[bucket, at - 1]
        top.row[bucket, at] = top.row[bucket, at - 1]
        top.estimate[bucket, at] = top.estimate[bucket, at - 1]
        top.share[bucket, at] = top.share[bucket, at - 1]
        _copy(top.places[bucket, at - 1], top.places[bucket, at])
        at -= 1
    top.hash[bucket, at], top.row[bucket, at] = hash_, row
    top.estimate[bucket, at], top.share[bucket, at] = about, share
    _copy(places, top.places[bucket, at])


@borrowing
def _copy(source: Int32Array, target: Int32Array) -> None:
    for r in range(source.shape[0]):
        target[r] = source[r]
