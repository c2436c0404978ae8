"""Changes to records and back: keys, values and headers in every format and encoding."""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest
from confluent_kafka.schema_registry.avro import AvroDeserializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf.message_factory import GetMessageClass
from hypothesis import given
from hypothesis import strategies as st

from engine.model.approximation import Approximation
from engine.model.changes import Changes, Operator
from tests.topics.results import (
    AT,
    COLUMNS,
    FULL,
    INSTANT,
    KEYED,
    NULLS,
    WIDE,
    Change,
    Row,
    changes,
    headers,
    pairs,
    registered,
    to,
    written,
)
from topics.destination import Destination, Encoding, Format
from topics.formats.protobuf import FramedProtobuf
from topics.formats.protobuf_schema import message_at, parse_schema
from topics.results import Records, RowsTooLarge, encode, part, partition_of
from topics.results_codec import JsonCodec
from topics.results_protobuf import ProtobufCodec, field_numbers, protobuf_texts
from topics.results_schema import ResultSchemas


def plain(records: Records) -> list[tuple[Any, Any]]:
    return [(json.loads(key), None if value is None else json.loads(value)) for key, value in pairs(records)]


def test_log_of_rows_that_came_has_no_record_for_those_that_an_altered_text_leaves_out() -> None:
    given: list[Change] = [("a", -1, 6, (1, "x")), ("a", 1, 6, (2, "y")), ("b", 1, 6, (3, "z"))]
    records = written(changes(given), to("upsert", key=None, operator="istream"))
    assert plain(records) == [
        ({"query": "a", "row": "77-1"}, {"k": 2, "v": "y"}),
        ({"query": "b", "row": "77-0"}, {"k": 3, "v": "z"}),
    ]
    (went, came, _) = plain(written(changes(given), to("diff", key=None, operator="istream")))
    assert (went[1]["weight"], came[1]["weight"]) == (-1, 1)


def test_upsert_by_key_writes_rows_and_deletions_and_one_record_where_a_row_is_replaced() -> None:
    key_a, key_b = {"query": "a", "key": {"k": 1}}, {"query": "b", "key": {"k": 1}}
    records = written(changes(KEYED), to("upsert", key=(0,)))
    assert plain(records) == [
        (key_a, {"k": 1, "v": "x"}),
        (key_a, {"k": 1, "v": "y"}),
        (key_a, None),
        (key_b, None),
        (key_b, {"k": 1, "v": "y"}),
    ]
    assert headers(records) == [
        {"tureen-position": b"3-77", "tureen-at-ms": str(at).encode()} for at in (5, 6, 7, 6, 7)
    ]
    assert records.partitions is None
    assert records.size == sum(len(key) + len(value or b"") for key, value in pairs(records))


@pytest.mark.parametrize("columns", [COLUMNS, pa.schema([("k", pa.int64()), ("v", pa.list_(pa.string()))])])
def test_records_of_queries_that_are_not_exact_have_their_tags(columns: pa.Schema) -> None:
    value = "x" if columns is COLUMNS else ["x"]
    given: list[Change] = [("a", 1, 5, (1, value)), ("b", 1, 5, (2, value)), ("b", 1, 6, (3, value))]
    tag = Approximation("sample", "trips", "declared", 10.0, "percent")
    text = b'[{"kind":"sample","where":"trips","origin":"declared","amount":10.0,"unit":"percent"}]'
    one = changes(given, columns)
    for tagged, told in (({}, []), ({"z": (tag,)}, []), ({"b": (tag,)}, [b"[]", text, text])):
        records = written(replace(one, approximation=tagged), to("upsert", key=(0,)))
        assert [
            own["tureen-approximation"] for own in headers(records) if "tureen-approximation" in own
        ] == told
    alone = replace(changes(given[1:], columns), approximation={"b": (tag,), "z": ()})
    assert [own["tureen-approximation"] for own in headers(written(alone, to("diff", key=None)))] == [
        text,
        text,
    ]


def test_debezium_tells_before_and_after() -> None:
    told = [value for _, value in plain(written(changes(KEYED), to("debezium", key=(0,))))]
    x, y = {"k": 1, "v": "x"}, {"k": 1, "v": "y"}
    assert told == [
        {"before": None, "after": x, "op": "c", "ts_ms": 5},
        {"before": x, "after": y, "op": "u", "ts_ms": 6},
        {"before": y, "after": None, "op": "d", "ts_ms": 7},
        {"before": x, "after": None, "op": "d", "ts_ms": 6},
        {"before": None, "after": y, "op": "c", "ts_ms": 7},
    ]
    snapshot = changes([("a", 1, 0, (1, "x"))], occasion="snapshot")
    records = written(snapshot, to("debezium", key=(0,)))
    assert plain(records)[0][1]["op"] == "r"
    assert headers(records)[0]["tureen-occasion"] == b"snapshot"


