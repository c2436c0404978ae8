"""Protobuf: the same rows as other formats, what the protobuf library reads, and every way to be broken."""

from __future__ import annotations

import json
import random
import resource
from typing import Any

import pytest
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.json_format import MessageToDict
from google.protobuf.message import DecodeError, Message
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from engine.model.record_format import RecordFormat
from engine.model.types import BIGINT, DOUBLE, JSON, STRING, TIMESTAMP
from tests.strategies import examples
from tests.topics.formats.protobuf import TEXT, made, plain, written
from tests.topics.formats.rows import TYPES, Row, expected, read, reasons, rows, seen, stream
from topics.formats.binary import DEEP, ENDS, LENGTH, LEVELS_MAX, NO_DATE, TOO_LONG, VARINT
from topics.formats.protobuf import ProtobufReader
from topics.formats.protobuf_schema import message_named, parse_schema
from topics.formats.protobuf_wire import GROUP_END, INSTANT, REASONS, SCALE, SPAN, TAG, WIRE
from topics.formats.unreadable import UnreadableSchema

BARE = RecordFormat("protobuf", schema=TEXT, framed=False)
NAMES = [name for name in TYPES if name != "j"]
SCHEMA_TYPES = {name: TYPES[name] for name in NAMES}


def reader(text: str, name: str | None = None) -> ProtobufReader:
    return ProtobufReader(message_named(parse_schema(text), name))


def told(text: str, *records: bytes) -> list[Any]:
    """The JSON of each record, or why it has none."""
    found = reader(text).texts(records)
    return [found.bad.get(at) or json.loads(one or b"") for at, one in enumerate(found.values)]


@settings(max_examples=examples(60))
@given(rows(NAMES))
def test_rows_of_all_types(given_rows: list[Row]) -> None:
    given_rows = [{**row, "a": [one for one in row["a"] or () if one is not None]} for row in given_rows]
    given_rows = [{**row, "m": row["m"] or {}, "deep": row["deep"] or []} for row in given_rows]
    decoded = read(stream(BARE, SCHEMA_TYPES), written(given_rows))
    assert reasons(decoded) == {}
    assert seen(decoded) == expected(given_rows, SCHEMA_TYPES)


# --- as the protobuf library reads

_SCALARS = [
    *("double", "float", "int32", "int64", "uint32", "uint64", "sint32", "sint64"),
    *("fixed32", "fixed64", "sfixed32", "sfixed64", "bool", "string", "bytes", "E"),
]
_KEYS = [one for one in _SCALARS[2:] if one not in ("bytes", "E")]
_KNOWN = [
    f"google.protobuf.{name}"
    for name in (
        *("Timestamp", "Duration", "Struct", "Value", "ListValue"),
        *("Int64Value", "StringValue", "BoolValue", "BytesValue"),
    )
]
_IMPORTS = "".join(
    f'import "google/protobuf/{name}.proto";' for name in ("timestamp", "duration", "struct", "wrappers")
)
_ENUM = "enum E { A = 0; B = 1; C = 5; D = -2; }"


@st.composite
def _fields(draw: st.DrawFn, syntax: str, number: int) -> str:
    """A field of one of the messages M0, M1."""
    name, types = f"f{number}", st.sampled_from([*_SCALARS, *_KNOWN, "M0", "M1"])
    shape = draw(st.sampled_from(["one", "one", "optional", "repeated", "map", "oneof"]))
    if shape == "map":
        inner = "A2" if syntax == "proto2" else draw(types)
        value = draw(st.sampled_from(_SCALARS[:-1])) if inner == "A2" else inner
        return f"map<{draw(st.sampled_from(_KEYS))}, {value}> {name} = {number};"
    if shape == "oneof":
        return (
            f"oneof o{number} {{ {draw(types)} {name} = {number}; {draw(types)} g{number} = {number + 50}; }}"
        )
    type_ = draw(types)
    if shape == "repeated" and type_ in _SCALARS[:13]:
        return f"repeated {type_} {name} = {number} [packed = {draw(st.sampled_from(['true', 'false']))}];"
    if shape == "one" and syntax == "proto2":
        default = {"int32": " [default = -7]", "string": ' [default = "x\\"y"]', "E": " [default = C]"}
        return f"optional {type_} {name} = {number}{default.get(type_, '')};"
    return f"{'' if shape == 'one' else shape} {type_} {name} = {number};"


