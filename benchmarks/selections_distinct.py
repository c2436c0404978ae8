"""Rows a second through standing selections of which every one has constants of its own.

The workload of `selections`, but for the constants: a predicate on a column is `lo <= column < hi` with both
ends drawn from 10,000 values (the columns' domain is as wide), so that 10,000 queries name about that many
distinct constants on each column and no two queries are alike. An index that keeps a bitmap for every piece
of a column's domain needs 12.5 MB a column here; see how far it falls behind `selections`. Rows come in
batches of 8,192 in event time, ten a millisecond; matches are kept as bits as long as the rows are. Counts of
sampled queries are checked with numpy afterwards.

Figures: `rows_per_s.q<queries>`, the median over timed stretches; `matches_per_row.q<queries>`;
`distinct_per_column.q<queries>`; `spread.q<queries>`, the distance of the quartiles as a share of the median.
"""

import argparse
import sys

import numpy as np

from benchmarks import psoup
from benchmarks.psoup import Bounds
from benchmarks.report import Figure, Plot, Report, Series
from benchmarks.selections import STRETCHES, add_sizes, check, measure
from engine.model.batch import BATCH_ROWS_MAX

VALUES = 10_000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options besides those that every benchmark has."""
    add_sizes(parser, queries=[1_000, 10_000], rows=1_000_000)


def run(options: argparse.Namespace) -> Report:
    """Measure each number of queries in an engine of its own."""
    rng = np.random.default_rng(options.seed)
    stretch = -(-options.rows // (STRETCHES * BATCH_ROWS_MAX)) * BATCH_ROWS_MAX
    warm_up = -(-2 * options.retain // BATCH_ROWS_MAX) * BATCH_ROWS_MAX
    n = warm_up + STRETCHES * stretch
    values = rng.integers(0, VALUES, (len(psoup.COLUMNS), n), np.int32)
    rows = psoup.Rows(values, np.arange(n, dtype=np.int64) // psoup.ROWS_PER_MS)
    figures: dict[str, Figure] = {}
    rates = []
    for queries in options.queries:
        bounds = make_bounds(rng, queries)
        engine = psoup.create(options.retain // psoup.ROWS_PER_MS)
        timing, _ = measure(engine, rows, bounds, warm_up, stretch)
        rates.append(timing.per_s(stretch))
        figures[f"rows_per_s.q{queries}"] = rates[-1]
        figures[f"matches_per_row.q{queries}"] = check(engine, rows, bounds)
        figures[f"distinct_per_column.q{queries}"] = float(
            np.mean([len(np.unique(bounds[:, column])) for column in range(bounds.shape[1])])
        )
        figures[f"spread.q{queries}"] = timing.spread
        print(f"{queries:,} queries: {rates[-1]:,.0f} rows/s", file=sys.stderr)
    return Report(
        figures, Plot("standing queries", "rows/s", [Series("Tureen", options.queries, rates)], log=True)
    )


def make_bounds(rng: np.random.Generator, queries: int) -> Bounds:
    """int64[queries, 4, 2]: lo <= value < hi, from all values; three in ten span the whole domain."""
    ends = rng.integers(0, VALUES, (queries, len(psoup.COLUMNS), 2))
    bounds = np.sort(ends, axis=2)
    bounds[:, :, 1] += 1
    bounds[rng.random((queries, len(psoup.COLUMNS))) >= 0.7] = (0, VALUES)
    return bounds
