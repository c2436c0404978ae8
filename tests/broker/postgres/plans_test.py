"""What a statement is to be answered by, and how texts of PostgreSQL become those of DuckDB."""

from __future__ import annotations

import pyarrow as pa
import pytest
from sqlglot import exp

from broker.postgres import commands
from broker.postgres.escapes import without_escapes
from broker.postgres.evaluation import Select, bytes_of
from broker.postgres.plans import (
    Carried,
    Command,
    Copied,
    CopyOptions,
    Evaluated,
    Nothing,
    Once,
    Whole,
    plan_of,
)
from broker.postgres.relations import Relation
from broker.postgres.rewriting import (
    column_names,
    parameter_uses,
    relations_of,
    rewritten,
    select_of,
    with_placeholders,
)
from broker.postgres.settings import SessionSettings, UnknownSetting
from tureen.errors import NotSupported, SyntaxRefused, UnknownSource


class Known:
    """Relations of which some are queries and some are sources."""

    def is_source(self, name: str) -> bool:
        return name in ("orders", "both", "kept")

    def is_materialized(self, name: str) -> bool:
        return name == "kept"

    def query(self, name: str, schema: str | None = None) -> str | None:
        return f"id-of-{name}" if name in ("alerts", "both", "Mixed", "kept") else None

    def all(self) -> tuple[Relation, ...]:
        return (Relation("public", "alerts", "query", ()), Relation("public", "orders", "stream", ()))


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("", Nothing()),
        (" -- only a comment\n", Nothing()),
        (";", Nothing()),
        ("SELECT * FROM alerts", Whole("alerts", None, None)),
        ("select * from public.ALERTS limit 5;", Whole("alerts", "public", 5)),
        ('TABLE "Mixed"', Whole("Mixed", None, None)),
        ("SELECT * FROM queries.both", Whole("both", "queries", None)),
        ("SELECT * FROM both", Once("SELECT * FROM both")),
        ('SELECT o.id FROM "public"."orders" o', Once('SELECT o.id FROM          "orders" o')),
        ("SELECT 'public.x' FROM public.orders", Once("SELECT 'public.x' FROM        orders")),
        ("SELECT a FROM orders [RANGE 1 HOUR]", Once("SELECT a FROM orders [RANGE 1 HOUR]")),
        ("SELECT * FROM kept", Whole("kept", None, None)),
        ('SELECT * FROM "tureen"."public"."alerts"', Whole("alerts", "public", None)),
        ("SELECT 1 FROM kept JOIN orders USING (id)", Once("SELECT 1 FROM kept JOIN orders USING (id)")),
        ('DROP VIEW IF EXISTS "tureen"."public"."v"', Carried('DROP VIEW IF EXISTS                   "v"')),
        (
            """/* {"name": "tureen", 'it''s public.v'} */ DROP VIEW public.v""",
            Carried("""/* {"name": "tureen", 'it''s public.v'} */ DROP VIEW        v"""),
        ),
        ("VALUES (1)", Once("VALUES (1)")),
        ("BEGIN", Command("BEGIN")),
        ("show server_version", Command("show server_version")),
        ("SHOW QUERIES", Carried("SHOW QUERIES")),
        ("DROP STREAM orders;", Carried("DROP STREAM orders")),
        ("REGISTER SELECT id FROM orders", Carried("SELECT id FROM orders", registers=True)),
        ("COPY alerts TO STDOUT", Copied(Whole("alerts", None, None), CopyOptions())),
        (
            "COPY (SELECT * FROM alerts) TO STDOUT WITH (FORMAT csv, HEADER true, DELIMITER ';', NULL 'x')",
            Copied(Whole("alerts", None, None), CopyOptions("csv", True, ";", "x")),
        ),
        (
            "COPY alerts TO STDOUT CSV HEADER",
            Copied(Whole("alerts", None, None), CopyOptions("csv", True, ",", "")),
        ),
    ],
)
def test_plans(sql: str, expected: object) -> None:
    assert plan_of(sql, Known()) == expected  # type: ignore[arg-type]


@pytest.mark.parametrize("sql", ["SELECT n FROM alerts WHERE n > 1", "SELECT 1", "SELECT * FROM pg_class"])
def test_what_is_evaluated(sql: str) -> None:
    assert isinstance(plan_of(sql, Known()), Evaluated)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM alerts JOIN orders USING (id)",
        "COPY orders FROM STDIN",
        "COPY alerts TO '/tmp/file'",
        "COPY alerts TO STDOUT (FORMAT xml)",
        "COPY alerts TO STDOUT (DELIMITER '||')",
        "VACUUM",
        "LOCK TABLE orders",
        "?",
    ],
)
def test_what_is_refused(sql: str) -> None:
    with pytest.raises((NotSupported, SyntaxRefused)):
        plan_of(sql, Known())  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("sql", "place"),
    [
        ("SELECT * FROM alertss", (1, 15)),
        ("SELECT a\n  FROM public.alertss x", (2, 15)),
        ("COPY alertss TO STDOUT", (1, 6)),
        ("COPY nobody TO STDOUT", (1, 6)),
        ("COPY (SELECT * FROM alertss) TO STDOUT", (1, 21)),
    ],
)
def test_names_of_queries_are_proposed_too(sql: str, place: tuple[int, int]) -> None:
    with pytest.raises(UnknownSource) as refused:
        plan_of(sql, Known())  # type: ignore[arg-type]
    assert (refused.value.line, refused.value.column) == place
    assert "alerts" in (refused.value.hint or "")


def test_a_select_that_is_copied_keeps_its_place() -> None:
    copied = plan_of("COPY (SELECT id\n FROM orders) TO STDOUT", Known())  # type: ignore[arg-type]
    assert copied == Copied(Once("      SELECT id\n FROM orders"), CopyOptions())


