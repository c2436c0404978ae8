"""PSoup's figure 9 for joins: sustained data rate against the number of queries, shared and unshared.

As `psoup-fig9-selections`, over two streams: queries join them on a key of 100 values, over the last 1,000
rows of each, with an interval on each stream with probability 0.7. Shared: one engine, whose queries share
indexes, probes and the combinations that are kept; and the same with composites off, when only the indexes
are kept and answers are probed for. Unshared: an engine for each query. Rows come in batches of 1,000 to each
stream, so that the windows are new after each, and a view is taken after each, in which the answers of eager
queries are current. The rate, of rows of both streams, is that of the middle batch of those that `--budget`
allows. The number of rows in every answer is compared with numpy at the end.

The paper ran its figure 9 with selections alone: there the lazy variant that shares is an order ahead of the
lazy one that does not, the more so the more queries, and two orders ahead of both that keep answers current.

Here joins show the same: lazy and shared hardly depends on the number of queries, for they share the probe
whatever their constants; the others fall with it. Without composites the lazy rate is higher still, since
nothing but the indexes is written.

Figures: `rows_per_s.<lazy or eager>.<shared, probing or unshared>.q<queries>`.
"""

import argparse
import sys
import time
from statistics import median

import numpy as np

from benchmarks import joined, psoup
from benchmarks.joined import Rows
from benchmarks.numbers import Numbers
from benchmarks.psoup import Bounds
from benchmarks.report import Figure, Plot, Report, Series
from engine.engine import Engine

KEYS = 100
EAGER_MAX = 256
"""Each batch makes 10,000 combinations a query anew: more take minutes."""


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
    parser.add_argument("--batches", type=int, default=40, help="timed, at most (default: %(default)s)")
    parser.add_argument("--budget", type=float, default=3.0, help="seconds a point (default: %(default)s)")


def run(options: argparse.Namespace) -> Report:
    """Each of the five over all numbers of queries."""
    rng = np.random.default_rng(options.seed)
    rows = joined.make_rows(rng, 2 * (options.batches + 4) * options.window, 2, KEYS)
    bounds = joined.make_bounds(rng, max(options.queries), 2)
    figures: dict[str, Figure] = {}
    series = []
    for mode, sharing in (
        ("lazy", "shared"),
        ("lazy", "probing"),
        ("lazy", "unshared"),
        ("eager", "shared"),
        ("eager", "unshared"),
    ):
        numbers = [n for n in options.queries if mode == "lazy" or n <= EAGER_MAX]
        numbers = [n for n in numbers if sharing != "unshared" or n <= EAGER_MAX]
        rates = []
        for queries in numbers:
            rates.append(rate(rows, bounds[:queries], mode, sharing, options))
            figures[f"rows_per_s.{mode}.{sharing}.q{queries}"] = rates[-1]
            print(f"{mode}, {sharing}, {queries:,} queries: {rates[-1]:,.0f} rows/s", file=sys.stderr)
        label = "PSoup-P" if mode == "lazy" else "PSoup-C"
        series.append(Series(f"{label} {sharing}", numbers, rates))
    return Report(figures, Plot("standing queries", "rows/s", series, log=True))


def rate(rows: Rows, bounds: Bounds, mode: str, sharing: str, options: argparse.Namespace) -> float:
    """Rows a second of the middle batch."""
    window = options.window
    groups = [bounds[n : n + 1] for n in range(len(bounds))] if sharing == "unshared" else [bounds]
    engines: list[Engine] = []
    for group in groups:
        engine = joined.create(2)
        psoup.register(engine, (joined.text(one, window) for one in group), {"maintenance": mode})
        if sharing == "probing":
            for module in [name for name in engine.stats() if name.startswith("join/")]:
                engine.set_attribute(module, "composites", "off")
        engines.append(engine)
    seconds: list[float] = []
    sent = 0
    for number in range(options.batches + 3):
        step = [rows.batch(place, sent, sent + 2 * window) for place in range(2)]
        sent += 2 * window
        began = time.perf_counter()
        for engine in engines:
            joined.ingest(engine, [step], len(rows))
            engine.view()
        if number >= 3:  # the windows are full
            seconds.append(time.perf_counter() - began)
            if sum(seconds) > options.budget:
                break
    seen = rows.take(np.arange(sent))
    for engine in engines:
        joined.close(engine, seen)
    check(engines, seen, bounds, window)
    return 2 * window / median(seconds)


def check(engines: list[Engine], rows: Rows, bounds: Bounds, window: int) -> None:
    """Compare the size of every answer with numpy. Raises RuntimeError."""
    views = [engine.view() for engine in engines]
    for place, one in enumerate(bounds):
        answer = views[0].snapshot(f"q{place}") if len(views) == 1 else views[place].snapshot("q0")
        expected = joined.held(rows, one, window)
        if answer.table.num_rows != expected:
            raise RuntimeError(f"query {place} has {answer.table.num_rows} rows, numpy {expected}")
