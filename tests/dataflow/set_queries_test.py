"""Whole queries of set operations: what is told of them is what their answers at every instant differ by."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given

from engine.algebra.aggregate.stage import Aggregate, AggregateCall
from engine.algebra.distinct.stage import Distinct
from engine.algebra.join.stage import Join
from engine.algebra.limit.stage import Limit
from engine.algebra.operators import Stage
from engine.algebra.project.stage import Output, Project
from engine.algebra.set_operation.stage import SetOperation, SetOperationKind
from engine.algebra.sort.stage import Sort, SortKey
from engine.dataflow import turns
from engine.dataflow.graph import Graph
from engine.dataflow.operator_tree import OperatorTree
from engine.dataflow.physical import operators_of
from engine.dataflow.policy import TOLD, Policy
from engine.language.query import Query
from engine.model.changes import Operator
from engine.model.expressions import Column
from engine.model.types import BIGINT
from tests.capacities import small
from tests.changes.ways import (
    FEW,
    LIMITS,
    TABLES,
    bound,
    check_changes,
    random_transition,
    seeds,
    standing,
    told_of,
)
from tests.dataflow.courses import cut
from tests.dataflow.graph import OPERATORS, bag
from tests.dataflow.policies import POLICIES

LEFT = (
    "SELECT k, v FROM s [RANGE 5 MILLISECONDS]",
    "SELECT k, v FROM s [RANGE 4 MILLISECONDS] WHERE w = 'a'",
    "SELECT k, v FROM s",
    "SELECT k, v FROM s [ROWS 4]",
    "SELECT k, v FROM s [PARTITION BY w ROWS 2]",
    "SELECT k, MAX(v) AS v FROM s [RANGE 6 MILLISECONDS] GROUP BY k",
    "SELECT s.k, s.v FROM s [RANGE 5 MILLISECONDS] JOIN u [RANGE 4 MILLISECONDS] ON s.k = u.k",
    "SELECT k, v FROM (SELECT k, v, w FROM s [RANGE 6 MILLISECONDS] ORDER BY w LIMIT 3) AS x",
)
RIGHT = (
    "SELECT k, v FROM s [RANGE 3 MILLISECONDS] WHERE w = 'b'",
    "SELECT k, v FROM s [ROWS 3]",
    "SELECT k, CAST(0.1 * n AS DOUBLE) AS v FROM u [RANGE 5 MILLISECONDS]",
    "SELECT p AS k, -CAST(0 AS DOUBLE) AS v FROM h",
    "SELECT DISTINCT k, v FROM s [RANGE 6 MILLISECONDS] WHERE w = 'a'",
)
KINDS: tuple[tuple[SetOperationKind, bool, tuple[tuple[int, int], ...] | None], ...] = (
    ("union", True, None),
    ("intersect", True, None),
    ("intersect", False, None),
    ("except", True, None),
    ("except", False, None),
    ("except", True, ((0, 0),)),
    ("except", True, ((1, 1),)),
)
K = Column(0, "k", BIGINT)
COUNT = Aggregate((Output("k", K),), (AggregateCall("c", "COUNT", (), BIGINT),))
ABOVE: tuple[tuple[Stage, ...], ...] = (
    (),
    (Distinct(),),
    (Limit(2),),
    (Sort((SortKey(K, True),)), Limit(2, 1)),
    (COUNT,),
)


def query_of(left: str, right: str, *stages: Stage, which: int = 0) -> Query:
    """A set operation of two texts, and what stands above it."""
    kind, all_, on = KINDS[which]
    one = bound(left)
    return replace(one, stages=(*one.stages, SetOperation(kind, bound(right), all_, on), *stages))


def joined(query: Query) -> Query:
    """A join of a set operation with a stream."""
    inner = bound("SELECT k, n FROM u [RANGE 6 MILLISECONDS]")
    columns = [Output(name, Column(place, name, type_)) for place, (name, type_) in enumerate(query.columns)]
    columns.append(Output("n", Column(3, "n", BIGINT)))
    keys = ((K, Column(0, "k", BIGINT)),)
    return replace(query, stages=(*query.stages, Join(inner, "inner", keys), Project(tuple(columns))))


def random_query(rng: random.Random, which: int) -> Query:
    query = query_of(rng.choice(LEFT), rng.choice(RIGHT), which=which)
    if rng.random() < 0.3:  # another one above it
        kind, all_, on = rng.choice(KINDS)
        query = replace(query, stages=(*query.stages, SetOperation(kind, bound(rng.choice(RIGHT)), all_, on)))
    if rng.random() < 0.3:
        query = joined(query)
    return replace(query, stages=(*query.stages, *rng.choice(ABOVE)))


@pytest.mark.parametrize("which", range(len(KINDS)))
@FEW
@given(seeds)
def test_changes_at_every_instant(which: int, seed: int) -> None:
    rng = random.Random(seed)
    query = random_query(rng, which)
    transition = random_transition(rng, query.sources)
    check_changes(query, transition, rng.choice(OPERATORS))


@pytest.mark.parametrize("policy", POLICIES[1:], ids=str)
@given(seeds)
def test_changes_are_the_same_by_every_policy(policy: Policy, seed: int) -> None:
    """However state is kept; the transition in several, of windows of time mostly."""
    rng = random.Random(seed)
    which = rng.randrange(len(KINDS))
    query = query_of(rng.choice(LEFT[:3]), rng.choice((*LEFT[:2], *RIGHT)), which=which)
    query = joined(query) if rng.random() < 0.4 else query
    query = replace(query, stages=(*query.stages, *rng.choice(ABOVE)))
    whole = random_transition(rng, ["s", "u", "h"], 20)
    while any(at_source.retained_to_ms is not None for at_source in whole.by_source.values()):
        whole = random_transition(rng, ["s", "u", "h"], 20)
    graph = Graph(TABLES, settings=small())
    graph.add(standing(query), query, "changes", policy=policy)
    before, turns.TURN_PAIRS = turns.TURN_PAIRS, rng.choice((2, 1 << 20))
    try:
        for transition in cut(rng, whole):
            broken: dict[str, Exception] = {}
            found = [
                bag(changes) for changes in graph.advance(transition, LIMITS, transition.until_ms, broken)
            ]
            graph._check()
            assert not broken
            alone = bag(told_of(query, "changes", transition))
            assert (found[0] if found else Counter()) == alone
    finally:
        turns.TURN_PAIRS = before


@given(seeds)
def test_many_queries_are_told_what_each_alone_is(seed: int) -> None:
    """Whoever comes or goes between transitions, and however they are cut into turns."""
    rng = random.Random(seed)
    queries = [random_query(rng, rng.randrange(len(KINDS))) for _ in range(5)]
    whole = random_transition(rng, ["s", "u", "h"])
    while any(at_source.retained_to_ms is not None for at_source in whole.by_source.values()):
        whole = random_transition(rng, ["s", "u", "h"])
    graph, members = Graph(TABLES, settings=small()), dict[str, tuple[Query, Operator, bool]]()
    before, turns.TURN_PAIRS = turns.TURN_PAIRS, rng.choice((2, 1 << 20))
    try:
        for transition in cut(rng, whole):
            for place, query in enumerate(queries):
                name = f"q{place}"
                if name in members and rng.random() < 0.2:
                    graph.remove(name)
                    del members[name]
                elif name not in members and rng.random() < 0.6:
                    operator = rng.choice(OPERATORS)
                    copies = operator == "changes" and rng.random() < 0.5
                    members[name] = query, operator, copies
                    policy = rng.choice(POLICIES)
                    graph.add(standing(query, name), query, operator, copies=copies, policy=policy)
            if rng.random() < 0.2:
                graph.forget()
            broken: dict[str, Exception] = {}
            found: dict[str, Counter[Any]] = {}
            for changes in graph.advance(transition, LIMITS, transition.until_ms, broken):
                for place, name in enumerate(changes.query_ids):
                    found[name] = bag(changes, place)
            graph._check()
            assert not broken
            for name, (query, operator, copies) in members.items():
                alone = told_of(query, operator, transition, copies=copies)
                assert found.get(name, Counter()) == bag(alone), name
    finally:
        turns.TURN_PAIRS = before


# --- plans ----------------------------------------------------------------------------------------


def tree_of(query: Query) -> OperatorTree:
    return Graph(TABLES, settings=small()).explain(
        operators_of(query, "changes", TOLD, TABLES, {}), query.sources
    )


def operators(tree: OperatorTree) -> Sequence[tuple[str, str | None]]:
    """Each operator and why it is recomputed, the answer's first."""
    return [(tree.operator, tree.reason), *(each for below in tree.inputs for each in operators(below))]