def test_parameters_of_an_insert_that_are_cast() -> None:
    sql = """INSERT INTO t VALUES ($1::VARCHAR COLLATE "default", $2::NUMERIC(4, 2)), ('$1::INT', $3)"""
    planned = plan_of(sql, Known())  # type: ignore[arg-type]
    assert isinstance(planned, Carried)
    assert " ".join(planned.sql.split()) == "INSERT INTO t VALUES ($1 , $2 ), ('$1::INT', $3)"
    assert len(planned.sql) == len(sql)


def test_bytes_are_decoded_where_their_placeholder_stands() -> None:
    sql = """SELECT '$1', "$1" FROM s WHERE a = $1 AND b = $2 -- $1"""
    assert with_placeholders(sql, {1: "DECODE({}, 'hex')"}) == sql.replace("= $1", "= DECODE($1, 'hex')")


def test_nothing_but_a_select_is_a_select() -> None:
    for sql in (
        "SELECT 1; SELECT 2",
        "DELETE FROM x",
        "SELECT 1 INTO t",
        "INSERT INTO t VALUES (1)",
        "(" * 5_000,
    ):
        assert select_of(sql) is None


def test_texts_are_rewritten() -> None:
    tree = select_of(
        "WITH w AS (SELECT 1 AS a) SELECT w.a, c.oid::regclass, public.c.x FROM w, pg_catalog.pg_class c"
    )
    assert tree is not None
    assert relations_of(tree) == [("pg_catalog", "pg_class")]
    text = rewritten(tree, lambda name: ("catalogue", name[1]), "me")
    assert "name_of_regclass" in text.lower()
    assert '"catalogue"."pg_class" AS c' in text
    assert "public" not in text
    named = select_of(
        "SELECT a, count(*), b::int, 1, f(x) AS g FROM t WHERE a = $1 AND b > $2::date LIMIT $3"
    )
    assert named is not None
    assert column_names(named) == ["a", "count", "b", "?column?", "g"]
    called = select_of("SELECT rank() OVER (), sum(a) FILTER (WHERE b), to_char(a, 'YYYY'), j -> 0 FROM t")
    assert called is not None
    assert column_names(called) == ["rank", "sum", "to_char", "?column?"]
    assert parameter_uses(named) == {1: ("column", "a"), 2: ("type", "DATE"), 3: ("type", "int8")}


def test_settings_and_transactions() -> None:
    settings, now = SessionSettings(), commands.Transaction()
    for sql in ("SET statement_timeout = '2s'", "SET SESSION application_name TO 'x'", "SET TIME ZONE 'UTC'"):
        told = commands.setting(sql, now, settings)
        assert told is not None
        assert told.tag == "SET"
    assert settings.timeout_ms == 2_000
    for sql in (
        "SET client_encoding = 'LATIN1'",
        "SET server_version = '9'",
        "SET statement_timeout = 'soon'",
    ):
        with pytest.raises(UnknownSetting):
            commands.setting(sql, now, settings)
    assert commands.transaction("BEGIN READ ONLY", now, settings) == commands.Told("BEGIN")
    assert (now.status, now.reads_only) == ("T", True)
    now.fail()
    ended = commands.transaction("COMMIT", now, settings)
    assert ended is not None
    assert (ended.tag, now.status) == ("ROLLBACK", "I")
    assert commands.fetched("FETCH FORWARD 5 FROM c") == commands.Fetched("c", 5)
    assert commands.fetched('FETCH ALL IN "C c"') == commands.Fetched("C c", None)
    assert commands.declared("DECLARE c BINARY CURSOR FOR SELECT 1") == ("c", "SELECT 1", True)
    with pytest.raises(SyntaxRefused):
        commands.fetched("FETCH BACKWARD 5 FROM c")


@pytest.mark.parametrize(
    ("escaped", "plain"),
    [
        (r"E'\ud83d\ude00'", "'\U0001f600'"),
        (r"e'it\'s \x41\101 it''s'", "'it''s AA it''s'"),
        (r"'E\n' || E'\\'", r"'E\n' || '\'"),
        (r"""'e''\n', "E'\n", E'\t' -- E'\n'""", """'e''\\n', "E'\\n", '\t' -- E'\\n'"""),
    ],
)
def test_escapes_mean_what_they_mean_over_streams(escaped: str, plain: str) -> None:
    found = without_escapes(f"SELECT {escaped}")
    assert len(found) == len(f"SELECT {escaped}")
    assert found.split() == f"SELECT {plain}".split()


@pytest.mark.parametrize("escaped", [r"E'\ud83d'", r"E'\ude00\ud83d'", r"E'\ud83dx'", r"E'\xff'", r"E'\u12'"])
def test_escapes_that_mean_nothing_are_refused_where_they_stand(escaped: str) -> None:
    with pytest.raises(SyntaxRefused) as refused:
        plan_of(f"SELECT 1,\n {escaped} FROM alerts", Known())  # type: ignore[arg-type]
    assert (refused.value.line, refused.value.column) == (2, 2)


def test_comparisons_of_a_long_text_look_for_its_tables_once(monkeypatch: pytest.MonkeyPatch) -> None:
    tree = select_of("SELECT n FROM q WHERE " + " OR ".join(f"n = {one}" for one in range(100)))
    assert tree is not None
    looked: list[object] = []
    find_all = exp.Select.find_all
    monkeypatch.setattr(
        exp.Select, "find_all", lambda one, *kinds: looked.append(kinds) or find_all(one, *kinds)
    )
    is_bytes = bytes_of(Select("", tree, {(None, "q"): pa.table({"n": [1]})}, [], "me"))
    rewritten(tree, lambda name: ("temp", name[1]), "me", is_bytes)
    assert looked.count((exp.Table,)) == 1
