"""Strategies: the same changes at every instant however operators keep rows, whoever comes and goes."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import example, given

from engine.changes.transition import NEVER, Transition
from engine.dataflow import turns
from engine.dataflow.delta import Delta
from engine.dataflow.graph import Graph
from engine.dataflow.node import Node
from engine.dataflow.operators.scan import ScanNode
from engine.dataflow.policy import TOLD, Policy
from engine.dataflow.turn import Turn
from engine.model.limits import Limits
from tests.capacities import small
from tests.changes.ways import (
    LIMITS,
    TABLES,
    bound,
    check_changes,
    random_transition,
    seeds,
    standing,
)
from tests.dataflow.courses import cut, whole_course, with_retention, with_tables_alone
from tests.dataflow.graph import JOINS, OPERATORS, QUERIES, SETS
from tests.dataflow.policies import POLICIES
from tests.dataflow.strategies import EARLY, KNOWN_EXITS, Followed

FREQUENT = KNOWN_EXITS + EARLY


@pytest.mark.parametrize("text", FREQUENT)
@given(seeds)
def test_changes_are_those_of_the_answer_at_every_instant(text: str, seed: int) -> None:
    rng = random.Random(seed)
    query = bound(text)
    transition = random_transition(rng, query.sources)
    before, turns.TURN_PAIRS = turns.TURN_PAIRS, rng.choice((2, 1 << 20))
    try:
        check_changes(query, transition, rng.choice(OPERATORS), rng.choice(POLICIES))
    finally:
        turns.TURN_PAIRS = before


def _some(rng: random.Random) -> list[str]:
    return [rng.choice(FREQUENT if rng.random() < 0.6 else QUERIES + JOINS + SETS) for _ in range(6)]


@pytest.mark.parametrize("course", ["together", "tables alone", "tables ahead", "retention"])
@pytest.mark.parametrize("turn_pairs", [2, 1 << 20])
@example(seed=8522)
@given(seed=seeds)
def test_each_of_many_queries_is_told_what_it_alone_is(course: str, turn_pairs: int, seed: int) -> None:
    rng = random.Random(seed)
    followed, whole = Followed(rng, _some(rng)), whole_course(rng)
    transitions = {
        "together": lambda: cut(rng, whole),
        "tables alone": lambda: with_tables_alone(rng, whole, ahead=False),
        "tables ahead": lambda: with_tables_alone(rng, whole, ahead=True),
        "retention": lambda: with_retention(rng, whole),
    }[course]()
    before, turns.TURN_PAIRS = turns.TURN_PAIRS, turn_pairs
    try:
        for transition in transitions:
            followed.between()
            followed.step(transition)
    finally:
        turns.TURN_PAIRS = before


@given(seeds)
def test_after_a_refused_transition_changes_are_true_again(seed: int) -> None:
    """Nodes below one that refused were not taken through the turns that were left."""
    rng = random.Random(seed)
    followed = Followed(rng, _some(rng))
    before, turns.TURN_PAIRS = turns.TURN_PAIRS, rng.choice((2, 1 << 20))
    try:
        for transition in cut(rng, whole_course(rng), 5):
            followed.between()
            if rng.random() < 0.4:
                few = Limits(join_candidates_max=1, intermediate_rows_max=1, changes_max=rng.choice((1, 100)))
                followed.told(transition, few)
            else:
                followed.step(transition)
    finally:
        turns.TURN_PAIRS = before


def _leaves(graph: Graph) -> list[bool]:
    return [leaf.exits_known for leaf in graph.nodes.by_key.values() if isinstance(leaf, ScanNode)]


def test_retention_that_cuts_a_window_makes_its_queries_told_and_loses_no_change() -> None:
    rng = random.Random(3)
    for _ in range(40):
        text = rng.choice(FREQUENT)
        followed = Followed(rng, [text])
        query = bound(text)
        followed.graph.add(standing(query, "q0"), query, "changes", policy=Policy("upa"))
        followed.members["q0"] = text, "changes", False
        for transition in with_retention(rng, whole_course(rng)):
            was = followed.graph.policy_of("q0")
            followed.step(transition)
            if followed.graph.policy_of("q0") != was:
                assert followed.graph.policy_of("q0") == TOLD
                assert not any(_leaves(followed.graph))


def test_a_table_behind_now_that_moves_alone_leaves_the_strategy_as_it_is() -> None:
    rng = random.Random(5)
    for _ in range(20):
        followed = Followed(rng, [EARLY[0]])
        query = bound(EARLY[0])
        followed.graph.add(standing(query, "q0"), query, "changes", policy=Policy("upa"))
        followed.members["q0"] = EARLY[0], "changes", False
        for transition in with_tables_alone(rng, whole_course(rng), ahead=False):
            followed.step(transition)
        assert followed.graph.policy_of("q0") == Policy("upa")


def test_a_jump_of_now_past_all_windows_tells_every_exit() -> None:
    rng = random.Random(7)
    for policy in POLICIES:
        for text in KNOWN_EXITS:
            whole = whole_course(rng, 30)
            query = bound(text)
            graph = Graph(TABLES, settings=small())
            graph.add(standing(query), query, "changes", policy=policy)
            first = 0 if whole.since_ms == NEVER else whole.since_ms
            there: Counter[str] = Counter()
            for since, until in ((NEVER, first), (first, whole.until_ms), (whole.until_ms, 10_000)):
                broken = dict[str, Exception]()
                transition = Transition(since, until, whole.by_source)
                for changes in graph.advance(transition, LIMITS, until, broken):
                    rows = [repr(tuple(row.values())) for row in changes.table.to_pylist()]
                    for row, weight in zip(rows, changes.weights.tolist(), strict=True):
                        there[row] += weight
                assert not broken
                graph._check()
            assert not +there, (text, policy)
            assert not -there


@pytest.mark.parametrize("text", KNOWN_EXITS)
@given(seeds)
def test_no_row_of_an_edge_with_known_exits_over_windows_of_time_is_told_again(text: str, seed: int) -> None:
    """And rows of a scan leave as they came."""
    rng = random.Random(seed)
    query, found = bound(text), list[tuple[Node, Turn, Delta]]()
    graph, whole = Graph(TABLES, settings=small()), whole_course(rng)
    graph.add(standing(query), query, "changes", policy=Policy(rng.choice(("direct", "upa"))))
    delta_of = Node.delta

    def delta(node: Node, turn: Turn) -> Delta:
        given = delta_of(node, turn)
        if node.exits_known:
            found.append((node, turn, given))
        return given

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Node, "delta", delta)
        for transition in cut(rng, whole):
            for _ in graph.advance(transition, LIMITS, transition.until_ms, {}):
                pass
    for node, turn, given_rows in found:
        temporal = given_rows.temporal
        assert bool(turn.interval.among(temporal.valid_from).all())
        assert bool((temporal.valid_to > temporal.valid_from).all())
        if isinstance(node, ScanNode):
            assert bool((temporal.valid_to[1:] >= temporal.valid_to[:-1]).all())
