"""Files written at a pace, with timestamps where they were or moved, and what the command says of it."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

from spark_jobs.nexmark.command import nexmark
from spark_jobs.running import Stop
from spark_jobs.settings import StreamSettings
from spark_jobs.sources.command import sources
from spark_jobs.sources.job import SourcesReport, run
from spark_jobs.sources.pacing import Warp
from spark_jobs.sources.replay import ROWS_A_PIECE, Turn, in_turn
from spark_jobs.sources.settings import SourcesSettings
from spark_jobs.sources.warp_options import Instant
from tests.spark.job import STARTED, messages_of, rows_of
from tureen.errors import SettingsError

HOUR_MS = 3_600_000
NOON_MS = 1_717_243_200_000  # 2024-06-01 12:00:00 UTC


def settings_of(kafka: str, service_id: str, inputs: Path, **others: Any) -> SourcesSettings:
    given: dict[str, Any] = {
        "sql": "CREATE STREAM rides (id BIGINT, at TIMESTAMP, ended TIMESTAMP, day DATE) "
        f"WITH (topic = '{service_id}-rides', timestamp = 'at')",
        "inputs": (str(inputs),),
        "format": "csv",
        "kafka": {"bootstrap.servers": kafka},
        "service_id": service_id,
        "key": "id",
        "declare": False,
    }
    return SourcesSettings(**given | others)


def rides(folder: Path) -> Path:
    file = folder / "rides.csv"
    file.write_text(
        "id,at,ended,day\n"
        "3,2024-06-01 14:00,9999-12-31 23:59:59,2024-06-01\n"
        "1,2024-06-01 12:00,2024-06-01 12:30,2024-06-01\n"
        "2,2024-06-01 13:00,,\n"
        "4,2024-06-01 15:00,2024-06-01 15:10,\n"
    )
    return file


def test_rows_are_moved_in_time_together(
    spark: SparkSession, kafka: str, service_id: str, tmp_path: Path
) -> None:
    to_ms = NOON_MS + 365 * 24 * HOUR_MS
    aside = tmp_path / "aside"
    settings = settings_of(
        kafka,
        service_id,
        rides(tmp_path),
        warp=Warp(speed=1e6, shift_to_ms=to_ms),
        quarantine=str(aside),
    )
    report = run(spark, settings, STARTED, Stop())
    topic = f"{service_id}-rides"
    last_ms = to_ms + 3 * HOUR_MS
    assert report == SourcesReport("rides", topic, 1, False, 4, 3, 1, str(aside), to_ms, last_ms)
    day, noon = datetime(2024, 6, 1).date(), datetime(2025, 6, 1, 12)
    assert rows_of(kafka, settings.sql) == [
        {"id": 1, "at": noon, "ended": noon.replace(minute=30), "day": day},
        {"id": 2, "at": noon.replace(hour=13), "ended": None, "day": None},
        {"id": 4, "at": noon.replace(hour=15), "ended": noon.replace(hour=15, minute=10), "day": None},
    ]
    assert [message.key() for message in messages_of(kafka, topic)] == [b"1", b"2", b"4"]
    [bad] = spark.read.parquet(str(aside)).collect()
    assert bad.reason == "ended: moved out of the years 1 to 9999"


def test_a_replay_stops_where_it_is_and_says_so(
    spark: SparkSession, kafka: str, service_id: str, tmp_path: Path
) -> None:
    class AtTheFirstWait(Stop):
        def wait(self, timeout_s: float) -> bool:
            assert 59 < timeout_s <= 60  # an hour, 60 times as fast
            self.ask()
            return True

    settings = settings_of(kafka, service_id, rides(tmp_path), warp=Warp(speed=60))
    report = run(spark, settings, STARTED, AtTheFirstWait())
    assert report.lines() == [
        f"1 of 4 rows written to {service_id}-rides",
        "stopped after 2024-06-01 12:00:00.000, event time",
    ]
    assert (report.first_ms, report.last_ms, report.stopped) == (NOON_MS, NOON_MS, True)
    assert [message.key() for message in messages_of(kafka, f"{service_id}-rides")] == [b"1"]


def test_rows_are_fetched_in_pieces_and_in_order(spark: SparkSession) -> None:
    made = spark.range(60).selectExpr(
        "(id * 7) % 20 AS at", "'t' AS topic", "IF(id = 3, NULL, 'k') AS key", "'é' || id AS value"
    )
    turns = list(in_turn(made.repartition(3), 3 * ROWS_A_PIECE, "at", "value"))
    assert len(turns) == 60
    assert turns == sorted(turns, key=lambda turn: (turn.at_ms, turn.value))
    assert [turn for turn in turns if turn.key is None] == [Turn(1, "t", None, "é3".encode())]


def test_a_pace_needs_event_time_and_a_batch(spark: SparkSession, service_id: str, tmp_path: Path) -> None:
    arrivals = f"CREATE STREAM rides (id BIGINT) WITH (topic = '{service_id}-rides')"
    settings = settings_of("a:1", service_id, rides(tmp_path), sql=arrivals, warp=Warp(speed=1))
    with pytest.raises(SettingsError, match="event time"):
        run(spark, settings, STARTED)
    with pytest.raises(SettingsError, match="of a batch"):
        settings_of("a:1", service_id, tmp_path, warp=Warp(speed=1), stream=StreamSettings("c"))


@pytest.mark.parametrize(
    ("command", "given", "reason"),
    [
        (sources, ["--speed", "0"], "a speed of 0 is not within"),
        (sources, ["--shift-to", "soon"], "'soon' is no timestamp"),
        (sources, ["--table", "t"], "named by --url"),
        (sources, ["--url", "jdbc:x:y"], "either --table or --query"),
        (nexmark, ["--stream"], "--checkpoint DIRECTORY go together"),
        (nexmark, ["--base", "2015"], "no timestamp"),
    ],
)
def test_wrong_options(command: Any, given: list[str], reason: str) -> None:
    needed = ["--format", "csv", "--input", "a", "--sql", "CREATE STREAM s (id BIGINT)"]
    done = CliRunner().invoke(command, [*(needed if command is sources else []), *given])
    assert done.exit_code == 2
    assert reason in " ".join(done.output.split())


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ([], "a batch must have an end"),
        (["--events", "0"], "events must be from 1"),
        (["--events", "5", "--retain", "SOON"], "SOON"),
    ],
)
def test_nexmark_settings_are_refused_before_spark_starts(given: list[str], reason: str) -> None:
    done = CliRunner().invoke(nexmark, [*given, "--json"])
    assert done.exit_code == 1
    assert reason in done.output


def test_instants() -> None:
    def ms(text: str) -> int:
        return Instant().convert(text, None, None)

    assert ms("2024-06-01 12:00") == ms("2024-06-01T14:00:00+02:00") == NOON_MS
    assert ms("2024-06-01") == NOON_MS - 12 * HOUR_MS
    before = datetime.now(UTC).timestamp() * 1_000
    assert before - 1 <= ms("now") <= datetime.now(UTC).timestamp() * 1_000
