"""What is inferred from a sample reads all of it: the statement is parsed, and tried as the broker reads."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.http.proposal import propose
from broker.http.sampled_topic import Topic
from engine.language.query import CreateStream
from engine.language.statements import parse
from engine.model.limits import Limits
from topics.shown import text_of

NOW_MS = 1_780_000_000_000


@dataclass(frozen=True)
class Message:
    """A record as Kafka's client gives it, a second after the one before."""

    at: int
    data: bytes | None
    name: bytes | None = None
    headers_: tuple[tuple[str, bytes], ...] = ()

    def key(self) -> bytes | None:
        return self.name

    def value(self) -> bytes | None:
        return self.data

    def partition(self) -> int:
        return self.at % 2

    def offset(self) -> int:
        return self.at // 2

    def timestamp(self) -> tuple[int, int]:
        return 1, NOW_MS + 1_000 * self.at

    def headers(self) -> Any:
        return self.headers_


def inferred(
    values: Sequence[Any], keys: Sequence[bytes] = (), *, compacted: bool = False, stamps: bool = False
) -> dict[str, Any]:
    data = [one if isinstance(one, bytes | None) else json.dumps(one).encode() for one in values]
    messages = [Message(at, one, keys[at] if keys else None) for at, one in enumerate(data)]
    messages.sort(key=lambda one: (one.partition(), one.offset()))
    return propose(Topic("t", "s", 2, len(data), compacted, stamps), messages, Limits())


def types(found: dict[str, Any]) -> dict[str, str]:
    """Of the columns, but for the log's timestamp, which is told where no other is."""
    return {one["name"]: one["type"] for one in found["columns"] if one["name"] != "_timestamp"}


def codes(found: dict[str, Any]) -> list[str]:
    return [one["code"] for one in found["warnings"]]


def is_json(data: bytes) -> bool:
    """Whether it is so without NaN and Infinity, which Python writes and JSON lacks."""

    def refuse(name: str) -> None:
        raise ValueError(name)

    try:
        json.loads(data, parse_constant=refuse)
    except ValueError:
        return False
    return True


names = st.one_of(
    st.sampled_from(["id", "ts", "Ts", "deviceId", "deviceid", "select", 'a"b', "a b", "É", "é", "\x00", ""]),
    st.text(max_size=4),
)
scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.integers(NOW_MS - 10**10, NOW_MS + 10**10),
    st.floats(),
    st.text(max_size=5),
    st.sampled_from(["2025-06-01", "2025-06-01T10:00:00Z", "2025-13-01", "1.50", "12", "\ud800"]),
)
nested = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(names, inner, max_size=2)
)


@given(st.lists(st.dictionaries(names, nested, max_size=6), max_size=8))
def test_statement_reads_every_record_that_is_an_object(records: list[dict[str, Any]]) -> None:
    data = [json.dumps(one).encode() for one in records]
    readable = [one for one in data if is_json(one)]
    found = inferred(data)
    if found["sql"] is None:
        assert not found["columns"]
        return
    assert found["sample"]["read"] == len(readable), found
    assert found["sample"]["late"] == 0
    statement = parse(found["sql"], {}, Limits())
    assert isinstance(statement, CreateStream)
    told = [(one.name, str(one.type)) for one in statement.stream.schema]
    assert told == [(one["name"], one["type"]) for one in found["columns"]]


keys = st.one_of(
    st.integers(-(2**70), 2**70).map(str),
    st.text(max_size=4),
    st.lists(scalars, max_size=3).map(json.dumps),
    st.dictionaries(names, scalars, max_size=2).map(json.dumps),
).map(lambda text: text.encode("utf-8", "replace"))


@given(
    st.lists(st.tuples(keys, st.none() | st.dictionaries(names, scalars, max_size=3)), min_size=1, max_size=5)
)
def test_table_reads_every_key_or_there_is_none(records: list[tuple[bytes, dict[str, Any] | None]]) -> None:
    found = inferred(
        [value for _, value in records], [key for key, _ in records], compacted=True, stamps=True
    )
    if found["kind"] == "table":
        unreadable = sum(
            value is not None and not is_json(json.dumps(value).encode()) for _, value in records
        )
        assert found["sample"]["read"] == len(records) - unreadable, found
    else:
        assert "compacted_without_keys" in codes(found) or not found["columns"]


