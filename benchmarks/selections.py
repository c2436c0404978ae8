"""Rows a second through standing selections, matches kept: PSoup's workload, in the engine alone.

Four columns of values 0..255; each query has an interval predicate on each column with probability 0.7,
`lo <= column < hi`, whose constants are multiples of 32. Rows come in batches of 8,192 in event time, ten a
millisecond, and each is matched with every query; the bits are kept as long as the rows are retained. Rows
are made before the clock starts, the queries are registered in one step, their texts are no part of the
figure. Counts of sampled queries are checked with numpy afterwards.

The paper (PSoup, VLDB 2002, section 5.2.4) saw the variant that is lazy and shares an index of predicates
take an order of magnitude more rows than the lazy one without an index, the more so the more queries, and
two orders more than the variants that keep answers current.

Beside it, on the same rows and with the counts of every query compared: Esper 9, which hands each match to a
listener, and DuckDB, which runs every query again over each batch. `--no-peers` leaves them out.

Figures: `rows_per_s.q<queries>`, the median over timed stretches; `register_s.q<queries>`, texts included;
`matches_per_row.q<queries>`, `matches_kept_per_s.q<queries>`;
`matches_handed_over_per_s.q<queries>`, as arrays of row and query, matching included, and
`handed_over_rows_per_s.q<queries>`; `spread.q<queries>`, the distance of the
quartiles as a share of the median; `esper_rows_per_s.q<queries>`, `ratio_to_esper.q<queries>`,
`esper_handed_over_per_s.q<queries>` (matches), `esper_deploy_s.q<queries>`,
`esper_bytes_per_query.q<queries>` (heap); `duckdb_rows_per_s.q<queries>`, `ratio_to_duckdb.q<queries>`.
"""

import argparse
import gc
import sys
import time
from contextlib import nullcontext

import numpy as np

from benchmarks import psoup
from benchmarks.handed_over import hand_over
from benchmarks.numbers import Numbers
from benchmarks.peers.beside import Peers
from benchmarks.psoup import ROWS_PER_MS, Bounds, Rows, make_bounds, make_rows
from benchmarks.report import Figure, Plot, Report, Series
from benchmarks.timing import Timing
from engine.engine import Engine
from engine.model.batch import BATCH_ROWS_MAX

STRETCHES = 5
CHECKED_QUERIES = 40


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options besides those that every benchmark has."""
    add_sizes(parser, queries=[1_000, 10_000], rows=2_000_000)
    parser.add_argument(
        "--peers", action=argparse.BooleanOptionalAction, default=True, help="Esper and DuckDB beside it"
    )
    parser.add_argument(
        "--peer-seconds", type=float, default=2.0, help="of a pass of Esper (default: %(default)s)"
    )


def add_sizes(parser: argparse.ArgumentParser, queries: list[int], rows: int) -> None:
    """How much of what: the options that the benchmarks of selections share."""
    parser.add_argument(
        "--queries",
        action=Numbers,
        nargs="+",
        default=queries,
        help="how many stand (default: %(default)s)",
    )
    parser.add_argument("--rows", type=int, default=rows, help="timed rows (default: %(default)s)")
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
    peers = Peers(options.peer_seconds)
    with peers.running() if options.peers else nullcontext():
        for queries in options.queries:
            bounds = make_bounds(rng, queries)
            engine = psoup.create(options.retain // ROWS_PER_MS)
            timing, register_s = measure(engine, rows, bounds, warm_up, stretch)
            matches = check(engine, rows, bounds)
            rates.append(timing.per_s(stretch))
            figures[f"rows_per_s.q{queries}"] = rates[-1]
            figures[f"register_s.q{queries}"] = register_s
            figures[f"matches_per_row.q{queries}"] = matches
            figures[f"matches_kept_per_s.q{queries}"] = matches * rates[-1]
            figures[f"spread.q{queries}"] = timing.spread
            figures |= hand_over(engine, rows, bounds, matches)
            del engine
            print(f"{queries:,} queries: {rates[-1]:,.0f} rows/s", file=sys.stderr)
            if options.peers:
                figures |= peers.measure(rows, bounds, rates[-1])
    curves = [Series("Tureen", options.queries, rates), *peers.series()]
    return Report(figures, Plot("standing queries", "rows/s", curves, log=True))


def measure(engine: Engine, rows: Rows, bounds: Bounds, warm_up: int, stretch: int) -> tuple[Timing, float]:
    """(time of each stretch, seconds to register) of a fresh engine."""
    began = time.perf_counter()
    psoup.register(engine, map(psoup.text, bounds))
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
    return Timing(tuple(seconds)), register_s


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
        expected = values[:, psoup.matches(bounds[place], values)]
        answer = view.snapshot(f"q{place}").table
        if not all(np.array_equal(answer[i].to_numpy(), line) for i, line in enumerate(expected)):
            raise RuntimeError(f"query {place} has {answer.num_rows} rows, numpy {expected.shape[1]}")
        found += answer.num_rows
    return found / len(places) * len(bounds) / values.shape[1]
