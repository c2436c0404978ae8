"""Which of a plan's queries want each record: the engine's Query SteM as a function of DataFrames.

For a job of one's own that goes on with the matches in Spark. Nothing is written and nothing waits for NOW:
each record that decodes is matched by itself, by the predicates of the queries over one stream (windows and
what stands above them do not count). Queries are compiled once a worker process.

Cost: decoding and matching as in the engine, and 4 bytes for each match on its way back to Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from engine.kernels.lists import lists_of_rows
from engine.language.functions import BUILT_IN
from engine.model.batch import BATCH_ROWS_MAX, Batch
from engine.model.limits import Limits
from engine.model.source import SourceName, Stream
from engine.model.step import BEGINNING
from engine.queries.catalogue import Catalogue
from engine.queries.matching import RecordMatcher
from engine.queries.registrations import bound
from engine.standing.query import StandingQuery
from engine.stems.query_stem import QueryStem
from spark_jobs.decoding import is_heartbeat
from spark_jobs.scale_out.micro_batch import Plan
from topics.formats.metadata import Written
from topics.keyed import decode_records

MATCHED = "partition int, offset long, queries array<int>"
_LISTS = pa.list_(pa.field("element", pa.int32(), nullable=False))
_MATCHED = pa.schema([("partition", pa.int32()), ("offset", pa.int64()), ("queries", _LISTS)])


def matched(records: DataFrame, stream: str, plan: Callable[[], Plan]) -> DataFrame:
    """Partition and offset of each record that decodes, and the numbers of the queries that want it.

    records: columns ``partition``, ``offset``, ``value`` and ``timestamp``, as Spark's Kafka source gives
    them; without ``timestamp`` no record is refused for what lies between it and the row's. With a column
    ``headers``, heartbeats are passed over; with ``key``, columns that say KEY are read from it, and are NULL
    without. stream: by name, no table. plan: gives it on executors, such as a
    broadcast's value; numbers count its queries.
    """
    if "headers" in records.columns:
        records = records.where(~is_heartbeat("headers"))
    known = "timestamp" in records.columns
    at_ms = (F.unix_millis("timestamp") if known else F.lit(0)).cast("long").alias("append_ms")
    key = F.col("key") if "key" in records.columns else F.lit(None).cast("binary").alias("key")
    wanted = records.select("partition", "offset", "value", key, at_ms)
    return wanted.mapInArrow(_match(SourceName(stream), plan), MATCHED)


def _match(
    name: SourceName, plan: Callable[[], Plan]
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def each(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        queries = _queries(name, plan())
        for batch in batches:
            offsets = batch.column("offset").to_numpy(zero_copy_only=False)
            partitions = batch.column("partition").to_numpy(zero_copy_only=False)
            values = batch.column("value").to_pylist()
            append_ms = batch.column("append_ms").to_numpy(zero_copy_only=False)
            keys = batch.column("key").to_pylist()
            rows = decode_records(queries.stream, Written(values, partitions, offsets, append_ms, keys)).batch
            for first in range(0, len(rows), BATCH_ROWS_MAX):
                yield queries.match(rows.slice(first, min(len(rows), first + BATCH_ROWS_MAX)))

    return each


class _Queries:
    """Those of a plan over one stream, compiled."""

    def __init__(self, name: SourceName, plan: Plan) -> None:
        catalogue = Catalogue(Limits(), BUILT_IN, None)
        for stream, sql in plan.streams:
            catalogue.create(stream, sql)
        for derived in plan.derived:
            catalogue.derive(derived)
        self.plan = plan
        self.stream: Stream = catalogue.sources[name].stream
        standing = {}
        for registration, _ in plan.queries:
            template = bound(registration, catalogue).template
            assert template is not None
            standing[registration.query_id] = StandingQuery(registration, template, BEGINNING, "lazy")
        self._matcher = RecordMatcher(name, QueryStem(self.stream.stored_schema))
        self._matcher.follow(standing)
        places = {registration.query_id: place for place, (registration, _) in enumerate(plan.queries)}
        self._numbers = np.array([places[one] for one in self._matcher.query_ids], np.int32)

    def match(self, rows: Batch) -> pa.RecordBatch:
        found = self._matcher.pairs(rows)
        starts, out = np.empty(len(rows) + 1, np.int32), np.empty(len(found), np.int32)
        lists_of_rows(found.rows, found.queries, self._numbers, starts, out)
        lists = pa.ListArray.from_arrays(pa.array(starts), pa.array(out), type=_LISTS)
        return pa.RecordBatch.from_arrays(
            [pa.array(rows.partition), pa.array(rows.offset), lists], schema=_MATCHED
        )


_known: dict[SourceName, _Queries] = {}


def _queries(name: SourceName, plan: Plan) -> _Queries:
    found = _known.get(name)
    if found is None or (found.plan is not plan and found.plan != plan):
        found = _known[name] = _Queries(name, plan)
    return found
