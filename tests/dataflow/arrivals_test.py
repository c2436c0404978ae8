"""Selections that tell rows as they come: without operators they tell what operators would."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.dataflow import arrivals, graph_sinks
from engine.dataflow.arrivals import Arrival
from engine.dataflow.graph import Graph
from engine.engine import Engine
from engine.model.batch import Batch
from engine.model.step import Heartbeat, StepResult
from tests.capacities import small_engine

QUERIES = (
    "SELECT id, v FROM s EMIT CHANGES",
    "ISTREAM(SELECT v, id FROM s WHERE v > 2)",
    "SELECT name, v * 2 AS w FROM s WHERE name LIKE 'a%' OR v = 1 EMIT CHANGES",
    "SELECT 10 / v AS q, id FROM s WHERE 6 / v > 2 EMIT CHANGES",
    "SELECT * FROM s WHERE name IS NULL EMIT CHANGES",
)
OTHERS = (
    "SELECT v, COUNT(*) AS n FROM s [RANGE 5 MILLISECONDS] GROUP BY v EMIT CHANGES",
    "ISTREAM(SELECT v FROM s [RANGE 3 MILLISECONDS])",
    "ISTREAM(SELECT v FROM s [ROWS 2])",
    "DSTREAM(SELECT v FROM s)",
    "SELECT v FROM s [RANGE 9 MILLISECONDS SLIDE 4 MILLISECONDS] EMIT CHANGES",
)


class Fed:
    """An engine with a stream. is_plain: selections may tell rows without operators."""

    def __init__(
        self, event_time: bool, retain_ms: int, is_plain: bool, engine: Engine | None = None
    ) -> None:
        self.engine = small_engine() if engine is None else engine
        with_ = "WITH (timestamp = 'ts', lateness = '2 milliseconds')" if event_time else ""
        columns = "id BIGINT, v INTEGER, name STRING, ts TIMESTAMP NOT NULL"
        self.engine.create(f"CREATE STREAM s ({columns}) {with_} RETAIN {retain_ms} MILLISECONDS", 1)
        self._is_plain = is_plain
        self._offset = 0

    def put(self, rows: Sequence[tuple[int, int | None, str | None]], clock_ms: int) -> list[Any]:
        """A step of rows (timestamp, v, name); what it told."""
        offsets = np.arange(self._offset, self._offset + len(rows))
        self._offset += len(rows)
        stamps = [row[0] for row in rows]
        table = pa.table(
            {
                "id": pa.array(offsets, pa.int64()),
                "v": pa.array([row[1] for row in rows], pa.int32()),
                "name": pa.array([row[2] for row in rows], pa.string()),
                "ts": pa.array(stamps, pa.timestamp("ms")),
            }
        )
        batch = Batch.from_arrow(
            self.engine.catalogue["s"].schema, table, np.zeros(len(rows)), offsets, stamps
        )
        return self._told(lambda: self.engine.ingest("s", batch, clock_ms))

    def beat(self, clock_ms: int) -> list[Any]:
        """The clock alone goes on; what it told."""
        body = Heartbeat("s", frozenset())
        return self._told(lambda: self.engine._now(body, clock_ms))

    def _told(self, step: Any) -> list[Any]:
        with pytest.MonkeyPatch.context() as patched:
            if not self._is_plain:
                patched.setattr(graph_sinks, "arrivals_of", lambda _: None)
                for graph in self.engine._following.graphs.by_set.values():
                    graph.sinks._knows_arrivals = False
            result: StepResult = step()
        self.engine._check()
        assert not result.failed
        assert not result.broken
        return sorted(
            (
                (
                    one.query_ids,
                    one.table.schema.to_string(),
                    str(one.table.to_pylist()),
                    one.weights.tolist(),
                    one.at_ms.tolist(),
                    one.now_ms.tolist(),
                    one.starts.tolist(),
                    one.occasion,
                )
                for one in result.changes
            ),
            key=lambda one: one[0],
        )

    def usage(self) -> list[tuple[int, int]]:
        """How many rows each operator was given and gave."""
        graph = self.engine._following.graphs.by_set["s",]
        return [(node.usage.rows_in, node.usage.rows_out) for node in graph.nodes.by_key.values()]


def told_by(fed: Fed) -> int:
    """By how many sinks rows are told as they come."""
    found = fed.engine._following.graphs.by_set["s",].sinks._arrivals
    return 0 if found is None else len(found)


ROWS = st.lists(
    st.tuples(st.integers(0, 9), st.none() | st.integers(0, 4), st.sampled_from((None, "a", "ab", "b"))),
    max_size=6,
)


@given(
    st.booleans(),
    st.integers(1, 30),
    st.lists(st.sampled_from(QUERIES), min_size=1, max_size=4, unique=True),
    st.lists(st.one_of(ROWS, st.none(), st.sampled_from(QUERIES + OTHERS), st.just("drop")), max_size=12),
)
def test_what_comes_is_told_as_by_operators(
    event_time: bool, retain_ms: int, queries: list[str], course: list[Any]
) -> None:
    feds = [Fed(event_time, retain_ms, is_plain) for is_plain in (True, False)]
    standing: list[str] = []

    def register(sql: str, clock_ms: int) -> None:
        standing.append(f"q{len(standing)}_{clock_ms}")
        for fed in feds:
            assert not fed.engine.register(standing[-1], sql, clock_ms).failed
            fed.engine.follow(standing[-1])

    for sql in queries:
        register(sql, 1)
    clock_ms = 10
    for place, what in enumerate(course):
        clock_ms += 3 + place % 3
        if what is None:
            told = [fed.beat(clock_ms) for fed in feds]
        elif what == "drop":
            if len(standing) > 1:
                gone = standing.pop(0)
                for fed in feds:
                    fed.engine.unregister(gone, clock_ms)
            continue
        elif isinstance(what, str):
            register(what, clock_ms)
            continue
        else:
            rows = [(clock_ms - 5 + at, v, name) for at, v, name in sorted(what, key=lambda one: one[0])]
            told = [fed.put(rows, clock_ms) for fed in feds]
        assert told[0] == told[1]


@pytest.mark.parametrize("retain_ms", [50, 100_000])
def test_thousands_of_rows_with_ever_new_strings(retain_ms: int) -> None:
    """Rows are counted as operators count those that they pass on."""
    feds = [Fed(True, retain_ms, is_plain) for is_plain in (True, False)]
    for fed in feds:
        fed.engine.register("q", "SELECT name, id FROM s WHERE v > 1 EMIT CHANGES", 1)
    told, clock_ms = 0, 10
    for turn in range(6):
        clock_ms += 1_000
        rows = [(clock_ms + n // 7, n % 5, f"{turn}/{n}") for n in range(3_000)]
        mine, theirs = (fed.put(rows, clock_ms) for fed in feds)
        assert mine == theirs
        told += sum(len(one[3]) for one in mine)
    assert told > 10_000
    assert told_by(feds[0]) == 1
    assert told_by(feds[1]) == 0
    assert feds[0].usage()[-1] == (told, told)


def test_only_rows_that_come_alone_are_told_so() -> None:
    for sql in QUERIES:
        fed = Fed(True, 1_000, True)
        fed.engine.register("q", sql, 1)
        fed.engine.follow("q")
        fed.put([(20, 3, None), (25, 3, "a"), (40, 1, None)], 50)
        fed.put([(60, 3, None)], 60)
        assert told_by(fed) == 1, sql
    for sql in OTHERS:
        fed = Fed(True, 1_000, True)
        fed.engine.register("q", QUERIES[0], 1)
        fed.engine.register("p", sql, 1)
        fed.engine.follow("p")
        fed.put([(20, 3, None), (40, 1, None)], 50)
        assert told_by(fed) == 0, sql


def test_many_selections_are_told_together() -> None:
    fed = Fed(True, 1_000, True)
    for number in range(arrivals.MOST + 1):
        fed.engine.register(
            f"q{number}", f"SELECT id, v + {number} AS w FROM s WHERE v > {number} EMIT CHANGES", 1
        )
    fed.put([(20, 3, None), (40, 9, None)], 50)
    assert told_by(fed) == 0


def test_operators_tell_where_it_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is lost, and nobody ends."""
    fed, failed = Fed(True, 1_000, True), []

    def fails(self: Arrival, *_: object) -> None:
        failed.append(self)
        raise RuntimeError("defect")

    fed.engine.register("q", QUERIES[0], 1)
    monkeypatch.setattr(Arrival, "told", fails)
    fed.put([(20, 3, None)], 50)
    (told,) = fed.put([(25, 3, "a"), (40, 1, None), (50, 1, None)], 60)
    assert told[4] == [20, 25, 40]
    assert failed


def test_where_operators_are_measured_they_tell() -> None:
    """One in some transitions goes through the operators; what is told is the same all along."""
    clock = iter(range(0, 10**9, 1_000))
    measured = Fed(True, 30, True, Engine(clock=lambda: next(clock)))
    plain = Fed(True, 30, True)
    for fed in (measured, plain):
        fed.engine.register("q", QUERIES[2], 1)
    for turn in range(20):
        rows = [(10 * turn + n, n % 4, "ab" if n % 3 else None) for n in range(8)]
        assert measured.put(rows, 10 * turn + 10) == plain.put(rows, 10 * turn + 10)
    (_, graph) = next(iter(measured.engine._following.graphs.by_set.items()))
    assert isinstance(graph, Graph)
    assert all(node.usage.cpu_ns > 0 for node in graph.nodes.by_key.values())
