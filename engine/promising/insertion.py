"""Entries for rows that probe: their distinct keys with the cells that may hold them.

Source: Ali, Aref, ElTabakh, *Scalability via Summaries*, figure 7, steps 2 and 3.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from engine.kernels import promising
from engine.model.batch import Int32Array, Int64Array
from engine.promising.group import GroupKey
from engine.promising.picking import PRUNED, Float64Array
from engine.promising.priorities import CellEstimates, RankedCells, rank_cells
from engine.promising.probed_input import ProbedInput
from engine.promising.promising_set import PromisingEntries
from engine.summaries.summary_type import ValueKeys
from engine.summaries.zones import CandidateCells

INT32_MAX = 2**31 - 1


class _Cells(NamedTuple):
    """The rows that may be visited, for n candidates. first, newest: int64, the oldest row the cell may have
    and its newest one; rows: int64, how many it has between them. share: float64, their share of all rows of
    the cell; estimate: int32, how many of these rows have the value: that share of the estimate for the cell.
    """

    first: Int64Array
    newest: Int64Array
    rows: Int64Array
    share: Float64Array
    estimate: Int32Array


def new_entries(
    probing: ProbedInput,
    probed: ProbedInput,
    group: GroupKey,
    start: int,
    stop: int,
    upper: int,
    from_ms: int,
) -> PromisingEntries | None:
    """Entries over the rows of ``probed`` below ``upper`` that are not before ``from_ms``, for the rows start
    <= ordinal < stop of ``probing``, whose lists are put into the set; None: there are none.

    By key, in the order of the first row of each; then from recent cells to old ones. O(keys * zones).
    """
    rows = probing.chains.wanted(start, stop)
    zones = probed.summary.zones
    if not len(rows) or not len(zones.first):
        return None
    codes = probing.chains.keys_of(rows)
    numbers, firsts = _numbered(codes)
    values = probing.values(rows[firsts])
    keys = probed.summary.bucketing.keys(values)
    candidates = probed.summary.candidates(keys, from_ms)
    cells = _cells_of(candidates, probed, upper)
    ranked = rank_cells(
        probed.priority,
        group.order,
        group.form,
        values,
        CellEstimates(
            candidates.key,
            cells.estimate,
            np.maximum(cells.rows, 1).astype(np.int32),
            zones.rows[candidates.zone] * cells.share,
            candidates.pruned,
        ),
    )
    made = _joined(candidates, cells, ranked)
    without = _without_cell(keys, probed, upper)
    if without is not None:
        made = PromisingEntries.joined([made, without])
    if not len(made):
        return None
    used = np.zeros(len(firsts), np.bool_)
    used[made.lists] = True
    renumbered = np.cumsum(used) - 1
    kept = used[numbers]
    numbers, rows = renumbered[numbers[kept]], rows[kept]
    counts = np.bincount(numbers, minlength=int(used.sum()))
    order = np.argsort(numbers, kind="stable")
    begin = probed.entries.add_lists(counts, codes[firsts[used]], rows[order])
    made.lists = (begin + renumbered[made.lists]).astype(np.int32)
    return made


def _numbered(codes: Int64Array) -> tuple[Int32Array, Int64Array]:
    """(int32[n], int64[distinct]): the number of each row's key as keys first come, and where that is."""
    n = len(codes)
    table = np.full(1 << (2 * n).bit_length(), -1, np.int32)
    numbers, firsts = np.empty(n, np.int32), np.empty(n, np.int64)
    known = promising.number_in_order(codes, table, numbers, firsts)
    return numbers, firsts[:known]


def _cells_of(candidates: CandidateCells, probed: ProbedInput, upper: int) -> _Cells:
    """What of each candidate's cell is at or above the floor and below ``upper``."""
    zones, chains = probed.summary.zones, probed.chains
    ends = np.minimum(zones.end, upper)
    first = np.maximum(zones.first, chains.floor)
    below = chains.bounds(zones.first.tolist())
    upto = chains.bounds(ends.tolist())
    low = np.maximum([bound.counts for bound in below], chains.floor_counts)
    every = np.maximum(np.array([bound.counts for bound in upto]) - low, 0)  # [zones, buckets]
    newest = np.array([bound.newest for bound in upto])
    whole = np.maximum(probed.summary.cell_rows(np.arange(len(ends))), 1)
    at = candidates.zone * np.int64(every.shape[1]) + candidates.bucket
    rows = every.ravel().take(at)
    share = (every / whole).ravel().take(at)
    estimate = np.minimum(np.floor(candidates.estimate * share + 0.5), rows).astype(np.int32)
    return _Cells(first.take(candidates.zone), newest.ravel().take(at), rows, share, estimate)


def _joined(candidates: CandidateCells, cells: _Cells, ranked: RankedCells) -> PromisingEntries:
    """Candidates that have rows as entries, runs of pruned cells of one key as one; recent cells first."""
    there = np.flatnonzero(cells.rows > 0)[::-1]  # they are by key, then zone
    order = there[np.argsort(candidates.key[there], kind="stable")]
    key, bucket = candidates.key[order], candidates.bucket[order]
    pruned = ranked.rank[order] == PRUNED
    begins = np.ones(len(order), np.bool_)
    begins[1:] = ~(pruned[1:] & pruned[:-1] & (key[1:] == key[:-1]) & (bucket[1:] == bucket[:-1]))
    begin = np.flatnonzero(begins)
    if not len(begin):
        return PromisingEntries.none()
    oldest = np.append(begin[1:], len(order)) - 1
    rows = np.minimum(np.add.reduceat(cells.rows[order], begin), INT32_MAX).astype(np.int32)
    estimate = cells.estimate[order][begin]
    return PromisingEntries(
        key[begin],
        cells.first[order][oldest],
        cells.newest[order][begin],
        rows,
        rows.copy(),
        np.where(pruned[begin], 0, estimate).astype(np.int32),
        ranked.rank[order][begin],
        ranked.priority[order][begin],
    )


def _without_cell(keys: ValueKeys, probed: ProbedInput, upper: int) -> PromisingEntries | None:
    """Entries of keys that are in no cell, as NaN is, over all the rows that are in none; visited last."""
    zones, chains = probed.summary.zones, probed.chains
    bucket = probed.summary.definition.settings.buckets
    key = np.flatnonzero(keys.bucket == bucket).astype(np.int32)
    if not len(key):
        return None
    below, upto = chains.bounds([int(zones.first[0]), min(upper, int(zones.end[-1]))])
    rows = int(upto.counts[bucket] - max(below.counts[bucket], chains.floor_counts[bucket]))
    if rows <= 0:
        return None
    n = len(key)
    return PromisingEntries(
        key,
        np.full(n, max(int(zones.first[0]), chains.floor), np.int64),
        np.full(n, upto.newest[bucket], np.int64),
        np.full(n, rows, np.int32),
        np.full(n, rows, np.int32),
        np.zeros(n, np.int32),
        np.full(n, PRUNED, np.int8),
        np.zeros(n, np.float64),
    )
