"""Sources as a stream: files that come, ticks of a generator, each once on a real Kafka."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_jobs.errors import InputMismatch, InputMissing, PathNotWritable, RowsRefused
from spark_jobs.running import Stop
from spark_jobs.settings import StreamSettings
from spark_jobs.sources.settings import SourcesSettings
from spark_jobs.sources.stream import ASIDE, run_streaming
from spark_jobs.streaming import StreamReport
from tests.spark.job import messages_of
from tureen.errors import SettingsError
from tureen.protocol import TopicNames

STARTED = datetime(2025, 1, 1, tzinfo=UTC)


class Orders:
    """A directory of orders, and the runs that take its files."""

    def __init__(self, spark: SparkSession, kafka: str, service_id: str, tmp_path: Path) -> None:
        self.spark = spark
        self.kafka = kafka
        self.topic = f"{service_id}-orders"
        self.service_id = service_id
        self.inbox = tmp_path / "inbox"
        self.inbox.mkdir()
        self.aside = tmp_path / "aside"
        self.checkpoint = tmp_path / "checkpoint"
        self.sql = (
            "CREATE STREAM orders (id BIGINT NOT NULL, at TIMESTAMP) "
            f"WITH (topic = '{self.topic}', timestamp = 'at')"
        )

    def put(self, name: str, *lines: str) -> None:
        """A file that is whole when its name appears."""
        part = self.inbox / f".{name}"
        part.write_text("".join(f"{line}\n" for line in lines))
        part.rename(self.inbox / name)

    def run(self, **others: Any) -> StreamReport:
        given: dict[str, Any] = {
            "sql": self.sql,
            "inputs": (str(self.inbox),),
            "format": "csv",
            "kafka": {"bootstrap.servers": self.kafka},
            "service_id": self.service_id,
            "key": "id",
            "quarantine": str(self.aside),
            "stream": StreamSettings(str(self.checkpoint), once=True),
        }
        return run_streaming(self.spark, SourcesSettings(**given | others), Stop(), STARTED)

    def ids(self) -> list[int]:
        return [json.loads(message.value() or b"")["id"] for message in messages_of(self.kafka, self.topic)]

    def reasons(self) -> Mapping[str, str]:
        """Reasons in the quarantine, by the ends of the files' names and the records."""
        found = self.spark.read.parquet(str(self.aside)).collect()
        return {row.file.rsplit("/", 1)[-1] + ":" + (row.record or ""): row.reason for row in found}

    def commits(self) -> list[Path]:
        """Batches that the checkpoint has noted."""
        return [path for path in (self.checkpoint / "commits").glob("*") if path.name.isdigit()]

    def forget_last_batch(self, number: int) -> None:
        """As after a kill between the batch's work and the checkpoint's note of it."""
        (self.checkpoint / "commits" / str(number)).unlink()


@pytest.fixture
def orders(spark: SparkSession, kafka: str, service_id: str, tmp_path: Path) -> Iterator[Orders]:
    return Orders(spark, kafka, service_id, tmp_path)


def test_files_come_once_in_the_order_of_their_times(orders: Orders) -> None:
    orders.put("1.csv", "id,at", "3,2024-06-01 10:00:03", "x,2024-06-01", "1,2024-06-01 10:00:01")
    orders.put("2.csv", "id,at", "2,2024-06-01 10:00:02")
    report = orders.run()
    assert (report.rows, report.batches, report.counts) == (3, 1, {ASIDE: 1})
    assert orders.ids() == [1, 2, 3]
    assert [message.key() for message in messages_of(orders.kafka, orders.topic)] == [b"1", b"2", b"3"]
    [declared] = messages_of(orders.kafka, TopicNames(orders.service_id).sources)
    assert json.loads(declared.value() or b"") == {"sql": orders.sql}
    before = orders.reasons()
    assert before == {'1.csv:{"id":"x","at":"2024-06-01"}': "id: 'x' is not a value of BIGINT"}

    orders.forget_last_batch(0)
    assert orders.run().batches == 1  # handed out again
    assert orders.ids() == [1, 2, 3]
    assert orders.reasons() == before

    orders.put("[3]*.csv", "at,id", "2024-06-01 10:00:00,0")
    orders.put("broken.csv", "town,at", "Bern,2024-06-01")
    report = orders.run()
    assert (report.rows, report.batches, report.counts) == (1, 1, {ASIDE: 1})
    assert orders.ids() == [1, 2, 3, 0]
    assert orders.reasons()["broken.csv:"] == "the input has no column id"


