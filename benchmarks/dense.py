"""The worst batch while 100,000 queries stand that are dense: each has a bit for every row.

PSoup's workload, its constants multiples of 16, so that nearly all predicates differ. Queries are registered
in steps of 5,000; then batches of `--batch` rows come, as many as fill three segments of 65,536 rows: the
first compiles filters, some begin on fresh memory, some seal a segment, and from the second on rows
leave retention. Nothing is left out but `--warm` batches before the queries, which load the kernels. Counts
of the rows that satisfy some queries are compared with numpy.

Figures, n queries: `worst_batch_ms.dense<n>`, `median_batch_ms.dense<n>`, `rows_per_s.dense<n>`.
"""

import argparse
import sys
import time
from statistics import median

import numpy as np

from benchmarks import psoup
from benchmarks.psoup import ROWS_PER_MS
from benchmarks.report import Figure, Report
from engine.model.step import Register, Registration
from engine.stems.segment import SEGMENT_ROWS

STEP = 5_000
SEGMENTS = 3
COUNTED = 5


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options besides those that every benchmark has."""
    parser.add_argument("--queries", type=int, default=100_000, help="(default: %(default)s)")
    parser.add_argument("--batch", type=int, default=1_024, help="rows of a batch (default: %(default)s)")
    parser.add_argument(
        "--retain", type=int, default=SEGMENT_ROWS, help="rows that are retained (default: %(default)s)"
    )
    parser.add_argument("--warm", type=int, default=3, help="batches before (default: %(default)s)")


def run(options: argparse.Namespace) -> Report:
    """One engine."""
    rng = np.random.default_rng(options.seed)
    bounds = psoup.make_bounds(rng, options.queries, grid=16)
    batches = options.warm + SEGMENTS * -(-SEGMENT_ROWS // options.batch)
    rows = psoup.make_rows(rng, batches * options.batch)
    engine = psoup.create(options.retain // ROWS_PER_MS)
    clock_ms = int(rows.timestamp[-1])
    texts = [psoup.text(one, "COUNT(*)" if n < COUNTED else "a, b") for n, one in enumerate(bounds)]
    psoup.register(engine, texts[:COUNTED])
    took_ms: list[float] = []
    for number in range(batches):
        if number == options.warm:
            for first in range(COUNTED, len(texts), STEP):
                named = enumerate(texts[first : first + STEP], first)
                psoup.apply(engine, Register(tuple(Registration(f"q{n}", sql) for n, sql in named)))
        first = number * options.batch
        batch = rows.batch(first, first + options.batch, first)
        began = time.perf_counter()
        engine.ingest("psoup", batch, clock_ms)
        took_ms.append((time.perf_counter() - began) * 1e3)
    measured = took_ms[options.warm :]
    _check(engine, bounds, rows)
    facts = engine.stats()["query-stem/psoup"]
    print(f"{facts['dense']:,} dense predicates, worst batch {max(measured):.1f} ms", file=sys.stderr)
    name = f"dense{options.queries}"
    figures: dict[str, Figure] = {
        f"worst_batch_ms.{name}": max(measured),
        f"median_batch_ms.{name}": median(measured),
        f"rows_per_s.{name}": options.batch * len(measured) / sum(measured) * 1e3,
    }
    return Report(figures)


def _check(engine: psoup.Engine, bounds: psoup.Bounds, rows: psoup.Rows) -> None:
    view = engine.view()
    (source,) = view.sources()
    assert source.now_ms is not None
    assert source.retained_from_ms is not None
    there = (rows.timestamp >= source.retained_from_ms) & (rows.timestamp <= source.now_ms)
    for number in range(min(COUNTED, len(bounds))):
        counted = view.snapshot(f"q{number}").table.column(0)[0].as_py()
        expected = int((psoup.matches(bounds[number], rows.values) & there).sum())
        if counted != expected:
            raise RuntimeError(f"q{number} counts {counted} rows, numpy {expected}")
