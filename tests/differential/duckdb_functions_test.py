"""Functions against DuckDB's of the same name, over values that both take.

Where ours is an error DuckDB has one too, or NULL by TRY; doubles may differ in their last bits.
"""

from __future__ import annotations

import math
from typing import Any

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.language.evaluate import ERROR, values

TEXTS = st.text(st.sampled_from("aBc ßé_1-.%"), max_size=9)
COLUMNS = {"s": "VARCHAR", "u": "VARCHAR", "d": "DOUBLE", "e": "DOUBLE", "b": "BIGINT", "c": "BIGINT"}
DOUBLES = st.floats(-30, 30, width=32) | st.sampled_from([0.0, 1.0, -1.0, 0.5, 2.5, -2.5])
WHOLE = st.integers(-70, 70)

STRINGS = (
    "LEFT(s, {c})",
    "RIGHT(s, {c})",
    "LPAD(s, {p}, u || 'x')",
    "RPAD(s, {p}, u || 'x')",
    "REPEAT(s, {p})",
    "TRANSLATE(s, 'aB_', 'xy')",
    "CONCAT_WS(u, s, u, s)",
    "CONTAINS(s, u)",
    "ENDS_WITH(s, u)",
    "STRPOS(s, u)",
    "POSITION(u IN s)",
    "POSITION(u || 'a' IN s || u)",
    "OVERLAY(s PLACING u FROM 2)",
    "OVERLAY(s PLACING u || 'x' FROM 1 FOR 2)",
    "OVERLAY(s PLACING 'xy' FROM 1 + LENGTH(u) FOR 1)",
    "ASCII(s || 'a')",
    "MD5(s)",
    "SHA1(s)",
    "SHA256(s)",
    "REGEXP_REPLACE(s, '[aB]+', '<\\0>')",
    "REGEXP_REPLACE(s, '([aB])(.)', '\\2\\1', 'g')",
    "REGEXP_REPLACE(s, 'A|b', '', 'gi')",
    "SPLIT_PART(s, ' ', 2)",
    "s ~ '^.[aB ]'",
    "s ~* 'b.?$'",
    "s !~ 'a|_'",
    "s !~* 'A.b'",
    "s ~~ '_%a'",
    "s !~~* 'B%'",
    "ROW(s, u) = ROW(u, s)",
    "(s, u) <= ROW('b', s)",
    "s > E'a\\t\\u00e9'",
)
NUMBERS = (
    *(f"{name}(d)" for name in ("SIN", "COS", "TAN", "ATAN", "ASINH", "SINH", "COSH", "TANH", "CBRT")),
    *(f"{name}(d / 31)" for name in ("ASIN", "ACOS", "ATANH")),
    *(f"{name}(ABS(d) + 1)" for name in ("ACOSH", "LOG", "LOG2", "LOG10", "GAMMA", "LGAMMA", "COT")),
    "ATAN2(d, e)",
    "DEGREES(d)",
    "RADIANS(d)",
    "PI()",
    "TRUNC(d)",
    "LOG(ABS(e) + 2, ABS(d) + 1)",
    "d ^ 2 * 3 + 1",
    "b & c | 12",
    "b # c",
    "~b",
    "b >> 3",
    "ABS(b) << 5",
    "ABS(b) << 2 + 1",
    "GCD(b, c)",
    "LCM(b, c)",
    "FACTORIAL(CAST(ABS(b) % 20 AS INTEGER))",
    "IF(b > c, d, e)",
)


@pytest.fixture(scope="module")
def database() -> Any:
    with duckdb.connect() as connection:
        yield connection


