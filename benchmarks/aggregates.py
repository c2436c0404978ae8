"""Rows a second through 1,000 standing sliding COUNT, SUM and AVG, kept current.

PSoup's stream and predicates; each query asks `COUNT(*)`, `SUM` or `AVG` of a column over the last 10,000
rows (a second of event time), eager. Rows come in batches of 8,192, and a view is taken after each, as a
broker does, in which all answers are current. At the end every answer is compared with numpy.

Figures: `rows_per_s.q<queries>`, the median over timed stretches, and `spread.q<queries>`.
"""

import argparse
import gc
import sys
import time

import numpy as np

from benchmarks import psoup
from benchmarks.numbers import Numbers
from benchmarks.psoup import COLUMNS, ROWS_PER_MS, Bounds, Rows
from benchmarks.report import Figure, Plot, Report, Series
from benchmarks.timing import Timing
from engine.engine import Engine
from engine.model.batch import BATCH_ROWS_MAX

STRETCHES = 5
FUNCTIONS = ("COUNT", "SUM", "AVG")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options besides those that every benchmark has."""
    parser.add_argument(
        "--queries", action=Numbers, nargs="+", default=[1_000], help="how many stand (default: %(default)s)"
    )
    parser.add_argument("--rows", type=int, default=1_000_000, help="timed rows (default: %(default)s)")
    parser.add_argument("--window", type=int, default=10_000, help="its rows (default: %(default)s)")


def run(options: argparse.Namespace) -> Report:
    """Each number of queries in an engine of its own."""
    rng = np.random.default_rng(options.seed)
    stretch = -(-options.rows // (STRETCHES * BATCH_ROWS_MAX))
    warm_up = -(-2 * options.window // BATCH_ROWS_MAX)
    rows = psoup.make_rows(rng, (warm_up + STRETCHES * stretch) * BATCH_ROWS_MAX)
    figures: dict[str, Figure] = {}
    rates = []
    for queries in options.queries:
        bounds = psoup.make_bounds(rng, queries)
        timing = measure(rows, bounds, warm_up, stretch, options.window)
        rates.append(timing.per_s(stretch * BATCH_ROWS_MAX))
        figures[f"rows_per_s.q{queries}"] = rates[-1]
        figures[f"spread.q{queries}"] = timing.spread
        print(f"{queries:,} queries: {rates[-1]:,.0f} rows/s", file=sys.stderr)
    return Report(
        figures, Plot("standing aggregates", "rows/s", [Series("eager", options.queries, rates)], log=True)
    )


def outputs(place: int) -> str:
    """What the query of this place asks for: the functions in turn, the columns in turn."""
    function = FUNCTIONS[place % len(FUNCTIONS)]
    column = COLUMNS[place // len(FUNCTIONS) % len(COLUMNS)]
    return "COUNT(*) AS v" if function == "COUNT" else f"{function}({column}) AS v"


def measure(rows: Rows, bounds: Bounds, warm_up: int, stretch: int, window: int) -> Timing:
    """Time of each stretch of batches in a fresh engine."""
    window_ms = window // ROWS_PER_MS
    engine = psoup.create(window_ms)
    texts = (
        psoup.text(one, outputs(place), f"[RANGE {window_ms - 1} MILLISECONDS]")
        for place, one in enumerate(bounds)
    )
    psoup.register(engine, texts, {"maintenance": "eager"})
    batches = rows.batches()
    clock_ms = int(rows.timestamp[-1])
    for batch in batches[:warm_up]:
        engine.ingest("psoup", batch, clock_ms)
        engine.view()
    seconds = []
    gc.collect()
    for first in range(warm_up, len(batches), stretch):
        began = time.perf_counter()
        for batch in batches[first : first + stretch]:
            engine.ingest("psoup", batch, clock_ms)
            engine.view()
        seconds.append(time.perf_counter() - began)
    check(engine, rows, bounds, window_ms)
    return Timing(tuple(seconds))


def check(engine: Engine, rows: Rows, bounds: Bounds, window_ms: int) -> None:
    """Compare every answer with numpy. Raises RuntimeError."""
    view = engine.view()
    now_ms = view.sources()[0].now_ms
    assert now_ms is not None
    inside = (rows.timestamp > now_ms - window_ms) & (rows.timestamp <= now_ms)
    values = rows.values[:, inside]
    for place, one in enumerate(bounds):
        found = view.snapshot(f"q{place}").table.column(0)[0].as_py()
        wanted = values[place // len(FUNCTIONS) % len(COLUMNS)][psoup.matches(one, values)]
        expected: float | None
        match FUNCTIONS[place % len(FUNCTIONS)]:
            case "COUNT":
                expected = len(wanted)
            case "SUM":
                expected = int(wanted.sum()) if len(wanted) else None
            case _:
                expected = float(wanted.mean()) if len(wanted) else None
        if found != expected and not (found and expected and abs(found - expected) < 1e-9 * abs(expected)):
            raise RuntimeError(f"q{place}: {outputs(place)} is {found}, numpy {expected}")
