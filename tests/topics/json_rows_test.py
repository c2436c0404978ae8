"""Rows as JSON objects: the same text as one row at a time, by the plain encoder."""

from __future__ import annotations

import math
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import orjson
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from topics.json_rows import SLICE_ROWS, json_objects, json_values

NAIVE = datetime(1, 1, 1), datetime(9999, 12, 31)
VALUES: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "ok": (pa.bool_(), st.booleans()),
    "small": (pa.int32(), st.integers(-(2**31), 2**31 - 1)),
    "large": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "v": (pa.float64(), st.floats()),
    "price": (pa.decimal128(9, 2), st.decimals(-9_999_999, 9_999_999, places=2)),
    'na"me\n': (pa.string(), st.text(st.characters(exclude_categories=["Cs"]), max_size=5)),
    "on": (pa.date32(), st.dates()),
    "ts": (
        pa.timestamp("ms"),
        st.datetimes(*NAIVE).map(lambda t: t.replace(microsecond=t.microsecond // 1000 * 1000)),
    ),
}


def plain(value: Any) -> Any:
    """What JSON has for a value, by hand."""
    match value:
        case float() if not math.isfinite(value):
            return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
        case Decimal():
            return f"{value:f}"
        case datetime():
            return value.isoformat(timespec="milliseconds") + "Z"
        case date():
            return value.isoformat()
        case list():
            return [plain(one) for one in value]
    return value


def objects(table: pa.Table) -> list[bytes]:
    return [orjson.dumps({name: plain(value) for name, value in row.items()}) for row in table.to_pylist()]


@given(st.data())
def test_rows_are_what_the_plain_encoder_writes(data: st.DataObject) -> None:
    rows = data.draw(st.integers(0, 6))
    columns: dict[str, pa.Array] = {}
    for name, (type_, values) in VALUES.items():
        some = values if data.draw(st.booleans()) else st.none() | values
        columns[name] = pa.array(data.draw(st.lists(some, min_size=rows, max_size=rows)), type_)
        held = st.none() | st.lists(some, max_size=3)
        drawn = data.draw(st.lists(held, min_size=rows, max_size=rows))
        columns[f"many {name}"] = pa.array(drawn, pa.list_(type_))
    table = pa.table(columns)
    first = data.draw(st.integers(0, rows))
    for part in (table, table.slice(first), pa.concat_tables([table.slice(0, first), table.slice(first)])):
        assert json_objects(part).to_pylist() == objects(part)


def test_members_besides_the_columns() -> None:
    table = pa.table({"a": [1, 2]})
    told = json_objects(table, '{"weight":-1,"row":{', "}}").to_pylist()
    assert told == [b'{"weight":-1,"row":{"a":1}}', b'{"weight":-1,"row":{"a":2}}']


@pytest.mark.parametrize("type_", [pa.null(), pa.dictionary(pa.int32(), pa.string())])
def test_columns_of_other_kinds(type_: pa.DataType) -> None:
    values = pa.array([None, None] if pa.types.is_null(type_) else ['"', None], type_)
    assert json_objects(pa.table({"x": values})).to_pylist() == objects(pa.table({"x": values}))


def test_no_columns_and_many_rows() -> None:
    assert json_objects(pa.table({"a": [1]}).select([])).to_pylist() == [b"{}"]
    numbers = list(range(SLICE_ROWS + 2))
    assert json_objects(pa.table({"n": numbers})).to_pylist() == [b'{"n":%d}' % n for n in numbers]
    assert json_values(pa.array(["x", None])).to_pylist() == ['"x"', "null"]