NESTED = {
    "STRING_TO_ARRAY(s || 'a', ' ')": "string_split(s || 'a', ' ')",
    "ARRAY[b, c, 1][2]": "[b, c, 1][2]",
    "ARRAY[b, c][-1]": "[b, c][-1]",
    "ARRAY[b, c][3]": "[b, c][3]",
    "ARRAY[b, c, 3][2:]": "[b, c, 3][2:]",
    "ARRAY[b, c, 3][1:2]": "[b, c, 3][1:2]",
    "ARRAY_CONTAINS(ARRAY[b, 2], c)": "list_contains([b, 2], c)",
    "ARRAY[b] || ARRAY[c]": "[b] || [c]",
    "ARRAY_APPEND(ARRAY[b], c)": "list_append([b], c)",
    "ARRAY_PREPEND(c, ARRAY[b])": "list_prepend(c, [b])",
    "CARDINALITY(ARRAY[b, c])": "len([b, c])",
    "ARRAY_TO_STRING(ARRAY[b, c], '-')": "array_to_string([b, c], '-')",
    "JSON_OBJECT('a': b, 's': s)": "json_object('a', b, 's', s)",
    "JSON_ARRAY(b, s, NULL) -> 1": "json_array(b, s, NULL) -> 1",
    "JSON_ARRAY(b, s) ->> 1": "json_array(b, s) ->> 1",
    "JSON_EXTRACT_STRING(JSON_OBJECT('a': ARRAY[b, c]), '$.a[1]')": (
        "json_extract_string(json_object('a', [b, c]), '$.a[1]')"
    ),
    "JSON_ARRAY_LENGTH(JSON_ARRAY(b, c))": "json_array_length(json_array(b, c))",
    "JSON_KEYS(JSON_OBJECT('a': b, 'b': c))": "json_keys(json_object('a', b, 'b', c))",
    "TO_JSON(s)": "to_json(s)",
    "s IS JSON": "json_valid(s)",
    "STRUCT(b AS x, s AS y).y": "{'x': b, 'y': s}.y",
    "STRUCT(b AS x, s AS y)": "{'x': b, 'y': s}",
    "MAP('k', b)['k']": "MAP {'k': b}['k']",
    "MAP_KEYS(MAP('a', b, 'k', c))": "map_keys(MAP {'a': b, 'k': c})",
    "MAP_VALUES(MAP('a', b, 'k', c))": "map_values(MAP {'a': b, 'k': c})",
}


THERE = {
    "b # c": "xor(b, c)",
    "s ~ '^.[aB ]'": "regexp_matches(s, '^.[aB ]', 's')",
    "s ~* 'b.?$'": "regexp_matches(s, 'b.?$', 'si')",
    "s !~ 'a|_'": "NOT regexp_matches(s, 'a|_', 's')",
    "s !~* 'A.b'": "NOT regexp_matches(s, 'A.b', 'si')",
    "ROW(s, u) = ROW(u, s)": "s = u AND u = s",
    "(s, u) <= ROW('b', s)": "s < 'b' OR s = 'b' AND u <= s",
    **NESTED,
}


def same(ours: Any, theirs: Any) -> bool:
    if ours is ERROR or ours == ERROR:
        return theirs is None
    if isinstance(ours, float):
        return isinstance(theirs, float) and (
            math.isclose(ours, theirs, rel_tol=1e-12, abs_tol=1e-14) or (ours != ours and theirs != theirs)
        )
    return bool(ours == theirs)


def check(database: Any, texts: tuple[str, ...], row: dict[str, Any]) -> None:
    columns = ", ".join(f"CAST(? AS {type_}) {name}" for name, type_ in COLUMNS.items())
    given_values = [row.get(name) for name in COLUMNS]
    wanted = database.execute(
        f"SELECT {', '.join(f'TRY({THERE.get(text, text)})' for text in texts)} FROM (SELECT {columns})",
        given_values,
    ).fetchone()
    for text, theirs in zip(texts, wanted, strict=True):
        (ours,) = values(text, row)
        assert same(ours, theirs), (text, row, ours, theirs)


@given(TEXTS, st.none() | TEXTS, st.integers(-4, 6))
def test_of_strings(database: Any, s: str, u: str | None, places: int) -> None:
    texts = tuple(text.format(c=places, p=abs(places)) for text in STRINGS)
    check(database, texts, {"s": s, "u": u})


@given(DOUBLES, DOUBLES, WHOLE, WHOLE)
def test_of_numbers(database: Any, d: float, e: float, b: int, c: int) -> None:
    check(database, NUMBERS, {"d": d, "e": e, "b": b, "c": c})


@given(TEXTS, WHOLE, WHOLE)
def test_of_nested_values(database: Any, s: str, b: int, c: int) -> None:
    check(database, tuple(NESTED), {"s": s, "b": b, "c": c})
