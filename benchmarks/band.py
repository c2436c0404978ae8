"""Fetching joins by order: bands, and ASOF.

Two streams of `rows` rows each, whose k is uniform below a million; the joins are not kept, so each answer is
worked out from the windows when it is asked for. DuckDB holds the same rows in two tables and runs the same
SELECT to Arrow, with all cores. Before each repeat one more row comes to each stream, so that no answer was
made before; a figure is the median. Answers are compared first.

| case | the query |
|---|---|
| `band` | pairs with `|k - k| <= d`, as many as rows of a stream |
| `hundredth` | a band that a hundredth of all pairs pass, counted |
| `pairs` | the same, its pairs given out |
| `filtered` | the band over a hundredth of the left rows and half of the right ones |
| `asof` | the latest right row that is not above each left one |

Figures: `ms.<case>`, `duckdb_ms.<case>`, `ratio_to_duckdb.<case>` (how many times faster the engine is),
`rows_out.<case>`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from itertools import count

import duckdb
import numpy as np
import pyarrow as pa

from benchmarks.joined import Rows, close, create, ingest
from benchmarks.report import Figure, Report
from benchmarks.timing import repeat
from engine.engine import Engine
from engine.model.limits import Limits

KEYS = 1_000_000
SHARE = 100


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options besides those that every benchmark has."""
    parser.add_argument("--rows", type=int, default=10_000, help="of each stream (default: %(default)s)")
    parser.add_argument("--times", type=int, default=21, help="repeats of each (default: %(default)s)")


def cases(rows: int) -> dict[str, str]:
    """The texts, with @0 and @1 for what is read."""
    near, far = KEYS // (2 * rows), KEYS // (2 * SHARE)
    band = "FROM @0 AS a JOIN @1 AS b ON b.k BETWEEN a.k - {0} AND a.k + {0}"
    return {
        "band": f"SELECT a.k, b.k AS w {band.format(near)}",
        "hundredth": f"SELECT COUNT(*) AS n {band.format(far)}",
        "pairs": f"SELECT a.k, b.k AS w {band.format(far)}",
        "filtered": f"SELECT a.k, b.k AS w {band.format(near)} WHERE a.v < 3 AND b.v < 128",
        "asof": "SELECT a.k, b.k AS w FROM @0 AS a ASOF JOIN @1 AS b ON a.k >= b.k",
    }


def run(options: argparse.Namespace) -> Report:
    """Fill an engine and two tables with the same rows, then ask both."""
    n = options.rows
    rng = np.random.default_rng(options.seed)
    rows = Rows(2, rng.integers(0, KEYS, 2 * n, np.int32), rng.integers(0, 256, 2 * n, np.int32))
    texts = cases(n)
    engine = filled(rows, texts)
    database = duckdb.connect()
    for place in range(2):
        part = pa.table({"k": rows.k[place::2], "v": rows.v[place::2]})
        database.register("coming", part)
        database.execute(f"CREATE TABLE s{place} AS SELECT * FROM coming")
        database.unregister("coming")
    figures: dict[str, Figure] = {}
    instants = count(len(rows) + 2, 2)
    other_texts = {name: text.replace("@0", "s0").replace("@1", "s1") for name, text in texts.items()}
    for name, text in other_texts.items():
        compare(name, engine.view().snapshot(name).table, database.sql(text).to_arrow_table())
    for name, text in other_texts.items():

        def ask(name: str = name) -> pa.Table:
            return engine.view().snapshot(name).table

        def more() -> None:
            again(engine, rows, next(instants))

        mine = repeat(ask, times=options.times, prepare=more)
        other = repeat(lambda text=text: database.sql(text).to_arrow_table(), times=options.times)
        figures |= {
            f"ms.{name}": mine.median_ms,
            f"duckdb_ms.{name}": other.median_ms,
            f"ratio_to_duckdb.{name}": other.median_s / mine.median_s,
            f"rows_out.{name}": ask().num_rows,
        }
        print(f"{name}: {mine.median_ms:.2f} ms, DuckDB {other.median_ms:.2f} ms", file=sys.stderr)
    return Report(figures)


def filled(rows: Rows, texts: Mapping[str, str]) -> Engine:
    """An engine with the queries, whose windows hold the rows."""
    engine = create(2, Limits(join_candidates_max=2**40, intermediate_rows_max=2**31))
    for name, text in texts.items():
        for place in range(2):
            text = text.replace(f"@{place} AS", f"s{place} [ROWS {len(rows) // 2}] AS")
        engine.register(name, text)
    ingest(engine, rows.steps(), 1)
    close(engine, rows)
    return engine


def again(engine: Engine, rows: Rows, instant: int) -> None:
    """Rows that are the same as the oldest of the windows come to both streams, which push these out."""
    coming = Rows(2, np.resize(rows.k, instant + 2), np.resize(rows.v, instant + 2))
    ingest(engine, [[coming.batch(side, instant, instant + 2) for side in range(2)]], instant)


def compare(name: str, mine: pa.Table, other: pa.Table) -> None:
    """Raises RuntimeError where they are not the same rows, in any order."""
    order = [(column, "ascending") for column in mine.column_names]
    if not mine.sort_by(order).equals(other.cast(mine.schema).sort_by(order)):
        raise RuntimeError(f"{name}: {mine.num_rows} rows, DuckDB {other.num_rows}, or not the same")
