"""PSoup's figure 8: response time of an inequality join against the window, for NoMat, PSoup-P and PSoup-C.

The queries are `R.a op S.b + c`, op one of <, <=, >, >=. The engine joins no two streams yet. So the join's
composites, every pair of an R and an S row, are made before the clock starts and come as one stream; a pair's
instant is that of its older part, so that a window over pairs holds those whose parts are both in the window.
What is measured is what figure 8 measures, answers when they are asked for: from kept answers, from kept
matches, or by evaluating the factor over all pairs, as a nested loop does. Building the pairs is not.
Windows have 16 to 512 rows of each side; the pairs grow with their square. Answers are compared.

In the paper NoMat is about two orders slower than the others, and PSoup-P less than one order slower than
PSoup-C, both far flatter than NoMat.

Here the order agrees, and that NoMat grows with the square of the window. It does not agree that NoMat is two
orders behind PSoup-P: it takes twice as long, since half of the pairs are in an answer and gathering them
costs both the same; and PSoup-C is flat, two orders ahead, for its answers are handed over as they are.

Figures: `response_ms.<nomat, psoup_p or psoup_c>.w<rows>`, for one query; `pairs.w<rows>`.
"""

import argparse

import numpy as np

from benchmarks import psoup
from benchmarks.numbers import Numbers
from benchmarks.paper import SYSTEMS, VALUES, constants, curves, respond, tell
from benchmarks.report import Figure, Plot, Report
from engine.engine import Engine
from engine.model.batch import BATCH_ROWS_MAX, Batch, Column
from engine.model.source import Field, Schema
from engine.model.step import Register, Registration
from engine.model.types import INTEGER, TIMESTAMP

SCHEMA = Schema((Field("a", INTEGER), Field("b", INTEGER), Field("ts", TIMESTAMP, nullable=False)))
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
    """One engine a system over the same pairs."""
    rng = np.random.default_rng(options.seed)
    rows = max(options.windows)
    operators = rng.choice(OPERATORS, options.queries)
    signs = rng.choice(["+", "-"], options.queries)
    offsets = constants(rng, options.queries)
    factors = [f"a {op} b {sign} {c}" for op, sign, c in zip(operators, signs, offsets, strict=True)]
    pairs = make_pairs(rng, rows)
    engines = {s: standing(pairs, rows, factors, options.windows, mode) for s, mode in SYSTEMS.items()}
    figures: dict[str, Figure] = {}
    points = {}
    for window in options.windows:
        names = [f"w{window}q{n}" for n in range(len(factors))]
        points[window] = respond(engines, names, options.times)
        tell(f"{window:,} rows a side", points[window])
        figures |= {f"response_ms.{system}.w{window}": ms for system, ms in points[window].items()}
        figures[f"pairs.w{window}"] = window**2
    return Report(figures, Plot("rows of each window", "ms a query", curves(points)))


def make_pairs(rng: np.random.Generator, rows: int) -> list[Batch]:
    """Every pair of two streams of this many rows, one row a millisecond, in order of the older part."""
    r, s = rng.integers(0, VALUES, (2, rows), np.int32)
    left, right = (place.ravel() for place in np.indices((rows, rows)))
    older = np.minimum(left, right)
    order = np.argsort(older, kind="stable")
    a, b, timestamp = r[left[order]], s[right[order]], older[order].astype(np.int64)
    # One pair beyond, so that NOW comes to the last millisecond.
    a, b, timestamp = np.append(a, a[:1]), np.append(b, b[:1]), np.append(timestamp, rows)
    offset = np.arange(len(a))
    cuts = (slice(first, first + BATCH_ROWS_MAX) for first in range(0, len(a), BATCH_ROWS_MAX))
    return [
        Batch(
            SCHEMA,
            (Column(INTEGER, a[cut]), Column(INTEGER, b[cut]), Column(TIMESTAMP, timestamp[cut])),
            np.zeros(len(a[cut]), np.int32),
            offset[cut],
            timestamp[cut],
        )
        for cut in cuts
    ]


def standing(pairs: list[Batch], rows: int, factors: list[str], windows: list[int], mode: str) -> Engine:
    """An engine at the end of the pairs, with each query standing over each window in this mode."""
    engine = Engine()
    engine.create(
        "CREATE STREAM pairs (a INTEGER, b INTEGER, ts TIMESTAMP NOT NULL) "
        f"WITH (topic='pairs', timestamp='ts') RETAIN {rows} MILLISECONDS"
    )
    registrations = tuple(
        Registration(
            f"w{window}q{n}",
            f"SELECT a, b FROM pairs [RANGE {window - 1} MILLISECONDS] WHERE {factor}",
            options={"maintenance": mode},
        )
        for window in windows
        for n, factor in enumerate(factors)
    )
    psoup.apply(engine, Register(registrations))
    for batch in pairs:
        engine.ingest("pairs", batch, rows)
    return engine
