"""What summaries cost queries that have no use for them: the join benchmark with both streams summarised.

The workload of `join`: two streams, rows of 8,192 in turn, keys uniform over 1,000 values, standing queries
that join the last 10,000 rows of each with intervals on both. Two engines get the same rows and the same
queries, one of them with a summary of the key of each stream. They are timed in turn, stretch by stretch,
and the ratio is the median over pairs of stretches. Their answers are compared with numpy, and the zones of
the summaries with the rows.

What must hold: at least 0.9 of the speed without, at 1,000 queries. Zones cost something each, whatever rows
they have: with `--granularity 10` they have 1,250 rows.

Figures: `rows_per_s.plain`, `rows_per_s.summarised`, rows of both streams; `ratio_to_plain`; `spread`, the
distance of the quartiles of the ratios as a share of it; `summary_ns`, what a row takes longer;
`summary_bytes`, of both summaries.
"""

from __future__ import annotations

import argparse
import gc
import time
from statistics import median, quantiles

import numpy as np

from benchmarks import joined, psoup
from benchmarks.joined import Rows
from benchmarks.psoup import Bounds
from benchmarks.report import Figure, Report
from engine.engine import Engine
from engine.model.batch import BATCH_ROWS_MAX
from engine.model.limits import Limits

WAYS = 2
KEYS = 1_000
CHECKED_QUERIES = 20
ROOM = Limits(snapshot_rows_max=100_000_000)
SUMMARY_SQL = "CREATE SUMMARY s{place}_k ON s{place} (k) WITH GRANULARITY {t1} SECONDS AND COLLAPSE(4, 3)"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options besides those that every benchmark has."""
    parser.add_argument("--queries", type=int, default=1_000, help="how many stand (default: %(default)s)")
    parser.add_argument("--window", type=int, default=10_000, help="rows of each (default: %(default)s)")
    parser.add_argument("--rows", type=int, default=2_000_000, help="timed rows (default: %(default)s)")
    parser.add_argument(
        "--granularity",
        type=int,
        default=60,
        help="of the summaries, seconds of event time, in which a stream has 500 rows (default: %(default)s)",
    )
    parser.add_argument("--stretches", type=int, default=15, help="pairs of them (default: %(default)s)")


def run(options: argparse.Namespace) -> Report:
    """Both engines in turn."""
    rng = np.random.default_rng(options.seed)
    size = WAYS * BATCH_ROWS_MAX
    steps = max(1, options.rows // (options.stretches * size))
    warm_up = -(-2 * WAYS * options.window // size)
    rows = joined.make_rows(rng, size * (warm_up + steps * options.stretches), WAYS, KEYS)
    bounds = joined.make_bounds(rng, options.queries, WAYS)
    engines = {"plain": joined.create(WAYS, ROOM), "summarised": joined.create(WAYS, ROOM)}
    for place in range(WAYS):
        engines["summarised"].create(SUMMARY_SQL.format(place=place, t1=options.granularity))
    batches = rows.steps()
    for engine in engines.values():
        psoup.register(engine, (joined.text(one, options.window) for one in bounds))
        joined.ingest(engine, batches[:warm_up], len(rows))
    seconds: dict[str, list[float]] = {name: [] for name in engines}
    gc.collect()
    for number in range(options.stretches):
        first = warm_up + number * steps
        turn = list(engines)[:: -1 if number % 2 else 1]
        for name in turn:
            began = time.process_time()
            joined.ingest(engines[name], batches[first : first + steps], len(rows))
            seconds[name].append(time.process_time() - began)
    ratios = [plain / other for plain, other in zip(seconds["plain"], seconds["summarised"], strict=True)]
    for engine in engines.values():
        joined.close(engine, rows)
        check(engine, rows, bounds, options.window)
    ratio = median(ratios)
    low, _, high = quantiles(ratios, n=4, method="inclusive") if len(ratios) > 1 else (ratio,) * 3
    figures: dict[str, Figure] = {
        **{f"rows_per_s.{name}": size * steps / median(taken) for name, taken in seconds.items()},
        "ratio_to_plain": ratio,
        "spread": (high - low) / ratio,
        "summary_ns": 1e9 * (median(seconds["summarised"]) - median(seconds["plain"])) / (size * steps),
        "summary_bytes": sum(
            summary.nbytes
            for source in engines["summarised"]._sources.values()
            for summary in source.summarised.at_work.values()
        ),
    }
    verdict = "holds" if ratio >= 0.9 else "does not hold"
    print(f"{verdict}: with summaries at least 0.9 of the speed without: {ratio:.3f}")
    return Report(figures)


def check(engine: Engine, rows: Rows, bounds: Bounds, window: int) -> None:
    """Raises RuntimeError unless sampled answers have as many rows as numpy finds."""
    view = engine.view()
    for place in range(0, len(bounds), max(1, len(bounds) // CHECKED_QUERIES)):
        found = view.snapshot(f"q{place}").table.num_rows
        expected = joined.held(rows, bounds[place], window)
        if found != expected:
            raise RuntimeError(f"query {place} has {found} rows, numpy {expected}")
