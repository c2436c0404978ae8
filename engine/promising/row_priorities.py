"""How promising the cells of a stream are for the members of a group over it.

The priority is an expression over a value, its estimated rows in the cell, and that count over the rows of
the zone. The values of a cell are, for a member whose predicate names values of the attribute, those that lie
in the cell's bucket; for others see :mod:`engine.promising.cell_values`. A cell that is visited serves all of
them, so it has the sum of their priorities, each times its member's weight; with ``asc`` the least of them,
each summed over all zones.

Source: Ali, Aref, ElTabakh, *Scalability via Summaries*, sections 4.1.1 and 4.2.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from engine.kernels import selections
from engine.kernels.selections import EntryCells, Promise
from engine.language.preference import Priority
from engine.model.batch import Int64Array
from engine.promising.cell_places import CellPlaces
from engine.promising.cell_values import RetainedAttribute, promise_of_cells, summed
from engine.promising.group import GroupKey
from engine.promising.named_values import NamedValues
from engine.promising.picking import EMPTY, PROMISING, PRUNED, UNRANKED
from engine.promising.priorities import CellEstimates, rank_cells
from engine.promising.row_entries import RowEntries
from engine.promising.selection_members import SelectionMembers
from engine.summaries.summary import Summary

Float64Array = npt.NDArray[np.float64]


def ranked(
    key: GroupKey,
    entries: RowEntries,
    attribute: RetainedAttribute,
    members: SelectionMembers,
    named: NamedValues,
    summary: Summary,
) -> RowEntries:
    """The entries with their priorities for the group.

    O(entries * members that name no values + sum over entries of the named values of their buckets).
    """
    n = len(entries)
    places = CellPlaces.of(entries, summary)
    weights = members.weights()
    zones, zone = np.unique(places.zone, return_inverse=True)
    cells = EntryCells(places.place, zone.astype(np.int32), entries.wanted)
    promise = Promise(np.zeros(n), np.zeros(n), np.full(n, np.inf), np.zeros(n, np.int64))
    if len(named.values):
        estimate = summary.estimate(named.keys, zones)
        if key.order == "asc":
            every = np.arange(len(summary.zones.first))
            total = summed(_of_values(key.priorities[0], named, summary, every))
            priority = np.broadcast_to(total[:, None], estimate.shape).copy()
        else:
            priority = _of_values(key.priorities[0], named, summary, zones)
        selections.promise_of_constants(cells, named.constants, estimate, priority, weights, promise)
    promise_of_cells(key, entries, places, attribute, members, named, summary, promise)
    standing = np.full(n, PROMISING, np.int8)
    standing[promise.ranked == 0] = UNRANKED
    standing[promise.rows <= 0.0] = EMPTY
    total = promise.least if key.order == "asc" else promise.priority
    if key.form == "density":
        total = total / np.maximum(places.cell_rows, 1)
    if key.order == "weighted":
        with np.errstate(divide="ignore", invalid="ignore"):
            total = total / promise.rows
        standing[(standing == PROMISING) & ~(np.isfinite(total) & (total > 0.0))] = UNRANKED
    standing[np.isnan(total) & (standing == PROMISING)] = UNRANKED
    standing[entries.bucket == members.buckets] = PRUNED
    return replace(entries, priority=np.where(standing == PROMISING, total, 0.0), standing=standing)


def _of_values(priority: Priority, named: NamedValues, summary: Summary, zones: Int64Array) -> Float64Array:
    """float64[values, zones]: the priority of each named value; NaN where it is NULL, NaN or an error."""
    estimate = summary.estimate(named.keys, zones)
    values, width = estimate.shape
    every = np.arange(values, dtype=np.int32)
    cells = CellEstimates(
        np.repeat(every, width),
        estimate.reshape(-1),
        np.ones(estimate.size, np.int32),
        np.tile(summary.zones.rows[zones], values),
        np.zeros(estimate.size, np.bool_),
    )
    found = rank_cells(priority, "desc", "count", named.values, cells)
    return np.where(found.rank == UNRANKED, np.nan, found.priority).reshape(estimate.shape)
