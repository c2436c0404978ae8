"""Promising joins as queries come and go: windows, predicates, reach, keys of all kinds."""

from __future__ import annotations

import pytest

from engine.model.expressions import Compare, Literal
from engine.model.types import BIGINT
from engine.promising.group import Member
from engine.promising.join_members import join_key
from engine.promising.joins import PromisingJoin
from engine.windows.clauses import UNBOUNDED
from tests.joins.sources import KEYS
from tests.promising.streams import WIDTHS, Streams, join_query, pairs_of, rows_of, script_of, spend_all
from tests.time_windows import range_window


def delay(op: str, bound: int) -> Compare:
    return Compare(op, KEYS["k"], Literal(bound, BIGINT))


def test_a_query_that_wants_more_finds_it_and_nothing_is_found_twice():
    streams = Streams(granularity_ms=64, depth=3)
    narrow = join_query("desc", [range_window(15)] * 2, predicates=[delay("<", 4), None])
    group = streams.group(narrow)
    wide = join_query("desc", [range_window(40)] * 2, predicates=[delay(">", 2), None])
    for number, (rows, now_ms) in enumerate(script_of(5)):
        streams.step(rows, now_ms)
        if number == 3:
            before = pairs_of(group)
            group.add(Member("wide", wide), streams.at())
            assert not group.is_whole("wide")
            group.arrive(streams.at(), now_ms)
            assert pairs_of(group) == [each for each in before if min(times(streams, each)) >= now_ms - 40]
        group.arrive(streams.at(), now_ms)
        spend_all(group, streams, 300)
        group._check()
        assert len(pairs_of(group)) == len(set(pairs_of(group)))
    spend_all(group, streams)
    for name, begin, low, high in (("q0", 45, 0, 4), ("wide", 20, 3, 99)):
        exact = {
            (left, right)
            for left, right in streams.exact([begin, begin])
            if low <= (streams.sources.rows["a"][left][1] or 0) < high
        }
        assert exact
        assert exact <= set(pairs_of(group, name))
        assert group.is_whole(name)
    group.remove("wide")
    streams.step({}, 62)
    group.arrive(streams.at(), 62)
    assert {min(times(streams, each)) >= 47 for each in pairs_of(group)} == {True}


def times(streams: Streams, pair: tuple[int, int]) -> tuple[int, int]:
    left, right = pair
    return streams.sources.rows["a"][left][0], streams.sources.rows["b"][right][0]


def test_what_left_the_reach_is_no_candidate_and_the_answer_says_so():
    streams = Streams(granularity_ms=8, depth=1)
    group = streams.group(join_query("asc", (UNBOUNDED, UNBOUNDED)))
    streams.step({"a": rows_of([1, 2], [1, 1])}, 2)
    group.arrive(streams.at(), 2)
    streams.step({"b": rows_of([3], [1])}, 3)
    group.arrive(streams.at(), 3)
    assert spend_all(group, streams, 1) == 1
    assert not group.is_whole("q0")
    assert group.entries_left("q0") == 1
    assert group.estimate_left("q0") == 1.0
    streams.step({"b": rows_of([20], [1])}, 20)
    group.arrive(streams.at(), 20)
    group._check()
    assert pairs_of(group) == [(1, 0)]
    assert group.counts.lapsed == 1
    assert not group.left
    assert not group.is_whole("q0")


@pytest.mark.parametrize("keys", [("d",), ("d", "s")])
def test_nan_equals_nan_and_null_nothing(keys):
    streams = Streams(column="d", granularity_ms=100)
    group = streams.group(join_query("desc", keys=keys))
    nan = float("nan")
    rows = [(1, None, "x", nan), (2, None, "x", None), (3, None, "y", -0.0), (4, None, "x", 1.5)]
    streams.step({"a": rows}, 4)
    streams.step({"b": [(5, None, "x", nan), (6, None, "y", 0.0), (7, None, "x", None)]}, 7)
    group.arrive(streams.at(), 7)
    spend_all(group, streams)
    assert pairs_of(group) == [(0, 0), (2, 1)]
    group._check()


def test_a_stream_joins_itself():
    streams = Streams(granularity_ms=100)
    query = join_query("desc", [range_window(50)] * 2, sources=("a", "a"))
    group = streams.group(query)
    for rows, now_ms in script_of(9, steps_made=3, rows=20):
        streams.step(rows, now_ms)
        group.arrive(streams.at(), now_ms)
        spend_all(group, streams, 10)
    spend_all(group, streams)
    rows = streams.sources.rows["a"]
    expected = [(i, j) for i, one in enumerate(rows) for j, other in enumerate(rows) if one[1] == other[1]]
    assert pairs_of(group) == expected


def test_forgetting_finds_everything_anew():
    streams = Streams(granularity_ms=100)
    group = streams.group(join_query())
    streams.step({"a": rows_of([1, 2], [1, 2]), "b": rows_of([1, 2], [2, 1])}, 2)
    group.arrive(streams.at(), 2)
    spend_all(group, streams)
    before = pairs_of(group)
    group.forget()
    assert not group.found("q0")
    group.arrive(streams.at(), 2)
    spend_all(group, streams)
    group._check()
    assert pairs_of(group) == before == [(0, 1), (1, 0)]


@pytest.mark.parametrize("keys", [("s",), ("s", "k")])
def test_numbers_of_keys_that_are_gone_are_given_back(keys):
    streams = Streams(column="s", granularity_ms=50)
    query = join_query("desc", [range_window(20)] * 2, keys)
    group = PromisingJoin(join_key(query, WIDTHS), streams.summaries, codes_min=4)
    group.add(Member("q0", query), streams.at())
    found = set()
    for step in range(30):
        rows = [(10 * step + at, at % 2, f"text {10 * step + at % 5}", None) for at in range(1, 11)]
        streams.step({"a": rows, "b": rows[::2]}, 10 * step + 10)
        group.arrive(streams.at(), 10 * step + 10)
        spend_all(group, streams, 12)
        found |= set(pairs_of(group))
        assert set(pairs_of(group)) <= streams.exact([10 * step - 10] * 2, keys)
        assert group._inputs._codes.given <= 4 + 2 * 35  # rows in the windows
    spend_all(group, streams)
    assert set(pairs_of(group)) == streams.exact([280, 280], keys)
    assert len(found) > len(pairs_of(group)) > 0


def test_what_is_estimated_to_be_left_counts_rows_in_the_windows_alone():
    streams = Streams(granularity_ms=100, depth=1)
    group = streams.group(join_query("desc", [range_window(10)] * 2))
    streams.step({"a": rows_of(list(range(20)), [1] * 20)}, 20)
    group.arrive(streams.at(), 20)
    streams.step({"b": rows_of(list(range(20)), [1] * 20)}, 20)
    group.arrive(streams.at(), 20)
    due = len(streams.exact([10, 10]))
    assert group.estimate_left("q0") == pytest.approx(due, rel=0.2)
    streams.step({}, 25)
    group.arrive(streams.at(), 25)
    assert group.estimate_left("q0") == pytest.approx(len(streams.exact([15, 15])), rel=0.2)
    spend_all(group, streams)
    assert group.estimate_left("q0") == 0.0
