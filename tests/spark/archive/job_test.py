"""Whole runs: a real Kafka to an archive, again and again, and what readers find there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import duckdb
import polars
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from spark_jobs.archive.job import run
from spark_jobs.archive.settings import ArchiveSettings
from spark_jobs.errors import CheckpointMismatch, RecordsLost, TopicReplaced
from spark_jobs.running import Stop
from spark_jobs.settings import StreamSettings
from spark_jobs.streaming import StreamReport
from storage.archive.coverage import COMPLETE
from tests.spark.archive.cases import archived, places, quarantined, read
from tests.spark.archive.job import COLUMNS, DAY_MS, Kafka, Sent, orders
from tureen.errors import SettingsError, TopicMissing, UnknownSource
from tureen.protocol import HEADER_HEARTBEAT


@pytest.fixture
def service(kafka: str, service_id: str) -> Kafka:
    return Kafka(kafka, service_id)


def archive(
    spark: SparkSession, service: Kafka, root: Path, name: str = "checkpoint", **given: Any
) -> StreamReport:
    """One run over what is there."""
    accept_gap = given.pop("accept_gap", False)
    stream = StreamSettings(str(root / name), once=True, accept_gap=accept_gap)
    settings = ArchiveSettings(str(root / "archive"), service.settings, stream, service.service_id, **given)
    return run(spark, settings, Stop())


def test_runs_one_after_another(spark: SparkSession, service: Kafka, tmp_path: Path) -> None:
    stream = service.declare("orders", COLUMNS)
    service.make(stream.topic, 2)
    results = service.make(service.names.results)
    service.send(orders(stream, [1, 2]), transaction="a")
    service.send(orders(stream, [99], 1), transaction="a", abort=True)
    service.send([*orders(stream, [3], 1), (stream.topic, 1, None, b"bad")], transaction="a")
    key = {"query": "q", "key": {"n": 1}}
    service.send([(results, 0, key, {"n": 1}), (results, 0, key, None)])
    # Heartbeats are no rows, whatever their values are.
    beats: list[Sent] = [*orders(stream, [50]), (stream.topic, 1, None, None), (results, 0, key, {"n": 2})]
    service.send(beats, heartbeat="7")
    service.send(orders(stream, [51]), heartbeat="seven")
    given = {"all_streams": True, "all_results": True}
    report = archive(spark, service, tmp_path, **given)
    assert (report.rows, dict(report.counts), report.stopped) == (5, {"undecodable": 2}, False)
    root = tmp_path / "archive"
    assert read(root, stream).to_arrow().column("id").to_pylist() == [1, 2, 3]
    no_beat, bad = quarantined(root)
    assert (bad["value"], json.loads(no_beat["value"])["id"]) == (b"bad", 51)
    assert no_beat["reason"] == f"the header {HEADER_HEARTBEAT} is not a number of ms since 1970"
    ends = service.admin.end_offsets(stream.topic)
    covered = archived(root, stream).coverage
    assert {number: one.next_offset for number, one in covered.partitions.items()} == ends
    assert covered.complete_from_ms == COMPLETE
    told = DeltaTable(str(root / "results" / results)).to_pyarrow_table().to_pylist()
    assert [(row["op"], row["row"]) for row in told] == [("u", '{"n":1}'), ("d", None)]

    # Another topic comes to the same checkpoint, a stream gets a column, the first goes on.
    wider = service.declare("orders", f"{COLUMNS}, price DOUBLE")
    other = service.declare("payments", "id BIGINT", "partitions = 1")
    service.make(other.topic)
    service.send([(other.topic, 0, None, {"id": 7})])
    service.send([(stream.topic, 0, None, {"id": 4, "at": 4 * DAY_MS, "price": 1.5})])
    assert archive(spark, service, tmp_path, **given).rows == 2
    assert read(root, wider).to_arrow().column("price").to_pylist() == [None, None, None, 1.5]
    assert read(root, other).to_arrow().column("id").to_pylist() == [7]

    # The checkpoint is lost: everything is read again, nothing is written twice.
    assert archive(spark, service, tmp_path, "fresh", **given).rows == 0
    assert len(places(root)) == 4
    assert len(quarantined(root)) == 2

    with pytest.raises(CheckpointMismatch, match=f"has read {other.topic}"):
        archive(spark, service, tmp_path, streams=("orders",), all_results=True)
    _readers(spark, root)


def _readers(spark: SparkSession, root: Path) -> None:
    """The readers of the page on the archive."""
    uri = str(root / "streams" / "orders")
    told = spark.sql(f"SELECT id, price FROM delta.`{uri}` WHERE _date > DATE'1970-01-03' ORDER BY id")
    assert [tuple(row) for row in told.collect()] == [(3, None), (4, 1.5)]
    why = spark.sql(f"SELECT reason, count(*) FROM delta.`{root}/quarantine/orders` GROUP BY reason")
    assert ("not a JSON object", 1) in [tuple(row) for row in why.collect()]
    connection = duckdb.connect()
    connection.register("orders", DeltaTable(uri).to_pyarrow_dataset())
    found = connection.sql("SELECT count(*), max(id) FROM orders WHERE _date > DATE '1970-01-03'")
    assert found.fetchall() == [(2, 4)]
    table = polars.scan_delta(uri).filter(polars.col("price").is_not_null()).select("id", "price").collect()
    assert table.rows() == [(4, 1.5)]


def test_records_that_retention_took(spark: SparkSession, service: Kafka, tmp_path: Path) -> None:
    stream = service.declare("orders", COLUMNS)
    service.make(stream.topic)
    service.send(orders(stream, range(4)))
    archive(spark, service, tmp_path, streams=("orders",))
    service.send(orders(stream, range(4, 9)))
    service.forget(stream.topic, 7)
    with pytest.raises(RecordsLost):
        archive(spark, service, tmp_path, streams=("orders",))
    with pytest.raises(RecordsLost, match="offsets 4 to 6"):
        archive(spark, service, tmp_path, "fresh", streams=("orders",))
    root = tmp_path / "archive"
    assert [offset for _, offset in places(root)] == [0, 1, 2, 3]
    archive(spark, service, tmp_path, streams=("orders",), accept_gap=True)
    assert [offset for _, offset in places(root)] == [0, 1, 2, 3, 7, 8]
    assert archived(root, stream).coverage.complete_from_ms == 8 * DAY_MS + 1


def test_topics_that_are_others(spark: SparkSession, service: Kafka, tmp_path: Path) -> None:
    stream = service.declare("orders", COLUMNS)
    with pytest.raises(TopicMissing):
        archive(spark, service, tmp_path, streams=("orders",))
    with pytest.raises(UnknownSource):
        archive(spark, service, tmp_path, streams=("nothing",))
    with pytest.raises(SettingsError, match="no result topic"):
        archive(spark, service, tmp_path, all_results=True)
    service.make(stream.topic)
    service.send(orders(stream, range(2)))
    archive(spark, service, tmp_path, streams=("orders",))
    service.admin.delete_topics([stream.topic])
    service.make(stream.topic)
    service.send(orders(stream, range(10, 15)))
    with pytest.raises(TopicReplaced):
        archive(spark, service, tmp_path, streams=("orders",))
    assert [offset for _, offset in places(tmp_path / "archive")] == [0, 1]
