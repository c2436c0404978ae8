"""Avro: the same rows as other formats, what fastavro reads, and every way to be broken."""

from __future__ import annotations

import base64
import io
import itertools
import json
import math
import random
import re
import resource
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Context, Decimal
from typing import Any
from uuid import UUID

import fastavro
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.model.record_format import RecordFormat
from engine.model.types import BIGINT, DOUBLE, JSON, STRING
from tests.strategies import examples
from tests.topics.formats.avro import SCHEMA, TEXT, encoded, written
from tests.topics.formats.rows import TYPES, Row, expected, read, reasons, rows, seen, stream
from topics.formats.avro import AvroReader
from topics.formats.binary import LEVELS_MAX
from topics.formats.unreadable import UnreadableSchema

BARE = RecordFormat("avro", schema=TEXT, framed=False)
NAMES = [name for name in TYPES if name != "j"]
SCHEMA_TYPES = {name: TYPES[name] for name in NAMES}


@settings(max_examples=examples(60))
@given(rows(NAMES))
def test_rows_of_all_types(given_rows: list[Row]) -> None:
    decoded = read(stream(BARE, SCHEMA_TYPES), written([{**row, "j": None} for row in given_rows]))
    assert reasons(decoded) == {}
    assert seen(decoded) == expected(given_rows, SCHEMA_TYPES)


# --- as fastavro reads


_DECIMALS = Context(prec=60)
_names = st.sampled_from(["a", "b", "c"])
_LEAVES: list[tuple[Any, st.SearchStrategy[Any]]] = [
    ("null", st.none()),
    ("boolean", st.booleans()),
    ("int", st.integers(-(2**31), 2**31 - 1)),
    ("long", st.integers(-(2**63), 2**63 - 1)),
    ("float", st.floats(width=32)),
    ("double", st.floats()),
    ("string", st.text(st.characters(exclude_categories=["Cs"]), max_size=5)),
    ("bytes", st.binary(max_size=5)),
    ({"type": "int", "logicalType": "date"}, st.dates()),
    (
        {"type": "bytes", "logicalType": "decimal", "precision": 25, "scale": 5},
        st.integers(-(10**25) + 1, 10**25 - 1).map(lambda one: _DECIMALS.scaleb(Decimal(one), -5)),
    ),
    (
        {"type": "long", "logicalType": "timestamp-micros"},
        st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30), timezones=st.just(UTC)),
    ),
]


@st.composite
def _schemas(draw: st.DrawFn, depth: int = 2) -> tuple[Any, st.SearchStrategy[Any]]:
    """A schema, and values of it."""
    kind = draw(st.sampled_from(["leaf", "leaf", "array", "map", "record", "enum", "fixed", "union"]))
    if depth == 0 or kind == "leaf":
        return draw(st.sampled_from(_LEAVES))
    name = "N"
    if kind == "enum":
        return {"type": "enum", "name": name, "symbols": ["X", "Y"]}, st.sampled_from(["X", "Y"])
    if kind == "fixed":
        return {"type": "fixed", "name": name, "size": 3}, st.binary(min_size=3, max_size=3)
    if kind == "union":
        inner, values = draw(_schemas(0))
        return (inner, values) if inner == "null" else (["null", inner], st.none() | values)
    if kind == "record":
        fields = {one: draw(_schemas(depth - 1)) for one in draw(st.sets(_names, min_size=1))}
        declared = [{"name": one, "type": inner} for one, (inner, _) in fields.items()]
        values = st.fixed_dictionaries({one: values for one, (_, values) in fields.items()})
        return {"type": "record", "name": name, "fields": declared}, values
    inner, values = draw(_schemas(depth - 1))
    if kind == "array":
        return {"type": "array", "items": inner}, st.lists(values, max_size=3)
    return {"type": "map", "values": inner}, st.dictionaries(_names, values, max_size=3)


