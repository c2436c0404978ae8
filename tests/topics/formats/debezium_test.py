"""Change events of Debezium: a table, a stream of changes, in JSON and framed, and every way to be broken."""

from __future__ import annotations

import json
import random
from decimal import Decimal
from typing import Any

import fastavro
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.model.record_format import RecordFormat
from engine.model.types import (
    BIGINT,
    DATE,
    JSON,
    STRING,
    TIMESTAMP,
    decimal,
    struct,
)
from tests.registry import TestRegistry
from tests.strategies import examples
from tests.topics.formats.avro import encoded
from tests.topics.formats.rows import TYPES, Row, as_texts, expected, read, reasons, rows, seen, stream
from topics.formats.debezium import Debezium
from topics.formats.plain_events import LEAST
from topics.formats.texts import Refusing
from topics.registry import wire_prefix

TABLE = RecordFormat("debezium")
CHANGES = RecordFormat("debezium", changelog=True)
USERS = stream(
    TABLE, {"id": BIGINT, "name": STRING, "born": DATE, "seen": TIMESTAMP, "paid": decimal(10, 2)}, ("id",)
)
SOURCE = {"ts_ms": 1_700_000_000_000, "snapshot": "false", "db": "shop"}


def event(op: str, before: Any = None, after: Any = None, **more: Any) -> dict[str, Any]:
    return {"before": before, "after": after, "op": op, "ts_ms": 1_700_000_000_500, "source": SOURCE, **more}


def dumped(value: Any) -> bytes:
    return json.dumps(value).encode()


def wrapped(payload: Any, schema: Any = None) -> bytes:
    return dumped({"schema": schema, "payload": payload})


def table(values: list[bytes | None], keys: list[bytes | None] | None = None) -> list[Any]:
    """The versions of users, each (id, name, deleted), or the reason."""
    decoded = read(USERS, values, [b'{"id": 7}'] * len(values) if keys is None else keys)
    found = {
        int(offset): (row["id"], row["name"], row["deleted"])
        for offset, row in zip(decoded.batch.offset, seen(decoded), strict=True)
    }
    return [found.get(place, reasons(decoded).get(place)) for place in range(len(values))]


def test_a_table_is_what_the_events_leave() -> None:
    ann, bob = {"id": 7, "name": "Ann"}, {"id": 7, "name": "Bob"}
    values = [
        dumped(event("r", None, ann, source={**SOURCE, "snapshot": "last"})),
        dumped(event("c", None, ann)),
        dumped(event("u", ann, bob)),
        wrapped(event("u", None, bob)),
        dumped(event("d", bob, None)),
        None,
        wrapped(event("d", bob, None)),
        wrapped(None),
    ]
    gone = (7, None, True)
    assert table(values) == [
        (7, "Ann", False),
        (7, "Ann", False),
        (7, "Bob", False),
        (7, "Bob", False),
        gone,
        gone,
        gone,
        gone,
    ]


def test_keys_are_rows_with_or_without_a_schema() -> None:
    ann = dumped(event("c", None, {"id": 1, "name": "Ann"}))
    keys = [
        b'{"id": 1}',
        b'{"schema": {"type": "struct"}, "payload": {"id": 2}}',
        b"3",
        b'{"schema": null, "payload": 4}',
        None,
        b"{",
        b'"x"',
    ]
    assert table([ann] * 7, keys) == [
        (1, "Ann", False),
        (2, "Ann", False),
        (3, "Ann", False),
        (4, "Ann", False),
        "a record of a table needs a key",
        "key: not JSON: unexpected end of data: line 1 column 2 (char 1)",
        'key: column id: expected BIGINT, got string "x"',
    ]


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (b"{", "not JSON: unexpected end of data: line 1 column 2 (char 1)"),
        (b"[]", "not a JSON object"),
        (dumped({"id": 7, "name": "flat"}), "it has no op, so it is no change event of Debezium"),
        (wrapped(5), "it has no op, so it is no change event of Debezium"),
        (dumped(event("c", {"id": 7})), "op is c, and after is not there"),
        (dumped(event("c", None, 5)), "after is no object"),
        (dumped(event("d", [1])), "before is no object"),
        (dumped(event("t")), "op is t: the table was truncated"),
        (dumped(event("m", message="x")), "op is m: no change of a row"),
        (
            b'{"op": "c", "after": {"id": 7}, "after": {"id": 8}}',
            "a member of the event is given twice, or has an escape in its name",
        ),
        (
            b'{"op": "c", "aft\\u0065r": {"id": 7}}',
            "a member of the event is given twice, or has an escape in its name",
        ),
        (dumped(event("c", None, {"name": 5})), "column name: expected STRING, got number 5"),
        (b'{"a":' * 100 + b"1" + b"}" * 100, "nested too deeply"),
        (
            b'{"op": "c", "after": {"name": "x"}, }',
            "not JSON: trailing comma is not allowed: line 1 column 35 (char 34)",
        ),
    ],
)
def test_what_is_no_event(value: bytes, reason: str) -> None:
    assert table([value]) == [reason]


