"""Summaries of columns of every type, in every kind that the language lets them have: with time for all, the
queries that use them give their exact answers.
"""

from __future__ import annotations

from collections import Counter
from datetime import date, datetime
from decimal import Decimal
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from engine.engine import Engine
from engine.model.batch import Batch
from engine.model.source import SourceName
from engine.model.step import Heartbeat, Records
from tests.capacities import small_engine
from tests.queries.preferring import ALL
from tureen.errors import TypeMismatch

VALUES: dict[str, list[Any]] = {
    "BOOLEAN": [True, False, None],
    "INTEGER": [1, 2, None, -5, 2**31 - 1],
    "BIGINT": [1, 2, None, 2**62, -(2**63)],
    "DOUBLE": [1.0, None, float("nan"), float("inf"), -0.0, 0.0],
    "DECIMAL(10, 2)": [Decimal("1.25"), None, Decimal("-7.00"), Decimal("1.25")],
    "STRING": ["a", "", "é", None, "a" * 300],
    "DATE": [date(2020, 1, 1), None, date(1960, 1, 1)],
    "TIMESTAMP": [datetime(2020, 1, 1), None, datetime(1960, 1, 1)],
}
REFUSED = {("BOOLEAN", "range"), ("BOOLEAN", "histogram"), ("STRING", "histogram")}
NAMES = dict(zip("abcdefgh", VALUES, strict=True))
SELECTION = "SELECT {0}, n FROM s {1} WHERE n > 3"
JOIN = "SELECT a.n, b.n AS m FROM s {1} a JOIN s {1} b ON a.{0} = b.{0}"
OPTIONS = "WITH (timestamp = 'ts') RETAIN 1 HOUR"
SUMMARY = (
    "CREATE SUMMARY {} ON s ({}) WITH GRANULARITY 1 SECOND AND COLLAPSE(2, 3) SETTINGS "
    "(kind = '{}', bucket_function = '{}', buckets = 4, sketch_width = 8, zone_rows_min = 2)"
)
EXACT = "[RANGE 3 SECONDS]"


def bring(engine: Engine, first: int, count: int) -> None:
    schema, columns = engine.catalogue["s"].schema, {}
    for name, type_ in NAMES.items():
        values = [VALUES[type_][at % len(VALUES[type_])] for at in range(first, first + count)]
        columns[name] = pa.array(values, schema.fields[len(columns)].type.arrow, from_pandas=False)
    stamps = [40 * at for at in range(first, first + count)]
    columns["n"] = pa.array(range(first, first + count), pa.int32())
    columns["ts"] = pa.array(stamps, pa.timestamp("ms"))
    offsets = first + np.arange(count)
    batch = Batch.from_arrow(schema, pa.table(columns), np.zeros(count, np.int64), offsets, stamps)
    engine._now(Records(SourceName("s"), batch, {}, grant=50), 0)


def rows(engine: Engine, query_id: str) -> Counter[tuple[str, ...]]:
    table = engine.view().snapshot(query_id).table
    return Counter(zip(*(map(repr, column.to_pylist()) for column in table.columns), strict=True))


@pytest.mark.parametrize("kind", ["count_sketch", "histogram"])
def test_columns_of_every_type_are_summarised(kind: str) -> None:
    engine = small_engine()
    declared = ", ".join(f"{name} {type_}" for name, type_ in NAMES.items())
    engine.create(f"CREATE STREAM s ({declared}, n INTEGER, ts TIMESTAMP NOT NULL) {OPTIONS}")
    asked: list[tuple[str, str]] = []
    for (name, type_), buckets in product(NAMES.items(), ("hash", "range")):
        sql = SUMMARY.format(f"{name}_{buckets}", name, kind, buckets)
        if not REFUSED.isdisjoint({(type_, kind), (type_, buckets)}):
            with pytest.raises(TypeMismatch):
                engine.create(sql)
            continue
        engine.create(sql)
        estimate = f"{name}_{buckets}.Estimate.Count"
        for text, priorities in (
            (SELECTION, f"{estimate}({name})"),
            (JOIN, f"{estimate}(a.{name}), {estimate}(b.{name})"),
        ):
            query_id, exact = f"q{len(asked)}", text.format(name, EXACT)
            engine.register(
                query_id, f"{text.format(name, '')} WITH PREFERENCE {priorities} WINDOW 3 SECONDS"
            )
            if exact not in [other for _, other in asked]:
                engine.register(exact, exact)
            asked.append((query_id, exact))
    for first in (0, 30, 60):
        bring(engine, first, 30)
    engine._now(Heartbeat(SourceName("s"), grant=ALL), 0)
    for query_id, exact in asked:
        assert rows(engine, query_id) == rows(engine, exact), exact
    assert len(asked) >= 24
