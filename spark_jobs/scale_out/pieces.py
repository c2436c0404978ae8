"""Rows on their way between tasks: a batch as bytes, each string once, and back.

A piece is an Arrow IPC stream of one record batch: the columns of the stream's stored schema in their order,
named by number, then ``_partition``, ``_offset`` and ``_timestamp``. Cost: a copy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from engine.model.batch import Batch, Column
from engine.model.source import Stream
from engine.model.types import Kind


def to_piece(rows: Batch) -> bytes:
    """The rows as bytes."""
    columns = [_array(column) for column in rows.columns]
    columns += [pa.array(rows.partition), pa.array(rows.offset), pa.array(rows.timestamp)]
    names = [*map(str, range(len(rows.columns))), "_partition", "_offset", "_timestamp"]
    return _written(pa.RecordBatch.from_arrays(columns, names))


def read_piece(piece: bytes, stream: Stream) -> Batch:
    """The rows of a piece."""
    found = _read(piece)
    schema = stream.stored_schema
    partition, offset, timestamp = (found.column(name).to_numpy(zero_copy_only=False) for name in _PLACES)
    return Batch(
        schema,
        tuple(Column.from_arrow(f.type, found.column(place)) for place, f in enumerate(schema)),
        partition.astype(np.int32, copy=False),
        offset.astype(np.int64, copy=False),
        timestamp.astype(np.int64, copy=False),
    )


_PLACES = ("_partition", "_offset", "_timestamp")


def _array(column: Column) -> pa.Array:
    return column.text_array().dictionary_encode() if column.type.kind is Kind.STRING else column.to_arrow()


@dataclass(frozen=True, slots=True)
class RawRecord:
    """A record that is, or may turn out to be, a letter. row: its place among the piece's rows, -1: none.

    reason: why it gave no row, None where it did.
    """

    row: int
    reason: str | None
    offset: int
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]


_HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
_RAW = pa.schema(
    [
        ("row", pa.int64()),
        ("reason", pa.string()),
        ("offset", pa.int64()),
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("headers", _HEADERS),
    ]
)


def to_letters(records: Sequence[RawRecord]) -> bytes | None:
    """Records as bytes, None of none."""
    if not records:
        return None
    rows = [
        {
            "row": one.row,
            "reason": one.reason,
            "offset": one.offset,
            "key": one.key,
            "value": one.value,
            "headers": [{"key": name, "value": value} for name, value in one.headers],
        }
        for one in records
    ]
    return _written(pa.RecordBatch.from_pylist(rows, _RAW))


def read_letters(data: bytes | None) -> list[RawRecord]:
    """The inverse."""
    if data is None:
        return []
    return [
        RawRecord(
            one["row"],
            one["reason"],
            one["offset"],
            one["key"],
            one["value"],
            [(header["key"], header["value"]) for header in one["headers"]],
        )
        for one in _read(data).to_pylist()
    ]


def _written(batch: pa.RecordBatch) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue().to_pybytes())


def _read(data: bytes) -> pa.RecordBatch:
    with pa.ipc.open_stream(pa.py_buffer(data)) as reader:
        return reader.read_next_batch()