@st.composite
def _schemas(draw: st.DrawFn) -> str:
    syntax = draw(st.sampled_from(["proto3", "proto2"]))
    numbers = draw(st.permutations([1, 2, 3, 15, 16, 40]))
    messages = ""
    for name in ("M0", "M1"):
        some = numbers[: draw(st.integers(0, 5))]
        messages += f"message {name} {{ {' '.join(draw(_fields(syntax, one)) for one in some)} }}\n"
    return f'syntax = "{syntax}"; {_IMPORTS}\n{_ENUM}\n{messages}'


_VALUES: dict[int, st.SearchStrategy[Any]] = {
    FieldDescriptor.CPPTYPE_INT32: st.integers(-(2**31), 2**31 - 1),
    FieldDescriptor.CPPTYPE_INT64: st.integers(-(2**63), 2**63 - 1),
    FieldDescriptor.CPPTYPE_UINT32: st.integers(0, 2**32 - 1),
    FieldDescriptor.CPPTYPE_UINT64: st.integers(0, 2**64 - 1),
    FieldDescriptor.CPPTYPE_DOUBLE: st.floats(),
    FieldDescriptor.CPPTYPE_FLOAT: st.floats(width=32),
    FieldDescriptor.CPPTYPE_BOOL: st.booleans(),
}
_json = st.recursive(
    st.none() | st.booleans() | st.floats(-1e9, 1e9) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=2), inner, max_size=2),
    max_leaves=3,
)


def _fill(draw: st.DrawFn, message: Any, depth: int) -> Any:
    """Give a message some of its fields."""
    name = message.DESCRIPTOR.full_name
    message.SetInParent()
    if name == "google.protobuf.Timestamp":
        message.seconds, message.nanos = (
            draw(st.integers(-62_135_596_800, 10**9)),
            draw(st.integers(0, 999_999_999)),
        )
    elif name == "google.protobuf.Duration":
        sign = draw(st.sampled_from([1, -1]))
        message.seconds, message.nanos = (
            sign * draw(st.integers(0, 10**9)),
            sign * draw(st.integers(0, 999_999_999)),
        )
    elif name == "google.protobuf.Struct":
        message.update(draw(st.dictionaries(st.text(max_size=2), _json, max_size=2)))
    elif name == "google.protobuf.ListValue":
        message.extend(draw(st.lists(_json, max_size=2)))
    elif name == "google.protobuf.Value":
        message.string_value = draw(st.text(max_size=3))
    else:
        for field in message.DESCRIPTOR.fields if depth else ():
            if draw(st.booleans()):
                _set(draw, message, field, depth)
    return message


def _set(draw: st.DrawFn, message: Any, field: FieldDescriptor, depth: int) -> None:
    held = getattr(message, field.name)
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        key, value = field.message_type.fields
        for one in draw(st.lists(_scalars(key), max_size=2)):
            if value.message_type is not None:
                _fill(draw, held[one], depth - 1)
            else:
                held[one] = draw(_scalars(value))
    elif field.is_repeated:
        for _ in range(draw(st.integers(0, 3))):
            if field.message_type is not None:
                _fill(draw, held.add(), depth - 1)
            else:
                held.append(draw(_scalars(field)))
    elif field.message_type is not None:
        _fill(draw, held, depth - 1)
    else:
        setattr(message, field.name, draw(_scalars(field)))


def _scalars(field: FieldDescriptor) -> st.SearchStrategy[Any]:
    if field.enum_type is not None:
        return st.sampled_from([0, 1, 5, -2] + ([] if field.enum_type.is_closed else [3, -9]))
    if field.type == FieldDescriptor.TYPE_BYTES:
        return st.binary(max_size=4)
    if field.type == FieldDescriptor.TYPE_STRING:
        return st.text(st.characters(exclude_categories=["Cs"]), max_size=4)
    return _VALUES[field.cpp_type]


