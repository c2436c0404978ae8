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
from engine.model.changes import Changes, Operator
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
from tests.dataflow.policies import POLICIES
from tureen.errors import LimitExceeded

QUERIES = (
    "SELECT k, COUNT(*) AS c FROM s [RANGE 4 MILLISECONDS] GROUP BY k",
    "SELECT k, COUNT(*) AS c FROM s [RANGE 4 MILLISECONDS] WHERE w = 'a' GROUP BY k",
    "SELECT k, COUNT(*) AS c FROM s [RANGE 4 MILLISECONDS] WHERE v > 0 GROUP BY k HAVING COUNT(*) > 1",
    "SELECT k, COUNT(*) AS c FROM s [RANGE 4 MILLISECONDS] WHERE v > 0 GROUP BY k HAVING COUNT(*) > 2",
    "SELECT w, SUM(v) AS t FROM s [RANGE 4 MILLISECONDS] GROUP BY w HAVING w >= 'a' AND NOT (SUM(v) < 1.5)",
    "SELECT w, SUM(v) AS t FROM s [RANGE 4 MILLISECONDS] GROUP BY w HAVING w >= 'b' AND NOT (SUM(v) < 0.1)",
    "SELECT k, SUM(v) AS t, AVG(v) AS a, VAR_POP(v) AS p FROM s [RANGE 4 MILLISECONDS] GROUP BY k",
    "SELECT COUNT(*) AS c, SUM(k) AS t FROM s [RANGE 4 MILLISECONDS] WHERE w = 'b'",
    "SELECT DISTINCT k, w FROM s [ROWS 3]",
    "SELECT DISTINCT v FROM s [RANGE 4 MILLISECONDS]",
    "SELECT v, COUNT(*) AS c, MAX(k) AS m FROM s [RANGE 4 MILLISECONDS] GROUP BY v",
    "SELECT w, COUNT(*) AS c FROM s [PARTITION BY k ROWS 2] GROUP BY w",
    "SELECT w, COUNT(*) AS c FROM s [ROWS 2 WHERE v > 0] WHERE k = 1 GROUP BY w",
    """SELECT k, window_start, COUNT(*) AS c FROM HOP(s, INTERVAL '2' MILLISECOND, INTERVAL '6' MILLISECOND)
    WHERE k > 0 GROUP BY k, window_start""",
    "SELECT k, window_end, SUM(v) AS c FROM SESSION(s, INTERVAL '3' MILLISECOND) GROUP BY k, window_end",
    """SELECT c, COUNT(*) AS n FROM (SELECT k, COUNT(*) AS c FROM s [RANGE 6 MILLISECONDS] GROUP BY k) AS x
    GROUP BY c""",
    "SELECT k + 1 AS k1, v FROM s [RANGE 3 MILLISECONDS SLIDE 2 MILLISECONDS] WHERE v > 0",
    "SELECT w, MAX(v) AS m FROM s [RANGE 4 MILLISECONDS] GROUP BY w",
    "SELECT k, MIN(w) AS a, MAX(w) FILTER (WHERE v > 0) AS b FROM s [RANGE 4 MILLISECONDS] GROUP BY k",
    "SELECT k, FIRST(v) AS a, LAST(v) FILTER (WHERE w = 'a') AS b FROM s [RANGE 4 MILLISECONDS] GROUP BY k",
    """SELECT window_end, FIRST(w) AS a, LAST(k) AS b, MAX(k) AS c
    FROM HOP(s, INTERVAL '2' MILLISECOND, INTERVAL '4' MILLISECOND) GROUP BY window_end""",
    "SELECT LAST(v) AS a FROM (SELECT v FROM s [RANGE 9 MILLISECONDS] LIMIT 3) AS x",
    """SELECT m, COUNT(*) AS n FROM (SELECT w, MAX(v) AS m FROM s [ROWS 4] GROUP BY w) AS x WHERE m > 0
    GROUP BY m""",
    "SELECT k, v FROM s [RANGE 4 MILLISECONDS] ORDER BY v DESC LIMIT 2",
    "SELECT k, v, w FROM s [RANGE 6 MILLISECONDS] WHERE v > 0 ORDER BY w DESC, k LIMIT 2 OFFSET 1",
    "SELECT v FROM s [ROWS 5] WHERE k > 0 LIMIT 2",
    "SELECT k + 1 AS a, w FROM s [RANGE 5 MILLISECONDS] ORDER BY a NULLS FIRST, w LIMIT 3",
    "SELECT k, COUNT(*) AS c FROM s [RANGE 6 MILLISECONDS] GROUP BY k ORDER BY c DESC, k LIMIT 2",
    "SELECT k, COUNT(*) AS c FROM s [RANGE 6 MILLISECONDS] GROUP BY k ORDER BY c DESC LIMIT 2",
    "SELECT DISTINCT k, w FROM s [RANGE 4 MILLISECONDS] LIMIT 3",
    """SELECT k, c, n FROM (SELECT k, w, c, ROW_NUMBER() OVER (PARTITION BY w ORDER BY c) AS n
    FROM (SELECT k, w, COUNT(*) AS c FROM s [ROWS 8] GROUP BY k, w HAVING COUNT(*) > 1) AS x) AS y
    WHERE n < 3""",
    """SELECT w, v, n FROM (SELECT w, v, ROW_NUMBER() OVER (PARTITION BY w ORDER BY v DESC) AS n
    FROM s [RANGE 6 MILLISECONDS]) AS x WHERE n <= 2""",
    "SELECT k, ROW_NUMBER() OVER (ORDER BY w) AS n FROM s [RANGE 5 MILLISECONDS]",
    """SELECT n, COUNT(*) AS c FROM (SELECT ROW_NUMBER() OVER (PARTITION BY k, w ORDER BY v) AS n
    FROM s [RANGE 6 MILLISECONDS]) AS x GROUP BY n""",
    """SELECT k, window_end, v FROM HOP(s, INTERVAL '2' MILLISECOND, INTERVAL '4' MILLISECOND)
    ORDER BY v, window_end LIMIT 3""",
    "SELECT w FROM (SELECT w, v FROM s [RANGE 6 MILLISECONDS] LIMIT 4) AS x ORDER BY v LIMIT 2",
    """SELECT k, v, n FROM (SELECT k, v, ROW_NUMBER() OVER (PARTITION BY k ORDER BY v) AS n
    FROM SESSION(s, INTERVAL '3' MILLISECOND)) AS x WHERE n = 1""",
    "SELECT v, w FROM s [PARTITION BY k ROWS 2] ORDER BY w LIMIT 3",
    "SELECT k, v, w FROM s [PARTITION BY k, w ROWS 1]",
    "SELECT k, v, w FROM s [PARTITION BY k ROWS 2 WHERE v > 0] WHERE w = 'a'",
    "SELECT k, v, w FROM s [ROWS 3 WHERE w = 'b'] WHERE v > 0",
    "SELECT k, v, w FROM s [ROWS 3 WHERE w = 'a'] WHERE v > 1",
)
QUERIES += (
    "SELECT k, ARRAY_AGG(v) AS a, COUNT(*) AS c FROM s [RANGE 4 MILLISECONDS] GROUP BY k",
    "SELECT ARRAY_AGG(w) FILTER (WHERE k > 0) AS a, MAX(v) AS m FROM s [ROWS 4]",
    "SELECT w, APPROX_COUNT_DISTINCT(v) AS d, SUM(k) AS t FROM s [RANGE 5 MILLISECONDS] GROUP BY w",
    """SELECT k, ARRAY_AGG(c) AS a FROM (SELECT k, w, COUNT(*) AS c FROM s [RANGE 5 MILLISECONDS]
    GROUP BY k, w) AS x GROUP BY k""",
    "SELECT k, v FROM s [RANGE 5 MILLISECONDS] LIMIT 0",
    "SELECT k, v FROM s [PARTITION BY v ROWS 1]",
    """SELECT k, v FROM (SELECT k, v, ROW_NUMBER() OVER (PARTITION BY v ORDER BY k) AS n
    FROM s [RANGE 6 MILLISECONDS]) AS x WHERE n <= 1""",
)
JOINS = (
    "SELECT DISTINCT s.k, n FROM s [RANGE 5 MILLISECONDS] JOIN u [RANGE 3 MILLISECONDS] ON s.k = u.k",
    """SELECT x.k, y.k AS o FROM (SELECT DISTINCT k FROM s [RANGE 5 MILLISECONDS]) AS x
    JOIN (SELECT DISTINCT k FROM u [RANGE 3 MILLISECONDS SLIDE 2 MILLISECONDS]) AS y ON x.k = y.k""",
    """SELECT s.w, COUNT(*) AS c FROM s [RANGE 5 MILLISECONDS] JOIN u [RANGE 3 MILLISECONDS] ON s.k = u.k
    JOIN s AS t [RANGE 2 MILLISECONDS] ON u.n = t.k GROUP BY s.w""",
    """SELECT s.v, u.n, t.v AS o FROM s [RANGE 5 MILLISECONDS] JOIN u [ROWS 3] ON s.k = u.k
    JOIN s AS t [RANGE 2 MILLISECONDS] ON u.n = t.k""",
    """SELECT x.k FROM (SELECT k, COUNT(*) AS c FROM s [ROWS 4] GROUP BY k) AS x, u [ROWS 3] AS b
    GROUP BY x.k LIMIT 1""",
    """SELECT DISTINCT x.p FROM (SELECT p, COUNT(*) AS c FROM h GROUP BY p) AS x JOIN h AS b ON x.p = b.k
    LIMIT 1""",
    """SELECT x.k, n FROM (SELECT k, COUNT(*) AS c FROM s [ROWS 4] GROUP BY k) AS x LEFT JOIN u [ROWS 3] AS b
    ON x.k = b.k LIMIT 2""",
    """SELECT w, ARRAY_AGG(n) AS a FROM s [RANGE 5 MILLISECONDS] JOIN u [ROWS 3] ON s.k = u.k GROUP BY w""",
    "SELECT k, p FROM h ORDER BY p DESC LIMIT 2",
    """SELECT s.k, n, v FROM s [RANGE 5 MILLISECONDS] JOIN u [RANGE 4 MILLISECONDS] ON s.k = u.k
    ORDER BY v LIMIT 3""",
    """SELECT v, n FROM s [RANGE 3 MILLISECONDS] FULL JOIN u [RANGE 4 MILLISECONDS] ON s.k = u.k
    ORDER BY n DESC LIMIT 2 OFFSET 1""",
    "SELECT w, n FROM s [ROWS 2] LEFT JOIN u [RANGE 4 MILLISECONDS] ON s.k = u.k AND u.n > 0 LIMIT 2",
    """SELECT v, n FROM s [RANGE 3 MILLISECONDS]
    RIGHT JOIN u [RANGE 4 MILLISECONDS] ON s.k = u.k AND s.v > u.n LIMIT 3""",
    """SELECT k, v FROM s [RANGE 6 MILLISECONDS] WHERE k NOT IN (SELECT k FROM u [RANGE 5 MILLISECONDS])
    ORDER BY w LIMIT 2""",
    """SELECT k, c FROM (SELECT s.k, COUNT(*) AS c FROM s [RANGE 5 MILLISECONDS]
    JOIN u [RANGE 4 MILLISECONDS] ON s.k = u.k GROUP BY s.k) AS x ORDER BY c LIMIT 1""",
    """SELECT w, FIRST(n) AS a, LAST(n) AS b FROM s [RANGE 5 MILLISECONDS]
    LEFT JOIN u [RANGE 4 MILLISECONDS] ON s.k = u.k GROUP BY w""",
    """SELECT k, v FROM (SELECT k, v FROM s [RANGE 6 MILLISECONDS] ORDER BY v LIMIT 4) AS x
    WHERE k IN (SELECT k FROM u [RANGE 5 MILLISECONDS])""",
    "SELECT s.k, n, v FROM s [RANGE 5 MILLISECONDS] JOIN u [RANGE 4 MILLISECONDS] ON s.k = u.k",
    """SELECT s.k, n, v FROM s [RANGE 5 MILLISECONDS] JOIN u [RANGE 4 MILLISECONDS] ON s.k = u.k
    WHERE s.w = 'a'""",
    """SELECT s.k, n, v FROM s [RANGE 5 MILLISECONDS] JOIN u [RANGE 4 MILLISECONDS] ON s.k = u.k
    WHERE s.w = 'a' AND u.n > 0""",
    """SELECT w, SUM(n) AS t FROM s [RANGE 5 MILLISECONDS] JOIN u [ROWS 3] ON s.k = u.k AND s.v < u.n
    WHERE u.n > 0 GROUP BY w""",
    "SELECT w, n FROM s [ROWS 2] LEFT JOIN u [RANGE 4 MILLISECONDS] ON s.k = u.k AND u.n > 0",
    "SELECT w, n FROM s [ROWS 2] LEFT JOIN u [RANGE 4 MILLISECONDS] ON s.k = u.k WHERE w = 'b'",
    "SELECT v, n FROM s [RANGE 3 MILLISECONDS] FULL JOIN u [RANGE 4 MILLISECONDS] ON s.k = u.k",
    """SELECT v, n FROM s [RANGE 3 MILLISECONDS]
    RIGHT JOIN u [RANGE 4 MILLISECONDS] ON s.k = u.k AND s.v > u.n""",
    """SELECT s.v, t.v FROM s [RANGE 3 MILLISECONDS]
    JOIN s AS t [RANGE 6 MILLISECONDS] ON s.k = t.k WHERE t.w = 'a'""",
    "SELECT s.k, p, n FROM s [RANGE 6 MILLISECONDS] JOIN h ON s.k = h.k JOIN u [ROWS 4] ON u.k = h.k",
    "SELECT k, v FROM s [RANGE 6 MILLISECONDS] WHERE k IN (SELECT k FROM u [RANGE 5 MILLISECONDS])",
    "SELECT k, v FROM s [RANGE 6 MILLISECONDS] WHERE k NOT IN (SELECT k FROM u [RANGE 5 MILLISECONDS])",
    """SELECT k, v FROM s [RANGE 6 MILLISECONDS]
    WHERE w = 'a' AND k NOT IN (SELECT k FROM u [RANGE 5 MILLISECONDS] WHERE n > 0)""",
    "SELECT k, v FROM s [RANGE 6 MILLISECONDS] WHERE NOT EXISTS (SELECT * FROM u [RANGE 1 MILLISECONDS])",
    """SELECT k, v FROM s [RANGE 6 MILLISECONDS]
    WHERE EXISTS (SELECT * FROM u [ROWS 2] WHERE u.k = s.k AND n > 0)""",
    """SELECT s.k, c, v FROM s [RANGE 6 MILLISECONDS]
    JOIN (SELECT k, COUNT(*) AS c FROM u [ROWS 4] GROUP BY k) AS x ON s.k = x.k WHERE s.v > 0""",
    "SELECT s.k, s.v, n FROM s [RANGE 4 MILLISECONDS] ASOF JOIN u ON s.k = u.k AND s.ts >= u.ts",
    """SELECT s.k, s.v, n FROM s [RANGE 6 MILLISECONDS]
    ASOF LEFT JOIN u [RANGE 3 MILLISECONDS] ON s.k = u.k AND s.ts > u.ts WHERE s.w = 'a' AND u.n > 0""",
    """SELECT s.v, n FROM s [RANGE 6 MILLISECONDS]
    ASOF LEFT JOIN u [RANGE 5 MILLISECONDS] ON s.k >= u.n""",
    "SELECT w, COUNT(p) AS c FROM s [RANGE 6 MILLISECONDS] LEFT JOIN m ON s.k = m.k GROUP BY w",
    """SELECT x.k, c, window_start FROM (SELECT k, window_start, COUNT(*) AS c
    FROM SESSION(s, INTERVAL '2' MILLISECOND) GROUP BY k, window_start) AS x LEFT JOIN h ON x.k = h.k""",
)
SETS = (
    """SELECT x.k, x.v, y.n FROM (SELECT k, v FROM s [RANGE 6 MILLISECONDS]
    EXCEPT ALL ON (k) SELECT k FROM u [RANGE 4 MILLISECONDS]) AS x
    JOIN u [RANGE 5 MILLISECONDS] AS y ON x.k = y.k""",
    "SELECT k FROM s [RANGE 4 MILLISECONDS] UNION ALL SELECT k FROM u [RANGE 4 MILLISECONDS]",
    "SELECT k FROM s [RANGE 4 MILLISECONDS] UNION SELECT k FROM u [ROWS 3]",
    "SELECT k, w FROM s UNION ALL SELECT k, w FROM s [RANGE 3 MILLISECONDS] WHERE v > 0",
    "SELECT k FROM s [RANGE 6 MILLISECONDS] INTERSECT ALL SELECT k FROM u [RANGE 4 MILLISECONDS]",
    "SELECT k FROM s [RANGE 6 MILLISECONDS] INTERSECT SELECT n FROM u [ROWS 4]",
    "SELECT v FROM s [RANGE 6 MILLISECONDS] EXCEPT ALL SELECT n FROM u [RANGE 4 MILLISECONDS]",
    "SELECT k FROM s [RANGE 6 MILLISECONDS] EXCEPT SELECT k FROM u [RANGE 4 MILLISECONDS]",
    "SELECT k, v, w FROM s [RANGE 6 MILLISECONDS] EXCEPT ALL ON (k) SELECT k FROM u [RANGE 4 MILLISECONDS]",
    "SELECT k, v, ts FROM s [ROWS 5] EXCEPT ALL ON (k, v) SELECT k, n AS v FROM u [RANGE 4 MILLISECONDS]",
    "SELECT k, p FROM h EXCEPT ALL SELECT k, n FROM u [RANGE 6 MILLISECONDS]",
    "SELECT k FROM s [ROWS 3] EXCEPT ALL SELECT k FROM h INTERSECT SELECT k FROM m",
    """SELECT w, COUNT(*) AS c FROM (SELECT w, v FROM s [RANGE 4 MILLISECONDS]
    UNION ALL SELECT w, v + 1 FROM s [ROWS 2]) AS x GROUP BY w""",
    """SELECT k, window_end FROM TUMBLE(s, INTERVAL '2' MILLISECOND)
    EXCEPT ALL SELECT k, window_end FROM TUMBLE(u, INTERVAL '2' MILLISECOND)""",
    """SELECT k FROM s [RANGE 5 MILLISECONDS] UNION ALL SELECT n FROM u [RANGE 5 MILLISECONDS] LIMIT 2""",
    """SELECT k, v FROM s [RANGE 6 MILLISECONDS] WHERE k IN (SELECT k FROM u [RANGE 5 MILLISECONDS]
    EXCEPT SELECT k FROM h)""",
    """SELECT s.k, v, n FROM s [RANGE 5 MILLISECONDS] JOIN u [RANGE 4 MILLISECONDS] ON s.k = u.k
    EXCEPT ALL ON (k) SELECT k FROM h""",
    """SELECT v, w, COUNT(*) AS c FROM s [RANGE 5 MILLISECONDS] GROUP BY v, w
    EXCEPT ALL ON (w) SELECT w FROM s [RANGE 2 MILLISECONDS] WHERE k = 1""",
    """SELECT k, v FROM s [PARTITION BY k ROWS 2] EXCEPT ALL ON (k) SELECT n AS k FROM u [ROWS 3]""",
    """SELECT k, v, window_end FROM HOP(s, INTERVAL '2' MILLISECOND, INTERVAL '4' MILLISECOND)
    EXCEPT ALL ON (k) SELECT k FROM u [RANGE 5 MILLISECONDS]""",
    """SELECT k, COUNT(*) AS c FROM s [RANGE 4 MILLISECONDS] GROUP BY k
    UNION ALL SELECT k, MAX(n) FROM u [ROWS 4] GROUP BY k""",
)
OPERATORS: tuple[Operator, ...] = ("changes", "istream", "dstream", "rstream")


def bag(changes: Changes, place: int = 0) -> Counter[Any]:
    rows = slice(*changes.starts[place : place + 2].tolist())
    table = changes.table.slice(rows.start, rows.stop - rows.start)
    copies = [0] * len(table) if changes.copies is None else changes.copies[rows].tolist()
    told = zip(
        table.to_pylist(), changes.weights[rows].tolist(), changes.at_ms[rows].tolist(), copies, strict=True
    )
    return Counter((repr(tuple(row.values())), weight, at, copy) for row, weight, at, copy in told)


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
    assert graph.node_count == 2  # a scan, groups
    for value in range(50):
        text = "SELECT k, COUNT(*) AS c FROM s [RANGE 4 MILLISECONDS] GROUP BY k HAVING COUNT(*) > {}"
        graph.add(standing(bound(text.format(value)), f"h{value}"), bound(text.format(value)), "changes")
    assert graph.node_count == 3  # and a condition
    for value in range(50):
        graph.remove(f"q{value}")
        graph.remove(f"h{value}")
    assert graph.node_count == 0
