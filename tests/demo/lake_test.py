"""The demo on Spark: its file and what its answers have to be; all of it, which takes minutes."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from broker.demo.lake import data


@pytest.fixture(scope="module")
def flights(tmp_path_factory: pytest.TempPathFactory) -> data.Flights:
    return data.written(tmp_path_factory.mktemp("lake"), 22)


def test_the_file_holds_the_days_and_rows_that_are_none(flights: data.Flights) -> None:
    with flights.path.open(encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file)
    assert header == flights.stream.table.column_names
    assert len(rows) == flights.rows + len(data.BROKEN)
    assert [tuple(row) for row in rows[-len(data.BROKEN) :]] == list(data.BROKEN)
    assert (flights.end_ms - int(flights.stream.ts_ms[0])) // data.DAY_MS == 21
    assert {row[6] for row in rows if row[6] == "NA"} == {"NA"}  # cancelled
    assert flights.statement.read_text("utf-8").startswith("CREATE STREAM flights")


def test_what_is_expected_is_a_plain_count(flights: data.Flights) -> None:
    now_ms = flights.end_ms - 5 * data.HOUR_MS - 1
    rows = flights.stream.table.to_pylist()
    at = dict(zip(map(id, rows), flights.stream.ts_ms.tolist(), strict=True))
    week = [row for row in rows if now_ms - 7 * data.DAY_MS <= at[id(row)] <= now_ms]
    found = data.of_a_week(flights.stream, now_ms)
    assert sum(count for count, _, _ in found.values()) == len(week) > 4_000
    united = [row["arr_delay"] for row in week if row["carrier"] == "UA"]
    there = [delay for delay in united if delay is not None]
    assert found["UA"] == (len(united), len(there), sum(there))

    hour_ms = now_ms // data.HOUR_MS * data.HOUR_MS
    day = [row for row in rows if hour_ms - data.DAY_MS <= at[id(row)] <= hour_ms]
    newark = [row["dep_delay"] for row in day if row["origin"] == "EWR"]
    count, mean = data.of_a_day(flights.stream, now_ms)["EWR"]
    there = [delay for delay in newark if delay is not None]
    assert (count, mean) == (len(newark), pytest.approx(sum(there) / len(there)))


@pytest.mark.slow
def test_all_of_it(tmp_path: Path) -> None:
    picture = tmp_path / "delays.png"
    done = subprocess.run(
        [sys.executable, "-m", "tureen", "demo-spark", "--days", "22", "--picture", str(picture), "--json"],
        env=os.environ | {"TUREEN_DATA_DIR": str(tmp_path / "data")},
        stdout=subprocess.PIPE,
        timeout=1_500,
        check=False,
    )
    facts = json.loads(done.stdout)
    assert done.returncode == 0
    assert facts["ok"]
    assert facts["flights"] > 18_000
    assert facts["a_week"] > 10
    assert facts["history_rows"] > 1_000
    assert picture.read_bytes().startswith(b"\x89PNG")