def pieces(message: Message) -> list[bytes]:
    """A message cut into parts that are messages with one field, and one item where it has several."""
    found = []
    for field, value in message.ListFields():
        alone: Any = type(message)()
        alone.CopyFrom(message)
        for other in message.DESCRIPTOR.fields:
            if other.number != field.number:
                alone.ClearField(other.name)
        if field.is_repeated and len(value) > 1 and not isinstance(value, dict) and hasattr(value, "pop"):
            last = type(message)()
            last.CopyFrom(alone)
            if hasattr(getattr(last, field.name), "items"):
                found.append(alone.SerializeToString())
                continue
            del getattr(last, field.name)[:-1]
            del getattr(alone, field.name)[-1:]
            found.append(last.SerializeToString())
        found.append(alone.SerializeToString())
    return found


def unlike(found: Any, wanted: Any) -> bool:
    """Whether JSON differs; of numbers the type does not count."""
    return json.dumps(found, sort_keys=True) != json.dumps(wanted, sort_keys=True) and found != wanted


@settings(max_examples=examples(120))
@given(st.data())
def test_messages_are_those_of_the_protobuf_library(data: st.DataObject) -> None:
    text = data.draw(_schemas())
    of = made(text, "M0")
    some = [_fill(data.draw, of(), 3) for _ in range(2)]
    parts = [part for one in some for part in pieces(one)]
    shuffled = b"".join(data.draw(st.permutations(parts)))
    unknown = b"\xba\x3e\x03abc\xc3\x3e\xcb\x3e\xcc\x3e\xc4\x3e\xc8\x3e\x07"
    records = [*(one.SerializeToString() for one in some), shuffled, unknown + shuffled + unknown]
    found = reader(text, "M0").texts(records)
    assert found.bad == {}
    for record, value in zip(records, found.values, strict=True):
        wanted = plain(of.FromString(record))
        assert not unlike(json.loads(value or b""), wanted), (value, wanted)


@settings(max_examples=examples(120))
@given(st.data())
def test_what_is_broken_is_broken_for_the_protobuf_library_and_else_the_same(data: st.DataObject) -> None:
    text = data.draw(_schemas())
    of = made(text, "M0")
    record = bytearray(_fill(data.draw, of(), 3).SerializeToString())
    assume(record)
    for _ in range(data.draw(st.integers(1, 3))):
        record[data.draw(st.integers(0, len(record) - 1))] = data.draw(st.integers(0, 255))
    cut = bytes(record[: data.draw(st.integers(0, len(record)))])
    stricter = {REASONS[one] for one in (DEEP, VARINT, TAG, INSTANT, SPAN)}
    for one in (bytes(record), cut):
        found = reader(text, "M0").texts([one])
        try:
            wanted = of.FromString(one)
        except DecodeError:
            assert found.bad or not _is_utf8(found.values[0])
            continue
        if found.bad:
            assert found.bad[0] in stricter, one
            continue
        try:
            as_json = plain(wanted)
        except ValueError:  # of a Value that is nothing, or NaN
            continue
        assert not unlike(json.loads(found.values[0] or b""), as_json), (one, wanted)


def _is_utf8(text: bytes | None) -> bool:
    try:
        (text or b"").decode()
    except UnicodeDecodeError:
        return False
    return True


def test_fields_are_those_of_the_json_mapping() -> None:
    text = """syntax = "proto3"; message M {
    int32 one_word = 1; repeated string s = 2; map<int32, bool> m = 3;
    M n = 4; optional double d = 5; uint32 u = 6; enum E { A = 0; B = 1; } E e = 7; bytes y = 8; }"""
    message: Any = made(text)(one_word=3, s=["x", 'y"'], m={-1: True}, n={}, y=b"abc", e=1)
    wanted = MessageToDict(
        message, preserving_proto_field_name=True, always_print_fields_with_no_presence=True
    )
    assert told(text, message.SerializeToString()) == [wanted]


