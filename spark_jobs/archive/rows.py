"""Records of a stream's topic to rows of its table, by the decoder that the broker reads them with.

Runs on executors, in ``mapInArrow``. Each record that is no heartbeat gives one row: of the table's columns
where it decodes, else one with :data:`REASON` and its bytes, for the quarantine. Cost: some 3 us a record, a
third of it decoding.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa

from engine.model.source import Stream
from spark_jobs.decoding import decoded_batch
from storage.archive.layout import OFFSET, PARTITION, TIMESTAMP, stream_schema
from storage.archive.rows import to_table
from topics.codec import Decoded

REASON, RAW_KEY, RAW_VALUE = "~reason", "~key", "~value"
"""Beside the table's columns, none of which is named so: NULL where the record decodes."""

RECORD_COLUMNS = ("partition", "offset", "at_ms", "key", "value", "headers")
"""What a decoder is given of each record; ``at_ms``: the record's own timestamp."""


def with_reasons(schema: pa.Schema) -> pa.Schema:
    """What a decoder gives."""
    beside = [pa.field(REASON, pa.string()), pa.field(RAW_KEY, pa.binary()), pa.field(RAW_VALUE, pa.binary())]
    return pa.schema([*schema, *beside])


def stream_rows(batches: Iterable[pa.RecordBatch], stream: Stream) -> Iterator[pa.RecordBatch]:
    """Records (:data:`RECORD_COLUMNS`) to rows (:func:`with_reasons` of the stream's columns)."""
    schema = with_reasons(stream_schema(stream))
    for records in batches:
        decoded = decoded_batch(stream, records, "at_ms")
        good = to_table(stream, decoded.batch)
        rows = pa.concat_tables([good, refused(records, decoded)], promote_options="default")
        yield from rows.select(schema.names).cast(schema).to_batches()


def refused(records: pa.RecordBatch, decoded: Decoded) -> pa.Table:
    """The records that gave no row, with their place in the topic and why."""
    places = np.array([one.place for one in decoded.bad], np.int64)
    return refusals(records, places, [one.reason for one in decoded.bad])


def refusals(records: pa.RecordBatch, places: np.ndarray, reasons: list[str]) -> pa.Table:
    """Records at these places as they are, each with a reason."""
    bad = records.take(pa.array(places))
    return pa.table(
        {
            PARTITION: bad.column("partition"),
            OFFSET: bad.column("offset"),
            TIMESTAMP: bad.column("at_ms"),
            REASON: pa.array(reasons, pa.string()),
            RAW_KEY: bad.column("key"),
            RAW_VALUE: bad.column("value"),
        }
    )