def test_versions_that_follow_each_other_at_one_instant_are_written_one_by_one() -> None:
    """As a table tells them that is read while the streams beside it stand still."""
    versions: list[Change] = [
        ("a", -1, 5, (1, "x")),
        ("a", 1, 5, (1, "y")),
        ("a", -1, 5, (1, "y")),
        ("a", 1, 5, (1, "z")),
        ("a", 1, 5, (2, "x")),
        ("a", -1, 5, (2, "x")),
    ]
    x, y, z, w = ({"k": k, "v": v} for k, v in ((1, "x"), (1, "y"), (1, "z"), (2, "x")))
    told = plain(written(changes(versions), to("debezium", key=(0,))))
    assert [(value["before"], value["after"]) for _, value in told] == [(x, y), (y, z), (None, w), (w, None)]
    assert [value for _, value in plain(written(changes(versions), to("upsert", key=(0,))))] == [
        y,
        z,
        w,
        None,
    ]


def test_diff_tells_every_change_with_its_weight() -> None:
    told = plain(written(changes(KEYED), to("diff", key=(0,))))
    assert [value["weight"] for _, value in told] == [1, -1, 1, -1, -1, 1]
    assert told[1] == ({"query": "a", "key": {"k": 1}}, {"row": {"k": 1, "v": "x"}, "weight": -1})


def test_rows_without_a_key_are_told_apart_by_hash_and_copy() -> None:
    row = (1, "x")
    given: list[Change] = [("a", 1, 1, row), ("a", 1, 2, row), ("a", -1, 3, row), ("a", 1, 3, (2, "x"))]
    told = plain(written(changes(given, copies=True), to("upsert", key=None)))
    digest = hashlib.sha256(b'{"k":1,"v":"x"}').hexdigest()[:32]
    assert [key["row"] for key, _ in told[:3]] == [f"{digest}-1", f"{digest}-2", f"{digest}-2"]
    assert [value for _, value in told] == [{"k": 1, "v": "x"}, {"k": 1, "v": "x"}, None, {"k": 2, "v": "x"}]
    diff = plain(written(changes(given), to("diff", key=None)))
    assert {key["row"] for key, _ in diff[:3]} == {digest}


def test_a_keyless_aggregate_has_one_key() -> None:
    told = plain(written(changes(KEYED[:3]), to("upsert", key=())))
    assert [key for key, _ in told] == [{"query": "a", "key": {}}] * 2
    assert [value["v"] for _, value in told] == ["x", "y"]


@pytest.mark.parametrize("form", ["upsert", "debezium", "diff"])
def test_what_only_came_is_numbered_through_the_step(form: Format) -> None:
    one = changes([("a", 1, 1, (1, "x")), ("a", 1, 2, (1, "x")), ("b", 1, 1, (1, "x"))])
    numbered: dict[str, int] = {}
    keys: list[str] = []
    for _ in range(2):
        records = encode(
            one,
            to(form, key=None, operator="istream"),
            AT,
            JsonCodec(),
            numbered=numbered,
            partitions=1,
            bytes_max=9_999,
        )
        keys += [key["query"] + key["row"] for key, _ in plain(records)]
    assert keys == ["a77-0", "a77-1", "b77-0", "a77-2", "a77-3", "b77-1"]
    went = plain(written(changes([("a", -1, 1, (1, "x"))]), to(form, key=None, operator="dstream")))
    x = {"k": 1, "v": "x"}
    assert (
        went[0][1]
        == {
            "upsert": x,
            "debezium": {"before": x, "after": None, "op": "d", "ts_ms": 1},
            "diff": {"row": x, "weight": -1},
        }[form]
    )


def test_records_of_a_query_are_in_one_partition_of_a_shared_topic() -> None:
    shared = Destination("t.results", True, True, "upsert", "json", "changes", (0,))
    records = written(changes(KEYED), shared)
    assert records.partitions is not None
    assert records.partitions.tolist() == [partition_of(key["query"], 4) for key, _ in plain(records)]
    records.spread(1)
    assert records.partitions.tolist() == [0] * len(records)
    assert partition_of("a", 4) == 3


def test_a_record_that_is_too_large_names_its_query() -> None:
    one = changes([("a", 1, 1, (1, "x")), ("b", 1, 1, (1, "x" * 500)), ("b", 1, 2, (2, "x"))])
    numbered: dict[str, int] = {}
    with pytest.raises(RowsTooLarge) as refused:
        encode(one, to("upsert", key=(0,)), AT, JsonCodec(), numbered=numbered, partitions=1, bytes_max=500)
    assert (refused.value.query_ids, refused.value.limit, numbered) == ({"b"}, "result_record_bytes_max", {})


