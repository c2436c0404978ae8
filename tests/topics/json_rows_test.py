"""Rows as JSON objects: the same text as one row at a time, by the plain encoder."""

from __future__ import annotations

import orjson
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.model.json_texts import json_values
from tests.topics.json_rows import VALUES, plain
from topics.json_rows import SLICE_ROWS, json_objects


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


def test_columns_of_nothing() -> None:
    for type_ in (pa.binary(), pa.string(), pa.list_(pa.binary()), pa.map_(pa.string(), pa.binary())):
        assert json_values(pa.array([None, None], type_)).to_pylist() == ["null", "null"]
