"""What WITH says of how records are written: what is bound, and every refusal."""

from __future__ import annotations

from typing import Any

import pytest

from engine.language.query import CreateStream
from engine.language.statements import parse
from engine.model.limits import Limits
from engine.model.plain import stream_as_dict, stream_from_dict
from engine.model.record_format import USUAL, RecordFormat
from tureen.errors import QueryError

COLUMNS = "k STRING{key}, v STRING"


def bound(options: str, *, table: bool = False, columns: str = COLUMNS) -> CreateStream:
    what, key = ("TABLE", " PRIMARY KEY") if table else ("STREAM", "")
    statement: Any = parse(f"CREATE {what} s ({columns.format(key=key)}) WITH ({options})", {}, Limits())
    assert isinstance(statement, CreateStream)
    return statement


@pytest.mark.parametrize(
    ("options", "format_"),
    [
        ("topic = 's'", USUAL),
        ("format = 'JSON'", USUAL),
        ("format = 'csv'", RecordFormat("csv")),
        ("format = 'csv', delimiter = '|'", RecordFormat("csv", "|")),
        ("format = 'avro'", RecordFormat("avro")),
        ("format = 'avro', schema = 'x'", RecordFormat("avro", schema="x", framed=False)),
        ("format = 'avro', schema = 'x', framed = true", RecordFormat("avro", schema="x")),
        ("format = 'json-schema'", RecordFormat("json-schema")),
        ("format = 'protobuf'", RecordFormat("protobuf")),
        ("format = 'protobuf', schema = 'x'", RecordFormat("protobuf", schema="x", framed=False)),
        (
            "format = 'protobuf', schema = 'x', message = 'shop.Order'",
            RecordFormat("protobuf", schema="x", message="shop.Order", framed=False),
        ),
        ("format = 'debezium', changelog = true", RecordFormat("debezium", changelog=True)),
    ],
)
def test_formats(options: str, format_: RecordFormat) -> None:
    stream = bound(options).stream
    assert stream.format == format_
    assert stream_from_dict(stream_as_dict(stream)) == stream


def test_columns_that_tell_of_the_record_are_no_fields_of_a_line() -> None:
    columns = "v STRING, _offset BIGINT, _key BYTES, _headers MAP<STRING, STRING>, _timestamp TIMESTAMP"
    assert len(bound("format = 'raw'", columns=columns).stream.schema) == 5
    assert bound("topic = 's'", columns="_offset STRING PATH '$._offset'").stream.format == USUAL


def test_formats_of_tables() -> None:
    assert bound("format = 'debezium'", table=True).stream.format == RecordFormat("debezium")
    made = bound("format = 'csv', key_format = 'avro'", table=True).stream
    assert made.format == RecordFormat("csv", key="avro")
    assert made.format.has_framed_keys
    assert stream_from_dict(stream_as_dict(made)) == made
    assert bound("format = 'raw'", table=True).stream.format.value == "raw"


@pytest.mark.parametrize(
    ("options", "table", "columns", "message"),
    [
        ("format = 'xml'", False, COLUMNS, "not a value of format"),
        ("delimiter = ';'", False, COLUMNS, "delimiter has no meaning in the format json"),
        ("format = 'csv', delimiter = ';;'", False, COLUMNS, "not a value of delimiter"),
        ("format = 'csv', delimiter = 'é'", False, COLUMNS, "not a value of delimiter"),
        ("format = 'csv', schema = 'x'", False, COLUMNS, "schema has no meaning in the format csv"),
        ("format = 'avro', framed = false", False, COLUMNS, "read by one that is given"),
        ("format = 'avro', schema = 5", False, COLUMNS, "not a value of schema"),
        (
            "format = 'protobuf', framed = true",
            False,
            COLUMNS,
            "framed has no meaning",
        ),
        ("format = 'protobuf', schema = ''", False, COLUMNS, "not a value of schema"),
        ("format = 'protobuf', message = 'M'", False, COLUMNS, "say which of its messages they are"),
        ("format = 'protobuf', schema = 'x', message = ''", False, COLUMNS, "not a value of message"),
        ("format = 'avro', schema = 'x', message = 'M'", False, COLUMNS, "message has no meaning"),
        ("format = 'raw'", False, COLUMNS, "raw is one column"),
        ("format = 'raw'", False, "v JSON", "raw is one column"),
        ("format = 'csv'", False, "v STRING PATH '$.a.b'", "have no members"),
        ("format = 'csv'", True, "k STRING PRIMARY KEY", "at least one column"),
        ("format = 'debezium'", False, COLUMNS, "rows of a table, or of a stream of changes"),
        ("format = 'debezium', changelog = true", True, COLUMNS, "rows of a table, or of a stream"),
        ("changelog = true", False, COLUMNS, "changelog has no meaning in the format json"),
        ("key_format = 'json'", False, COLUMNS, "no column is read from the keys"),
        ("key_format = 'csv'", True, COLUMNS, "not a value of key_format"),
        ("topic = 's'", False, "_offset STRING", "_offset tells of the record, and is BIGINT, not STRING"),
        ("topic = 's'", False, "_headers ARRAY<STRING>", "_headers tells of the record"),
    ],
)
def test_refusals(options: str, table: bool, columns: str, message: str) -> None:
    with pytest.raises(QueryError) as refused:
        bound(options, table=table, columns=columns)
    assert message in refused.value.message
    assert refused.value.hint
