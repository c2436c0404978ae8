"""Data and helpers that ``summary_test.py`` shares with other tests."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from hypothesis import strategies as st

from engine.model.batch import Column
from engine.model.capacities import SMALLEST
from engine.model.state_tree import as_tree, of_tree
from engine.model.summary import SummaryDefinition
from engine.model.types import BIGINT
from engine.summaries.state import SummaryState
from engine.summaries.summary import Summary
from tests.summaries import plain


@dataclass(frozen=True)
class Rows:
    """values: None: NULL. cuts: where batches end; restored: the batches after which it is saved, loaded."""

    values: tuple[int | None, ...]
    timestamp: tuple[int, ...]

    def column(self, start: int, stop: int) -> Column:
        part = self.values[start:stop]
        valid = np.array([value is not None for value in part], np.bool_)
        return Column(BIGINT, np.array([value or 0 for value in part], np.int64), valid)


@st.composite
def rows(draw: st.DrawFn) -> Rows:
    gaps = draw(st.lists(st.sampled_from([0, 0, 0, 1, 1, 2, 5, 30, 200]), min_size=0, max_size=120))
    few = st.one_of(st.none(), st.integers(0, 2), st.integers(0, 2), st.integers(-(2**63), 2**63 - 1))
    values = draw(st.lists(few, min_size=len(gaps), max_size=len(gaps)))
    begin = draw(st.sampled_from([0, -57, 1_700_000_000_003]))
    return Rows(tuple(values), tuple(begin + int(at) for at in np.cumsum([0, *gaps])[1:]))


def entered(definition: SummaryDefinition, given_: Rows, cuts: list[int], first: int = 0) -> Summary:
    """All rows, in batches that end at the cuts; saved and loaded in between."""
    summary = Summary(definition, BIGINT, SMALLEST)
    ends = [0, *sorted(cut % (len(given_.values) + 1) for cut in cuts), len(given_.values)]
    for start, stop in pairwise(ends):
        timestamp = np.array(given_.timestamp[start:stop], np.int64)
        summary.enter(given_.column(start, stop), timestamp, first + start)
        if stop > start:
            summary.advance(int(timestamp[-1]))
        if cuts:
            state = of_tree(SummaryState, as_tree(summary.state()))
            summary = Summary.restored(definition, BIGINT, state, SMALLEST)
    return summary


def same(one: object, other: object) -> bool:
    if isinstance(one, np.ndarray):
        assert isinstance(other, np.ndarray)
        return one.dtype == other.dtype and one.shape == other.shape and bool((one == other).all())
    if isinstance(one, dict):
        assert isinstance(other, dict)
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list):
        assert isinstance(other, list)
        return len(one) == len(other) and all(map(same, one, other))
    return one == other


def _check(summary: Summary) -> None:
    for pyramid in summary._pyramids:
        pyramid._check()


def check(definition: SummaryDefinition, given_: Rows, cuts: list[int], later_ms: int) -> None:
    """Against what is counted row by row."""
    summary, whole = entered(definition, given_, cuts), entered(definition, given_, [])
    now_ms = (given_.timestamp[-1] if given_.timestamp else 0) + later_ms
    for one in (summary, whole):
        one.advance(now_ms)
        _check(one)
    assert same(as_tree(summary.state()), as_tree(whole.state()))

    hashes = [None if value is None else plain.integer_hash(value) for value in given_.values]
    zones = plain.cut(definition, hashes, list(given_.timestamp))
    expected = plain.granularities(definition, zones, list(given_.timestamp), now_ms)
    found = summary.zones
    assert [
        (int(i), int(a), int(b)) for i, a, b in zip(found.granularity, found.first, found.end, strict=True)
    ] == [(granularity, ordinals[0], ordinals[-1] + 1) for granularity, ordinals in expected]
    assert found.begin_ms.tolist() == [given_.timestamp[ordinals[0]] for _, ordinals in expected]
    assert found.end_ms.tolist() == [given_.timestamp[ordinals[-1]] + 1 for _, ordinals in expected]

    settings_ = definition.settings
    distinct = sorted({value for value in given_.values if value is not None})
    keys = summary.bucketing.keys(Column(BIGINT, np.array(distinct, np.int64)))
    estimates = summary.estimate(keys, np.arange(len(expected)))
    candidates = summary.candidates(keys, -(2**62))
    pairs = []
    for place, (_, ordinals) in enumerate(expected):
        cells = plain.PlainCells(settings_.sketch_depth, settings_.sketch_width)
        for ordinal in ordinals:
            hash_ = hashes[ordinal]
            if hash_ is not None:
                cells.enter(hash_, plain.bucket_of(hash_, settings_.buckets))
        counters = summary._pool.cells.counters[found.slot[place]]
        for bucket, counter in np.ndindex(counters.shape):
            assert counters[bucket, counter] == cells.counters[bucket, counter]
        assert summary.cell_rows(np.array([place]))[0, :-1].tolist() == [
            cells.rows[bucket] for bucket in range(settings_.buckets)
        ]
        for bucket in range(settings_.buckets + 1):
            in_bucket = [
                ordinal
                for ordinal in ordinals
                if (
                    settings_.buckets
                    if hashes[ordinal] is None
                    else plain.bucket_of(hashes[ordinal] or 0, settings_.buckets)
                )
                == bucket
            ]
            assert summary.rows_of(bucket, ordinals[0], ordinals[-1] + 1).tolist() == in_bucket
        for key, value in enumerate(distinct):
            hash_ = plain.integer_hash(value)
            bucket = plain.bucket_of(hash_, settings_.buckets)
            assert estimates[key, place] == cells.estimate(hash_, bucket)
            if cells.rows[bucket]:
                pairs.append((key, place, bucket, cells.estimate(hash_, bucket)))
    assert len(candidates.key) == len(pairs)
    for key, place, bucket, estimate, row in zip(*candidates[:4], sorted(pairs), strict=True):
        assert (key, place, bucket) == row[:3]
        assert estimate in (0, row[3])
    assert (candidates.pruned == (candidates.estimate == 0)).all()
