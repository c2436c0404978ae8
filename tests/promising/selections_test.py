"""Selections over one stream find what their predicates accept: all of it with units for all of it, some of
it and nothing else with fewer.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from engine.language import expressions as ex
from engine.language.preference import ATTRIBUTE, COUNT
from engine.model.state_tree import as_tree
from engine.model.types import BIGINT, BOOLEAN, DOUBLE, STRING
from tests.promising.selection_world import ATTRIBUTES, D, K, T, World, definition

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
