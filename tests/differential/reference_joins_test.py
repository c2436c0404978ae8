"""The reference's joins, by examples that can be followed with a pencil, and small ones against DuckDB."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from engine.algebra.join.stage import Join, JoinKind, Latest
from engine.algebra.operators import Stage
from engine.algebra.project.stage import Output, Project
from engine.algebra.semi_join.stage import SemiJoin
from engine.language.query import Query, Scan
from engine.model.expressions import And, Arithmetic, Column, Compare, Expression, Literal, Not
from engine.model.source import Field, Schema, SourceName, Stream
from engine.model.types import BOOLEAN, INTEGER
from engine.reference.joins import join
from engine.reference.rows import Placed, Row, Source
from engine.reference.seen import Seen, now_of, seen_at
from engine.reference.stages import answer
from engine.windows.clauses import UNBOUNDED
from tests.time_windows import range_window

K, X, INNER_K, INNER_X = (Column(n, name, INTEGER) for n, name in enumerate(["k", "x", "k", "x"]))
SCHEMA = Schema((Field("k", INTEGER), Field("x", INTEGER)))
BARE = (Project((Output("k", K), Output("x", X))),)
NAMES = ("l", "r")
Rows = list[tuple[Any, ...]]
KINDS: tuple[JoinKind, ...] = ("inner", "left", "right", "full", "semi", "anti")


def source(name: str, rows: Rows, now: int | None = 100, **settings: Any) -> Source:
    """Rows of (k, x), the n-th at the instant n."""
    stream = Stream(SourceName(name), SCHEMA, name, timestamp_column="ts", **settings)
    return Source(stream, now, rows=[Row(n, 0, n, row) for n, row in enumerate(rows)], retained_from=-100)


def scan_of(name: str) -> Scan:
    return Scan(SourceName(name), UNBOUNDED)


def joined(left: Rows, right: Rows, *stages: Stage) -> Rows:
    at = {name: Seen(source(name, rows), 100) for name, rows in zip(NAMES, (left, right), strict=True)}
    return answer(Query("", scan_of("l"), stages), at)[0]


def joining(kind: JoinKind, condition: Expression | None = None, keyed: bool = True, **more: Any) -> Join:
    return Join(Query("", scan_of("r"), BARE), kind, ((K, K),) if keyed else (), condition, **more)


LEFT: Rows = [(1, 10), (2, 20), (None, 30), (1, 40)]
RIGHT: Rows = [(3, 1), (1, 2), (None, 3), (1, 4)]


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("inner", [(1, 10, 1, 2), (1, 10, 1, 4), (1, 40, 1, 2), (1, 40, 1, 4)]),
        ("semi", [(1, 10), (1, 40)]),
        ("anti", [(2, 20), (None, 30)]),
    ],
)
def test_partners_come_in_the_order_of_either_side(kind: JoinKind, expected: Rows) -> None:
    assert joined(LEFT, RIGHT, joining(kind)) == expected


def test_rows_without_a_partner_stand_where_they_would_or_at_the_end() -> None:
    matched = [(1, 10, 1, 2), (1, 10, 1, 4)]
    left, right = [(1, 10), (2, 20)], RIGHT
    lonely = [(None, None, 3, 1), (None, None, None, 3)]
    assert joined(left, right, joining("left")) == [*matched, (2, 20, None, None)]
    assert joined(left, right, joining("right")) == [*matched, *lonely]
    assert joined(left, right, joining("full")) == [*matched, (2, 20, None, None), *lonely]
    assert joined([], right[:1], joining("full")) == [(None, None, 3, 1)]


def test_an_error_in_a_key_is_null_and_one_in_the_condition_is_no_partner() -> None:
    inverse = Arithmetic("/", Literal(2, INTEGER), K, INTEGER)
    by_key = replace(joining("left"), keys=((inverse, X),))
    at = {"l": Seen(source("l", [(0, 1), (1, 2)]), 9), "r": Seen(source("r", [(7, 2), (7, 2)]), 9)}
    rows, errors, _ = answer(Query("", scan_of("l"), (by_key,)), at)
    assert (rows, errors) == ([(0, 1, None, None), (1, 2, 7, 2), (1, 2, 7, 2)], 1)
    condition = Compare(">", Arithmetic("/", X, INNER_X, INTEGER), Literal(0, INTEGER))
    at = {"l": Seen(source("l", [(1, 5), (2, 5)]), 9), "r": Seen(source("r", [(1, 0), (1, 1)]), 9)}
    rows, errors, _ = answer(Query("", scan_of("l"), (joining("inner", condition),)), at)
    assert (rows, errors) == ([(1, 5, 1, 1)], 1)


def test_the_latest_is_picked_before_the_condition() -> None:
    latest = Latest(X, X)
    right: Rows = [(1, 5), (1, 20), (2, 30), (1, 10), (1, 10), (1, None)]
    left: Rows = [(1, 10), (1, 19), (1, 4), (2, None), (None, 40), (2, 30)]
    rows = joined(left, right, joining("left", latest=latest))
    assert [row[2:] for row in rows] == [(1, 10), (1, 10), (None, None), (None, None), (None, None), (2, 30)]
    rows = joined(left, right, joining("inner", latest=replace(latest, strict=True)))
    assert rows == [(1, 10, 1, 5), (1, 19, 1, 10)]
    below = Compare("<", INNER_X, Literal(10, INTEGER))
    assert joined(left, right, joining("inner", below, latest=latest)) == []


def test_joined_rows_have_no_number_of_a_stream() -> None:
    outer = [Placed(ordinal, values) for ordinal, values in zip((5, 70, 71, 90), LEFT, strict=True)]
    rows, _ = join(joining("full"), outer, 2, RIGHT)
    assert [row.ordinal for row in rows] == [None] * 8
    rows, _ = join(joining("anti"), outer, 2, RIGHT)
    assert [row.ordinal for row in rows] == [None, None]


def test_every_source_has_its_window_at_the_one_now() -> None:
    streams = {name: source(name, [(1, n) for n in range(6)], now) for name, now in [("l", 5), ("r", 3)]}
    inner = Query("", Scan(SourceName("r"), range_window(0)), BARE)
    query = Query("", Scan(SourceName("l"), range_window(1)), (Join(inner, "inner", ((K, K),)),))
    assert now_of(query, streams) == 3
    assert answer(query, seen_at(query, streams, 3))[0] == [(1, 2, 1, 3), (1, 3, 1, 3)]
    streams["r"].now = None
    assert now_of(query, streams) is None
    assert answer(query, seen_at(query, streams, None))[0] == []


def test_a_table_gives_its_latest_versions_and_holds_nothing_back() -> None:
    table = source("r", [], 2, key=("k",))
    table.rows = [Row(n, 0, n, values) for n, values in enumerate([(1, 1), (2, 2), (1, 3)])]
    table.rows.append(Row(4, 0, 3, (2, None), deleted=True))
    sources = {"l": source("l", [(1, 0), (2, 0)], 1), "r": table}
    query = Query("", scan_of("l"), (joining("left"),))
    assert now_of(query, sources) == 1
    assert answer(query, seen_at(query, sources, 1))[0] == [(1, 0, 1, 1), (2, 0, 2, 2)]
    sources["l"].now = 9
    assert answer(query, seen_at(query, sources, 9))[0] == [(1, 0, 1, 3), (2, 0, 2, 2)]
    table.now = 4
    assert answer(query, seen_at(query, sources, 9))[0] == [(1, 0, 1, 3), (2, 0, None, None)]
    of_arrival = replace(table.stream, timestamp_column=None)
    sources |= {"r": replace(table, stream=of_arrival), "l": replace(sources["l"], now=1)}
    assert answer(query, seen_at(query, sources, 1))[0] == [(1, 0, 1, 3), (2, 0, None, None)]
    alone = Query("", scan_of("r"), BARE)
    assert now_of(alone, sources) == 4
    assert answer(alone, seen_at(alone, sources, 3))[0] == [(2, 2), (1, 3)]


def test_a_row_joins_the_version_that_held_at_its_instant() -> None:
    table = source("r", [], 9, key=("k",))
    table.rows = [Row(2, 0, 0, (1, 2)), Row(4, 0, 1, (1, 4), True), Row(6, 0, 2, (1, 6))]
    sources = {"l": source("l", [(1, n) for n in range(8)], 9), "r": table}
    history = Scan(SourceName("r"), UNBOUNDED, history=True)
    outputs = (*BARE[0].outputs, Output("deleted", Column(2, "deleted", BOOLEAN)))
    inner = Query("", history, (Project(outputs),))
    held = Not(Column(4, "deleted", BOOLEAN))
    as_of = Join(inner, "left", ((K, K),), held, Latest(X, X))
    query = Query("", scan_of("l"), (as_of,))
    rows = answer(query, seen_at(query, sources, 9))[0]
    assert [row[3] for row in rows] == [None, None, 2, 2, None, None, 6, 6]


# --- DuckDB -------------------------------------------------------------------------------------------

SIDES: tuple[Rows, ...] = (
    [],
    [(1, 1)],
    [(None, 1), (1, None)],
    [(1, 1), (1, 2), (2, 2)],
    [(2, 1), (1, 3), (None, None), (3, 2), (1, 3)],
)
CONDITIONS: dict[str, tuple[bool, Expression | None]] = {
    "l.k = r.k": (True, None),
    "l.k = r.k AND l.x < r.x": (True, Compare("<", X, INNER_X)),
    "l.x <= r.x": (False, Compare("<=", X, INNER_X)),
    "l.x BETWEEN r.x - 1 AND r.x": (
        False,
        And(
            (
                Compare(">=", X, Arithmetic("-", INNER_X, Literal(1, INTEGER), INTEGER)),
                Compare("<=", X, INNER_X),
            )
        ),
    ),
    "NOT l.k = r.k": (False, Not(Compare("=", K, INNER_K))),
}


PAIRS = list(product(SIDES, SIDES))
BOTH = "COALESCE(l.p, r.p), l.k, l.x, r.k, r.x"


@pytest.fixture(scope="module")
def database() -> Iterator[duckdb.DuckDBPyConnection]:
    """Tables l and r: the sides of every pair, under its number p."""
    with duckdb.connect() as connection:
        connection.execute("SET threads = 1")
        for side, name in enumerate(NAMES):
            rows = [(p, *row) for p, pair in enumerate(PAIRS) for row in pair[side]]
            columns = {name: [row[n] for row in rows] for n, name in enumerate("pkx")}
            connection.register(name, pa.table(columns, pa.schema([(name, pa.int32()) for name in "pkx"])))
        yield connection


def assert_each_as(
    database: duckdb.DuckDBPyConnection, text: str, mine: Callable[[Rows, Rows], Rows]
) -> None:
    """Check that DuckDB and ``mine`` give the same bag for every pair. text: gives the pair's number before
    its own columns.
    """
    theirs = database.sql(text).fetchall()
    for p, (left, right) in enumerate(PAIRS):
        expected = [row[1:] for row in theirs if row[0] == p]
        assert sorted(mine(left, right), key=str) == sorted(expected, key=str), (left, right)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("on", CONDITIONS)
def test_as_duckdb(database: duckdb.DuckDBPyConnection, kind: JoinKind, on: str) -> None:
    keyed, condition = CONDITIONS[on]
    columns = "l.*" if kind in ("semi", "anti") else BOTH
    text = f"SELECT {columns} FROM l {kind} JOIN r ON l.p = r.p AND {on}"
    stage = joining(kind, condition, keyed)
    assert_each_as(database, text, lambda left, right: joined(left, right, stage))


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("kind", ["inner", "left"])
def test_the_latest_as_duckdb(database: duckdb.DuckDBPyConnection, kind: JoinKind, strict: bool) -> None:
    """Where it is not one of several equal ones."""
    on = f"l.p = r.p AND l.k = r.k AND l.x {'>' if strict else '>='} r.x"
    text = f"SELECT {BOTH} FROM l ASOF {kind} JOIN (SELECT DISTINCT * FROM r) AS r ON {on}"
    stage = joining(kind, latest=Latest(X, X, strict))
    assert_each_as(database, text, lambda left, right: joined(left, list(dict.fromkeys(right)), stage))


@pytest.mark.parametrize("negated", [False, True])
def test_membership_over_another_source_as_duckdb(database: duckdb.DuckDBPyConnection, negated: bool) -> None:
    inner = Query("", scan_of("r"), (Project((Output("k", K),)),))
    stage = SemiJoin((K,), inner, negated, null_aware=True)
    word = "NOT IN" if negated else "IN"
    text = f"SELECT * FROM l WHERE k {word} (SELECT k FROM r WHERE r.p = l.p)"
    assert_each_as(database, text, lambda left, right: joined(left, right, stage))
