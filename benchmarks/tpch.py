"""TPC-H's 22 queries as standing queries over streams and tables, in the engine alone.

Each query has an engine of its own and the tables that it reads: `lineitem` and `orders` as streams, the
others as keyed tables, made by TPC-H's public schema and value ranges (:mod:`tests.workloads.tpch_rows`).
Rows come in batches of 8,192, the small tables first, and are made before the clock starts. Once the query
is followed while they come: each step tells what it changed. Once it comes when all rows are there, and is
then asked. Both answers are compared with DuckDB's over the same rows, which runs with one thread.

Nobody has published figures of standing queries over this workload that we know of; DuckDB, which reads all
rows when it is asked, is what an answer is compared with.

Figures: `rows_per_s.<query>`, rows of the tables it reads, a second, while it is followed;
`register_ms.<query>`, until it stands when all rows are there, with the composites of its joins;
`answer_ms.<query>`, its first answer then; `duckdb_ms.<query>`, an answer of DuckDB's; each the median of
the repeats. `rows_per_s.min`, `register_ms.sum`, `answer_ms.sum`, `duckdb_ms.sum`.
"""

import argparse
import sys
import time
from collections.abc import Mapping
from statistics import median

import duckdb
import pyarrow as pa

from benchmarks.report import Figure, Plot, Report, Series
from engine.engine import Engine
from engine.model.batch import Batch
from engine.model.limits import Limits
from engine.model.source import SourceName, Stream
from engine.model.step import Heartbeat, Position, Step
from tests.differential.duckdb_selects import close
from tests.workloads import tpch_rows
from tests.workloads.tpch_rows import QUERIES

ROOM = Limits(snapshot_rows_max=10_000_000)
BEYOND_MS = 10_000_000
"""Later than all rows, so that all are seen."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options besides those that every benchmark has."""
    parser.add_argument("--scale", type=float, default=0.1, help="of the tables (default: %(default)s)")
    parser.add_argument("--queries", nargs="+", default=list(QUERIES), help="such as q01 (default: all)")
    parser.add_argument("--repeats", type=int, default=3, help="answers of each (default: %(default)s)")


def run(options: argparse.Namespace) -> Report:
    """Measure each query in an engine of its own."""
    rows = tpch_rows.make_rows(options.scale, options.seed)
    print(f"{tpch_rows.total(rows):,} rows", file=sys.stderr)
    figures: dict[str, Figure] = {}
    rates, registered, answers, theirs = [], [], [], []
    with duckdb.connect() as database:
        database.execute("SET threads = 1")
        for name, table in rows.items():
            database.register(name, table)
        for name in options.queries:
            duckdb_ms, expected = _in_duckdb(database, QUERIES[name], options.repeats)
            rate, register_ms, answer_ms = measure(name, rows, expected, options.repeats)
            rates.append(rate)
            registered.append(register_ms)
            answers.append(answer_ms)
            theirs.append(duckdb_ms)
            figures |= {
                f"rows_per_s.{name}": rate,
                f"register_ms.{name}": register_ms,
                f"answer_ms.{name}": answer_ms,
                f"duckdb_ms.{name}": duckdb_ms,
            }
            told = f"registered in {register_ms:.1f} ms, answered in {answer_ms:.1f} ms"
            print(f"{name}: {rate:,.0f} rows/s followed, {told}", file=sys.stderr)
    figures |= {
        "rows_per_s.min": min(rates),
        "register_ms.sum": sum(registered),
        "answer_ms.sum": sum(answers),
        "duckdb_ms.sum": sum(theirs),
    }
    numbers = list(range(1, len(rates) + 1))
    curves = [Series("Tureen", numbers, answers), Series("DuckDB", numbers, theirs)]
    return Report(figures, Plot("query", "answer, ms", curves, log=True))


def measure(
    name: str, rows: Mapping[str, pa.Table], expected: list[tuple[object, ...]], repeats: int
) -> tuple[float, float, float]:
    """(rows a second while it is followed, ms to register it, ms of an answer).

    Raises RuntimeError for a wrong answer.
    """
    engine = _engine()
    engine.register(name, QUERIES[name])
    engine.follow(name)
    sources = [source for source in tpch_rows.DECLARED if source in engine.prepare(QUERIES[name]).sources]
    steps = _steps(engine, sources, rows)
    began = time.perf_counter()
    _bring(engine, sources, steps)
    rate = sum(len(batch) for _, batch in steps) / (time.perf_counter() - began)
    _check(engine, name, expected)
    engine = _engine()
    _bring(engine, sources, steps)
    registered, answered = [], []
    for _ in range(repeats):
        began = time.perf_counter()
        engine.register(name, QUERIES[name])
        registered.append(time.perf_counter() - began)
        began = time.perf_counter()
        engine.view().snapshot(name)
        answered.append(time.perf_counter() - began)
        _check(engine, name, expected)
        engine.unregister(name)
    return rate, 1_000 * median(registered), 1_000 * median(answered)


def _engine() -> Engine:
    engine = Engine(ROOM)
    for sql in tpch_rows.DECLARED.values():
        engine.create(sql)
    return engine


def _steps(engine: Engine, sources: list[str], rows: Mapping[str, pa.Table]) -> list[tuple[str, Batch]]:
    found = []
    for name in sources:
        source = engine.catalogue[name]
        assert isinstance(source, Stream)
        found += [(name, batch) for batch in tpch_rows.batches(source, rows[name])]
    return found


def _bring(engine: Engine, sources: list[str], steps: list[tuple[str, Batch]]) -> None:
    """All rows, and then so much time that they are seen."""
    for name, batch in steps:
        engine.ingest(name, batch, int(batch.timestamp[-1]))
    for name in sources:
        last = engine.position
        position = Position(last.epoch, last.sequence + 1)
        engine.enqueue(Step(position, BEYOND_MS, Heartbeat(SourceName(name))))
        engine.run()


def _check(engine: Engine, name: str, expected: list[tuple[object, ...]]) -> None:
    columns = [column.to_pylist() for column in engine.view().snapshot(name).table.columns]
    found = list(zip(*columns, strict=True))
    same = len(found) == len(expected) and all(
        close(mine, other)
        for one, another in zip(found, expected, strict=True)
        for mine, other in zip(one, another, strict=True)
    )
    if not same:
        raise RuntimeError(f"{name} has another answer than DuckDB")


def _in_duckdb(
    database: duckdb.DuckDBPyConnection, sql: str, repeats: int
) -> tuple[float, list[tuple[object, ...]]]:
    seconds = []
    for _ in range(repeats):
        began = time.perf_counter()
        answer = database.sql(sql).fetchall()
        seconds.append(time.perf_counter() - began)
    return 1_000 * median(seconds), answer
