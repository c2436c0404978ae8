"""Runs of a declared table that are cut anywhere, that meet each other, and that are refused."""

from __future__ import annotations

import shutil
import threading
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_jobs.compact.job import run
from spark_jobs.compact.settings import CompactSettings, duration_ms
from spark_jobs.errors import CompactionRefused, TableBusy, TablesLeft
from spark_jobs.running import Stop
from storage.archive.errors import ArchiveMissing
from storage.archive.layout import KEY_PROPERTY
from tests.spark.compact import archives
from tests.spark.compact.reading import AS_OF, by_duckdb, by_polars, by_spark, folded, uri, version
from tureen.errors import SettingsError


class Cut(Exception):
    """The run ends here."""


def settings(root: Path, **others: Any) -> CompactSettings:
    return CompactSettings(archive=str(root), quiet_ms=0, **others)


def now() -> datetime:
    return datetime.now(UTC)


def check_tables(root: Path, rows: list[dict[str, Any]]) -> None:
    """Every version of both tables is what the records say up to the position that it carries."""
    for area, where in (("current", "TRUE"), ("history", "valid_to_ms IS NULL")):
        table = uri(root, area, "cities")
        for number in range(version(table) + 1):
            position = folded(table, number)
            of = [one for one in rows if one["_offset"] < position.get(one["_partition"], 0)]
            for read in (by_polars, by_duckdb):
                assert sorted(read(table, ["id", "city"], where, number)) == archives.relation(of)


def test_a_run_that_ends_anywhere_is_taken_up(spark: SparkSession, tmp_path: Path) -> None:
    rows = archives.versions(5, 90)
    begin = 0
    for end, ends_at in ((30, "folded"), (60, "current table"), (90, None)):
        archives.archive_versions(tmp_path, "cities", rows[begin:end])
        if not begin:  # as the archive job makes it
            table = uri(tmp_path, "streams", "cities")
            spark.sql(f"ALTER TABLE delta.`{table}` SET TBLPROPERTIES ('{KEY_PROPERTY}' = '[\"id\"]')")
        begin = end

        def done(_: str, what: str, ends_at: str | None = ends_at) -> None:
            if ends_at is not None and ends_at in what:
                raise Cut

        if ends_at is None:
            run(spark, settings(tmp_path), now(), done=done)
        else:
            with pytest.raises(Cut):
                run(spark, settings(tmp_path), now(), done=done)

    check_tables(tmp_path, rows)
    history = uri(tmp_path, "history", "cities")
    assert sorted(by_polars(history, ["_partition", "_offset"])) == sorted(
        (row["_partition"], row["_offset"]) for row in rows
    )
    assert sorted(by_spark(spark)(uri(tmp_path, "current", "cities"), ["id", "city"])) == archives.relation(
        rows
    )
    for instant in sorted({row["_timestamp"] for row in rows})[::5]:
        found = by_polars(history, ["id", "city"], AS_OF.format(at=instant))
        assert sorted(found) == archives.relation(rows, instant)


def test_a_topic_that_was_made_again_is_not_folded_into_the_old_ones_history(
    spark: SparkSession, tmp_path: Path
) -> None:
    rows = archives.versions(9, 6)
    archives.archive_versions(tmp_path, "cities", rows)
    keyed = settings(tmp_path, keys={"cities": ("id",)})
    run(spark, keyed, now())
    before = version(uri(tmp_path, "history", "cities"))
    table = Path(uri(tmp_path, "streams", "cities"))
    shutil.move(table, tmp_path / "earlier")
    again = archives.versions(10, 30)  # its offsets are beyond those of the first life already
    archives.append(str(table), again, archives.TABLE_SCHEMA, ["_date", "_hour"], topic_id="later")
    for asked in (keyed, replace(keyed, dry_run=True)):
        with pytest.raises(TablesLeft, match="earlier topic"):
            run(spark, asked, now())
    assert version(uri(tmp_path, "history", "cities")) == before
    for area in ("history", "current"):
        shutil.move(uri(tmp_path, area, "cities"), tmp_path / f"earlier-{area}")
    run(spark, keyed, now())
    assert sorted(by_polars(uri(tmp_path, "current", "cities"), ["id", "city"])) == archives.relation(again)


@pytest.mark.slow
def test_of_two_runs_at_a_time_one_is_told_and_nothing_is_twice(spark: SparkSession, tmp_path: Path) -> None:
    rows = archives.versions(6, 40)
    archives.archive_versions(tmp_path, "cities", rows[:30])
    met = threading.Event()
    keyed = settings(tmp_path, keys={"cities": ("id",)})

    def done(_: str, what: str) -> None:
        if "to fold" in what and not met.is_set():
            met.set()
            archives.archive_versions(tmp_path, "cities", rows[30:])
            run(spark, keyed, now())  # another run, which sees more, is done first

    with pytest.raises(TablesLeft) as left:
        run(spark, keyed, now(), done=done)
    assert isinstance(left.value.failures["streams/cities"], TableBusy)
    check_tables(tmp_path, rows)
    assert len(by_polars(uri(tmp_path, "history", "cities"), ["_offset"])) == len(rows)


def test_what_can_not_be_worked_on_is_told_and_the_others_are_done(
    spark: SparkSession, tmp_path: Path
) -> None:
    with pytest.raises(ArchiveMissing):
        run(spark, settings(tmp_path), now())
    rows = archives.versions(8, 4)
    table = uri(tmp_path, "streams", "keyless")
    archives.append(table, rows, archives.TABLE_SCHEMA, ["_date", "_hour"])
    archives.append(uri(tmp_path, "streams", "s"), [{**rows[0]}], archives.STREAM_SCHEMA, ["_date", "_hour"])
    with pytest.raises(ArchiveMissing, match="nothing"):
        run(spark, settings(tmp_path, streams=("nothing",)), now())
    told: list[tuple[str, str]] = []
    with pytest.raises(TablesLeft) as left:
        run(spark, settings(tmp_path), now(), done=lambda *what: told.append(what))
    assert isinstance(left.value.failures["streams/keyless"], CompactionRefused)
    assert "--key keyless=COLUMN" in str(left.value)
    assert ("streams/s", "done") in told
    with pytest.raises(CompactionRefused, match="no history has rows of q1"):
        run(spark, settings(tmp_path, streams=("s",), queries=("q1",)), now())

    planned = run(spark, settings(tmp_path, keys={"keyless": ("id",)}, dry_run=True), now())
    assert [one.records_folded for one in planned.tables] == [4, 0]
    assert not Path(uri(tmp_path, "history", "keyless")).exists()

    stop = Stop()
    stop.ask()
    stopped = run(spark, settings(tmp_path), now(), stop)
    assert (stopped.stopped, stopped.tables) == (True, ())


def test_settings_say_what_they_refuse() -> None:
    assert duration_ms(" 36H ") == 129_600_000
    for text in ("", "90", "1.5h", "-1d", "4w"):
        with pytest.raises(SettingsError):
            duration_ms(text)
    with pytest.raises(SettingsError):
        CompactSettings(archive="x", retain_ms=duration_ms("59m"))
    with pytest.raises(SettingsError):
        CompactSettings(archive="")
    with pytest.raises(SettingsError):
        CompactSettings(archive="x", columns={"a": "DATE"})
