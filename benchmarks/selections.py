"""Rows a second through standing selections, matches kept: PSoup's workload, in the engine alone.

Four columns of values 0..255; each query has an interval predicate on each column with probability 0.7,
`lo <= column < hi`, whose constants are multiples of 32. Rows come in batches of 8,192 in event time, ten a
millisecond, and each is matched with every query; the bits are kept as long as the rows are retained. Rows
are made before the clock starts, the queries are registered in one step, their texts are no part of the
figure. Counts of sampled queries are checked with numpy afterwards.

The paper (PSoup, VLDB 2002, section 5.2.4) saw the variant that is lazy and shares an index of predicates
take an order of magnitude more rows than the lazy one without an index, the more so the more queries, and
two orders more than the variants that keep answers current.

Figures: `rows_per_s.q<queries>`, the median over timed stretches; `register_s.q<queries>`, texts included;
`matches_per_row.q<queries>`; `spread.q<queries>`, the distance of the quartiles as a share of the median.
"""

import argparse
import gc
import sys
import time
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from benchmarks.report import Figure, Plot, Report, Series
from benchmarks.timing import Timing
from engine.engine import Engine
from engine.model.batch import BATCH_ROWS_MAX, Batch, Column
from engine.model.source import Field, Schema
from engine.model.step import Position, Register, Registration, Step
from engine.model.types import INTEGER, TIMESTAMP

COLUMNS = ("a", "b", "c", "d")
SCHEMA = Schema((*(Field(name, INTEGER) for name in COLUMNS), Field("ts", TIMESTAMP, nullable=False)))
ROWS_PER_MS = 10
STRETCHES = 5
CHECKED_QUERIES = 40

