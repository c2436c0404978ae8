"""Records of tables: what keys mean, what deletes, and that company changes nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.model.source import Field, Schema, SourceName, Stream
from engine.model.step import Position
from engine.model.types import BIGINT, BOOLEAN, DATE, DOUBLE, INTEGER, STRING, TIMESTAMP, Type, decimal
from topics.consumer import Range
from topics.journal import JournalUnreadable, RecordsNamed, StepRecord
from topics.keyed import decode_keyed

APPENDED_MS = 7_000


def table(*key: tuple[str, Type], timestamp: bool = False) -> Stream:
    fields = [Field(name, type_) for name, type_ in key] + [Field("v", DOUBLE), Field("n", BIGINT, False)]
    if timestamp:
        fields.append(Field("ts", TIMESTAMP))
    names = tuple(name for name, _ in key)
    return Stream(SourceName("t"), Schema(tuple(fields)), "t", "ts" if timestamp else None, key=names)


def decoded(
    of: Stream, records: list[tuple[bytes | None, bytes | None]]
) -> tuple[list[dict[str, Any]], dict[int, str]]:
    n = len(records)
    keys, values = [key for key, _ in records], [value for _, value in records]
    found = decode_keyed(of, keys, values, [0] * n, range(n), [APPENDED_MS + place for place in range(n)])
    assert found.batch.schema == of.stored_schema
    rows = found.batch.to_arrow().to_pylist()
    return rows, {one.place: one.reason for one in found.bad}


@pytest.mark.parametrize(
    ("type_", "key", "meant"),
    [
        (STRING, b"N1", "N1"),
        (STRING, b'"N1"', "N1"),
        (STRING, b'"N\\"1"', 'N"1'),
        (STRING, b'{"k": "N1", "other": [1, {}]}', "N1"),
        (STRING, b'["N1"]', "N1"),
        (STRING, b"12", "12"),
        (STRING, b"", ""),
        (STRING, "ä,b".encode(), "ä,b"),
        (STRING, b"null", "null"),
        (INTEGER, b" 12 ", 12),
        (INTEGER, b"[12]", 12),
        (BIGINT, b"9223372036854775807", 2**63 - 1),
        (BOOLEAN, b"true", True),
        (DOUBLE, b"-1.5e3", -1500.0),
    ],
)
def test_a_key_of_one_column_in_all_its_forms(type_: Type, key: bytes, meant: object) -> None:
    rows, bad = decoded(table(("k", type_)), [(key, b'{"n": 1, "k": "ignored"}'), (key, None)])
    assert not bad
    assert [(row["k"], row["n"], row["deleted"]) for row in rows] == [(meant, 1, False), (meant, None, True)]


@pytest.mark.parametrize(
    ("type_", "key", "reason"),
    [
        (STRING, None, "a record of a table needs a key"),
        (STRING, b"\xff", "key: not UTF-8"),
        (STRING, b'"half', "key: expected the value, an array or an object of k, as JSON"),
        (STRING, b'{"other": 1}', "key: column k: missing or NULL, but declared NOT NULL"),
        (INTEGER, b"null", "key: column k: missing or NULL, but declared NOT NULL"),
        (INTEGER, b'"1"', 'key: column k: expected INTEGER, got string "1"'),
        (INTEGER, b"2147483648", "key: column k: 2147483648 is out of the range of INTEGER"),
        (INTEGER, b'1, "n": 2', "key: expected the value, an array or an object of k, as JSON"),
        (INTEGER, b"[1, 2]", "key: 2 values for 1 key columns"),
        (INTEGER, b"", "key: expected the value, an array or an object of k, as JSON"),
    ],
)
def test_what_is_no_key(type_: Type, key: bytes | None, reason: str) -> None:
    good = b"7" if type_ == INTEGER else b"x"
    rows, bad = decoded(table(("k", type_)), [(good, b'{"n": 1}'), (key, b'{"n": 2}'), (key, None)])
    assert bad == {1: reason, 2: reason}
    assert [row["n"] for row in rows] == [1]


def test_keys_of_several_columns_are_arrays_or_objects() -> None:
    of = table(("day", DATE), ("price", decimal(9, 2)), ("k", STRING))
    keys = [
        b'["2024-02-29", 1.5, "a, b"]',
        b'{"k": "x", "day": "2024-03-01", "price": "2.25"}',
        b'["2024-02-29", 1.555, "x"]',
        b'"x"',
        b'["2024-02-29", 1]',
    ]
    rows, bad = decoded(of, [(key, None) for key in keys])
    assert [(str(row["day"]), str(row["price"]), row["k"]) for row in rows] == [
        ("2024-02-29", "1.50", "a, b"),
        ("2024-03-01", "2.25", "x"),
    ]
    assert bad == {
        2: "key: column price: 1.555 has more than 2 decimals",
        3: "key: expected an array or an object of day, price, k, as JSON",
        4: "key: 2 values for 3 key columns",
    }


def test_a_deletion_has_the_instant_of_its_record() -> None:
    of = table(("k", STRING), timestamp=True)
    values = [b'{"n": 1, "ts": 5}', None, b'{"n": 1}', b'{"ts": 1}']
    batch = decode_keyed(of, [b"a", b"a", b"b", b"b"], values, [0] * 4, range(4), [100, 101, 102, 103]).batch
    assert batch.timestamp.tolist() == [5, 101]
    assert batch.columns[-1].values.tolist() == [False, True]


def test_only_deletions_and_only_key_columns() -> None:
    rows, bad = decoded(table(("k", STRING)), [(b"a", None), (b"b", None)])
    assert not bad
    assert [(row["k"], row["v"], row["deleted"]) for row in rows] == [("a", None, True), ("b", None, True)]
    keys_alone = replace(table(("k", INTEGER)), schema=Schema((Field("k", INTEGER),)))
    rows, bad = decoded(keys_alone, [(b"1", b"{}"), (b"2", b'{"x": 1}'), (b"1", None), (b"3", b"[")])
    assert rows == [{"k": 1, "deleted": False}, {"k": 2, "deleted": False}, {"k": 1, "deleted": True}]
    assert list(bad) == [3]


KEYS = st.sampled_from([b"1", b"2", b"[3]", b'{"k": 4}', b'"x"', b"", None, b"1,2", b"1.5"])
VALUES = st.sampled_from(
    [None, b'{"n": 1}', b'{"n": 2, "v": 0.5}', b"{}", b'{"n": "x"}', b"{", b'{"n":3,"k":9}']
)


@given(st.lists(st.tuples(KEYS, VALUES), max_size=12))
def test_a_record_means_the_same_alone_and_among_others(
    records: list[tuple[bytes | None, bytes | None]],
) -> None:
    of = table(("k", INTEGER))
    together, bad = decoded(of, records)
    alone = [decoded(of, [record]) for record in records]
    assert together == [row for rows, _ in alone for row in rows]
    assert bad == {place: reason[0] for place, (_, reason) in enumerate(alone) if reason}


def test_a_step_of_a_table_may_have_lost_superseded_records() -> None:
    of = table(("k", STRING))
    body = RecordsNamed(of.name, (Range(0, 0, 2, 3),), {0: 3}, frozenset(), 3)
    record = StepRecord(Position(1, 5), 9, body, 8, frozenset())
    values = [orjson.dumps({"n": n}) for n in range(2)]
    left = decode_keyed(of, [b"a", b"b"], values, [0, 0], [1, 2], [5, 5]).batch
    assert len(record.step(left, compacted=True).body.batch) == 2  # type: ignore[union-attr]
    with pytest.raises(JournalUnreadable, match="had 3 rows of t, now 2"):
        record.step(left)
