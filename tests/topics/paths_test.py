"""Columns that are paths into nested records."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from engine.model.paths import NoPath, Path, parse_path, path_text
from engine.model.plain import stream_as_dict, stream_from_dict
from engine.model.source import Field, Schema, SourceName, Stream
from engine.model.types import BIGINT, DATE, DOUBLE, STRING, TIMESTAMP, Type, decimal
from tests.strategies import examples
from tests.topics.reading import APPEND_MS, told, told_carefully
from topics.codec import decode
from topics.keyed import decode_keyed

PATHS: dict[str, tuple[Type, str]] = {
    "fw": (STRING, "$.meta.fw"),
    "size": (BIGINT, "$.meta.size"),
    "first": (STRING, "$.tags[0]"),
    "second_x": (DOUBLE, "$.points[1].x"),
    "day": (DATE, "$.meta.day"),
    "at": (TIMESTAMP, "$.meta.at"),
    "price": (decimal(6, 2), '$."a b".price'),
    "again": (STRING, "$.meta.fw"),
}


def stream(*names: str) -> Stream:
    paths = tuple(Field(name, PATHS[name][0], path=parse_path(PATHS[name][1])) for name in names)
    return Stream(SourceName("s"), Schema((Field("id", BIGINT), *paths)), "s")


ALL = stream(*PATHS)


_scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-5, 5),
    st.sampled_from(["", "a", "1.50", "2023-01-01", "meta", 'quote " and \\', "é", "fw", ":", "[{"]),
    st.sampled_from([1.5, 2.0, 10**30]),
)
_names = st.sampled_from(
    ["id", "meta", "fw", "size", "day", "at", "tags", "points", "x", "a b", "price", "META"]
)
_values = st.recursive(
    _scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_names, inner, max_size=4)
)
_fitting = st.fixed_dictionaries(
    {},
    optional={
        "id": st.integers(0, 9),
        "tags": st.lists(st.sampled_from(["a", "b"]), max_size=2),
        "points": st.lists(st.fixed_dictionaries({"x": st.sampled_from([0.5, 2])}), max_size=3),
        "a b": st.fixed_dictionaries({"price": st.sampled_from([1.5, "2.25", 7])}),
        "meta": st.fixed_dictionaries(
            {},
            optional={
                "fw": st.sampled_from(["1.0", "2.0", None]),
                "size": st.integers(0, 5),
                "day": st.just("2023-01-01"),
                "at": st.sampled_from([APPEND_MS, "2023-11-14T22:13:20Z"]),
                "other": _values,
            },
        ),
    },
)


@given(
    st.lists(st.one_of(_fitting, st.dictionaries(_names, _values, max_size=5)), min_size=1, max_size=6),
    st.booleans(),
)
@settings(max_examples=examples(150), deadline=None)
def test_a_nested_record_decodes_the_same_alone_and_among_others(given_rows: list[Any], pretty: bool) -> None:
    values = [
        json.dumps(row, indent=2 if pretty else None, ensure_ascii=pretty).encode() for row in given_rows
    ]
    carefully = told_carefully(ALL, values)
    assert told(ALL, values) == carefully
    assert told(ALL, values * 40) == carefully * 40
    for value, expected in zip(values, carefully, strict=True):
        assert told(ALL, [value] * 33) == [expected] * 33


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"id": 1, "meta": {"fw": "2", "size": 3}}', {"id": 1, "fw": "2", "size": 3, "again": "2"}),
        ('{"id": 1, "meta": null, "tags": []}', {"id": 1}),
        ('{"meta": [{"fw": "2"}], "tags": {"0": "a"}}', {}),
        ('{"meta": 5, "tags": "abc"}', {}),
        ('{"tags": ["a", "b"], "points": [{"x": 1}, {"x": 2.5}]}', {"first": "a", "second_x": 2.5}),
        ('{"a b": {"price": "1.5"}}', {"price": "1.50"}),
        ('{"meta": {"fw": {"x": 1}}}', "column fw: expected STRING, got an object"),
        ('{"meta": {"fw": ["x"]}}', "column fw: expected STRING, got an array"),
        ('{"meta": {"fw": "a", "fw": "b"}}', "column fw: fw is given twice"),
        ('{"meta": {"fw": "a"}, "meta": {}}', "column fw: meta is given twice"),
        ('{"meta": {"\\u0066w": "a"}}', {"fw": "a", "again": "a"}),
        ('{"meta": {"fw": "\\ud800"}}', "column fw: half a surrogate pair is not a character"),
        ('{"meta": {"x": 1, "x": 2, "fw": "a"}}', {"fw": "a", "again": "a"}),
        ('{"META": {"fw": "a"}, "meta": {"FW": "a"}}', {}),
        ('{"meta": {"fw": "a"', "the JSON object does not end"),
        ('{"meta": {"fw": tru}}', "not JSON"),
        ('{"meta": {"size": 1.5}}', "column size: expected BIGINT, got number 1.5"),
        ('{"meta": {"fw": "a", "x": [1, "]", {"}": ","}]}, "id": 7}', {"id": 7, "fw": "a", "again": "a"}),
    ],
)
def test_what_paths_lead_to(text: str, expected: dict[str, Any] | str) -> None:
    value = text.encode()
    for found in (*told(ALL, [value]), told(ALL, [value] * 33)[32], *told_carefully(ALL, [value])):
        if isinstance(expected, str):
            assert found.startswith(expected)
        else:
            assert {k: str(v) if k == "price" else v for k, v in found.items() if v is not None} == expected


def test_columns_that_stand_in_each_other() -> None:
    fields = (
        Field("meta", STRING),
        Field("fw", STRING, path=("meta", "fw")),
        Field("size", BIGINT, path=("meta", "size", "of")),
        Field("whole", STRING, path=("meta",)),
        Field("at", TIMESTAMP, path=("time", "at")),
    )
    source = Stream(SourceName("s"), Schema(fields), "s")
    values = [
        b'{"meta": "a", "time": {"at": "2023-11-14T22:13:20Z"}}',
        b'{"Meta": "b", "time": {"at": "2023-11-14"}}',
        b'{"meta": {"fw": "x", "size": {"of": 1}}}',
        b'{"meta": null, "time": 5}',
    ]
    carefully = told_carefully(source, values)
    assert carefully[0]["whole"] == carefully[0]["meta"] == "a"
    assert carefully[1]["meta"] == "b"
    assert carefully[2].startswith("column meta: expected STRING, got an object")
    assert told(source, values * 20) == carefully * 20
    for value, expected in zip(values, carefully, strict=True):
        assert told(source, [value] * 33) == [expected] * 33


def test_a_path_that_must_lead_somewhere() -> None:
    fields = tuple(replace(one, nullable=one.name != "fw") for one in stream("fw").schema)
    source = Stream(SourceName("s"), Schema(fields), "s")
    for count in (1, 40):
        assert (
            told(source, [b'{"meta": {}}'] * count)
            == ["column fw: missing or NULL, but declared NOT NULL"] * count
        )


def test_paths_alone_and_the_event_time() -> None:
    schema = Schema((Field("at", TIMESTAMP, path=("meta", "at")),))
    source = Stream(SourceName("s"), schema, "s", timestamp_column="at")
    value = b'{"meta": {"at": %d}, "": 5}' % APPEND_MS
    for count in (1, 40):
        n = count
        decoded = decode(source, [value] * n, np.zeros(n), np.arange(n), np.full(n, APPEND_MS))
        assert decoded.batch.timestamp.tolist() == [APPEND_MS] * n
    assert told(source, [b'{"id": 1}'] * 40) == ["column at: the event timestamp is missing or NULL"] * 40


def test_paths_of_a_table() -> None:
    fields = (Field("k", STRING, nullable=False), Field("fw", STRING, path=("meta", "fw")))
    table = Stream(SourceName("t"), Schema(fields), "t", key=("k",))
    for n in (1, 40):
        decoded = decode_keyed(
            table,
            [b"a"] * n,
            [b'{"meta": {"fw": "1"}, "k": 5}'] * n,
            np.zeros(n),
            np.arange(n),
            np.full(n, 7),
        )
        assert not decoded.bad
        assert decoded.batch.columns[1].to_arrow().to_pylist() == ["1"] * n


_steps = st.one_of(st.text(max_size=5), st.integers(0, 1_000_000))


@given(st.lists(_steps, max_size=5).map(tuple))
@example(("a", 0, 'q"\\', "", "b c", "é", "$x", "1"))
def test_paths_have_a_text(path: Path) -> None:
    assert parse_path(path_text(path)) == path


@pytest.mark.parametrize(
    "text", ["", "a", "$a", "$.", "$[", "$[-1]", "$.a b", "$[*]", "$..a", "$.1", "$" + ".a" * 33]
)
def test_what_is_no_path(text: str) -> None:
    with pytest.raises(NoPath):
        parse_path(text)


def test_a_backslash_in_quotes_stands_before_the_character_that_is_meant() -> None:
    assert parse_path(r'$."a\"b\\c"."\u0061\n"') == ('a"b\\c', "u0061n")
    assert parse_path(r"$['d\'e']") == ("d'e",)


def test_paths_are_written_and_read_again() -> None:
    assert stream_from_dict(json.loads(json.dumps(stream_as_dict(ALL)))) == ALL
