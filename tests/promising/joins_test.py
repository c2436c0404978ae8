"""Promising joins against nested loops, whatever the preference, the zones, the windows and the grants."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.language.preference import ATTRIBUTE, FREQUENCY
from engine.language.query import Emit, Query
from engine.model.expressions import Arithmetic, Column, Literal
from engine.model.limits import Limits
from engine.model.state_tree import Tree, as_tree, of_tree
from engine.model.summary import SummarySettings
from engine.model.types import BIGINT, DOUBLE
from engine.promising.group import GroupCounts
from engine.promising.join_state import JoinState
from engine.promising.joins import PromisingJoin
from tests.joins.sources import Row
from tests.promising.streams import COUNTED, LIMITS, Streams, join_query, pairs_of, script_of, spend_all
from tests.strategies import examples
from tests.time_windows import range_window

VALUE, SHARE = Column(ATTRIBUTE, "k", BIGINT), Column(FREQUENCY, "share", DOUBLE)
ONE = Literal(1, BIGINT)
EXPRESSIONS = (
    COUNTED,
    SHARE,
    Arithmetic("*", COUNTED, VALUE, BIGINT),
    Arithmetic("/", COUNTED, VALUE, BIGINT),  # an error where the value is 0
    Arithmetic("-", ONE, COUNTED, BIGINT),
)

orders = st.sampled_from(["desc", "asc", "weighted"])
forms = st.sampled_from(["count", "density"])
fades = st.sampled_from([1.0, 0.8, 0.1])
few = st.integers(0, 3)
values = st.tuples(st.one_of(st.none(), few), st.sampled_from(["x", "y", None]), st.just(0.0))


@st.composite
def steps(draw: st.DrawFn) -> list[tuple[dict[str, list[Row]], int]]:
    """Rows of both streams and NOW, step by step; many rows have one timestamp."""
    now_ms, made = 0, []
    for _ in range(draw(st.integers(1, 6))):
        rows = {}
        for name in "ab":
            stamps = sorted(draw(st.lists(st.integers(now_ms + 1, now_ms + 9), max_size=12)))
            rows[name] = [(stamp, *draw(values)) for stamp in stamps]
        now_ms += draw(st.integers(9, 14))
        made.append((rows, now_ms))
    return made


@st.composite
def streams_of(draw: st.DrawFn) -> Streams:
    """Streams whose summaries reach behind all rows, or 20 ms at least."""
    zones = SummarySettings(
        buckets=draw(st.integers(1, 4)),
        sketch_width=draw(st.sampled_from([1, 4, 64])),
        zone_rows_min=draw(st.integers(2, 6)),
        theta=draw(st.sampled_from([0.0, 0.7, 1.0])),
    )
    granularity, rate, depth = draw(
        st.sampled_from([(20, 2, 1), (8, 2, 3), (3, 3, 3), (7, 2, 2), (90, 2, 1)])
    )
    return Streams(granularity_ms=granularity, rate=rate, depth=depth, settings=zones)


def begin_of(streams: Streams, window_ms: int) -> int:
    assert streams.now_ms is not None
    return streams.now_ms - window_ms


@given(st.data(), streams_of(), steps(), orders, forms, fades, st.sampled_from(EXPRESSIONS))
@settings(max_examples=examples(60))
def test_any_grant_finds_pairs_of_the_exact_join_and_enough_finds_all(
    data, streams, script, order, form, fade, expression
):
    keys = data.draw(st.sampled_from([("k",), ("k", "s")]))
    widths = [data.draw(st.integers(0, 20)) for _ in range(2)]
    query = join_query(order, [range_window(ms) for ms in widths], keys, fade, form, expression)
    limits = data.draw(st.sampled_from([LIMITS, Limits(promising_entries_max=3)]))
    group = streams.group(query, limits=limits)
    for rows, now_ms in script:
        streams.step(rows, now_ms)
        if data.draw(st.integers(0, 4)) == 0:
            gone = data.draw(st.integers(0, 3))
            stem = streams.sources.stems["a"]
            streams.drop_below("a", min(stem.end, stem.base + gone))
            group.drop_below("a", stem.base)
        group.arrive(streams.at(), now_ms)
        units = data.draw(st.sampled_from([0, 1, 7, 1 << 40]))
        used = spend_all(group, streams, units)
        assert used == units or not group.left
        group._check()
        found = pairs_of(group)
        exact = streams.exact([begin_of(streams, ms) for ms in widths], keys)
        assert len(found) == len(set(found))
        assert set(found) <= exact
        assert group.is_whole("q0") <= (set(found) == exact)
        if data.draw(st.booleans()):
            group = renewed(group, streams, limits)
    spend_all(group, streams)
    group._check()
    exact = streams.exact([begin_of(streams, ms) for ms in widths], keys)
    assert group.is_whole("q0") == (not group.counts.cut) or set(pairs_of(group)) == exact or group.counts.cut
    if not group.counts.cut:
        assert set(pairs_of(group)) == exact
        assert group.estimate_left("q0") == 0.0


def stored(tree: Tree) -> Tree:
    """The tree with other arrays, which nobody may write into."""
    if isinstance(tree, dict):
        return {name: stored(each) for name, each in tree.items()}
    if isinstance(tree, list):
        return [stored(each) for each in tree]
    if isinstance(tree, np.ndarray):
        tree = tree.copy()
        tree.flags.writeable = False
    return tree


def renewed(group: PromisingJoin, streams: Streams, limits: Limits = LIMITS) -> PromisingJoin:
    """The group as it comes back from what is stored of it."""
    state = of_tree(JoinState, stored(as_tree(group.state())))
    members = list(group.members.values())
    return PromisingJoin.restored(group.key, streams.summaries, members, streams.at(), state, limits)


def course_of(
    query: Query, cuts: Sequence[int], *, restored: bool = False, limits: Limits = LIMITS
) -> list[object]:
    """What a group finds step by step, 200 units a step, granted in such parts."""
    streams = Streams(granularity_ms=16, depth=3)
    group = streams.group(query, limits=limits)
    course: list[object] = []
    for rows, now_ms in script_of(3):
        streams.step(rows, now_ms)
        group.arrive(streams.at(), now_ms)
        for units in cuts:
            spend_all(group, streams, units)
            if restored:
                group = renewed(group, streams, limits)
        course.append((pairs_of(group), group.counts, group.estimate_left("q0")))
    return course


@pytest.mark.parametrize("order", ["desc", "asc", "weighted"])
def test_neither_cuts_of_grants_nor_restarts_change_what_is_found(order):
    query = join_query(order, [range_window(30), range_window(20)], fade=0.8, expression=EXPRESSIONS[2])
    course = course_of(query, [200])
    assert course_of(query, [1, 2, 3, 94, 50, 49, 1]) == course
    assert course_of(query, [150, 50], restored=True) == course
    few = Limits(promising_entries_max=100, promising_pairs_max=30)
    some = course_of(query, [200], limits=few)
    assert course_of(query, [120, 80], restored=True, limits=few) == some
    last = some[-1][1]
    assert isinstance(last, GroupCounts)
    assert last.cut > 0
    assert last.entries_left <= 100


@pytest.mark.parametrize(
    ("limits", "emit"), [(Limits(promising_pairs_max=2), None), (Limits(changes_max=4), Emit())]
)
def test_a_group_without_room_for_pairs_waits_until_some_leave_the_window(limits, emit):
    streams = Streams(granularity_ms=100)
    query = replace(join_query("desc", [range_window(5)] * 2), emit=emit)
    group = streams.group(query, limits=limits)

    def arrive(rows: dict[str, list[Row]], now_ms: int) -> None:
        streams.step(rows, now_ms)
        group.arrive(streams.at(), now_ms)

    arrive({"a": [(at, 1, None, None) for at in (1, 2, 9)]}, 9)
    arrive({"b": [(at, 1, None, None) for at in (10, 11, 12, 13)]}, 13)
    assert spend_all(group, streams) == 4  # the last visit is whole
    assert len(pairs_of(group)) == 4
    assert not group.left
    arrive({"a": [(18, 1, None, None)]}, 18)
    assert group.left
    assert spend_all(group, streams) == 1
    assert set(pairs_of(group)) == streams.exact([13, 13])
    group._check()
