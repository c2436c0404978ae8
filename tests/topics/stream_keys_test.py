"""Columns of a stream that are read from keys: as of a table, but for keys and values that are NULL."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.language.query import CreateStream, Insert
from engine.language.statements import parse
from engine.model.limits import Limits
from engine.model.plain import stream_as_dict, stream_from_dict
from engine.model.record_format import RecordFormat
from engine.model.source import SourceName, Stream
from tests.strategies import examples
from topics.codec import Decoded
from topics.formats.metadata import Written
from topics.keyed import decode_records
from tureen.errors import NotSupported

Records = list[tuple[bytes | None, bytes | None]]


def source(sql: str) -> Stream:
    made = parse(sql, {}, Limits())
    assert isinstance(made, CreateStream)
    assert stream_from_dict(stream_as_dict(made.stream)) == made.stream
    return made.stream


def decoded(of: Stream, records: Records) -> Decoded:
    keys, values = [key for key, _ in records], [value for _, value in records]
    return decode_records(of, Written(values, [0] * len(values), range(len(values)), [7] * len(values), keys))


def rows(found: Decoded) -> list[dict[str, Any]]:
    return found.batch.to_arrow().to_pylist()


def reasons(found: Decoded) -> dict[int, str]:
    return {one.place: one.reason for one in found.bad}


ONE = source("CREATE STREAM s (k INTEGER KEY, v DOUBLE)")
TWO = source("CREATE STREAM s (a STRING KEY, v DOUBLE, b BIGINT NOT NULL KEY)")
KEYS = st.sampled_from([b"1", b"[3]", b'{"k": 4}', b'{"x": 4}', b'"x"', b"", None, b"1,2", b"null", b"{"])
VALUES = st.sampled_from([b'{"v": 1}', b'{"v": 2.5, "k": 9}', b"{}", b'{"v": "x"}', b"{", None])


@settings(max_examples=examples(200))
@given(
    st.lists(st.tuples(KEYS, VALUES), max_size=12)
    | st.lists(st.tuples(KEYS, VALUES), min_size=130, max_size=140)
)
def test_a_stream_reads_keys_as_a_table_does(records: Records) -> None:
    table = source("CREATE TABLE s (k INTEGER PRIMARY KEY, v DOUBLE)")
    found, other = decoded(ONE, records), decoded(table, records)
    told, there = reasons(found), reasons(other)
    expected: list[dict[str, Any]] = []
    of_table = {int(offset): row for offset, row in zip(other.batch.offset, rows(other), strict=True)}
    alone = decoded(source("CREATE STREAM s (v DOUBLE)"), [(None, value) for _, value in records])
    of_value = {int(offset): row for offset, row in zip(alone.batch.offset, rows(alone), strict=True)}
    for place, (key, value) in enumerate(records):
        missing = key is None or there.get(place, "").startswith("key: column k: missing")
        if value is None:
            assert place in told
        elif missing and place in of_value:
            expected.append({"k": None, **of_value[place]})
        elif missing:
            assert told[place] == reasons(alone)[place]
        elif place in of_table:
            expected.append({"k": of_table[place]["k"], "v": of_table[place]["v"]})
        else:
            assert told[place] == there[place]
    assert rows(found) == expected
    assert len(expected) + len(told) == len(records)


@pytest.mark.parametrize(
    ("key", "row", "reason"),
    [
        (b'["x", 7]', {"a": "x", "v": 1.0, "b": 7}, None),
        (b'{"b": 7}', {"a": None, "v": 1.0, "b": 7}, None),
        (None, None, "key: column b: missing or NULL, but declared NOT NULL"),
        (b'["x", null]', None, "key: column b: missing or NULL, but declared NOT NULL"),
        (b'["x"]', None, "key: 1 values for 2 key columns"),
    ],
)
def test_keys_of_several_columns(key: bytes | None, row: Any, reason: str | None) -> None:
    found = decoded(TWO, [(key, b'{"v": 1, "a": "passed over"}')])
    assert (rows(found), reasons(found)) == ([row] if row else [], {0: reason} if reason else {})


def test_the_column_of_event_time_in_a_key_is_there() -> None:
    of = source("CREATE STREAM s (at TIMESTAMP KEY, v DOUBLE) WITH (timestamp = 'at')")
    found = decoded(of, [(b"6", b"{}"), (None, b"{}"), (b"null", b"{}")])
    assert found.batch.timestamp.tolist() == [6]
    assert list(reasons(found)) == [1, 2]


@pytest.mark.parametrize("format_", ["csv", "raw"])
def test_values_of_lines_have_no_column_of_the_key(format_: str) -> None:
    of = source(f"CREATE STREAM s (k BIGINT KEY, line STRING) WITH (format = '{format_}')")
    assert rows(decoded(of, [(b"5", b"abc")])) == [{"k": 5, "line": "abc"}]


def test_a_stream_of_changes_with_keys_passes_over_tombstones() -> None:
    of = replace(ONE, format=RecordFormat("debezium", changelog=True))
    event = b'{"before": null, "after": {"v": 2}, "op": "c"}'
    found = decoded(of, [(b'{"k": 1}', event), (b'{"k": 1}', None), (b"{", None), (b"{", event)])
    assert (rows(found), sorted(found.tombstones), list(reasons(found))) == (
        [{"k": 1, "v": 2.0}],
        [1, 2],
        [3],
    )


def test_insert_writes_the_key_and_that_of_a_select_has_none() -> None:
    known = {ONE.name: ONE, SourceName("other"): replace(ONE, name=SourceName("other"))}
    made = parse("INSERT INTO s (v, k) VALUES (1.5, 7), (2.5, NULL)", known, Limits())
    assert isinstance(made, Insert)
    assert [(row.key, dict(row.members)) for row in made.rows] == [(7, {"v": 1.5}), (None, {"v": 2.5})]
    parse("INSERT INTO s (v) SELECT v FROM other", known, Limits())
    with pytest.raises(NotSupported, match="k is read from the record's key"):
        parse("INSERT INTO s SELECT k, v FROM other", known, Limits())
