"""What cells promise to members that name no values: those whose predicate has a range of the summarised
attribute, or none.

The values of a cell are its most frequent ones, as the summary lists them, those that the member's ranges
hold; and the rest as one, whose value is that of the entry's first row and whose count is the rest of the
cell's rows times the share that the member took of such rows so far. With ``asc`` the rest is taken to be as
rare as the rarest value that is listed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from engine.domains.domain import domain_of
from engine.kernels.selections import Promise
from engine.model.batch import BoolArray, Column, Int32Array, Int64Array
from engine.promising.cell_places import CellPlaces
from engine.promising.group import GroupKey
from engine.promising.named_values import NamedValues
from engine.promising.picking import UNRANKED
from engine.promising.priorities import CellEstimates, rank_cells
from engine.promising.row_entries import RowEntries
from engine.promising.selection_members import SelectionMembers, mask_of
from engine.summaries.summary import Summary

Float64Array = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class RetainedAttribute:
    """The summarised attribute of the rows that are retained."""

    # The first ordinal that is.
    base: int
    # Gives its values for ordinals int64[n] of retained rows.
    values: Callable[[Int64Array], Column]


@dataclass(frozen=True, slots=True)
class CellValues:
    """The listed values of the cells of entries, n (entry, value) pairs."""

    # int64[n]: places among the entries.
    entry: Int64Array
    # int32[n], rows of the value in the cell; int64[n], those of its zone.
    estimate: Int32Array
    zone_rows: Int64Array
    # Values of the attribute, one a pair.
    values: Column

    @classmethod
    def of(
        cls, entries: RowEntries, zone: Int64Array, attribute: RetainedAttribute, summary: Summary
    ) -> CellValues:
        """zone: int64[entries], places in the summary's zones."""
        entry, estimate, row = [], [], []
        for place in np.unique(zone).tolist():
            tops = summary.tops(place)
            for mine in np.flatnonzero(zone == place).tolist():
                if entries.bucket[mine] < len(tops):
                    top = tops[entries.bucket[mine]]
                    entry.append(np.full(len(top.row), mine))
                    estimate.append(top.estimate)
                    row.append(top.row)
        rows = np.concatenate([np.empty(0, np.int64), *row])
        kept = np.flatnonzero(rows >= attribute.base)
        of = np.concatenate([np.empty(0, np.int64), *entry])[kept]
        estimates = np.concatenate([np.empty(0, np.int32), *estimate])[kept]
        return cls(of, estimates, summary.zones.rows[zone[of]], attribute.values(rows[kept]))


def promise_of_cells(
    key: GroupKey,
    entries: RowEntries,
    places: CellPlaces,
    attribute: RetainedAttribute,
    members: SelectionMembers,
    named: NamedValues,
    summary: Summary,
    promise: Promise,
) -> None:
    """Add what cells promise to members that name no values.

    places: those of the entries. O((entries + listed values) * such members).
    """
    looking = mask_of(entries.wanted) & ~named.naming
    which = np.flatnonzero(looking.any(axis=1))
    if not len(which):
        return
    some = entries.take(which)
    zone, cell_rows = places.zone[which], places.cell_rows[which]
    listed = CellValues.of(some, zone, attribute, summary)
    weights, numbers = members.weights(), np.flatnonzero(looking.any(axis=0))
    n, order = len(some), key.order
    priority = _of_pairs(key, listed, summary)
    taken = looking[which][:, numbers][listed.entry] & _allowed(listed.values, numbers, members).T
    share = taken @ weights[numbers]
    wanted = share > 0.0
    _add(promise, which[listed.entry[wanted]], share[wanted], listed.estimate[wanted], priority[wanted])
    # The rest of each cell.
    counted = np.bincount(listed.entry, listed.estimate, n)
    rest = np.maximum(cell_rows - counted, 0.0)
    rarest = np.full(n, np.inf)
    np.minimum.at(rarest, listed.entry, listed.estimate)
    entry, column = np.nonzero(looking[which][:, numbers] & (rest > 0.0)[:, None])
    member = numbers[column]
    count = np.ceil(rest[entry] * members.rates(named.covered)[member, places.place[which][entry]])
    if order == "asc":
        count = np.minimum(count, rarest[entry])
    cells = CellEstimates(
        entry.astype(np.int32),
        count.astype(np.int32),
        cell_rows[entry].astype(np.int32),
        summary.zones.rows[zone][entry],
        np.zeros(len(entry), np.bool_),
    )
    found = rank_cells(key.priorities[0], "desc", "count", attribute.values(some.first), cells)
    told = np.where(found.rank == UNRANKED, np.nan, found.priority)
    _add(promise, which[entry], weights[member], count, told)


