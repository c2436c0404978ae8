"""Joins over windows of many sizes keep each row once, and each query is told what it alone is."""

from __future__ import annotations

import random

import pytest
from hypothesis import given

from engine.changes.transition import Transition
from engine.dataflow import turns
from engine.dataflow.graph import Graph
from engine.dataflow.operators.entries import EntriesNode
from engine.dataflow.operators.window_extreme import WindowExtremeNode
from engine.dataflow.operators.window_join import WindowJoinNode
from engine.dataflow.policy import ONE_STORE, TOLD, Policy
from engine.model.source import SourceName
from tests.capacities import small
from tests.changes.ways import LIMITS, TABLES, bound, seeds, standing
from tests.dataflow.courses import cut, whole_course, with_retention
from tests.dataflow.strategies import Followed

PAIRED = "FROM s [RANGE {} MILLISECONDS] JOIN u [RANGE {} MILLISECONDS] ON s.k = u.k"
EXTREME = "SELECT {} AS m FROM s [RANGE {{}} MILLISECONDS] WHERE w <> 'a' OR v > {{}}"
SHAPES = (
    EXTREME.format("MAX(v)"),
    EXTREME.format("MIN(v)"),
    EXTREME.format("MAX(k)"),
    EXTREME.format("MIN(ts) FILTER (WHERE k > 0)"),
    "SELECT COUNT(*) AS c " + PAIRED,
    "SELECT w, SUM(n) AS t " + PAIRED + " WHERE s.v > {} GROUP BY w",
    "SELECT s.v, u.n " + PAIRED + " AND s.v > u.n WHERE u.n > {}",
    "SELECT DISTINCT n " + PAIRED + " WHERE v > {}",
    "SELECT s.v, t.v AS o FROM s [RANGE {} MILLISECONDS] JOIN s AS t [RANGE {} MILLISECONDS] ON s.k = t.k",
    "SELECT s.v, u.n FROM s [RANGE {} MILLISECONDS] CROSS JOIN u [RANGE {} MILLISECONDS] WHERE s.v < u.n",
)


def _texts(rng: random.Random) -> list[str]:
    shapes = [rng.choice(SHAPES) for _ in range(rng.randint(1, 2))]
    return [rng.choice(shapes).format(rng.randrange(9), rng.randrange(9), rng.randrange(3)) for _ in range(6)]


@pytest.mark.parametrize("retained", [False, True], ids=["whole", "retention"])
@given(seeds)
def test_each_query_is_told_what_it_alone_is(retained: bool, seed: int) -> None:
    """Whoever comes or goes, with wider windows or narrower ones, whatever the cuts into steps and turns."""
    rng = random.Random(seed)
    policies = rng.choice(((ONE_STORE,), (ONE_STORE, TOLD, Policy("upa"))))
    followed, whole = Followed(rng, _texts(rng), policies), whole_course(rng)
    before, turns.TURN_PAIRS = turns.TURN_PAIRS, rng.choice((2, 1 << 20))
    try:
        for transition in with_retention(rng, whole) if retained else cut(rng, whole, 8):
            followed.between()
            followed.step(transition)
    finally:
        turns.TURN_PAIRS = before


def test_rows_are_kept_once_as_long_as_the_widest_window_holds_them() -> None:
    rng = random.Random(1)
    graph = Graph(TABLES, settings=small())
    for place, span_ms in enumerate((9, 3, 5, 1)):
        query = bound(f"SELECT COUNT(*) AS c {PAIRED}".format(span_ms, span_ms))
        graph.add(standing(query, f"q{place}"), query, "changes", policy=ONE_STORE)
    (join,) = [node for node in graph.nodes.by_key.values() if isinstance(node, WindowJoinNode)]
    leaves = [node for node in graph.nodes.by_key.values() if isinstance(node, EntriesNode)]
    assert [leaf.columns.count for leaf in leaves] == [1, 1]
    whole = whole_course(rng, 30)
    for transition in cut(rng, whole, 6):
        list(graph.advance(transition, LIMITS, transition.until_ms, {}))
        graph._check()
        inside = sum(_rows_within(whole, name, transition.until_ms - 9, transition.until_ms) for name in "su")
        assert join.rows <= inside
    for place in range(3):
        graph.remove(f"q{place}")
    far = Transition(whole.until_ms, whole.until_ms + 1, whole.by_source)
    list(graph.advance(far, LIMITS, far.until_ms, {}))
    assert join.rows <= sum(_rows_within(whole, name, far.until_ms - 1, far.until_ms) for name in "su")


def test_one_stair_of_a_predicate_serves_windows_of_all_sizes() -> None:
    graph = Graph(TABLES, settings=small())
    for place, span_ms in enumerate((3, 7, 2, 5)):
        query = bound(f"SELECT MAX(v) AS m FROM s [RANGE {span_ms} MILLISECONDS]")
        graph.add(standing(query, f"q{place}"), query, "changes", policy=ONE_STORE)
    (extreme,) = [node for node in graph.nodes.by_key.values() if isinstance(node, WindowExtremeNode)]
    rng = random.Random(2)
    whole = whole_course(rng, 30)
    for transition in cut(rng, whole, 6):
        list(graph.advance(transition, LIMITS, transition.until_ms, {}))
        graph._check()
        assert extreme.rows <= _rows_within(whole, "s", transition.until_ms - 7, transition.until_ms)
    graph.remove("q1")
    graph.remove("q3")
    later = Transition(whole.until_ms, whole.until_ms + 2, whole.by_source)
    list(graph.advance(later, LIMITS, later.until_ms, {}))
    assert extreme.rows <= _rows_within(whole, "s", later.until_ms - 3, later.until_ms)


def _rows_within(whole: Transition, name: str, first_ms: int, last_ms: int) -> int:
    rows = whole.by_source[SourceName(name)].at.rows
    return rows.first_at_or_after(last_ms + 1) - rows.first_at_or_after(first_ms)
