"""PSoup's figure 9: sustained data rate against the number of queries, lazy and eager, shared and unshared.

Queries with one to four intervals over a sliding window of 1,000 rows, one row a millisecond, as many
retained. Shared: one engine, whose grouped filters index the predicates of all. Unshared: an engine for each
query, so that each predicate is evaluated alone (and each engine keeps the rows for itself). Rows come in
batches of 1,000, so that the window is new after each, and a view is taken after each, as a broker does, in
which the answers of eager queries are current. The rate is that of the middle batch of those that `--budget`
allows. The number of rows in every answer is compared with numpy at the end.

In the paper PSoup-P with the index takes ten times the rows of PSoup-P without it, the more so the more
queries, and a hundred times those of both PSoup-C, for which it hardly matters whether predicates are
indexed: keeping answers current costs more than finding out who wants a row.

Here it agrees that PSoup-P with the index is ahead of all others, by more the more queries there are, by two
orders or more of both PSoup-C, and that for PSoup-C the index matters little, a factor of one to eight. It
does not agree that PSoup-P without the index is an order ahead of PSoup-C: an engine for each query pays for
its rows and its steps what it saves on answers. And where the paper's fastest line falls with the queries,
this one is nearly flat to a thousand.

Figures: `rows_per_s.<lazy or eager>.<shared or unshared>.q<queries>`.
"""

import argparse
import sys

import numpy as np

from benchmarks import psoup
from benchmarks.numbers import Numbers
from benchmarks.paper import WARM, intervals, sustained
from benchmarks.psoup import Bounds, Rows
from benchmarks.report import Figure, Plot, Report, Series
from engine.engine import Engine

FACTORS_MAX = 4
UNSHARED_MAX = 1_000
"""Engines of their own: more take more memory than they tell."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options besides those that every benchmark has."""
    parser.add_argument(
        "--queries",
        action=Numbers,
        nargs="+",
        default=[1, 4, 16, 64, 256, 1_024],
        help="how many stand (default: %(default)s)",
    )
    parser.add_argument("--window", type=int, default=1_000, help="its rows (default: %(default)s)")
    parser.add_argument("--batches", type=int, default=60, help="timed, at most (default: %(default)s)")
    parser.add_argument("--budget", type=float, default=5.0, help="seconds a point (default: %(default)s)")


def run(options: argparse.Namespace) -> Report:
    """Each of the four over all numbers of queries."""
    rng = np.random.default_rng(options.seed)
    rows = psoup.make_rows(rng, (options.batches + WARM) * options.window, per_ms=1)
    bounds = intervals(rng, rng.integers(1, FACTORS_MAX + 1, max(options.queries)).tolist())
    figures: dict[str, Figure] = {}
    series = []
    for mode, label in (("lazy", "PSoup-P"), ("eager", "PSoup-C")):
        for sharing in ("shared", "unshared"):
            rates = []
            for queries in options.queries:
                some = bounds[:queries]
                rates.append(
                    rate(
                        rows, some, mode, sharing == "shared", window=options.window, budget_s=options.budget
                    )
                )
                figures[f"rows_per_s.{mode}.{sharing}.q{queries}"] = rates[-1]
                print(f"{mode}, {sharing}, {queries:,} queries: {rates[-1]:,.0f} rows/s", file=sys.stderr)
            series.append(Series(f"{label} {sharing}", options.queries, rates))
    return Report(figures, Plot("standing queries", "rows/s", series, log=True))


def rate(rows: Rows, bounds: Bounds, mode: str, shared: bool, *, window: int, budget_s: float) -> float:
    """Rows a second of the middle batch, each as long as the window, until rows or time are over."""
    groups = [bounds] if shared else [bounds[n : n + 1] for n in range(len(bounds))]
    engines = []
    for group in groups:
        engine = psoup.create(window)
        texts = (psoup.text(one, window=f"[RANGE {window - 1} MILLISECONDS]") for one in group)
        psoup.register(engine, texts, {"maintenance": mode})
        engines.append(engine)
    batches = (rows.batch(first, first + window, first) for first in range(0, len(rows), window))
    seconds = sustained(engines, "psoup", batches, budget_s)
    told = int(engines[0].view().sources()[0].next_offsets[0])
    check(engines, rows, bounds, told - 1, window)
    return float(window / seconds)


def check(engines: list[Engine], rows: Rows, bounds: Bounds, stop: int, window: int) -> None:
    """Compare the size of every answer with numpy; NOW is one row behind. Raises RuntimeError."""
    views = [engine.view() for engine in engines]
    values = rows.values[:, stop - window : stop]
    for place, one in enumerate(bounds):
        answer = views[0].snapshot(f"q{place}") if len(views) == 1 else views[place].snapshot("q0")
        if answer.table.num_rows != int(psoup.matches(one, values).sum()):
            raise RuntimeError(f"query {place} has {answer.table.num_rows} rows, numpy another number")
