"""A job as a process of its own: killed, run again, stopped by SIGTERM."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kafka import wait_until
from tests.spark.job import messages_of

START_S = 240


@pytest.mark.slow
@pytest.mark.timeout(800)
def test_killed_and_stopped_and_no_row_is_lost_or_doubled(
    packages_fetched: None, kafka: str, service_id: str, tmp_path: Path
) -> None:
    inbox, checkpoint = tmp_path / "inbox", tmp_path / "checkpoint"
    inbox.mkdir()
    topic = f"{service_id}-orders"
    command = [
        sys.executable, "-m", "spark_jobs.sources", "--stream", "--checkpoint", str(checkpoint),
        "--format", "csv", "--input", str(inbox), "--files-max", "2", "--kafka", f"bootstrap.servers={kafka}",
        "--service-id", service_id, "--master", "local[1]", "--memory", "512m", "--json",
        "--sql", f"CREATE STREAM o (id BIGINT NOT NULL, at TIMESTAMP) WITH (topic='{topic}', timestamp='at')",
    ]  # fmt: skip
    files = 0

    def put(count: int) -> None:
        nonlocal files
        for number in range(files, files + count):
            part = inbox / f".{number}"
            part.write_text(f"id,at\n{number},{1_700_000_000_000 + number}\n")
            part.rename(inbox / f"{number}.csv")
        files += count

    def commits() -> int:
        return sum(path.name.isdigit() for path in (checkpoint / "commits").glob("*"))

    def ids() -> list[int]:
        return sorted(json.loads(message.value() or b"")["id"] for message in messages_of(kafka, topic))

    def started() -> subprocess.Popen[str]:
        return subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
        )

    put(12)
    killed = started()
    wait_until(lambda: commits() >= 2, START_S, "two micro-batches")
    os.killpg(killed.pid, signal.SIGKILL)  # with its JVM
    killed.communicate(timeout=30)
    put(3)

    job = started()
    wait_until(lambda: len(ids()) == files, START_S, "all files")
    os.killpg(job.pid, signal.SIGTERM)  # as service managers do
    out, err = job.communicate(timeout=60)
    assert job.returncode == 0, err
    report = json.loads(out)
    assert report["stopped"] is True
    assert ids() == list(range(files))
    put(1)
    done = subprocess.run([*command, "--once"], capture_output=True, text=True, timeout=START_S, check=False)
    assert json.loads(done.stdout)["rows"] == 1, done.stderr
    assert "Traceback" not in err + done.stderr
    assert ids() == list(range(files))
