"""Bytes that a standing query costs, and bytes that a retained row costs besides its columns.

Both are slopes between a smaller and a larger number, so that what is paid once (caches of bounded size,
kernels, Python) is no part of them. Queries: PSoup's workload, registered in steps of 5,000, a batch of rows
matched with them; all objects and arrays that the engine holds count, but for the queries' texts and the
words of bits, which are the grouped filters' shared bitmaps and the rows' matches. Rows: each satisfies 1% of
1,000 queries `a >= x AND a < x + 100` over 10,000 uniform values, so ten; the process's resident memory
counts, but for the columns (four of 4 bytes and a timestamp of 8): partition, offset and matches are what
remains.

In a broker: dense queries of the same workload, their constants any of 0..256, are registered over HTTP while
some rows are there, and the worker's own memory (USS) counts, texts and bits and all; again a slope, from a
fifth of them to all. `--no-broker` leaves it out.

Figures: `bytes_per_query`, `bytes_per_query.broker`, `bytes_per_row`, and what was taken off:
`text_bytes_per_query`, `bitmap_bytes_per_query`, `column_bytes_per_row`.
"""

import argparse
import sys
import time

import numpy as np

from benchmarks import psoup
from benchmarks.psoup import COLUMNS, ROWS_PER_MS, Rows
from benchmarks.report import Figure, Report
from benchmarks.resident import held_by, resident_bytes
from benchmarks.served import await_entered, create_stream, load, register, serving, worker
from engine.model.batch import BATCH_ROWS_MAX
from engine.model.step import Register, Registration

STEP = 5_000
VALUES = 10_000
SELECTED = VALUES // 100
BROKER_ROWS = 200
SETTLE_S = 3.0
COLUMN_BYTES = 4 * len(COLUMNS) + 8


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options besides those that every benchmark has."""
    parser.add_argument(
        "--queries", type=int, default=100_000, help="the larger number (default: %(default)s)"
    )
    parser.add_argument(
        "--rows", type=int, default=4_000_000, help="the larger number (default: %(default)s)"
    )
    parser.add_argument(
        "--broker", action=argparse.BooleanOptionalAction, default=True, help="in a broker too"
    )
    parser.add_argument(
        "--standing", type=int, default=1_000, help="queries over the rows (default: %(default)s)"
    )


def run(options: argparse.Namespace) -> Report:
    """Rows in one engine, while the process is small, then queries in another."""
    rng = np.random.default_rng(options.seed)
    rows = of_rows(rng, options.rows, options.standing)
    figures = of_queries(rng, options.queries) | rows
    if options.broker:
        figures |= in_broker(rng, options.queries)
    return Report(figures)


def of_queries(rng: np.random.Generator, queries: int) -> dict[str, Figure]:
    """The slope from a fifth of the queries to all of them."""
    texts = [psoup.text(one) for one in psoup.make_bounds(rng, queries)]
    rows = psoup.make_rows(rng, 3 * ROWS_PER_MS)
    engine = psoup.create(1)
    held = []
    fewer = queries // 5
    for turn, (first, stop) in enumerate(((0, fewer), (fewer, queries))):
        for begin in range(first, stop, STEP):
            named = enumerate(texts[begin : min(begin + STEP, stop)], begin)
            psoup.apply(engine, Register(tuple(Registration(f"q{n}", sql) for n, sql in named)))
        ten = rows.batch(turn * ROWS_PER_MS, (turn + 1) * ROWS_PER_MS, turn * ROWS_PER_MS)
        engine.ingest("psoup", ten, int(rows.timestamp[-1]))
        held.append(held_by(engine, texts))
    more = queries - fewer
    return {
        "bytes_per_query": (held[1].plain - held[0].plain) / more,
        "text_bytes_per_query": sum(map(sys.getsizeof, texts)) / queries,
        "bitmap_bytes_per_query": (held[1].bits - held[0].bits) / more,
    }


def in_broker(rng: np.random.Generator, queries: int) -> dict[str, Figure]:
    """Bytes of a broker's worker per query: the slope from a fifth of the queries to all of them."""
    texts = [psoup.text(one, "a, b") for one in psoup.make_bounds(rng, queries, grid=1)]
    fewer, held, rows = queries // 5, [], 0
    with serving() as (client, kafka):
        create_stream(client)
        process = worker(client)
        for first, stop in ((0, fewer), (fewer, queries)):
            for begin in range(first, stop, STEP):
                register(client, texts[begin : min(begin + STEP, stop)])
            load(kafka, rng.integers(0, 256, (len(COLUMNS), BROKER_ROWS)), rows)
            rows += BROKER_ROWS
            await_entered(client, rows)
            time.sleep(SETTLE_S)
            held.append(process.memory_full_info().uss)
    return {"bytes_per_query.broker": (held[1] - held[0]) / (queries - fewer)}


def of_rows(rng: np.random.Generator, rows: int, standing: int) -> dict[str, Figure]:
    """The slope from a fifth of the rows to all of them."""
    engine = psoup.create(rows)
    starts = rng.integers(0, VALUES - SELECTED, standing).tolist()
    psoup.register(engine, (f"SELECT a, b FROM psoup WHERE a >= {x} AND a < {x + SELECTED}" for x in starts))
    steps = rows // BATCH_ROWS_MAX
    fewer = steps // 5
    before = resident_bytes()
    for step in range(steps):
        if step == fewer:
            before = resident_bytes()
        timestamp = np.arange(step * BATCH_ROWS_MAX, (step + 1) * BATCH_ROWS_MAX) // ROWS_PER_MS
        values = rng.integers(0, VALUES, (len(COLUMNS), BATCH_ROWS_MAX), np.int32)
        batch = Rows(values, timestamp).batch(0, BATCH_ROWS_MAX, step * BATCH_ROWS_MAX)
        engine.ingest("psoup", batch, int(timestamp[-1]))
    del batch, values, timestamp
    grown = resident_bytes() - before
    bytes_per_row = grown / ((steps - fewer) * BATCH_ROWS_MAX)
    source = engine.view().sources()[0]
    assert source.rows >= steps * BATCH_ROWS_MAX - ROWS_PER_MS
    return {"bytes_per_row": bytes_per_row - COLUMN_BYTES, "column_bytes_per_row": COLUMN_BYTES}
