"""Which pairs are found first: figure 1 of the paper, ties, priorities that cannot be told, fading."""

from __future__ import annotations

import pytest

from engine.language.preference import ATTRIBUTE
from engine.model.expressions import Arithmetic, Column
from engine.model.summary import SummarySettings
from engine.model.types import BIGINT
from tests.promising.streams import COUNTED, Streams, join_query, pairs_of, rows_of, spend_all
from tests.time_windows import range_window

FIRST = [5, 9, 5, 3, 9, 5]
SECOND = [5, 9, 3, 5]
"""Two streams as the text of the paper tells of those in figure 1: with three 5s of the first there are 6
pairs, with two 5s and a 9 there are 5, and the 3 is rare in both."""


@pytest.mark.parametrize(
    ("order", "values", "count"), [("desc", [5, 5, 5], 6), ("weighted", [5, 5, 9], 5), ("asc", [3, 9, 9], 3)]
)
def test_time_for_three_rows_of_stream_1_goes_to_those_that_the_preference_wants(order, values, count):
    streams = Streams(granularity_ms=1000, settings=SummarySettings(buckets=64))
    group = streams.group(join_query(order))
    streams.step({"a": rows_of([1, 2, 3, 4, 5, 6], FIRST)}, 6)
    group.arrive(streams.at(), 6)
    streams.step({"b": rows_of([7, 8, 9, 10], SECOND)}, 10)
    group.arrive(streams.at(), 10)
    visited = []
    while len(visited) < 3:  # a row that two others look for takes two units
        before = set(pairs_of(group))
        assert spend_all(group, streams, 1) == 1
        visited += sorted({FIRST[left] for left, _ in set(pairs_of(group)) - before})
    assert sorted(visited) == values
    assert len(pairs_of(group)) == count
    assert visited[0] == {"desc": 5, "weighted": 5, "asc": 3}[order]


def test_equal_priorities_go_by_the_row_that_came_first():
    streams = Streams(granularity_ms=1000, settings=SummarySettings(buckets=64))
    group = streams.group(join_query("desc"))
    streams.step({"a": rows_of([1, 2, 3], [7, 8, 6])}, 3)
    group.arrive(streams.at(), 3)
    streams.step({"b": rows_of([4, 5, 6], [6, 8, 7])}, 6)
    group.arrive(streams.at(), 6)
    found = []
    for _ in range(3):
        spend_all(group, streams, 1)
        found.append(next(pair for pair in pairs_of(group) if pair not in found))
    assert found == [(2, 0), (1, 1), (0, 2)]


def test_entries_without_a_priority_come_after_others_and_are_counted():
    streams = Streams(granularity_ms=1000, settings=SummarySettings(buckets=64))
    group = streams.group(
        join_query("desc", expression=Arithmetic("/", COUNTED, Column(ATTRIBUTE, "k", BIGINT), BIGINT))
    )
    streams.step({"a": rows_of([1, 2], [0, 5])}, 2)
    group.arrive(streams.at(), 2)
    streams.step({"b": rows_of([4, 5], [0, 5])}, 5)
    group.arrive(streams.at(), 5)
    assert group.counts.unranked == 1
    spend_all(group, streams, 1)
    assert pairs_of(group) == [(1, 1)]
    spend_all(group, streams, 1)
    assert pairs_of(group) == [(0, 0), (1, 1)]


def test_fresh_rows_are_found_first_where_priorities_fade():
    found = {}
    for fade in (1.0, 0.1):
        streams = Streams(granularity_ms=10, rate=2, depth=3)
        group = streams.group(join_query("desc", fade=fade))
        streams.step({"a": rows_of([1, 2, 3, 18], [1, 1, 1, 1])}, 20)
        group.arrive(streams.at(), 20)
        streams.step({"b": rows_of([21], [1])}, 21)
        group.arrive(streams.at(), 21)
        spend_all(group, streams, 1)
        found[fade] = pairs_of(group)
    assert found == {1.0: [(2, 0)], 0.1: [(3, 0)]}


def test_of_a_cell_that_the_window_cuts_only_the_rows_in_the_window_count():
    """Six 1s of which one is in the window, in the zone of three 2s that all are."""
    streams = Streams(granularity_ms=100, settings=SummarySettings(buckets=64, zone_length_max_ms=100))
    group = streams.group(join_query("desc", [range_window(10)] * 2))
    stamps = [1, 1, 1, 1, 1, 20, 21, 22, 23, 24]
    streams.step({"a": rows_of(stamps, [1, 1, 1, 1, 1, 1, 2, 2, 2, 3])}, 25)
    group.arrive(streams.at(), 25)
    streams.step({"b": rows_of([26, 27], [1, 2])}, 27)
    group.arrive(streams.at(), 27)
    spend_all(group, streams, 1)
    assert pairs_of(group) == [(8, 1)]
    spend_all(group, streams)
    assert pairs_of(group) == [(5, 0), (6, 1), (7, 1), (8, 1)]
    assert group.counts.visited == 4
