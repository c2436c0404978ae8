"""Records that name schemas of a registry: known, unknown, of another kind, and a registry that is away."""

from __future__ import annotations

import json
import random
import threading
from typing import Any

import pytest
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf.message_factory import GetMessageClass

from engine.model.record_format import RecordFormat
from engine.model.step import Position, Records, Step, StepResult
from engine.model.types import BIGINT, JSON, STRING, TIMESTAMP
from tests.kafka import wait_until
from tests.registry import TestRegistry
from tests.topics.formats.avro import encoded
from tests.topics.formats.rows import are_dead_letters, read, reasons, seen, stream
from topics.consumer import Range
from topics.formats import schemas as module
from topics.formats.protobuf_schema import message_named, parse_schema
from topics.formats.schemas import schemas, use_registry
from topics.formats.table import missing_schemas, refusal_of
from topics.journal import RecordsNamed, decode_step, encode_step
from topics.registry import RegistrySettings, wire_prefix
from tureen.errors import RegistryUnavailable

AVRO = RecordFormat("avro")
SOURCE = stream(AVRO, {"a": BIGINT, "s": STRING})
SCHEMA = {
    "type": "record",
    "name": "R",
    "fields": [{"name": "a", "type": "int"}, {"name": "s", "type": ["null", "string"]}],
}


def record(schema_id: int, a: int, s: str | None = None) -> bytes:
    return wire_prefix(schema_id) + encoded(SCHEMA, {"a": a, "s": s})


def test_records_of_several_schemas_in_any_order(here: TestRegistry) -> None:
    first = here.put("t-value", json.dumps(SCHEMA))
    wider = {**SCHEMA, "fields": [{"name": "A", "type": "long"}, {"name": "more", "type": "double"}]}
    second = here.put("t-value", json.dumps(wider))
    other = wire_prefix(second) + encoded(wider, {"A": 2**40, "more": 0.5})
    decoded = read(SOURCE, [record(first, 1, "x"), other, record(first, 3), None, other[:-1]])
    assert seen(decoded) == [{"a": 1, "s": "x"}, {"a": 2**40, "s": None}, {"a": 3, "s": None}]
    assert reasons(decoded) == {
        3: "the value is null",
        4: f"schema {second}: the record ends within a value",
    }
    assert here.asked == [first, second]


def test_what_is_no_schema_of_the_format_is_told_with_its_id(here: TestRegistry) -> None:
    text = here.put("a", '{"type": "object"}', "JSON")
    strange = here.put("b", '{"type": "record", "name": "R", "fields": [{"name": "a", "type": "X"}]}')
    values = [record(text, 1), record(strange, 1), record(999, 1), b'{"a": 1}', b"\0\0\0", b""]
    decoded = read(SOURCE, values)
    assert seen(decoded) == []
    head = "does not begin with byte 0 and a schema id"
    assert [reason[: len(head)] for place, reason in reasons(decoded).items() if place > 2] == [head] * 3
    assert [reasons(decoded)[place] for place in range(3)] == [
        f"schema {text}: it is of kind json, and avro is read",
        f"schema {strange}: there is no type 'X'",
        "schema 999: the schema registry does not know it",
    ]
    assert decoded.unknown_schemas == {999}


def test_a_schema_may_name_types_of_others(here: TestRegistry) -> None:
    inner = {"type": "record", "name": "n.Inner", "fields": [{"name": "x", "type": "int"}]}
    here.put("n.Inner", json.dumps(inner))
    middle = {"type": "record", "name": "n.Middle", "fields": [{"name": "i", "type": "n.Inner"}]}
    here.put("n.Middle", json.dumps(middle), references=["n.Inner"])
    outer = {
        "type": "record",
        "name": "R",
        "fields": [{"name": "a", "type": "long"}, {"name": "m", "type": "n.Middle"}],
    }
    number = here.put("t-value", json.dumps(outer), references=["n.Middle"])
    assert seen(read(SOURCE, [wire_prefix(number) + b"\x08\x02"])) == [{"a": 4, "s": None}]


