"""One stream whose NOW a test moves by the millisecond: rows at chosen instants, then heartbeats."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from engine.model.answer import Answer
from engine.model.batch import Batch
from engine.model.source import SourceName
from engine.model.step import Heartbeat, Position, Step, StepResult
from tests.capacities import small_engine

IDLE_MS = 1_000
TIMED = "timestamp = 'ts', idle_advances = true, idle_timeout = '1 second'"

Row = tuple[int, str | None, float | None]
"""ts, k, v."""


class Feed:
    """A stream ``s (k STRING, v DOUBLE, ts TIMESTAMP)`` in event time without lateness.

    Its clock stands 10**6 ms above the rows' time at first and moves only by what a test asks for.
    """

    def __init__(self, *sqls: str, retain: str = "100 DAYS", options: str = "") -> None:
        self.engine = small_engine()
        with_ = TIMED + options
        self.engine.create(
            f"CREATE STREAM s (k STRING, v DOUBLE, ts TIMESTAMP) WITH ({with_}) RETAIN {retain}"
        )
        self.clock_ms = 10**6
        self.told: list[StepResult] = []
        """What each step of rows or of the clock gave."""
        self._offset = 0
        self._idle = False
        for place, sql in enumerate(sqls):
            self.engine.register(f"q{place}", sql)

    def put(self, *rows: Row) -> StepResult:
        """One step of these rows."""
        stamps = [row[0] for row in rows]
        table = pa.table(
            {
                "k": pa.array([row[1] for row in rows], pa.string()),
                "v": pa.array([row[2] for row in rows], pa.float64()),
                "ts": pa.array(stamps, pa.timestamp("ms")),
            }
        )
        offsets = np.arange(self._offset, self._offset + len(rows))
        self._offset += len(rows)
        self._idle = False
        schema = self.engine.catalogue["s"].schema
        batch = Batch.from_arrow(schema, table, np.zeros(len(rows)), offsets, stamps)
        self.told.append(self.engine.ingest("s", batch, self.clock_ms))
        return self.told[-1]

    def now(self, now_ms: int) -> None:
        """NOW moves here by heartbeat alone; at least the largest timestamp put."""
        if not self._idle:
            self.clock_ms += IDLE_MS
            self._beat()
            self._idle = True
        ahead = now_ms - self.now_ms()
        assert ahead >= 0
        self.clock_ms += ahead
        self._beat()
        assert self.now_ms() == now_ms

    def now_ms(self) -> int:
        (source,) = self.engine.view().sources()
        assert source.now_ms is not None
        return source.now_ms

    def _beat(self) -> None:
        position = Position(0, self.engine.position.sequence + 1)
        self.engine.enqueue(Step(position, self.clock_ms, Heartbeat(SourceName("s"))))
        self.told += self.engine.run()

    def answer(self, query_id: str = "q0", at_ms: int | None = None) -> Answer:
        return self.engine.view().snapshot(query_id, at=at_ms)

    def rows(self, query_id: str = "q0", at_ms: int | None = None) -> list[tuple[Any, ...]]:
        """The answer's rows; instants in ms since 1970."""
        table = self.answer(query_id, at_ms).table
        return list(zip(*(plain(column) for column in table.columns), strict=True))

    def values(self, query_id: str = "q0", at_ms: int | None = None) -> list[Any]:
        """The answer's first column."""
        return plain(self.answer(query_id, at_ms).table.column(0))


def plain(column: pa.ChunkedArray) -> list[Any]:
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.int64())
    values: list[Any] = column.to_pylist()
    return values


def ticks(stamps: Sequence[int], key: str | None = "a") -> list[Row]:
    """Rows whose value is their timestamp."""
    return [(stamp, key, float(stamp)) for stamp in stamps]
