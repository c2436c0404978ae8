"""Nested values in the engine and in the reference: expressions row by row, and queries that are followed."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.algebra.project.stage import Project
from tests.differential.changes import agree
from tests.differential.expressions import bound, by_column, by_row
from tests.differential.nested import ROWS, STREAM, batch_of, followed
from tests.strategies import examples

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
    "j #> '{fw}'",
    "whole #>> '{j,n,-1}'",
    "whole #> '{a,1}'",
    "j #> '{}'",
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
    "txt SIMILAR TO '(a|\\[|[0-9a-f])_*%'",
    "txt SIMILAR TO '[\"{]%.*' OR txt NOT SIMILAR TO 'n_+l{2}'",
    "MAP_KEYS(m)",
    "MAP_FROM_ENTRIES(ARRAY[STRUCT(txt AS k, v AS x), STRUCT('a' AS k, 1e0 AS x), NULL])",
    "MAP_FROM_ENTRIES(ARRAY[STRUCT(COALESCE(txt, 'b') AS k, j AS x), STRUCT('a' AS k, whole AS x)])",
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
@given(rows=st.lists(ROWS, max_size=8), repeats=st.integers(1, 3))
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
    """SELECT k, JSON_AGG(v ORDER BY ts DESC) FILTER (WHERE v > 0) AS l, JSON_AGG(s) AS m FROM s [ROWS 4]
    GROUP BY k EMIT CHANGES""",
    """SELECT JSON_OBJECT_AGG(k, j ORDER BY ts) AS o, MAP_AGG(txt, x) FILTER (WHERE k > 0) AS m
    FROM s [ROWS 4] EMIT CHANGES""",
    """SELECT k, ARRAY_AGG(DISTINCT u) AS l,
    JSON_AGG(DISTINCT txt ORDER BY txt DESC) FILTER (WHERE v > 0) AS m FROM s [ROWS 4] GROUP BY k
    EMIT CHANGES""",
    "SELECT JSON_AGG(k) OVER (ORDER BY ts ROWS 1 PRECEDING) AS l FROM s [ROWS 4]",
    "SELECT * FROM s [RANGE 20 MILLISECONDS]",
]


@given(steps=st.lists(st.lists(ROWS, min_size=1, max_size=4), max_size=4))
@settings(max_examples=examples(15), deadline=None)
def test_queries_that_are_followed(steps: list[list[dict[str, Any]]]) -> None:
    agree(followed(QUERIES, steps))
