"""Stages between scans and answers: sources that stand still, rows asked for by values, no temporal form."""

from __future__ import annotations

import random

import pytest
from hypothesis import given

from engine.changes.context import EvaluationContext
from engine.changes.instants import Evaluations
from engine.changes.operator import operator_of
from engine.changes.transition import NEVER, SourceTransition, Transition
from engine.dataflow.graph import STREAMS as SUBQUERIES
from engine.model.limits import Limits
from engine.model.source import SourceName
from tests.changes.ways import (
    FEW,
    LIMITS,
    STREAMS,
    bound,
    check_changes,
    check_snapshots,
    random_transition,
    seeds,
    stored,
    told_of,
)
from tureen.errors import LimitExceeded

ODD = (
    "SELECT k, v FROM s [RANGE 6 MILLISECONDS] ORDER BY v LIMIT 2",
    "SELECT k, LAST(v) AS l FROM (SELECT k, v FROM s [ROWS 6] ORDER BY v) AS x GROUP BY k",
    "SELECT x.k, n FROM (SELECT k, v FROM s [ROWS 6] ORDER BY v LIMIT 3) AS x JOIN u ON x.k = u.k",
    "SELECT k, COUNT(*) AS c, SUM(v) AS t FROM s [ROWS 5] GROUP BY k HAVING COUNT(*) > 1 LIMIT 1",
    "SELECT DISTINCT w FROM s [ROWS 3] LIMIT 1",
)


@pytest.mark.parametrize("text", ODD)
@FEW
@given(seeds)
def test_what_goes_by_an_order_that_is_lost(text: str, seed: int) -> None:
    rng = random.Random(seed)
    query = bound(text)
    transition = random_transition(rng, query.sources)
    check_changes(query, transition, rng.choice(("changes", "istream", "rstream")))
    evaluated = Evaluations(query, EvaluationContext(transition, LIMITS), SUBQUERIES).alive()
    evaluated._check()
    check_snapshots(query, transition, evaluated)


@pytest.mark.parametrize(
    ("text", "standing"),
    [
        ("SELECT * FROM s LEFT JOIN h ON s.k = h.k", "h"),
        ("SELECT * FROM h LEFT JOIN s [ROWS 3] ON s.k = h.k", "h"),
        ("SELECT * FROM s [RANGE 4 MILLISECONDS] JOIN h ON s.k = h.k", "s"),
        ("SELECT * FROM s [PARTITION BY k ROWS 1] LEFT JOIN h ON s.k = h.k", "s"),
        ("SELECT * FROM s JOIN m ON s.k = m.k", "s"),
        ("SELECT x.k, window_end, p FROM SESSION(s, INTERVAL '3' MILLISECOND) AS x JOIN h ON x.k = h.k", "s"),
        ("SELECT a.k, b.n, p FROM h AS a FULL JOIN u AS b ON a.k = b.k", "h"),
        ("SELECT * FROM s", "s"),
    ],
)
@FEW
@given(seeds)
def test_sources_that_stand_still(text: str, standing: str, seed: int) -> None:
    rng = random.Random(seed)
    query = bound(text)
    transition = random_transition(rng, query.sources, standing=[standing])
    if transition.since_ms != NEVER:
        check_changes(query, transition, rng.choice(("changes", "istream")))


def test_what_stands_is_there_from_the_beginning() -> None:
    """A table of the other kind of time, and the first instant of a stream."""
    rows = stored("h", [(3, (1, 5, 3))], 3, None)
    none = stored("s", [], 7, None)
    transition = Transition(
        NEVER,
        7,
        {SourceName("s"): SourceTransition(none, True), SourceName("h"): SourceTransition(rows, False)},
    )
    told = told_of(bound("SELECT p, v FROM h LEFT JOIN s ON s.k = h.k"), "changes", transition)
    assert (told.table.to_pylist(), told.weights.tolist()) == ([{"p": 5, "v": None}], [1])


def test_a_table_that_moves_alone_changes_the_answer_at_its_now() -> None:
    rows = stored("h", [(1, (0, 1, 1)), (4, (0, 2, 4)), (5, (0, 1, 5))], 6, None)
    stream = stored("s", [(2, (0, 1.5, "a", 2))], 6, None)
    by_source = {
        SourceName("s"): SourceTransition(stream, False),
        SourceName("h"): SourceTransition(rows, True),
    }
    transition = Transition(2, 6, by_source, instant_ms=6)
    told = told_of(bound("SELECT p FROM s JOIN h ON s.k = h.k"), "changes", transition)
    assert told.table.column("p").to_pylist() == [1, 2, 2, 1]
    assert told.weights.tolist() == [-1, 1, -1, 1]
    assert told.at_ms.tolist() == [6, 6, 6, 6]


@pytest.mark.parametrize(
    ("text", "operator"),
    [
        ("SELECT k FROM s", "istream"),
        ("SELECT k FROM s [RANGE 1 SECOND]", "changes"),
        ("DSTREAM (SELECT k FROM s [RANGE 1 SECOND])", "dstream"),
        ("SELECT p FROM h", "changes"),
        ("SELECT v, p FROM s JOIN m ON s.k = m.k", "istream"),
        (
            "SELECT window_end, COUNT(*) AS c FROM TUMBLE(s, INTERVAL '1' SECOND) GROUP BY window_end",
            "istream",
        ),
    ],
)
def test_the_operator_that_goes_without_saying(text: str, operator: str) -> None:
    tables = {name for name, stream in STREAMS.items() if stream.is_table}
    assert operator_of(bound(text), tables) == operator


def test_so_many_changes_and_no_more() -> None:
    transition = random_transition(random.Random(5), ["s"])
    with pytest.raises(LimitExceeded, match="changes_max"):
        told_of(bound("SELECT k FROM s [NOW]"), "changes", transition, Limits(changes_max=1))
