"""What a micro-batch is to one shard: steps of its engine.

    queries that go, then definitions, then queries that come, then the rows of each source

A selection that is answered beside the rows begins with its answer over those that are there. Where these
are, it comes, is told so, and goes again, before the first row of the micro-batch.

Every shard knows all streams and views. It has the queries that are answered where it is, and the rows that
the layout gives it; NOW of a source goes on with every step of it, though no row came. Rows are in the order
of partitions and offsets; the engine puts them into that of their instants, as a broker does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from engine.model.batch import Batch
from engine.model.source import SourceName, Stream
from engine.model.step import Body, Decided, Records, Register, Unregister
from spark_jobs.scale_out.micro_batch import MicroBatch
from spark_jobs.scale_out.shards.layout import Layout

RowsOf = Callable[[Stream], Batch]
"""The rows that a shard got of a stream, in the order of partitions and offsets."""


def bodies_of(
    batch: MicroBatch,
    shard: int,
    layout: Layout,
    stream_of: Callable[[SourceName], Stream | None],
    rows_of: RowsOf,
) -> Iterator[Body]:
    """In order. stream_of: what the engine knows by then, asked when a source's turn comes."""
    has_all_rows = shard == layout.whole_shard
    if batch.going:
        yield Unregister(batch.going)
    yield from batch.definitions
    here = "lane" if has_all_rows else "parts"
    coming = tuple(one for one in batch.coming if batch.placements[one.query_id] == here)
    if coming:
        yield Register(coming)
    begin = tuple(one for one in batch.coming if one.query_id in batch.begins)
    begin = tuple(one for one in begin if has_all_rows != (batch.begins[one.query_id] in layout.keys))
    if begin:
        yield Register(begin)
        yield Unregister(tuple(one.query_id for one in begin))
    for step in batch.steps:
        stream = stream_of(step.source)
        if stream is None or step.lost:
            continue
        if layout.whole_shard_has(stream) if has_all_rows else layout.parts_have(stream):
            yield Records(step.source, rows_of(stream), {}, decided=Decided(step.now_ms))
