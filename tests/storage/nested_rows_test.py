"""Rows with nested values come back from the store and from the archive."""

from __future__ import annotations

import json

import numpy as np
import pytest

from engine.language.query import CreateStream
from engine.language.statements import parse
from engine.model.batch import Batch
from engine.model.limits import Limits
from engine.model.source import Stream
from storage import row_codec
from storage.archive import rows
from topics.codec import decode

TEXT = """CREATE STREAM s (id BIGINT, j JSON, a ARRAY<STRUCT<x INT, t TIMESTAMP>>, m MAP<STRING, DOUBLE>,
    u UUID, b BYTES, n STRING PATH '$.j.n')"""
RECORDS = [
    {"id": 1, "j": {"n": "x", "l": [1, 2.5]}, "a": [{"x": 1, "t": 0}, None], "m": {"k": 1}, "b": "aGk="},
    {"id": 2, "u": "550E8400-e29b-41d4-a716-446655440000", "a": [], "m": {}, "b": ""},
    {"id": 3},
]


@pytest.fixture
def stream() -> Stream:
    created = parse(TEXT, {}, Limits())
    assert isinstance(created, CreateStream)
    return created.stream


@pytest.fixture
def batch(stream: Stream) -> Batch:
    values = [json.dumps(one).encode() for one in RECORDS]
    decoded = decode(stream, values, np.zeros(3), np.arange(3), np.full(3, 7))
    assert not decoded.bad
    return decoded.batch


def test_rows_of_the_store(stream: Stream, batch: Batch) -> None:
    again = row_codec.decode(row_codec.encode(batch), stream.stored_schema, "key")
    assert again.to_arrow().equals(batch.to_arrow())


def test_rows_of_the_archive(stream: Stream, batch: Batch) -> None:
    again = rows.to_batch(stream, rows.to_table(stream, batch))
    assert again.to_arrow().equals(batch.to_arrow())
