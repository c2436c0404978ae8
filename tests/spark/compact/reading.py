"""History and current tables read by polars, DuckDB and Spark SQL alike."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import deltalake
import duckdb
import polars as pl
from pyspark.sql import SparkSession

AS_OF = "valid_from_ms <= {at} AND (valid_to_ms IS NULL OR {at} < valid_to_ms)"

Rows = list[tuple[Any, ...]]


def uri(root: Path, area: str, name: str) -> str:
    return str(root / area / name)


def by_polars(table: str, columns: list[str], where: str = "TRUE", version: int | None = None) -> Rows:
    frame = pl.scan_delta(table, version=version).filter(pl.sql_expr(where)).select(columns)
    return frame.collect().rows()


def by_duckdb(table: str, columns: list[str], where: str = "TRUE", version: int | None = None) -> Rows:
    rows = deltalake.DeltaTable(table, version=version).to_pyarrow_dataset()
    with duckdb.connect() as connection:
        connection.register("rows", rows)
        return connection.sql(f"SELECT {', '.join(columns)} FROM rows WHERE {where}").fetchall()


def by_spark(spark: SparkSession) -> Callable[..., Rows]:
    def read(table: str, columns: list[str], where: str = "TRUE", version: int | None = None) -> Rows:
        at = "" if version is None else f" VERSION AS OF {version}"
        sql = f"SELECT {', '.join(columns)} FROM delta.`{table}`{at} WHERE {where}"
        return [tuple(row) for row in spark.sql(sql).collect()]

    return read


def rows_of(found: Rows) -> list[str]:
    """Texts of (row, copies), equal rows as often as they are there."""
    return sorted(row for row, copies in found for _ in range(copies))


def commits(table: str, version: int | None = None) -> list[dict[str, Any]]:
    """The commits of a table up to a version (None: the newest), newest first."""
    found = deltalake.DeltaTable(table).history()
    return [one for one in found if version is None or one["version"] <= version]


def folded(table: str, version: int | None = None) -> dict[int, int]:
    """The position that a version of a current or history table says."""
    told = json.loads(commits(table, version)[0]["userMetadata"])["tureen_fold"]["folded"]
    return {int(partition): offset for partition, offset in told.items()}


def version(table: str) -> int:
    return deltalake.DeltaTable(table).version()