@pytest.mark.parametrize("which", range(len(KINDS)))
def test_set_operations_have_operators(which: int) -> None:
    tree = tree_of(query_of(LEFT[0], RIGHT[0], which=which))
    kind, all_, on = KINDS[which]
    assert tree.operator == f"{kind} all" if all_ else kind
    assert tree.details == ({0: ("on k",), 1: ("on v",)}[on[0][0]] if on else ())
    assert all(reason is None for _, reason in operators(tree))
    assert tree.pattern == {"union": "WK", "intersect": "WK", "except": "STR"}[kind]


@pytest.mark.parametrize("which", range(1, len(KINDS)))
def test_limit_above_goes_by_the_order_of_left_rows(which: int) -> None:
    tree = tree_of(query_of(LEFT[0], RIGHT[0], Limit(2), which=which))
    assert tree.operator == "top-k"
    assert all(reason is None for _, reason in operators(tree))


def test_limit_above_a_merged_union_is_recomputed() -> None:
    assert tree_of(query_of(LEFT[0], RIGHT[0], Limit(2))).operator == "recompute"
    grouped = query_of(LEFT[5], RIGHT[0], Limit(2))
    assert tree_of(grouped).operator == "top-k"


def test_queries_that_differ_in_predicates_share_their_nodes() -> None:
    graph = Graph(settings=small())
    for value in range(20):
        left = f"SELECT k, v FROM s [RANGE 5 MILLISECONDS] WHERE k > {value}"
        for which in range(len(KINDS)):
            query = query_of(left, RIGHT[0], which=which)
            graph.add(standing(query, f"q{value}.{which}"), query, "changes")
    # two scans, two projections, and the operators; EXCEPT ALL ON has one for each list of columns
    assert len(graph.nodes.by_key) == 4 + len(KINDS)
    for value in range(20):
        for which in range(len(KINDS)):
            graph.remove(f"q{value}.{which}")
    assert len(graph.nodes.by_key) == 0


@pytest.mark.parametrize("which", range(len(KINDS)))
@FEW
@given(seeds)
def test_inputs_that_are_one_node(which: int, seed: int) -> None:
    rng = random.Random(seed)
    text = rng.choice(LEFT[:4])
    check_changes(query_of(text, text, which=which), random_transition(rng, ["s"]), "changes")
