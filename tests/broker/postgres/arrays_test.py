"""Arrays as PostgreSQL writes and reads them, in text and in binary; DOUBLEs in text."""

from __future__ import annotations

import contextlib
import math
import re
import struct
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from broker.postgres import types
from broker.postgres.array_input import elements_of_binary
from broker.postgres.array_texts import cells_of
from broker.postgres.column_texts import double_texts, scalar_text
from broker.postgres.parameters import Array, decoded
from engine.model.nested.array_literals import elements_of_text
from tests.broker.postgres.row_values import VALUES, same

ELEMENTS = [oid for oid in VALUES if oid != types.JSON]


@st.composite
def arrays(draw: st.DrawFn) -> tuple[int, list[list[Any] | None]]:
    oid = draw(st.sampled_from(ELEMENTS))
    element = st.none() | VALUES[oid][1]
    return oid, draw(st.lists(st.none() | st.lists(element, max_size=5), min_size=1, max_size=8))


@example((types.TEXT, [["\xa0L", "\v", "a\v", "\x85", "\u2003", "a\n", "\x1c"]]), 0, 0)
@given(arrays(), st.sampled_from([0, 1]), st.integers(0, 2))
def test_arrays_come_back(held: tuple[int, list[list[Any] | None]], form: int, skipped: int) -> None:
    element, values = held
    column = pa.array([*[None] * skipped, *values], pa.list_(VALUES[element][0])).slice(skipped)
    cells = cells_of(column, types.ARRAYS[element], form)
    data = cells.texts.tobytes()
    for place, expected in enumerate(values):
        assert (cells.valid is None or bool(cells.valid[place])) == (expected is not None)
        if expected is None:
            continue
        raw = data[cells.ends[place] : cells.ends[place + 1]]
        (read,) = decoded([raw], [types.ARRAYS[element]], [form])
        assert isinstance(read, Array)
        assert len(read.elements) == len(expected)
        for one, other in zip(read.elements, expected, strict=True):
            assert same(one, other, element)


def test_a_binary_array_tells_its_dimensions_and_nulls() -> None:
    cells = cells_of(pa.array([[1, None], []], pa.list_(pa.int64())), types.ARRAYS[types.INT8], 1)
    first = struct.pack("!iiIiiiqi", 1, 1, types.INT8, 2, 1, 8, 1, -1)
    assert cells.texts.tobytes() == first + struct.pack("!iiI", 0, 0, types.INT8)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{}", []),
        (" { } ", []),
        ("{1, 2}", ["1", "2"]),
        ('{NULL,"NULL",null}', [None, "NULL", None]),
        (r'{"a\"b","c\\d",e f,""}', ['a"b', "c\\d", "e f", ""]),
    ],
)
def test_arrays_in_text(text: str, expected: list[str | None]) -> None:
    assert elements_of_text(text) == expected


@pytest.mark.parametrize("text", ["1", "{", "{1", "{1,}", "{,1}", '{"a}', "{{1},{2}}", "{1}{2}", '{"a"b}'])
def test_what_is_no_array_in_text(text: str) -> None:
    with pytest.raises(ValueError, match=re.escape(text)):
        elements_of_text(text)


@given(st.binary(max_size=60))
def test_broken_binary_arrays_are_refused(raw: bytes) -> None:
    with contextlib.suppress(ValueError, struct.error):
        elements_of_binary(raw)


def test_instants_have_no_zeros_at_their_end() -> None:
    whole = datetime(2013, 1, 31, 9, 15)
    micros = [0, 100, 120_000, 123_456, 500_000, 999_000]
    column = pa.array([None, *(whole.replace(microsecond=one) for one in micros)], pa.timestamp("us"))
    texts = scalar_text(column, types.TIMESTAMPTZ).to_pylist()[1:]
    fractions = ["", ".0001", ".12", ".123456", ".5", ".999"]
    assert texts == [f"2013-01-31 09:15:00{one}+00" for one in fractions]


@given(st.lists(st.floats() | st.sampled_from([1e15, 1e-4, 9.5e14, 1.5e16, 123456789012345680.0])))
def test_doubles_are_written_as_postgresql_writes_them(values: list[float]) -> None:
    for text, value in zip(double_texts(np.array(values, np.float64)).to_pylist(), values, strict=True):
        read = float(text.replace("Infinity", "inf"))
        assert struct.pack("!d", read) == struct.pack("!d", value) or read != read
        if not math.isfinite(value):
            assert text in ("NaN", "Infinity", "-Infinity")
            continue
        has_exponent = value != 0 and not 1e-4 <= abs(value) < 1e15
        form = r"-?\d(\.\d*[1-9])?e[+-]\d{2,3}" if has_exponent else r"-?\d+(\.\d*[1-9])?"
        assert re.fullmatch(form, text), text
