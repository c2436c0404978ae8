"""Rows of a stream as the archive has them, and back: a batch of the engine and an Arrow table.

Both ways keep every value: NaN, both zeros, NULL, all of the calendar. Cost: O(rows), no loop over them.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from engine.model.batch import Batch, Column
from engine.model.source import DAY_MS, HOUR_MS, Stream
from engine.model.source import DELETED as DELETED_FIELD
from engine.model.types import Kind, Type
from storage.archive import layout


def to_table(stream: Stream, batch: Batch) -> pa.Table:
    """Rows of ``stream.stored_schema`` with the columns of :func:`layout.stream_schema`."""
    schema = layout.stream_schema(stream)
    columns: list[pa.Array] = [
        pa.array(batch.partition),
        pa.array(batch.offset),
        pa.array(batch.timestamp),
        pa.array((batch.timestamp // DAY_MS).astype(np.int32)).view(pa.date32()),
        pa.array((batch.timestamp % DAY_MS // HOUR_MS).astype(np.int32)),
    ]
    declared = [
        column.to_arrow() if column.type.logical is None else column.text_array() for column in batch.columns
    ]
    if stream.is_table:
        columns.append(declared.pop())
    columns += [
        array.cast(layout.INSTANT) if field.type.kind is Kind.TIMESTAMP else array
        for field, array in zip(stream.schema, declared, strict=True)
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def to_batch(stream: Stream, rows: pa.Table) -> Batch:
    """The batch of rows that have the columns of :func:`layout.stream_schema`; one that they lack is NULL."""
    columns = [_column(rows, layout.column_name(one.name), one.type) for one in stream.schema]
    if stream.is_table:
        marks = rows.column(layout.DELETED).combine_chunks().fill_null(False)
        columns.append(Column.from_arrow(DELETED_FIELD.type, marks))
    return Batch(
        stream.stored_schema,
        tuple(columns),
        rows.column(layout.PARTITION).to_numpy().astype(np.int32, copy=False),
        rows.column(layout.OFFSET).to_numpy().astype(np.int64, copy=False),
        rows.column(layout.TIMESTAMP).to_numpy().astype(np.int64, copy=False),
    )


def _column(rows: pa.Table, name: str, type_: Type) -> Column:
    if name not in rows.column_names:
        return Column.from_arrow(type_, pa.nulls(rows.num_rows, layout.column_type(type_)))
    array = rows.column(name).combine_chunks()
    if type_.kind is Kind.TIMESTAMP:
        array = array.cast(pa.timestamp("ms", "UTC"), safe=False).cast(type_.arrow)
    return Column.from_arrow(type_, array)
