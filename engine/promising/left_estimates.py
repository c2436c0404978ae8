"""How many rows of those that are left each member of a group is estimated to take."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from engine.kernels import selections
from engine.kernels.selections import EntryCells
from engine.model.batch import Int64Array
from engine.promising.cell_places import CellPlaces
from engine.promising.named_values import NamedValues
from engine.promising.remaining_rows import RemainingRows
from engine.promising.row_entries import RowEntries
from engine.promising.selection_members import SelectionMembers, mask_of
from engine.summaries.summary import Summary

Float64Array = npt.NDArray[np.float64]
Words = npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class LeftEstimates:
    """Immutable."""

    # float64[constants]: of each value that a member names, as :class:`NamedValues` has them.
    of_constants: Float64Array
    # float64[members, buckets + 2]: of members that name no values, by bucket; then, of all, of rows without
    # a value, and of rows in buckets of another layout than the last one.
    of_buckets: Float64Array
    # float64[members]: of both.
    total: Float64Array

    @classmethod
    def of(
        cls,
        entries: RowEntries,
        left: Iterable[tuple[Words, Int64Array]],
        members: SelectionMembers,
        named: NamedValues,
        summary: Summary,
    ) -> LeftEstimates:
        """left: members, as bits, with the same window, and int64[entries], the rows that are left in it.

        O(windows * (entries * members that name no values + constants of the entries' buckets)).
        """
        width = members.buckets + 2
        of_constants = np.zeros(len(named.constants.member))
        of_buckets = np.zeros((members.size, width))
        if len(entries) and len(summary.zones.first):
            rates = members.rates(named.covered)
            places = CellPlaces.of(entries, summary)
            same = places.place // (members.buckets + 1) == len(summary.bucketing.layouts) - 1
            if summary.bucketing.cuts() is None:
                same[:] = True  # all are by hash
            stratum = np.where(same | (entries.bucket == members.buckets), entries.bucket, width - 1)
            for bits, rows in left:
                looking = entries.wanted & bits
                add_estimates(entries, looking, rows, named, summary, of_constants)
                without = entries.bucket == members.buckets
                entry, member = np.nonzero(mask_of(looking) & (without[:, None] | ~named.naming))
                expected = rows[entry] * rates[member, places.place[entry]]
                counted = np.bincount(member * width + stratum[entry], expected, of_buckets.size)
                of_buckets += counted.reshape(of_buckets.shape)
            of_constants *= rates[named.constants.member, 0]
        total = np.bincount(named.constants.member, of_constants, members.size) + of_buckets.sum(axis=1)
        return cls(of_constants, of_buckets, total)

    def rows_left(
        self, number: int, members: SelectionMembers, named: NamedValues, summary: Summary
    ) -> RemainingRows | None:
        """The rows left that one member is estimated to take; None where there are none."""
        if not self.total[number] > 0.0:
            return None
        layout = summary.bucketing.layouts[-1]
        if not named.naming[number]:
            return RemainingRows(members.column, None, layout, self.of_buckets[number])
        mine = np.flatnonzero(named.constants.member == number)
        keys, place = np.unique(named.constants.key[mine], return_inverse=True)
        rows = np.bincount(place, self.of_constants[mine], len(keys)).astype(np.float64)
        rows = np.append(rows, self.of_buckets[number, members.buckets])
        return RemainingRows(members.column, named.values.take(keys), layout, rows)


def add_estimates(
    entries: RowEntries,
    wanted: Words,
    rows: Int64Array,
    named: NamedValues,
    summary: Summary,
    out: Float64Array,
) -> None:
    """Add to out, float64[constants], how many rows with each value that a member names are estimated among
    the rows of entries, so many of each. wanted: uint64[entries, words], the members that count.
    """
    if not len(named.values) or not len(entries):
        return
    places = CellPlaces.of(entries, summary)
    share = np.minimum(1.0, rows / np.maximum(places.cell_rows, 1))
    zones, zone = np.unique(places.zone, return_inverse=True)
    estimate = summary.estimate(named.keys, zones)
    cells = EntryCells(places.place, zone.astype(np.int32), wanted)
    selections.estimates_of_constants(cells, named.constants, estimate, share, out)
