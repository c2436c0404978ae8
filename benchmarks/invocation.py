"""Fetching one answer: a 1% selective query over a window of 1,000,000 rows, as Arrow, beside DuckDB.

Queries `a BETWEEN x AND x + 99` over 10,000 uniform values, four columns out, and COUNT(*) of the same. The
engine has kept their matches as the rows came; an invocation imposes the window and gathers the rows. The
same queries with COUNT, SUM, AVG, MIN and MAX are eager: their partial results are kept. DuckDB holds exactly
the window's rows in an in-memory table and runs the same SELECT to Arrow, without a window to impose, with
all cores. A repeat asks each of 64 such queries once of the engine, then of DuckDB; a figure is the median
repeat, for one call, and a ratio the median of the repeats' ratios, so that a disturbance of the machine
meets both. Before each repeat one more row comes, so that a repeat asks a view of which nothing was asked:
no answer is one that was made before. Answers are compared row by row first.

PSoup (VLDB 2002, section 5.2) saw kept answers fetched one to two orders of magnitude faster than by running
the query again, which does not scale with the window.

Figures: `engine_ms`, `duckdb_ms`, `ratio_to_duckdb` (how many times faster the engine is), and for COUNT(*)
`count_engine_ms`, `count_duckdb_ms`, `count_ratio_to_duckdb`, for the aggregates `aggregates_engine_ms`,
`aggregates_duckdb_ms`, `aggregates_ratio_to_duckdb`. `engine_cold_ms`: a single call after Python's
collector has swept the caches. `rows_out`: rows of an answer.
"""

import argparse
import gc
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import count, cycle
from math import isclose
from statistics import median

import duckdb
import numpy as np
import pyarrow as pa

from benchmarks import psoup
from benchmarks.report import Report
from benchmarks.timing import repeat
from engine.engine import Engine
from engine.model.batch import BATCH_ROWS_MAX, Batch, Column
from engine.model.source import Field, Schema
from engine.model.step import Register, Registration
from engine.model.types import BIGINT, DOUBLE, TIMESTAMP
from engine.views.view import View

SCHEMA = Schema(
    (
        Field("a", BIGINT),
        Field("b", BIGINT),
        Field("c", DOUBLE),
        Field("d", BIGINT),
        Field("ts", TIMESTAMP, nullable=False),
    )
)
VALUES = 10_000
WIDTH = VALUES // 100
COLUMNS = "a, b, c, d"
AGGREGATES = "COUNT(*) AS n, SUM(b) AS total, AVG(c) AS mean, MIN(d) AS least, MAX(d) AS greatest"

Call = Callable[[View, int], object]
"""Takes the answer of a query, by its number, from a view."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options besides those that every benchmark has."""
    parser.add_argument(
        "--rows", type=int, default=1_000_000, help="rows of the window (default: %(default)s)"
    )
    parser.add_argument("--queries", type=int, default=64, help="that stand beside it (default: %(default)s)")
    parser.add_argument(
        "--times", type=int, default=11, help="sweeps over all queries (default: %(default)s)"
    )


def run(options: argparse.Namespace) -> Report:
    """Fill an engine and a table with the same rows, then ask both in turn."""
    rng = np.random.default_rng(options.seed)
    starts = rng.integers(0, VALUES - WIDTH, options.queries).tolist()
    table = make_table(rng, options.rows)
    engine = fill(table, starts)
    database = duckdb.connect()
    database.register("arriving", table)
    database.execute("CREATE TABLE s AS SELECT * FROM arriving")
    database.unregister("arriving")
    view = engine.view()

    for number, start in enumerate(starts):
        mine = view.snapshot(f"q{number}").table
        other = database.sql(select(COLUMNS, start) + " ORDER BY d").to_arrow_table()
        if not mine.equals(other.cast(mine.schema)):
            raise RuntimeError(f"q{number}: {mine.num_rows} rows, DuckDB {other.num_rows}, or not the same")
        counted = view.snapshot(f"n{number}").table.column(0)[0].as_py()
        if counted != mine.num_rows:
            raise RuntimeError(f"n{number}: counted {counted} of {mine.num_rows}")
        compare(view.snapshot(f"g{number}").table, database.sql(select(AGGREGATES, start)).to_arrow_table())

    instants = count(options.rows + 1)

    def latest() -> View:
        enter_one(engine, next(instants))
        return engine.view()

    seconds = in_turn(
        options.times,
        {
            "engine": lambda view, n: view.snapshot(f"q{n}"),
            "duckdb": lambda _, n: database.sql(select(COLUMNS, starts[n])).to_arrow_table(),
            "count_engine": lambda view, n: view.snapshot(f"n{n}"),
            "count_duckdb": lambda _, n: database.sql(select("COUNT(*)", starts[n])).to_arrow_table(),
            "aggregates_engine": lambda view, n: view.snapshot(f"g{n}"),
            "aggregates_duckdb": lambda _, n: database.sql(select(AGGREGATES, starts[n])).to_arrow_table(),
        },
        options.queries,
        latest,
    )
    view = latest()
    numbers = cycle(range(options.queries))
    cold = repeat(lambda: view.snapshot(f"q{next(numbers)}"), times=5 * options.times, warm_ups=5)
    return Report(
        {
            "engine_ms": median(seconds["engine"]) * 1e3,
            "duckdb_ms": median(seconds["duckdb"]) * 1e3,
            "ratio_to_duckdb": ratio(seconds["duckdb"], seconds["engine"]),
            "count_engine_ms": median(seconds["count_engine"]) * 1e3,
            "count_duckdb_ms": median(seconds["count_duckdb"]) * 1e3,
            "count_ratio_to_duckdb": ratio(seconds["count_duckdb"], seconds["count_engine"]),
            "aggregates_engine_ms": median(seconds["aggregates_engine"]) * 1e3,
            "aggregates_duckdb_ms": median(seconds["aggregates_duckdb"]) * 1e3,
            "aggregates_ratio_to_duckdb": ratio(seconds["aggregates_duckdb"], seconds["aggregates_engine"]),
            "engine_cold_ms": cold.median_ms,
            "rows_out": view.snapshot("q0").table.num_rows,
        }
    )


