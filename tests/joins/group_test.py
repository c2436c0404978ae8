"""Groups against nested loops: whatever the shape, windows, cuts and drops, the same partners, each once."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise, permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.joins.bounds import Reach
from engine.joins.group import JoinGroup
from engine.joins.key_index import KeyIndexes
from engine.joins.shape import JoinEdge, Shape
from engine.joins.view import JoinView
from engine.model.source import SourceName
from engine.windows.clauses import UNBOUNDED, RowWindow
from tests.joins.scripts import NAMES, all_ordinals, shapes, steps, windows
from tests.joins.sources import KEYS, Sources, nested_loops
from tests.strategies import examples
from tests.time_windows import range_window


def check(
    view: JoinView, sources: Sources, ordinals: Sequence[np.ndarray], windows_: Sequence[object]
) -> None:
    """Both ways of reading against nested loops."""
    expected = nested_loops(sources, view.shape, [each.tolist() for each in ordinals])
    reaches = [Reach.of(window) for window in windows_]
    ways = [view.tuples(ordinals, reaches)]
    if ways == [None]:
        assert view.plain
        ways = []
    if all(map(len, ordinals)):
        ways.append(view.probed(ordinals))
        if view.kept is not None and view.covers(ordinals, reaches):
            ways.append(view.picked(ordinals))
    for way in ways:
        assert way is not None
        assert list(zip(*[places.tolist() for places in way], strict=True)) == expected


@given(st.data(), shapes(), steps())
@settings(max_examples=examples(40))
def test_partners_are_those_of_nested_loops(data, shape, script):
    sources, indexes = Sources(NAMES), KeyIndexes()
    group = JoinGroup(shape, indexes, policy=data.draw(st.sampled_from(["fixed", "random", "tickets"])))
    held = [[data.draw(windows) for _ in shape.inputs]]
    group.hold(held[0])
    now_ms = 0
    for step in script:
        for name, rows in step.items():
            sources.append(name, rows)
            now_ms = max([now_ms, *(row[0] for row in rows)])
        action = data.draw(st.sampled_from(["none", "none", "widen", "narrow", "off", "on"]))
        if action == "widen":
            held.append([data.draw(windows) for _ in shape.inputs])
            group.hold(held[-1])
        elif action == "narrow" and len(held) > 1:
            group.release(held.pop())
        elif action in ("off", "on"):
            group.keeps = action == "on"
        group.advance(*sources.now(), now_ms)
        group._check()
        view = group.view()
        assert (view.kept is not None) == group.keeps
        for each in held:
            check(view, sources, all_ordinals(sources, shape, each, now_ms), each)
        some = [
            np.array(sorted(data.draw(st.sets(st.integers(s.base, s.end - 1), max_size=4))), np.int64)
            if len(s := sources.stems[name])
            else np.empty(0, np.int64)
            for name in shape.inputs
        ]
        check(view, sources, some, [UNBOUNDED] * len(some))
        for name in NAMES:
            stem = sources.stems[name]
            if data.draw(st.booleans()):
                stem.drop_below(data.draw(st.integers(stem.base, stem.end)))
                group.drop_below(SourceName(name), stem.base)


class InThisOrder:
    """A policy that goes where it is told, as far as it can."""

    name = "told"

    def __init__(self, order: Sequence[int]) -> None:
        self.order = order

    def begin(self) -> None:
        pass

    def choose(self, ready):
        return min(ready, key=lambda module: self.order.index(module.place))

    def observe(self, module, visit) -> None:
        assert visit.passed >= 0

    def forget(self, name: str) -> None:
        pass

    def tickets(self, module) -> float:
        return 0.0


@pytest.mark.parametrize("star", [True, False])
def test_every_order_of_probes_gives_the_same(star):
    rng = np.random.default_rng(5)
    k, s = (KEYS["k"],), (KEYS["s"],)
    edges = [JoinEdge(0, 1, k, k), JoinEdge(0 if star else 1, 2, s, s), JoinEdge(0 if star else 2, 3, k, k)]
    shape = Shape(tuple(map(SourceName, "abca")), (*edges[:2], JoinEdge(1, 2, k, k), edges[2]))
    script = [
        {
            name: sorted(
                (10 * step + int(rng.integers(1, 10)), int(rng.integers(0, 3)), str(rng.integers(0, 2)), 0.0)
                for _ in range(6)
            )
            for name in NAMES
        }
        for step in range(4)
    ]
    answers = set()
    for order in permutations(range(4)):
        sources, group = Sources(NAMES), JoinGroup(shape, KeyIndexes())
        group._orders._policies = [InThisOrder(order) for _ in range(4)]
        held = [range_window(12), RowWindow(9), UNBOUNDED, range_window(15)]
        group.hold(held)
        for number, step in enumerate(script):
            for name, rows in step.items():
                sources.append(name, rows)
            group.advance(*sources.now(), 10 * number + 10)
            ordinals = all_ordinals(sources, shape, held, 10 * number + 10)
        found = group.view().picked(ordinals)
        answers.add(tuple(zip(*[places.tolist() for places in found], strict=True)))
    (answer,) = answers
    assert list(answer) == nested_loops(sources, shape, [each.tolist() for each in ordinals])
    assert answer


def fill(group: JoinGroup, sources: Sources, cuts: Sequence[int]) -> None:
    """A hundred rows a source, one a millisecond, cut here."""
    for start, stop in pairwise([0, *cuts, 100]):
        for name in NAMES[:2]:
            sources.append(name, [(ms, ms % 3, None, None) for ms in range(start, stop)])
        group.advance(*sources.now(), stop - 1)


TWO = Shape((SourceName("a"), SourceName("b")), (JoinEdge(0, 1, (KEYS["k"],), (KEYS["k"],)),))


@pytest.mark.parametrize("window", [range_window(10), RowWindow(11)])
def test_cutting_the_input_changes_nothing_that_is_found(window):
    found = []
    for cuts in ([], [1, 50], [1, 2, 3, 4, 77], list(range(1, 100))):
        sources, group = Sources(NAMES), JoinGroup(TWO, KeyIndexes())
        group.hold([window, window])
        group.advance(*sources.now(), None)
        fill(group, sources, cuts)
        told = {attribute.name: attribute.value for attribute in group.attributes()}
        found.append(told["composites_found"])
    assert set(found) == {
        sum(one % 3 == other % 3 and abs(one - other) <= 10 for one in range(100) for other in range(100))
    }


def test_too_many_composites_are_not_kept():
    sources = Sources(NAMES)
    group = JoinGroup(TWO, KeyIndexes(), composites_max=200)
    group.hold([range_window(100), range_window(100)])
    fill(group, sources, [10, 20, 50])
    assert group.refused
    view = group.view()
    assert view.kept is None
    assert group.nbytes == 0
    every = [np.arange(100), np.arange(100)]
    check(view, sources, every, [UNBOUNDED, UNBOUNDED])
    group.hold([range_window(3), range_window(3)])
    group.release([range_window(100), range_window(100)])
    group.advance(*sources.now(), 99)
    assert not group.refused
    check(group.view(), sources, [every[0][97:], every[1][97:]], [range_window(2)] * 2)


def test_composites_and_indexes_stay_as_small_as_the_windows():
    sources, indexes = Sources(NAMES), KeyIndexes()
    group = JoinGroup(TWO, indexes)
    group.hold([RowWindow(500), RowWindow(500)])
    sizes = []
    for step in range(60):
        for name in NAMES[:2]:
            rows = [(1_000 * step + place, 1_000 * step + place // 2, None, None) for place in range(1_000)]
            sources.append(name, rows)
        group.advance(*sources.now(), 1_000 * step + 999)
        for name in NAMES[:2]:
            stem = sources.stems[name]
            stem.drop_below(stem.end - 500)
            group.drop_below(SourceName(name), stem.base)
        sizes.append(group.nbytes + indexes.nbytes)
    group._check()
    assert max(sizes) <= 2 * max(sizes[:10])


def test_rows_of_a_source_without_time_meet_all_that_are_there():
    sources = Sources(NAMES)
    group = JoinGroup(TWO, KeyIndexes(), timeless=["b"])
    group.hold([range_window(5), UNBOUNDED])
    sources.append("b", [(1_000_000, 1, None, None)])
    sources.append("a", [(10, 1, None, None)])
    group.advance(*sources.now(), 10)
    sources.append("b", [(2_000_000, 1, None, None)])
    sources.append("a", [(12, 1, None, None), (14, 1, None, None)])
    group.advance(*sources.now(), 14)
    check(group.view(), sources, [np.arange(3), np.arange(2)], [range_window(5), UNBOUNDED])
    assert group.view().covers([np.arange(3), np.arange(2)], [Reach.of(range_window(5)), Reach.of(UNBOUNDED)])
