"""Rows of all types, as every format's tests write them, and what a reader of any format makes of them."""

from __future__ import annotations

import base64
import json
import math
import resource
from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from decimal import Decimal
from typing import Any

import numpy as np
from hypothesis import strategies as st

from engine.model.batch import Column
from engine.model.nested.canonical import canonical
from engine.model.record_format import RecordFormat
from engine.model.source import Field, Schema, SourceName, Stream
from engine.model.types import (
    BIGINT,
    BOOLEAN,
    BYTES,
    DATE,
    DOUBLE,
    INTEGER,
    JSON,
    STRING,
    TIMESTAMP,
    UUID,
    Kind,
    Logical,
    Type,
    array,
    decimal,
    map_of,
    struct,
)
from topics.codec import Decoded
from topics.formats.metadata import Written
from topics.keyed import decode_records

Row = dict[str, Any]

PLAIN: dict[str, Type] = {
    "b": BOOLEAN,
    "i": INTEGER,
    "l": BIGINT,
    "f": DOUBLE,
    "d": decimal(18, 3),
    "s": STRING,
    "day": DATE,
    "at": TIMESTAMP,
    "u": UUID,
    "y": BYTES,
}
NESTED: dict[str, Type] = {
    "j": JSON,
    "a": array(BIGINT),
    "o": struct([("x", INTEGER), ("y", STRING)]),
    "m": map_of(DOUBLE),
    "deep": array(struct([("n", array(STRING))])),
}
TYPES = {**PLAIN, **NESTED}

_texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
_json = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | _texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_texts, inner, max_size=3),
    max_leaves=4,
)
_i32, _i64 = st.integers(-(2**31), 2**31 - 1), st.integers(-(2**63), 2**63 - 1)
_finite = st.floats(allow_nan=False, allow_infinity=False).map(lambda one: one + 0.0)

_VALUES: dict[str, st.SearchStrategy[Any]] = {
    "b": st.booleans(),
    "i": _i32,
    "l": _i64,
    "f": st.floats().map(lambda one: one + 0.0),
    "d": st.integers(-(10**18) + 1, 10**18 - 1).map(lambda one: Decimal(one).scaleb(-3)),
    "s": _texts,
    "day": st.dates(),
    "at": st.integers(-62_135_596_800_000, 253_402_300_799_999),
    "u": st.uuids(allow_nil=True).map(str),
    "y": st.binary(max_size=6),
    "j": st.dictionaries(_texts, _json, max_size=3) | st.lists(_json, max_size=3),
    "a": st.lists(st.none() | _i64, max_size=3),
    "o": st.fixed_dictionaries({"x": st.none() | _i32, "y": st.none() | _texts}),
    "m": st.dictionaries(_texts, _finite, max_size=3),
    "deep": st.lists(st.fixed_dictionaries({"n": st.lists(_texts, max_size=2)}), max_size=2),
}


def rows(names: Sequence[str], size: int = 50) -> st.SearchStrategy[list[Row]]:
    """Rows with these columns, each of which may be None."""
    one = st.fixed_dictionaries({name: st.none() | _VALUES[name] for name in names})
    return st.lists(one.map(lambda row: {name: row[name] for name in names}), max_size=size)


def stream(format_: RecordFormat, types: dict[str, Type] = TYPES, key: tuple[str, ...] = ()) -> Stream:
    fields = tuple(Field(name, type_, name not in key) for name, type_ in types.items())
    return Stream(SourceName("s"), Schema(fields), "s", key=key, format=format_)


def read(
    source: Stream, values: Sequence[bytes | None], keys: Sequence[bytes | None] | None = None
) -> Decoded:
    n = len(values)
    return decode_records(source, Written(values, np.zeros(n, int), np.arange(n), np.full(n, 7_000), keys))


def reasons(decoded: Decoded) -> dict[int, str]:
    return {one.place: one.reason for one in decoded.bad}


def seen(decoded: Decoded) -> list[Row]:
    """The rows, each value as it is held: numbers, texts, canonical texts."""
    columns = {
        field.name: _held(column)
        for field, column in zip(decoded.batch.schema, decoded.batch.columns, strict=True)
    }
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _held(column: Column) -> list[Any]:
    if column.type.kind is Kind.STRING:
        return list(column.text_array().to_pylist())
    there = column.there().tolist()
    values = column.values.tolist()
    return [_told(one) if valid else None for one, valid in zip(values, there, strict=True)]


def _told(value: Any) -> Any:
    return "NaN" if isinstance(value, float) and math.isnan(value) else value


def expected(given: Sequence[Row], types: dict[str, Type]) -> list[Row]:
    """What :func:`seen` tells of these rows."""
    return [{name: _expected(type_, row[name]) for name, type_ in types.items()} for row in given]


def _expected(type_: Type, value: Any) -> Any:
    if value is None:
        return None
    if type_.kind is Kind.DECIMAL:
        return int(value.scaleb(type_.scale))
    if type_.kind is Kind.DATE:
        return (value - date(1970, 1, 1)).days
    if type_.logical is Logical.BYTES:
        return value.hex()
    if type_.logical is Logical.UUID:
        return value
    return _told(value) if type_.logical is None else canonical(type_, json.dumps(value))


def as_texts(row: Row) -> dict[str, Any]:
    """A row as JSON has it."""
    found: dict[str, Any] = {}
    for name, value in row.items():
        if isinstance(value, bytes):
            found[name] = base64.b64encode(value).decode()
        elif isinstance(value, Decimal | date):
            found[name] = str(value)
        else:
            found[name] = value
    return found


def with_format(source: Stream, format_: RecordFormat) -> Stream:
    return replace(source, format=format_)


def are_dead_letters(source: Stream, broken: Sequence[bytes | None], good: bytes) -> None:
    """Each of these gives a reason and no row, the record behind them its row; read again they take no more
    memory.
    """
    read(source, broken)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(3):
        decoded = read(source, [*broken, good])
        assert list(reasons(decoded)) == list(range(len(broken)))
        assert decoded.batch.offset.tolist() == [len(broken)]
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 32 * 1024
