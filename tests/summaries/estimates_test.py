"""What estimates are worth, layouts that are learned, and streams at the edge of what there is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest

from engine.model.batch import Column
from engine.model.state_tree import as_tree, of_tree
from engine.model.string_table import StringTable
from engine.model.summary import SummaryDefinition, SummarySettings
from engine.model.types import BIGINT, DOUBLE, STRING, Type, decimal
from engine.summaries.description import attributes_of
from engine.summaries.growing_zone import CHANGES_MAX, CHANGES_MIN
from engine.summaries.row_buckets import RowBuckets
from engine.summaries.state import SummaryState
from engine.summaries.summary import Summary
from tests.summaries.summary import same

YEAR_MS = 365 * 86_400_000
Ints = npt.NDArray[np.int64]


def summary_of(
    settings: SummarySettings,
    values: Column,
    timestamp: Ints,
    *,
    t1_ms: int = 10_000,
    depth: int = 3,
    batch: int = 5_000,
) -> Summary:
    summary = Summary(SummaryDefinition("s", "a", "x", t1_ms, 4, depth, settings), values.type)
    for at in range(0, len(values), batch):
        stop = min(at + batch, len(values))
        summary.enter(values.slice(at, stop), timestamp[at:stop], at)
        summary.advance(int(timestamp[stop - 1]))
    return summary


def zipf(rows: int, seed: int = 1) -> Ints:
    rng = np.random.default_rng(seed)
    weights = 1 / np.arange(1, 2_001) ** 1.26
    return rng.permutation(2_000)[rng.choice(2_000, rows, p=weights / weights.sum())] * 7_919


def counts_of(values: Ints, keys: Ints) -> Ints:
    found, counts = np.unique(values, return_counts=True)
    places = found.searchsorted(keys).clip(0, len(found) - 1)
    return np.where(found[places] == keys, counts[places], 0)


def test_estimates_are_seldom_off_by_more_than_the_bound() -> None:
    values, timestamp = zipf(60_000), np.arange(60_000)
    summary = summary_of(SummarySettings(sketch_width=16, buckets=4), Column(BIGINT, values), timestamp)
    zones, keys = summary.zones, np.unique(values)
    of_keys = summary.bucketing.keys(Column(BIGINT, keys))
    estimates = summary.estimate(of_keys, np.arange(len(zones.first)))
    beyond = checked = 0
    for zone in range(len(zones.first)):
        rows = values[zones.first[zone] : zones.end[zone]]
        true = counts_of(rows, keys)
        squares = np.bincount(of_keys.bucket, weights=true.astype(float) ** 2)
        bound = np.sqrt(8 * squares[of_keys.bucket] / 16)
        beyond += int((np.abs(estimates[:, zone] - true) > bound).sum())
        checked += len(keys)
    assert checked > 10_000
    assert beyond <= 0.02 * checked


@pytest.mark.parametrize("begun", [0, 28_500, 60_000])
def test_lists_of_frequent_values_have_the_frequent_ones_and_a_row_of_each(begun: int) -> None:
    """begun: rows that are there when lists are first asked for."""
    values, timestamp = zipf(60_000), np.arange(60_000)
    column = Column(BIGINT, values)
    summary = summary_of(SummarySettings(), column.slice(0, begun), timestamp[:begun])
    summary.list_values(column.slice, 0)
    state = of_tree(SummaryState, as_tree(summary.state()))
    restored = Summary.restored(summary.definition, BIGINT, state)
    for at in range(begun, len(values), 5_000):
        stop = min(at + 5_000, len(values))
        for one, end in ((summary, stop), (restored, at + 1), (restored, stop)):
            start = one._rows.next
            one.enter(column.slice(start, end), timestamp[start:end], start)
            one.advance(int(timestamp[end - 1]))
    assert restored.lists_values
    assert same(as_tree(restored.state()), as_tree(summary.state()))
    zones = summary.zones
    for zone in range(len(zones.first)):
        rows = values[zones.first[zone] : zones.end[zone]]
        found, counts = np.unique(rows, return_counts=True)
        keys = summary.bucketing.keys(Column(BIGINT, found))
        for bucket in range(16):
            top = summary.top(zone, bucket)
            assert (np.diff(top.estimate) <= 0).all()
            assert summary.bucketing.keys(Column(BIGINT, values[top.row])).hash.tolist() == top.hash.tolist()
            mine = keys.bucket == bucket
            best = found[mine][np.argsort(-counts[mine], kind="stable")][:3]
            assert set(best.tolist()) <= set(values[top.row].tolist())


@pytest.mark.parametrize("kind", ["count_sketch", "histogram"])
def test_ranges_of_values_are_in_few_buckets_once_a_t1_was_seen(kind: Any) -> None:
    values, timestamp = zipf(80_000), np.arange(80_000)
    settings = SummarySettings(kind=kind, bucket_function="range")
    column = Column(BIGINT, values)
    summary = summary_of(settings, column, timestamp)
    zones, cuts = summary.zones, summary.bucketing.cuts()
    assert cuts is not None
    assert zones.layout[-1] == 1
    learned = np.sort(values[:10_000].astype(float))
    assert cuts.tolist() == learned[np.arange(1, 16) * 10_000 // 16].tolist()
    keys = np.unique(values)
    candidates = summary.candidates(summary.bucketing.keys(Column(BIGINT, keys)), 0)
    ordered = zones.layout[candidates.zone] == 1
    assert ordered.any()
    wanted = cuts.searchsorted(keys[candidates.key], side="right")
    assert (candidates.bucket[ordered] == wanted[ordered]).all()
    for at in np.flatnonzero(ordered)[:200]:
        zone = candidates.zone[at]
        ordinals = summary.rows_of(int(candidates.bucket[at]), int(zones.first[zone]), int(zones.end[zone]))
        assert len(ordinals) == summary.cell_rows(np.array([zone]))[0, candidates.bucket[at]]
        assert (cuts.searchsorted(values[ordinals], side="right") == candidates.bucket[at]).all()
    halves = summary_of(settings, column, timestamp, batch=777)
    state = of_tree(SummaryState, as_tree(halves.state()))
    restored = Summary.restored(halves.definition, BIGINT, state)
    assert same(as_tree(restored.state()), as_tree(summary.state()))


def test_zones_of_either_layout_are_asked_by_their_own_buckets() -> None:
    values, timestamp = zipf(18_000), np.arange(18_000)
    settings = SummarySettings(bucket_function="range", buckets=4)
    summary = summary_of(settings, Column(BIGINT, values), timestamp)
    zones, keys = summary.zones, np.unique(values)
    assert set(zones.layout.tolist()) == {0, 1}
    of_keys = summary.bucketing.keys(Column(BIGINT, keys))
    candidates = summary.candidates(of_keys, 0)
    estimates = summary.estimate(of_keys, np.arange(len(zones.first)))
    assert (np.diff(candidates.key) >= 0).all()
    of_cells = estimates[candidates.key, candidates.zone]
    assert ((candidates.estimate == of_cells) | candidates.pruned).all()
    met = np.zeros(len(values), np.int64)
    lists = summary.rows_of_many(candidates.bucket, zones.first[candidates.zone], zones.end[candidates.zone])
    of_row = np.repeat(keys[candidates.key], np.diff(lists.offsets))
    np.add.at(met, lists.rows, values[lists.rows] == of_row)
    assert (met[int(zones.first[0]) :] == 1).all()  # each row is met by its value once


def test_a_histogram_tells_a_value_its_share_of_the_interval() -> None:
    values = np.tile(np.arange(64), 1_000)
    settings = SummarySettings(kind="histogram", sketch_width=16, buckets=1, theta=0.0)
    summary = summary_of(settings, Column(BIGINT, values), np.arange(64_000), t1_ms=8_000)
    zones = summary.zones
    last = np.flatnonzero(zones.layout == 1)
    estimates = summary.estimate(summary.bucketing.keys(Column(BIGINT, np.arange(64))), last)
    for at, zone in enumerate(last):
        rows = int(zones.rows[zone])
        assert abs(int(estimates[:, at].sum()) - rows) <= 64
        assert np.ptp(estimates[:, at]) <= 2


@pytest.mark.parametrize(
    ("type_", "values"),
    [
        (DOUBLE, [0.0, -0.0, 1.5, float("inf"), float("nan"), 3.0]),
        (decimal(9, 2), [0, 0, 150, 10**9 - 1, 0, 300]),
    ],
    ids=["double", "decimal"],
)
def test_equal_numbers_have_one_key_whatever_their_type(type_: Type, values: list[Any]) -> None:
    valid = np.array([True, True, True, True, type_ is DOUBLE, True])
    column = Column(type_, np.array(values, type_.dtype), valid)
    for settings in (SummarySettings(), SummarySettings(bucket_function="range")):
        summary = Summary(SummaryDefinition("s", "a", "x", 10, 2, 1, settings), type_)
        keys = summary.bucketing.keys(column)
        integers = summary.bucketing.keys(Column(BIGINT, np.array([0, 3])))
        assert keys.hash[[0, 1, 5]].tolist() == integers.hash[[0, 0, 1]].tolist()
        assert (keys.bucket == 16).tolist() == [False, False, False, False, True, False]


def test_strings_have_the_key_of_their_bytes() -> None:
    texts = ["", "a", "ab", "grün", "a much longer text than eight bytes", "a"]
    table = StringTable()
    table.number(pa.array(["zzz", "ab"]))
    summary = Summary(SummaryDefinition("s", "a", "x", 10, 2, 1), STRING)
    column = Column.from_arrow(STRING, pa.array([*texts, None]))
    by_table = summary.bucketing.keys(column.coded(table))
    by_array = summary.bucketing.keys(column)
    assert by_table.hash[:6].tolist() == by_array.hash[:6].tolist()
    assert len(set(by_array.hash[:5].tolist())) == 5
    assert by_array.bucket[6] == by_table.bucket[6] == 16


def flat(values: Callable[[int], Ints]) -> Summary:
    rows = 20_000
    settings = SummarySettings(zone_length_max_ms=10**9)
    return summary_of(settings, Column(BIGINT, values(rows)), np.arange(rows), t1_ms=10**9, depth=1)


def test_no_change_is_found_where_all_rows_are_alike_or_all_differ() -> None:
    for values in (lambda rows: np.zeros(rows, np.int64), lambda rows: np.arange(rows) * 977):
        summary = flat(values)
        assert summary.ended["change"] == 0
        assert len(summary.zones.first) == 1


def test_a_swap_of_all_values_ends_the_zone() -> None:
    values = zipf(20_000)
    values[10_000:] += 1
    summary = summary_of(
        SummarySettings(zone_length_max_ms=10**9), Column(BIGINT, values), np.arange(20_000), t1_ms=10**9
    )
    ends, confidence = summary.zones.end, summary.zones.confidence
    assert ((ends > 10_000) & (ends <= 12_000)).any()
    assert (confidence[:-1] < 0.7).all()
    assert 0.7 <= confidence[-1] < 1.0
    assert summary.zones.cut[:-1].tolist() == [1] * (len(ends) - 1)


def test_changes_without_end_take_bounded_memory() -> None:
    values = (np.arange(60_000) // 8) % 5_000  # eight rows of each value
    settings = SummarySettings(theta=1.0, zone_rows_min=2, buckets=1, sketch_width=4)
    summary = summary_of(settings, Column(BIGINT, values), np.arange(60_000), t1_ms=30_000, depth=1)
    assert CHANGES_MAX < summary.ended["change"] <= 3 * CHANGES_MAX
    large = SummaryDefinition("s", "a", "x", 10, 2, 1, SummarySettings(sketch_width=65_536, buckets=64))
    assert Summary(large, BIGINT)._growing.changes_max == CHANGES_MIN
    assert len(summary.zones.first) <= 2 * (CHANGES_MAX + 4)


def test_a_jump_of_a_year_empties_all_granularities() -> None:
    values, timestamp = zipf(30_000), np.arange(30_000)
    summary = summary_of(SummarySettings(), Column(BIGINT, values), timestamp)
    summary.candidates(summary.bucketing.keys(Column(BIGINT, values[:9])), 0)  # with upper cells, as later
    held = summary.nbytes
    summary.advance(YEAR_MS)
    assert len(summary.zones.first) == 0
    assert len(summary.candidates(summary.bucketing.keys(Column(BIGINT, values[:9])), 0).key) == 0
    assert summary.nbytes < held / 2
    summary.enter(Column(BIGINT, values), timestamp + YEAR_MS, 30_000)
    summary.advance(YEAR_MS + 30_000)
    assert int(summary.zones.rows.sum()) == 30_000
    assert summary.nbytes <= 2 * held


def test_retention_shorter_than_the_reach_takes_rows_out_of_cells() -> None:
    values, timestamp = zipf(30_000), np.arange(30_000)
    summary = summary_of(SummarySettings(), Column(BIGINT, values), timestamp)
    keys = summary.bucketing.keys(Column(BIGINT, np.unique(values)))
    for ordinal in (11_111, 29_999, 30_000):
        summary.drop_below(ordinal)
        zones = summary.zones
        assert int(zones.rows.sum()) == 30_000 - ordinal
        assert (zones.first >= ordinal).all()
        for pyramid in summary._pyramids:
            pyramid._check()
        candidates = summary.candidates(keys, 0)
        cells = summary.cell_rows(np.arange(len(zones.first)))
        assert (candidates.estimate <= cells[candidates.zone, candidates.bucket]).all()
        restored = Summary.restored(
            summary.definition, BIGINT, of_tree(SummaryState, as_tree(summary.state()))
        )
        assert same(as_tree(restored.state()), as_tree(summary.state()))
    summary.enter(Column(BIGINT, values[:1]), np.array([30_001]), 30_000)
    assert summary.zones.rows.tolist() == [1]


def test_a_summary_goes_on_from_its_state_while_retention_takes_rows() -> None:
    values, timestamp = zipf(40_000), np.arange(40_000)
    summary = summary_of(SummarySettings(), Column(BIGINT, values[:20_000]), timestamp[:20_000])
    keys = summary.bucketing.keys(Column(BIGINT, np.unique(values)))
    for at in range(20_000, 40_000, 1_000):
        restored = Summary.restored(
            summary.definition, BIGINT, of_tree(SummaryState, as_tree(summary.state()))
        )
        for one in (summary, restored):
            one.enter(Column(BIGINT, values[at : at + 1_000]), timestamp[at : at + 1_000], at)
            one.advance(at + 1_000)
            one.drop_below(at - 11_234)
            for pyramid in one._pyramids:
                pyramid._check()
        assert same(as_tree(restored.state()), as_tree(summary.state()))
        for mine, its in zip(restored.candidates(keys, 0), summary.candidates(keys, 0), strict=True):
            assert (mine == its).all()
        assert int(summary.zones.rows.sum()) == 12_234


def test_bytes_do_not_grow_with_the_stream() -> None:
    held = []
    settings = SummarySettings(buckets=4, sketch_width=8)
    summary = Summary(SummaryDefinition("s", "a", "x", 10, 4, 3, settings), BIGINT)
    values = zipf(100 * 210)
    for at in range(0, 100 * 210, 210):
        summary.enter(Column(BIGINT, values[at : at + 210]), np.arange(at, at + 210), at)
        summary.advance(at + 209)
        held.append(summary.nbytes)
    assert max(held[2:]) <= 1.1 * held[2]
    for pyramid in summary._pyramids:
        pyramid._check()


def test_rows_of_buckets_over_many_blocks() -> None:
    rng = np.random.default_rng(5)
    bucket = rng.integers(0, 5, 30_000)
    rows, at = RowBuckets(5), 0
    rows.begin(1_000)
    while at < len(bucket):
        count = int(rng.integers(1, 6_000))
        rows.append(bucket[at : at + count])
        at = min(at + count, len(bucket))
        rows.drop_below(1_000 + at - 9_000)
        asked = rng.integers(0, 5, 9).astype(np.int32)
        first, end = np.sort(rng.integers(0, 1_000 + at + 50, (2, 9)), axis=0)
        lists = rows.lists(asked, first, end)
        for place in range(9):
            low = max(int(first[place]), rows.first)
            wanted = [
                one
                for one in range(low, min(int(end[place]), rows.next))
                if bucket[one - 1_000] == asked[place]
            ]
            assert lists.rows[lists.offsets[place] : lists.offsets[place + 1]].tolist() == wanted


def test_rows_out_of_order_are_refused() -> None:
    summary = Summary(SummaryDefinition("s", "a", "x", 10, 2, 1), BIGINT)
    summary.enter(Column(BIGINT, np.array([1])), np.array([5]), 7)
    with pytest.raises(ValueError, match="row 8 is next, not 9"):
        summary.enter(Column(BIGINT, np.array([1])), np.array([5]), 9)
    with pytest.raises(ValueError, match="theta"):
        summary.alter(theta=1.5)
    summary.alter(theta=0.2, zone_rows_min=1)
    told = {one.name: one.value for one in attributes_of(summary)}
    assert (told["theta"], told["zone_rows_min"], told["rows"]) == (0.2, 1, 1)
