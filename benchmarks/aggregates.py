"""Rows a second through 1,000 standing sliding COUNT, SUM and AVG, kept current; and any sub-window of one.

PSoup's stream and predicates; each query asks `COUNT(*)`, `SUM` or `AVG` of a column over the last 10,000
rows (a second of event time), eager. Rows come in batches of 8,192, and a view is taken after each, as a
broker does, in which all answers are current. At the end every answer is compared with numpy.

Sub-windows: COUNT, SUM, AVG and MAX of the rows that one predicate wants, of 1,000,000 rows retained, one a
millisecond; eager queries of several lengths share what is kept, and each is asked at any instant. So any
part of the rows is asked for that has one of the lengths. Every value is compared with numpy. PSoup (section
6) answers such with a ranked tree of partial aggregates, in time logarithmic in the rows.

Figures: `rows_per_s.q<queries>`, the median over timed stretches, and `spread.q<queries>`; `subwindow_ms`,
the median of one answer, and `subwindow_ms.p99`.
"""

import argparse
import gc
import sys
import time

import numpy as np
import numpy.typing as npt

from benchmarks import psoup
from benchmarks.numbers import Numbers
from benchmarks.psoup import COLUMNS, ROWS_PER_MS, Bounds, Rows
from benchmarks.report import Figure, Plot, Report, Series
from benchmarks.timing import Timing
from engine.engine import Engine
from engine.model.batch import BATCH_ROWS_MAX

STRETCHES = 5
FUNCTIONS = ("COUNT", "SUM", "AVG")
PARTS = ("COUNT(*)", "SUM(b)", "AVG(c)", "MAX(d)")
LENGTHS = 16


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options besides those that every benchmark has."""
    parser.add_argument(
        "--queries", action=Numbers, nargs="+", default=[1_000], help="how many stand (default: %(default)s)"
    )
    parser.add_argument("--rows", type=int, default=1_000_000, help="timed rows (default: %(default)s)")
    parser.add_argument("--window", type=int, default=10_000, help="its rows (default: %(default)s)")
    parser.add_argument(
        "--retain", type=int, default=1_000_000, help="rows that sub-windows lie in (default: %(default)s)"
    )
    parser.add_argument(
        "--times", type=int, default=500, help="sub-windows of each aggregate (default: %(default)s)"
    )


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
    figures |= subwindows(rng, options.retain, options.times)
    curve = Series("eager", options.queries, rates)
    return Report(figures, Plot("standing aggregates", "rows/s", [curve], log=True))


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


def subwindows(rng: np.random.Generator, retained: int, times: int) -> dict[str, Figure]:
    """Ask for parts of the rows, of each aggregate in turn; what one answer takes."""
    rows = psoup.make_rows(rng, retained, per_ms=1)
    lengths = rng.integers(64, retained // 2, LENGTHS).tolist()
    engine = psoup.create(retained)
    texts = (
        f"SELECT {part} AS v FROM psoup [RANGE {length - 1} MILLISECONDS] WHERE a < 128"
        for length in lengths
        for part in PARTS
    )
    psoup.register(engine, texts, {"maintenance": "eager"})
    psoup.fill(engine, rows)
    view = engine.view()
    wanted = rows.values[0] < 128
    seconds = []
    for number in range(times + LENGTHS):
        length = lengths[number % LENGTHS]
        at_ms = int(rng.integers(length - 1, retained))
        inside = rows.values[:, at_ms - length + 1 : at_ms + 1][:, wanted[at_ms - length + 1 : at_ms + 1]]
        for place, part in enumerate(PARTS):
            name = f"q{number % LENGTHS * len(PARTS) + place}"
            began = time.perf_counter()
            answer = view.snapshot(name, at=at_ms)
            ended = time.perf_counter()
            if number >= LENGTHS:  # the first of each length warm up
                seconds.append(ended - began)
            found = answer.table.column(0)[0].as_py()
            expected = _of_part(place, inside)
            if found is None or not np.isclose(found, expected, rtol=1e-12):
                raise RuntimeError(f"{part} over {length} rows up to {at_ms} is {found}, numpy {expected}")
    return {
        "subwindow_ms": float(np.median(seconds)) * 1e3,
        "subwindow_ms.p99": float(np.percentile(seconds, 99)) * 1e3,
    }


def _of_part(place: int, values: npt.NDArray[np.int32]) -> float:
    """What the part of this place is over these rows, int32[4, n]."""
    match place:
        case 0:
            return values.shape[1]
        case 1:
            return int(values[1].sum())
        case 2:
            return float(values[2].mean())
        case _:
            return int(values[3].max())
