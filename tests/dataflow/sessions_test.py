"""SESSION in a graph: what is kept from transition to transition tells what the whole stream would."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given

from engine.dataflow.arrangements.session_rows import SessionRows
from engine.dataflow.graph import Graph
from engine.kernels import windows as kernels
from engine.model.batch import Column
from engine.model.types import STRING
from tests.capacities import small
from tests.changes.ways import FEW, LIMITS, TABLES, bound, seeds, standing, told_of
from tests.dataflow.courses import whole_course, with_retention
from tests.dataflow.graph import OPERATORS, bag

SESSIONS = (
    "SELECT k, v, window_start, window_end FROM SESSION(s, INTERVAL '2' MILLISECOND)",
    "SELECT k, v, window_start, window_end FROM SESSION(s PARTITION BY k, INTERVAL '3' MILLISECOND)",
    "SELECT w, window_start FROM SESSION(s PARTITION BY v, w, INTERVAL '6' MILLISECOND)",
    "SELECT w, window_start FROM SESSION(s PARTITION BY 1 / k, INTERVAL '4' MILLISECOND)",
    "SELECT k, window_end FROM SESSION(s PARTITION BY w, INTERVAL '2' MILLISECOND) [RANGE 4 MILLISECONDS]",
    """SELECT k, window_end FROM SESSION(s PARTITION BY w, INTERVAL '3' MILLISECOND)
    [RANGE 6 MILLISECONDS SLIDE 4 MILLISECONDS]""",
    """WITH big AS (SELECT * FROM s WHERE v > 0) SELECT k, window_start, window_end
    FROM SESSION(big PARTITION BY k, INTERVAL '3' MILLISECOND)""",
    """SELECT k, window_start, COUNT(*) AS c, SUM(v) AS t
    FROM SESSION(s PARTITION BY k, INTERVAL '3' MILLISECOND)
    GROUP BY k, window_start""",
    """SELECT k, v, n FROM (SELECT k, v, ROW_NUMBER() OVER (PARTITION BY k ORDER BY v) AS n
    FROM SESSION(s, INTERVAL '2' MILLISECOND)) AS x WHERE n = 1""",
    """SELECT a.k, a.window_end, n FROM SESSION(s PARTITION BY k, INTERVAL '2' MILLISECOND) AS a
    JOIN u [RANGE 5 MILLISECONDS] ON a.k = u.k""",
)


@pytest.mark.parametrize("text", SESSIONS)
@FEW
@given(seeds)
def test_changes_are_those_of_the_whole_stream(text: str, seed: int) -> None:
    rng = random.Random(seed)
    graph, operator = Graph(TABLES, settings=small()), rng.choice(OPERATORS)
    graph.add(standing(bound(text)), bound(text), operator)
    for transition in with_retention(rng, whole_course(rng)):
        if rng.random() < 0.1:
            graph.forget()
        broken: dict[str, Exception] = {}
        found: Counter[Any] = Counter()
        for changes in graph.advance(transition, LIMITS, transition.until_ms, broken):
            found += bag(changes)
        graph._check()
        assert not broken
        assert found == bag(told_of(bound(text), operator, transition))


def test_queries_with_one_condition_share_a_node() -> None:
    graph = Graph(settings=small())
    for place, condition in enumerate(("v > 0", "v > 0", "v > 1")):
        text = f"""WITH big AS (SELECT * FROM s WHERE {condition})
        SELECT COUNT(*) AS n FROM SESSION(big, INTERVAL '{place // 2 + 2}' MILLISECOND)"""
        graph.add(standing(bound(text), f"q{place}"), bound(text), "changes")
    assert len(graph.nodes.by_key) == 4  # two scans, two groups


@given(seeds)
def test_sessions_of_thousands_of_rows_and_ever_new_keys(seed: int) -> None:
    """Against a cut of all rows that are retained, for each step."""
    rng = np.random.default_rng(seed)
    gap, n = int(rng.integers(1, 40)), int(rng.integers(1, 3_000))
    at = np.sort(rng.integers(0, 4 * n // 10 + 2, n))
    names = np.where(rng.random(n) < 0.5, rng.integers(0, 7, n), at // 50 + 100)
    kept = SessionRows(gap, [STRING], small().capacities)
    low = done = 0
    while done < n:
        stop = min(n, done + int(rng.integers(1, 700)))
        strings = pa.array([f"k{name}" for name in names[done:stop]]).dictionary_encode()
        key = Column(STRING, strings.indices.to_numpy(), None, strings.dictionary)
        kept.append(np.arange(done, stop), at[done:stop], [key])
        since, until = int(at[done]), int(at[stop - 1])
        before = int(at[low + (stop - low) // 3])
        ordinals, sessions = kept.ending([(since, until)], before)
        codes, of_row = names[low:stop] - names.min(), np.empty(stop - low, np.int64)
        starts, lasts = np.empty(stop - low, np.int64), np.empty(stop - low, np.int64)
        count = kernels.sessions(codes, at[low:stop], int(codes.max()) + 1, gap, of_row, starts, lasts)
        ends = lasts[:count] + gap
        wanted = ((ends - 1 >= since) & (ends - 1 < until)) | (starts[:count] < before)
        rows = np.flatnonzero(wanted[of_row])
        assert ordinals.tolist() == (low + rows).tolist()
        assert sessions.timestamps.tolist() == at[ordinals].tolist()
        assert sessions.starts[sessions.of_row].tolist() == starts[of_row[rows]].tolist()
        assert sessions.ends[sessions.of_row].tolist() == ends[of_row[rows]].tolist()
        kept._check()
        low, done = int(np.searchsorted(at[:stop], before)), stop
        kept.leave(low)
    assert kept.nbytes < 2_000_000
