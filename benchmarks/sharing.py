"""1,000 queries over windows from 1 minute to 1 hour, MAX and join, in one engine and each by itself.

Two streams of columns k, uniform over `keys` values, and v have `rate` rows a second between them, in event
time. Half of the queries ask `MAX(v)` of the first stream, half join both by k and ask how many pairs there
are of some range of v; windows are spread evenly. The engine holds the widest window; rows come after that,
in batches, and a view is taken after each. Windows of one stream are views of one store, so the engine with
all queries should take little more memory than one with the widest MAX and join alone, beside what each
query takes by itself (its text and place in indexes: the benchmark `memory`), and so it is counted.

Unshared is each query in an engine of its own. That is timed for some of them, as many of each kind and
spread over the windows, on fewer rows; the sum over all is estimated from their mean, as `rows_per_s` of a
machine that has to bring each row to 1,000 engines. Answers of those are compared with numpy, and with the
shared engine's.

Figures: `bytes_ratio_to_widest`, `bytes.shared`, `bytes.widest`, `bytes_per_query`; `rows_per_s.shared`,
`rows_per_s.unshared`, `shared_to_unshared`. With --follow somebody follows each query, and figures are of
that.
"""

from __future__ import annotations

import argparse
import gc
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from benchmarks import psoup
from benchmarks.report import Figure, Report
from engine.engine import Engine
from engine.model.batch import BATCH_ROWS_MAX, Batch, Column
from engine.model.source import Field, Schema
from engine.model.types import INTEGER, TIMESTAMP

MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS
VALUES = 1_000
COMPARED = 40
KINDS = ("max", "join")
SCHEMA = Schema((Field("k", INTEGER), Field("v", INTEGER), Field("ts", TIMESTAMP, nullable=False)))


@dataclass(frozen=True, slots=True)
class Query:
    """window_ms: of both sides of a join. low: pairs whose first v is not below."""

    kind: str
    window_ms: int
    low: int

    @property
    def sql(self) -> str:
        window = f"[RANGE {self.window_ms} MILLISECONDS]"
        if self.kind == "max":
            return f"SELECT MAX(v) AS found FROM s0 {window} WHERE v < {VALUES - self.low % 7}"
        return (
            f"SELECT COUNT(*) AS found FROM s0 {window} JOIN s1 {window} ON s0.k = s1.k "
            f"WHERE s0.v >= {VALUES - 1 - self.low % 7}"
        )


