"""Workloads that others published: where they are, and an engine that has read them.

They lie beside the repository, or where ``TUREEN_WORKLOADS`` says.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from engine.engine import Engine
from engine.model.batch import Batch, versions
from engine.model.source import Schema, SourceName, Stream
from engine.model.step import Heartbeat, Position, Step, StepResult
from engine.model.types import Kind

BATCH_ROWS = 1_000
YEAR_MS = 366 * 86_400_000


def folder(name: str) -> Path:
    """The folder of a workload; the test is skipped where it is absent."""
    beside = Path(__file__).resolve().parents[3] / "shared" / "workloads"
    found = Path(os.environ.get("TUREEN_WORKLOADS", beside)) / name
    if not found.is_dir():
        pytest.skip(f"the workload {name} is not here; TUREEN_WORKLOADS names the folder it is in")
    return found


def texts(name: str) -> list[Path]:
    """Our own texts of a workload's queries."""
    return sorted((Path(__file__).parent / name).glob("*.sql"))


def lines(file: Path) -> list[dict[str, Any]]:
    """The objects of a file, one a line."""
    return [json.loads(line) for line in file.read_text().splitlines() if line]


def read(engine: Engine, stream: str, rows: Iterable[dict[str, Any]]) -> list[StepResult]:
    """Bring rows to a stream, a batch at a time, in the order of the file, from one partition."""
    results = []
    made = engine.catalogue[stream]
    schema = made.schema
    place = schema.index(made.timestamp_column or "")
    assert place is not None
    values = [[_value(schema, f.name, row.get(f.name)) for f in schema] for row in rows]
    clock = max(row[place] for row in values)
    for first in range(0, len(values), BATCH_ROWS):
        some = values[first : first + BATCH_ROWS]
        arrays = [
            pa.array([row[n] for row in some], pa.int64()).cast(f.type.arrow)
            if f.type.kind is Kind.TIMESTAMP
            else pa.array([row[n] for row in some], f.type.arrow)
            for n, f in enumerate(schema)
        ]
        table = pa.Table.from_arrays(arrays, schema=schema.arrow)
        offsets = np.arange(first, first + len(some))
        times = [row[place] for row in some]
        batch = Batch.from_arrow(schema, table, np.zeros(len(some)), offsets, times)
        results.append(engine.ingest(stream, versions(made, batch) if made.is_table else batch, clock))
    return results


def read_changes(engine: Engine, table: str, changes: Iterable[dict[str, Any]]) -> list[StepResult]:
    """Bring a change log in Debezium's form to a table: rows as they are after a change, or that are gone.

    Times are microseconds there.
    """
    made = engine.catalogue[table]
    assert isinstance(made, Stream)
    results = []
    for first, change in enumerate(changes):
        gone = change["after"] is None
        row = {name: change["before"][name] for name in made.key} if gone else change["after"]
        columns = []
        for f in made.schema:
            value = row.get(f.name)
            if f.type.kind is Kind.TIMESTAMP and value is not None:
                columns.append(pa.array([value // 1_000], pa.int64()).cast(f.type.arrow))
            else:
                columns.append(pa.array([value], f.type.arrow))
        written = pa.Table.from_arrays(columns, names=[f.name for f in made.schema])
        batch = Batch.from_arrow(made.schema, written, np.zeros(1), np.array([first]), [change["ts_ms"]])
        results.append(engine.ingest(table, versions(made, batch, np.array([gone])), change["ts_ms"]))
    return results + let_time_pass(engine, table)


def _value(schema: Schema, name: str, value: Any) -> Any:
    place = schema.index(name)
    assert place is not None
    if schema.fields[place].type.kind is Kind.TIMESTAMP and isinstance(value, str):
        moment = datetime.fromisoformat(value)
        moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        return round(moment.timestamp() * 1_000)
    return value


def let_time_pass(engine: Engine, stream: str) -> list[StepResult]:
    """So long that every partition falls idle and every window closes."""
    now_ms = next(source.now_ms for source in engine.view().sources() if source.name == stream)
    assert now_ms is not None
    first = engine.position
    for years in (1, 2):
        position = Position(first.epoch, first.sequence + years)
        engine.enqueue(Step(position, now_ms + years * YEAR_MS, Heartbeat(SourceName(stream))))
    return engine.run()


def answer(engine: Engine, sql: str) -> pa.Table:
    """The answer of a query that is registered now."""
    engine.register("q", sql)
    table = engine.view().snapshot("q").table
    engine.unregister("q")
    return table


def plain_row(row: dict[str, Any]) -> dict[str, Any]:
    """A row as it would stand in a file of JSON."""
    return {name: _plain(value) for name, value in row.items()}


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat(timespec="milliseconds").removesuffix(".000")
    return float(value) if isinstance(value, Decimal) else value