def _named(schema: Any, names: Iterator[int]) -> Any:
    """With a name of its own for each type that has one."""
    if isinstance(schema, list):
        return [_named(one, names) for one in schema]
    if not isinstance(schema, dict):
        return schema
    made = {key: _named(one, names) for key, one in schema.items()}
    return made | {"name": f"N{next(names)}"} if schema.get("name") == "N" else made


def plain(value: Any) -> Any:
    """What fastavro reads as the JSON that is made of it."""
    if isinstance(value, dict):
        return {name: plain(one) for name, one in value.items()}
    if isinstance(value, list):
        return [plain(one) for one in value]
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, datetime):
        since = value - datetime(1970, 1, 1, tzinfo=UTC)
        return (since.days * 86_400_000_000 + since.seconds * 1_000_000 + since.microseconds) // 1_000
    if isinstance(value, date | UUID):
        return str(value)
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value


def unlike(found: Any, wanted: Any) -> bool:
    """Whether JSON differs; of numbers the type does not count."""
    return json.dumps(found, sort_keys=True) != json.dumps(wanted, sort_keys=True) and found != wanted


@settings(max_examples=examples(150))
@given(st.data())
def test_values_are_those_of_fastavro(data: st.DataObject) -> None:
    schema, values = data.draw(_schemas())
    schema = _named(schema, itertools.count())
    parsed = fastavro.parse_schema(schema)
    records = [encoded(parsed, one) for one in data.draw(st.lists(values, min_size=1, max_size=4))]
    told = AvroReader(json.dumps(schema)).texts(records)
    assert told.bad == {}
    for record, text in zip(records, told.values, strict=True):
        assert text is not None
        wanted = plain(fastavro.schemaless_reader(io.BytesIO(record), parsed, None))
        assert not unlike(json.loads(text), wanted), (text, wanted)


@pytest.mark.parametrize(
    ("writer", "reader", "value", "found"),
    [
        ("int", "long", 5, 5),
        ("int", "double", 5, 5),
        ("long", "float", -7, -7),
        ("float", "double", 0.5, 0.5),
        ("string", "bytes", "hé", "aMOp"),
        ("bytes", "string", b"h\xc3\xa9", "hé"),
        ("int", ["null", "long"], 5, 5),
        (["null", "int"], "int", 5, 5),
        (["string", "int"], ["int", "string"], "x", "x"),
        ({"type": "array", "items": "int"}, {"type": "array", "items": "double"}, [1], [1]),
        ({"type": "map", "values": "int"}, {"type": "map", "values": "long"}, {"k": 1}, {"k": 1}),
    ],
)
def test_promotions(writer: Any, reader: Any, value: Any, found: Any) -> None:
    record = encoded(fastavro.parse_schema(writer), value)
    told = AvroReader(json.dumps(writer), reader=json.dumps(reader)).texts([record])
    assert [json.loads(text or b"") for text in told.values] == [found]


def record_of(*fields: dict[str, Any], name: str = "R", **more: Any) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": list(fields), **more}


def test_a_reader_has_names_aliases_and_defaults_of_its_own() -> None:
    writer = record_of(
        {"name": "old", "type": "int"},
        {"name": "gone", "type": {"type": "array", "items": "string"}},
        {"name": "same", "type": record_of({"name": "x", "type": "int"}, name="S")},
        {"name": "e", "type": {"type": "enum", "name": "E", "symbols": ["A", "B"]}},
    )
    reader = record_of(
        {"name": "e", "type": {"type": "enum", "name": "E", "symbols": ["B", "C"], "default": "C"}},
        {
            "name": "same",
            "type": record_of(
                {"name": "x", "type": "long"}, {"name": "added", "type": "string", "default": 'd"'}, name="S"
            ),
        },
        {"name": "new", "type": "long", "aliases": ["older", "old"]},
        {"name": "list", "type": {"type": "array", "items": "int"}, "default": [1, 2]},
        {"name": "bytes", "type": "bytes", "default": "\u00ff"},
        {"name": "maybe", "type": ["null", "string"], "default": None},
        {
            "name": "price",
            "type": {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2},
            "default": "\x01",
        },
    )
    record = encoded(fastavro.parse_schema(writer), {"old": 1, "gone": ["x"], "same": {"x": 2}, "e": "A"})
    told = AvroReader(json.dumps(writer), reader=json.dumps(reader)).texts([record])
    assert told.bad == {}
    assert json.loads(told.values[0] or b"") == {
        "new": 1,
        "same": {"x": 2, "added": 'd"'},
        "e": "C",
        "list": [1, 2],
        "bytes": "/w==",
        "maybe": None,
        "price": "0.01",
    }


