"""Rows as text in one pass: the same as one row at a time, by the plain encoder."""

from __future__ import annotations

from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.http.row_texts import rows_text
from engine.model.batch import Column
from engine.model.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    NULL,
    STRING,
    TIMESTAMP,
    Type,
    array,
    decimal,
)
from tests.topics.json_rows import VALUES, plain

TYPES: dict[str, Type] = {
    "ok": BOOLEAN,
    "small": INTEGER,
    "large": BIGINT,
    "v": DOUBLE,
    "price": decimal(9, 2),
    'na"me\n': STRING,
    "on": DATE,
    "ts": TIMESTAMP,
}
assert TYPES.keys() == VALUES.keys()


@given(st.data())
def test_rows_are_what_the_plain_encoder_writes(data: st.DataObject) -> None:
    n = data.draw(st.integers(0, 6))
    names = data.draw(st.lists(st.sampled_from(list(VALUES)), min_size=1, max_size=10))
    columns: list[Any] = []
    told: list[list[Any]] = []
    for name in names:
        arrow, values = VALUES[name]
        type_ = TYPES[name]
        some = values if data.draw(st.booleans()) else st.none() | values
        if data.draw(st.booleans()):
            arrow, type_, some = pa.list_(arrow), array(type_), st.none() | st.lists(some, max_size=3)
        drawn = data.draw(st.lists(some, min_size=n + 1, max_size=n + 1))
        whole = pa.array(drawn, arrow)
        rest = whole.slice(1)
        cut = pa.chunked_array([rest.slice(0, n // 2), rest.slice(n // 2)])
        held = Column.from_arrow(type_, whole).slice(1, n + 1)
        chosen = data.draw(st.sampled_from([rest, cut, held]))
        columns.append(chosen)
        # inside of arrays the engine has one zero
        given_values = held.to_arrow() if chosen is held else rest
        told.append([plain(value) for value in given_values.to_pylist()])
    rows = [list(row) for row in zip(*told, strict=True)]
    text = rows_text(columns, n, (b"[", *[b","] * (len(names) - 1)), b"]\n")
    assert text.splitlines() == [orjson.dumps(row) for row in rows]


@given(st.lists(st.text(st.characters(max_codepoint=0xFF, exclude_categories=["Cs"]))))
def test_characters_that_are_escaped(texts: list[str]) -> None:
    found = rows_text([pa.array(texts, pa.string())], len(texts), (b"",), b",")
    assert b"[" + found[:-1] + b"]" == orjson.dumps(texts)


def test_bounds_of_values() -> None:
    numbers = [sign * 10**digits + more for digits in range(19) for sign in (-1, 1) for more in (-1, 0, 1)]
    numbers += [-(2**63), 2**63 - 1, 0, -1]
    assert rows_text([pa.array(numbers)], len(numbers), (b"",), b"\n").split() == [b"%d" % n for n in numbers]
    every = np.arange(-719_162, 2_932_897, 97, dtype=np.int32)  # of the years 1 to 9999
    days = pa.array(np.concatenate([every, np.arange(-200_000, 40_000, dtype=np.int32)]))
    texts = rows_text([Column(DATE, days.to_numpy())], len(days), (b"",), b"\n").decode().split()
    assert texts == ['"' + text + '"' for text in days.view(pa.date32()).cast(pa.string()).to_pylist()]


@pytest.mark.parametrize("n", [0, 2])
def test_nothing_but_nulls(n: int) -> None:
    column = Column(NULL, np.zeros(n, np.bool_), np.zeros(n, np.bool_))
    assert rows_text([column, pa.nulls(n)], n, (b"", b","), b";") == b"null,null;" * n