Bounds = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Rows:
    """values: int32[4, rows], one line a column; timestamp: int64[rows], ms."""

    values: npt.NDArray[np.int32]
    timestamp: npt.NDArray[np.int64]

    def batches(self) -> list[Batch]:
        """All rows, cut as a worker would read them, from one partition."""
        n = len(self.timestamp)
        return [self._batch(first, min(first + BATCH_ROWS_MAX, n)) for first in range(0, n, BATCH_ROWS_MAX)]

    def _batch(self, first: int, end: int) -> Batch:
        columns = [Column(INTEGER, line[first:end].copy()) for line in self.values]
        timestamp = self.timestamp[first:end].copy()
        return Batch(
            SCHEMA,
            (*columns, Column(TIMESTAMP, timestamp)),
            np.zeros(end - first, np.int32),
            np.arange(first, end, dtype=np.int64),
            timestamp,
        )


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options besides those that every benchmark has."""
    parser.add_argument(
        "--queries",
        type=int,
        nargs="+",
        default=[1_000, 10_000],
        help="how many stand (default: %(default)s)",
    )
    parser.add_argument("--rows", type=int, default=2_000_000, help="timed rows (default: %(default)s)")
    parser.add_argument(
        "--retain",
        type=int,
        default=200_000,
        help="rows that stay, with their matches (default: %(default)s)",
    )


def run(options: argparse.Namespace) -> Report:
    """Measure each number of queries in an engine of its own."""
    rng = np.random.default_rng(options.seed)
    stretch = -(-options.rows // (STRETCHES * BATCH_ROWS_MAX)) * BATCH_ROWS_MAX
    warm_up = -(-2 * options.retain // BATCH_ROWS_MAX) * BATCH_ROWS_MAX
    rows = make_rows(rng, warm_up + STRETCHES * stretch)
    figures: dict[str, Figure] = {}
    rates = []
    for queries in options.queries:
        bounds = make_bounds(rng, queries)
        timing, register_s, matches = measure(rows, bounds, warm_up, stretch, options.retain)
        rates.append(timing.per_s(stretch))
        figures[f"rows_per_s.q{queries}"] = rates[-1]
        figures[f"register_s.q{queries}"] = register_s
        figures[f"matches_per_row.q{queries}"] = matches
        figures[f"spread.q{queries}"] = timing.spread
        print(f"{queries:,} queries: {rates[-1]:,.0f} rows/s", file=sys.stderr)
    return Report(
        figures, Plot("standing queries", "rows/s", [Series("Tureen", options.queries, rates)], log=True)
    )


def make_rows(rng: np.random.Generator, n: int) -> Rows:
    """Uniform values 0..255."""
    values = rng.integers(0, 256, (len(COLUMNS), n), np.int32)
    return Rows(values, np.arange(n, dtype=np.int64) // ROWS_PER_MS)


def make_bounds(rng: np.random.Generator, queries: int) -> Bounds:
    """int64[queries, 4, 2]: lo <= value < hi, multiples of 32; 0 and 256 where there is no predicate."""
    pairs = np.array([(lo, hi) for lo in range(0, 256, 32) for hi in range(lo + 32, 257, 32)])
    bounds = pairs[rng.integers(0, len(pairs), (queries, len(COLUMNS)))]
    bounds[rng.random((queries, len(COLUMNS))) >= 0.7] = (0, 256)
    return bounds


def text(bounds: Bounds) -> str:
    """The SELECT of one query; bounds: int64[4, 2]."""
    factors = [
        f"{name} >= {lo} AND {name} < {hi}"
        for name, (lo, hi) in zip(COLUMNS, bounds.tolist(), strict=True)
        if (lo, hi) != (0, 256)
    ]
    where = f" WHERE {' AND '.join(factors)}" if factors else ""
    return f"SELECT a, b, c, d FROM psoup{where}"


def measure(
    rows: Rows, bounds: Bounds, warm_up: int, stretch: int, retain: int
) -> tuple[Timing, float, float]:
    """(time of each stretch, seconds to register, matches of a row) of a fresh engine."""
    engine = Engine()
    columns = ", ".join(f"{name} INTEGER" for name in COLUMNS)
    engine.create(
        f"CREATE STREAM psoup ({columns}, ts TIMESTAMP NOT NULL) WITH (topic='psoup', timestamp='ts') "
        f"RETAIN {retain // ROWS_PER_MS} MILLISECONDS"
    )
    began = time.perf_counter()
    texts = [Registration(f"q{number}", text(one)) for number, one in enumerate(bounds)]
    last = engine.position
    engine.enqueue(Step(Position(last.epoch, last.sequence + 1), 0, Register(tuple(texts))))
    failed = engine.run()[-1].failed
    if failed:
        raise RuntimeError(f"{len(failed)} queries were refused, as {next(iter(failed.values()))}")
    register_s = time.perf_counter() - began

    batches = rows.batches()
    clock_ms = int(rows.timestamp[-1])
    per_stretch = stretch // BATCH_ROWS_MAX
    warm = warm_up // BATCH_ROWS_MAX
    for batch in batches[:warm]:
        engine.ingest("psoup", batch, clock_ms)
    seconds = []
    gc.collect()
    for first in range(warm, len(batches), per_stretch):
        began = time.perf_counter()
        for batch in batches[first : first + per_stretch]:
            engine.ingest("psoup", batch, clock_ms)
        seconds.append(time.perf_counter() - began)
    return Timing(tuple(seconds)), register_s, check(engine, rows, bounds)


def check(engine: Engine, rows: Rows, bounds: Bounds) -> float:
    """Compare answers of some queries with numpy; returns matches of a row over all queries, estimated."""
    view = engine.view()
    source = view.sources()[0]
    assert source.now_ms is not None
    assert source.retained_from_ms is not None
    inside = (rows.timestamp >= source.retained_from_ms) & (rows.timestamp <= source.now_ms)
    values = rows.values[:, inside]
    found = 0
    places = range(0, len(bounds), max(1, len(bounds) // CHECKED_QUERIES))
    for place in places:
        low, high = bounds[place, :, :1], bounds[place, :, 1:]
        expected = values[:, ((values >= low) & (values < high)).all(axis=0)]
        answer = view.snapshot(f"q{place}").table
        if not all(np.array_equal(answer[i].to_numpy(), line) for i, line in enumerate(expected)):
            raise RuntimeError(f"query {place} has {answer.num_rows} rows, numpy {expected.shape[1]}")
        found += answer.num_rows
    return found / len(places) * len(bounds) / values.shape[1]
