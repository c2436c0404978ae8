"""Small files merged and old rows removed, while the archive grows and readers read."""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import deltalake
import polars as pl
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from spark_jobs.compact.job import run
from spark_jobs.compact.settings import DAY_MS, HOUR_MS, CompactSettings
from storage.archive.coverage import Coverage, in_force
from tests.spark.compact import archives
from tests.spark.compact.reading import by_polars, commits, uri, version

BEGIN_MS = archives.START_MS - archives.START_MS % DAY_MS


def archive(root: Path, name: str, rows: list[dict[str, Any]]) -> str:
    table = uri(root, "streams", name)
    archives.append(table, rows, archives.STREAM_SCHEMA, ["_date", "_hour"])
    return table


def row(offset: int, ms: int) -> dict[str, Any]:
    return archives.placed(0, offset, ms) | {"id": offset, "city": "Bern", "seen": None}


def coverage_at(table: str, number: int) -> Coverage:
    """What a reader who opened a version is told."""
    found = in_force(commit.get("userMetadata") for commit in commits(table, number))
    assert found is not None
    return found


def test_small_files_become_one_in_order_while_records_come(spark: SparkSession, tmp_path: Path) -> None:
    offsets = iter(range(100))
    for _ in range(3):  # each commit leaves a file in each of two hours, later rows before earlier ones
        some = [row(next(offsets), BEGIN_MS + hour * HOUR_MS + ms) for hour in (1, 0) for ms in (900, 900, 5)]
        table = archive(tmp_path, "s", some)
    before = version(table)

    left = run(spark, CompactSettings(archive=str(tmp_path)), datetime.now(UTC))
    assert left.tables[0].partitions_merged == 0  # they are being written
    settings = CompactSettings(archive=str(tmp_path), quiet_ms=0)

    def done(_: str, what: str) -> None:
        if what == "begun":
            archive(tmp_path, "s", [row(next(offsets), BEGIN_MS + 1)])

    assert version(table) == before
    report = run(spark, settings, datetime.now(UTC), done=done)

    assert (report.tables[0].partitions_merged, report.tables[0].files_after) == (2, 2)
    for number in range(before, version(table) + 1):
        found = sorted(by_polars(table, ["_offset"], version=number))
        assert found == [(offset,) for offset in range(18 if number == before else 19)]
        assert coverage_at(table, number).partitions[0].next_offset == len(found)
    for path in deltalake.DeltaTable(table).file_uris():
        rows = pq.ParquetFile(path).read(["_timestamp", "_partition", "_offset"]).to_pylist()
        keys = [tuple(one.values()) for one in rows]
        assert keys == sorted(keys)
        assert len(keys) in (9, 10)
    assert run(spark, settings, datetime.now(UTC)).tables[0].partitions_merged == 0


def test_what_is_removed_was_said_before(spark: SparkSession, tmp_path: Path) -> None:
    times = [BEGIN_MS + hour * HOUR_MS + ms for hour in (0, 1, 24, 47, 48, 70) for ms in (0, HOUR_MS - 1)]
    table = archive(tmp_path, "s", [row(offset, ms) for offset, ms in enumerate(times)])
    before = version(table)
    settings = CompactSettings(archive=str(tmp_path), retain_ms=DAY_MS)

    planned = run(
        spark, CompactSettings(archive=str(tmp_path), retain_ms=DAY_MS, dry_run=True), datetime.now(UTC)
    )
    assert version(table) == before
    report = run(spark, settings, datetime.now(UTC))

    # The newest row is of hour 70, so what lies before hour 46 goes.
    assert planned.tables[0].partitions_removed == report.tables[0].partitions_removed == 3
    assert sorted(by_polars(table, ["_timestamp"])) == [(ms,) for ms in times[6:]]
    assert coverage_at(table, version(table)).complete_from_ms == BEGIN_MS + 46 * HOUR_MS
    for number in range(version(table) + 1):
        complete_ms = coverage_at(table, number).complete_from_ms
        there = set(by_polars(table, ["_timestamp"], version=number))
        assert {(ms,) for ms in times if ms >= complete_ms} <= there
    # A reader of an earlier version still finds all its files.
    assert pl.scan_delta(table, version=before).collect().height == len(times)
    assert run(spark, settings, datetime.now(UTC)).tables[0].partitions_removed == 0


def test_files_that_were_replaced_are_deleted_and_the_newest_version_is_read_on(
    spark: SparkSession, tmp_path: Path
) -> None:
    for offset in range(4):
        table = archive(tmp_path, "s", [row(offset, BEGIN_MS + offset)])
    before = version(table)
    settings = CompactSettings(archive=str(tmp_path), quiet_ms=0)
    run(spark, settings, datetime.now(UTC))
    assert pl.scan_delta(table, version=before).collect().height == 4  # kept for those who read it
    left = Path(table) / "_date=2023-11-14" / "_hour=0" / "part-of-a-killed-run.parquet"
    left.write_bytes(b"half")
    os.utime(left, (0, 0))
    reader = deltalake.DeltaTable(table)
    merged = set(reader.file_uris())
    assert len(merged) == 1

    run(spark, replace(settings, keep_replaced_ms=0), datetime.now(UTC) + timedelta(seconds=1))

    assert {str(one) for one in Path(table).rglob("*.parquet") if "_delta_log" not in str(one)} == merged
    assert sorted(reader.to_pyarrow_table(columns=["_offset"]).column(0).to_pylist()) == [0, 1, 2, 3]
    assert sorted(by_polars(table, ["_offset"])) == [(0,), (1,), (2,), (3,)]
    assert coverage_at(table, version(table)).partitions[0].next_offset == 4
    with pytest.raises(OSError, match=r"parquet|No such file"):
        deltalake.DeltaTable(table, version=before).to_pyarrow_table()
