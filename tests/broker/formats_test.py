"""Arrays in every format of an answer; the other types are tested on a running broker."""

from __future__ import annotations

import csv
import io
import json
from datetime import datetime
from decimal import Decimal

import pyarrow as pa

from broker.http.formats import encode
from engine.model.answer import Answer, AnswerColumns
from engine.model.step import BEGINNING

ROWS = [
    ([1, None], [Decimal("1.50")], [datetime(2020, 1, 1)], ['a"b'], [float("nan")]),
    (None, [None], None, [], []),
    ([], None, [], None, None),
]
TYPES = [pa.int64(), pa.decimal128(6, 2), pa.timestamp("ms"), pa.string(), pa.float64()]
PLAIN = [
    [[1, None], ["1.50"], ["2020-01-01T00:00:00.000Z"], ['a"b'], ["NaN"]],
    [None, [None], None, [], []],
    [[], None, [], None, None],
]


def answer() -> Answer:
    """The rows, in chunks that begin within an array."""
    columns = [
        pa.array(values, pa.list_(type_))
        for values, type_ in zip(zip(*ROWS, strict=True), TYPES, strict=True)
    ]
    table = pa.table(columns, names=list("abcde"))
    cut = pa.concat_tables([table.slice(0, 1), table.slice(1)])
    return Answer("q", AnswerColumns.of_table(cut), BEGINNING, 0)


def test_arrays_in_json() -> None:
    told = json.loads(encode(answer(), "json", 10_000))
    assert told["rows"] == PLAIN
    assert [column["type"] for column in told["columns"]] == [
        "ARRAY<BIGINT>",
        "ARRAY<DECIMAL(6, 2)>",
        "ARRAY<TIMESTAMP>",
        "ARRAY<STRING>",
        "ARRAY<DOUBLE>",
    ]
    lines = encode(answer(), "ndjson", 10_000).splitlines()
    assert [list(json.loads(line).values()) for line in lines] == PLAIN


def test_arrays_in_csv() -> None:
    _, *rows = csv.reader(io.StringIO(encode(answer(), "csv", 10_000).decode()))
    assert [[json.loads(value) if value else None for value in row] for row in rows] == PLAIN
