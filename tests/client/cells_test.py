"""Values as tables and the lines of `tureen watch` show them."""

from __future__ import annotations

import json
import math
from datetime import date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tureen import console
from tureen.cells import cell
from tureen.changes import Change, ChangesEvent, SnapshotEvent
from tureen.columns import Column, JsonText, Pairs, rows_of
from tureen.snapshot import Snapshot
from tureen.watching import show_event


@given(st.floats(allow_nan=False))
def test_a_double_reads_back_as_the_same_number(value: float) -> None:
    text = cell(value)
    assert float(text) == value
    assert math.copysign(1, float(text)) == math.copysign(1, value)
    assert len(text) <= len(repr(value)) or math.isinf(value)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (802231.03, "802231.03"),
        (1234567.891, "1234567.891"),
        (3.0, "3"),
        (0.1 + 0.2, "0.30000000000000004"),
        (1e15, "1000000000000000"),
        (math.nan, "NaN"),
        (-math.inf, "-Infinity"),
        (None, "NULL"),
        (True, "true"),
        (Decimal("1.50"), "1.50"),
        (Decimal("0E-7"), "0.0000000"),
        (b"hi", "aGk="),
        (date(2025, 6, 1), "2025-06-01"),
        ("a\x1b[0m", "a·[0m"),
        ((Decimal("1.25"), None, True), '["1.25",null,true]'),
        ((), "[]"),
        (Pairs((("city", "Bern"), ("zips", (1, math.nan)))), '{"city":"Bern","zips":[1,"NaN"]}'),
        (Pairs(()), "{}"),
        ((Pairs((("at", datetime(2025, 6, 1)),)),), '[{"at":"2025-06-01T00:00:00.000Z"}]'),
        ({"a": [None, {"b": b"hi"}]}, '{"a":[null,{"b":"aGk="}]}'),
        (JsonText('{"a":[1,null]}'), '{"a":[1,null]}'),
        ((JsonText('{"a":1}'),), '[{"a":1}]'),
    ],
    ids=repr,
)
def test_values(value: object, text: str) -> None:
    assert cell(value) == text


COLUMNS = (
    Column("total", "DOUBLE"),
    Column("price", "ARRAY<DECIMAL(4, 2)>"),
    Column("ship", "STRUCT<city STRING, open BOOLEAN>"),
    Column("tags", "MAP<STRING, DOUBLE>"),
)
SENT = [[802231.03, ["1.25"], {"city": "Bern", "open": True}, {"k": None}], [None, [], None, {}]]
SHOWN = [
    ["802231.03", '["1.25"]', '{"city":"Bern","open":true}', '{"k":null}'],
    ["NULL", "[]", "NULL", "{}"],
]


def test_lines_of_watch(capsys: pytest.CaptureFixture[str]) -> None:
    first, second = rows_of(COLUMNS, SENT)
    show_event(SnapshotEvent("1-1", 0, COLUMNS, (first,)), as_json=False)
    show_event(ChangesEvent("1-2", 0, COLUMNS, (Change(-1, 0, second),)), as_json=False)
    lines = [line.split("\t")[2:] for line in capsys.readouterr().out.splitlines()]
    assert lines == [[column.name for column in COLUMNS], *SHOWN]


def test_a_table_of_an_answer(capsys: pytest.CaptureFixture[str]) -> None:
    table = pa.Table.from_arrays(
        [
            pa.array([802231.03, None]),
            pa.array([[Decimal("1.25")], []], pa.list_(pa.decimal128(4, 2))),
            pa.array([{"city": "Bern", "open": True}, None]),
            pa.array([[("k", None)], []], pa.map_(pa.string(), pa.float64())),
        ],
        names=[column.name for column in COLUMNS],
    )
    console.show_snapshot(Snapshot(table, "1-1", 0), 10)
    lines = [line.split() for line in capsys.readouterr().out.splitlines() if line.strip()]
    assert [line for line in lines if len(line) == len(COLUMNS)][-2:] == SHOWN
    assert json.loads(SHOWN[0][2]) == SENT[0][2]
