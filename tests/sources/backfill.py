"""Data and helpers that ``backfill_test.py`` shares with other tests."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from engine.engine import Engine
from engine.model.batch import Batch
from engine.model.step import Position, Register, Registration, Step
from tests.engine.feed import Row


def history(engine: Engine, *rows: Row, first_offset: int = 0) -> Batch:
    stamps = [row[0] for row in rows]
    table = pa.table(
        {
            "k": pa.array([row[1] for row in rows], pa.string()),
            "v": pa.array([row[2] for row in rows], pa.float64()),
            "ts": pa.array(stamps, pa.timestamp("ms")),
        }
    )
    offsets = np.arange(first_offset, first_offset + len(rows))
    schema = engine.catalogue["s"].schema
    return Batch.from_arrow(schema, table, np.zeros(len(rows)), offsets, stamps)


def maintained(engine: Engine, query_id: str, sql: str, mode: str) -> None:
    body = Register((Registration(query_id, sql, options={"maintenance": mode}),))
    engine.enqueue(Step(Position(0, engine.position.sequence + 1), 0, body))
    (result,) = engine.run()
    assert not result.failed
