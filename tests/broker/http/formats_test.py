"""Arrays in every format of an answer; the other types are tested on a running broker."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from datetime import datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from broker.http.formats import encode
from engine.model.answer import Answer, AnswerColumns
from engine.model.approximation import Approximation, Expected
from engine.model.step import BEGINNING
from topics.approximation import header_text
from tureen.snapshot import Reply, Snapshot

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


NESTED: list[tuple[pa.DataType, list[object], list[object]]] = [
    (
        pa.struct([("city", pa.string()), ("zip", pa.decimal128(6, 2))]),
        [{"city": 'B,"n', "zip": Decimal("30.00")}, None, {"city": None, "zip": None}],
        [{"city": 'B,"n', "zip": "30.00"}, None, {"city": None, "zip": None}],
    ),
    (
        pa.map_(pa.string(), pa.float64()),
        [[("color, of", 1.5), ("n", None)], [], None],
        [{"color, of": 1.5, "n": None}, {}, None],
    ),
    (
        pa.list_(pa.struct([("price", pa.decimal128(8, 2)), ("at", pa.timestamp("ms"))])),
        [[{"price": Decimal("1.25"), "at": datetime(2020, 1, 1)}], None, [None]],
        [[{"price": "1.25", "at": "2020-01-01T00:00:00.000Z"}], None, [None]],
    ),
    (pa.json_(), ['{"a":[1,"x"]}', "null", None], [{"a": [1, "x"]}, None, None]),
]


@pytest.mark.parametrize(("type_", "values", "wanted"), NESTED, ids=lambda one: str(one)[:20])
def test_nested_values_in_csv_are_json_in_quotes(
    type_: pa.DataType, values: list[object], wanted: list[object]
) -> None:
    if isinstance(type_, pa.JsonType):
        whole = pa.ExtensionArray.from_storage(type_, pa.array(values, pa.string()))
    else:
        whole = pa.array(values, type_)
    table = pa.table({"n": [1, 2, 3], "v": whole})
    cut = pa.concat_tables([table.slice(0, 1), table.slice(1)])
    text = encode(Answer("q", AnswerColumns.of_table(cut), BEGINNING, 0), "csv", 10_000).decode()
    _, *rows = csv.reader(io.StringIO(text))
    assert [int(row[0]) for row in rows] == [1, 2, 3]
    assert [json.loads(row[1]) if row[1] else None for row in rows] == wanted
    assert [not row[1] for row in rows] == [value is None for value in values]


def test_bytes_in_csv_are_base64_in_quotes() -> None:
    table = pa.table({"b": pa.array([b"hi", b"", None], pa.binary()), "n": [1, 2, 3]})
    text = encode(Answer("q", AnswerColumns.of_table(table), BEGINNING, 0), "csv", 10_000).decode()
    assert text == 'b,n\n"aGk=",1\n"",2\n,3\n'


def test_tags_of_an_answer_in_json() -> None:
    exact, sampled = (json.loads(encode(one, "json", 10_000)) for one in (answer(), tagged(1)))
    assert (exact["approximate"], exact["approximation"]) == (False, [])
    assert (sampled["approximate"], sampled["approximation"]) == (
        True,
        [
            {
                "kind": "sample",
                "where": "trips 0",
                "origin": "declared",
                "amount": 10.0,
                "unit": "percent",
                "asked": 100.0,
                "expected": {"fn": 0.9},
            }
        ],
    )
    assert sampled["rows"] == PLAIN


@pytest.mark.parametrize("count", [0, 2, 100])
def test_tags_of_an_answer_in_the_metadata_of_arrow_are_whole(count: int) -> None:
    given = tagged(count)
    body = encode(given, "arrow", 100_000)
    schema = pa.ipc.open_stream(body).schema
    assert (b"tureen.approximation" in (schema.metadata or {})) == bool(count)
    header = header_text(given.approximation)
    read = Snapshot.of(Reply(body, "arrow", {"tureen-approximation": header}))
    assert [tag.where for tag in read.approximation] == [f"trips {i}" for i in range(count)]
    assert ('"more"' in header) == (count == 100)
    assert read.approximate == bool(count)
    for form in ("csv", "ndjson"):
        assert encode(given, form, 100_000) == encode(answer(), form, 100_000)  # type: ignore[arg-type]


def tagged(count: int) -> Answer:
    """The answer with ``count`` tags."""
    expected = Expected(fn=0.9)
    tags = [
        Approximation("sample", f"trips {i}", "declared", 10.0, "percent", 100.0, expected=expected)
        for i in range(count)
    ]
    return replace(answer(), approximation=tuple(tags))
