"""Rows as stored: one Arrow IPC stream with one record batch, buffers compressed by lz4.

    | partition int32 | offset int64 | timestamp int64 | declared columns in order ... |

Columns are read by place, never by name, so that a declared column may have any name. STRING is dictionary
encoded, with only those strings that the rows use. Cost: O(rows + strings in the batch's dictionaries).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from engine.model.batch import Batch, Column
from engine.model.source import Schema
from engine.model.types import Kind
from storage.frames import corrupt, rows_of, unwrap, wrap

VERSION = 1

_BESIDE = (("partition", np.int32), ("offset", np.int64), ("timestamp", np.int64))
_OPTIONS = pa.ipc.IpcWriteOptions(compression="lz4", use_threads=False)


def encode(rows: Batch) -> bytes:
    """A batch as a stored value."""
    beside = [pa.array(rows.partition), pa.array(rows.offset), pa.array(rows.timestamp)]
    arrays = beside + [_to_arrow(column) for column in rows.columns]
    names = [name for name, _ in _BESIDE] + [field.name for field in rows.schema]
    sink = pa.BufferOutputStream()
    record_batch = pa.RecordBatch.from_arrays(arrays, names=names)
    with pa.ipc.new_stream(sink, record_batch.schema, options=_OPTIONS) as writer:
        writer.write_batch(record_batch)
    return wrap(VERSION, memoryview(sink.getvalue()), rows=len(rows))


def decode(value: bytes, schema: Schema, key: str) -> Batch:
    """The batch that ``encode`` got; codes of strings may differ, the strings do not.

    Raises StoreVersionUnknown, and StoreCorrupt where value and schema do not fit each other.
    """
    payload = unwrap(value, VERSION, key)
    try:
        with pa.ipc.open_stream(pa.py_buffer(payload)) as reader:
            record_batch = reader.read_next_batch()
        if record_batch.num_columns != len(_BESIDE) + len(schema):
            raise corrupt(key, f"it has {record_batch.num_columns} columns")
        partition, offset, timestamp = (
            _aligned(record_batch.column(place).to_numpy().astype(dtype, copy=False, casting="safe"))
            for place, (_, dtype) in enumerate(_BESIDE)
        )
        columns = tuple(
            _from_arrow(field.type.kind, Column.from_arrow(field.type, record_batch.column(place)))
            for place, field in enumerate(schema, len(_BESIDE))
        )
    except (pa.ArrowException, TypeError, ValueError, StopIteration) as error:
        raise corrupt(key, str(error)) from error
    return Batch(schema, columns, partition, offset, timestamp)


def count(value: bytes, key: str) -> int:
    """The number of rows in a stored value, without decoding them."""
    return rows_of(value, VERSION, key)


def _to_arrow(column: Column) -> pa.Array:
    if column.type.kind is not Kind.STRING:
        return column.to_arrow()
    mask = None if column.valid is None else ~column.valid
    if mask is not None and len(mask):
        some = int(np.argmin(mask))  # what stands at NULL is not used
        column = replace(column, values=np.where(mask, column.values[some], column.values))
    column = column.with_used()
    return pa.DictionaryArray.from_arrays(pa.array(column.values, pa.int32(), mask=mask), column.dictionary)


def _from_arrow(kind: Kind, column: Column) -> Column:
    if column.values.dtype != column.type.dtype:
        raise TypeError(f"{kind.value} is stored as {column.values.dtype}")
    return Column(column.type, _aligned(column.values), column.valid, column.strings)


def _aligned(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Kernels are compiled for aligned arrays; buffers that lz4 could not shrink lie where the value does."""
    return values if values.flags.aligned else values.copy()
