"""Joins that let go of rows by constraints give the changes that the same joins give over all rows: found by
definition, whatever the cuts, however soon streams forget, through restarts and with state made anew.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.dataflow.node import Node
from engine.dataflow.operators.releasing_group import ReleasingGroupNode
from engine.dataflow.operators.releasing_join import ReleasingJoinNode
from engine.engine import Engine
from engine.model.step import StepResult
from tests.capacities import small_restored
from tests.differential.promised_streams import Row, World, batch, streams
from tests.memory_state import MemoryState

END_MS = 10**6
SOME = settings(max_examples=max(15, settings.default.max_examples // 4), deadline=None)


@dataclass(frozen=True)
class Question:
    """A join and its pairs by definition."""

    sql: str
    pairs: Callable[[dict[str, list[Row]]], list[tuple[tuple[int, ...], int]]]


def _two(rows: dict[str, list[Row]], wanted: Callable[[Row, Row], bool]) -> list[tuple[tuple[int, ...], int]]:
    return [
        ((o[0], f[0]), max(o[3], f[3])) for o in rows["o"] for f in rows["f"] if f[1] == o[0] and wanted(o, f)
    ]


def _three(rows: dict[str, list[Row]]) -> list[tuple[tuple[int, ...], int]]:
    return [
        ((o[0], f[0], p[0]), max(o[3], f[3], p[3]))
        for o in rows["o"]
        for f in rows["f"]
        for p in rows["p"]
        if f[1] == o[0] and p[1] == f[0]
    ]


def _groups(rows: Sequence[Row]) -> list[tuple[tuple[int, ...], int]]:
    """By key: how many rows there are and their sum, at each instant at which the key got a row."""
    return [
        ((key, len(held), sum(row[2] for row in held)), ts)
        for key, ts in {(row[1], row[3]) for row in rows}
        for held in [[row for row in rows if row[1] == key and row[3] <= ts]]
    ]


def _first(rows: Sequence[Row]) -> list[tuple[tuple[int, ...], int]]:
    """Each key, at the instant of its first row."""
    return [((key,), min(row[3] for row in rows if row[1] == key)) for key in {row[1] for row in rows}]


QUESTIONS = {
    "ordered": Question(
        "SELECT l.id AS a, m.id AS b FROM l JOIN m ON l.k = m.k",
        lambda rows: [
            ((one[0], other[0]), max(one[3], other[3]))
            for one in rows["l"]
            for other in rows["m"]
            if one[1] == other[1]
        ],
    ),
    "groups": Question(
        "ISTREAM(SELECT k, COUNT(*) AS n, SUM(v) AS total FROM f GROUP BY k)", lambda rows: _groups(rows["f"])
    ),
    "groups of some": Question(
        "ISTREAM(SELECT k, COUNT(*) AS n, SUM(v) AS total FROM m WHERE v < 2 GROUP BY k)",
        lambda rows: _groups([row for row in rows["m"] if row[2] < 2]),
    ),
    "distinct": Question("SELECT DISTINCT k FROM l", lambda rows: _first(rows["l"])),
    "plain": Question(
        "SELECT o.id AS a, f.id AS b FROM o JOIN f ON f.k = o.id", lambda rows: _two(rows, lambda o, f: True)
    ),
    "predicates": Question(
        "SELECT o.id AS a, f.id AS b FROM f JOIN o ON f.k = o.id WHERE o.v > 0 AND f.v < 2",
        lambda rows: _two(rows, lambda o, f: o[2] > 0 and f[2] < 2),
    ),
    "condition": Question(
        "SELECT o.id AS a, f.id AS b FROM f JOIN o ON f.k = o.id AND f.v <> o.v",
        lambda rows: _two(rows, lambda o, f: o[2] != f[2]),
    ),
    "tree": Question(
        "SELECT o.id AS a, f.id AS b, p.id AS c FROM p JOIN f ON p.k = f.id JOIN o ON f.k = o.id", _three
    ),
    "tree from the root": Question(
        "SELECT o.id AS a, f.id AS b, p.id AS c FROM o JOIN f ON f.k = o.id JOIN p ON p.k = f.id", _three
    ),
}


def nodes_of(engine: Engine) -> list[Node]:
    return [
        node for graph in engine._following.graphs.by_set.values() for node in graph.nodes.by_key.values()
    ]


def releasing(engine: Engine) -> list[ReleasingJoinNode]:
    return [node for node in nodes_of(engine) if isinstance(node, ReleasingJoinNode)]


Told = Counter[tuple[str, tuple[int, ...], int]]
"""(query, row, instant)."""


def told(results: Sequence[StepResult]) -> Told:
    found: Told = Counter()
    for changes in [one for result in results for one in result.changes]:
        rows = [tuple(row.values()) for row in changes.table.to_pylist()]
        queries = np.repeat(changes.query_ids, np.diff(changes.starts)).tolist()
        assert set(changes.weights.tolist()) == {1}
        found.update(zip(queries, rows, changes.at_ms.tolist(), strict=True))
    return found


def anew(engine: Engine, how: str) -> Engine:
    """State is made anew: by a restart, of an engine that was never saved; from a copy; or without."""
    if how == "forget":
        engine._following.graphs.forget()
        return engine
    store = MemoryState()
    if how == "restart":
        engine.save(store)
    else:
        engine.copy(store)
    return small_restored(store)


@SOME
@given(
    streams(),
    st.lists(st.tuples(st.sampled_from("ofplm"), st.integers(1, 5)), min_size=1, max_size=30),
    st.integers(0, 29),
    st.sampled_from(["restart", "copy", "forget", "nothing"]),
)
def test_changes_are_those_over_all_rows(
    world: World, cuts: list[tuple[str, int]], when: int, what: str
) -> None:
    engine, results = world.engine(), list[StepResult]()
    for query_id, question in QUESTIONS.items():
        engine.register(query_id, question.sql + " EMIT CHANGES")
    done = dict.fromkeys(world.rows, 0)

    def bring(name: str, count: int) -> None:
        rows = world.rows[name][done[name] : done[name] + count]
        if rows:
            results.append(engine.ingest(name, batch(engine, name, rows, done[name])))
            done[name] += len(rows)

    for step, (name, count) in enumerate(cuts):
        bring(name, count)
        if step == when % len(cuts) and what != "nothing":
            engine = anew(engine, what)
        engine._check()
    for name in world.rows:
        bring(name, len(world.rows[name]))
    for name in world.rows:
        end = (-1, END_MS, 0, END_MS)
        results.append(engine.ingest(name, batch(engine, name, [end], len(world.rows[name]))))
        engine._check()
    expected = Counter(
        (query_id, row, at_ms)
        for query_id, question in QUESTIONS.items()
        for row, at_ms in question.pairs(world.rows)
    )
    found = told(results)
    assert {key: n for key, n in found.items() if key[2] < END_MS} == expected
    groups = [node for node in nodes_of(engine) if isinstance(node, ReleasingGroupNode)]
    assert len(groups) == 3
    assert all(node.rows <= world.apart + 1 for node in groups)


@pytest.mark.parametrize("how", ["copy", "forget"])
def test_state_made_anew_has_the_rows_that_are_retained_no_more_and_not_those_let_go_of(how: str) -> None:
    world = World({}, late=0, apart=0)
    engine = world.engine()
    engine.register("q", "SELECT o.id AS a, f.id AS b FROM o JOIN f ON f.k = o.id WHERE f.v = 0 EMIT CHANGES")
    engine.ingest("o", batch(engine, "o", [(i, 0, 0, i) for i in range(4)], 0))
    engine.ingest("f", batch(engine, "f", [(0, 1, 0, 5), (1, 2, 1, 6)], 0))
    engine.ingest("o", batch(engine, "o", [(4, 0, 0, 100), (5, 0, 0, 101)], 4))
    engine.ingest("f", batch(engine, "f", [(2, 3, 1, 100), (3, 3, 1, 101)], 2))
    for _ in range(3):
        engine = anew(engine, how)
        engine._check()
        assert engine._sources["o"].rows.base == 4
    results = [engine.ingest("o", batch(engine, "o", [(6, 0, 0, 200)], 6))]
    results.append(engine.ingest("f", batch(engine, "f", [(4, 0, 0, 102), (5, 4, 0, 103)], 4)))
    assert told(results) == Counter([("q", (0, 4), 102)])
    assert [join.rows for join in releasing(engine)] == [3]  # orders 0, 4 and 5: 1, 2 and 3 are over


def test_history_that_comes_back_leaves_what_is_held_as_it_is() -> None:
    world = World({}, late=0, apart=0)
    engine = world.engine()
    engine.register("q", "SELECT o.id AS a, f.id AS b FROM o JOIN f ON f.k = o.id EMIT CHANGES")
    orders = [(0, 0, 0, 0), (1, 0, 0, 50), (2, 0, 0, 60), (3, 0, 0, 100)]
    for place, row in enumerate(orders):
        engine.ingest("o", batch(engine, "o", [row], place))
        engine.ingest("f", batch(engine, "f", [(place, 9, 0, row[3])], place))
    engine.backfill("o", batch(engine, "o", orders[1:3], 1), 40)
    engine._check()
    results = [engine.ingest("o", batch(engine, "o", [(4, 0, 0, 300)], 4))]
    later = [(4, 0, 0, 200), (5, 1, 0, 201), (6, 2, 0, 202), (7, 9, 0, 203)]
    results.append(engine.ingest("f", batch(engine, "f", later, 4)))
    assert told(results) == Counter([("q", (0, 4), 200), ("q", (1, 5), 201), ("q", (2, 6), 202)])


def test_a_pair_that_a_broken_promise_loses_is_told_by_a_tag() -> None:
    world = World({}, late=0, apart=0)
    engine = world.engine()
    engine.register("q", "SELECT o.id AS a, f.id AS b FROM o JOIN f ON f.k = o.id EMIT CHANGES")
    engine.ingest("f", batch(engine, "f", [(0, 7, 0, 10), (1, 1, 0, 12)], 0))
    engine.ingest("o", batch(engine, "o", [(1, 0, 0, 0), (2, 0, 0, 11)], 0))
    results = [engine.ingest("o", batch(engine, "o", [(7, 0, 0, 13), (9, 0, 0, 20)], 2))]
    results.append(engine.ingest("f", batch(engine, "f", [(2, 9, 0, 30)], 2)))
    assert told(results) == Counter([("q", (1, 1), 12)])  # order 7 came after its fulfilment
    assert {tag.kind for tag in engine.view().snapshot("q").approximation} == {"constraint"}


def test_paper_no_fulfilment_is_stored_and_an_order_until_the_next_one() -> None:
    orders = [(i, 0, 0, i) for i in range(10)]
    fulfilments = [(i, i // 3, 0, 20 + i) for i in range(30)]
    world = World({"o": orders, "f": fulfilments, "p": []}, late=0, apart=0)
    engine = world.engine()
    engine.register("q", "SELECT o.id AS a, f.id AS b FROM o JOIN f ON f.k = o.id EMIT CHANGES")
    engine.ingest("o", batch(engine, "o", orders, 0))
    engine.ingest("o", batch(engine, "o", [(10, 0, 0, 1000)], 10))
    for place, row in enumerate(fulfilments):
        engine.ingest("f", batch(engine, "f", [row], place))
        (join,) = releasing(engine)
        seen = fulfilments[:place]  # NOW is 1 ms behind the last one
        assert join.rows == 10 - (seen[-1][1] if seen else 0)
    assert join.released == 29 + 9


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT o.id FROM o JOIN f ON f.v = o.v",
        "SELECT o.id FROM o [RANGE 1 SECOND] JOIN f [RANGE 1 SECOND] ON f.k = o.id",
        "SELECT o.id FROM o LEFT JOIN f ON f.k = o.id",
        "SELECT COUNT(*) AS n FROM o JOIN f ON f.k = o.id",
        "SELECT DISTINCT o.id FROM o JOIN f ON f.k = o.id",
        "SELECT DISTINCT v FROM f",
        "SELECT k, COUNT(*) AS n FROM f GROUP BY k",
        "SELECT f.id FROM f WHERE v > 0",
    ],
)
def test_joins_whose_rows_would_pile_up_or_have_to_be_seen_to_leave_hold_nothing(sql: str) -> None:
    engine = World({}, 0, 0).engine()
    engine.register("q", sql + " EMIT CHANGES")
    assert not releasing(engine)
    assert not any(graph.held for graph in engine._following.graphs.by_set.values())