DECIMAL = "org.apache.kafka.connect.data.Decimal"
SCHEMA_OF_USERS = {
    "type": "struct",
    "fields": [
        {"field": one, "type": "struct", "optional": True, "fields": [
            {"field": "id", "type": "int64"},
            {"field": "born", "type": "int32", "name": "io.debezium.time.Date"},
            {"field": "seen", "type": "int64", "name": "io.debezium.time.MicroTimestamp"},
            {"field": "paid", "type": "bytes", "name": DECIMAL, "parameters": {"scale": "2"}},
        ]} for one in ("before", "after")
    ],
}  # fmt: skip


def test_dates_instants_and_decimals_are_as_the_schema_says() -> None:
    row = {"id": 7, "born": 19_782, "seen": 1_700_000_000_123_456, "paid": "MDk="}
    decoded = read(USERS, [wrapped(event("c", None, row), SCHEMA_OF_USERS)], [b"7"])
    assert seen(decoded) == [
        {"id": 7, "name": None, "born": 19_782, "seen": 1_700_000_000_123, "paid": 0x3039, "deleted": False}
    ]


@pytest.mark.parametrize(
    "instant",
    [1_700_000_000_123, 1_700_000_000_123_999, 1_700_000_000_123_999_999, "2023-11-14T22:13:20.123Z"],
)
def test_dates_and_instants_without_a_schema_are_as_the_columns_say(instant: Any) -> None:
    row = {"id": 7, "born": 19_782, "seen": instant, "paid": "123.45"}
    decoded = read(USERS, [dumped(event("c", None, row))], [b"7"])
    assert [(one["born"], one["seen"], one["paid"]) for one in seen(decoded)] == [
        (19_782, 1_700_000_000_123, 12_345)
    ]


def test_a_stream_of_changes_has_the_op_the_times_and_both_rows() -> None:
    row = struct([("id", BIGINT), ("name", STRING)])
    source = stream(
        CHANGES,
        {
            "id": BIGINT,
            "name": STRING,
            "_op": STRING,
            "_ts": TIMESTAMP,
            "_source_ts": TIMESTAMP,
            "_snapshot": STRING,
            "_before": row,
            "_after": JSON,
        },
    )
    ann, bob = {"id": 7, "name": "Ann"}, {"id": 7, "name": "Bob"}
    decoded = read(
        source,
        [
            dumped(event("r", None, ann, source={"snapshot": True})),
            wrapped(event("u", ann, bob)),
            dumped(event("d", bob, None)),
            dumped(event("t")),
            dumped(event("c", None, {})),
            None,
            wrapped(None),
        ],
    )
    first, second = '{"id":7,"name":"Ann"}', '{"id":7,"name":"Bob"}'
    at, then = 1_700_000_000_500, 1_700_000_000_000
    names = [field.name for field in source.schema]
    assert [tuple(one[name] for name in names) for one in seen(decoded)] == [
        (7, "Ann", "r", at, None, "true", None, first),
        (7, "Bob", "u", at, then, "false", first, second),
        (7, "Bob", "d", at, then, "false", second, None),
        (None, None, "t", at, then, "false", None, None),
        (None, None, "c", at, then, "false", None, "{}"),
    ]
    assert (reasons(decoded), decoded.tombstones) == ({}, {5, 6})


def in_avro(number: int, schema: Any, value: Any) -> bytes:
    return wire_prefix(number) + encoded(fastavro.parse_schema(schema), value)


def test_framed_events_and_keys(here: TestRegistry) -> None:
    row = {"type": "record", "name": "Value", "fields": [
        {"name": "id", "type": "long"},
        {"name": "name", "type": ["null", "string"]},
        {"name": "born", "type": {"type": "int", "connect.name": "io.debezium.time.Date"}},
        {"name": "seen", "type": {"type": "long", "connect.name": "io.debezium.time.MicroTimestamp"}},
        {"name": "paid", "type": {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}},
    ]}  # fmt: skip
    envelope = {"type": "record", "name": "Envelope", "fields": [
        {"name": "before", "type": ["null", row]},
        {"name": "after", "type": ["null", "Value"]},
        {"name": "op", "type": "string"},
        {"name": "ts_ms", "type": ["null", "long"]},
    ]}  # fmt: skip
    key = {"type": "record", "name": "Key", "fields": [{"name": "id", "type": "long"}]}
    of_value, of_key = here.put("v", json.dumps(envelope)), here.put("k", json.dumps(key))
    of_json = here.put("j", "{}", "JSON")
    ann = {"id": 7, "name": "Ann", "born": 1, "seen": 5_000, "paid": Decimal("1.25")}
    values = [
        in_avro(of_value, envelope, {"before": None, "after": ann, "op": "c", "ts_ms": 5}),
        in_avro(of_value, envelope, {"before": ann, "after": None, "op": "d", "ts_ms": None}),
        None,
        wire_prefix(of_json) + dumped(event("c", None, {"name": "Bob"})),
        dumped(event("c", None, {"name": "Cid"})),
        wire_prefix(999) + b"x",
    ]
    keys = [*([in_avro(of_key, key, {"id": 7})] * 3), wire_prefix(of_json) + b'{"id": 8}', b"9", b"9"]
    decoded = read(USERS, values, keys)
    assert [(one["id"], one["name"], one["born"], one["seen"], one["paid"]) for one in seen(decoded)] == [
        (7, "Ann", 1, 5, 125),
        (7, None, None, None, None),
        (7, None, None, None, None),
        (8, "Bob", None, None, None),
        (9, "Cid", None, None, None),
    ]
    assert reasons(decoded) == {5: "schema 999: the schema registry does not know it"}
    assert decoded.unknown_schemas == {999}