@pytest.mark.parametrize(
    ("writer", "reader"),
    [
        ("long", "int"),
        ("string", "int"),
        ("double", "float"),
        (record_of({"name": "a", "type": "int"}), record_of({"name": "b", "type": "int"})),
        (record_of(), record_of(name="Q")),
        (record_of({"name": "a", "type": "int"}), record_of({"name": "a", "type": "string"})),
        ({"type": "fixed", "name": "F", "size": 2}, {"type": "fixed", "name": "F", "size": 3}),
        (["int", "string"], "boolean"),
        ({"type": "array", "items": "int"}, {"type": "map", "values": "int"}),
        (
            {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2},
            {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 1},
        ),
    ],
)
def test_what_is_not_read_as_another(writer: Any, reader: Any) -> None:
    with pytest.raises(UnreadableSchema):
        AvroReader(json.dumps(writer), reader=json.dumps(reader))


def test_a_branch_that_the_reader_has_not_is_refused_where_it_stands() -> None:
    writer = ["int", "string"]
    records = [encoded(writer, 1), encoded(writer, "x")]
    told = AvroReader(json.dumps(writer), reader='"long"').texts(records)
    assert told.values[0] == b"1"
    assert told.bad == {1: "the reader's schema has not the type that a union has here"}


def test_columns_are_found_as_members_of_json_are_and_others_passed_over() -> None:
    schema = record_of(
        {"name": "DeviceId", "type": "long"},
        {
            "name": "skipped",
            "type": record_of({"name": "deep", "type": {"type": "array", "items": "double"}}, name="S"),
        },
        {"name": "meta", "type": record_of({"name": "fw", "type": "string"}, name="M")},
    )
    source = stream(
        RecordFormat("avro", schema=json.dumps(schema), framed=False),
        {"deviceid": DOUBLE, "meta": JSON, "missing": STRING},
    )
    record = encoded(
        fastavro.parse_schema(schema), {"DeviceId": 7, "skipped": {"deep": [0.5]}, "meta": {"fw": "1"}}
    )
    assert seen(read(source, [record])) == [{"deviceid": 7.0, "meta": '{"fw":"1"}', "missing": None}]


# --- broken


RECURSIVE = record_of(
    {"name": "next", "type": ["null", "R"]},
    {"name": "all", "type": {"type": "array", "items": "R"}},
)


def test_recursion_is_limited_by_levels() -> None:
    reader = AvroReader(json.dumps(RECURSIVE))
    nexts = LEVELS_MAX - 2  # the innermost has an array
    fine = b"\2" * nexts + b"\0" * (nexts + 2)
    told = reader.texts([fine, b"\2" * nexts, b"\2" * 1_000_000])
    assert told.bad == {
        1: "the record ends within a value",
        2: f"nested deeper than {LEVELS_MAX} levels",
    }


@pytest.mark.parametrize("items", ["null", record_of(), record_of({"name": "n", "type": "null"})])
def test_items_without_bytes_are_as_many_as_the_length_allows(items: Any) -> None:
    many = encoded("long", 2**62) + b"\0"
    told = AvroReader(json.dumps({"type": "array", "items": items})).texts([many, encoded("long", 5) + b"\0"])
    assert told.bad == {0: "it has more values than its length allows"}
    passed_over = record_of(
        {"name": "x", "type": {"type": "array", "items": items}}, {"name": "y", "type": "int"}
    )
    told = AvroReader(json.dumps(passed_over), wanted=lambda name: name == "y").texts([many])
    assert told.bad == {0: "it has more values than its length allows"}


