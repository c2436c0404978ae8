"""Result topics folded by whole runs, read by three engines, against the records folded by hand."""

from __future__ import annotations

import itertools
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_jobs.compact.job import CompactReport, run
from spark_jobs.compact.plot import plot_history
from spark_jobs.compact.settings import DAY_MS, CompactSettings
from tests.spark.compact import archives
from tests.spark.compact.reading import AS_OF, by_duckdb, by_polars, by_spark, folded, rows_of, uri, version
from tureen.errors import SettingsError

QUERIES = ("qa", "qb", "qc", "qd")
TOPIC = "t.results"
CUTS = (0, 50, 120)
ALL = archives.results(3, 140)
RECORDS = ALL[: CUTS[-1]]
"""Archived before the first test; the last one archives the others."""
PAGE = Path(__file__).parents[3] / "docs" / "compaction.md"


def compacted(spark: SparkSession, root: Path, **others: Any) -> CompactReport:
    return run(spark, CompactSettings(archive=str(root), **others), datetime.now(UTC))


@pytest.fixture(scope="module")
def root(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An archive of RECORDS, compacted each time that some had come."""
    found = tmp_path_factory.mktemp("archive")
    for begin, end in itertools.pairwise(CUTS):
        archives.archive_results(found, TOPIC, RECORDS[begin:end])
        report = compacted(spark, found, queries=("qa",) if end == CUTS[-1] else ())
        expected = sum(one.archived["kind"] == "row" for one in RECORDS[begin:end])
        assert report.tables[0].records_folded == expected
        for area in ("current", "history"):
            assert folded(uri(found, area, TOPIC)) == report.tables[0].folded_to
    return found


def check(read: Any, query: str, table: str, where: str, of: list[archives.Record], at: int | None) -> None:
    found = read(table, ["row", "copies"], f"query_id = '{query}' AND {where}", at)
    assert rows_of(found) == archives.answer(of, query)


def test_every_version_is_the_answer_at_the_position_that_it_says(spark: SparkSession, root: Path) -> None:
    for area, where in (("current", "copies > 0"), ("history", "valid_to_ms IS NULL")):
        table = uri(root, area, TOPIC)
        assert version(table) > 0
        for number in range(version(table) + 1):
            position = folded(table, number)
            of = [
                one
                for one in RECORDS
                if one.archived["_offset"] < position.get(one.archived["_partition"], 0)
            ]
            for query, read in itertools.product(QUERIES, (by_polars, by_duckdb)):
                check(read, query, table, where, of, number)
        for query in ("qb", "qc"):
            check(by_spark(spark), query, table, where, RECORDS, None)


def test_the_history_is_the_answer_as_of_every_instant(spark: SparkSession, root: Path) -> None:
    table = uri(root, "history", TOPIC)
    for instant in sorted({one.at_ms + shift for one in RECORDS[::7] for shift in (-1, 0)}):
        of = [one for one in RECORDS if one.at_ms <= instant]
        for query, read in itertools.product(QUERIES, (by_polars, by_duckdb)):
            check(read, query, table, AS_OF.format(at=instant), of, None)
    instant = RECORDS[60].at_ms
    of = [one for one in RECORDS if one.at_ms <= instant]
    check(by_spark(spark), "qc", table, AS_OF.format(at=instant), of, None)


def test_the_pages_queries_give_the_answer(spark: SparkSession, root: Path, tmp_path: Path) -> None:
    at_ms = RECORDS[70].at_ms
    facts = {"root": str(root), "topic": TOPIC, "query": "qa", "at_ms": str(at_ms)}
    found: dict[str, list[tuple[Any, ...]]] = {}
    text = PAGE.read_text("utf-8")
    for language, name, body in re.findall(
        r"```(sql|python)\n(?:--|#) (\w+: [\w-]+)\n(.*?)```", text, re.DOTALL
    ):
        for fact, value in facts.items():
            body = body.replace("{" + fact + "}", value)
        if language == "sql":
            found[name] = [tuple(row) for row in spark.sql(body).collect()]
        else:
            variables: dict[str, Any] = {}
            exec(compile(body, name, "exec"), variables)
            found[name] = variables["found"]

    engines = ("spark", "duckdb", "polars")
    assert sorted(found) == sorted(f"{engine}: {what}" for engine in engines for what in ("current", "as-of"))
    then = archives.answer([one for one in RECORDS if one.at_ms <= at_ms], "qa")
    for engine in engines:
        assert rows_of(found[f"{engine}: as-of"]) == then
        now = found[f"{engine}: current"]
        assert sorted(row for _, row, _ in now) == archives.answer(RECORDS, "qa")
        assert all(f'"n":{int(n)}' in row for _, row, n in now)

    typed = str(root / "queries" / "qa")
    assert sorted(by_polars(f"{typed}/current", ["v", "n"])) == sorted(
        (int(row[5]), int(n)) for _, row, n in found["polars: current"]
    )
    picture = plot_history(f"{typed}/history", "n", by="v", to=tmp_path / "answer.png")
    assert picture.stat().st_size > 10_000


def test_a_run_with_nothing_new_commits_nothing(spark: SparkSession, root: Path) -> None:
    tables = [uri(root, area, TOPIC) for area in ("current", "history", "results")]
    before = [version(table) for table in tables]
    assert compacted(spark, root).tables[0].records_folded == 0
    assert [version(table) for table in tables] == before
    with pytest.raises(SettingsError, match="none of the queries has a column nowhere"):
        compacted(spark, root, queries=("qa",), columns={"nowhere": "DATE", "n": "BIGINT"})


@pytest.mark.slow
def test_old_versions_go_and_valid_ones_stay(spark: SparkSession, root: Path) -> None:
    newest_ms = max(one.archived["_timestamp"] for one in RECORDS)
    day_ms = (newest_ms - 3 * DAY_MS) // DAY_MS * DAY_MS
    current, history = uri(root, "current", TOPIC), uri(root, "history", TOPIC)
    before = version(current), len(by_polars(history, ["_offset"]))

    removed = compacted(spark, root, retain_ms=3 * DAY_MS).tables[0].partitions_removed

    assert removed > 0
    assert version(current) == before[0]
    assert folded(history) == folded(current)
    assert len(by_polars(history, ["_offset"])) < before[1]
    day = archives.at(day_ms).date()
    assert min(row[0] for row in by_polars(history, ["_closed"], "_closed IS NOT NULL")) == day
    assert min(row[0] for row in by_polars(uri(root, "results", TOPIC), ["_timestamp"])) >= day_ms
    for instant in (day_ms, day_ms + DAY_MS, newest_ms):
        of = [one for one in RECORDS if one.at_ms <= instant]
        for query in QUERIES:
            check(by_polars, query, history, AS_OF.format(at=instant), of, None)

    # Delta forgets what commits said after some weeks; the rows then show how far the history is.
    for commit in Path(history, "_delta_log").glob("*.json"):
        actions = [line for line in commit.read_text("utf-8").splitlines() if "commitInfo" not in line]
        commit.write_text("\n".join(actions), "utf-8")
        commit.with_name(f".{commit.name}.crc").unlink(missing_ok=True)
    archives.archive_results(root, TOPIC, ALL[CUTS[-1] :])
    compacted(spark, root)
    for query in QUERIES:
        check(by_polars, query, current, "TRUE", ALL, None)
    assert folded(history) == folded(current)
