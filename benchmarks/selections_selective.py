"""Rows a second through standing selections of which few can want a row, matches kept as pairs.

100,000 queries `key = k AND value > c`: k is one of 10,000 keys, c lies in the upper tenth of the values, so
that a row has about ten candidates and two rows satisfy about one query. A bit for every query would take
12.5 KB a row; the rows' keys lead to the candidates instead, and only what matches is kept. Rows come in
batches of 8,192 in event time, ten a millisecond. Counts of sampled queries are checked with numpy
afterwards.

For comparison, published: percolators about 1,000 documents/s at 225,000 queries on 144 cores, event-ruler
120,000 events/s on five numeric rules, Le Subscribe 600 events/s at 6 million conjunctions.

Queries are registered in steps of 10,000, over no rows. After the rows the engine is saved, and a new one is
restored from that store: a restart, but for what Kafka adds to it.

Figures: `rows_per_s.q<queries>`, the median over timed stretches; `matches_per_row.q<queries>`;
`register_s.q<queries>`, `register_per_s.q<queries>`, texts included; `restart_s.q<queries>`, from the store
to the first answer; `bytes_per_query.q<queries>`, what the index keeps of a query;
`resident_bytes_per_query.q<queries>`, by which the process grew for each as they came, its text included;
`spread.q<queries>`, the distance of the quartiles as a share of the median. The plot shows rate, memory,
registration and restart by the number of queries.
"""

import argparse
import gc
import sys
import tempfile
import time
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
import numpy.typing as npt

from benchmarks import psoup
from benchmarks.psoup import ROWS_PER_MS
from benchmarks.report import Figure, Plot, Report, Series
from benchmarks.resident import resident_bytes
from benchmarks.selections import CHECKED_QUERIES, STRETCHES, add_sizes
from benchmarks.timing import Timing
from engine.engine import Engine
from engine.model.batch import BATCH_ROWS_MAX, Batch, Column
from engine.model.limits import Limits
from engine.model.source import Field, Schema
from engine.model.step import Register, Registration
from engine.model.types import INTEGER, TIMESTAMP
from storage.store import Store

