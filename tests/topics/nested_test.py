"""Columns of nested and other logical types, as records have them."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.language.query import CreateStream
from engine.language.statements import parse
from engine.model.json_texts import json_values
from engine.model.limits import Limits
from engine.model.nested.arrow import from_arrow, to_arrow
from engine.model.nested.canonical import BYTES_MAX, canonical
from engine.model.plain import stream_as_dict, stream_from_dict
from engine.model.source import Stream
from engine.model.types import (
    BYTES,
    DATE,
    DOUBLE,
    INTEGER,
    JSON,
    STRING,
    TIMESTAMP,
    UUID,
    Type,
    array,
    decimal,
    map_of,
    struct,
)
from tests.strategies import examples
from tests.topics.reading import told, told_carefully
from topics.keyed import decode_keyed

TEXT = """CREATE STREAM s (id BIGINT, j JSON, a ARRAY<INT>, d ARRAY<DECIMAL(6, 2)>,
    s STRUCT<x INT, "y Z" STRING>, m MAP<STRING, DOUBLE>,
    u UUID, b BYTES, whole JSON PATH '$',
    parts ARRAY<TIMESTAMP> PATH '$.j.list')"""


def source(text: str = TEXT) -> Stream:
    created = parse(text, {}, Limits())
    assert isinstance(created, CreateStream)
    return created.stream


STREAM = source()


_scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.sampled_from([2**64, -(2**63), 1.5, 2.0, -0.0, 1e30]),
    st.sampled_from(["", "a", '"\\', "é:", "1.50", "2024-01-01", "aGk=", "0" * 32]),
)
_names = st.sampled_from(["id", "j", "a", "x", "y z", "y Z", "list", "u"])
_values = st.recursive(
    _scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_names, inner, max_size=3),
    max_leaves=5,
)
_rows = st.fixed_dictionaries(
    {},
    optional={
        "id": st.integers(0, 3),
        "J": _values,
        "j": _values | st.fixed_dictionaries({"list": st.lists(st.sampled_from([0, "2024-01-01"]))}),
        "a": st.lists(st.none() | st.integers(0, 3), max_size=3) | _values,
        "d": st.lists(st.sampled_from([1, 1.5, "2.25", 0.125]), max_size=3),
        "s": st.fixed_dictionaries(
            {}, optional={"x": st.integers(0, 2), "Y z": st.just("a"), "y Z": st.just("b")}
        ),
        "m": st.dictionaries(_names, st.sampled_from([1, 2.5, None]), max_size=3),
        "u": st.sampled_from(["550E8400-e29b-41d4-a716-446655440000", "x"]),
        "b": st.sampled_from(["aGk=", "", "a"]),
    },
)


@given(st.lists(_rows, min_size=1, max_size=5), st.booleans())
@settings(max_examples=examples(100), deadline=None)
def test_a_record_decodes_the_same_alone_and_among_others(rows: list[Any], pretty: bool) -> None:
    values = [json.dumps(row, indent=1 if pretty else None, ensure_ascii=pretty).encode() for row in rows]
    carefully = told_carefully(STREAM, values)
    assert told(STREAM, values) == carefully
    assert told(STREAM, values * 20) == carefully * 20


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"j": {"a": 1, "a": 2}}', "column j: a is given twice"),
        ('{"j": [{"a": 1, "\\u0061": 2}]}', "column j: a is given twice"),
        ('{"j": "\\ud800"}', "column j: half a surrogate pair is not a character"),
        ('{"j": [1e400]}', "column j: a number is out of the range of DOUBLE"),
        ('{"j": [NaN]}', "NaN and Infinity are not JSON"),
        ('{"j": ' + "[" * 64 + "]" * 64 + "}", "nested too deeply"),
        ('{"j": "' + "x" * BYTES_MAX + '"}', "column j: 262,146 bytes are more than the 262,144"),
        ('{"j": [1, 2}}', "not JSON"),
        ('{"a": {}}', "column a: expected ARRAY<INTEGER>, got an object"),
        ('{"a": [1, "2"]}', 'column a: expected INTEGER, got string "2" at $[1]'),
        ('{"a": [1.0]}', "column a: expected INTEGER, got number 1.0 at $[0]"),
        ('{"a": [2147483648]}', "column a: 2147483648 is out of the range of INTEGER at $[0]"),
        ('{"d": [0.125]}', "column d: 0.125 does not fit DECIMAL(6, 2) at $[0]"),
        ('{"s": {"x": "1"}}', 'column s: expected INTEGER, got string "1" at $.x'),
        ('{"s": {"Y z": "a", "y z": "b"}}', "column s: Y z and y z differ in letter case alone"),
        ('{"m": {"k": "1"}}', 'column m: expected DOUBLE, got string "1" at $.k'),
        ('{"u": "550e8400-e29b-41d4-a716"}', 'column u: expected UUID, got string "550e8400-e29b-41d4-a716"'),
        ('{"b": "a"}', 'column b: expected BYTES in base64, got string "a"'),
        ('{"j": {"list": ["2024-02-30"]}}', "column parts: there is no TIMESTAMP 2024-02-30 at $[0]"),
    ],
)
def test_what_does_not_fit_is_a_dead_letter(text: str, reason: str) -> None:
    value = text.encode()
    for found in (*told(STREAM, [value]), told(STREAM, [value] * 40)[39], *told_carefully(STREAM, [value])):
        assert isinstance(found, str)
        assert found.startswith(reason)


def test_huge_arrays_and_many_letters_neither_crash_nor_stall() -> None:
    bad = [b'{"j": {"a": 1, "a": 2}}', b'{"a": [%s]}' % b",".join([b"1"] * 100_000 + [b'"x"'])]
    good = b'{"a": [1, 2], "j": [%s]}' % b",".join([b"[]"] * 50_000)
    found = told(STREAM, [*bad, good] * 20)
    assert [isinstance(one, str) for one in found] == [True, True, False] * 20


def test_keys_of_tables() -> None:
    table = source("CREATE TABLE t (u UUID, b BYTES, j JSON, PRIMARY KEY (u, b))")
    key, value = b'["550E8400e29b41d4a716446655440000", "aGk="]', b'{"j": {"b": 1, "a": 2.0}}'
    for n in (1, 40):
        decoded = decode_keyed(table, [key] * n, [value] * n, np.zeros(n), np.arange(n), np.full(n, 7))
        assert not decoded.bad
        texts = [column.text_array().to_pylist() for column in decoded.batch.columns[:3]]
        assert texts == [["550e8400-e29b-41d4-a716-446655440000"] * n, ["6869"] * n, ['{"a":2,"b":1}'] * n]


def test_streams_are_written_and_read_again() -> None:
    assert stream_from_dict(json.loads(json.dumps(stream_as_dict(STREAM)))) == STREAM


TYPES: list[tuple[Type, str]] = [
    (JSON, '{"b": 1.0, "a": [1e2, "x\\n"]}'),
    (array(INTEGER), "[1, null]"),
    (array(array(STRING)), '[["a"], null, []]'),
    (struct([("b", array(DATE)), ("a", DOUBLE)]), '{"a": 1, "b": ["2024-02-29", null]}'),
    (map_of(decimal(5, 2)), '{"b": "1.5", "a": null}'),
    (array(TIMESTAMP), '[0, "2024-01-01T00:00:00+01:00"]'),
    (array(struct([("j", JSON), ("u", UUID), ("b", BYTES)])), '[{"j": {"a": 1}, "b": "aGk="}, null]'),
    (map_of(map_of(DOUBLE)), '{"k": {"x": "NaN", "y": "-Infinity", "z": -0.0}}'),
    (UUID, '"550E8400e29b41d4a716446655440000"'),
    (BYTES, '"aGk="'),
]


@pytest.mark.parametrize(("type_", "text"), TYPES, ids=lambda one: str(one))
def test_texts_become_arrow_and_come_back(type_: Type, text: str) -> None:
    given = pa.array([canonical(type_, text), None], pa.string())
    made = to_arrow(type_, given)
    made.validate(full=True)
    assert made.type == type_.arrow
    assert from_arrow(type_, made).equals(given)
    assert from_arrow(type_, made.slice(1)).equals(given.slice(1))
    (shown, nothing) = json_values(made).to_pylist()
    assert nothing == "null"
    assert canonical(type_, shown) == given[0].as_py()  # an answer in JSON can be read again