FLAT = (
    'syntax = "proto3"; message M { int32 a = 1; optional int32 b = 2; repeated int32 r = 3; string s = 4; }'
)


def test_what_is_not_there_is_its_default_or_null() -> None:
    assert told(FLAT, b"", b"\x10\x00") == [
        {"a": 0, "r": [], "s": ""},
        {"a": 0, "b": 0, "r": [], "s": ""},
    ]
    declared = (
        "message M { optional int32 a = 1 [default = 7]; optional int32 b = 2; required string s = 3; }"
    )
    assert told(declared, b"") == [{"a": 7}]
    decoded = read(
        stream(
            RecordFormat("protobuf", schema=FLAT, framed=False),
            {"a": BIGINT, "b": BIGINT, "S": STRING, "x": JSON},
        ),
        [b"", b"\x08\x01\x10\x02\x22\x01z"],
    )
    assert seen(decoded) == [
        {"a": 0, "b": None, "S": "", "x": None},
        {"a": 1, "b": 2, "S": "z", "x": None},
    ]


def test_the_last_counts_and_messages_are_merged() -> None:
    text = """syntax = "proto3"; message M { int32 a = 1; M m = 2; oneof o { int32 x = 3; M y = 4; }
    repeated int32 r = 5; map<string, M> by = 6; }"""
    one = b"\x08\x01\x12\x02\x08\x05\x18\x07\x2a\x01\x01\x32\x07\x0a\x01k\x12\x02\x08\x01"
    other = b"\x08\x02\x12\x02\x18\x06\x22\x00\x28\x02\x32\x07\x0a\x01k\x12\x02\x18\x04"
    usual: dict[str, Any] = {"a": 0, "r": [], "by": {}}
    assert told(text, one + other, one) == [
        {
            "a": 2,
            "m": {**usual, "a": 5, "x": 6},
            "y": usual,
            "r": [1, 2],
            "by": {"k": {**usual, "x": 4}},
        },
        {"a": 1, "m": {**usual, "a": 5}, "x": 7, "r": [1], "by": {"k": {**usual, "a": 1}}},
    ]
    # A member of the oneof that no column reads puts the other one out as well.
    wanted = ProtobufReader(message_named(parse_schema(text), None), lambda name: name == "x")
    assert wanted.texts([b"\x18\x07\x22\x00", b"\x18\x07\x08\x01\x08\x01"]).values == [b"{}", b'{"x":7}']


def test_numbers_of_64_bits_without_a_sign_and_numbers_that_are_cut() -> None:
    text = """syntax = "proto3";
    message M { uint64 u = 1; int32 i = 2; uint32 v = 3; bool b = 4; sint32 z = 5; }"""
    assert told(
        text, b"\x08" + b"\xff" * 9 + b"\x01", b"\x10\x80\x80\x80\x80\x18\x18\xff\xff\xff\xff\x1f\x20\x02"
    ) == [
        {"u": 2**64 - 1, "i": 0, "v": 0, "b": False, "z": 0},
        {"u": 0, "i": -(2**31), "v": 2**32 - 1, "b": True, "z": 0},
    ]
    source = stream(RecordFormat("protobuf", schema=text, framed=False), {"u": DOUBLE, "i": BIGINT})
    assert seen(read(source, [b"\x08" + b"\xff" * 9 + b"\x01"])) == [{"u": 2.0**64, "i": 0}]
    small = stream(RecordFormat("protobuf", schema=text, framed=False), {"u": BIGINT})
    assert "u" in reasons(read(small, [b"\x08" + b"\xff" * 9 + b"\x01"]))[0]


