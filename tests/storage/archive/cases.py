"""Archives made by hand: tables as the job writes them, with deltalake instead of Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import CommitProperties, write_deltalake

from engine.model.batch import Batch, versions
from engine.model.source import HOUR_MS, Field, Schema, SourceName, Stream
from engine.model.types import BIGINT, STRING, TIMESTAMP
from storage.archive import layout
from storage.archive.coverage import Coverage, Covered
from storage.archive.rows import to_table
from tests.strategies import batch_of

STREAM = Stream(
    SourceName("orders"),
    Schema((Field("id", BIGINT), Field("city", STRING), Field("ts", TIMESTAMP))),
    "orders",
    timestamp_column="ts",
)
TABLE = Stream(
    SourceName("cities"), Schema((Field("city", STRING), Field("n", BIGINT))), "cities", key=("city",)
)
H = HOUR_MS


def rows(*told: tuple[int, int, int, tuple[Any, ...]], stream: Stream = STREAM) -> Batch:
    """(partition, offset, timestamp, values without the timestamp)."""
    return batch_of(stream.schema, told)


def covered(next_offset: int, max_ms: int | None = None, **facts: Any) -> Coverage:
    return Coverage("orders", {0: Covered(0, next_offset, max_ms)}, **facts)


def commit(
    root: Path,
    batch: Batch | pa.Table,
    coverage: Coverage | None,
    stream: Stream = STREAM,
    by: layout.PartitionBy = "hour",
    **options: Any,
) -> str:
    """Append to the stream's table; its uri."""
    uri = layout.table_uri(str(root), "streams", str(stream.name))
    if isinstance(batch, Batch):
        if stream.is_table and len(batch.schema) == len(stream.schema):
            batch = versions(stream, batch)
        batch = to_table(stream, batch)
    metadata = None if coverage is None else {"userMetadata": coverage.to_text()}
    options.setdefault("mode", "append")
    write_deltalake(
        uri,
        batch,
        partition_by=list(layout.STREAM_PARTITIONS[by]),
        commit_properties=CommitProperties(custom_metadata=metadata),
        **options,
    )
    return uri