@settings(max_examples=examples(40))
@given(rows([name for name in TYPES if name != "f"]))
def test_rows_of_all_types(given_rows: list[Row]) -> None:
    types = {name: type_ for name, type_ in TYPES.items() if name != "f"}
    values = [dumped(event("c", None, as_texts(row))) for row in given_rows]
    decoded = read(stream(CHANGES, types), values)
    # An instant that is far away is in another unit.
    kept = [{**row, "at": row["at"] if row["at"] is None else instant(row["at"])} for row in given_rows]
    assert reasons(decoded) == {}
    assert seen(decoded) == expected(kept, types)


def instant(ms: int) -> int:
    while abs(ms) >= 10**14:
        ms //= 1_000
    return ms


_days = st.sampled_from([None, 5, -700_000, 10**12, "2024-02-29", "x"])
_instants = st.sampled_from([None, 0, 10**13, 10**14, -(10**14), 10**17, 1.5, "2024-02-29", "x"])
_users = st.fixed_dictionaries(
    {}, optional={"id": st.integers(0, 3), "name": st.text(max_size=3), "born": _days, "seen": _instants}
)
_sides = st.none() | _users | st.sampled_from([5, "x", [1]])
_events = st.builds(
    lambda event, how: (
        dumped(event) if how == 0 else wrapped(event) if how == 1 else wrapped(event, SCHEMA_OF_USERS)
    ),
    st.fixed_dictionaries(
        {"op": st.sampled_from(["c", "u", "r", "d", "t", "m", "cc", None, 5])},
        optional={
            "before": _sides,
            "after": _sides,
            "ts_ms": st.integers(),
            "payload": _sides,
            "schema": st.none(),
        },
    ),
    st.integers(0, 2),
)
_strange = st.sampled_from(
    [
        *(b"", b"{", b"null", b"[]", b"{}", b"\xff", b'{"op":"c","after":{}} {}'),
        b'{"op":"c","after":{"id":1},"after":{"id":2}}',
        b'{"op":"c","after":{"id":1},}',
        b' {"op" : "c" , "after" : { "id" : 1 } } ',
        b'{"op":"\\u0063","after":{}}',
        b'{"op":"c","after":{"name":"\xff"}}',
        b'{"":1,"op":"c","after":{}}',
        *(
            b'{"op":"c","after":{"x":%s}}' % number
            for number in (b"NaN", b"-Infinity", b"Inf", b"-NaN", b"-", b"nully")
        ),
        *(b'{"op":"c","after":{"x":%s%s}}' % (b"[" * n, b"]" * n) for n in (61, 62, 63, 64)),
        *(
            b'{"op":"c","after":{"id":1',
            b"}}",
            b'{"op":"c","after":{"name":"',
            b'"}}',
            b" ",
            b'{"op":"c","after":{}}}',
        ),
    ]
)
_many = st.lists(_events, min_size=LEAST, max_size=LEAST + 10)


@pytest.mark.parametrize("changelog", [True, False])
@settings(max_examples=examples(60))
@given(_many | st.lists(_events | _strange, min_size=LEAST, max_size=LEAST + 30))
def test_many_at_once_are_as_one_by_one(changelog: bool, values: list[bytes]) -> None:
    fields = tuple(one for one in USERS.schema if one.name != "id" or changelog)
    reader = Debezium(Refusing("nothing is framed"), fields, changelog)
    together = reader.texts(values)
    alone = [reader.texts([value]) for value in values]
    assert together.bad == {place: one.bad[0] for place, one in enumerate(alone) if one.bad}
    for place, one in enumerate(alone):
        assert place in together.bad or together.values[place] == one.values[0], values[place]


def test_ten_thousand_broken_records_are_as_many_reasons() -> None:
    chance = random.Random(7)
    good = wrapped(event("u", {"id": 7, "name": "Ann"}, {"id": 7, "name": "Bob"}), SCHEMA_OF_USERS)
    broken: list[bytes | None] = []
    for turn in range(10_000):
        record = bytearray(good)
        match turn % 4:
            case 0:
                record = record[: chance.randrange(len(record))]
            case 1:
                record[chance.randrange(len(record))] = chance.choice(b'\x00\xff"{}[]:,\\')
            case 2:
                record = bytearray(b'{"op":"c","after":' + b"[" * chance.randrange(2, 900))
            case 3:
                record = bytearray(b"{" + chance.randbytes(chance.randrange(1, 200)))
        broken.append(bytes(record))
    decoded = read(USERS, [*broken, good], [b"7"] * 10_001)
    assert len(decoded.bad) > 9_000
    assert seen(decoded)[-1]["name"] == "Bob"
