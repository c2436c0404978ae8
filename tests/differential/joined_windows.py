"""Answers of joins of two streams over windows, against DuckDB over the rows that the windows hold."""

from __future__ import annotations

from collections.abc import Mapping

import duckdb
import pyarrow as pa

from engine.engine import Engine


def compare(engine: Engine, queries: Mapping[str, str], tables: Mapping[str, pa.Table]) -> None:
    """Some answers against DuckDB over what the windows hold."""
    view = engine.view()
    with duckdb.connect() as database:
        database.execute("SET threads = 1")
        for query_id in list(queries)[:: max(1, len(queries) // 15)]:
            answer, text = view.snapshot(query_id), queries[query_id]
            now = answer.now_ms
            for name, table in tables.items():
                seen = table.slice(0, now + 1)
                kept = 3_000 if "ROWS" in text else 2_001 if "2 SECONDS" in text else 901
                database.register(name, seen.slice(max(0, len(seen) - kept)))
            plain = text
            for window in ("[ROWS 3000] ", "[RANGE 2 SECONDS] ", "[RANGE 900 MILLISECONDS] "):
                plain = plain.replace(window, "")
            expected = database.sql(plain).fetchall()
            found = list(zip(*(column.to_pylist() for column in answer.table.columns), strict=True))
            assert sorted(found, key=str) == sorted(expected, key=str), text
