"""Parts of strings, regular expressions and timestamps as text, at their edges."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.language.evaluate import ERROR, value, values

URL = "https://www.nexmark.com/rswp/ygi/_gwv/item.htm?query=1&channel_id=163053568"


@pytest.mark.parametrize(
    ("expression", "row", "expected"),
    [
        ("SPLIT_PART(s, '/', 4)", {"s": URL}, "rswp"),
        ("SPLIT_PART(s, '/', -1)", {"s": "a/b"}, "b"),
        ("SPLIT_PART(s, '/', -3)", {"s": "a/b"}, ""),
        ("SPLIT_PART(s, '/', 3)", {"s": "a/b"}, ""),
        ("SPLIT_PART(s, '/', 0)", {"s": "a/b"}, ERROR),
        ("SPLIT_PART(s, '', 1)", {"s": "ab"}, "ab"),
        ("SPLIT_PART(s, '', 2)", {"s": "ab"}, ""),
        ("SPLIT_PART(s, '/', b)", {"s": "a/b", "b": 2}, "b"),
        ("SPLIT_PART(s, '/', b)", {"s": "a/b", "b": 0}, ERROR),
        ("SPLIT_PART(s, '/', 1)", {"s": None}, None),
        ("SPLIT_INDEX(s, '/', 3)", {"s": URL}, "rswp"),
        ("SPLIT_INDEX(s, '/', 0)", {"s": "a/b"}, "a"),
        ("SPLIT_INDEX(s, '/', 2)", {"s": "a/b"}, None),
        ("SPLIT_INDEX(s, '/', -1)", {"s": "a/b"}, None),
        ("SPLIT_INDEX(s, '/', 1 / b)", {"s": "a/b", "b": 0}, ERROR),
        ("SPLIT_INDEX(s, '/', 1 / b)", {"s": None, "b": 0}, None),
        ("SPLIT_INDEX(s, '/', 2) IS NULL", {"s": "a/b"}, True),
        ("COUNT_CHAR(s, 'c')", {"s": "cabc"}, 2),
        ("COUNT_CHAR(s, 'aa')", {"s": "aaa"}, 1),
        ("COUNT_CHAR(s, '')", {"s": "abc"}, 0),
        ("REGEXP_LIKE(s, '^a.c$')", {"s": "abc"}, True),
        ("REGEXP_LIKE(s, 'b')", {"s": "abc"}, True),
        ("REGEXP_LIKE(s, '^b')", {"s": "abc"}, False),
        ("REGEXP_LIKE(s, '')", {"s": ""}, True),
        ("REGEXP_LIKE(s, '(?i)B')", {"s": "abc"}, True),
        ("REGEXP_LIKE(s, 'b')", {"s": None}, None),
        ("s ~ '^a.c$'", {"s": "a\nc"}, True),
        ("s ~ 'b'", {"s": "aBc"}, False),
        ("s ~* 'b'", {"s": "aBc"}, True),
        ("s !~ 'b'", {"s": "abc"}, False),
        ("s !~* 'X'", {"s": "abc"}, True),
        ("s ~ 'c$'", {"s": "abc\nd"}, False),
        ("s ~ 'a' = TRUE", {"s": "abc"}, True),
        ("s || 'x' ~ 'cx$' AND NOT s ~ 'x'", {"s": "abc"}, True),
        ("s !~ 'b'", {"s": None}, None),
        ("s LIKE ANY ('x%', '_bc')", {"s": "abc"}, True),
        ("s LIKE ANY ('x%', NULL)", {"s": "abc"}, None),
        ("s LIKE SOME (ARRAY['x%', 'y'])", {"s": "abc"}, False),
        ("s ILIKE ALL ('A%', '%C')", {"s": "abc"}, True),
        ("s LIKE ALL (ARRAY['a%', 'x'])", {"s": "abc"}, False),
        ("s NOT LIKE ANY ('a%', 'x')", {"s": "abc"}, True),
        ("s NOT LIKE ALL ('a%', 'x')", {"s": "abc"}, False),
        ("s LIKE ANY ('x') OR s NOT ILIKE ALL ('B%') AND TRUE", {"s": "abc"}, True),
        ("s LIKE ANY ('a%')", {"s": None}, None),
        ("POSITION('b' IN s)", {"s": "abc"}, 2),
        ("POSITION(s IN 'x' || 'abc') + 1", {"s": "abc"}, 3),
        ("POSITION('b' IN (s))", {"s": "abc"}, 2),
        ("POSITION('b', s) IN (1, 2)", {"s": "abc"}, True),
        ("POSITION('b' IN s)", {"s": None}, None),
        ("OVERLAY(s PLACING 'XY' FROM 2 FOR 1)", {"s": "abcd"}, "aXYcd"),
        ("OVERLAY(s PLACING 'XY' FROM 2)", {"s": "abcd"}, "aXYd"),
        ("OVERLAY(s PLACING 'XY' FROM b FOR 0)", {"s": "abcd", "b": 5}, "abcdXY"),
        ("OVERLAY(s PLACING '' FROM 1 FOR 99)", {"s": "abcd"}, ""),
        ("OVERLAY(s PLACING 'X' FROM b)", {"s": "abcd", "b": 0}, ERROR),
        ("OVERLAY(s PLACING 'X' FROM 1)", {"s": None}, None),
        ("s ~ NULL", {"s": "abc"}, None),
        ("s !~* NULL", {"s": "abc"}, None),
        ("s !~~ NULL", {"s": "abc"}, None),
        ("(s ~ NULL) IS NULL", {"s": "abc"}, True),
        ("s ~~ '_bc'", {"s": "abc"}, True),
        ("s !~~ 'b%'", {"s": "abc"}, True),
        ("s ~~* 'A%'", {"s": "abc"}, True),
        ("s !~~* 'A%'", {"s": "abc"}, False),
        (r"E'a\tb\\\u00e9\x41\101''' = s", {"s": "a\tb\\éAA'"}, True),
        (r"E'\ud83d\ude00' = s", {"s": "\U0001f600"}, True),
        (r"E'x\U0000d83d\uDE00y' = s", {"s": "x\U0001f600y"}, True),
        ("ROW(s, 1) = ROW('abc', 1)", {"s": "abc"}, True),
        ("ROW(s, 1) IN (('b', 1), ROW('abc', 2))", {"s": "abc"}, False),
        ("(s, 2) > ROW('abc', 1)", {"s": "abc"}, True),
        ("REGEXP_EXTRACT(s, '(&|^)channel_id=([^&]*)', 2)", {"s": URL}, "163053568"),
        ("REGEXP_EXTRACT(s, '(&|^)channel_id=([^&]*)', 2)", {"s": "none"}, None),
        ("REGEXP_EXTRACT(s, '(&|^)channel_id=([^&]*)', 1)", {"s": "channel_id="}, ""),
        ("REGEXP_EXTRACT(s, 'b+')", {"s": "abbbc"}, "bbb"),
        ("REGEXP_EXTRACT(s, 'b+') IS NULL", {"s": "ac"}, True),
        ("REGEXP_EXTRACT(s, '(a)?(b)', 1)", {"s": "b"}, ""),
        ("REGEXP_EXTRACT(s, '[()]([)])', 1)", {"s": "()"}, ")"),
        ("REGEXP_EXTRACT(s, '[]]([^]]+)', 1)", {"s": "a]bc]"}, "bc"),
        ("REGEXP_EXTRACT(s, '\\((\\d+)\\)', 1)", {"s": "f(42)"}, "42"),
        ("REGEXP_EXTRACT(s, '(?:a|b)(?P<rest>.*)', 1)", {"s": "xbyz"}, "yz"),
        ("REGEXP_EXTRACT(s, '[[:alpha:](]+(\\d)', 1)", {"s": "a(1"}, "1"),
        ("REGEXP_EXTRACT(s, '\\Q(\\E(.)', 1)", {"s": "(x"}, "x"),
        ("REGEXP_EXTRACT(s, '(é+)', 1)", {"s": "aééb"}, "éé"),
        ("DATE_FORMAT(ts, 'yyyy-MM-dd HH:mm:ss.SSS')", {"ts": 1_436_918_402_001}, "2015-07-15 00:00:02.001"),
        ("DATE_FORMAT(ts, 'd.M.yy h:m:s a')", {"ts": 1_436_972_709_000}, "15.7.15 3:5:9 PM"),
        ("DATE_FORMAT(ts, 'yyyy''T''')", {"ts": 0}, "1970T"),
        ("DATE_FORMAT(ts, 'HH:mm')", {"ts": -60_000}, "23:59"),
        ("DATE_FORMAT(day, 'yyyy-MM-dd HH')", {"day": 1}, "1970-01-02 00"),
        ("DATE_FORMAT(ts, '--')", {"ts": 0}, "--"),
        ("DATE_FORMAT(ts, 'yyyy')", {"ts": None}, None),
        ("TO_CHAR(ts, 'YYYY-MM-DD HH24:MI:SS.MS')", {"ts": 1_436_972_709_007}, "2015-07-15 15:05:09.007"),
        ("TO_CHAR(ts, 'HH:mm')", {"ts": 1_436_918_402_001}, "12:07"),
        ("TO_CHAR(ts, 'ddd \"day of\" yyyy, HH12 am')", {"ts": 1_436_972_709_007}, "196 day of 2015, 03 pm"),
        ("TO_CHAR(ts, 'FMDAY FMMONTH DY MON AM')", {"ts": 1_436_972_709_007}, "WEDNESDAY JULY WED JUL PM"),
        ("TO_CHAR(ts, 'FMDay FMMonth Dy Mon PM')", {"ts": 1_436_972_709_007}, "Wednesday July Wed Jul PM"),
        ("TO_CHAR(ts, 'fmday fmmonth dy mon am')", {"ts": 1_436_972_709_007}, "wednesday july wed jul pm"),
        ("TO_TIMESTAMP(s, '%d/%m/%y')", {"s": "01/01/69"}, datetime(1969, 1, 1)),
        ("TO_TIMESTAMP(s, '%d/%m/%y')", {"s": "01/01/68"}, datetime(2068, 1, 1)),
        ("TO_TIMESTAMP(s, 'DD/MM/YY')", {"s": "01/01/69"}, datetime(2069, 1, 1)),
        ("TO_TIMESTAMP(s, 'dd/MM/yy')", {"s": "01/01/70"}, datetime(1970, 1, 1)),
    ],
)
def test_values(expression: str, row: dict[str, Any], expected: Any) -> None:
    if "ts" in row and row["ts"] is not None:
        row = {**row, "ts": datetime(1970, 1, 1) + timedelta(milliseconds=row["ts"])}
    if "day" in row:
        row = {**row, "day": datetime(1970, 1, 1).date() + timedelta(days=row["day"])}
    assert value(expression, **row) == expected


@given(st.lists(st.one_of(st.none(), st.text("ab/,", max_size=8)), max_size=12), st.integers(-3, 4))
def test_parts_are_those_of_the_plain_split(texts: list[str | None], place: int) -> None:
    found = values(f"SPLIT_INDEX(s, '/', {place})", *[{"s": text} for text in texts])
    expected = [
        None if text is None or not 0 <= place < len(text.split("/")) else text.split("/")[place]
        for text in texts
    ]
    assert found == expected


@given(
    st.lists(st.one_of(st.none(), st.text("ab(1]", max_size=8)), max_size=12),
    st.sampled_from(["(a+)(b)?", r"([(\]])(.)", "(?:a|(b))1", r"[^a](a*)\]", "^(a|ab)(.*)$", "((a)b)+"]),
    st.integers(0, 1),
)
def test_groups_are_those_of_the_plain_search(texts: list[str | None], pattern: str, group: int) -> None:
    """The dialects agree on these patterns; a group without a part is empty here."""
    quoted = pattern.replace("'", "''")
    found = values(f"REGEXP_EXTRACT(s, '{quoted}', {group})", *[{"s": text} for text in texts])
    matches = [None if text is None else re.search(pattern, text) for text in texts]
    assert found == [None if match is None else match.group(group) or "" for match in matches]


@given(st.lists(st.one_of(st.none(), st.integers(-62_135_596_800_000, 10**14)), max_size=12))
def test_formats_are_those_of_strftime(instants: list[int | None]) -> None:
    zero = datetime(1970, 1, 1)
    given_ = [None if ms is None else zero + timedelta(milliseconds=ms) for ms in instants]
    rows = [{"ts": moment} for moment in given_]
    plain = [
        None if m is None else f"{m.year:04d}" + m.replace(tzinfo=UTC).strftime("-%m-%dT%H:%M:%S")
        for m in given_
    ]
    assert values("DATE_FORMAT(ts, 'yyyy-MM-dd''T''HH:mm:ss')", *rows) == plain
    assert values("TO_CHAR(ts, 'YYYY-MM-DD\"T\"HH24:MI:SS')", *rows) == plain
