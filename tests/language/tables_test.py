"""Tables: how they are made, what may not stand over them, and joins with their versions."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal

import pytest

from engine.algebra.join.stage import Join, Latest
from engine.language.query import CreateStream, DropStream, Query, Show
from engine.language.statements import parse
from engine.model.expressions import And, Column, Compare, Literal, Not
from engine.model.limits import Limits
from engine.model.source import Derived, Field, Stream
from engine.model.types import BIGINT, BOOLEAN, STRING, TIMESTAMP, decimal
from tests.language.fixtures import CATALOGUE, bind
from tureen.errors import TureenError


def created(sql: str) -> Stream:
    statement = parse(sql, {}, Limits())
    assert isinstance(statement, CreateStream)
    return statement.stream


def join_of(sql: str, catalogue: Mapping[str, Stream | Derived] = CATALOGUE) -> Join:
    query = parse(sql, catalogue, Limits())
    assert isinstance(query, Query)
    (join,) = [stage for stage in query.stages if isinstance(stage, Join)]
    return join


def test_a_table_has_a_key_whose_columns_are_not_null() -> None:
    table = created("CREATE TABLE t (a BIGINT PRIMARY KEY, b STRING)")
    assert table.is_table
    assert table.retroactive
    assert table.key == ("a",)
    assert table.schema.fields == (Field("a", BIGINT, nullable=False), Field("b", STRING))
    assert not created("CREATE STREAM s (a BIGINT)").is_table


@pytest.mark.parametrize(
    ("sql", "key", "retroactive"),
    [
        ("CREATE TABLE t (a BIGINT, b STRING, PRIMARY KEY (b, a))", ("b", "a"), True),
        ("CREATE TABLE t (PRIMARY KEY (a), a BIGINT NOT NULL)", ("a",), True),
        ("CREATE TABLE t (a BIGINT NOT NULL PRIMARY KEY)", ("a",), True),
        ("CREATE TABLE t (a BIGINT PRIMARY KEY NOT NULL)", ("a",), True),
        ('CREATE TABLE t ("A b" BIGINT, PRIMARY KEY ("A b")) RETROACTIVE', ("A b",), True),
        (
            "CREATE TABLE t (a BIGINT PRIMARY KEY, b TIMESTAMP) WITH (timestamp = 'b') NON RETROACTIVE",
            ("a",),
            False,
        ),
    ],
)
def test_forms(sql: str, key: tuple[str, ...], retroactive: bool) -> None:
    table = created(sql)
    assert (table.key, table.retroactive) == (key, retroactive)
    assert all(not field.nullable for field in table.schema if field.name in key)


def test_statements_about_tables() -> None:
    assert bind("DROP TABLE planes") == DropStream(CATALOGUE["planes"].name, table=True)
    assert bind("SHOW TABLES") == Show("tables")


def test_a_table_may_be_read_alone_and_below_views() -> None:
    query = bind("SELECT model, COUNT(*) AS n FROM planes WHERE seats > 100 GROUP BY model")
    assert isinstance(query, Query)
    assert query.source == "planes"
    assert not query.scan.history


# --- versions

ON = "ON f.carrier = t.carrier AND f.dest = t.dest"
DELETED = Column(9 + 4, "fares.deleted", BOOLEAN)


def test_rows_meet_the_version_as_of_their_instant() -> None:
    join = join_of(f"SELECT fare FROM flights f JOIN fares t {ON}")
    assert join.kind == "inner"
    assert join.inner.scan.history
    assert [column.name for column in _outputs(join)] == ["carrier", "dest", "fare", "since", "deleted"]
    assert [inner.index for _, inner in join.keys if isinstance(inner, Column)] == [0, 1]
    assert join.latest == Latest(Column(8, "ts", TIMESTAMP), Column(3, "since", TIMESTAMP))
    assert join.condition == Not(DELETED)


def _outputs(join: Join) -> list[Column]:
    project = join.inner.stages[0]
    columns = [output.expression for output in project.outputs]  # type: ignore[union-attr]
    return [column for column in columns if isinstance(column, Column)]


def test_all_but_the_key_is_asked_of_the_version_that_was_found() -> None:
    cheap = Compare("<", Column(9 + 2, "fares.fare", decimal(8, 2)), Literal(Decimal("10.00"), decimal(8, 2)))
    for sql in (
        f"SELECT fare FROM flights f JOIN fares t {ON} WHERE fare < 10",
        f"SELECT fare FROM flights f JOIN (SELECT * FROM fares WHERE fare < 10) t {ON}",
    ):
        join = join_of(sql)
        assert join.inner.scan.predicate is None
        assert join.condition == And((Not(DELETED), cheap))
    join = join_of(f"SELECT fare FROM flights f LEFT JOIN fares t {ON} AND f.price = t.fare")
    assert len(join.keys) == 2
    assert isinstance(join.condition, And)


def test_a_constant_may_be_a_part_of_the_key() -> None:
    join = join_of("SELECT fare FROM flights f JOIN fares t ON f.carrier = t.carrier AND t.dest = 'JFK'")
    assert len(join.keys) == 1
    assert join.inner.scan.predicate == Compare("=", Column(1, "dest", STRING), Literal("JFK", STRING))


def test_the_instant_is_that_of_the_stream_whose_columns_are_the_key() -> None:
    join = parse(
        "SELECT fare FROM flights f JOIN weather w ON f.day = w.day "
        "JOIN fares t ON t.carrier = w.dest AND t.dest = w.dest",
        CATALOGUE,
        Limits(),
    )
    assert isinstance(join, Query)
    last = join.stages[1]
    assert isinstance(last, Join)
    assert last.latest is not None
    assert last.latest.outer == Column(9 + 3, "ts_2", TIMESTAMP)


def test_semi_and_anti_joins_with_versions() -> None:
    for kind in ("semi", "anti"):
        join = join_of(f"SELECT f.dest FROM flights f {kind} JOIN fares t {ON} AND fare > 5")
        assert join.kind == kind
        assert join.inner.scan.history
        assert join.latest is not None


def test_a_table_that_has_a_column_deleted() -> None:
    table = created(
        "CREATE TABLE gone (k STRING PRIMARY KEY, deleted DOUBLE, ts TIMESTAMP) "
        "WITH (timestamp = 'ts') NON RETROACTIVE"
    )
    catalogue = {**CATALOGUE, "gone": table}
    join = join_of("SELECT deleted FROM flights f JOIN gone g ON g.k = f.dest", catalogue)
    assert [column.name for column in _outputs(join)] == ["k", "deleted", "ts", "deleted_2"]
    assert isinstance(join.condition, Not)


# --- times

ARRIVAL = {"ticks": created("CREATE STREAM ticks (k BIGINT, v DOUBLE)")}
TIMES = {**CATALOGUE, **ARRIVAL}


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 1 FROM flights f JOIN ticks t ON f.flight = t.k",
        "SELECT 1 FROM ticks JOIN planes ON k = flight JOIN flights f ON f.flight = k",
        "SELECT 1 FROM flights WHERE flight IN (SELECT k FROM ticks)",
        "CREATE VIEW v AS SELECT 1 AS one FROM flights f JOIN ticks t ON f.flight = t.k",
        "EXPLAIN SELECT 1 FROM flights f JOIN ticks t ON f.flight = t.k",
    ],
)
def test_streams_of_both_kinds_of_time_are_refused(sql: str) -> None:
    with pytest.raises(TureenError, match="ticks runs in arrival time, flights in event time") as caught:
        parse(sql, TIMES, Limits())
    assert caught.value.code == "not_supported"
    assert caught.value.column is not None
    assert caught.value.hint


def test_a_table_stands_beside_streams_of_either_time() -> None:
    for sql in (
        "SELECT 1 FROM flights f JOIN planes p ON f.flight = p.flight",
        "SELECT 1 FROM ticks JOIN planes ON k = flight",
    ):
        parse(sql, TIMES, Limits())