def _of_pairs(key: GroupKey, listed: CellValues, summary: Summary) -> Float64Array:
    """float64[n]: the priority of each listed value; with ``asc`` summed over all zones."""
    n = len(listed.entry)
    if key.order == "asc" and n:
        keys = summary.bucketing.keys(listed.values)
        every = np.arange(len(summary.zones.first))
        estimate = summary.estimate(keys, every)
    else:
        every, estimate = np.zeros(1, np.int64), listed.estimate[:, None]
    zone_rows = summary.zones.rows[every] if key.order == "asc" else listed.zone_rows
    cells = CellEstimates(
        np.repeat(np.arange(n, dtype=np.int32), len(every)),
        estimate.reshape(-1),
        np.ones(estimate.size, np.int32),
        np.tile(zone_rows, n) if key.order == "asc" else zone_rows,
        np.zeros(estimate.size, np.bool_),
    )
    found = rank_cells(key.priorities[0], "desc", "count", listed.values, cells)
    told = np.where(found.rank == UNRANKED, np.nan, found.priority).reshape(estimate.shape)
    return summed(told)


def summed(priority: Float64Array) -> Float64Array:
    """float64[n]: over zones, of priorities float64[n, zones]; NaN where all of them are."""
    return np.where(np.isnan(priority).all(axis=1), np.nan, np.nansum(priority, axis=1))


def _allowed(values: Column, numbers: Int64Array, members: SelectionMembers) -> BoolArray:
    """bool[members, values]: which values the ranges of members hold. None of the values is NULL or NaN.

    O(intervals * values).
    """
    domain = domain_of(members.type)
    regions = [members.conditions[number].region for number in numbers.tolist()]
    for region in regions:
        domain.name(region)
    keys = np.empty(len(values), np.int64)
    domain.keys(values, keys)
    bounds = [domain.intervals(region) for region in regions]
    counts = np.array([len(each) for each in bounds])
    flat = np.array([bound for each in bounds for bound in each], np.int64).reshape(-1, 2)
    inside = (keys >= flat[:, :1]) & (keys <= flat[:, 1:])
    found = np.zeros((len(numbers), len(values)), np.bool_)
    some = np.flatnonzero(counts)
    if len(some) and len(values):
        starts = np.cumsum(counts) - counts
        found[some] = np.logical_or.reduceat(inside, starts[some], axis=0)
    return found


def _add(
    promise: Promise,
    entry: Int64Array,
    weight: Float64Array,
    count: npt.NDArray[np.number],
    priority: Float64Array,
) -> None:
    """Add values of entries, each with the weight of those that look for it."""
    n = len(promise.rows)
    there = np.asarray(count > 0)
    entry, weight, priority = entry[there], weight[there], priority[there]
    promise.rows[:] += np.bincount(entry, weight * count[there], n)
    some = ~np.isnan(priority)
    promise.priority[:] += np.bincount(entry[some], (weight * priority)[some], n)
    np.minimum.at(promise.least, entry[some], priority[some])
    promise.ranked[:] += np.bincount(entry[some], minlength=n)
