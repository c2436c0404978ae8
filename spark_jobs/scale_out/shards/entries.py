"""Entries in one file of a checkpoint: an Arrow IPC stream with a header.

The header is a JSON object in the schema's metadata. An entry has a kind, a name, a number, and a value with
a version and a checksum of its own (:mod:`storage.frames`). Cost: O(bytes).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import orjson
import pyarrow as pa

from spark_jobs.errors import CheckpointUnreadable

VERSION = 1
CHUNK_BYTES = 16 << 20
_HEADER = b"tureen"
_SCHEMA = pa.schema(
    [("kind", pa.string()), ("name", pa.string()), ("number", pa.int64()), ("value", pa.large_binary())]
)


class StoredEntry(NamedTuple):
    """One thing that is stored."""

    kind: str
    name: str
    number: int
    value: bytes


def encode_entries(header: Mapping[str, Any], entries: Iterable[StoredEntry]) -> bytes:
    """A file."""
    schema = _SCHEMA.with_metadata({_HEADER: orjson.dumps({"v": VERSION, **header})})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as writer:
        for chunk in _chunks(entries):
            columns = zip(*chunk, strict=True)
            arrays = [pa.array(one, field.type) for one, field in zip(columns, schema, strict=True)]
            writer.write_batch(pa.record_batch(arrays, schema=schema))
    return bytes(sink.getvalue())


def decode_entries(data: bytes, named: str) -> tuple[dict[str, Any], list[StoredEntry]]:
    """(header, entries). named: the file. Raises CheckpointUnreadable: of another version, or damaged."""
    try:
        with pa.ipc.open_stream(pa.py_buffer(data)) as reader:
            header = orjson.loads((reader.schema.metadata or {})[_HEADER])
            version = header["v"]
            found = list(_entries(reader)) if version == VERSION else []
    except (pa.ArrowException, OSError, ValueError, TypeError, KeyError) as error:
        raise CheckpointUnreadable(named, f"it is damaged: {error}", hint=BEGIN_ANEW) from error
    if version != VERSION:
        raise CheckpointUnreadable(
            named,
            f"it is of version {version}, this program reads version {VERSION}",
            hint="run the version that wrote it, or start with an empty directory",
        )
    return header, found


BEGIN_ANEW = "restore it from a copy, or start with an empty directory"


def _chunks(entries: Iterable[StoredEntry]) -> Iterator[list[StoredEntry]]:
    chunk: list[StoredEntry] = []
    size = 0
    for entry in entries:
        chunk.append(entry)
        size += len(entry.value)
        if size > CHUNK_BYTES:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk


def _entries(reader: pa.RecordBatchStreamReader) -> Iterator[StoredEntry]:
    for batch in reader:
        columns = [column.to_pylist() for column in batch.columns]
        yield from (StoredEntry(*values) for values in zip(*columns, strict=True))