def test_a_batch_of_few_files_at_a_time_and_a_bad_row_refused(orders: Orders) -> None:
    orders.put("1.csv", "id,at", "1,2024-06-01")
    assert orders.run(quarantine=None, files_max=1).batches == 1
    orders.put("2.csv", "id,at", "2,2024-06-01", "y,2024-06-01")
    with pytest.raises(RowsRefused, match="'y' is not a value of BIGINT"):
        orders.run(quarantine=None)
    assert orders.ids() == [1]
    assert orders.run().counts == {ASIDE: 1}
    assert orders.ids() == [1, 2]


def test_a_rate(orders: Orders, spark: SparkSession) -> None:
    stop = Stop()
    settings = SourcesSettings(
        sql=orders.sql,
        inputs=(),
        format="rate",
        kafka={"bootstrap.servers": orders.kafka},
        service_id=orders.service_id,
        declare=False,
        select="value AS id, timestamp AS at",
        rows_per_s=1000,
        stream=StreamSettings(str(orders.checkpoint), every_s=0.2),
    )

    class Enough(Stop):
        """Asked for as soon as there are rows on the topic."""

        @property
        def asked(self) -> bool:
            if not stop.asked and orders.checkpoint.exists() and len(orders.commits()) >= 2:
                stop.ask()
            return stop.asked

    report = run_streaming(spark, settings, Enough(), STARTED)
    ids = orders.ids()
    assert ids == list(range(len(ids)))
    assert report.rows == len(ids) > 0
    with pytest.raises(InputMismatch, match="no column id"):
        run_streaming(
            spark,
            SourcesSettings(
                sql=orders.sql,
                inputs=(),
                format="rate",
                kafka={"bootstrap.servers": orders.kafka},
                service_id=orders.service_id,
                select="value AS number, timestamp AS at",
                stream=StreamSettings(str(orders.checkpoint) + "-other"),
            ),
            Stop(),
            STARTED,
        )


def test_inputs_and_paths_that_cannot_be_used(orders: Orders, tmp_path: Path) -> None:
    with pytest.raises(InputMissing, match="nowhere"):
        orders.run(inputs=(str(tmp_path / "nowhere"),))
    (tmp_path / "file").write_text("")
    orders.put("1.csv", "id,at", "x,2024-06-01")
    with pytest.raises(PathNotWritable, match="file/aside"):
        orders.run(quarantine=str(tmp_path / "file" / "aside"))
    with pytest.raises(PathNotWritable, match="file/checkpoint"):
        orders.run(stream=StreamSettings(str(tmp_path / "file" / "checkpoint"), once=True))
    assert orders.ids() == []


def test_settings_of_a_stream() -> None:
    kafka = {"bootstrap.servers": "a:1"}
    stream = StreamSettings("checkpoint")
    with pytest.raises(SettingsError, match="no end"):
        SourcesSettings("", (), "rate", kafka, select="1 AS a")
    with pytest.raises(SettingsError, match="needs --select"):
        SourcesSettings("", (), "rate", kafka, stream=stream)
    with pytest.raises(SettingsError, match="reads no input"):
        SourcesSettings("", ("a",), "rate", kafka, stream=stream)
    with pytest.raises(SettingsError, match="of the rate source"):
        SourcesSettings("", ("a",), "csv", kafka, select="1 AS a")
    with pytest.raises(SettingsError, match="0 files"):
        SourcesSettings("", ("a",), "csv", kafka, files_max=0)
    with pytest.raises(SettingsError, match="no checkpoint"):
        StreamSettings("")
    with pytest.raises(SettingsError, match="give up after -1 s"):
        StreamSettings("a", give_up_after_s=-1)
