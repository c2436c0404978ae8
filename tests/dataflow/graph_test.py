"""Graphs: queries that share operators, come and go, and are told what each alone would be."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given

from engine.changes.transition import SourceTransition, Transition
from engine.dataflow import turns
from engine.dataflow.graph import Graph
from engine.model.changes import Operator
from engine.model.limits import Limits
from engine.model.source import SourceName
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
    stored,
    told_of,
)
from tests.dataflow.courses import cut
from tests.dataflow.graph import JOINS, OPERATORS, QUERIES, SETS, bag
from tests.dataflow.policies import POLICIES
from tureen.errors import LimitExceeded


@pytest.mark.parametrize("text", QUERIES + JOINS + SETS)
@FEW
@given(seeds)
def test_changes_at_every_instant(text: str, seed: int) -> None:
    rng = random.Random(seed)
    query = bound(text)
    transition = random_transition(rng, query.sources)
    before, turns.TURN_PAIRS = turns.TURN_PAIRS, rng.choice((2, 1 << 20))
    try:
        check_changes(query, transition, rng.choice(OPERATORS), rng.choice(POLICIES))
    finally:
        turns.TURN_PAIRS = before


def test_a_right_row_that_left_on_an_earlier_turn_bounds_no_search_for_partners(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In one transition the only partner of a left row goes, and another comes that has a lower key."""
    monkeypatch.setattr(turns, "TURN_PAIRS", 1)
    text = "SELECT s.v, n FROM s [RANGE 9 MILLISECONDS] ASOF LEFT JOIN u [RANGE 5 MILLISECONDS] ON s.k >= u.n"
    left = stored("s", [(4, (2, 0.5, "a", 4))], 12, None)
    right = stored("u", [(0, (0, 5, 0)), (1, (0, 2, 1)), (9, (0, 1, 9))], 12, None)
    by_source = {
        SourceName(name): SourceTransition(at, True, None, None) for name, at in (("s", left), ("u", right))
    }
    for operator in OPERATORS:
        check_changes(bound(text), Transition(5, 12, by_source), operator)


@pytest.mark.parametrize(
    ("of", "sources"), [(QUERIES, ["s"]), (JOINS, ["s", "u", "h", "m"]), (SETS, ["s", "u", "h", "m"])]
)
@given(seeds)
def test_many_queries_are_told_what_each_alone_is(of: Sequence[str], sources: list[str], seed: int) -> None:
    """Whoever comes or goes between transitions, and however they are cut into turns."""
    rng = random.Random(seed)
    texts = [rng.choice(of) for _ in range(6)]
    whole = random_transition(rng, sources)
    while any(at_source.retained_to_ms is not None for at_source in whole.by_source.values()):
        whole = random_transition(rng, sources)
    graph, members = Graph(TABLES, settings=small()), dict[str, tuple[str, Operator, bool]]()
    before, turns.TURN_PAIRS = turns.TURN_PAIRS, rng.choice((2, 1 << 20))
    try:
        for transition in cut(rng, whole):
            for place, text in enumerate(texts):
                name = f"q{place}"
                if name in members and rng.random() < 0.2:
                    graph.remove(name)
                    del members[name]
                elif name not in members and rng.random() < 0.6:
                    operator = rng.choice(OPERATORS)
                    copies = operator == "changes" and rng.random() < 0.5
                    members[name] = text, operator, copies
                    query = bound(text)
                    one = standing(query, name)
                    graph.add(one, query, operator, copies=copies, policy=rng.choice(POLICIES))
                elif name in members and rng.random() < 0.2:
                    graph.switch(name, rng.choice(POLICIES))
            if rng.random() < 0.2:
                graph.forget()
            broken: dict[str, Exception] = {}
            found: dict[str, Counter[Any]] = {}
            for changes in graph.advance(transition, LIMITS, transition.until_ms, broken):
                for place, name in enumerate(changes.query_ids):
                    assert name not in found
                    found[name] = bag(changes, place)
            graph._check()
            assert not broken
            for name, (text, operator, copies) in members.items():
                alone = told_of(bound(text), operator, transition, copies=copies)
                assert found.get(name, Counter()) == bag(alone), name
    finally:
        turns.TURN_PAIRS = before


def test_of_one_owners_burst_that_query_alone_breaks() -> None:
    rng = random.Random(5)
    transition = random_transition(rng, ["s"], 40)
    graph = Graph(TABLES, settings=small())
    texts = {
        "few": "SELECT COUNT(*) AS n FROM s [NOW] WHERE k = 7",
        "many": "SELECT v, COUNT(*) AS n FROM s GROUP BY v",
    }
    for name, text in texts.items():
        graph.add(standing(bound(text), name), bound(text), "changes")
    broken: dict[str, Exception] = {}
    told = list(graph.advance(transition, Limits(changes_max=2), transition.until_ms, broken))
    assert list(broken) == ["many"]
    assert isinstance(broken["many"], LimitExceeded)
    assert all("many" not in changes.query_ids for changes in told)


def test_queries_that_differ_in_constants_share_their_nodes() -> None:
    graph = Graph(settings=small())
    for value in range(50):
        text = f"SELECT k, COUNT(*) AS c FROM s [RANGE 4 MILLISECONDS] WHERE v > {value} GROUP BY k"
        graph.add(standing(bound(text), f"q{value}"), bound(text), "changes")
    assert len(graph.nodes.by_key) == 2  # a scan, groups
    for value in range(50):
        text = "SELECT k, COUNT(*) AS c FROM s [RANGE 4 MILLISECONDS] GROUP BY k HAVING COUNT(*) > {}"
        graph.add(standing(bound(text.format(value)), f"h{value}"), bound(text.format(value)), "changes")
    assert len(graph.nodes.by_key) == 3  # and a condition
    for value in range(50):
        graph.remove(f"q{value}")
        graph.remove(f"h{value}")
    assert len(graph.nodes.by_key) == 0
