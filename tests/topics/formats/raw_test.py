"""Raw records: text, bytes."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from engine.model.record_format import RecordFormat
from engine.model.types import BYTES, STRING
from tests.strategies import examples
from tests.topics.formats.rows import are_dead_letters, read, reasons, seen, stream

RAW = RecordFormat("raw")


@settings(max_examples=examples(50))
@given(st.lists(st.binary(max_size=20), max_size=50))
def test_bytes_are_as_they_are(values: list[bytes]) -> None:
    decoded = read(stream(RAW, {'Any "value': BYTES}), values)
    assert [row['Any "value'] for row in seen(decoded)] == [value.hex() for value in values]


@settings(max_examples=examples(50))
@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=20), max_size=50))
def test_texts_are_as_they_are(values: list[str]) -> None:
    decoded = read(stream(RAW, {"v": STRING}), [value.encode() for value in values])
    assert [row["v"] for row in seen(decoded)] == values


def test_what_is_no_text() -> None:
    decoded = read(stream(RAW, {"v": STRING}), [b"a", b"\xff", None, b"b" * (1024 * 1024 + 1), b""])
    assert [row["v"] for row in seen(decoded)] == ["a", ""]
    assert reasons(decoded) == {
        1: "not UTF-8: invalid start byte at byte 0; BYTES takes any bytes",
        2: "the value is null",
        3: "1,048,577 bytes are more than the 1,048,576 allowed",
    }


def test_ten_thousand_broken_records_are_dead_letters() -> None:
    chance = random.Random(7)
    text = "größer als 😀".encode()
    huge = b"x" * (1024 * 1024 + 1)
    broken: list[bytes | None] = []
    for turn in range(10_000):
        match turn % 4:
            case 0:
                broken.append(text[: -chance.randrange(1, 4)])
            case 1:
                broken.append(chance.randbytes(chance.randrange(200)) + b"\xff")
            case 2:
                broken.append(None)
            case 3:
                broken.append(huge if turn % 1_000 == 3 else b"\xed\xa0\x80" + text)
    are_dead_letters(stream(RAW, {"v": STRING}), broken, text)
