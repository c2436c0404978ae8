"""An answer over a period, beside asking for the answer at each of its instants, and beside DuckDB.

A window of 10 s over a stream of one row a millisecond, 10,000 groups. Three queries: a 1% selection, the
groups, and a self-join on the group. A period of so many instants (ms) is asked once; the baseline asks for
the answer at some of its instants and counts that for all. DuckDB has all rows in a table and works out the
same rows of the selection and the join, with both columns, by comparing intervals; it has no such form for
groups. Rows of the selection and the join are compared with DuckDB's, the groups with answers at instants.

Figures: `ms.<query>`, `ratio_to_instants.<query>` (how many times faster than all instants one by one),
`rows.<query>`, and `ratio_to_duckdb.selection`, `.join`. Medians; a ratio is that of medians in one run.
"""

import argparse
from statistics import median

import duckdb
import numpy as np
import pyarrow as pa

from benchmarks.report import Report
from benchmarks.timing import repeat
from engine.engine import Engine
from engine.model.batch import BATCH_ROWS_MAX, Batch
from engine.model.period import Period
from engine.model.source import Stream

GROUPS = 10_000
RANGE_MS = 10_000
CREATE = (
    "CREATE STREAM s (id BIGINT, g BIGINT, v BIGINT, ts TIMESTAMP NOT NULL) "
    "WITH (topic = 's', timestamp = 'ts', future_max = '10 days') RETAIN 10 DAYS"
)
WINDOW = f"[RANGE {RANGE_MS} MILLISECONDS]"
QUERIES = {
    "selection": f"SELECT id, g FROM s {WINDOW} WHERE v < 10",
    "groups": f"SELECT g, COUNT(*) AS n, SUM(v) AS total FROM s {WINDOW} GROUP BY g",
    "join": f"SELECT a.id, b.id AS other FROM s {WINDOW} a JOIN s {WINDOW} b ON a.g = b.g WHERE a.v < 100",
}
INSTANTS_ASKED = 9


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options besides those that every benchmark has."""
    parser.add_argument("--rows", type=int, default=1_000_000, help="retained (default: %(default)s)")
    parser.add_argument("--instants", type=int, default=10_000, help="of the period (default: %(default)s)")
    parser.add_argument("--times", type=int, default=7, help="repeats (default: %(default)s)")


def run(options: argparse.Namespace) -> Report:
    """Ask each query over the period, at some of its instants, and DuckDB."""
    table = make_table(np.random.default_rng(options.seed), options.rows)
    engine = filled(table)
    from_ms = options.rows // 2
    period = Period(from_ms, from_ms + options.instants)
    asked = np.linspace(from_ms, from_ms + options.instants - 1, INSTANTS_ASKED).astype(int).tolist()
    view = engine.view()
    figures: dict[str, float | int] = {}
    with duckdb.connect() as database:
        database.register("arriving", table)
        database.execute("CREATE TABLE s AS SELECT id, g, v, epoch_ms(ts) AS ts FROM arriving")
        for name in QUERIES:
            rows = view.snapshot(name, period, rows_max=10**7).table
            check_instants(rows, {ms: view.snapshot(name, at=ms).table for ms in asked})
            taken = repeat(lambda: view.snapshot(name, period, rows_max=10**7), times=options.times)  # noqa: B023
            alone = [
                repeat(lambda: view.snapshot(name, at=ms), times=3).median_ms  # noqa: B023
                for ms in asked
            ]
            figures[f"ms.{name}"] = taken.median_ms
            figures[f"ratio_to_instants.{name}"] = median(alone) * options.instants / taken.median_ms
            figures[f"rows.{name}"] = rows.num_rows
            if name in BY_DUCKDB:
                text = BY_DUCKDB[name].format(since=period.from_ms, until=period.to_ms)
                check_same(rows, database.sql(text).to_arrow_table())
                other = repeat(lambda: database.sql(text).to_arrow_table(), times=options.times)  # noqa: B023
                figures[f"ratio_to_duckdb.{name}"] = other.median_ms / taken.median_ms
    return Report(figures)


BY_DUCKDB = {
    "selection": "SELECT id, g, greatest(ts, {since}) AS a, "
    f"least(ts + {RANGE_MS + 1}, {{until}}) AS b FROM s WHERE v < 10 "
    f"AND ts < {{until}} AND ts + {RANGE_MS} >= {{since}}",
    "join": "SELECT a.id, b.id AS other, greatest(a.ts, b.ts, {since}) AS a, "
    f"least(least(a.ts, b.ts) + {RANGE_MS + 1}, {{until}}) AS b FROM s a JOIN s b ON a.g = b.g "
    f"WHERE a.v < 100 AND abs(a.ts - b.ts) <= {RANGE_MS} AND greatest(a.ts, b.ts) < {{until}} "
    f"AND least(a.ts, b.ts) + {RANGE_MS} >= {{since}}",
}


def make_table(rng: np.random.Generator, rows: int) -> pa.Table:
    """A row a millisecond."""
    return pa.table(
        {
            "id": np.arange(rows),
            "g": rng.integers(0, GROUPS, rows),
            "v": rng.integers(0, 1_000, rows),
            "ts": pa.array(np.arange(rows), pa.timestamp("ms")),
        }
    )


def filled(table: pa.Table) -> Engine:
    """An engine with the rows and the queries, of which nothing is kept."""
    engine = Engine()
    engine.create(CREATE)
    for name, sql in QUERIES.items():
        engine.register(name, sql)
    stream = engine.catalogue["s"]
    assert isinstance(stream, Stream)
    for first in range(0, table.num_rows, BATCH_ROWS_MAX):
        rows = table.slice(first, BATCH_ROWS_MAX)
        offsets = np.arange(first, first + rows.num_rows)
        engine.ingest(
            "s", Batch.from_arrow(stream.schema, rows, np.zeros(len(offsets)), offsets, offsets), 10**6
        )
    return engine


def check_instants(rows: pa.Table, answers: dict[int, pa.Table]) -> None:
    """Raises RuntimeError unless the rows that are valid at instants are the answers there."""
    begins, ends = (rows.column(place).cast(pa.int64()).to_numpy() for place in (-2, -1))
    names = rows.column_names[:-2]
    for at_ms, answer in answers.items():
        valid = rows.filter(pa.array((begins <= at_ms) & (ends > at_ms))).select(names)
        by = [(name, "ascending") for name in names]
        if not valid.sort_by(by).equals(answer.sort_by(by)):
            raise RuntimeError(f"other rows at {at_ms}")


def check_same(rows: pa.Table, others: pa.Table) -> None:
    """Raises RuntimeError unless DuckDB has the same rows."""
    mine, theirs = (
        sorted(zip(*(one.cast(pa.int64()).to_pylist() for one in table.columns), strict=True))
        for table in (rows, others)
    )
    if mine != theirs:
        raise RuntimeError(f"{len(mine)} rows, DuckDB {len(theirs)}, or not the same")
