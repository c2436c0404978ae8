"""Aggregates of all values, grouping sets, DISTINCT ON, changed stars and NATURAL JOIN against DuckDB's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.model.batch import Batch
from engine.model.source import SourceName
from engine.model.step import Heartbeat, Position, Step
from tests.capacities import small_engine
from tests.differential.agreement import EngineSubject, plain_rows
from tests.differential.duckdb_selects import close

ROWS = st.lists(
    st.tuples(
        st.sampled_from(["a", "b"]),
        st.none() | st.integers(-3, 9),
        st.none() | st.sampled_from([-2.5, 0.0, 1.0, 1.5, 7.25]) | st.floats(-100, 100, width=32),
        st.none() | st.sampled_from(["x", "y", "ä", ""]),
    ),
    max_size=30,
)
"""Key, whole number, double, string; each row has its place as a further column."""

SAME = (
    "MEDIAN(d)",
    "QUANTILE_CONT(d, 0.3)",
    "QUANTILE_DISC(d, 0.3)",
    "PERCENTILE_CONT(0.25) WITHIN GROUP (ORDER BY d DESC)",
    "PERCENTILE_DISC(0.25) WITHIN GROUP (ORDER BY i)",
    "PERCENTILE_DISC(0.7) WITHIN GROUP (ORDER BY i DESC)",
    "PERCENTILE_DISC(0) WITHIN GROUP (ORDER BY s)",
    "MEDIAN(DISTINCT i)",
    "STRING_AGG(s, '-' ORDER BY n)",
    "STRING_AGG(s, ', ' ORDER BY d DESC NULLS LAST, n) FILTER (WHERE i > 0)",
    "STRING_AGG(DISTINCT s, ',' ORDER BY s)",
    "FIRST(n ORDER BY d NULLS FIRST, n)",
    "LAST(n ORDER BY d DESC NULLS FIRST, n)",
    "BIT_AND(i)",
    "BIT_OR(i)",
    "BIT_XOR(i)",
    "ARG_MAX(n, i * 100 + n)",
    "ARG_MIN(s, i * 100 + n)",
    "COVAR_POP(d, i)",
    "COVAR_SAMP(d, i)",
    "REGR_COUNT(d, i)",
    "REGR_AVGX(d, i)",
    "REGR_AVGY(d, i)",
    "REGR_SXX(d, i)",
    "REGR_SYY(d, i)",
    "REGR_SXY(d, i)",
    "BOOL_AND(i > 0)",
)


STATEMENTS = (
    (
        "SELECT k, i % 2 AS odd, COUNT(*) AS c, COUNT(DISTINCT s) FILTER (WHERE i > 0) AS f, "
        "GROUPING(k, i % 2) AS g, GROUPING_ID(i % 2) AS h, MEDIAN(d) AS m FROM t GROUP BY CUBE (k, i % 2) "
        "ORDER BY g, k NULLS FIRST, odd NULLS FIRST"
    ),
    (
        "SELECT k, s, SUM(i) AS c, RANK() OVER (PARTITION BY GROUPING(k) ORDER BY SUM(i) DESC NULLS LAST) "
        "AS r, GROUPING(s) AS g FROM t WHERE d IS NOT NULL GROUP BY ROLLUP (k, s) "
        "HAVING COUNT(*) > 1 OR GROUPING(s, k) = 3 ORDER BY g, k NULLS FIRST, s NULLS FIRST LIMIT 4"
    ),
    "SELECT COUNT(*) AS c, MAX(n) AS m FROM t WHERE n > 1000 GROUP BY GROUPING SETS ((k), (), (), (k, i))",
    "SELECT k, COUNT(*) AS c, SUM(i) AS a FROM t GROUP BY k, ROLLUP (s) ORDER BY k, c, a NULLS LAST",
    (
        "SELECT k, s, i, COUNT(*) AS c FROM t GROUP BY GROUPING SETS ((k, s), CUBE (i)), "
        "GROUPING SETS (k, ()) ORDER BY k NULLS LAST, s NULLS LAST, i NULLS LAST, c"
    ),
    (
        "SELECT a.k, b.odd, COUNT(*) AS c FROM t a JOIN (SELECT n, i % 2 AS odd FROM t) b ON a.n = b.n "
        "GROUP BY GROUPING SETS ((a.k), (b.odd), ()) ORDER BY c, a.k NULLS LAST, b.odd NULLS LAST"
    ),
    "SELECT DISTINCT COUNT(*) AS c FROM t GROUP BY ROLLUP (k, (i, s)) ORDER BY c",
    "SELECT k, COUNT(*) AS c FROM t WHERE k IN (SELECT k FROM t GROUP BY ROLLUP (k)) GROUP BY k ORDER BY k",
    "SELECT k, i FROM t UNION ALL BY NAME (SELECT n, k FROM t ORDER BY n LIMIT 3) ORDER BY k, i, n",
    "(SELECT s, k FROM t) UNION BY NAME (SELECT k, s FROM t) UNION BY NAME SELECT 'z' AS k ORDER BY k, s",
    "((SELECT k, n FROM t) UNION ALL ((SELECT k, n FROM t ORDER BY n DESC LIMIT 2))) ORDER BY n, k LIMIT 9",
    "(SELECT k, n FROM t ORDER BY n LIMIT 4) ORDER BY n DESC LIMIT 2",
    "SELECT n FROM ((SELECT n FROM t) LIMIT 5) x WHERE n IN ((SELECT n FROM t WHERE i > 0)) ORDER BY n",
    "SELECT a.n, b.n AS m FROM t a ASOF LEFT JOIN t b ON a.k = b.k AND a.n < b.n ORDER BY a.n",
    "SELECT a.n, b.i FROM t a ASOF JOIN t b ON a.k = b.k AND a.i <= b.i ORDER BY a.n",
    "SELECT a.n, b.d FROM t a ASOF LEFT JOIN t b ON b.d > a.d ORDER BY a.n",
    "SELECT a.n, b.d FROM t a ASOF JOIN (SELECT * FROM t WHERE i > 0) b ON a.d >= b.d ORDER BY a.n",
    "SELECT DISTINCT ON (k) k, n, d FROM t ORDER BY k, d DESC NULLS LAST, n",
    (
        "SELECT DISTINCT ON (k, i % 2) n, k AS key, i % 2 AS odd FROM t "
        "ORDER BY 2 DESC, odd NULLS FIRST, i DESC NULLS LAST, n"
    ),
    "SELECT DISTINCT ON (k) k, COUNT(*) AS c, i FROM t GROUP BY k, i ORDER BY k, c DESC, i NULLS FIRST",
    "SELECT n, x FROM t, UNNEST(ARRAY[i, n, 1]) AS u(x) WHERE n > 3 AND x > 0 ORDER BY n, x",
    "SELECT n, x, o FROM t CROSS JOIN UNNEST(ARRAY[i, n, 1]) WITH ORDINALITY AS u(x, o) ORDER BY n, o",
    (
        "SELECT n, x FROM t LEFT JOIN UNNEST(STRING_TO_ARRAY(NULLIF(s, ''), 'b')) AS u(x) ON TRUE "
        "ORDER BY n, x NULLS FIRST"
    ),
    "SELECT x, COUNT(*) AS c, MAX(n) AS m FROM t, UNNEST(ARRAY[i, n]) u(x) GROUP BY x ORDER BY x NULLS LAST",
    "SELECT n, UNNEST(ARRAY[i, n]) AS x, UNNEST(ARRAY[n, 1, 2]) AS y FROM t ORDER BY n, y NULLS LAST, x",
    "SELECT UNNEST(ARRAY[i, n]) AS x, COUNT(*) AS c FROM t GROUP BY x ORDER BY x NULLS LAST",
    "SELECT b.n, x FROM t a, UNNEST(ARRAY[a.n, a.i]) u(x) JOIN t b ON b.n = x AND b.k = a.k ORDER BY b.n, x",
    "SELECT n FROM t WHERE n IN (SELECT x FROM t, UNNEST(ARRAY[i, 2]) AS u(x)) ORDER BY n",
    "SELECT n, y FROM t, UNNEST(ARRAY[ARRAY[n, i], ARRAY[1]]) u(x), UNNEST(x) w(y) ORDER BY n, y NULLS LAST",
    "SELECT n, v FROM t, LATERAL (VALUES (i), (n + 1)) AS u(v) WHERE v > 0 ORDER BY n, v",
    "SELECT n, v, w FROM t CROSS JOIN LATERAL (SELECT i + 1 AS v, k || '!' AS w) u WHERE v > 2 ORDER BY n",
    "SELECT a.n, u.n AS m FROM t a, LATERAL (SELECT n FROM t WHERE t.k = a.k AND t.i < a.i) u ORDER BY 1, m",
    (
        "SELECT a.n, x FROM t a, LATERAL (SELECT b.i + a.n AS x FROM t b WHERE b.k = a.k) u "
        "ORDER BY a.n, x NULLS LAST"
    ),
    (
        "SELECT a.n, m, c FROM t a LEFT JOIN LATERAL (SELECT MAX(i), COUNT(*) FROM t b WHERE b.n = a.i) "
        "u(m, c) ON TRUE ORDER BY a.n"
    ),
    (
        "SELECT a.n, m, c FROM t a CROSS JOIN LATERAL (SELECT MAX(i) AS m, COUNT(i) + 1 AS c FROM t b "
        "WHERE b.n = a.i) u WHERE c < 2 ORDER BY a.n"
    ),
    (
        "SELECT a.n, u.s, c FROM t a JOIN LATERAL (SELECT s, COUNT(*) AS c FROM t b WHERE b.k = a.k "
        "GROUP BY s) u ON c <= a.i ORDER BY a.n, u.s NULLS LAST"
    ),
    (
        "SELECT a.n, u.n AS m FROM t a LEFT JOIN LATERAL (SELECT n FROM t b WHERE b.k = a.k AND b.i > 0 "
        "ORDER BY n DESC LIMIT 2) u ON u.n < a.n ORDER BY a.n, m NULLS LAST"
    ),
    (
        "SELECT k, u.n FROM (SELECT DISTINCT k FROM t) a, LATERAL (SELECT n FROM t WHERE t.k = a.k "
        "ORDER BY n LIMIT 2 OFFSET 1) u ORDER BY k, u.n"
    ),
    (
        "SELECT a.n, x FROM t a LEFT JOIN LATERAL (SELECT DISTINCT s FROM t b WHERE b.k = a.k) u(x) ON TRUE "
        "ORDER BY a.n, x NULLS LAST"
    ),
    "SELECT a.n, c FROM t a, LATERAL (SELECT COUNT(*) FROM t) u(c) ORDER BY a.n",
    "SELECT n, x FROM t, LATERAL UNNEST(ARRAY[i, n]) AS u(x) ORDER BY n, x NULLS LAST",
    "SELECT * EXCLUDE (s, d) FROM t ORDER BY n",
    "SELECT * REPLACE (i + 1 AS i, k || '!' AS k) FROM t ORDER BY n",
    (
        "SELECT a.* EXCLUDE (n), n FROM t a NATURAL JOIN (SELECT n, k, i % 2 AS odd FROM t WHERE i > 0) b "
        "ORDER BY n"
    ),
)


@pytest.fixture(scope="module")
def database() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        connection.execute("SET threads = 1")
        yield connection


NAMES = ("k", "i", "d", "s", "n")


def texts() -> Iterator[str]:
    """Aggregates of all rows, then of each key; then statements that are read as others."""
    for key, by in (("", ""), ("k, ", " GROUP BY k ORDER BY k")):
        yield f"SELECT {key}{', '.join(f'{call} AS o{n}' for n, call in enumerate(SAME))} FROM t{by}"
    yield from STATEMENTS


@given(ROWS, st.integers(1, 5))
def test_answers(database: duckdb.DuckDBPyConnection, rows: list[tuple[Any, ...]], pieces: int) -> None:
    """Asked for, and kept while rows come in pieces."""
    columns = [list(column) for column in zip(*rows, strict=True)] if rows else [[], [], [], []]
    types = (pa.string(), pa.int64(), pa.float64(), pa.string())
    arrays = [pa.array(column, type_) for column, type_ in zip(columns, types, strict=True)]
    table = pa.table([*arrays, pa.array(range(len(rows)), pa.int64())], names=NAMES)
    subject = EngineSubject(engine := small_engine())
    engine.create("CREATE STREAM t (k STRING, i BIGINT, d DOUBLE, s STRING, n BIGINT) RETAIN 100 DAYS")
    for place, sql in enumerate(texts()):
        engine.register(f"lazy{place}", sql)
        subject.register(f"followed{place}", sql, {"maintenance": "eager"})
        engine.follow(f"followed{place}")
    schema = engine.catalogue["t"].schema
    for some in np.array_split(np.arange(len(rows)), pieces):
        batch = Batch.from_arrow(schema, table.take(pa.array(some)), np.zeros(len(some)), some, some)
        engine.ingest("t", batch, 10**6)
    for clock_ms in (10**6 + 40_000, 10**6 + 80_000):  # nothing comes any more: NOW is behind the last row
        position = Position(0, engine.position.sequence + 1)
        engine.enqueue(Step(position, clock_ms, Heartbeat(SourceName("t"))))
        engine.run()
    database.register("t", table)
    for place, sql in enumerate(texts()):
        theirs = plain_rows(database.sql(sql).to_arrow_table())
        for way in ("lazy", "followed"):
            ours = plain_rows(engine.view().snapshot(f"{way}{place}").table)
            for mine, other in zip(ours, theirs, strict=True):
                for at, (a, b) in enumerate(zip(mine, other, strict=True)):
                    assert close(a, b), (way, sql, at, a, b)
