"""Rows as messages agree with a plain twin, value for value, in text and in binary."""

from __future__ import annotations

import struct
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.postgres import types
from broker.postgres.array_texts import cells_of
from broker.postgres.column_texts import numeric
from broker.postgres.parameters import decoded
from broker.postgres.plans import CopyOptions
from broker.postgres.results import Rows, copied, messages_of
from broker.postgres.row_messages import FEW
from tests.broker.postgres.row_values import VALUES, same


@st.composite
def columns(draw: st.DrawFn) -> list[tuple[int, list[Any]]]:
    n = draw(st.integers(0, 5) | st.just(FEW + 2))
    oids = draw(st.lists(st.sampled_from(sorted(VALUES)), min_size=1, max_size=5))
    return [(oid, [draw(st.none() | VALUES[oid][1]) for _ in range(n)]) for oid in oids]


def split(data: bytes, letter: bytes) -> list[list[bytes | None]]:
    """The fields of messages, read by the book."""
    rows, at = [], 0
    while at < len(data):
        assert data[at : at + 1] == letter
        size, count = struct.unpack_from("!ih", data, at + 1)
        end, place, row = at + 1 + size, at + 7, []
        for _ in range(count):
            (length,) = struct.unpack_from("!i", data, place)
            place += 4
            row.append(None if length == -1 else data[place : place + length])
            place += max(0, length)
        assert place == end
        rows.append(row)
        at = end
    return rows


@given(columns(), st.sampled_from([0, 1]))
def test_values_come_back_by_their_types(held: list[tuple[int, list[Any]]], form: int) -> None:
    arrays = [pa.array(values, VALUES[oid][0]) for oid, values in held]
    n = len(held[0][1])
    fields = tuple(types.Field(f"c{place}", oid, -1) for place, (oid, _) in enumerate(held))
    rows = Rows(fields, pa.Table.from_arrays(arrays, names=[one.name for one in fields]))
    found = split(messages_of(rows, [form] * len(held), 0, n), b"D")
    assert len(found) == n
    for place, row in enumerate(found):
        read = decoded(row, [oid for oid, _ in held], [form])
        for value, (oid, values) in zip(read, held, strict=True):
            assert same(value, values[place], oid), (value, values[place])
    again = split(copied(rows, CopyOptions("binary"), 0, n), b"d")
    assert again == split(messages_of(rows, [1] * len(held), 0, n), b"D")


@given(st.decimals(allow_nan=False, allow_infinity=False, places=6) | st.integers().map(Decimal))
def test_decimals_in_binary(value: Decimal) -> None:
    assert decoded([numeric(value)], [types.NUMERIC], [1]) == (value,)


@given(st.lists(st.none() | st.text(), min_size=1, max_size=6), st.sampled_from(["\t", ",", "|"]))
def test_lines_of_text_are_read_as_postgresql_reads_them(values: list[str | None], delimiter: str) -> None:
    values = [None if one is None else one.replace("\0", "") for one in values]
    rows = Rows((types.Field("a", types.TEXT, -1),) * 2, pa.table([values, values[::-1]], names=["a", "b"]))
    data = copied(rows, CopyOptions("text", False, delimiter, "\\N"), 0, len(values))
    lines, at = [], 0
    while at < len(data):
        (size,) = struct.unpack_from("!i", data, at + 1)
        lines.append(data[at + 5 : at + 1 + size].decode())
        at += 1 + size
    assert len(lines) == len(values)
    for place, line in enumerate(lines):
        assert line.endswith("\n")
        fields = _fields(line[:-1], delimiter)
        assert fields == [values[place], values[-1 - place]]


_LETTERS = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "v": "\v", "f": "\f"}


def _fields(line: str, delimiter: str) -> list[str | None]:
    assert "\n" not in line
    fields: list[str | None] = []
    text, at, is_null = "", 0, False
    while at < len(line):
        sign = line[at]
        if sign == "\\":
            at += 1
            is_null = line[at] == "N" and not text
            text += "" if is_null else _LETTERS.get(line[at], line[at])
        elif sign == delimiter:
            fields.append(None if is_null else text)
            text, is_null = "", False
        else:
            text += sign
        at += 1
    return [*fields, None if is_null else text]


def test_one_million_rows_take_little() -> None:
    n = 100_000
    table = pa.table({"id": pa.array(range(n)), "s": pa.array([f"host-{one}" for one in range(n)])})
    rows = Rows(tuple(types.field(one.name, one.type) for one in table.schema), table)
    data = copied(rows, CopyOptions(), 0, n)
    assert data.count(b"\n") >= n
    assert cells_of(table.column(0).chunk(0), types.INT8, 0).texts[:3].tobytes() == b"012"


@pytest.mark.parametrize(
    ("oid", "form", "raw"),
    [
        (types.INT8, 0, b"x"),
        (types.INT8, 1, b"123"),
        (types.BOOL, 0, b"maybe"),
        (types.DATE, 0, b"2013-13-01"),
        (types.NUMERIC, 1, b"\0\1"),
        (types.NUMERIC, 1, struct.pack("!HhHHH", 1, 0, 0, 0, 60_000)),
        (types.UUID, 1, b"short"),
        (types.TIMESTAMPTZ, 1, struct.pack("!q", (1 << 63) - 1)),
        (types.TEXT, 0, b"\xff"),
        (types.JSONB, 1, b"\x02{}"),
    ],
)
def test_values_that_are_none_of_their_type(oid: int, form: int, raw: bytes) -> None:
    with pytest.raises(Exception, match="is no"):
        decoded([raw], [oid], [form])


def test_days_and_instants_before_2000() -> None:
    rows = decoded([struct.pack("!i", -1), struct.pack("!q", -1)], [types.DATE, types.TIMESTAMPTZ], [1])
    assert rows == (date(1999, 12, 31), datetime(1999, 12, 31, 23, 59, 59, 999_999, UTC))