def make_table(rng: np.random.Generator, rows: int) -> pa.Table:
    """Rows of the stream; d counts up, so that it tells their order."""
    return pa.table(
        {
            "a": rng.integers(0, VALUES, rows),
            "b": rng.integers(-(2**40), 2**40, rows),
            "c": rng.random(rows),
            "d": np.arange(rows),
            "ts": pa.array(np.arange(rows), pa.timestamp("ms")),
        }
    )


def select(columns: str, start: int, window: str = "") -> str:
    """The statement of one query, for both."""
    return f"SELECT {columns} FROM s{window} WHERE a BETWEEN {start} AND {start + WIDTH - 1}"


def fill(table: pa.Table, starts: list[int]) -> Engine:
    """An engine whose window holds exactly the table's rows, with each query and its count standing."""
    rows = table.num_rows
    engine = Engine()
    engine.create(
        "CREATE STREAM s (a BIGINT, b BIGINT, c DOUBLE, d BIGINT, ts TIMESTAMP NOT NULL) "
        f"WITH (topic='s', timestamp='ts') RETAIN {2 * rows} MILLISECONDS"
    )
    window = f" [RANGE {rows - 1} MILLISECONDS]"
    for number, start in enumerate(starts):
        engine.register(f"q{number}", select(COLUMNS, start, window))
        engine.register(f"n{number}", select("COUNT(*)", start, window))
    eager = (
        Registration(f"g{number}", select(AGGREGATES, start, window), options={"maintenance": "eager"})
        for number, start in enumerate(starts)
    )
    psoup.apply(engine, Register(tuple(eager)))
    timestamp = np.arange(rows, dtype=np.int64)
    for first in range(0, rows, BATCH_ROWS_MAX):
        cut = table.slice(first, BATCH_ROWS_MAX).combine_chunks()
        offset = timestamp[first : first + cut.num_rows]
        engine.ingest(
            "s", Batch.from_arrow(SCHEMA, cut, np.zeros(len(offset)), offset, offset), clock_ms=rows
        )
    enter_one(engine, rows)  # NOW stays a millisecond behind the newest row: now it is at the table's last
    return engine


def enter_one(engine: Engine, instant_ms: int) -> None:
    """A row that no query wants; the window moves on to the one before it."""
    one = np.array([instant_ms], np.int64)
    values = tuple(Column(field.type, np.array([-1], field.type.dtype)) for field in list(SCHEMA)[:-1])
    engine.ingest("s", Batch(SCHEMA, (*values, Column(TIMESTAMP, one)), np.zeros(1, np.int32), one, one))


def compare(mine: pa.Table, other: pa.Table) -> None:
    """One row of aggregates; only the mean depends on the order of adding. Raises RuntimeError."""
    for name in mine.column_names:
        one, two = (table.column(name)[0].as_py() for table in (mine, other))
        if one != two and not isclose(float(one), float(two), rel_tol=1e-12):
            raise RuntimeError(f"{name} is {one}, DuckDB {two}")


def in_turn(
    times: int, calls: Mapping[str, Call], queries: int, latest: Callable[[], View]
) -> dict[str, list[float]]:
    """Seconds of one call, of each kind and in each repeat.

    A repeat asks every query by every kind, each kind of the view that is the latest then.
    """
    seconds: dict[str, list[float]] = {kind: [] for kind in calls}
    for number in range(-1, times):
        for kind, call in calls.items():
            view = latest()
            gc.collect()
            began = time.perf_counter()
            for query in range(queries):
                call(view, query)
            ended = time.perf_counter()
            if number >= 0:  # the first is a warm-up
                seconds[kind].append((ended - began) / queries)
    return seconds


def ratio(slow: Sequence[float], fast: Sequence[float]) -> float:
    """How many times the second is faster, repeat by repeat."""
    return median(one / other for one, other in zip(slow, fast, strict=True))
