"""Which visited rows the members of a group take, and what the summaries promise in their cells."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from engine.kernels.bits import bit_of
from engine.kernels.compiled import kernel

Int32Array = npt.NDArray[np.int32]
Int64Array = npt.NDArray[np.int64]
Float64Array = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]
Words = npt.NDArray[np.uint64]

ONE = np.uint64(1)


class VisitedRows(NamedTuple):
    """Rows that predicates were applied to, in order of ordinals.

    bits: uint64[words, n], which predicates accept each. row, place: int32[...] each, what other predicates
    accept: a row, and the place of the predicate. entry: int32[n], which of the visited entries a row is of.
    ordinal: int64[n], ascending.
    """

    bits: Words
    row: Int32Array
    place: Int32Array
    entry: Int32Array
    ordinal: Int64Array


class Sharers(NamedTuple):
    """The members that have each predicate. starts: int32[places + 1], members: int32[...]: those of a place
    are members[starts[place] : starts[place + 1]]; that of bit b of word w is 64 * w + b. floor:
    int64[members], the first ordinal that a member's window holds.
    """

    starts: Int32Array
    members: Int32Array
    floor: Int64Array


@kernel
def _is_wanted(rows: VisitedRows, row: int, member: int, wanted: Words, floor: Int64Array) -> bool:
    """Whether a member looks for a row."""
    bit = wanted[rows.entry[row], member >> 6] >> np.uint64(member & 63) & ONE
    return bool(bit != 0 and rows.ordinal[row] >= floor[member])


@kernel
def count_hits(rows: VisitedRows, sharers: Sharers, wanted: Words, counts: Int64Array) -> None:
    """Add to counts, int64[members], how many of the rows each member takes.

    wanted: uint64[entries, member words]: which members look for the rows of an entry.
    Cost: O(words * rows + hits).
    """
    starts, members, floor = sharers
    for word in range(rows.bits.shape[0]):
        column = rows.bits[word]
        for row in range(column.shape[0]):
            left = column[row]
            while left:
                place = 64 * word + bit_of(left & (~left + ONE))
                left &= left - ONE
                for at in range(starts[place], starts[place + 1]):
                    if _is_wanted(rows, row, members[at], wanted, floor):
                        counts[members[at]] += 1
    for pair in range(rows.row.shape[0]):
        place = rows.place[pair]
        for at in range(starts[place], starts[place + 1]):
            if _is_wanted(rows, rows.row[pair], members[at], wanted, floor):
                counts[members[at]] += 1


@kernel
def take_hits(rows: VisitedRows, sharers: Sharers, wanted: Words, ends: Int64Array, out: Int64Array) -> None:
    """Write where those rows stand among the visited ones, member by member, ascending.

    ends: int64[members], where each member begins in out; where it ends afterwards. The rest as in
    :func:`count_hits`.
    """
    starts, members, floor = sharers
    for word in range(rows.bits.shape[0]):
        column = rows.bits[word]
        for row in range(column.shape[0]):
            left = column[row]
            while left:
                place = 64 * word + bit_of(left & (~left + ONE))
                left &= left - ONE
                for at in range(starts[place], starts[place + 1]):
                    if _is_wanted(rows, row, members[at], wanted, floor):
                        out[ends[members[at]]] = row
                        ends[members[at]] += 1
    for pair in range(rows.row.shape[0]):
        place = rows.place[pair]
        for at in range(starts[place], starts[place + 1]):
            if _is_wanted(rows, rows.row[pair], members[at], wanted, floor):
                out[ends[members[at]]] = rows.row[pair]
                ends[members[at]] += 1


class Constants(NamedTuple):
    """Values that members look for, by the place of their buckets: int32 each; those of place b are at
    starts[b] : starts[b + 1]. member, key: whose, and which of the distinct values.
    """

    starts: Int32Array
    member: Int32Array
    key: Int32Array


class Cells(NamedTuple):
    """The cells of entries. place: int32[n], of the bucket. zone: int32[n]. wanted: uint64[n, words]."""

    place: Int32Array
    zone: Int32Array
    wanted: Words


class Promise(NamedTuple):
    """What is promised in each of n cells, float64[n] each, to be added to.

    rows: the estimates of the values that members look for, each times its member's weight. priority: their
    priorities, likewise. least: the least priority. ranked: int64[n], how many of these there are.
    """

    rows: Float64Array
    priority: Float64Array
    least: Float64Array
    ranked: Int64Array


@kernel
def promise_of_constants(
    cells: Cells,
    constants: Constants,
    estimate: Int32Array,
    priority: Float64Array,
    weight: Float64Array,
    out: Promise,
) -> None:
    """Add what the constants of members promise in cells.

    estimate: int32[keys, zones]. priority: float64[keys, zones], NaN where it has none. weight:
    float64[members]. Values that are estimated not to be in a cell promise nothing.
    Cost: O(sum over cells of the constants of their bucket).
    """
    for cell in range(cells.place.shape[0]):
        place, zone = cells.place[cell], cells.zone[cell]
        for at in range(constants.starts[place], constants.starts[place + 1]):
            member, key = constants.member[at], constants.key[at]
            if not cells.wanted[cell, member >> 6] >> np.uint64(member & 63) & ONE:
                continue
            if estimate[key, zone] <= 0:
                continue
            out.rows[cell] += weight[member] * estimate[key, zone]
            p = priority[key, zone]
            if p == p:
                out.priority[cell] += weight[member] * p
                out.least[cell] = min(out.least[cell], p)
                out.ranked[cell] += 1


@kernel
def estimates_of_constants(
    cells: Cells, constants: Constants, estimate: Int32Array, share: Float64Array, out: Float64Array
) -> None:
    """Add to out, float64[constants], how many rows the cells are estimated to hold of each.

    share: float64[cells], how much of each cell counts. The rest as in :func:`promise_of_constants`.
    """
    for cell in range(cells.place.shape[0]):
        place, zone = cells.place[cell], cells.zone[cell]
        for at in range(constants.starts[place], constants.starts[place + 1]):
            member, key = constants.member[at], constants.key[at]
            if cells.wanted[cell, member >> 6] >> np.uint64(member & 63) & ONE:
                out[at] += share[cell] * estimate[key, zone]


@kernel
def rows_wanted(
    wanted: Words,
    bucket: Int32Array,
    starts: Int64Array,
    ordinal: Int64Array,
    floor: Int64Array,
    out: Int64Array,
) -> None:
    """Add to out, int64[members, buckets], how many of the rows of entries each member looks for.

    wanted: uint64[entries, member words]. starts: int64[entries + 1], where the rows of each begin in
    ordinal, ascending within an entry. floor: int64[members], the first ordinal that counts.
    """
    for entry in range(bucket.shape[0]):
        first, last = starts[entry], starts[entry + 1]
        for word in range(wanted.shape[1]):
            left = wanted[entry, word]
            while left:
                member = 64 * word + bit_of(left & (~left + ONE))
                left &= left - ONE
                low, high = first, last
                if low < high and ordinal[low] < floor[member]:
                    while low < high:
                        middle = (low + high) >> 1
                        if ordinal[middle] < floor[member]:
                            low = middle + 1
                        else:
                            high = middle
                out[member, bucket[entry]] += last - low
