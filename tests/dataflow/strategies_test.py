"""Strategies: the same changes at every instant however operators keep rows, whoever comes and goes."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from typing import Any

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
from engine.model.changes import Operator
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
    told_of,
)
from tests.dataflow.courses import cut, whole_course, with_retention, with_tables_alone
from tests.dataflow.graph_test import JOINS, OPERATORS, QUERIES, SETS, bag
from tests.dataflow.policies import POLICIES

FORETOLD = (
    "SELECT DISTINCT k FROM s [RANGE 4 MILLISECONDS] WHERE v > 0",
    "SELECT DISTINCT k, w FROM s [RANGE 6 MILLISECONDS SLIDE 2 MILLISECONDS]",
    "SELECT DISTINCT v FROM s [NOW]",
    "SELECT DISTINCT c FROM (SELECT k, COUNT(*) AS c FROM s [RANGE 6 MILLISECONDS] GROUP BY k) AS x",
    "SELECT DISTINCT k FROM (SELECT DISTINCT k, w FROM s [RANGE 6 MILLISECONDS]) AS x",
    "SELECT s.v, u.n FROM s [RANGE 6 MILLISECONDS] JOIN u [RANGE 4 MILLISECONDS] ON s.k = u.k AND s.w = 'a'",
    """SELECT s.v, u.n FROM s [RANGE 6 MILLISECONDS] JOIN u [RANGE 4 MILLISECONDS] ON s.k = u.k
    WHERE s.w = 'b'""",
    "SELECT s.v, u.n FROM s [RANGE 6 MILLISECONDS] JOIN u [RANGE 4 MILLISECONDS] ON s.k = u.k WHERE u.n > 1",
    "SELECT s.v, u.n FROM s [RANGE 6 MILLISECONDS] JOIN u [RANGE 4 MILLISECONDS] ON s.k < u.k",
    "SELECT s.v, t.v FROM s [RANGE 3 MILLISECONDS] JOIN s AS t [RANGE 3 MILLISECONDS] ON s.k = t.k",
    """SELECT x.k, y.n FROM (SELECT DISTINCT k FROM s [RANGE 6 MILLISECONDS]) AS x
    JOIN (SELECT DISTINCT k, n FROM u [RANGE 5 MILLISECONDS]) AS y ON x.k = y.k""",
    """SELECT w, SUM(n) AS t FROM s [RANGE 5 MILLISECONDS] JOIN u [RANGE 3 MILLISECONDS] ON s.k = u.k
    GROUP BY w""",
)
"""All exits of the windows are known."""
EARLY = (
    "SELECT s.v, p FROM s [RANGE 6 MILLISECONDS] JOIN h ON s.k = h.k",
    "SELECT s.v, p FROM s [RANGE 6 MILLISECONDS] JOIN h ON s.k = h.k WHERE s.w = 'b'",
    "SELECT s.v, p FROM s [RANGE 6 MILLISECONDS] JOIN m ON s.k = m.k",
    "SELECT DISTINCT p FROM s [RANGE 6 MILLISECONDS] JOIN h ON s.k = h.k",
    "SELECT x.k, p FROM (SELECT DISTINCT k FROM s [RANGE 6 MILLISECONDS]) AS x JOIN h ON x.k = h.k",
    """SELECT x.k, p, n FROM (SELECT DISTINCT k FROM s [RANGE 6 MILLISECONDS]) AS x JOIN h ON x.k = h.k
    JOIN u [RANGE 4 MILLISECONDS] ON u.k = h.k""",
    """SELECT s.v, c FROM s [RANGE 6 MILLISECONDS]
    JOIN (SELECT k, COUNT(*) AS c FROM u [RANGE 4 MILLISECONDS] GROUP BY k) AS x ON s.k = x.k""",
    """SELECT s.v, c, n FROM s [RANGE 6 MILLISECONDS]
    JOIN (SELECT k, COUNT(*) AS c FROM u [RANGE 4 MILLISECONDS] GROUP BY k) AS x ON s.k = x.k
    JOIN u [RANGE 3 MILLISECONDS] ON u.k = s.k""",
    "SELECT s.v, u.n FROM s [RANGE 6 MILLISECONDS] JOIN u ON s.k = u.k",
    "SELECT s.v, n FROM s [RANGE 6 MILLISECONDS] JOIN u [PARTITION BY k ROWS 1] ON s.k = u.k",
    """SELECT s.v, x.n FROM s [RANGE 6 MILLISECONDS] JOIN (SELECT DISTINCT k, n FROM u [ROWS 3]) AS x
    ON s.k = x.k""",
    """SELECT s.v, x.n FROM s [RANGE 6 MILLISECONDS]
    JOIN (SELECT k, n FROM u [RANGE 9 MILLISECONDS] ORDER BY n LIMIT 2) AS x ON s.k = x.k""",
    """SELECT x.v, y.n FROM (SELECT k, v FROM s [RANGE 6 MILLISECONDS]
    EXCEPT ALL ON (k) SELECT k FROM u [RANGE 4 MILLISECONDS]) AS x
    JOIN u [RANGE 5 MILLISECONDS] AS y ON x.k = y.k""",
    """SELECT s.v, x.k FROM s [RANGE 6 MILLISECONDS] JOIN (SELECT k FROM s [RANGE 3 MILLISECONDS]
    INTERSECT ALL SELECT k FROM u [RANGE 4 MILLISECONDS]) AS x ON x.k = s.k""",
)
"""Some rows leave earlier than foretold."""
FREQUENT = FORETOLD + EARLY


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


class Followed:
    """A graph whose queries come, go and switch, and what each is told compared with what it alone is."""

    def __init__(
        self, rng: random.Random, texts: Sequence[str], policies: Sequence[Policy] = POLICIES
    ) -> None:
        self.rng, self.texts, self.policies = rng, texts, policies
        self.graph = Graph(TABLES, settings=small())
        self.members: dict[str, tuple[str, Operator, bool]] = {}

    def between(self) -> None:
        rng, graph = self.rng, self.graph
        for place, text in enumerate(self.texts):
            name, chance = f"q{place}", rng.random()
            if name in self.members and chance < 0.2:
                graph.remove(name)
                del self.members[name]
            elif name in self.members and chance > 0.8:
                graph.switch(name, rng.choice(self.policies))
            elif name not in self.members and chance < 0.6:
                operator = rng.choice(OPERATORS)
                copies = operator == "changes" and rng.random() < 0.5
                self.members[name] = text, operator, copies
                query, policy = bound(text), rng.choice(self.policies)
                graph.add(standing(query, name), query, operator, copies=copies, policy=policy)
        if rng.random() < 0.15:
            graph.forget()

    def told(self, transition: Transition, limits: Limits = LIMITS) -> dict[str, Counter[Any]]:
        broken, found = dict[str, Exception](), dict[str, Counter[Any]]()
        for changes in self.graph.advance(transition, limits, transition.until_ms, broken):
            for place, name in enumerate(changes.query_ids):
                assert name not in found
                assert name not in broken
                found[name] = bag(changes, place)
        self.graph._check()
        return found | {name: Counter({"broken": 1}) for name in broken}

    def step(self, transition: Transition) -> None:
        found = self.told(transition)
        for name, (text, operator, copies) in self.members.items():
            alone = told_of(bound(text), operator, transition, copies=copies)
            assert found.get(name, Counter()) == bag(alone), (name, text, self.graph.policy_of(name))


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
    return [leaf.foretold for leaf in graph._nodes.by_key.values() if isinstance(leaf, ScanNode)]


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
        for text in FORETOLD:
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


@pytest.mark.parametrize("text", FORETOLD)
@given(seeds)
def test_no_row_of_a_foretold_edge_over_windows_of_time_is_told_again(text: str, seed: int) -> None:
    """And rows of a scan leave as they came."""
    rng = random.Random(seed)
    query, found = bound(text), list[tuple[Node, Turn, Delta]]()
    graph, whole = Graph(TABLES, settings=small()), whole_course(rng)
    graph.add(standing(query), query, "changes", policy=Policy(rng.choice(("direct", "upa"))))
    delta_of = Node.delta

    def delta(node: Node, turn: Turn) -> Delta:
        given = delta_of(node, turn)
        if node.foretold:
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
