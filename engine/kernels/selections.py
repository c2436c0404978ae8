"""Which visited rows the members of a group take, and what the summaries promise in their cells."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from engine.kernels.bits import bit_of
from engine.kernels.compiled import borrowing, kernel, step

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


@step
def _is_wanted(rows: VisitedRows, row: int, member: int, wanted: Words, floor: Int64Array) -> bool:
    """Whether a member looks for a row."""
    bit = wanted[rows.entry[row], member >> 6] >> np.uint64(member & 63) & ONE
    return bool(bit != 0 and rows.ordinal[row] >= floor[member])


@borrowing
def hits_of(rows: VisitedRows, sharers: Sharers, wanted: Words, member: Int32Array, row: Int32Array) -> int:
    """Write which members take which of the rows, in any order; returns how many hits there are.

    wanted: uint64[entries, member words]: which members look for the rows of an entry. member, row:
    int32[...] each; hits beyond their room are counted and not written.
    Cost: O(words * rows + hits).
    """
    count = 0
    for word in range(rows.bits.shape[0]):
        for at in range(rows.bits.shape[1]):
            left = rows.bits[word, at]
            while left:
                place = 64 * word + bit_of(left & (~left + ONE))
                left &= left - ONE
                for each in range(sharers.starts[place], sharers.starts[place + 1]):
                    one = sharers.members[each]
                    if _is_wanted(rows, at, one, wanted, sharers.floor):
                        if count < member.shape[0]:
                            member[count] = one
                            row[count] = at
                        count += 1
    for pair in range(rows.row.shape[0]):
        place = rows.place[pair]
        for each in range(sharers.starts[place], sharers.starts[place + 1]):
            one = sharers.members[each]
            if _is_wanted(rows, rows.row[pair], one, wanted, sharers.floor):
                if count < member.shape[0]:
                    member[count] = one
                    row[count] = rows.row[pair]
                count += 1
    return count


@borrowing
def by_member(member: Int32Array, row: Int32Array, starts: Int64Array, out: Int64Array) -> None:
    """Put hits together member by member, those of each in their order. O(hits + members).

    member, row: int32[n] each. starts: int64[members + 1], zeros; then where each begins in out, int64[n].
    """
    for hit in range(member.shape[0]):
        starts[member[hit] + 1] += 1
    for each in range(1, starts.shape[0]):
        starts[each] += starts[each - 1]
    for hit in range(member.shape[0]):
        out[starts[member[hit]]] = row[hit]
        starts[member[hit]] += 1
    for each in range(starts.shape[0] - 1, 0, -1):
        starts[each] = starts[each - 1]
    starts[0] = 0


@borrowing
def count_cells(starts: Int64Array, entry: Int32Array, bucket: Int32Array, out: Int64Array) -> None:
    """Add to out, int64[members, buckets], the hits of each member in each bucket.

    starts: int64[members + 1], where the hits of each begin in entry, int32[hits], whose buckets are told.
    """
    for member in range(starts.shape[0] - 1):
        for hit in range(starts[member], starts[member + 1]):
            out[member, bucket[entry[hit]]] += 1


class Constants(NamedTuple):
    """Values that members look for, by the place of their buckets: int32 each; those of place b are at
    starts[b] : starts[b + 1]. member, key: whose, and which of the distinct values.
    """

    starts: Int32Array
    member: Int32Array
    key: Int32Array


class EntryCells(NamedTuple):
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
    cells: EntryCells,
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
    cells: EntryCells, constants: Constants, estimate: Int32Array, share: Float64Array, out: Float64Array
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
