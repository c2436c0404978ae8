"""PSoup's table 2: response time of selections against the intervals that they conjoin, for three systems.

Queries with an interval on one, two and all four columns, over a window of 32,768 rows and as many retained,
as in `psoup-fig7`.

In the paper NoMat takes 0.39, 0.49 and 0.83 ms, PSoup-P 0.047, 0.024 and 0.013 ms, PSoup-C 0.057, 0.021 and
0.0035 ms: running a query takes longer the more factors it has, while kept answers come the faster the
smaller they are; with one interval PSoup-P is a little faster than PSoup-C, from two on it is slower.

Here it agrees that running a query takes longer with each factor, that PSoup-P becomes faster with smaller
answers, and that both are slower than PSoup-C by one to two orders for selective queries. It does not agree
that NoMat is an order behind PSoup-P: it takes twice as long, since a predicate is evaluated over a column at
a time. Nor do the two PSoups change places: an answer that is kept is a table that is handed over as it is,
whatever its size, where the paper copies tuples from a list.

Figures: `response_ms.<nomat, psoup_p or psoup_c>.i<intervals>`, for one query; `rows_out.i<intervals>`.
"""

import argparse

import numpy as np

from benchmarks import psoup
from benchmarks.numbers import Numbers
from benchmarks.paper import SYSTEMS, curves, intervals, respond, tell
from benchmarks.psoup_fig7 import standing
from benchmarks.report import Figure, Plot, Report
from engine.model.batch import BATCH_ROWS_MAX


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options besides those that every benchmark has."""
    parser.add_argument(
        "--intervals", action=Numbers, nargs="+", default=[1, 2, 4], help="a query (default: %(default)s)"
    )
    parser.add_argument("--window", type=int, default=32_768, help="its rows (default: %(default)s)")
    parser.add_argument("--queries", type=int, default=128, help="of each number (default: %(default)s)")
    parser.add_argument("--times", type=int, default=7, help="sweeps over them (default: %(default)s)")


def run(options: argparse.Namespace) -> Report:
    """Each number of intervals in engines of its own."""
    rng = np.random.default_rng(options.seed)
    rows = psoup.make_rows(rng, options.window + 2 * BATCH_ROWS_MAX, per_ms=1)
    figures: dict[str, Figure] = {}
    points = {}
    names = [f"w{options.window}q{n}" for n in range(options.queries)]
    for number in options.intervals:
        bounds = intervals(rng, [number] * options.queries)
        engines = {s: standing(rows, options.window, bounds, [options.window], m) for s, m in SYSTEMS.items()}
        points[number] = respond(engines, names, options.times)
        tell(f"{number} intervals", points[number])
        figures |= {f"response_ms.{system}.i{number}": ms for system, ms in points[number].items()}
        view = engines["psoup_p"].view()
        figures[f"rows_out.i{number}"] = float(np.mean([view.snapshot(n).table.num_rows for n in names]))
    return Report(figures, Plot("intervals of a query", "ms a query", curves(points), log=True))
