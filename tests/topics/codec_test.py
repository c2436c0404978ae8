"""JSON records to columns: every type, every way to be wrong, and that a record decodes the same alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from engine.model.batch import Batch
from engine.model.source import Field, Schema, SourceName, Stream
from engine.model.types import STRING, TIMESTAMP, Type, decimal
from tests.strategies import examples
from tests.topics.codec import TYPES, _fitting, _records
from tests.topics.json_records import encode
from tests.topics.reading import APPEND_MS, carefully
from topics import small_batches
from topics.codec import DEPTH_MAX, RECORD_BYTES_MAX, Decoded, decode

STREAM = Stream(SourceName("s"), Schema(tuple(Field(n, t) for n, t in TYPES.items())), "s")
EVENT_TIME = replace(STREAM, timestamp_column="at")


def read(stream: Stream, values: Sequence[bytes | None]) -> Decoded:
    n = len(values)
    return decode(stream, values, np.arange(n) % 3, np.arange(n) + 100, np.arange(n) + 7_000)


def rows(batch: Batch) -> list[dict[str, Any]]:
    return [{k: v for k, v in row.items() if v is not None} for row in batch.to_arrow().to_pylist()]


def one(text: str | bytes, stream: Stream = STREAM) -> dict[str, Any] | str:
    """The row of a record, or the reason why it gave none."""
    value = text.encode() if isinstance(text, str) else text
    decoded = read(stream, [value])
    return decoded.bad[0].reason if decoded.bad else rows(decoded.batch)[0]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"b": true, "i": -5, "l": 9223372036854775807}', {"b": True, "i": -5, "l": 2**63 - 1}),
        ('{"f": 1e3, "s": "\\ud83d\\ude00 \\u0000"}', {"f": 1000.0, "s": "😀 \0"}),
        ('{"f": 0.1, "d": 0.1}', {"f": 0.1, "d": Decimal("0.10")}),
        ('{"d": "1234.56"}', {"d": Decimal("1234.56")}),
        ('{"d": 1.5000}', {"d": Decimal("1.50")}),
        ('{"d": 12e2}', {"d": Decimal("1200.00")}),
        ('{"d": 0e400}', {"d": Decimal("0.00")}),
        ('{"unknown": {"x": [1, "}"]}, "i": 1}', {"i": 1}),
        ('{"unknown": 1, "unknown": 1e999, "i": 1}', {"i": 1}),
        ('{"i": null}', {}),
        (' \r\n{\n "i":\n 1}\n', {"i": 1}),
        ("{}", {}),
    ],
)
def test_good_records(text: str, expected: dict[str, Any]) -> None:
    assert one(text) == expected


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("1700000000123", 1700000000123),
        ("-1", -1),
        ('"2023-11-14T22:13:20.123Z"', 1700000000123),
        ('"2023-11-14 22:13:20.123456"', 1700000000123),
        ('"2023-11-14T22:13:20.123456789Z"', 1700000000123),
        ('"2023-11-15T00:13:20.123+02:00"', 1700000000123),
        ('"1969-12-31T23:59:59.9999"', -1),
        ('"2023-11-14"', 1699920000000),
    ],
)
def test_instants(text: str, ms: int) -> None:
    batch = read(STREAM, [f'{{"at": {text}}}'.encode()]).batch
    assert batch.columns[-1].values.tolist() == [ms]


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (None, "the value is null"),
        (b"", "the value is empty"),
        (b" \n", "the value is empty"),
        (b"null", "not a JSON object"),
        (b'[{"i": 1}]', "not a JSON object"),
        (b'\xef\xbb\xbf{"i": 1}', "begins with a byte order mark"),
        (b'{"i": 1', "the JSON object does not end"),
        (b'{"s": "a}', "the JSON object does not end"),
        (b'{"s": "a\\', "the JSON object does not end"),
        (b'{"i": 1} {"i": 2}', "more than one JSON value in the record"),
        (b'{"i": 1} null', "more than one JSON value in the record"),
        (b'{"f": NaN}', "NaN and Infinity are not JSON"),
        (b'{"unknown": -Infinity}', "NaN and Infinity are not JSON"),
        (b'{"x": ' + b"[" * DEPTH_MAX + b"]" * DEPTH_MAX + b"}", "nested too deeply"),
        (b'{"x": ' + b"[" * 1_000_000, "nested too deeply"),
        (b'{"i": 1, "i": 1}', "column i: given twice"),
        (b'{"i": null, "i": 1}', "column i: given twice"),
        (b'{"i": 1, "\\u0069": 1}', "column i: given twice"),
        (b'{"i": "abc"}', 'column i: expected INTEGER, got string "abc"'),
        (b'{"i": 1.0}', "column i: expected INTEGER, got number 1.0"),
        (b'{"i": true}', "column i: expected INTEGER, got true"),
        (b'{"i": {}}', "column i: expected INTEGER, got an object"),
        (b'{"b": 1}', "column b: expected BOOLEAN, got number 1"),
        (b'{"s": 1}', "column s: expected STRING, got number 1"),
        (b'{"f": "1"}', 'column f: expected DOUBLE, got string "1"'),
        (b'{"s": [1]}', "column s: expected STRING, got an array"),
        (b'{"i": 2147483648}', "column i: 2147483648 is out of the range of INTEGER"),
        (b'{"l": 9223372036854775808}', "column l: 9223372036854775808 is out of the range of BIGINT"),
        (b'{"l": ' + b"9" * 9999 + b"}", f"column l: {'9' * 40}... is out of the range of BIGINT"),
        (b'{"f": 1e999}', "column f: 1e999 is out of the range of DOUBLE"),
        (b'{"d": 1.234}', "column d: 1.234 has more than 2 decimals"),
        (b'{"d": 12345}', "column d: 12345 does not fit DECIMAL(6, 2)"),
        (b'{"d": 1e999999999}', "column d: 1e999999999 does not fit DECIMAL(6, 2)"),
        (b'{"d": "x"}', 'column d: expected DECIMAL(6, 2), got string "x"'),
        (b'{"day": "2023-02-29"}', "column day: there is no DATE 2023-02-29"),
        (b'{"day": 19000}', "column day: expected DATE, got number 19000"),
        (b'{"at": "2023-01-01T25:00:00"}', "column at: there is no TIMESTAMP 2023-01-01T25:00:00"),
        (b'{"at": "yesterday"}', 'column at: expected TIMESTAMP, got string "yesterday"'),
        (b'{"at": 1.5}', "column at: expected TIMESTAMP, got number 1.5"),
        (b'{"s": "\\ud800"}', "column s: half a surrogate pair is not a character"),
        (b'{"s": "\xff"}', "not UTF-8: invalid start byte at byte 7"),
        (b'{"unknown": "\xff"}', "not UTF-8: invalid start byte at byte 13"),
        (b'{"at": 253402300800000}', "column at: 253402300800000 is out of the range of TIMESTAMP"),
        (b'{"at": -62135596800001}', "column at: -62135596800001 is out of the range of TIMESTAMP"),
        (b'{"at": "0000-12-31T23:59:59"}', "column at: 0000-12-31T23:59:59 is out of the range of TIMESTAMP"),
        (b'{"day": "0000-12-31"}', "column day: 0000-12-31 is out of the range of DATE"),
    ],
)
def test_bad_records_are_named_and_leave_the_others(value: bytes | None, reason: str) -> None:
    decoded = read(STREAM, [b'{"i": 1}', value, b'{"i": 2}'])
    assert [(bad.place, bad.reason) for bad in decoded.bad] == [(1, reason)]
    assert decoded.batch.columns[1].values.tolist() == [1, 2]
    assert decoded.batch.offset.tolist() == [100, 102]
    assert decoded.batch.partition.tolist() == [0, 2]
    assert decoded.batch.timestamp.tolist() == [7000, 7002]


@pytest.mark.parametrize(
    "text", ['{"i": 01}', '{"i": 1,}', "{i: 1}", '{"i": +1}', '{"s": "\t"}', '{"i": 1}}']
)
def test_malformed(text: str) -> None:
    reason = one(text)
    assert isinstance(reason, str)
    assert reason.startswith(("not JSON", "more than one"))


def test_oversized() -> None:
    big = b'{"s": "' + b"x" * RECORD_BYTES_MAX + b'"}'
    decoded = read(STREAM, [big, b"{}"])
    assert [bad.place for bad in decoded.bad] == [0]
    assert "1,048,576 allowed" in decoded.bad[0].reason


def test_what_must_not_be_null() -> None:
    schema = Schema((Field("ts", TIMESTAMP), Field("k", STRING, nullable=False)))
    stream = Stream(SourceName("s"), schema, "s", timestamp_column="ts")
    decoded = read(stream, [b'{"ts":5,"k":"a"}', b'{"k":"a"}', b'{"ts":null,"k":"b"}', b'{"ts":6}'])
    assert decoded.batch.timestamp.tolist() == [5]
    assert [(bad.place, bad.reason) for bad in decoded.bad] == [
        (1, "column ts: the event timestamp is missing or NULL"),
        (2, "column ts: the event timestamp is missing or NULL"),
        (3, "column k: missing or NULL, but declared NOT NULL"),
    ]


def test_nothing_but_bad_records_and_nothing_at_all() -> None:
    assert len(read(STREAM, [b"x"] * 1000).bad) == 1000
    assert len(read(STREAM, []).batch) == 0


# --- cutting changes nothing ----------------------------------------------------------------------


def told(decoded: Decoded) -> dict[int, Any]:
    """offset -> the row as bits and values, or the reason."""
    result: dict[int, Any] = {bad.place + 100: bad.reason for bad in decoded.bad}
    table = decoded.batch.to_arrow()
    for place, offset in enumerate(decoded.batch.offset.tolist()):
        row = [table.column(c)[place] for c in range(table.num_columns)]
        result[offset] = [repr(v.cast("int64").as_py() if str(v.type) == "timestamp[ms]" else v) for v in row]
    return result


def _told_carefully(stream: Stream, values: Sequence[bytes | None]) -> dict[int, Any]:
    """What :func:`told` says of records, each read by the careful way alone."""

    result = {}
    with carefully():
        for place, value in enumerate(values):
            decoded = decode(stream, [value], [0], [place + 100], [APPEND_MS])
            result.update(told(decoded) if len(decoded.batch) else {place + 100: decoded.bad[0].reason})
    return result


@given(st.lists(_records, max_size=12), st.booleans())
@example([b'{"at": "2023-01-01"}', b'{"at": 5}', b'{"x": NaN}', None], False)
@example([b'{"at": "2023-01-01"}', b'{"at": 1700000000}', b'{"at": null}', b'{"s": ""}'], True)
@example([b'{"b":', b"true}"], False)
@example([b'{"d": ".5"}', b'{"d": "1."}', b'{"d": "+1"}', b'{"d": "1e"}', b'{"d": "."}'], False)
@example([b'{"f": -0}', b'{"f": 0}', b'{"f": -0.0}', b'{"i": -0}', b'{"f": 0, "day": "2023-01-01"}'], False)
@example([b'{"f": 18446744073709551616}', b'{"f": 9007199254740993}', b'{"f": 1e999}'], False)
@example([b'{"f": %d}' % (2**64 - 1), b'{"l": %d}' % 2**63, b'{"l": -%d}' % 2**63, b'{"i": 1.0}'], False)
@example([b'{"i": 1, "i": 1}', b'{"i": null, "i": 1}', b'{"i": 1, "i": null}', b'{"i": null}'], False)
@example([b'{"I": 1, "i": 2}', b'{"I": 1}', b'{"I": 1, "I": 2}', b'{"DAY": 1, "Day": 2}'], False)
@example([b'{"s": "i"}', b'{"s": "i", "i": 3}', b'{"x": {"i": 1}, "i": 2}', b'{"x": {"i": 1}}'], False)
@example([b'{"x": ' + b"[" * 63 + b"]" * 63 + b"}", b'{"x": ' + b"[" * 64 + b"]" * 64 + b"}"], False)
@example([b"[]", b"1", b"", b" {} ", b"{} {}", b"\xef\xbb\xbf{}", b'{"s": "\xff"}', b'{"s": "\x01"}'], False)
@settings(max_examples=examples(200), deadline=None)
def test_a_record_decodes_the_same_alone_and_among_others(
    values: list[bytes | None], event_time: bool
) -> None:
    stream = EVENT_TIME if event_time else STREAM
    carefully = _told_carefully(stream, values)
    assert told(_read(stream, values)) == carefully
    for place, value in enumerate(values):  # by the columns' way, where it can go that
        alike = [value] * (small_batches.RECORDS_MAX + 1)
        assert list(told(_read(stream, alike)).values()) == [carefully[place + 100]] * len(alike)


def _read(stream: Stream, values: Sequence[bytes | None]) -> Decoded:
    n = len(values)
    return decode(stream, values, np.zeros(n), np.arange(n) + 100, np.full(n, APPEND_MS))


@given(st.lists(_fitting, min_size=1, max_size=400), st.integers(0, 399), _records)
@settings(max_examples=examples(40), deadline=None)
def test_one_stranger_in_a_large_batch(texts: list[str], at: int, stranger: bytes | None) -> None:
    values: list[bytes | None] = [text.encode("utf-8", "surrogatepass") for text in texts]
    values.insert(at % len(values), stranger)
    assert told(read(STREAM, values)) == _told_carefully(STREAM, values)


@given(st.lists(_fitting, max_size=20))
@settings(max_examples=examples(60), deadline=None)
def test_encode_is_the_inverse(texts: list[str]) -> None:
    first = read(STREAM, [text.encode("utf-8", "surrogatepass") for text in texts]).batch
    again = read(STREAM, list(encode(first.to_arrow())))
    assert not again.bad
    assert again.batch.to_arrow().equals(first.to_arrow())


def test_types_that_are_wide() -> None:
    wide: Type = decimal(18, 0)
    stream = Stream(SourceName("s"), Schema((Field("d", wide),)), "s")
    assert one('{"d": 999999999999999999}', stream) == {"d": Decimal(10**18 - 1)}
    assert one('{"d": -999999999999999999}', stream) == {"d": Decimal(1 - 10**18)}
    assert one('{"d": 1000000000000000000}', stream) == (
        "column d: 1000000000000000000 does not fit DECIMAL(18, 0)"
    )
