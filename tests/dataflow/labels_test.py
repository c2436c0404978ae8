"""Update patterns are what EXPLAIN says: rows of MON stay, those of WKS leave in the order they came."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import event, given

from engine.changes.context import EvaluationContext
from engine.dataflow.graph import Graph
from engine.dataflow.physical import operators_of
from engine.dataflow.policy import TOLD
from tests.capacities import small
from tests.changes.ways import FEW, LIMITS, TABLES, Answers, bound, random_transition, seeds, standing
from tests.dataflow.graph import JOINS, QUERIES, SETS

STAYING = (
    "SELECT k, v FROM s WHERE v > 0",
    "SELECT s.k, n FROM s JOIN u ON s.k = u.k",
    "SELECT DISTINCT k FROM s",
    """SELECT k, window_end, COUNT(*) AS c FROM TUMBLE(s, INTERVAL '2' MILLISECOND)
    GROUP BY k, window_end""",
    "SELECT k, v FROM s WHERE k IN (SELECT k FROM u)",
    "SELECT k, v FROM s UNION ALL SELECT n, n FROM u",
    "SELECT k FROM s INTERSECT ALL SELECT n FROM u",
    "SELECT k FROM s UNION SELECT n FROM u",
    """SELECT k, window_end FROM TUMBLE(s, INTERVAL '2' MILLISECOND)
    EXCEPT ALL SELECT k, window_end FROM TUMBLE(u, INTERVAL '2' MILLISECOND)""",
)
LEAVING_IN_ORDER = (
    "SELECT k, v, ts FROM s [RANGE 3 MILLISECONDS] WHERE v > 0",
    "SELECT k, ts FROM s [RANGE 4 MILLISECONDS SLIDE 2 MILLISECONDS]",
    "SELECT k, ts FROM s [NOW]",
    "SELECT ts FROM s [RANGE 3 MILLISECONDS] UNION ALL SELECT ts FROM u [RANGE 3 MILLISECONDS]",
)


@pytest.mark.parametrize("text", STAYING + LEAVING_IN_ORDER + QUERIES + JOINS + SETS)
@FEW
@given(seeds)
def test_the_changes_of_an_answer_follow_its_pattern(text: str, seed: int) -> None:
    rng = random.Random(seed)
    query = bound(text)
    transition = random_transition(rng, query.sources)
    if any(at_source.retained_to_ms is not None for at_source in transition.by_source.values()):
        return  # retention takes rows whatever the pattern is
    graph, broken = Graph(TABLES, settings=small()), dict[str, Exception]()
    graph.add(standing(query), query, "changes")
    pattern = graph.explain(operators_of(query, "changes", TOLD, TABLES, {}), query.sources).pattern
    event(pattern)
    # rows of other instants are never equal: none takes the place of one that goes as it comes
    in_order = pattern == "WKS" and "ts" in dict(query.columns)
    context = EvaluationContext(transition, LIMITS)
    before = Answers.of(query, context).at[context.interval.since]
    came: list[tuple[int, str]] = []
    for changes in graph.advance(transition, LIMITS, transition.until_ms, broken):
        rows = [repr(tuple(row.values())) for row in changes.table.to_pylist()]
        for at_ms, row, weight in zip(changes.at_ms.tolist(), rows, changes.weights.tolist(), strict=True):
            if weight > 0:
                came.append((at_ms, row))
                continue
            assert pattern != "MON", row
            if in_order and row in before:
                before[row] -= 1
                before += Counter()
            elif in_order:
                first = next(place for place in came if place[1] == row)
                assert not before, row
                assert first[0] == came[0][0], (row, came)
                came.remove(first)
    assert not broken


@pytest.mark.parametrize("text", STAYING)
def test_unbounded_windows_give_rows_that_stay(text: str) -> None:
    query = bound(text)
    graph = Graph(TABLES, settings=small())
    plan = operators_of(query, "changes", TOLD, TABLES, {})
    assert graph.explain(plan, query.sources).pattern in ("MON", "WK by key")


@pytest.mark.parametrize("text", LEAVING_IN_ORDER)
def test_windows_of_time_give_rows_that_leave_in_order(text: str) -> None:
    query = bound(text)
    plan = operators_of(query, "changes", TOLD, TABLES, {})
    assert Graph(TABLES, settings=small()).explain(plan, query.sources).pattern == "WKS"