@pytest.mark.parametrize(
    ("values", "type_"),
    [
        ([1, 2], "BIGINT"),
        ([1, 2.5], "DOUBLE"),
        ([2**63, 1], "DOUBLE"),
        ([1, "2.50"], "DECIMAL(18, 2)"),
        (["1", "2"], "STRING"),
        ([True, None], "BOOLEAN"),
        ([None, None], "STRING"),
        (["2025-06-01", "2024-01-31"], "DATE"),
        (["2025-06-01", "2025-02-30"], "STRING"),
        (["2025-06-01 10:00:00", "2025-06-01T10:00:00.5+02:00"], "TIMESTAMP"),
        ([NOW_MS - 5, NOW_MS], "TIMESTAMP"),
        ([NOW_MS // 1_000], "BIGINT"),
        ([NOW_MS - 40 * 86_400_000], "BIGINT"),
    ],
)
def test_type_of_a_member(values: list[Any], type_: str) -> None:
    assert types(inferred([{"v": one, "w": 1} for one in values]))["v"] == type_


def test_event_time_is_what_every_record_has_with_a_lateness_for_the_sample() -> None:
    def record(at: int) -> dict[str, Any]:
        return {
            "ts": NOW_MS + 1_000 * at - (7_000 if at == 6 else 0),
            "createdAt": "2020-01-01T00:00:00Z",
            "seen_at": NOW_MS if at else None,
            "at_s": NOW_MS // 1_000 + at,
        }

    found = inferred([record(at) for at in range(30)])
    assert "timestamp = 'ts', lateness = '5 seconds'" in found["sql"]
    assert "ts TIMESTAMP NOT NULL" in found["sql"]
    assert (found["timestamp"]["unit"], found["timestamp"]["disorder_ms"]) == ("ms", 5_000)
    assert types(found)["createdat"] == types(found)["seen_at"] == "TIMESTAMP"
    (seconds,) = (one for one in found["columns"] if one["name"] == "at_s")
    assert "seconds" in seconds["guessed"]


def test_members_of_nested_objects_are_columns_with_a_path() -> None:
    def record(at: int) -> dict[str, Any]:
        return {
            "id": at,
            "meta": {"fwVersion": f"v{at}", "at": NOW_MS + 1_000 * at, "geo": {"lat": 0.5 + at, "a b": True}},
            "meta_at": "x",
            "deep": {"a": {"b": {"c": {"d": 1}}}},
            "few": {"a": 1} if at else 5,
            "tags": ["a", None],
            "sizes": [at, 1],
            "mixed": [1, "x", {"y": 1}],
            "empty": [],
        }

    found = inferred([record(at) for at in range(30)])
    assert types(found) == {
        "id": "BIGINT",
        "meta_fwversion": "STRING",
        "meta_at_2": "TIMESTAMP",
        "meta_geo_lat": "DOUBLE",
        "meta_geo_a_b": "BOOLEAN",
        "meta_at": "STRING",
        "few_a": "BIGINT",
        "deep_a_b_c": "JSON",
        "tags": "ARRAY<STRING>",
        "sizes": "ARRAY<BIGINT>",
        "mixed": "JSON",
        "empty": "ARRAY<STRING>",
    }
    assert "meta_fwversion STRING PATH '$.meta.fwVersion'" in found["sql"]
    assert """meta_geo_a_b BOOLEAN PATH '$.meta.geo."a b"'""" in found["sql"]
    assert "meta_at_2 TIMESTAMP NOT NULL PATH '$.meta.at'" in found["sql"]
    assert "timestamp = 'meta_at_2'" in found["sql"]
    assert not found["left_out"]
    assert found["sample"]["read"] == 30


def test_what_cannot_be_a_column_is_left_out_with_the_reason() -> None:
    found = inferred([{"n": {"a": 1}, "m": 1, "v": 1}, {"n": [1], "m": "x", "v": 2}, b'{"v":3,"d":1,"d":2}'])
    assert types(found) == {"n": "JSON", "v": "BIGINT"}
    told = {one["member"]: one["reason"] for one in found["left_out"]}
    assert ("mixed" in told["m"], "twice" in told["d"]) == (True, True)
    assert found["sample"]["read"] == 3
    assert {"few_records", "member_left_out"} <= {*codes(found)}


@pytest.mark.parametrize(
    ("usual", "odd", "type_"),
    [
        (7, "n/a", "BIGINT"),
        (7.5, {"a": 1}, "DOUBLE"),
        ("x", 7, "STRING"),
        (True, "yes", "BOOLEAN"),
        (NOW_MS, "soon", "TIMESTAMP"),
        ("2025-06-01T10:00:00Z", True, "TIMESTAMP"),
    ],
)
def test_one_record_of_many_that_does_not_fit_leaves_the_column(usual: Any, odd: Any, type_: str) -> None:
    found = inferred([{"v": odd if at == 13 else usual, "w": at} for at in range(40)])
    assert types(found) == {"v": type_, "w": "BIGINT"}
    (column,) = (one for one in found["columns"] if one["name"] == "v")
    assert column["misfits"] == 1
    assert column["guessed"].startswith(f"1 of 40 records do not fit {type_} and give no row")
    assert (found["sample"]["read"], found["left_out"]) == (39, [])
    assert {"column_guessed", "records_unreadable"} <= {*codes(found)}


def test_records_that_do_not_fit_leave_a_column_out_where_they_are_many() -> None:
    assert types(inferred([{"v": "n/a" if at % 10 == 3 else at, "w": at} for at in range(40)])) == {
        "w": "BIGINT"
    }
    assert types(inferred([{"v": "n/a" if at == 3 else at, "w": at} for at in range(19)])) == {"w": "BIGINT"}


def test_member_that_one_record_gives_twice_is_a_column() -> None:
    found = inferred([*({"v": at} for at in range(40)), b'{"v":3,"v":4}'])
    assert (types(found), found["columns"][0]["misfits"], found["sample"]["read"]) == ({"v": "BIGINT"}, 1, 40)


@pytest.mark.parametrize("odd", [None, "soon", NOW_MS // 1_000, NOW_MS * 10])
def test_event_time_that_one_record_of_many_lacks_is_taken(odd: Any) -> None:
    found = inferred([{"ts": odd if at == 13 else NOW_MS + 1_000 * at, "v": at} for at in range(40)])
    assert "timestamp = 'ts'" in found["sql"]
    assert found["sample"]["read"] == 39


def test_topics_without_json_objects_give_no_statement() -> None:
    for values, code in (
        ([], "topic_empty"),
        ([b"\0\0\0\0\1abc"], "not_json"),
        ([b'{"cut": ', b'{"a" 1}', None], "not_json"),
    ):
        found = inferred(values)
        assert (found["sql"], codes(found)) == (None, [code])
    assert "Avro" in inferred([b"\0\0\0\0\1abc"])["warnings"][0]["message"]


def test_without_an_instant_the_logs_timestamp_is_event_time() -> None:
    found = inferred([{"v": at} for at in range(40)])
    assert found["timestamp"] == {
        "column": "_timestamp", "unit": "ms", "from_ms": NOW_MS, "to_ms": NOW_MS + 39_000, "disorder_ms": 0,
        "lateness_ms": 0,
    }  # fmt: skip
    assert found["sql"].endswith(
        "_timestamp TIMESTAMP NOT NULL\n) WITH (topic = 't', timestamp = '_timestamp')"
    )
    assert (found["sample"]["read"], codes(found)) == (40, ["column_guessed"])
    stamped = inferred([{"v": at} for at in range(40)], stamps=True)
    assert (stamped["timestamp"], "_timestamp" in stamped["sql"]) == (None, False)


def test_a_member_with_the_name_of_what_tells_of_the_record_is_read_by_a_path() -> None:
    found = inferred([{"_offset": 5, "_key": "x", "ts": NOW_MS + at} for at in range(40)])
    assert [(one["name"], one["path"]) for one in found["columns"]] == [
        ("_offset_2", "$._offset"), ("_key_2", "$._key"), ("ts", None),
    ]  # fmt: skip
    assert found["sample"]["read"] == 40


@pytest.mark.parametrize(
    ("keys", "columns"),
    [
        ([b"N1", b"N2"], {"tail": "STRING"}),
        ([b"7", b"8"], {"key": "BIGINT"}),
        ([b'["a", 1]', b'["b", 2]'], {"key_1": "STRING", "key_2": "BIGINT"}),
        ([b'{"Leg": 1, "day": "2025-06-01"}'] * 2, {"leg": "BIGINT", "day": "DATE"}),
        ([b"x", b"7"], {"key": "STRING"}),
    ],
)
def test_key_of_a_table(keys: list[bytes], columns: dict[str, str]) -> None:
    found = inferred([{"tail": "N1", "seats": 3}, {"tail": "N2"}], keys, compacted=True, stamps=True)
    assert found["sql"].startswith("CREATE TABLE s")
    assert {name: types(found)[name] for name in found["key"]} == columns
    assert found["sample"]["read"] == 2


def test_texts_of_records_are_cut_between_characters() -> None:
    cut = text_of("aé".encode(), 2)
    assert cut is not None
    assert (cut.text, cut.bytes, cut.cut, cut.is_hex) == ("a", 3, True, False)
    binary = text_of(b"\xff\x00abc", 4)
    assert binary is not None
    assert (binary.text, binary.cut, binary.is_hex) == ("ff00", True, True)


ONE_UUID, OTHER_UUID = "3f2504e0-4f89-11d3-9a0c-0305e82c3301", "3F2504E0-4F89-11D3-9A0C-0305E82C3302"


def test_texts_that_are_uuids_are_of_that_type() -> None:
    found = inferred([{"u": ONE_UUID, "v": ONE_UUID}, {"u": OTHER_UUID, "v": "other"}, {"u": None}])
    assert types(found) == {"u": "UUID", "v": "STRING"}


def test_an_array_of_objects_with_equal_members_is_of_structs() -> None:
    lines = [{"sku": "a", "n": 1, "size": {"x": 1.5}}, {"n": 2, "sku": None, "size": None}]
    found = inferred([{"lines": lines, "other": [{"a": 1}, {"b": 1}]}, {"lines": [], "other": [{"a": 1}, 2]}])
    assert types(found) == {
        "lines": "ARRAY<STRUCT<sku STRING, n BIGINT, size STRUCT<x DOUBLE>>>",
        "other": "JSON",
    }
