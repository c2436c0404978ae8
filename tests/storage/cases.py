"""Rows, sources and queries for the store's tests: small, with every type and the names that break things."""

from __future__ import annotations

import string
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from engine.model.batch import Batch, Column
from engine.model.constraint import Clustered, Ordered
from engine.model.persistence import PartitionClock, QueryState, SourceState
from engine.model.source import Field, Schema, SourceName, Stream
from engine.model.step import Position, Registration
from engine.model.types import BIGINT, BOOLEAN, DATE, DOUBLE, INTEGER, STRING, TIMESTAMP, Kind, Type, decimal
from storage.store import Store

INT64 = st.integers(-(2**63), 2**63 - 1)
TYPES = (BOOLEAN, INTEGER, BIGINT, DOUBLE, STRING, DATE, TIMESTAMP, decimal(18, 3), decimal(1, 0))
NAMES = st.sampled_from(
    ["s", "S", "t\x00t", "", "partition", "offset", "$", "ü", "\x01", "s\x00\x01", "s\xff"]
)


def values(type_: Type) -> st.SearchStrategy[Any]:
    """What stands in ``Column.values``; for STRING the string itself."""
    if type_.kind is Kind.BOOLEAN:
        return st.booleans()
    if type_.kind is Kind.DOUBLE:
        return st.floats()
    if type_.kind is Kind.STRING:
        return st.sampled_from(["", "a", "ab", "日本", "\x00", "long " * 50]) | st.text(max_size=3)
    if type_.kind is Kind.DECIMAL:
        return st.integers(-(10**type_.precision) + 1, 10**type_.precision - 1)
    bits = 8 * type_.dtype.itemsize
    return st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


@st.composite
def schemas(draw: st.DrawFn) -> Schema:
    names = draw(st.lists(NAMES | st.text(string.ascii_lowercase, max_size=3), unique=True, max_size=4))
    return Schema(tuple(Field(name, draw(st.sampled_from(TYPES)), draw(st.booleans())) for name in names))


@st.composite
def batches(draw: st.DrawFn, schema: Schema, rows_min: int = 1, rows_max: int = 20) -> Batch:
    """Rows with NULLs, and strings whose dictionary holds values that no row uses."""
    n = draw(st.integers(rows_min, rows_max))
    columns = []
    for field in schema:
        drawn = draw(st.lists(values(field.type), min_size=n, max_size=n))
        valid = draw(st.none() | st.lists(st.booleans(), min_size=n, max_size=n))
        spare = draw(st.lists(values(field.type), max_size=5)) if field.type.kind is Kind.STRING else []
        columns.append(column(field.type, drawn, valid, spare))
    timestamps = draw(st.lists(INT64, min_size=n, max_size=n))
    return Batch(
        schema,
        tuple(columns),
        np.array(draw(st.lists(st.integers(0, 2**31 - 1), min_size=n, max_size=n)), np.int32),
        np.array(draw(st.lists(INT64, min_size=n, max_size=n)), np.int64),
        np.array(timestamps, np.int64),
    )


def column(
    type_: Type, drawn: Sequence[Any], valid: Sequence[bool] | None = None, spare: Sequence[str] = ()
) -> Column:
    mask = None if valid is None else np.array(valid, np.bool_)
    if type_.kind is not Kind.STRING:
        return Column(type_, np.array(drawn, type_.dtype), mask)
    distinct = list(dict.fromkeys([*spare, *drawn]))
    codes = np.array([distinct.index(value) for value in drawn], np.int32)
    return Column(type_, codes, mask, pa.array(distinct, pa.string()))


def plain(batch: Batch) -> list[tuple[Any, ...]]:
    """Rows as Python values that compare as stored: NaN equals NaN, -0.0 is not 0.0, NULL is None."""
    columns = [batch.partition.tolist(), batch.offset.tolist(), batch.timestamp.tolist()]
    for one in batch.columns:
        cells: list[Any] = one.values.tolist()
        if one.dictionary is not None:
            strings = one.dictionary.to_pylist() or [None]
            cells = [strings[code] for code in cells]
        if one.type.kind is Kind.DOUBLE:
            cells = [repr(cell) for cell in cells]
        if one.valid is not None:
            cells = [cell if ok else None for cell, ok in zip(cells, one.valid.tolist(), strict=True)]
        columns.append(cells)
    return list(zip(*columns, strict=True))


NUMBERED = Schema((Field("n", BIGINT), Field("s", STRING)))


def numbered(first: int, end: int) -> Batch:
    """Rows whose values tell their ordinals."""
    n = np.arange(first, end, dtype=np.int64)
    words = column(STRING, [f"row {i % 7}" for i in range(first, end)])
    return Batch(NUMBERED, (Column(BIGINT, n), words), np.zeros(len(n), np.int32), n + 1_000, n * 10)


def source_state(
    name: str = "s", schema: Schema = NUMBERED, base: int = 0, end: int = 0, **facts: Any
) -> SourceState:
    stream = Stream(
        name=SourceName(name),
        schema=schema,
        topic="topic of " + name,
        timestamp_column=None,
        constraints=(Ordered("n", 2), Clustered(("n", "words"), 0)),
    )
    known: dict[str, Any] = {
        "now_ms": None,
        "clock_ms": 17,
        "retained_from_ms": None,
        "late": 0,
        "rejected": 0,
        "partitions": {
            0: PartitionClock(None, None, 0),
            7: PartitionClock(None, 4, -1, -9),
            11: PartitionClock(-5, 3, 2**62),
        },
    }
    return SourceState(stream=stream, sql="CREATE STREAM ü", base=base, end=end, **(known | facts))


def query_state(query_id: str, sql: str = "SELECT * FROM s", errors: tuple[int, ...] = ()) -> QueryState:
    registration = Registration(query_id, sql, weight=0.1, options={"k": "v"})
    return QueryState(registration, Position(2, 3), errors)


def stored(store: Store, name: str = "s") -> list[tuple[int, list[tuple[Any, ...]]]]:
    """(first ordinal, rows) of every piece and segment."""
    return [(first, plain(rows)) for first, rows in store.rows(SourceName(name))]


def ordinals(store: Store, name: str = "s") -> list[tuple[int, int]]:
    """(first ordinal, end) of every piece and segment."""
    return [(first, first + len(rows)) for first, rows in store.rows(SourceName(name))]
