"""Data and helpers that ``steps_test.py`` shares with other tests."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from engine.engine import Engine
from engine.model.batch import Batch
from engine.model.limits import Limits
from tests.capacities import small_engine

CREATE = "CREATE STREAM s (v INTEGER, ts TIMESTAMP) WITH (timestamp = 'ts', idle_timeout = '1 second')"


def engine_with(*sqls: str, limits: Limits | None = None) -> Engine:
    engine = small_engine(limits)
    engine.create(CREATE)
    for i, sql in enumerate(sqls):
        engine.register(f"q{i}", sql)
    return engine


def rows(engine: Engine, first_offset: int, *pairs: tuple[int, int], partition: int = 0) -> Batch:
    values, stamps = zip(*pairs, strict=True) if pairs else ((), ())
    table = pa.table({"v": pa.array(values, pa.int32()), "ts": pa.array(stamps, pa.timestamp("ms"))})
    n = len(pairs)
    return Batch.from_arrow(
        engine.catalogue["s"].schema,
        table,
        np.full(n, partition),
        np.arange(first_offset, first_offset + n),
        stamps,
    )


def values(engine: Engine, query_id: str = "q0") -> list[int]:
    return engine.view().snapshot(query_id).table.column("v").to_pylist()
