"""Records as the Kafka source gives them, without a Kafka, and the archive they make."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from engine.model.batch import Batch, concatenate
from engine.model.source import DAY_MS, Field, Schema, SourceName, Stream
from engine.model.types import BIGINT, STRING, TIMESTAMP, TIMESTAMP_MS_MAX, TIMESTAMP_MS_MIN
from spark_jobs.archive.batch import Circumstances, OffsetRange, Written, archive_batch
from spark_jobs.archive.tables import Target, stream_target
from storage.archive.reader import Archive, ArchivedStream

KAFKA_COLUMNS = (
    "key BINARY, value BINARY, topic STRING, partition INT, offset BIGINT, timestamp TIMESTAMP, "
    "headers ARRAY<STRUCT<key: STRING, value: BINARY>>"
)
NOW_MS = 20_000 * DAY_MS
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

ORDERS = Stream(
    SourceName("orders"),
    Schema((Field("id", BIGINT, nullable=False), Field("city", STRING), Field("at", TIMESTAMP))),
    "topic-orders",
    timestamp_column="at",
    lateness_ms=1_000,
)

Record = tuple[int, int, bytes | None, bytes | None]
"""Partition, offset, key, value."""


def order(partition: int, offset: int, at_ms: int, city: str | None = "bern", **others: Any) -> Record:
    value = {"id": 1_000 * partition + offset, "city": city, "at": at_ms, **others}
    return partition, offset, None, json.dumps(value).encode()


def frame(
    spark: SparkSession, records: Iterable[Record], topic: str = ORDERS.topic, headers: Sequence[Any] = ()
) -> DataFrame:
    """With ``NOW_MS`` + the offset as the log's time."""
    rows = [
        (key, value, topic, partition, offset, EPOCH + timedelta(milliseconds=NOW_MS + offset), list(headers))
        for partition, offset, key, value in records
    ]
    return spark.createDataFrame(rows, KAFKA_COLUMNS)


def ranges(*told: tuple[int, int, int], topic: str = ORDERS.topic) -> dict[str, dict[int, OffsetRange]]:
    """(partition, first, next)."""
    return {topic: {partition: OffsetRange(first, following) for partition, first, following in told}}


def given(topic_id: str = "life", **others: Any) -> Circumstances:
    return replace(Circumstances({ORDERS.topic: topic_id}, NOW_MS), **others)


def archive(
    root: Path,
    rows: DataFrame,
    of: dict[str, dict[int, OffsetRange]],
    circumstances: Circumstances | None = None,
    targets: Sequence[Target] = (),
    stream: Stream = ORDERS,
) -> list[Written]:
    """A whole micro-batch."""
    wanted = targets or [stream_target(str(root), stream)]
    return list(archive_batch(rows, of, wanted, circumstances or given()))


def archived(root: Path, stream: Stream = ORDERS) -> ArchivedStream:
    found = Archive(str(root)).stream(str(stream.name))
    assert found is not None
    return found


def read(root: Path, stream: Stream = ORDERS) -> Batch:
    batches = archived(root, stream).rows(
        stream, from_ms=TIMESTAMP_MS_MIN, until_ms=TIMESTAMP_MS_MAX + 1, rows_max=1_000_000
    )
    return concatenate(stream.stored_schema, list(batches))


def places(root: Path, stream: Stream = ORDERS) -> list[tuple[int, int]]:
    """(partition, offset) of every row there is, as often as it is there."""
    from deltalake import DeltaTable

    table = DeltaTable(stream_target(str(root), stream).uri).to_pyarrow_table(
        columns=["_partition", "_offset"]
    )
    return sorted(zip(*(column.to_pylist() for column in table.columns), strict=True))


def quarantined(root: Path, name: str = str(ORDERS.name)) -> list[dict[str, Any]]:
    from deltalake import DeltaTable

    rows = DeltaTable(str(root / "quarantine" / name)).to_pyarrow_table().to_pylist()
    return sorted(rows, key=lambda row: (row["_partition"], row["_offset"]))
