"""CSV: what a line means, every way to be wrong, and the same rows as other formats."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.model.record_format import RecordFormat
from engine.model.types import BOOLEAN, DOUBLE, INTEGER, JSON, STRING, TIMESTAMP, decimal
from tests.strategies import examples
from tests.topics.formats.rows import (
    NESTED,
    TYPES,
    Row,
    are_dead_letters,
    as_texts,
    expected,
    read,
    reasons,
    rows,
    seen,
    stream,
)

CSV = RecordFormat("csv")
SOURCE = stream(CSV, {"i": INTEGER, "s": STRING, "f": DOUBLE, "b": BOOLEAN})


def written(row: Row, delimiter: str = ",") -> bytes:
    """What is None has no quotes, every other value has some."""
    texts = as_texts(row) | {name: json.dumps(row[name]) for name in NESTED if row.get(name) is not None}
    if isinstance(texts.get("f"), float):
        texts["f"] = str(texts["f"]).replace("inf", "Infinity").replace("nan", "NaN")
    quoted = ('"' + str(one).replace('"', '""') + '"' for one in texts.values())
    return delimiter.join(
        "" if one is None else text for one, text in zip(texts.values(), quoted, strict=True)
    ).encode()


@settings(max_examples=examples(50))
@given(rows(list(TYPES)), st.sampled_from([",", ";", "\t", "|", "x", "1"]))
def test_rows_of_all_types(given_rows: list[Row], delimiter: str) -> None:
    source = stream(replace(CSV, delimiter=delimiter))
    decoded = read(source, [written(row, delimiter) for row in given_rows])
    assert reasons(decoded) == {}
    assert seen(decoded) == expected(given_rows, TYPES)


@pytest.mark.parametrize(
    ("line", "row"),
    [
        (b"1,a,1.5,true", {"i": 1, "s": "a", "f": 1.5, "b": True}),
        (b' +007 ," a",.5,FALSE\r\n', {"i": 7, "s": " a", "f": 0.5, "b": False}),
        (b"-0,,-5.,\n", {"i": 0, "s": None, "f": -5.0, "b": None}),
        (b',"","1e3",""', 'column b: expected BOOLEAN, got string ""'),
        (b',"",1e-3,', {"i": None, "s": "", "f": 0.001, "b": None}),
        (b",,NaN,", {"i": None, "s": None, "f": "NaN", "b": None}),
        (b',a"b,,', {"i": None, "s": 'a"b', "f": None, "b": None}),
        (b',"a\n""b"",",,', {"i": None, "s": 'a\n"b",', "f": None, "b": None}),
        (b"1,a,1", "fewer fields than the 4 columns of the value"),
        (b"", "fewer fields than the 4 columns of the value"),
        (b"1,a,1,true,", "more fields than the 4 columns of the value"),
        (b'1,"a,1,true', "a field in quotes does not end"),
        (b'1,"a"b,1,true', "behind a field in quotes stands neither the delimiter nor the end"),
        (b"1,a,1,true\n2,b,1,true", "more than one line in the record"),
        (b"x,a,1,true", 'column i: expected INTEGER, got string "x"'),
        (b"1.5,a,1,true", "column i: expected INTEGER, got number 1.5"),
        (b"-,a,1,true", 'column i: expected INTEGER, got string "-"'),
        (b"1e,a,1,true", 'column i: expected INTEGER, got string "1e"'),
        (b"3000000000,a,1,true", "column i: 3000000000 is out of the range of INTEGER"),
        (b'1,a,"1,""s"":2",true', 'column f: expected DOUBLE, got string "1,\\"s\\":2"'),
        (b"1,\xff,1,true", "not UTF-8: invalid start byte at byte 12"),
    ],
)
def test_lines(line: bytes, row: Any) -> None:
    decoded = read(SOURCE, [line])
    assert (reasons(decoded)[0] if decoded.bad else seen(decoded)[0]) == row


@pytest.mark.parametrize(
    ("field", "reason"),
    [
        (b'"1,""i"":2"', "column i: given twice"),
        (b'"1,""x"":2"', "a field of an ARRAY, STRUCT, MAP or JSON is not JSON"),
        (b"{", "a field of an ARRAY, STRUCT, MAP or JSON is not JSON"),
        (b"1}", "a field of an ARRAY, STRUCT, MAP or JSON is not JSON"),
        (b"\xff", "not UTF-8: invalid start byte"),
    ],
)
def test_a_nested_field_is_one_value(field: bytes, reason: str) -> None:
    assert reasons(read(stream(CSV, {"i": INTEGER, "j": JSON}), [b"5," + field])) == {0: reason}


def test_a_table_has_its_key_apart() -> None:
    source = stream(CSV, {"k": STRING, "d": decimal(6, 2), "at": TIMESTAMP}, ("k",))
    decoded = read(source, [b"1.5,7", None, b"x", b"2,8"], [b"a", b"b", b"c", b"d"])
    assert [(row["k"], row["d"], row["deleted"]) for row in seen(decoded)] == [
        ("a", 150, False),
        ("b", None, True),
        ("d", 200, False),
    ]
    assert reasons(decoded) == {2: "fewer fields than the 2 columns of the value"}


@settings(max_examples=examples(50))
@given(st.lists(st.binary(max_size=30) | st.text('1",\n;a', max_size=12).map(str.encode), max_size=60))
def test_a_record_alone_and_among_others(values: list[bytes]) -> None:
    together = read(SOURCE, values)
    alone = [read(SOURCE, [value]) for value in values]
    assert reasons(together) == {place: one.bad[0].reason for place, one in enumerate(alone) if one.bad}
    assert seen(together) == [row for one in alone for row in seen(one)]


def test_more_text_than_fits_one_buffer() -> None:
    values = [b"%d,%s,," % (place, b"\x01" * 100_000) for place in range(100)] + [
        b"1," + b"\x01" * 500_000 + b",,"
    ]
    decoded = read(SOURCE, values)
    assert [row["i"] for row in seen(decoded)] == list(range(100))
    assert reasons(decoded) == {100: "as JSON it is longer than a record may be"}


def test_ten_thousand_broken_lines_are_dead_letters() -> None:
    chance = random.Random(7)
    source = stream(CSV, {"i": INTEGER, "s": STRING, "f": DOUBLE, "j": JSON})
    good = b'7,"a, ""b""",2.5,"[1, {}]"'
    huge = b"7," + b"x" * (1024 * 1024) + b",1,"
    broken: list[bytes | None] = []
    for turn in range(10_000):
        depth = chance.randrange(65, 2_000)
        match turn % 5:
            case 0:
                broken.append(good[: chance.randrange(good.rindex(b',"[') + 1)])
            case 1:
                broken.append(good + b"," * chance.randrange(1, 100))
            case 2:
                broken.append(b'7,a,1,"' + b"[" * depth + b"]" * depth + b'"')
            case 3:
                broken.append(b"\xff" + chance.randbytes(chance.randrange(200)))
            case 4:
                broken.append(huge if turn % 1_000 == 4 else b"7,a,1," + b"[" * depth)
    are_dead_letters(source, broken, good)