@dataclass(frozen=True, slots=True)
class Rows:
    """Row i is of stream i % 2, at instant ts[i]."""

    k: npt.NDArray[np.int32]
    v: npt.NDArray[np.int32]
    ts: npt.NDArray[np.int64]

    def batches(self, first: int, end: int) -> list[tuple[str, Batch]]:
        """Batches of both streams in turn."""
        found = []
        for begin in range(first, end, 2 * BATCH_ROWS_MAX):
            for stream in range(2):
                chosen = np.arange(begin, min(begin + 2 * BATCH_ROWS_MAX, end))
                chosen = chosen[chosen % 2 == stream]
                columns = (
                    Column(INTEGER, self.k[chosen]),
                    Column(INTEGER, self.v[chosen]),
                    Column(TIMESTAMP, self.ts[chosen]),
                )
                zeros = np.zeros(len(chosen), np.int32)
                found.append((f"s{stream}", Batch(SCHEMA, columns, zeros, chosen // 2, self.ts[chosen])))
        return found

    def expected(self, query: Query, now_ms: int, seen: int) -> int | None:
        """By definition, of the first rows."""
        ts = self.ts[:seen]
        inside = (ts >= now_ms - query.window_ms) & (ts <= now_ms)
        first = inside & (np.arange(seen) % 2 == 0)
        if query.kind == "max":
            values = self.v[:seen][first & (self.v[:seen] < VALUES - query.low % 7)]
            return int(values.max()) if len(values) else None
        wanted = self.k[:seen][first & (self.v[:seen] >= VALUES - 1 - query.low % 7)]
        others = np.bincount(self.k[:seen][inside & ~first], minlength=int(self.k.max()) + 1)
        return int(others[wanted].sum())


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options besides those that every benchmark has."""
    parser.add_argument("--queries", type=int, default=1_000, help="all (default: %(default)s)")
    parser.add_argument("--alone", type=int, default=20, help="timed by themselves (default: %(default)s)")
    parser.add_argument("--rate", type=int, default=200, help="rows a second (default: %(default)s)")
    parser.add_argument("--rows", type=int, default=200_000, help="timed, shared (default: %(default)s)")
    parser.add_argument("--keys", type=int, default=20_000, help="values of k (default: %(default)s)")
    parser.add_argument("--maintenance", choices=("auto", "none", "lazy", "eager"), default="auto")
    parser.add_argument("--follow", action="store_true", help="somebody follows each query")


def run(options: argparse.Namespace) -> Report:
    """Shared, then the widest alone, then some by themselves."""
    rng = np.random.default_rng(options.seed)
    filled = HOUR_MS // 1_000 * options.rate
    filled += -filled % (2 * BATCH_ROWS_MAX)
    rows = make_rows(rng, filled + options.rows, options)
    queries = make_queries(options.queries)
    shared_bytes, shared_s, shared = measured(rows, queries, filled, filled + options.rows, options)
    per_query = shared.footprint().queries / len(queries)
    figures: dict[str, Figure] = {
        "bytes.shared": shared_bytes,
        "bytes_per_query": per_query,
        "rows_per_s.shared": options.rows / shared_s,
    }
    compare(shared, rows, queries, filled + options.rows)
    print(f"shared: {figures['rows_per_s.shared']:,.0f} rows/s, {shared.footprint().structures}")
    del shared
    widest = [queries[-2], queries[-1]]
    widest_bytes, _, alone = measured(rows, widest, filled, filled + options.rows, options)
    print(f"widest: {alone.footprint().structures}")
    figures["bytes.widest"] = widest_bytes
    figures["bytes_ratio_to_widest"] = shared_bytes / widest_bytes
    seconds = []
    some = min(options.rows, 4 * BATCH_ROWS_MAX)
    for place in np.linspace(0, len(queries) - 1, options.alone).astype(int):
        _, took, _ = measured(rows, [queries[place]], filled, filled + some, options)
        seconds.append(took)
    unshared = some / (float(np.mean(seconds)) * len(queries))
    figures["rows_per_s.unshared"] = unshared
    figures["shared_to_unshared"] = options.rows / shared_s / unshared
    return Report(figures)


def make_rows(rng: np.random.Generator, count: int, options: argparse.Namespace) -> Rows:
    """Instants rise evenly."""
    return Rows(
        rng.integers(0, options.keys, count, np.int32),
        rng.integers(0, VALUES, count, np.int32),
        np.arange(count) * 1_000 // options.rate,
    )


def make_queries(count: int) -> list[Query]:
    """Kinds in turn, windows from a minute to an hour."""
    spans = np.linspace(MINUTE_MS, HOUR_MS, max(2, -(-count // 2))).astype(int)
    return [Query(KINDS[place % 2], int(spans[place // 2]), place // 2) for place in range(count)]


def measured(
    rows: Rows, queries: Sequence[Query], first: int, end: int, options: argparse.Namespace
) -> tuple[float, float, Engine]:
    """In an engine of its own: bytes of state but for what a query takes by itself, and the seconds that the
    rows from first to end take.
    """
    engine = Engine()
    for stream in range(2):
        engine.create(
            f"CREATE STREAM s{stream} (k INTEGER, v INTEGER, ts TIMESTAMP NOT NULL) "
            f"WITH (topic='s{stream}', timestamp='ts') RETAIN 1 SECOND"
        )
    texts = (query.sql for query in queries)
    psoup.register(engine, texts, {"maintenance": options.maintenance})
    if options.follow:
        for place in range(len(queries)):
            engine.follow(f"q{place}")
    for source, batch in rows.batches(0, first):
        engine.ingest(source, batch)
    engine.view()
    gc.collect()
    began = time.perf_counter()
    for source, batch in rows.batches(first, end):
        engine.ingest(source, batch)
        engine.view()
    seconds = time.perf_counter() - began
    found = engine.footprint()
    return found.total - found.queries, seconds, engine


def compare(engine: Engine, rows: Rows, queries: Sequence[Query], seen: int) -> None:
    """Some answers with numpy. Raises RuntimeError."""
    view = engine.view()
    now_ms = min(source.now_ms or 0 for source in view.sources())
    for place in np.linspace(0, len(queries) - 1, min(COMPARED, len(queries))).astype(int):
        found = view.snapshot(f"q{place}").table.column(0)[0].as_py()
        expected = rows.expected(queries[place], now_ms, seen)
        if found != expected:
            raise RuntimeError(f"{queries[place].sql} is {found}, numpy {expected}")