def test_a_reader_schema_gives_defaults(here: TestRegistry) -> None:
    number = here.put("t-value", json.dumps({**SCHEMA, "fields": SCHEMA["fields"][:1]}))
    given = {**SCHEMA, "fields": [SCHEMA["fields"][0], {"name": "s", "type": "string", "default": "none"}]}
    source = stream(RecordFormat("avro", schema=json.dumps(given)), {"a": BIGINT, "s": STRING})
    assert seen(read(source, [wire_prefix(number) + b"\x08"])) == [{"a": 4, "s": "none"}]
    incompatible = stream(RecordFormat("avro", schema='"string"'), {"a": BIGINT})
    assert reasons(read(incompatible, [wire_prefix(number) + b"\x08"])) == {
        0: f"schema {number}: record R is not read as string"
    }


def test_an_id_that_was_not_known_stays_so_for_a_replay(
    here: TestRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    decoded = read(SOURCE, [record(1, 5), record(2, 6)])
    assert decoded.unknown_schemas == {1, 2}
    body = Records(SOURCE.name, decoded.batch, {0: 2}, unreadable=2, unknown_schemas=decoded.unknown_schemas)
    step = Step(Position(1, 1), 0, body)
    _, written = encode_step(step, StepResult(step.position, 0), [Range(0, 0, 1, 2)])
    named = decode_step(written).body
    assert isinstance(named, RecordsNamed)
    assert named.unknown_schemas == {1, 2}
    assert here.put("t-value", json.dumps(SCHEMA)) == 1
    assert missing_schemas(SOURCE, [record(1, 5)]) == set()  # for some time it is not asked for again
    monkeypatch.setattr(module, "UNKNOWN_S", 0.0)
    use_registry(RegistrySettings(here.url))
    again = read(SOURCE, [record(1, 5), record(2, 6)])
    assert (seen(again), again.unknown_schemas) == ([{"a": 5, "s": None}], {2})


def test_a_registry_that_is_away_is_waited_for(here: TestRegistry) -> None:
    number = here.put("t-value", json.dumps(SCHEMA))
    here.stop()
    with pytest.raises(RegistryUnavailable):
        read(SOURCE, [record(number, 1)])
    assert missing_schemas(SOURCE, [record(number, 1), None, b"", b"{}"]) == {number}
    woken = threading.Event()
    schemas().want({number}, woken.set)
    wait_until(lambda: schemas().away is not None, what="it is told that the registry is away")
    assert not woken.is_set()
    here.start()
    assert woken.wait(30)
    wait_until(lambda: schemas().away is None, what="it is told that the registry answers")
    here.stop()
    assert missing_schemas(SOURCE, [record(number, 1)]) == set()
    assert seen(read(SOURCE, [record(number, 1)])) == [{"a": 1, "s": None}]


def test_nobody_is_woken_who_waits_no_more(here: TestRegistry) -> None:
    number = here.put("t-value", json.dumps(SCHEMA))
    here.stop()
    first, second = threading.Event(), threading.Event()
    schemas().want({number}, first.set)
    schemas().want({number}, second.set)
    schemas().forget(first.set)
    here.start()
    assert second.wait(30)
    assert not first.is_set()


def test_without_a_registry_records_wait() -> None:
    use_registry(None)
    with pytest.raises(RegistryUnavailable, match="none is set"):
        read(SOURCE, [record(1, 1)])


def test_a_registry_that_tells_rubbish_is_away(here: TestRegistry) -> None:
    here.put("t-value", json.dumps(SCHEMA))
    for rubbish in (b"<html>", b"[1]", b"null", b'{"schema": 5}', b'{"schema": "{}", "schemaType": "X"}'):
        here.rubbish = rubbish
        with pytest.raises(RegistryUnavailable):
            read(SOURCE, [record(1, 1)])


@pytest.mark.parametrize(
    ("given", "header"),
    [
        ({"user": "me:secret"}, "Basic bWU6c2VjcmV0"),
        ({"options": '{"bearer.auth.token": "abc"}'}, "Bearer abc"),
    ],
)
def test_it_says_who_asks(here: TestRegistry, given: dict[str, str], header: str) -> None:
    number = here.put("t-value", json.dumps(SCHEMA))
    here.authorization = header
    with pytest.raises(RegistryUnavailable):
        read(SOURCE, [record(number, 1)])
    use_registry(RegistrySettings(here.url, **given))
    assert seen(read(SOURCE, [record(number, 1)])) == [{"a": 1, "s": None}]


def test_a_statement_with_a_schema_that_is_none_is_refused() -> None:
    assert refusal_of(SOURCE) is None
    bad = stream(RecordFormat("avro", schema="{", framed=False), {"a": BIGINT})
    assert refusal_of(bad) == "the schema of the statement cannot be read: it is no JSON"
    assert reasons(read(bad, [b"x"])) == {0: refusal_of(bad)}


def test_json_behind_the_id_of_a_schema(here: TestRegistry) -> None:
    text, avro = here.put("a", '{"type": "object"}', "JSON"), here.put("b", json.dumps(SCHEMA))
    source = stream(RecordFormat("json-schema"), {"a": BIGINT, "s": STRING})
    decoded = read(source, [wire_prefix(text) + b'{"a": 1, "S": "x"}', record(avro, 1), b'{"a": 1}'])
    assert seen(decoded) == [{"a": 1, "s": "x"}]
    assert reasons(decoded)[1] == f"schema {avro}: it is of kind avro, and json is read"


PROTOBUF = RecordFormat("protobuf")
FILE = """syntax = "proto3";
package shop;
message First { map<string, int32> counts = 1; message Inner { int64 a = 1; } }
message Second { int64 a = 1; optional string s = 2; }
"""


def test_protobuf_behind_the_indexes_of_its_message(here: TestRegistry) -> None:
    number = here.put("p-value", FILE, "PROTOBUF")
    head = wire_prefix(number)
    values = [
        head + b"\x00" + b"\x0a\x05\x0a\x01k\x10\x07",  # the first message, as most are
        head + b"\x02\x02" + b"\x08\x05\x12\x01x",  # one index, 1
        head + b"\x02\x00",  # one index, 0
        head + b"\x04\x00\x02" + b"\x08\x06",  # two, 0 and 1: the entries of the map are a message too
        head + b"\x04\x00\x00" + b"\x08\x06",
        head + b"\x02\x04" + b"\x08\x06",
        head + b"\x02\x01" + b"\x08\x06",
        head,
        head + b"\x06\x00",
        head + b"\xff\xff\xff\xff\xff\xff",
        head + b"\x02\x02" + b"\x08",
    ]
    decoded = read(stream(PROTOBUF, {"a": BIGINT, "s": STRING}), values)
    assert seen(decoded) == [
        {"a": None, "s": None},
        {"a": 5, "s": "x"},
        {"a": None, "s": None},
        {"a": 6, "s": None},
    ]
    told = f"schema {number}: "
    assert reasons(decoded) == {
        4: told + "it has no message of the indexes [0, 0]",
        5: told + "it has no message of the indexes [2]",
        6: told + "it has no message of the indexes [-1]",
        7: told + "the indexes of its message are not whole",
        8: told + "the indexes of its message are not whole",
        9: told + "the indexes of its message are not whole",
        10: told + "the record ends within a value",
    }


def test_protobuf_as_the_serializer_of_confluent_writes_it(here: TestRegistry) -> None:
    """With what it imports as references, and descriptors in base64 instead of texts."""
    inner = 'syntax = "proto3"; package n; message Inner { int64 x = 1; }'
    outer = """syntax = "proto3"; package shop;
    import "n/inner.proto"; import "google/protobuf/timestamp.proto";
    message Other { message M { int64 a = 1; n.Inner i = 2; google.protobuf.Timestamp at = 3; } }"""
    file = parse_schema(outer, {"n/inner.proto": inner})
    of: Any = GetMessageClass(message_named(file, "Other.M"))
    serializer = ProtobufSerializer(of, here.client, {"use.deprecated.format": False})
    message = of(a=5, i={"x": 7}, at={"seconds": 3})
    value = serializer(message, SerializationContext("t", MessageField.VALUE))
    source = stream(PROTOBUF, {"a": BIGINT, "i": JSON, "at": TIMESTAMP})
    assert seen(read(source, [value])) == [{"a": 5, "i": '{"x":7}', "at": 3_000}]
    here.put("inner", inner, "PROTOBUF")
    number = here.put("q-value", outer.replace("n/inner.proto", "inner"), "PROTOBUF", references=["inner"])
    as_text = wire_prefix(number) + b"\x04\x00\x00" + message.SerializeToString()
    assert seen(read(source, [as_text])) == [{"a": 5, "i": '{"x":7}', "at": 3_000}]


def test_keys_have_a_format_of_their_own(here: TestRegistry) -> None:
    key = {"type": "record", "name": "K", "fields": [{"name": "a", "type": "long"}]}
    whole, alone = here.put("k", json.dumps(key)), here.put("n", '"long"')
    text = here.put("j", "{}", "JSON")
    keys: list[bytes | None] = [
        wire_prefix(whole) + b"\x02",
        wire_prefix(alone) + b"\x04",
        b"7",
        wire_prefix(77),
    ]
    source = stream(RecordFormat(key="avro"), {"a": BIGINT, "s": STRING}, ("a",))
    decoded = read(source, [b'{"s": "x"}', None, b"{}", b"{}"], keys)
    assert [(row["a"], row["s"], row["deleted"]) for row in seen(decoded)] == [
        (1, "x", False),
        (2, None, True),
    ]
    assert [reason[:30] for reason in reasons(decoded).values()] == [
        "key: does not begin with byte ",
        "key: schema 77: the schema reg",
    ]
    assert decoded.unknown_schemas == {77}
    number = here.put("p", 'syntax = "proto3"; message K { int64 a = 1; }', "PROTOBUF")
    source = stream(RecordFormat(key="protobuf"), {"a": BIGINT}, ("a",))
    decoded = read(
        source, [None, None], [wire_prefix(number) + b"\x00\x08\x09", wire_prefix(alone) + b"\x04"]
    )
    assert seen(decoded) == [{"a": 9, "deleted": True}]
    assert reasons(decoded) == {1: f"key: schema {alone}: it is of kind avro, and protobuf is read"}
    source = stream(RecordFormat(key="json-schema"), {"a": BIGINT}, ("a",))
    assert seen(read(source, [None], [wire_prefix(text) + b"5"])) == [{"a": 5, "deleted": True}]


def test_ten_thousand_broken_records_behind_the_id_of_a_json_schema_are_dead_letters(
    here: TestRegistry,
) -> None:
    chance = random.Random(7)
    head = wire_prefix(here.put("s-value", "{}", "JSON"))
    avro = wire_prefix(here.put("a-value", '"long"'))
    source = stream(RecordFormat("json-schema"), {"a": BIGINT, "s": STRING})
    good = head + b'{"a": 7, "s": "text"}'
    huge = head + b'{"a": 7, "s": "' + b"x" * (1024 * 1024) + b'"}'
    broken: list[bytes | None] = []
    for turn in range(10_000):
        depth = chance.randrange(65, 2_000)
        match turn % 6:
            case 0:
                broken.append(good[: chance.randrange(len(good))])
            case 1:
                broken.append(wire_prefix(chance.choice([0, 99_999])) + good[5:])
            case 2:
                broken.append(avro + good[5:])
            case 3:
                broken.append(head + b'{"a":' * depth + b"1" + b"}" * depth)
            case 4:
                broken.append(good[5:])
            case 5:
                broken.append(
                    huge if turn % 1_000 == 5 else head + b"{" + chance.randbytes(chance.randrange(200))
                )
    are_dead_letters(source, broken, good)