def test_well_known_types_and_those_of_confluent() -> None:
    text = """syntax = "proto3";
    import "google/protobuf/timestamp.proto"; import "google/protobuf/any.proto";
    import "google/protobuf/struct.proto"; import "confluent/types/decimal.proto";
    import "google/type/date.proto"; import "confluent/meta.proto";
    message M { google.protobuf.Timestamp t = 1 [(confluent.field_meta).doc = "when"];
    confluent.type.Decimal d = 2;
    google.type.Date day = 3; google.protobuf.Any any = 4; google.protobuf.NullValue n = 5;
    google.protobuf.Value v = 6; }"""
    of: Any = made(text)
    assert told(
        text,
        of(t={"seconds": -1, "nanos": 1_500_000}, d={"value": b"\xff\x00", "scale": 2}).SerializeToString(),
        of(day={"year": 24, "month": 2, "day": 1}, any={"value": b"x"}, v={}).SerializeToString(),
        of(t={}, d={}).SerializeToString(),
        of(t={"nanos": -1}).SerializeToString(),
        of(t={"seconds": 10**12}).SerializeToString(),
        of(d={"scale": -1}).SerializeToString(),
        of(day={"year": 2024}).SerializeToString(),
    ) == [
        {"t": -999, "d": "-2.56", "n": None},
        {"day": "0024-02-01", "any": {"type_url": "", "value": "eA=="}, "n": None, "v": None},
        {"t": 0, "d": "0", "n": None},
        REASONS[INSTANT],
        REASONS[INSTANT],
        REASONS[SCALE],
        REASONS[NO_DATE],
    ]


def test_columns_are_found_as_members_of_json_are_and_paths_lead_into_messages() -> None:
    text = """syntax = "proto3"; import "google/protobuf/timestamp.proto";
    message M { message Meta { string fw = 1; }
    int64 DeviceId = 1; repeated M skipped = 2; Meta meta = 3; google.protobuf.Timestamp at = 4; }"""
    source = stream(
        RecordFormat("protobuf", schema=text, message="M", framed=False),
        {"deviceid": DOUBLE, "meta": JSON, "missing": STRING, "at": TIMESTAMP},
    )
    record = made(text)(DeviceId=7, skipped=[{}, {}], meta={"fw": "1"}, at={"seconds": 9}).SerializeToString()
    assert seen(read(source, [record])) == [
        {"deviceid": 7.0, "meta": '{"fw":"1"}', "missing": None, "at": 9_000}
    ]


# --- broken


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        (b"\x08", ENDS),
        (b"\x08" + b"\xff" * 10 + b"\x01", VARINT),
        (b"\x08" + b"\xff" * 9 + b"\x02", VARINT),
        (b"\x22\x05abc", LENGTH),
        (b"\x22" + b"\xff" * 9 + b"\x01", LENGTH),
        (b"\x00\x01", TAG),
        (b"\x80\x80\x80\x80\x10\x01", TAG),
        (b"\x0f\x01", WIRE),
        (b"\x0c", GROUP_END),
        (b"\x0b\x14", GROUP_END),
        (b"\x0b\x08\x01", ENDS),
        (b"\x0b" * 100_000, DEEP),
        (b"\x1a\x02\x01\x80", ENDS),
        (b"\x09\x00\x00", ENDS),
    ],
)
def test_what_is_no_message(record: bytes, reason: int) -> None:
    assert told(FLAT, record, b"\x08\x01") == [REASONS[reason], {"a": 1, "r": [], "s": ""}]


def nested(levels: int) -> bytes:
    record = b""
    for _ in range(levels):
        size = len(record)
        length = b""
        while size > 127:
            length, size = length + bytes([size & 127 | 128]), size >> 7
        record = b"\x0a" + length + bytes([size]) + record
    return record


def test_recursion_is_limited_by_levels() -> None:
    text = 'syntax = "proto3"; message M { M m = 1; }'
    found = reader(text).texts([nested(LEVELS_MAX), nested(LEVELS_MAX + 1), nested(100_000)])
    assert found.bad == {1: REASONS[DEEP], 2: REASONS[DEEP]}
    assert found.values[0] == b'{"m":' * LEVELS_MAX + b"{}" + b"}" * LEVELS_MAX