def test_part_of_changes() -> None:
    one = changes([*KEYED, ("c", 1, 9, (4, "z"))], copies=True)
    assert part(one, [0, 1, 2]) is one
    some = part(one, [0, 2])
    assert some.query_ids == ("a", "c")
    assert some.starts.tolist() == [0, 4, 5]
    assert some.table.column("k").to_pylist() == [1, 1, 1, 1, 4]
    assert (some.weights.tolist(), some.at_ms.tolist()) == ([1, -1, 1, -1, 1], [5, 6, 6, 7, 9])
    assert pairs(written(some, to("upsert", key=(0,)))) == [
        *pairs(written(part(one, [0]), to("upsert", key=(0,)))),
        *pairs(written(part(one, [2]), to("upsert", key=(0,)))),
    ]


# --- folds ----------------------------------------------------------------------------------------


@st.composite
def histories(draw: st.DrawFn) -> tuple[list[Change], list[Row]]:
    """Changes of a keyed answer over some instants, each netted, and the answer at the end."""
    answer: dict[int, str] = {}
    told: list[Change] = []
    for at in range(draw(st.integers(1, 6))):
        wanted = draw(st.dictionaries(st.integers(0, 3), st.sampled_from("xyz"), max_size=4))
        went = [("a", -1, at, row) for row in answer.items() if row not in wanted.items()]
        came = [("a", 1, at, row) for row in wanted.items() if row not in answer.items()]
        told += went + came
        answer = wanted
    return told, list(answer.items())


@given(histories(), st.sampled_from([(0,), None]), st.sampled_from(["upsert", "debezium", "diff"]))
def test_folded_records_are_the_answer(
    history: tuple[list[Change], list[Row]], key: tuple[int, ...] | None, form: Format
) -> None:
    told, answer = history
    if not told:
        return
    rows: Counter[Row] = Counter()
    by_key: dict[bytes, Row] = {}
    records = written(changes(told, copies=True), to(form, key=key))
    for name, value in pairs(records):
        found = None if value is None else json.loads(value)
        if form == "diff":
            rows[tuple(found["row"].values())] += found["weight"]
        else:
            row = found if form == "upsert" else found["after"]
            if form == "debezium":
                before = by_key.get(name)
                assert found["before"] == (None if before is None else dict(zip("kv", before, strict=True)))
            if row is None:
                del by_key[name]
            else:
                by_key[name] = tuple(row.values())
    assert +rows + Counter(by_key.values()) == Counter(answer)
    assert min(rows.values(), default=0) >= 0


# --- few at a time -----------------------------------------------------------------------------------

PLAIN = {
    pa.bool_(): st.booleans(),
    pa.int32(): st.integers(-(2**31), 2**31 - 1),
    pa.int64(): st.integers(-(2**63), 2**63 - 1),
    pa.float64(): st.floats() | st.sampled_from([-0.0, 1e16, 1e-7, 5e-324]),
    pa.string(): st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
    | st.sampled_from(['"', "\\", "\x00", "\x7f", "\u2028", "é", "\n"]),
    # Arrow writes no year of five digits; NULL and years of fewer than four digits among them.
    pa.timestamp("ms"): st.integers(-62_135_596_800_000, 253_402_300_799_999),
    pa.decimal128(5, 2): st.decimals(-999, 999, places=2),
}


@st.composite
def few(draw: st.DrawFn) -> Changes:
    """Up to 5 changes of up to 3 queries."""
    types = draw(st.lists(st.sampled_from(list(PLAIN)), min_size=1, max_size=4))
    columns = pa.schema([(draw(st.sampled_from(['a"', "é", "c"])) + str(n), t) for n, t in enumerate(types)])
    row = st.tuples(*(st.none() | PLAIN[one] for one in types))
    known = draw(st.lists(row, min_size=1, max_size=3))
    change = st.tuples(
        st.sampled_from('a"'), st.sampled_from([1, -1]), st.integers(0, 2), st.sampled_from(known)
    )
    told: list[Change] = sorted(draw(st.lists(change, min_size=1, max_size=5)), key=lambda one: one[:1])
    return changes(told, columns, draw(st.sampled_from(["step", "snapshot", "end"])), copies=True)


