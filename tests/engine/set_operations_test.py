"""Set operations in an engine: of streams and tables, at NOW and before, kept in any way."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from engine.engine import Engine
from engine.model.batch import versions
from engine.model.maintenance import MODES
from engine.model.source import Stream
from engine.model.step import Position, Register, Registration, Step
from tests.capacities import small_engine
from tests.strategies import batch_of

AT = "at TIMESTAMP NOT NULL) WITH (timestamp = 'at')"
SOURCES = (
    f"CREATE STREAM s (k BIGINT, v DOUBLE, {AT}",
    f"CREATE STREAM u (k BIGINT, n INTEGER, {AT}",
    f"CREATE TABLE t (k BIGINT PRIMARY KEY, n INTEGER, {AT}",
)
S = [
    (0, 0, 10, (1, 0.5)),
    (0, 1, 20, (1, None)),
    (1, 0, 20, (2, 2.0)),
    (0, 2, 40, (1, 3.0)),
    (0, 3, 50, (3, 0.0)),
]
U = [(0, 0, 15, (1, 1)), (0, 1, 20, (4, 2)), (0, 2, 45, (2, 0)), (0, 3, 50, (1, 0))]
T = [(0, 0, 5, (1, 1)), (0, 1, 30, (2, 9)), (0, 2, 50, (3, 3))]
LAST = 99


def engine_with(texts: dict[str, str], mode: str = "lazy") -> Engine:
    engine = small_engine()
    for sql in SOURCES:
        engine.create(sql)
    last = engine.position
    registrations = tuple(
        Registration(name, sql, options={"maintenance": mode}) for name, sql in texts.items()
    )
    engine.enqueue(Step(Position(last.epoch, last.sequence + 1), 0, Register(registrations)))
    (result,) = engine.run()
    assert not result.failed
    for name, rows in (("t", T), ("s", S), ("u", U)):
        stream = engine.catalogue[name]
        assert isinstance(stream, Stream)
        placed = [(p, o, at, (*values, at)) for p, o, at, values in rows]
        placed += [(p, 9, LAST, (9, None, LAST)) for p in {p for p, *_ in rows}]
        batch = batch_of(stream.schema, placed)
        engine.ingest(
            name, versions(stream, batch, np.zeros(len(batch), np.bool_)) if name == "t" else batch, 1_000
        )
    return engine


def rows(engine: Engine, name: str, at_ms: int | None = None) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in engine.view().snapshot(name, at=at_ms).table.to_pylist()]


@pytest.mark.parametrize("mode", MODES)
def test_answers_at_now_and_before(mode: str) -> None:
    texts = {
        "merged": "SELECT k FROM s UNION ALL SELECT k FROM u",
        "itself": """SELECT k FROM s WHERE k = 1 UNION ALL SELECT n FROM u WHERE n = 1
        UNION ALL SELECT k FROM s""",
        "behind": "SELECT k FROM s UNION ALL SELECT k FROM t",
        "groups": "SELECT k, COUNT(*) AS c FROM s GROUP BY k UNION ALL SELECT k, n FROM u",
        "bags": "SELECT k FROM s EXCEPT ALL SELECT k FROM u",
        "whole": "SELECT k, v FROM s EXCEPT ALL ON (k) SELECT k FROM u",
        "both": "SELECT k FROM s INTERSECT ALL SELECT k FROM u",
        "table": "SELECT k, n FROM t EXCEPT SELECT k, n FROM u",
        "first": "SELECT k FROM s UNION ALL SELECT k FROM u LIMIT 3",
        "recent": "SELECT k FROM s [RANGE 30 MILLISECONDS] EXCEPT SELECT k FROM u [RANGE 30 MILLISECONDS]",
    }
    engine = engine_with(texts, mode)
    at = {name: rows(engine, name, 50) for name in texts}
    assert at["merged"] == [(1,), (1,), (1,), (4,), (2,), (1,), (2,), (3,), (1,)]
    assert at["itself"] == [(1,), (1,), (1,), (1,), (1,), (2,), (1,), (1,), (3,)]
    assert at["behind"] == [(1,), (1,), (2,), (1,), (3,), (1,), (2,), (3,)]
    assert at["groups"] == [(1, 3), (2, 1), (3, 1), (1, 1), (4, 2), (2, 0), (1, 0)]
    assert at["bags"] == [(1,), (3,)]
    assert at["whole"] == [(1, 3.0), (3, 0.0)]
    assert at["both"] == [(1,), (1,), (2,)]
    assert at["table"] == [(2, 9), (3, 3)]
    assert at["first"] == [(1,), (1,), (1,)]
    assert at["recent"] == [(3,)]
    assert rows(engine, "whole", 44) == [(1, None), (2, 2.0), (1, 3.0)]
    assert rows(engine, "whole", 19) == []
    assert rows(engine, "recent", 44) == [(2,)]
    assert rows(engine, "merged") == at["merged"]


def test_a_row_whose_compared_column_is_an_error_is_out_and_counted() -> None:
    half = "SELECT 1 / CAST(v AS BIGINT) AS x FROM s"
    texts = {
        "compared": f"{half} EXCEPT ALL SELECT n FROM u WHERE n = 9",
        "right": "SELECT CAST(NULL AS BIGINT) AS x FROM u EXCEPT SELECT 6 / n FROM u",
        "together": f"{half} UNION ALL SELECT n FROM u WHERE n = 9",
        "on": "SELECT k, 1 / CAST(v AS BIGINT) AS x FROM s EXCEPT ALL ON (k) SELECT k FROM u",
    }
    engine = engine_with(texts)
    view = engine.view()
    listed = {one.query_id: one.predicate_errors for one in view.queries()}
    assert rows(engine, "compared", 50) == [(None,), (0,), (0,)]
    assert rows(engine, "right", 50) == [(None,)]
    assert rows(engine, "together", 50) == [(None,), (None,), (0,), (0,), (None,)]
    assert view.snapshot("together", at=50).errors == 2
    assert view.snapshot("compared", at=50).errors == 0
    assert listed["compared"] == 2
    assert listed["right"] == 2
    assert listed["on"] == 0


def test_a_plan_tells_both_sides() -> None:
    engine = engine_with({})
    plan = engine.explain(sql="SELECT k FROM s [RANGE 5 SECONDS] UNION SELECT k FROM u [RANGE 5 SECONDS]")
    assert [step.operator for step in plan.steps] == ["scan s", "project", "union all", "distinct"]
    assert [step.pattern for step in plan.steps] == ["WKS", "WKS", "WKS", "WK"]
    timed = engine.explain(sql="SELECT k FROM s EXCEPT ALL SELECT k FROM u", timer=lambda: 0)
    assert [step.actual_rows for step in timed.steps] == [5, 5, 2]
