"""Nexmark's events on a real Kafka: as a batch, at a pace, as a stream that is begun again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_jobs.errors import CheckpointMismatch
from spark_jobs.nexmark.events import KINDS
from spark_jobs.nexmark.job import NexmarkJobSettings, NexmarkReport, pieces, run, run_streaming
from spark_jobs.nexmark.settings import NexmarkSettings
from spark_jobs.nexmark.streams import statements
from spark_jobs.running import Stop
from spark_jobs.settings import StreamSettings
from spark_jobs.sources.pacing import Warp
from tests.spark.job import messages_of, rows_of
from tureen.errors import SettingsError
from tureen.protocol import TopicNames

EVENTS = NexmarkSettings(events=300, seed=5, rate=100)


def settings_of(kafka: str, service_id: str, name: str, **others: Any) -> NexmarkJobSettings:
    given: dict[str, Any] = {
        "events": EVENTS,
        "kafka": {"bootstrap.servers": kafka},
        "service_id": service_id,
        "prefix": f"{service_id}_{name}_".replace("-", "_"),
        "declare": False,
    }
    return NexmarkJobSettings(**given | others)


def written(kafka: str, settings: NexmarkJobSettings) -> dict[str, list[tuple[bytes | None, bytes | None]]]:
    """Keys and values on each topic, in order."""
    return {
        kind: [(message.key(), message.value()) for message in messages_of(kafka, f"{settings.prefix}{kind}")]
        for kind in KINDS
    }


def test_a_batch(spark: SparkSession, kafka: str, service_id: str) -> None:
    batch = settings_of(kafka, service_id, "batch", declare=True)
    report = run(spark, batch, Stop())
    topics = tuple(f"{batch.prefix}{kind}" for kind in KINDS)
    last_ms = EVENTS.base_ms + 2_990
    assert report == NexmarkReport(topics, True, 0, 300, 300, last_ms, stopped=False)
    expected = written(kafka, batch)
    assert {kind: len(rows) for kind, rows in expected.items()} == {"person": 6, "auction": 18, "bid": 276}
    for kind, statement in statements(EVENTS, prefix=batch.prefix).items():
        rows = rows_of(kafka, statement.sql)  # the broker's decoder takes them all
        times = [row["date_time"] for row in rows]
        assert times == sorted(times), kind
        keys = [str(row["auction" if kind == "bid" else "id"]).encode() for row in rows]
        assert [key for key, _ in expected[kind]] == keys
    declared = messages_of(kafka, TopicNames(service_id).sources)
    assert [message.key() for message in declared] == [topic.encode() for topic in topics]
    assert "TIMESTAMP NOT NULL" in json.loads(declared[0].value() or b"")["sql"]


@pytest.mark.slow
def test_a_batch_a_replay_and_a_stream_write_the_same(
    spark: SparkSession, kafka: str, service_id: str, tmp_path: Path
) -> None:
    batch = settings_of(kafka, service_id, "batch")
    last_ms = run(spark, batch, Stop()).last_ms
    expected = written(kafka, batch)
    paced = settings_of(kafka, service_id, "paced", warp=Warp(speed=1e6))
    assert run(spark, paced, Stop()).last_ms == last_ms
    assert written(kafka, paced) == expected

    checkpoint = str(tmp_path / "checkpoint")
    rows = []
    for every_s in (0.4, 10.0):  # so many seconds of events a run: 40 of them, and the rest
        once = StreamSettings(checkpoint, once=True, every_s=every_s)
        streamed = settings_of(kafka, service_id, "stream", stream=once)
        done = run_streaming(spark, streamed, Stop())
        rows.append(done.rows)
        assert not done.stopped
    assert rows == [40, 260]
    assert written(kafka, streamed) == expected

    other = settings_of(
        kafka, service_id, "stream", stream=once, events=NexmarkSettings(events=300, seed=6, rate=100)
    )
    with pytest.raises(CheckpointMismatch, match="seed was 5 and is 6"):
        run_streaming(spark, other, Stop())


def test_a_replay_that_is_stopped_says_where(spark: SparkSession, kafka: str, service_id: str) -> None:
    class AfterTwo(Stop):
        """Asked for by the first wait, which is for the third second's event."""

        def wait(self, timeout_s: float) -> bool:
            self.ask()
            return True

    slow = settings_of(
        kafka,
        service_id,
        "slow",
        events=NexmarkSettings(events=100, rate=1, first=10),
        warp=Warp(speed=1e-3, shift_to_ms=1_800_000_000_000),
    )
    report = run(spark, slow, AfterTwo())
    assert report.stopped
    assert report.lines()[0].startswith("1 of 100 events written")
    assert report.lines()[1] == "stopped; --first 11 continues after the last one"
    [(_, value)] = written(kafka, slow)["bid"]
    assert json.loads(value or b"")["date_time"] == report.last_ms == 1_800_000_000_000


def test_pieces_of_a_replay_leave_nothing_out() -> None:
    for events in (1, 999, 1_000, 1_001, 123_456):
        cut = list(pieces(events))
        assert [begin for begin, _ in cut] == [0, *(end for _, end in cut)][:-1]
        assert cut[-1][1] == events
        assert max(end - begin for begin, end in cut) <= 20_000


def test_settings_that_do_not_go_together() -> None:
    def settings(**others: Any) -> NexmarkJobSettings:
        return settings_of("a:1", "s", "x", **others)

    with pytest.raises(SettingsError, match="must have an end"):
        settings(events=NexmarkSettings())
    stream = StreamSettings("/tmp/c")
    assert settings(events=NexmarkSettings(), stream=stream).events_a_batch == 10_000
    with pytest.raises(SettingsError, match="must keep its timestamps"):
        settings(stream=stream, warp=Warp(shift_to_ms=0))
    with pytest.raises(SettingsError, match="events a micro-batch"):
        settings(stream=stream, warp=Warp(speed=1e9))
