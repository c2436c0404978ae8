"""Selections over one stream find what their predicates accept: all of it with units for all of it, some of
it and nothing else with fewer.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.language.preference import ATTRIBUTE, COUNT
from engine.model import expressions as ex
from engine.model.state_tree import as_tree
from engine.model.types import BIGINT, BOOLEAN, DOUBLE, STRING
from tests.promising.selection_world import ATTRIBUTES, D, K, Row, T, World, batch, definition

SETTINGS: tuple[dict[str, Any], ...] = (
    {},
    {"zone_rows_min": 4, "theta": 0.95, "sketch_width": 4, "buckets": 3},
    {"kind": "histogram", "buckets": 1},
    {"bucket_function": "range", "buckets": 4, "zone_rows_min": 8},
)
WINDOWS = (None, 200, 3_000, 20_000)


def integer(value: int | None) -> ex.Literal:
    return ex.Literal(value, BIGINT)


def double(value: float) -> ex.Literal:
    return ex.Literal(value, DOUBLE)


def text(value: str) -> ex.Literal:
    return ex.Literal(value, STRING)


ERRING = ex.Compare(">", ex.Arithmetic("/", integer(6), K, BIGINT), integer(1))
PREDICATES: tuple[ex.Expression | None, ...] = (
    None,
    ex.Compare("=", K, integer(3)),
    ex.In(K, (integer(1), integer(5), integer(99))),
    ex.And((ex.Compare(">=", K, integer(2)), ex.Compare("<", K, integer(6)))),
    ex.Compare(">", K, integer(4)),
    ex.IsNull(K),
    ex.Not(ex.IsNull(K)),
    ex.Compare("=", D, double(0.0)),
    ex.Compare(">", D, double(0.5)),
    ex.In(D, (double(math.nan), double(1.5))),
    ex.Compare("=", T, text("b")),
    ex.Compare(">", T, text("a")),
    ex.And((ex.Compare("=", K, integer(3)), ex.Compare(">", D, double(0.5)))),
    ex.Or((ex.Compare("=", K, integer(3)), ex.Compare("=", T, text("c")))),
    ex.And((ex.Compare("<", K, integer(3)), ERRING)),
    ex.And((ex.Compare(">", ex.Arithmetic("*", K, K, BIGINT), integer(8)), ERRING)),
    ex.Literal(False, BOOLEAN),
)

ROWS = st.tuples(
    st.sampled_from([None, 0, 1, 2, 3, 3, 3, 4, 5, 7]),
    st.sampled_from([None, 0.0, -0.0, 0.7, 1.5, math.nan, math.inf]),
    st.sampled_from([None, "a", "b", "bb", "c"]),
)
GAPS = st.sampled_from([0, 0, 1, 30, 400, 5_000])
STEPS = st.one_of(
    st.tuples(st.just("feed"), st.lists(st.tuples(ROWS, GAPS), min_size=1, max_size=12)),
    st.tuples(st.just("spend"), st.integers(1, 30)),
    st.tuples(
        st.just("add"),
        st.tuples(st.integers(0, len(PREDICATES) - 1), st.sampled_from(WINDOWS), st.integers(1, 3)),
    ),
    st.tuples(st.just("remove"), st.integers(0, 9)),
    st.tuples(st.just("weigh"), st.integers(0, 9)),
    st.tuples(st.just("retain"), st.integers(1, 10)),
    st.tuples(st.just("forget"), st.none()),
)
VALUE = {name: ex.Column(ATTRIBUTE, name, column.type) for name, column in ATTRIBUTES.items()}
COUNTED = ex.Column(COUNT, "count", BIGINT)
WEIGHED = ex.Arithmetic("*", COUNTED, VALUE["k"], BIGINT)


@st.composite
def worlds(draw: st.DrawFn) -> World:
    attribute = draw(st.sampled_from(["k", "d", "t"]))
    chosen = draw(st.sampled_from(SETTINGS))
    shape = draw(st.sampled_from([(1_000, 4, 3), (5_000, 3, 2), (20_000, 2, 1)]))
    return World(
        definition(attribute, *shape, **chosen),
        draw(st.sampled_from(["desc", "asc", "weighted"])),
        draw(st.sampled_from(["count", "density"])),
        draw(st.sampled_from([1.0, 0.5])),
        entries_max=draw(st.sampled_from([1_000_000, 1_000_000, 4])),
        expression=WEIGHED if attribute == "k" and draw(st.booleans()) else None,
    )


def play(
    world: World, steps: list[tuple[str, Any]], *, checked: bool = True, piece: int = 99, restart: int = -1
) -> None:
    """Take steps as they come; what is found is always a subset, and everything is counted.

    piece: grants come in two, the first of so many units. restart: the step before which the group is
    restored.
    """
    world.add("q0", PREDICATES[0], 3_000)
    for number, (what, how) in enumerate(steps, 1):
        names = list(world.predicates)
        if number == restart:
            world.restart()
        if what == "feed":
            now_ms = world.now_ms or 0
            stamps = (now_ms + np.cumsum([gap for _, gap in how])).tolist()
            world.feed([row for row, _ in how], stamps)
        elif what == "spend":
            left = world.group.counts.short
            used = world.spend(min(how, piece)) + (world.spend(how - piece) if how > piece else 0)
            assert used == how or not world.group.left
            assert used <= how
            assert left == 0 or used > 0
        elif what == "add":
            predicate, window_ms, weight = how
            world.add(f"q{number}", PREDICATES[predicate], window_ms, float(weight))
        elif what == "remove" and len(names) > 1:
            world.remove(names[how % len(names)])
        elif what == "weigh":
            world.group.reweigh(names[how % len(names)], 5.0)
        elif what == "retain":
            world.retain(how)
        elif what == "forget":
            world.group.forget()
            world.group.arrive(world.at, world.now_ms)
        if checked:
            world.group._check()
            for name in world.predicates:
                assert np.isin(world.found(name), world.accepted(name)).all()
                rows = world.group.found(name).rows
                assert (np.diff(rows) > 0).all()


@given(worlds(), st.lists(STEPS, max_size=25))
def test_units_for_all_rows_find_what_predicates_accept(world: World, steps: list[tuple[str, Any]]) -> None:
    play(world, steps)
    world.spend_all()
    reach_ms = world.summarised.reach_ms - world.summarised.lengths_ms[-1]
    for name, (_, window_ms) in world.predicates.items():
        if window_ms is not None and window_ms <= reach_ms and not world.group.counts.cut:
            assert world.group.is_whole(name)
        if world.group.is_whole(name):
            np.testing.assert_array_equal(world.found(name), world.accepted(name))
            assert world.group.estimate_left(name) == 0.0


@given(worlds(), st.lists(STEPS, max_size=20), st.integers(0, 20), st.integers(1, 29))
def test_grants_in_pieces_and_a_group_that_is_restored_find_the_same(
    world: World, steps: list[tuple[str, Any]], at: int, piece: int
) -> None:
    other = replace(world, stamps=[], rows=[], predicates={})
    play(world, steps, checked=False)
    play(other, steps, checked=False, piece=piece, restart=at)
    np.testing.assert_equal(as_tree(world.group.state()), as_tree(other.group.state()))


def stored(world: World, rows: int, seed: int = 1, gap_ms: int = 5) -> None:
    """So many rows in one step: k of 0..99, d of [0, 1)."""
    rng, now_ms = np.random.default_rng(seed), world.now_ms or 0
    keys, doubles = rng.integers(0, 100, rows).tolist(), rng.random(rows).tolist()
    stamps = (now_ms + gap_ms * np.arange(1, rows + 1)).tolist()
    world.feed([(k, d, "a") for k, d in zip(keys, doubles, strict=True)], stamps)


def test_many_queries_share_visits_and_a_late_one_takes_part_in_them() -> None:
    world = World(definition("k", 10_000, 4, 3, buckets=8))
    for number in range(1_000):
        world.group.add(
            world.member(f"q{number}", ex.Compare("=", K, integer(number % 100)), 9_000), world.at
        )
        world.predicates[f"q{number}"] = ex.Compare("=", K, integer(number % 100)), 9_000
    world.group.arrive(world.at, None)
    stored(world, 400)
    wanted = sum(len(world.accepted(name)) for name in world.predicates)
    assert world.spend(200) == 200
    world.add("late", None, 9_000)
    # The late one shares the visits of 200 rows that others still look for, and has the other 200 to itself.
    assert world.group.counts.short == 400
    world.spend_all()
    assert world.group.counts.visited == 600
    assert wanted == 4_000
    for name in ("q0", "q57", "q999", "late"):
        np.testing.assert_array_equal(world.found(name), world.accepted(name))
    world.remove("late")
    stored(world, 100, seed=2)
    assert world.spend(10**6) == 100


def test_named_values_are_looked_for_in_their_buckets_alone() -> None:
    world = World(definition("k", 10_000, 4, 3, buckets=8))
    world.add("few", ex.In(K, (integer(3), integer(4))), 9_000)
    stored(world, 800)
    assert world.group.counts.rows <= 400
    world.spend_all()
    np.testing.assert_array_equal(world.found("few"), world.accepted("few"))


def test_ranges_look_into_the_buckets_that_they_meet_once_buckets_are_ordered() -> None:
    world = World(definition("k", 1_000, 4, 4, buckets=10, bucket_function="range"))
    stored(world, 400)  # two seconds; the cuts are learned from the first of them
    stored(world, 1_000, seed=2)
    before = world.group.counts.rows
    world.add("range", ex.And((ex.Compare(">=", K, integer(20)), ex.Compare("<", K, integer(29)))), 4_500)
    looked_at = world.group.counts.rows - before
    assert looked_at <= 0.35 * 900
    world.spend_all()
    np.testing.assert_array_equal(world.found("range"), world.accepted("range"))


def test_desc_finds_the_frequent_first_asc_the_rare_and_weighted_all_alike() -> None:
    share: dict[str, list[int]] = {}
    for order in ("desc", "asc", "weighted"):
        world = World(definition("k", 10_000, 4, 3), order)  # type: ignore[arg-type]
        rows: list[Row] = [(k, 0.5, "a") for k in (1,) * 80 + (2,) * 40 + (3,) * 8]
        rows = [rows[place] for place in np.random.default_rng(1).permutation(len(rows))]
        world.add("q", ex.In(K, (integer(1), integer(2), integer(3))), 9_000)
        world.feed(rows, list(range(1, len(rows) + 1)))
        buckets = world.summary.bucketing.keys(
            batch([(k, 0.0, "") for k in (1, 2, 3)], [0, 0, 0], 0).columns[0]
        ).bucket
        assert len(set(buckets.tolist())) == 3
        world.spend(32)
        found = [rows[ordinal][0] for ordinal in world.found("q").tolist()]
        share[order] = [found.count(k) for k in (1, 2, 3)]
    assert share == {"desc": [32, 0, 0], "asc": [0, 24, 8], "weighted": [20, 10, 2]}


def test_fading_prefers_recent_rows_of_equal_promise() -> None:
    world = World(definition("k", 1_000, 2, 3), fade=0.3)
    world.add("q", ex.Compare("=", K, integer(1)), 3_000)
    world.feed([(1, 0.0, "")] * 60, [10 * place for place in range(60)])
    world.feed([(1, 0.0, "")] * 60, [2_000 + 10 * place for place in range(60)])
    assert set(world.summary.zones.granularity.tolist()) == {1, 2}
    world.spend(40)
    assert (world.found("q") >= 60).all()


def test_errors_of_predicates_count_where_nothing_else_rules_a_row_out() -> None:
    world = World(definition("k", 10_000, 4, 3))
    world.add("q", ex.And((ex.Compare(">", D, double(0.5)), ERRING)), 9_000)
    rows: list[Row] = [(0, 0.9, "a"), (0, 0.1, "a"), (1, 0.9, "a"), (9, 0.9, "a"), (None, 0.9, "a")]
    world.feed(rows, [1, 2, 3, 4, 5])
    # Rows of 5 visits, and of the residual 4 evaluations.
    assert world.spend(100) == 9
    assert world.group.errors("q") == 1
    assert world.found("q").tolist() == [2]


def test_units_that_the_last_row_costs_beyond_a_grant_are_paid_from_the_next() -> None:
    world = World(definition("k", 10_000, 4, 3))
    world.add("q", ERRING, 9_000)
    world.feed([(1, 0.0, "a")] * 10, list(range(10)))
    assert [world.spend(3) for _ in range(7)] == [3, 3, 3, 3, 3, 3, 2]
    assert world.group.counts.spent == 20
    assert len(world.found("q")) == 10


def test_priorities_that_are_no_numbers_come_after_others_and_are_counted() -> None:
    below = ex.Arithmetic("-", VALUE["k"], integer(1), BIGINT)
    undefined = ex.Arithmetic("/", COUNTED, below, BIGINT)
    world = World(definition("k", 10_000, 4, 3), expression=undefined)
    world.add("q", ex.In(K, (integer(1), integer(2))), 9_000)
    world.feed([(1, 0.0, "a")] * 30 + [(2, 0.0, "a")] * 5, list(range(35)))
    world.spend(5)
    assert world.found("q").tolist() == [30, 31, 32, 33, 34]
    assert world.group.counts.unranked == 1
    world.spend_all()
    assert len(world.found("q")) == 35


def test_rows_without_a_value_come_last() -> None:
    world = World(definition("k", 10_000, 4, 3))
    world.add("q", None, 9_000)
    world.feed([(None, 0.0, "a")] * 10 + [(2, 0.0, "a")] * 5, list(range(15)))
    world.spend(6)
    assert world.found("q").tolist() == [0, 10, 11, 12, 13, 14]


def test_without_a_window_rows_lapse_after_the_finest_granularity_and_the_answer_says_so() -> None:
    world = World(definition("k", 1_000, 4, 3))
    world.add("q", ex.Compare("=", K, integer(1)), None)
    world.feed([(1, 0.0, "a")] * 20, list(range(20)))
    world.spend(5)
    world.feed([(1, 0.0, "a")] * 4, [1_100, 1_101, 1_102, 1_103])
    world.spend_all()
    assert world.found("q").tolist() == [0, 1, 2, 3, 4, 20, 21, 22, 23]
    assert world.group.counts.rows_lapsed == 15
    assert not world.group.is_whole("q")
    assert world.group.estimate_left("q") == pytest.approx(15, abs=1)
    world.retain(20)
    world.group.arrive(world.at, world.now_ms)
    assert world.group.is_whole("q")
    assert world.group.estimate_left("q") == 0.0


def test_entries_beyond_the_limit_are_cut_the_least_promising_first() -> None:
    world = World(definition("k", 10_000, 4, 3), entries_max=2)
    world.add("q", None, 9_000)
    rows: list[Row] = [(k, 0.0, "a") for k in (1,) * 30 + (2,) * 20 + (3,) * 5]
    world.feed(rows, list(range(len(rows))))
    assert world.group.counts.cut == 1
    world.spend_all()
    assert world.found("q").tolist() == list(range(50))
    assert not world.group.is_whole("q")
    assert world.group.estimate_left("q") > 0.0
