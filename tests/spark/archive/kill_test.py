"""The job as a process of its own, killed while it writes: no row is lost or doubled."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kafka import wait_until
from tests.spark.archive.cases import places, quarantined
from tests.spark.archive.job import COLUMNS, Kafka, orders

RECORDS = 120
AT_ONCE = 20
KILLED_AT = (1, 3)
"""Versions of the table."""
START_S = 400


@pytest.mark.slow
@pytest.mark.timeout(1_200)
def test_killed_while_it_writes(packages_fetched: None, kafka: str, service_id: str, tmp_path: Path) -> None:
    service = Kafka(kafka, service_id)
    stream = service.declare("orders", COLUMNS)
    service.make(stream.topic)
    records = orders(stream, [n % 5 for n in range(RECORDS)])
    records[7::25] = [(stream.topic, 0, None, b"bad")] * len(records[7::25])
    service.send(records)
    root = tmp_path / "archive"
    command = [
        *(sys.executable, "-m", "spark_jobs.archive", "--archive", str(root), "--stream", "orders"),
        *("--kafka", f"bootstrap.servers={kafka}", "--service-id", service_id),
        *("--checkpoint", str(tmp_path / "checkpoint"), "--master", "local[1]", "--memory", "512m"),
    ]
    log = root / "streams" / "orders" / "_delta_log"
    for version in KILLED_AT:
        small = [*command, "--every", "0", "--records-at-once", str(AT_ONCE)]
        running = subprocess.Popen(small, start_new_session=True)
        try:
            _wait(running, log / f"{version:020}.json")
        finally:
            os.killpg(running.pid, signal.SIGKILL)
            running.wait()
    subprocess.run([*command, "--once"], check=True, timeout=START_S)
    bad = list(range(7, RECORDS, 25))
    assert [row["_offset"] for row in quarantined(root)] == bad
    assert places(root) == [(0, n) for n in range(RECORDS) if n not in bad]


def _wait(running: subprocess.Popen[bytes], commit: Path) -> None:
    wait_until(lambda: commit.exists() or running.poll() is not None, START_S)
    assert running.poll() is None