def test_a_text_that_is_too_long_is_refused_however_it_grows() -> None:
    names = record_of(*({"name": f"n{place:0>200}", "type": "null"} for place in range(100)))
    schema = json.dumps({"type": "array", "items": names})
    told = AvroReader(schema).texts([encoded("long", 90) + b"x" * 2_000 + b"\0"])
    assert told.bad == {0: "as JSON it is longer than a record may be"}
    text = encoded("string", "\1" * 300_000)
    assert AvroReader('"string"').texts([text]).bad == {0: "as JSON it is longer than a record may be"}


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ("{", "it is no JSON"),
        ("[]", "a union has at least one branch, and no union inside"),
        ("[[]]", "a union has at least one branch, and no union inside"),
        ('"Unknown"', "there is no type 'Unknown'"),
        ('{"type": "record", "name": "R"}', "it is no Avro schema: 'fields' is missing"),
        ('{"type": "fixed", "name": "F", "size": -1}', "a fixed has a size of 0 or more"),
        ("5", "it is no Avro schema: a type, a name or fields are of another form"),
        (
            '{"type": "array", "items": ' * 200 + '"int"' + "}" * 200,
            "it is nested deeper than 64 levels, or has more than 20,000 types",
        ),
        (
            json.dumps(["null"] + [{"type": "array", "items": "int"}] * 30_000),
            "it is nested deeper than 64 levels, or has more than 20,000 types",
        ),
    ],
)
def test_schemas_that_are_none(schema: str, reason: str) -> None:
    with pytest.raises(UnreadableSchema, match="^" + re.escape(reason)):
        AvroReader(schema)


def test_ten_thousand_broken_records_are_as_many_reasons_and_no_memory() -> None:
    chance = random.Random(31)
    given_row = {
        "b": True, "i": -5, "l": 2**40, "f": 1.5, "d": Decimal("12.345"), "s": "text",
        "day": date(2024, 2, 29),
        "at": 1_700_000_000_000, "u": str(UUID(int=5)), "y": b"bytes", "j": "{}", "a": [1, None],
        "o": {"x": 1, "y": "z"}, "m": {"k": 0.5}, "deep": [{"n": ["a", "b"]}],
    }  # fmt: skip
    (good,) = written([given_row])
    broken = []
    for turn in range(10_000):
        record = bytearray(good)
        match turn % 4:
            case 0:
                record = record[: chance.randrange(len(record))]
            case 1:
                record = record[: chance.randrange(len(record))] + b"\xff" * 11
            case 2:
                record += bytes([chance.randrange(256)])
            case 3:
                record = bytearray(chance.randbytes(chance.randrange(1, 200)))
        broken.append(bytes(record))
    reader = AvroReader(TEXT)
    reader.texts(broken)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(5):
        told = reader.texts(broken)
        assert len(told.values) == 10_000
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 32 * 1024
    source = stream(BARE, SCHEMA_TYPES)
    among = read(source, [*broken, good])
    assert {
        place: one for place, one in reasons(among).items() if place in told.bad
    }.keys() == told.bad.keys()
    assert len(told.bad) > 9_900
    assert seen(among)[-1] == expected([given_row], SCHEMA_TYPES)[0]


@settings(max_examples=examples(80))
@given(st.lists(st.binary(max_size=60), max_size=30))
def test_a_record_alone_and_among_others(values: list[bytes]) -> None:
    source = stream(
        RecordFormat("avro", schema=json.dumps({**SCHEMA, "fields": SCHEMA["fields"][:6]}), framed=False),
        {"b": TYPES["b"], "l": BIGINT, "s": STRING},
    )
    together = read(source, values)
    alone = [read(source, [value]) for value in values]
    assert reasons(together) == {place: one.bad[0].reason for place, one in enumerate(alone) if one.bad}
    assert seen(together) == [row for one in alone for row in seen(one)]
