"""Records as Spark's Kafka source gives them, on executors: decoded as the broker decodes them.

Heartbeats among them (:mod:`topics.in_band`) are no rows, whatever their values are. Cost: one look at the
names of all headers of a batch, beside what decoding costs.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from engine.model.source import Stream
from topics.codec import Decoded
from topics.formats.metadata import Written, metadata_of
from topics.in_band import Heartbeats, heartbeats
from topics.keyed import decode_records
from tureen.protocol import HEADER_HEARTBEAT


def decoded_batch(stream: Stream, records: pa.RecordBatch, append_ms: str) -> Decoded:
    """Rows of records. records: columns key, value, headers, partition, offset; append_ms: the name of the
    one with the log's time.
    """
    partition, offset, stamps = (
        records.column(name).to_numpy(zero_copy_only=False) for name in ("partition", "offset", append_ms)
    )
    apart = {one.name for one in metadata_of(stream)}
    keys = records.column("key").to_pylist() if stream.keyed or "_key" in apart else None
    headers = None
    if "_headers" in apart:
        each: list[list[dict[str, Any]] | None] = records.column("headers").to_pylist()
        headers = [[(one["key"], one["value"]) for one in some or ()] for some in each]
    written = Written(records.column("value").to_pylist(), partition, offset, stamps, keys, headers)
    return decode_records(stream, written, heartbeats_of(records))


def heartbeats_of(records: pa.RecordBatch) -> Heartbeats:
    """The heartbeats among records with a column headers, which is NULL or a list of (key, value)."""
    column = records.column("headers")
    names = column.flatten().field("key")
    if not pc.any(pc.equal(names, HEADER_HEARTBEAT)).as_py():
        return {}, {}
    each: list[list[dict[str, Any]] | None] = column.to_pylist()
    return heartbeats([(one["key"], one["value"]) for one in headers or ()] for headers in each)


def is_heartbeat(headers: str) -> Column:
    """Whether a record has the header of heartbeats, well written or not. headers: the column's name."""
    found = F.exists(headers, lambda one: one["key"] == HEADER_HEARTBEAT)
    return F.coalesce(found, F.lit(False))