STEP = 10_000
LIMITS = Limits(queries_max=10_000_000)
SELECTIVE_FROM = 10_000
"""Least number of queries of which none is kept as bits; of fewer some are, since that is cheaper."""
KEYS = 10_000
VALUES = 1_000
SCHEMA = Schema((Field("key", INTEGER), Field("value", INTEGER), Field("ts", TIMESTAMP, nullable=False)))
DRAWN = {
    "rows_per_s": "rows/s",
    "resident_bytes_per_query": "resident bytes a query",
    "register_s": "registration of all, s",
    "restart_s": "restart, s",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options besides those that every benchmark has."""
    add_sizes(parser, queries=[100_000], rows=4_000_000)


@dataclass(frozen=True, slots=True)
class Rows:
    """key, value: int32[rows]; timestamp: int64[rows], ms."""

    key: npt.NDArray[np.int32]
    value: npt.NDArray[np.int32]
    timestamp: npt.NDArray[np.int64]

    def batch(self, first: int, end: int) -> Batch:
        """Some of them, as a worker would read them."""
        timestamp = self.timestamp[first:end].copy()
        return Batch(
            SCHEMA,
            (
                Column(INTEGER, self.key[first:end].copy()),
                Column(INTEGER, self.value[first:end].copy()),
                Column(TIMESTAMP, timestamp),
            ),
            np.zeros(end - first, np.int32),
            np.arange(first, end, dtype=np.int64),
            timestamp,
        )


def run(options: argparse.Namespace) -> Report:
    """Measure each number of queries in an engine of its own."""
    rng = np.random.default_rng(options.seed)
    stretch = -(-options.rows // (STRETCHES * BATCH_ROWS_MAX)) * BATCH_ROWS_MAX
    warm_up = -(-2 * options.retain // BATCH_ROWS_MAX) * BATCH_ROWS_MAX
    n = warm_up + STRETCHES * stretch
    rows = Rows(
        rng.integers(0, KEYS, n, np.int32),
        rng.integers(0, VALUES, n, np.int32),
        np.arange(n, dtype=np.int64) // ROWS_PER_MS,
    )
    figures: dict[str, Figure] = {}
    for queries in options.queries:
        keys = rng.integers(0, KEYS, queries)
        above = rng.integers(VALUES - VALUES // 10, VALUES, queries)
        engine = create(options.retain // ROWS_PER_MS)
        before = resident_bytes()
        began = time.perf_counter()
        register(
            engine,
            (
                f"SELECT key, value FROM events WHERE key = {key} AND value > {low}"
                for key, low in zip(keys.tolist(), above.tolist(), strict=True)
            ),
        )
        register_s = time.perf_counter() - began
        grown = resident_bytes() - before
        timing = feed(engine, rows, warm_up, stretch)
        figures[f"rows_per_s.q{queries}"] = timing.per_s(stretch)
        figures[f"matches_per_row.q{queries}"] = check(engine, rows, keys, above)
        figures[f"register_s.q{queries}"] = register_s
        figures[f"register_per_s.q{queries}"] = queries / register_s
        figures[f"resident_bytes_per_query.q{queries}"] = grown / queries
        stem = engine.stats()["query-stem/events"]
        if stem["words"] and queries >= SELECTIVE_FROM:
            raise RuntimeError(f"{stem['words']} words of bits a row, for queries that are selective")
        figures[f"bytes_per_query.q{queries}"] = int(str(stem["index_bytes"])) / queries
        figures[f"spread.q{queries}"] = timing.spread
        with tempfile.TemporaryDirectory() as directory, Store(Path(directory) / "store") as store:
            engine.save(store)
            del engine
            began = time.perf_counter()
            engine = Engine.restore(store, LIMITS)
            engine.view().snapshot("q0")
            figures[f"restart_s.q{queries}"] = time.perf_counter() - began
        check(engine, rows, keys, above)
        del engine
        told = [f"{name} {figures[f'{name}.q{queries}']:,.4g}" for name in DRAWN]
        print(f"{queries:,} queries: {', '.join(told)}", file=sys.stderr)
    return Report(
        figures,
        [
            Plot("standing queries", label, [Series("Tureen", options.queries, line)], log=True)
            for name, label in DRAWN.items()
            for line in [[float(figures[f"{name}.q{queries}"]) for queries in options.queries]]
        ],
    )


def register(engine: Engine, texts: Iterable[str]) -> None:
    """As q0, q1, ..., in steps of some. Raises RuntimeError where one is refused."""
    named = (Registration(f"q{n}", sql) for n, sql in enumerate(texts))
    while step := tuple(islice(named, STEP)):
        psoup.apply(engine, Register(step))


def create(retain_ms: int) -> Engine:
    """An engine with the stream and nothing in it."""
    engine = Engine(LIMITS)
    engine.create(
        "CREATE STREAM events (key INTEGER, value INTEGER, ts TIMESTAMP NOT NULL) "
        f"WITH (topic='events', timestamp='ts') RETAIN {retain_ms} MILLISECONDS"
    )
    return engine


def feed(engine: Engine, rows: Rows, warm_up: int, stretch: int) -> Timing:
    """Time of each stretch after the warm-up."""
    n = len(rows.timestamp)
    clock_ms = int(rows.timestamp[-1])
    seconds = []
    for first in range(0, warm_up, BATCH_ROWS_MAX):
        engine.ingest("events", rows.batch(first, first + BATCH_ROWS_MAX), clock_ms)
    gc.collect()
    for begin in range(warm_up, n, stretch):
        batches = [
            rows.batch(first, first + BATCH_ROWS_MAX)
            for first in range(begin, begin + stretch, BATCH_ROWS_MAX)
        ]
        began = time.perf_counter()
        for batch in batches:
            engine.ingest("events", batch, clock_ms)
        seconds.append(time.perf_counter() - began)
    return Timing(tuple(seconds))


def check(engine: Engine, rows: Rows, keys: npt.NDArray[np.int64], above: npt.NDArray[np.int64]) -> float:
    """Compare answers of some queries with numpy; returns matches of a row over all queries, estimated."""
    view = engine.view()
    source = view.sources()[0]
    assert source.now_ms is not None
    assert source.retained_from_ms is not None
    inside = (rows.timestamp >= source.retained_from_ms) & (rows.timestamp <= source.now_ms)
    key, value = rows.key[inside], rows.value[inside]
    found = 0
    places = range(0, len(keys), max(1, len(keys) // CHECKED_QUERIES))
    for place in places:
        wanted = (key == keys[place]) & (value > above[place])
        answer = view.snapshot(f"q{place}").table
        if not np.array_equal(answer[1].to_numpy(), value[wanted]):
            raise RuntimeError(f"query {place} has {answer.num_rows} rows, numpy {int(wanted.sum())}")
        found += answer.num_rows
    return found / len(places) * len(keys) / len(key)
