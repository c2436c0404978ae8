"""A summary that comes when its rows are there is the one that would always have been there."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.engine import Engine
from engine.model.batch import Batch
from engine.model.limits import DEFAULT_LIMITS
from engine.model.types import BIGINT
from engine.sources.summarising import PIECE
from engine.summaries.summary import Summary
from tests.summaries.summary import Rows, rows
from tureen.errors import LimitExceeded

STREAM = "CREATE STREAM s (x BIGINT, ts TIMESTAMP) WITH (timestamp = 'ts') RETAIN 1000 DAYS"
SETTINGS = "SETTINGS (buckets = 3, sketch_depth = 3, sketch_width = 8, zone_rows_min = 2)"


def summary_sql(granularity_ms: int, rate: int, depth: int, settings: str = SETTINGS) -> str:
    return (
        f"CREATE SUMMARY a ON s (x) WITH GRANULARITY {granularity_ms} MILLISECONDS "
        f"AND COLLAPSE({rate}, {depth}) {settings}"
    )


def fed(engine: Engine, given_: Rows, size: int) -> None:
    for first in range(0, len(given_.values), size):
        stamps = list(given_.timestamp[first : first + size])
        table = pa.table(
            {
                "x": pa.array(given_.values[first : first + size], pa.int64()),
                "ts": pa.array(stamps, pa.timestamp("ms")),
            }
        )
        places = np.arange(first, first + len(stamps))
        batch = Batch.from_arrow(engine.catalogue["s"].schema, table, np.zeros(len(stamps)), places, stamps)
        engine.ingest("s", batch, 2_000_000_000_000)


def of(engine: Engine) -> Summary:
    return engine._sources["s"].summarised.at_work["a"]


@given(
    given_=rows(),
    size=st.integers(1, 130),
    granularity_ms=st.sampled_from([1, 7, 40]),
    rate=st.integers(2, 3),
    depth=st.integers(1, 4),
    kind=st.sampled_from(["", ", kind = 'histogram'", ", bucket_function = 'range'"]),
)
def test_as_if_it_had_always_been_there(
    given_: Rows, size: int, granularity_ms: int, rate: int, depth: int, kind: str
) -> None:
    settings = SETTINGS.replace(")", f"{kind})")
    sql = summary_sql(granularity_ms, rate, depth, settings)
    always, later = Engine(), Engine()
    always.create(STREAM)
    always.create(sql)
    fed(always, given_, size)
    later.create(STREAM)
    fed(later, given_, 8_192)
    later.create(sql)
    one, other = of(always), of(later)
    assert one.now_ms == other.now_ms
    for name, column, same in zip(one.zones._fields, one.zones, other.zones, strict=True):
        assert name == "slot" or column.tolist() == same.tolist(), name
    every = np.arange(len(one.zones.slot))
    assert one.cell_rows(every).tolist() == other.cell_rows(every).tolist()
    values = sorted({value for value in given_.values if value is not None})
    column = pa.array(values, pa.int64())
    batch = Batch.from_arrow(
        always.catalogue["s"].schema,
        pa.table({"x": column, "ts": pa.array([0] * len(values), pa.timestamp("ms"))}),
        np.zeros(len(values)),
        np.arange(len(values)),
        [0] * len(values),
    )
    asked = batch.columns[0]
    assert asked.type == BIGINT
    estimates = [summary.estimate(summary.bucketing.keys(asked), every).tolist() for summary in (one, other)]
    assert estimates[0] == estimates[1]


def sparse(count: int) -> Rows:
    return Rows(tuple(i % 7 for i in range(count)), tuple(30_000 * i for i in range(count)))


@pytest.mark.parametrize("created_first", [True, False])
def test_rows_far_apart_take_no_more_memory_than_the_zones_that_stay(created_first: bool) -> None:
    """Each row has a zone of its own; all but the last few are beyond the reach, or were collapsed."""
    engine = Engine()
    engine.create(STREAM)
    sql = summary_sql(200, 4, 12, "")
    if created_first:
        engine.create(sql)
    fed(engine, sparse(3_000), 8_192)
    if not created_first:
        engine.create(sql)
    summary = of(engine)
    held = len(summary.zones.slot)
    assert held < 200
    assert len(summary._pool.cells.rows) < 8 * (held + PIECE)


def test_one_that_would_make_too_many_zones_is_refused() -> None:
    engine = Engine(replace(DEFAULT_LIMITS, summary_zones_max=100))
    engine.create(STREAM)
    fed(engine, Rows(tuple(range(500)), tuple(range(500))), 8_192)
    with pytest.raises(LimitExceeded, match="summary_zones_max"):
        engine.create(summary_sql(1, 3, 8))
    engine.create(summary_sql(10, 3, 8))
