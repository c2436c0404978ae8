"""dbt's adapter for PostgreSQL: the statements that it sends, and, where dbt is installed, the example."""

from __future__ import annotations

import os
import shutil
import subprocess
from decimal import Decimal
from pathlib import Path

import psycopg
import pytest

from tests.broker.doors import TOKEN, Door
from tests.kafka import wait_until

EXAMPLE = Path(__file__).parents[3] / "examples" / "dbt"
QUERY_COMMENT = (
    '/* {"app": "dbt", "profile_name": "tureen", "target_name": "broker", "node_id": "model.it\'s"} */'
)
RELATIONS = """
    select 'tureen' as database, tablename as name, schemaname as schema, 'table' as type
    from pg_tables where schemaname ilike 'public'
    union all select 'tureen' as database, viewname as name, schemaname as schema, 'view' as type
    from pg_views where schemaname ilike 'public'
    union all select 'tureen' as database, matviewname as name, schemaname as schema,
      'materialized_view' as type from pg_matviews where schemaname ilike 'public'"""
DEPENDENCIES = """
    select distinct dependent_namespace.nspname as dependent_schema, dependent_class.relname as dependent_name
    from pg_class as dependent_class
    join pg_namespace as dependent_namespace on dependent_namespace.oid = dependent_class.relnamespace
    join pg_depend as dependent_depend on dependent_depend.refobjid = dependent_class.oid
      and dependent_depend.classid = 'pg_rewrite'::regclass
      and dependent_depend.refclassid = 'pg_class'::regclass and dependent_depend.deptype = 'i'"""
INDEXES = """
    select i.relname as name, m.amname as method, ix.indisunique as "unique",
      array_to_string(array_agg(a.attname), ',') as column_names
    from pg_index ix join pg_class i on i.oid = ix.indexrelid join pg_am m on m.oid=i.relam
    join pg_class t on t.oid = ix.indrelid join pg_namespace n on n.oid = t.relnamespace
    join pg_attribute a on a.attrelid = t.oid and a.attnum = ANY(ix.indkey)
    where t.relname = 'recorded' and n.nspname = 'public' and t.relkind in ('r', 'm')
    group by 1, 2, 3 order by 1, 2, 3"""


def test_the_statements_that_dbt_sends(door: Door) -> None:
    name = '"tureen"."public"."recorded"'
    made = f'create materialized view if not exists {name} as\n SELECT id FROM "tureen"."public"."orders";'
    with psycopg.connect(door.dsn()) as connection:

        def send(sql: str) -> psycopg.Cursor[tuple[object, ...]]:
            return connection.execute(f"{QUERY_COMMENT}\n{sql}")

        assert ("public",) in send("select distinct nspname from pg_namespace").fetchall()
        assert (
            send(f"drop materialized view if exists {name} cascade").statusmessage == "DROP MATERIALIZED VIEW"
        )
        assert send(made).statusmessage == "CREATE MATERIALIZED VIEW"
        assert ("tureen", "recorded", "public", "materialized_view") in send(RELATIONS).fetchall()
        assert send(DEPENDENCIES).fetchall() == []
        assert send(INDEXES).fetchall() == []
        assert send(f"refresh materialized view {name}").statusmessage == "REFRESH MATERIALIZED VIEW"
        failures = "select count(*) as failures, count(*) != 0 as should_warn from "
        tested = f"( select id from {name} where id is null ) dbt_internal_test"
        assert send(f"{failures}{tested}").fetchall() == [(0, False)]
        send(f"drop materialized view if exists {name} cascade;\n{made}")
        send(f"drop materialized view if exists {name} cascade")
        assert all(row[1] != "recorded" for row in send(RELATIONS).fetchall())


@pytest.mark.skipif(shutil.which("dbt") is None, reason="dbt is not installed (dbt-core, dbt-postgres)")
def test_the_example_runs(door: Door, tmp_path: Path) -> None:
    own = {"TUREEN_POSTGRES_PORT": str(door.port), "TUREEN_HTTP_TOKEN": TOKEN}
    own |= {"DBT_SEND_ANONYMOUS_USAGE_STATS": "false", "DBT_LOG_PATH": str(tmp_path / "logs")}

    def dbt(*words: str) -> None:
        command = ["dbt", *words, "--profiles-dir", str(EXAMPLE), "--project-dir", str(EXAMPLE)]
        done = subprocess.run(
            [*command, "--target-path", str(tmp_path / "target")],
            env=os.environ | own,
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
        assert done.returncode == 0, done.stdout

    with door.connect() as connection:
        columns = "id BIGINT, customer STRING, total DECIMAL(10, 2), PRIMARY KEY (id)"
        connection.execute(f"CREATE TABLE purchases ({columns})")
        connection.execute(
            "INSERT INTO purchases VALUES (1, 'ann', 20.50), (2, 'bob', 300), (3, 'ann', 150.25)"
        )
        for words in (["run"], ["run"], ["run", "--full-refresh"], ["test"]):
            dbt(*words)
        spent = [("ann", Decimal("170.75")), ("bob", Decimal("300.00"))]
        sql = "SELECT * FROM large_spending ORDER BY customer"
        wait_until(lambda: connection.execute(sql).fetchall() == spent, what="the views have their rows")
        connection.execute("DROP MATERIALIZED VIEW large_spending")
        connection.execute("DROP MATERIALIZED VIEW spending")
