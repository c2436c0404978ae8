"""psql, SQLAlchemy, and the texts that catalogue browsers and BI tools send, against a real broker."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from decimal import Decimal
from pathlib import Path

import pytest
import sqlalchemy as sa

from tests.broker.doors import TOKEN, Door

BOARD = Path(__file__).parents[3] / "examples" / "grafana" / "board.json"

needs_psql = pytest.mark.skipif(
    shutil.which("psql") is None and os.environ.get("CI") != "true", reason="psql is not here"
)


def psql(door: Door, *commands: str) -> str:
    """What it prints, unaligned. Fails where it says ERROR."""
    arguments = [word for command in commands for word in ("-c", command)]
    done = subprocess.run(
        ["psql", "-X", "-A", "-v", "ON_ERROR_STOP=1", "-d", door.dsn(), *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@needs_psql
def test_psql_lists_and_describes(door: Door) -> None:
    listed = psql(door, "\\d")
    for line in (
        "public|all_types|materialized view|tureen",
        "public|everything|table|tureen",
        "public|orders|table|tureen",
        "public|large|view|tureen",
    ):
        assert line in listed
    assert "public|orders|table|tureen" in psql(door, "\\dt")
    assert "public|large|view|tureen" in psql(door, "\\dv")
    assert "public|per_customer|materialized view|tureen" in psql(door, "\\dm")
    assert "orders_pkey" in psql(door, "\\di")
    described = psql(door, "\\d orders")
    assert "id|bigint||not null|" in described
    assert "total|numeric(10,2)|||" in described
    assert '"orders_pkey" PRIMARY KEY, btree (id)' in described
    assert "SELECT * FROM everything" in psql(door, "\\d+ all_types")
    assert "at|timestamp with time zone" in psql(door, "\\d all_types")


@needs_psql
@pytest.mark.parametrize(
    "command",
    [
        "\\l",
        "\\du",
        "\\dn",
        "\\df",
        "\\dT",
        "\\dp",
        "\\db",
        "\\dx",
        "\\ds",
        "\\dE",
        "\\sv large",
        "\\conninfo",
    ],
)
def test_psql_asks_for_other_things(door: Door, command: str) -> None:
    psql(door, command)


@needs_psql
def test_psql_runs_statements_and_copies(door: Door) -> None:
    out = psql(
        door, "SELECT customer, n FROM per_customer WHERE customer = 'bob'", "\\copy all_types TO STDOUT CSV"
    )
    assert "bob|1" in out
    assert "2013-01-31 09:15:00.123+00" in out


@pytest.fixture
def engine(door: Door) -> sa.Engine:
    return sa.create_engine(
        f"postgresql+psycopg://me:{TOKEN}@127.0.0.1:{door.port}/tureen", poolclass=sa.NullPool
    )


def test_sqlalchemy_reflects(engine: sa.Engine) -> None:
    inspector = sa.inspect(engine)
    assert {"orders", "everything"} <= set(inspector.get_table_names())
    assert "large" in inspector.get_view_names()
    assert {"all_types", "per_customer"} <= set(inspector.get_materialized_view_names())
    assert inspector.get_pk_constraint("orders")["constrained_columns"] == ["id"]
    assert inspector.get_foreign_keys("orders") == []
    assert [one["name"] for one in inspector.get_columns("orders")] == ["id", "customer", "total"]
    assert [type(one["type"]) for one in inspector.get_columns("orders")] == [sa.BIGINT, sa.TEXT, sa.NUMERIC]
    assert inspector.has_table("orders")
    assert not inspector.has_table("nowhere")
    orders = sa.Table("orders", sa.MetaData(), autoload_with=engine)
    assert [one.name for one in orders.primary_key] == ["id"]


def test_sqlalchemy_asks(engine: sa.Engine) -> None:
    kept = sa.Table("per_customer", sa.MetaData(), autoload_with=engine)
    with engine.connect() as connection:
        asked = sa.select(kept.c.customer, kept.c.n).where(kept.c.customer.in_(["bob"])).limit(5)
        assert connection.execute(asked).all() == [("bob", 1)]
        counted = connection.execute(
            sa.select(sa.func.count()).select_from(kept).where(kept.c.n >= 1)
        ).scalar_one()
        assert counted >= 2
        large = sa.Table("large", sa.MetaData(), autoload_with=engine)
        assert connection.execute(sa.select(large).where(large.c.id == 2)).all() == [(2, Decimal("300.00"))]
        streamed = connection.execution_options(stream_results=True).execute(
            sa.text("SELECT id FROM all_types")
        )
        assert [row[0] for row in streamed] == [1, 2, 3]


QUERIES = {
    "grafana, version": "SELECT current_setting('server_version_num')::int/100 as version",
    "grafana, timescale": "SELECT extversion FROM pg_extension WHERE extname = 'timescaledb'",
    "grafana, tables": """SELECT CASE WHEN quote_ident(table_schema) IN (
          SELECT CASE WHEN trim(s[i]) = '"$user"' THEN user ELSE trim(s[i]) END
          FROM generate_series(array_lower(string_to_array(current_setting('search_path'),','),1),
            array_upper(string_to_array(current_setting('search_path'),','),1)) as i,
            string_to_array(current_setting('search_path'),',') s)
        THEN quote_ident(table_name)
        ELSE quote_ident(table_schema) || '.' || quote_ident(table_name) END AS "table"
        FROM information_schema.tables
        WHERE quote_ident(table_schema) NOT IN ('information_schema', 'pg_catalog') ORDER BY 1""",
    "grafana, columns": """SELECT quote_ident(column_name) AS "column", data_type AS "type"
        FROM information_schema.columns WHERE quote_ident(table_name) = 'orders'""",
    "metabase, tables": """SELECT n.nspname AS schema, c.relname AS name,
        CASE c.relkind WHEN 'r' THEN 'TABLE' WHEN 'p' THEN 'PARTITIONED TABLE' WHEN 'v' THEN 'VIEW'
          WHEN 'f' THEN 'FOREIGN TABLE' WHEN 'm' THEN 'MATERIALIZED VIEW' ELSE NULL END AS type,
        d.description AS description, NULLIF(stat.n_live_tup, 0) AS estimated_row_count
        FROM pg_catalog.pg_class AS c
        INNER JOIN pg_catalog.pg_namespace AS n ON c.relnamespace = n.oid
        LEFT JOIN pg_catalog.pg_description AS d
          ON c.oid = d.objoid AND d.objsubid = 0 AND d.classoid = 'pg_class'::regclass
        LEFT JOIN pg_stat_user_tables AS stat
          ON n.nspname = stat.schemaname AND c.relname = stat.relname
        WHERE c.relnamespace = n.oid AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'
          AND c.relkind IN ('r', 'p', 'v', 'f', 'm') AND n.nspname IN ('public')
        ORDER BY type ASC, schema ASC, name ASC""",
    "metabase, columns": """SELECT c.column_name AS name, c.udt_name AS "database-type",
        c.ordinal_position - 1 AS "database-position", c.table_schema AS "table-schema",
        c.table_name AS "table-name", pk.column_name IS NOT NULL AS "pk?",
        col_description(CAST(CAST(format('%I.%I', CAST(c.table_schema AS TEXT), CAST(c.table_name AS TEXT))
          AS REGCLASS) AS OID), c.ordinal_position) AS "field-comment"
        FROM information_schema.columns AS c
        LEFT JOIN (SELECT tc.table_schema, tc.table_name, kc.column_name
          FROM information_schema.table_constraints AS tc
          INNER JOIN information_schema.key_column_usage AS kc
            ON tc.constraint_name = kc.constraint_name AND tc.table_schema = kc.table_schema
          WHERE tc.constraint_type = 'PRIMARY KEY') AS pk
        ON c.table_schema = pk.table_schema AND c.table_name = pk.table_name
          AND c.column_name = pk.column_name
        WHERE c.table_schema !~ '^information_schema|catalog_history|pg_' AND c.table_schema IN ('public')""",
    "metabase, a question": """SELECT "public"."per_customer"."customer" AS "customer",
        SUM("public"."per_customer"."n") AS "sum" FROM "public"."per_customer"
        GROUP BY "public"."per_customer"."customer"
        ORDER BY "public"."per_customer"."customer" ASC LIMIT 2000""",
    "metabase, a stream": 'SELECT "public"."orders"."id" AS "id" FROM "public"."orders" LIMIT 2000',
    "jdbc, tables": """SELECT NULL AS TABLE_CAT, n.nspname AS TABLE_SCHEM, c.relname AS TABLE_NAME,
        CASE n.nspname ~ '^pg_' OR n.nspname = 'information_schema' WHEN true THEN 'SYSTEM TABLE'
          WHEN false THEN CASE c.relkind WHEN 'r' THEN 'TABLE' WHEN 'v' THEN 'VIEW' ELSE NULL END
          ELSE NULL END AS TABLE_TYPE, d.description AS REMARKS
        FROM pg_catalog.pg_namespace n, pg_catalog.pg_class c
        LEFT JOIN pg_catalog.pg_description d
          ON (c.oid = d.objoid AND d.objsubid = 0 and d.classoid = 'pg_class'::regclass)
        WHERE c.relnamespace = n.oid AND n.nspname LIKE 'public'
        ORDER BY TABLE_TYPE, TABLE_SCHEM, TABLE_NAME""",
    "jdbc, keys": """SELECT NULL AS TABLE_CAT, result.TABLE_SCHEM, result.TABLE_NAME, result.COLUMN_NAME
        FROM (SELECT n.nspname AS TABLE_SCHEM, ct.relname AS TABLE_NAME, a.attname AS COLUMN_NAME,
          (information_schema._pg_expandarray(i.indkey)).n AS KEY_SEQ, ci.relname AS PK_NAME,
          information_schema._pg_expandarray(i.indkey) AS KEYS, a.attnum AS A_ATTNUM
          FROM pg_catalog.pg_class ct JOIN pg_catalog.pg_attribute a ON (ct.oid = a.attrelid)
          JOIN pg_catalog.pg_namespace n ON (ct.relnamespace = n.oid)
          JOIN pg_catalog.pg_index i ON (a.attrelid = i.indrelid)
          JOIN pg_catalog.pg_class ci ON (ci.oid = i.indexrelid)
          WHERE true AND ct.relname = 'orders' AND i.indisprimary) result
        where result.A_ATTNUM = (result.KEYS).x ORDER BY result.table_name, result.PK_NAME, result.KEY_SEQ""",
    "dbeaver, databases": """SELECT db.oid, db.* FROM pg_catalog.pg_database db
        WHERE datallowconn AND NOT datistemplate OR db.datname = 'tureen' ORDER BY db.datname""",
    "dbeaver, schemas": """SELECT n.oid, n.*, d.description FROM pg_catalog.pg_namespace n
        LEFT OUTER JOIN pg_catalog.pg_description d
          ON d.objoid = n.oid AND d.objsubid = 0 AND d.classoid = 'pg_namespace'::regclass
        ORDER BY nspname""",
    "dbeaver, relations": """SELECT c.oid, c.*, d.description, pg_catalog.pg_get_expr(c.relpartbound, c.oid)
          as partition_expr, pg_catalog.pg_get_partkeydef(c.oid) as partition_key
        FROM pg_catalog.pg_class c LEFT OUTER JOIN pg_catalog.pg_description d
          ON d.objoid = c.oid AND d.objsubid = 0 AND d.classoid = 'pg_class'::regclass
        WHERE c.relnamespace = 2200 AND c.relkind not in ('i','I','c')""",
    "dbeaver, columns": """SELECT c.relname, a.*, pg_catalog.pg_get_expr(ad.adbin, ad.adrelid, true)
          as def_value, dsc.description, dep.objid
        FROM pg_catalog.pg_attribute a INNER JOIN pg_catalog.pg_class c ON (a.attrelid = c.oid)
        LEFT OUTER JOIN pg_catalog.pg_attrdef ad ON (a.attrelid = ad.adrelid AND a.attnum = ad.adnum)
        LEFT OUTER JOIN pg_catalog.pg_description dsc ON (c.oid = dsc.objoid AND a.attnum = dsc.objsubid)
        LEFT OUTER JOIN pg_depend dep on dep.refobjid = a.attrelid AND dep.deptype = 'i'
          and dep.refobjsubid = a.attnum and dep.classid = dep.refclassid
        WHERE NOT a.attisdropped AND c.relkind not in ('i','I','c') ORDER BY a.attnum""",
    "dbeaver, types": """SELECT t.oid, t.*, c.relkind, format_type(nullif(t.typbasetype, 0), t.typtypmod)
          as base_type_name, d.description
        FROM pg_catalog.pg_type t LEFT OUTER JOIN pg_catalog.pg_type et ON et.oid = t.typelem
        LEFT OUTER JOIN pg_catalog.pg_class c ON c.oid = t.typrelid
        LEFT OUTER JOIN pg_catalog.pg_description d ON t.oid = d.objoid
        WHERE t.typname IS NOT NULL AND (c.relkind IS NULL OR c.relkind = 'c')""",
    "sessions": "SELECT pid, usename, state FROM pg_stat_activity",
    "identity": "SELECT current_schema(), session_user, current_catalog, pg_backend_pid()",
}
"""As tools send them, shortened where they repeat themselves."""


@pytest.mark.parametrize("name", [name for name in QUERIES if name not in ("grafana, timescale", "sessions")])
def test_texts_of_tools_have_answers(door: Door, name: str) -> None:
    with door.connect() as connection:
        assert connection.execute(QUERIES[name]).fetchall()


def test_panels_of_the_board_have_rows(door: Door) -> None:
    board = json.loads(BOARD.read_text())
    texts = [
        target["rawSql"]
        for panel in board["panels"]
        for target in panel.get("targets", ())
        if "rawSql" in target
    ]
    (named,) = (one["query"] for one in board["templating"]["list"] if one["type"] == "query")
    assert len(texts) == 3
    with door.connect() as connection:
        names = [name for (name,) in connection.execute(named).fetchall()]
        assert {"all_types", "per_customer"} <= set(names)
        for name in ("all_types", "per_customer"):
            for text in texts:
                asked = text.replace("${query}", name)
                assert len(connection.execute(asked).fetchall()) >= 2, asked


def test_texts_of_tools_for_what_is_not_here(door: Door) -> None:
    with door.connect() as connection:
        assert connection.execute(QUERIES["grafana, timescale"]).fetchall() == []
        assert connection.execute(QUERIES["sessions"]).fetchall() == []
        keys = connection.execute(QUERIES["jdbc, keys"]).fetchall()
        assert keys == [(None, "public", "orders", "id")]
        graph = """SELECT floor(extract(epoch from at) / 60) * 60 AS time, count(*) AS value
            FROM all_types WHERE at BETWEEN '1990-01-01T00:00:00Z' AND '2030-01-01T00:00:00Z'
            GROUP BY 1 ORDER BY 1"""
        assert len(connection.execute(graph).fetchall()) == 2
