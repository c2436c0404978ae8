"""Phase 2 of queries with state, on executors: rows to their shards, each shard a task of its own.

    pieces   --assign lateness, cut-->   rows by shard   --repartition-->   advance   -->   records, written
    once

Every shard has a turn in every micro-batch, rows or not, since NOW goes on: a mark for each goes along. What
a shard writes goes in one transaction of a producer that is the shard's own; if it was written before, by a
task that came to nothing afterwards, it is not written again.

Spark gives tasks to any process. A shard that moves costs the new one a catch-up (:mod:`shard`), no more.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from engine.model.batch import Batch
from engine.model.source import SourceName, Stream
from spark_jobs.scale_out.journal import Journal
from spark_jobs.scale_out.outputs import Encoder
from spark_jobs.scale_out.pieces import read_piece, to_piece
from spark_jobs.scale_out.selections import assign_lateness
from spark_jobs.scale_out.shards.cutting import cut, place_values, put_together
from spark_jobs.scale_out.shards.shard import ShardJob, Told, advance
from spark_jobs.scale_out.shards.state import open_shards
from spark_jobs.scale_out.writers import WriterJob, send_all, write_once
from topics.outputs import destination
from topics.producer import Transaction
from tureen.errors import TureenError

CUT = "place int, shard int, source string, piece binary"
_CUT = pa.schema(
    [("place", pa.int32()), ("shard", pa.int32()), ("source", pa.string()), ("piece", pa.binary())]
)
_PIECE_COLUMNS = ("source", "partition", "first", "piece", "letters")
TOLD = "told string"
_TOLD = pa.schema([("told", pa.string())])

ArrowBatches = Iterable[pa.RecordBatch]
Pieces = Mapping[str, list[bytes]]
"""What a shard got, by source."""


@dataclass(slots=True)
class ShardReport:
    """What a shard did. rows: how many it holds. written: False: it had been written before, or there was
    nothing to write. broken: queries whose changes cannot be told, and why. needed_from: the first
    micro-batch it may ask for again. failed: an error of ours, after which it is to be run again.
    """

    shard: int
    rows: int = 0
    records: int = 0
    written: bool = False
    broken: dict[str, dict[str, Any]] = field(default_factory=dict)
    needed_from: int = 0
    failed: dict[str, Any] | None = None


def cut_pieces(pieces: DataFrame, job: WriterJob, streams: Mapping[SourceName, Stream]) -> DataFrame:
    """Pieces of phase 1 to pieces of shards: rows that are taken, with the instants they enter with."""
    places = place_values(len(job.layout.every))

    def each(batches: ArrowBatches) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            columns = (batch.column(name).to_pylist() for name in _PIECE_COLUMNS)
            for source, partition, first, piece, letters in zip(*columns, strict=True):
                if piece is None:
                    continue
                stream = streams[source]
                (step,) = (one for one in job.batch.steps if one.source == source)
                # Late and refused rows are told of by the partitions of selections.
                rows, _ = assign_lateness(stream, step, job, partition, [(first, piece, letters)])
                for shard, mine in cut(stream, rows, job.layout):
                    yield _row(_CUT, places[shard], shard, source, to_piece(mine))

    return pieces.mapInArrow(each, CUT)


def run_shards(session: SparkSession, cut_rows: DataFrame, job: WriterJob) -> list[dict[str, Any]]:
    """A turn of every shard; a :class:`ShardReport` of each, as a dictionary. cut_rows: :func:`cut_pieces`.

    Raises CheckpointMismatch, CheckpointUnreadable, PathNotWritable.
    """
    every = job.layout.every
    if not every:
        return []
    shards = ShardJob(job.checkpoint, open_shards(job.checkpoint, job.layout), job.layout, job.limits)
    places = place_values(len(every))
    marks = session.createDataFrame([(places[shard], shard, None, None) for shard in every], CUT)
    placed = cut_rows.unionAll(marks).repartition(len(every), "place")
    return [json.loads(row.told) for row in placed.mapInArrow(_turns(job, shards), TOLD).collect()]


def _turns(job: WriterJob, shards: ShardJob) -> Callable[[ArrowBatches], ArrowBatches]:
    def each(batches: ArrowBatches) -> Iterator[pa.RecordBatch]:
        found: dict[int, dict[str, list[bytes]]] = {}
        for batch in batches:
            columns = (batch.column(name).to_pylist() for name in ("shard", "source", "piece"))
            for shard, source, piece in zip(*columns, strict=True):
                got = found.setdefault(shard, {})
                if piece is not None:
                    got.setdefault(source, []).append(piece)
        for shard, got in sorted(found.items()):
            try:
                report = turn(job, shards, shard, got)
            except TureenError as refused:
                report = ShardReport(shard, failed=refused.as_dict())
            yield _row(_TOLD, json.dumps(asdict(report)))

    return each


def turn(job: WriterJob, shards: ShardJob, shard: int, pieces: Pieces) -> ShardReport:
    """The turn of one shard: apply its rows, write what they told."""

    def rows_of(stream: Stream) -> Batch:
        return put_together(stream, [read_piece(one, stream) for one in pieces.get(stream.name, ())])

    told = advance(shards, shard, job.batch, rows_of, Journal(job.checkpoint).read)
    encoder = _encoder(job, shard, told)
    records = encoder.encode(told.changes)

    def send(transaction: Transaction) -> None:
        send_all(transaction, records)

    written = bool(records) and write_once(job, f"shard.{shard}", send)
    count = sum(len(one) for one in records)
    return ShardReport(shard, told.rows, count, written, encoder.broken, told.needed_from)


def _encoder(job: WriterJob, shard: int, told: Told) -> Encoder:
    to = {
        query_id: destined
        for query_id, output in told.outputs.items()
        if (destined := destination(job.names, output)) is not None
    }
    encoder = Encoder(job, job.batch.position(shard), to)
    for query_id, reason in (told.broken | told.failed).items():
        refused = reason if isinstance(reason, TureenError) else TureenError(repr(reason))
        encoder.give_up([query_id], refused)
    return encoder


def _row(schema: pa.Schema, *values: Any) -> pa.RecordBatch:
    arrays = [pa.array([value], one.type) for value, one in zip(values, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