@given(
    few(),
    st.sampled_from(["upsert", "debezium", "diff"]),
    st.sampled_from(["changes", "istream", "dstream", "rstream"]),
    st.sampled_from([None, (), (0,)]),
    st.booleans(),
    st.sampled_from([JsonCodec(), JsonCodec(7, 8)]),
)
def test_few_changes_are_written_as_many_are(
    one: Changes,
    form: Format,
    operator: Operator,
    key: tuple[int, ...] | None,
    shared: bool,
    codec: JsonCodec,
) -> None:
    where = Destination("t", form == "upsert", shared, form, "json", operator, key)
    told: list[Any] = []
    for most in (0, 100):
        numbered = {"a": 3}
        with patch("topics.results.FEW_CHANGES", most):
            records = encode(one, where, AT, codec, numbered=numbered, partitions=4, bytes_max=1 << 20)
        partitions = None if records.partitions is None else records.partitions.tolist()
        told.append((pairs(records), headers(records), records.size, partitions, numbered))
    assert told[0] == told[1]


def test_an_instant_in_no_year_of_four_digits_is_written_as_among_many() -> None:
    columns = pa.schema([("t", pa.timestamp("ms"))])
    for at in (253_402_300_800_000, -62_135_596_800_001):
        one = changes([("a", 1, 1, (at,))], columns)
        alone = pairs(written(one, to("diff", key=None)))
        with patch("topics.results.FEW_CHANGES", 0):
            assert pairs(written(one, to("diff", key=None))) == alone


# --- with a registry ------------------------------------------------------------------------------


def read(client: Any, encoding: Encoding, data: bytes | None, field: str) -> Any:
    """As a program of somebody else would."""
    if encoding == "avro":
        reader: Any = AvroDeserializer(client)
    elif encoding == "protobuf":
        return read_protobuf(client, data)
    else:
        reader = JSONDeserializer(None, schema_registry_client=client)
    return reader(data, SerializationContext("t.results.x", field))


def read_protobuf(client: Any, data: bytes | None) -> Any:
    """By a class that is made of the registered schema, as one that protoc generates is."""
    if data is None:
        return None
    text = client.get_schema(int.from_bytes(data[1:5], "big")).schema_str
    first = GetMessageClass(message_at(parse_schema(text), [0]))
    message = ProtobufDeserializer(first, {"use.deprecated.format": False})(data, None)
    return as_others_have_it(message)


def _column(field: Any) -> str:
    """Fields of the record's own have no name beside that of their field."""
    return str(field.name if field.name == "ts_ms" else field.json_name)


def as_others_have_it(message: Any) -> Any:
    """A message as the other formats have it, NULLs and all."""
    if not hasattr(message, "DESCRIPTOR"):
        return message
    name = message.DESCRIPTOR.full_name
    if name == "google.protobuf.Timestamp":
        return message.ToDatetime(tzinfo=UTC)
    if name.endswith("_array"):
        return [as_others_have_it(one.value) if one.HasField("value") else None for one in message.items]
    found = {}
    for field in message.DESCRIPTOR.fields:
        value = getattr(message, field.name)
        there = not field.has_presence or message.HasField(field.name)
        found[_column(field)] = as_others_have_it(value) if there else None
    return found


@pytest.mark.parametrize("encoding", ["avro", "json_schema", "protobuf"])
@pytest.mark.parametrize("form", ["upsert", "debezium", "diff"])
@pytest.mark.parametrize("key", [(2, 5), None])
def test_an_independent_reader_gets_every_value(
    form: Format, encoding: Encoding, key: tuple[int, ...] | None
) -> None:
    client, codec = registered(form, encoding, key)
    odd = (False, 1, 1, math.inf, Decimal("0.00"), "", date(1, 1, 1), datetime(9999, 12, 31), [], 3, 4)
    given: list[Change] = [("a", 1, 1, FULL), ("a", 1, 1, NULLS), ("a", 1, 1, odd), ("a", -1, 2, odd)]
    where = Destination("t.results.x", form == "upsert", False, form, encoding, "changes", key)
    whole = changes(given, WIDE, copies=True)
    records = written(whole, where, codec)
    keys = [read(client, encoding, data, MessageField.KEY) for data in records.keys.to_pylist()]
    assert {one["query"] for one in keys} == {"a"}
    assert keys[2] == keys[3]
    if key is None:
        assert len({one["row"] for one in keys}) == 3
    else:
        assert keys[0]["key"] == {"l": 2**63 - 1, "s": 'Zoë "\\\n'}
        assert keys[1]["key"] == {"l": None, "s": None}
    values = [read(client, encoding, data, MessageField.VALUE) for data in records.values.to_pylist()]
    full, nulls, came, went = (inner(form, value) for value in values)
    assert went is None if form == "upsert" else went == came
    if encoding == "avro":
        names = [*WIDE.names[:-2], "COUNT___", "COUNT____2"]
        instants = {"ts": INSTANT, "some": [INSTANT, None]}
        assert full == dict(zip(names, FULL, strict=True)) | instants
        assert nulls == dict(zip(names, NULLS, strict=True))
        assert (came["d"], came["day"], came["some"]) == (math.inf, date(1, 1, 1), [])
    elif encoding == "protobuf":
        texts = {"m": "-12.30", "day": "2013-01-31", "ts": INSTANT, "some": [INSTANT, None]}
        assert full == dict(zip(WIDE.names, FULL, strict=True)) | texts
        assert nulls == dict(zip(WIDE.names, NULLS, strict=True))
        assert (came["d"], came["day"], came["some"]) == (math.inf, "0001-01-01", [])
    else:
        iso = "2013-01-31T09:15:00.000Z"
        texts = {"m": "-12.30", "day": "2013-01-31", "ts": iso, "some": [iso, None]}
        assert full == dict(zip(WIDE.names, FULL, strict=True)) | texts
        assert nulls == dict(zip(WIDE.names, NULLS, strict=True))
        assert (came["d"], came["day"]) == ("Infinity", "0001-01-01")


