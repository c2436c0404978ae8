"""Nested values in the engine and in the reference: expressions row by row, and queries that are followed."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.algebra.project.stage import Project
from engine.language.query import CreateStream
from engine.language.statements import parse
from engine.model.batch import Batch
from engine.model.limits import Limits
from engine.model.source import SourceName, Stream
from engine.model.step import Body, CreateSource, Position, Records, Register, Registration, Step
from tests.differential.changes import agree
from tests.differential.expressions import bound, by_column, by_row
from tests.strategies import examples
from topics.codec import decode

COLUMNS = """k INT, j JSON, a ARRAY<INT>, t ARRAY<STRING>, x ARRAY<DOUBLE>, d ARRAY<DECIMAL(6, 2)>,
    n ARRAY<ARRAY<INT>>, i ARRAY<TIMESTAMP>, s STRUCT<a INT, "B c" STRING, l ARRAY<JSON>>,
    m MAP<STRING, DOUBLE>, u UUID, b BYTES, fw STRING PATH '$.j.fw', whole JSON PATH '$',
    txt STRING, v DOUBLE"""
TEXT = f"CREATE STREAM s ({COLUMNS}, ts TIMESTAMP NOT NULL) WITH (topic = 's', timestamp = 'ts')"


def stream() -> Stream:
    created = parse(TEXT, {}, Limits())
    assert isinstance(created, CreateStream)
    return created.stream


STREAM = stream()

_scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 3),
    st.sampled_from([2**63, -(2**63), 2**64, 1.5, 2.0, -0.0, 1e22, 1e-7, 123456789012345680.0]),
    st.sampled_from(["", "a", "fw", '"', "\\", "é", "\u2028", "1", "true", "null", "[1]", "a,b"]),
)
_names = st.sampled_from(["f", "n", "a", "B c", "é"])
_json = st.recursive(
    _scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_names, inner, max_size=3),
    max_leaves=6,
)
_texts = st.sampled_from(["", "a", "b", "a,b", '"', "é"])
_instants = st.sampled_from([0, 1_700_000_000_123, "2024-02-29", "2024-02-29T12:00:00+01:00"])
_rows = st.fixed_dictionaries(
    {},
    optional={
        "k": st.integers(-2, 3),
        "j": _json | st.fixed_dictionaries({"fw": st.sampled_from(["1", "2"])}),
        "a": st.lists(st.none() | st.integers(-2, 3), max_size=4),
        "t": st.lists(st.none() | _texts, max_size=3),
        "x": st.lists(st.none() | st.sampled_from([0.0, -0.0, 1, 1.5, 1e22, "NaN", "-Infinity"]), max_size=3),
        "d": st.lists(st.none() | st.sampled_from([1, "1.50", -2.25, "0.01"]), max_size=3),
        "n": st.lists(st.none() | st.lists(st.integers(0, 1), max_size=2), max_size=3),
        "i": st.lists(st.none() | _instants, max_size=2),
        "s": st.fixed_dictionaries(
            {}, optional={"a": st.integers(0, 2), "b C": _texts, "l": st.lists(_json, max_size=2)}
        ),
        "m": st.dictionaries(_names, st.none() | st.sampled_from([1, 0.5, "NaN"]), max_size=3),
        "u": st.sampled_from(
            ["550E8400-e29b-41d4-a716-446655440000", "550e8400e29b41d4a716446655440000", "0" * 32]
        ),
        "b": st.sampled_from(["", "aGk=", "/w=="]),
        "txt": st.sampled_from(
            ["", "a", "[1, 2.0]", '{"fw": 1}', "null", "{", "6869", "aGk=", '{"a": 1, "a": 2}']
        )
        | _json.map(json.dumps),
        "v": st.sampled_from([0.0, -0.0, 1.5, 1e300]),
    },
)


def batch_of(rows: list[dict[str, Any]], first: int = 0) -> Batch:
    values = [json.dumps({**row, "ts": 10 * place}).encode() for place, row in enumerate(rows, first)]
    count = len(rows)
    decoded = decode(STREAM, values, np.zeros(count), np.arange(first, first + count), np.arange(count))
    assert not decoded.bad
    return decoded.batch


EXPRESSIONS = [
    "j -> 'fw'",
    "j -> 0",
    "j -> -1",
    "j ->> 'fw'",
    "j -> 'n' ->> 0",
    "j -> txt",
    "j ->> k",
    "txt ->> 'fw'",
    "JSON_EXTRACT(j, '$.n[0]')",
    "JSON_EXTRACT_STRING(whole, '$.s.a')",
    "JSON_VALUE(j, '$')",
    "JSON_EXISTS(j, '$.fw')",
    "JSON_EXISTS(whole, '$.a[1]')",
    "JSON_ARRAY_LENGTH(j)",
    "JSON_ARRAY_LENGTH(whole, '$.a')",
    "JSON_TYPE(j)",
    "JSON_KEYS(j)",
    "JSON_VALID(txt)",
    "txt IS NOT JSON",
    "j IS JSON",
    "JSON_OBJECT('k': k, 'j': j, 'a': a, 'u': u, 'b': b, 'v': v)",
    "JSON_OBJECT(txt, k)",
    "JSON_ARRAY(k, j, m, d, i, x)",
    "TO_JSON(s)",
    "TO_JSON(txt)",
    "TO_JSON(v)",
    "CAST(txt AS JSON)",
    "TRY_CAST(txt AS ARRAY<DOUBLE>)",
    "CAST(j AS ARRAY<JSON>)",
    "TRY_CAST(j AS MAP<STRING, JSON>)",
    "CAST(j AS STRING)",
    "TRY_CAST(j AS BIGINT)",
    "TRY_CAST(j AS DOUBLE)",
    "TRY_CAST(j -> 'fw' AS BOOLEAN)",
    "CAST(a AS ARRAY<BIGINT>)",
    "CAST(a AS JSON)",
    "CAST(x AS JSON)",
    "TRY_CAST(t AS ARRAY<INT>)",
    "CAST(d AS ARRAY<DECIMAL(8, 3)>)",
    "CAST(s AS JSON)",
    "CAST(m AS STRING)",
    "TRY_CAST(j AS STRUCT<fw STRING, n ARRAY<INT>>)",
    "CAST(k AS JSON)",
    "CAST(v AS JSON)",
    "a[1]",
    "a[k]",
    "a[-1]",
    "t[2]",
    "x[1]",
    "d[1]",
    "n[1][1]",
    "i[1]",
    "a[2:]",
    "a[:2]",
    "a[k:3]",
    "a[-2:-1]",
    "CARDINALITY(a)",
    "CARDINALITY(m)",
    "ARRAY_CONTAINS(a, 1)",
    "ARRAY_CONTAINS(t, txt)",
    "1 = ANY(a)",
    "k = ANY(a)",
    "k <> ALL(a)",
    "ARRAY_POSITION(a, k)",
    "ARRAY_POSITION(x, v)",
    "ARRAY_CONTAINS(d, 1.5)",
    "a || ARRAY[k]",
    "a || k",
    "k || a",
    "ARRAY_CONCAT(t, t)",
    "ARRAY_APPEND(n, a)",
    "ARRAY_DISTINCT(a)",
    "ARRAY_DISTINCT(x)",
    "ARRAY_TO_STRING(a, ',')",
    "ARRAY_TO_STRING(t, ',', '?')",
    "ARRAY_TO_STRING(d, '')",
    "ARRAY_TO_STRING(x, ' ')",
    "ARRAY_TO_STRING(i, ' ')",
    "ARRAY_TO_STRING(n, ' ')",
    "STRING_TO_ARRAY(txt, ',')",
    "STRING_TO_ARRAY(txt, '')",
    "ARRAY[k, 2, NULL]",
    "ARRAY[v, 1.5]",
    "ARRAY[a, a]",
    "ARRAY[j]",
    "s.a",
    's."B c"',
    "s.l[1]",
    'STRUCT(k, v AS "V v")',
    "STRUCT(s AS s, a[1] AS f).s.a",
    "m['a']",
    "m[txt]",
    "MAP_KEYS(m)",
    "MAP_VALUES(m)",
    "MAP_CONTAINS_KEY(m, 'a')",
    "MAP('x', k, 'y', 2)",
    "MAP[txt, v]",
    "u = '550e8400-e29b-41d4-a716-446655440000'",
    "CAST(u AS STRING)",
    "u > '1'::UUID",
    "TRY_CAST(txt AS UUID)",
    "CAST(u AS JSON)",
    "LENGTH(b)",
    "ENCODE(b, 'base64')",
    "ENCODE(b, 'hex')",
    "ENCODE(b, 'utf-8')",
    "CAST(b AS STRING)",
    "CAST(txt AS BYTES)",
    "DECODE(txt, 'hex')",
    "DECODE(txt, 'base64')",
    "b = X'6869'",
    "b < X'ff'",
    'j = \'{"fw": "1"}\'',
    "j <> whole",
    "a = ARRAY[1, 2]",
    "a IN (ARRAY[1], ARRAY[1, 2])",
    "a IS DISTINCT FROM n[1]",
    "COALESCE(a, ARRAY[9])",
    "CASE WHEN k > 0 THEN a ELSE n[1] END",
    "NULLIF(j, JSON '\"a\"')",
    "s = STRUCT(1 AS a, 'a' AS \"B c\", CAST('[]' AS ARRAY<JSON>) AS l)",
]


@pytest.mark.parametrize("text", EXPRESSIONS)
@given(rows=st.lists(_rows, max_size=8), repeats=st.integers(1, 3))
@settings(max_examples=examples(25), deadline=None)
def test_expressions_row_by_row(text: str, rows: list[dict[str, Any]], repeats: int) -> None:
    batch = batch_of(rows * repeats)
    text = text.replace("'1'::UUID", "'11111111-1111-1111-1111-111111111111'::UUID")
    selection = bound(STREAM.schema, f"SELECT {text} AS o FROM s")
    (project,) = selection.stages
    assert isinstance(project, Project)
    expression = project.outputs[0].expression
    assert by_column(expression, batch) == by_row(expression, batch)


QUERIES = [
    "SELECT k, j, a, s, m, u, b, fw FROM s [RANGE 30 MILLISECONDS] EMIT CHANGES",
    "SELECT j, COUNT(*) AS n FROM s [RANGE 40 MILLISECONDS] GROUP BY j EMIT CHANGES",
    "SELECT a, s, SUM(k) AS n FROM s [ROWS 4] GROUP BY a, s EMIT CHANGES",
    "SELECT s.a, COUNT(*) AS n FROM s [ROWS 4] GROUP BY s.a HAVING s.a > -2 EMIT CHANGES",
    """SELECT l.s.a, (l.s)."B c", MAX(k) AS n FROM s [ROWS 4] l
    GROUP BY ROLLUP (l.s.a, l.s."B c") EMIT CHANGES""",
    "SELECT DISTINCT a, m FROM s [RANGE 30 MILLISECONDS] EMIT CHANGES",
    "SELECT k, ARRAY_AGG(j) AS l, ARRAY_AGG(a) AS n FROM s [ROWS 5] GROUP BY k EMIT CHANGES",
    "SELECT l.k, r.k AS o FROM s [ROWS 4] l JOIN s [ROWS 3] r ON l.a = r.a EMIT CHANGES",
    "SELECT k FROM s [ROWS 5] l WHERE EXISTS (SELECT 1 FROM s [ROWS 3] r WHERE r.u = l.u) EMIT CHANGES",
    "SELECT a FROM s [ROWS 3] EXCEPT SELECT n[1] FROM s [ROWS 3] EMIT CHANGES",
    "SELECT ARRAY_AGG(x) AS l FROM s WHERE j ->> 'fw' = '1' AND fw = '1' EMIT CHANGES",
    """SELECT k, CARDINALITY(l) AS n, l[1] AS f
    FROM (SELECT k, ARRAY_AGG(v ORDER BY ts) AS l FROM s GROUP BY k) EMIT CHANGES""",
    "SELECT k, j, ROW_NUMBER() OVER (PARTITION BY a ORDER BY ts) AS n FROM s [ROWS 4] EMIT CHANGES",
    "SELECT FIRST(j) AS f, LAST(s) AS l, COUNT(DISTINCT a) AS n FROM s [ROWS 4] EMIT CHANGES",
    """SELECT k FROM s WHERE a = ARRAY[1] OR j = '[]' OR u = '00000000-0000-0000-0000-000000000000'
    EMIT CHANGES""",
    "SELECT u, b FROM s ORDER BY u, b DESC LIMIT 3",
    "SELECT * FROM s [RANGE 20 MILLISECONDS]",
]


@given(steps=st.lists(st.lists(_rows, min_size=1, max_size=4), max_size=4))
@settings(max_examples=examples(15), deadline=None)
def test_queries_that_are_followed(steps: list[list[dict[str, Any]]]) -> None:
    bodies: list[Body] = [
        CreateSource(STREAM, TEXT),
        Register(tuple(Registration(f"q{place}", text) for place, text in enumerate(QUERIES))),
    ]
    first = 0
    for rows in steps:
        bodies.append(Records(SourceName("s"), batch_of(rows, first), {}))
        first += len(rows)
    agree([Step(Position(1, place), 1_000, body) for place, body in enumerate(bodies, start=1)])