def test_a_text_that_is_too_long_is_refused_however_it_grows() -> None:
    fields = "".join(f"int32 f{place:0>200} = {place + 1};" for place in range(100))
    text = f'syntax = "proto3"; message I {{ {fields} }} message M {{ repeated I all = 1; }}'
    found = reader(text, "M").texts([b"\x0a\x00" * 1_000, b""])
    assert found.bad == {0: REASONS[TOO_LONG]}
    names = 'syntax = "proto3"; enum E { ' + "N" * 1_000 + "= 0; } message M { repeated E e = 1; }"
    assert reader(names).texts([b"\x0a\x90\x4e" + b"\0" * 10_000]).bad == {0: REASONS[TOO_LONG]}


def test_a_map_of_many_keys_has_each_once() -> None:
    text = 'syntax = "proto3"; message M { map<int32, int32> m = 1; }'
    many: Any = made(text)(m={at: at for at in range(5_000)})
    record = many.SerializeToString()
    assert told(text, record, record + record) == [{"m": {str(at): at for at in range(5_000)}}] * 2


@pytest.mark.parametrize(
    ("text", "message", "reason"),
    [
        ("{", None, "line 1: Expected top-level statement"),
        ('syntax = "proto3"; message M { int32 a = ; }', None, "line 1: Expected field number."),
        ('syntax = "proto3";\nmessage M { X x = 1; }', None, 'line 2: "X" is not defined.'),
        (
            'syntax = "proto3"; import "x.proto";',
            None,
            "it imports 'x.proto', which is none of its references",
        ),
        ('syntax = "proto3"; import "../../etc/passwd";', None, "it imports '../../etc/passwd'"),
        ("message A {} message B { message C {} }", None, "of its messages they are: A, B, B.C"),
        ("package p; message A {}", "B", "it has no message 'B', but p.A"),
        ("", None, "of its messages they are: none"),
        ("message A {}" + " " * (1 << 19), None, "it has more than 524,288 bytes"),
        ("message A { " * 100_000, None, "it has more than"),
        ("message A { " * 1_000, None, "recursion limit"),
    ],
)
def test_schemas_that_are_none(text: str, message: str | None, reason: str) -> None:
    with pytest.raises(UnreadableSchema) as refused:
        reader(text, message)
    assert reason in str(refused.value)


def test_messages_of_a_schema_by_their_names() -> None:
    text = "package p; message A {} message B { message C { optional int32 a = 1; } }"
    assert [message_named(parse_schema(text), name).full_name for name in ("A", "p.B", "B.C")] == [
        "p.A",
        "p.B",
        "p.B.C",
    ]


def test_many_broken_records_are_as_many_letters_and_take_no_memory() -> None:
    text = """syntax = "proto3"; import "google/protobuf/struct.proto"; message M { M m = 1; repeated M r = 2;
    map<string, M> by = 3; google.protobuf.Struct s = 4; repeated int64 n = 5; string t = 6; }"""
    dice = random.Random(5)
    whole: Any = made(text)(m={"t": "x"}, r=[{"n": [1, 2]}], by={"k": {"t": "y"}}, n=[1], t="abc")
    whole.s.update({"a": [1, {"b": None}]})
    good = whole.SerializeToString()
    kinds = [
        lambda: good + b"\x0f" + good[: dice.randrange(1, len(good))],
        lambda: b"\x0a" * dice.randrange(200, 5_000),
        lambda: nested(dice.randrange(LEVELS_MAX + 1, 500)),
        lambda: b"\x2a" + b"\xff" * 8 + b"\x7f" + dice.randbytes(50),
        lambda: b"\x13" * dice.randrange(100, 1_000),
        lambda: b"\x32" + b"\x80" * dice.randrange(1, 2_000),
    ]
    records = [dice.choice(kinds)() for _ in range(10_000)]
    read_all = reader(text)
    assert len(read_all.texts(records[:100]).bad) == 100
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert set(read_all.texts(records).bad) == set(range(10_000))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000