def inner(form: Format, value: Any) -> Any:
    if form == "upsert" or value is None:
        return value
    if form == "diff":
        assert value["weight"] in (1, -1)
        return value["row"]
    assert value["op"] == ("d" if value["after"] is None else "c")
    return value["after"] or value["before"]


def test_protobuf_of_values_inside_of_values() -> None:
    inner = pa.struct([("x", pa.int32()), ("when", pa.timestamp("ms"))])
    columns = pa.schema(
        [
            ("a", pa.list_(pa.list_(pa.int64()))),
            ("m", pa.map_(pa.string(), inner)),
            ("y", pa.binary()),
            ('"é', inner),
        ]
    )
    row: Row = (
        [[1, None], None, []],
        [("k", {"x": 1, "when": None}), ("l", None)],
        b"\0z",
        {"x": None, "when": INSTANT},
    )
    where = Destination("t.results.x", True, False, "upsert", "protobuf", "changes", None)
    schemas = ResultSchemas("t.results.x", columns, None, "upsert")
    records = written(
        changes([("a", 1, 1, row), ("a", 1, 1, (None,) * 4)], columns, copies=True),
        where,
        ProtobufCodec(schemas, 1, 2),
    )
    text = protobuf_texts(schemas)[1]
    read_again = FramedProtobuf(parse_schema(text)).texts(records.values.to_pylist())
    full, nulls = (json.loads(one or b"") for one in read_again.values)
    when = int(INSTANT.timestamp() * 1_000)
    assert full == {
        "a": {"items": [{"value": {"items": [{"value": 1}, {}]}}, {}, {"value": {"items": []}}]},
        "m": {"entries": {"k": {"value": {"x": 1}}, "l": {}}},
        "y": "AHo=",
        "__": {"when": when},
    }
    assert nulls == {}


def test_numbers_of_protobuf_fields_are_those_of_their_names() -> None:
    names = [f"c{place}" for place in range(200)]
    numbers = dict(zip(names, field_numbers(names), strict=True))
    assert len(set(numbers.values())) == 200
    assert all(0 < one < 2**25 and not 19_000 <= one < 20_000 for one in numbers.values())
    assert field_numbers(["c9", "other", "c3"])[::2] == [numbers["c9"], numbers["c3"]]
    k, n = ("k", pa.int64()), ("n", pa.int32())
    alike = [(one, pa.string()) for one in ("Foo", "foo", "foo_bar", "fooBar", "_", "[x]", "select")]
    found = []
    for some in ([k, n], [*alike, n, k]):
        text = protobuf_texts(ResultSchemas("t", pa.schema(some), (0,), "diff"))[1]
        found.append({one.name: one.number for one in parse_schema(text).message_types_by_name["Row"].fields})
    assert found[0].items() <= found[1].items()
    assert len(found[1]) == 9


def test_names_that_avro_does_not_have() -> None:
    columns = pa.schema([("COUNT(*)", pa.int64()), ("1st", pa.int64()), ("", pa.int64()), ("_", pa.int64())])
    schemas = ResultSchemas("my-service.results.x", columns, (0,), "upsert")
    assert schemas.fields == ("COUNT___", "_1st", "_", "__2")
    told = schemas.avro_value()
    assert told["namespace"] == "my_service.results.x"
    assert [field.get("doc") for field in told["fields"]] == ["COUNT(*)", "1st", "", "_"]
