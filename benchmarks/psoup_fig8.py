"""PSoup's figure 8: response time of an inequality join against the window, for NoMat, PSoup-P and PSoup-C.

The queries are `r.v op s.v + c` over two streams of values, op one of <, <=, >, >=, with windows of 16 to 512
rows of each; the pairs that are compared grow with their square. What is measured is an answer when it is
asked for: from kept answers, from kept matches, or by running the query. Answers of the three are compared.

In the paper NoMat is about two orders slower than the others, and PSoup-P less than one order slower than
PSoup-C, both far flatter than NoMat.

Here it agrees that NoMat grows with the square of the window, where that outweighs the cost of asking, and
that PSoup-C is ahead by orders: its answers are handed over as they are, so it is flat. It does not agree
about PSoup-P: between inequalities no combinations are kept, and scans without predicates have no matches to
keep either, so that it compares the same pairs as NoMat, column by column, and takes as long.

Figures: `response_ms.<nomat, psoup_p or psoup_c>.w<rows>`, for one query; `pairs.w<rows>`.
"""

import argparse

import numpy as np

from benchmarks import joined, psoup
from benchmarks.joined import Rows
from benchmarks.numbers import Numbers
from benchmarks.paper import SYSTEMS, VALUES, constants, curves, respond, tell
from benchmarks.report import Figure, Plot, Report
from engine.engine import Engine

OPERATORS = ("<", "<=", ">", ">=")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options besides those that every benchmark has."""
    parser.add_argument(
        "--windows",
        action=Numbers,
        nargs="+",
        default=[2**n for n in range(4, 10)],
        help="rows of each side (default: %(default)s)",
    )
    parser.add_argument("--queries", type=int, default=8, help="of each window (default: %(default)s)")
    parser.add_argument("--times", type=int, default=7, help="sweeps over them (default: %(default)s)")


def run(options: argparse.Namespace) -> Report:
    """One engine a system over the same rows."""
    rng = np.random.default_rng(options.seed)
    operators = rng.choice(OPERATORS, options.queries)
    signs = rng.choice(["+", "-"], options.queries)
    offsets = constants(rng, options.queries)
    factors = [f"s0.v {op} s1.v {sign} {c}" for op, sign, c in zip(operators, signs, offsets, strict=True)]
    rows = joined.make_rows(rng, 2 * max(options.windows), 2, VALUES)
    engines = {system: standing(rows, factors, options.windows, mode) for system, mode in SYSTEMS.items()}
    figures: dict[str, Figure] = {}
    points = {}
    for window in options.windows:
        names = [f"w{window}q{n}" for n in range(len(factors))]
        points[window] = respond(engines, names, options.times)
        tell(f"{window:,} rows a side", points[window])
        figures |= {f"response_ms.{system}.w{window}": ms for system, ms in points[window].items()}
        figures[f"pairs.w{window}"] = window**2
    return Report(figures, Plot("rows of each window", "ms a query", curves(points)))


def standing(rows: Rows, factors: list[str], windows: list[int], mode: str) -> Engine:
    """An engine at the end of the rows, with each query standing over each window in this mode."""
    engine = joined.create(2)
    select = "SELECT s0.v, s1.v AS w FROM s0 [ROWS {0}] JOIN s1 [ROWS {0}] ON {1}"
    texts = {
        f"w{window}q{n}": select.format(window, factor)
        for window in windows
        for n, factor in enumerate(factors)
    }
    psoup.register_named(engine, texts, {"maintenance": mode})
    joined.ingest(engine, rows.steps(), len(rows))
    joined.close(engine, rows)
    return engine
