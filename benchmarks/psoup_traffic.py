"""The journal's experiments with traffic sensors: response time, data rate at two windows, memory by system.

The paper replays sensors of freeways, whose trace is not public. Here sensors report a lane and a speed, one
report a millisecond from them all: lanes 1 to 6 as often as each other, speeds (a float, in miles an hour)
that are nearly always about one value, very slow and very fast ones rarely. Queries are
`lane op c AND speed op d`, op one of <, <=, >, >=, the constants uniform over what there is. The systems are
those of `psoup-fig7`: NoMat runs a query when it is asked, PSoup-P keeps which rows it wants, PSoup-C keeps
the answer.

1. Response time against the window, all queries standing over all windows.
2. The data rate against the number of queries, as in `psoup-fig9-selections`, at a small and a large window.
3. Memory by system, which the paper argues: rows, what says which rows a query wants, answers that are kept.

In the paper response times are as with uniform values: NoMat is slowest, PSoup-C fastest. PSoup-P takes the
highest data rate; at the small window PSoup-C with the index overtakes PSoup-P without it as queries become
more, at the large one it does not, since keeping answers then costs more than finding out who wants a row.
NoMat takes least memory, PSoup-C most.

Figures: `response_ms.<system>.w<rows>`; `rows_per_s.<lazy or eager>.<shared or unshared>.w<rows>.q<queries>`;
`crossover.w<rows>`, the fewest of these queries from which PSoup-C with the index is ahead of PSoup-P without
it, 0: it never is; `bytes.<rows, matches or answers>.<system>`, with all queries of 1.
"""

import argparse
import sys

import numpy as np

from benchmarks import psoup
from benchmarks.numbers import Numbers
from benchmarks.paper import SYSTEMS, WARM, curves, respond, sustained, tell
from benchmarks.report import Figure, Plot, Report
from engine.engine import Engine
from engine.model.batch import BATCH_ROWS_MAX, Batch, Column
from engine.model.source import Field, Schema
from engine.model.types import DOUBLE, INTEGER, TIMESTAMP

SCHEMA = Schema((Field("lane", INTEGER), Field("speed", DOUBLE), Field("ts", TIMESTAMP, nullable=False)))
LANES = 6
USUAL, SPREAD, RARE, FASTEST = 62.0, 6.0, 0.05, 110.0
OPERATORS = ("<", "<=", ">", ">=")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options besides those that every benchmark has."""
    parser.add_argument(
        "--windows",
        action=Numbers,
        nargs="+",
        default=[2**n for n in range(7, 17)],
        help="rows of each, for response times (default: %(default)s)",
    )
    parser.add_argument(
        "--standing", type=int, default=32, help="queries of each window (default: %(default)s)"
    )
    parser.add_argument("--times", type=int, default=7, help="sweeps over them (default: %(default)s)")
    parser.add_argument(
        "--rate-windows", action=Numbers, nargs="+", default=[100, 1_000], help="(default: %(default)s)"
    )
    parser.add_argument(
        "--queries",
        action=Numbers,
        nargs="+",
        default=[1, 4, 16, 64, 256],
        help="for data rates (default: %(default)s)",
    )
    parser.add_argument("--batches", type=int, default=60, help="timed, at most (default: %(default)s)")
    parser.add_argument("--budget", type=float, default=2.0, help="seconds a point (default: %(default)s)")


def run(options: argparse.Namespace) -> Report:
    """Response times, data rates, memory."""
    rng = np.random.default_rng(options.seed)
    figures: dict[str, Figure] = {}
    plot = response_times(rng, options, figures)
    data_rates(rng, options, figures)
    return Report(figures, plot)


def reports(rng: np.random.Generator, n: int) -> Batch:
    """The first n of the sensors' reports."""
    speed = rng.normal(USUAL, SPREAD, n)
    extreme = rng.random(n) < RARE
    speed[extreme] = rng.uniform(0.0, FASTEST, int(extreme.sum()))
    places = np.arange(n)
    columns = (
        Column(INTEGER, rng.integers(1, LANES + 1, n, np.int32)),
        Column(DOUBLE, np.clip(speed, 0.0, FASTEST)),
        Column(TIMESTAMP, places),
    )
    return Batch(SCHEMA, columns, np.zeros(n, np.int32), places, places)


def conditions(rng: np.random.Generator, n: int) -> list[str]:
    """The predicates of n queries."""
    lanes, speeds = rng.integers(1, LANES + 1, n), rng.uniform(0.0, FASTEST, n).round(1)
    by_lane, by_speed = rng.choice(OPERATORS, n), rng.choice(OPERATORS, n)
    return [
        f"lane {one} {lane} AND speed {other} {speed}"
        for one, lane, other, speed in zip(by_lane, lanes, by_speed, speeds, strict=True)
    ]


def create(retain_ms: int) -> Engine:
    """An engine with the stream and nothing in it."""
    engine = Engine()
    engine.create(
        "CREATE STREAM traffic (lane INTEGER, speed DOUBLE, ts TIMESTAMP NOT NULL) "
        f"WITH (topic='traffic', timestamp='ts') RETAIN {retain_ms} MILLISECONDS"
    )
    return engine


def text(condition: str, window: int) -> str:
    """The SELECT of one query over the last so many rows."""
    return f"SELECT lane, speed, ts FROM traffic [RANGE {window - 1} MILLISECONDS] WHERE {condition}"


def cut(rows: Batch, size: int) -> list[Batch]:
    """Batches of so many rows."""
    return [rows.take(np.arange(first, min(first + size, len(rows)))) for first in range(0, len(rows), size)]


def response_times(rng: np.random.Generator, options: argparse.Namespace, figures: dict[str, Figure]) -> Plot:
    """1, and 3 at its largest window."""
    retained = max(options.windows)
    batches = cut(reports(rng, retained + 2 * BATCH_ROWS_MAX), BATCH_ROWS_MAX)
    wanted = conditions(rng, options.standing)
    engines = {}
    for system, mode in SYSTEMS.items():
        engine = create(retained)
        for batch in batches[:-2]:
            engine.ingest("traffic", batch, int(batch.timestamp[-1]))
        texts = {
            f"w{window}q{n}": text(one, window) for window in options.windows for n, one in enumerate(wanted)
        }
        psoup.register_named(engine, texts, {"maintenance": mode})
        for batch in batches[-2:]:
            engine.ingest("traffic", batch, int(batch.timestamp[-1]))
        engines[system] = engine
    points = {}
    for window in options.windows:
        asked = [f"w{window}q{n}" for n in range(len(wanted))]
        points[window] = respond(engines, asked, options.times)
        tell(f"{window:,} rows", points[window])
        figures |= {f"response_ms.{system}.w{window}": ms for system, ms in points[window].items()}
    for system, engine in engines.items():
        taken = engine.footprint()
        for structure in ("rows", "matches", "answers"):
            figures[f"bytes.{structure}.{system}"] = getattr(taken, structure)
    return Plot("rows of the window", "ms a query", curves(points), log=True)


def data_rates(rng: np.random.Generator, options: argparse.Namespace, figures: dict[str, Figure]) -> None:
    """2."""
    wanted = conditions(rng, max(options.queries))
    for window in options.rate_windows:
        batches = cut(reports(rng, (options.batches + WARM) * window), window)
        rates = {}
        for mode in ("lazy", "eager"):
            for sharing in ("shared", "unshared"):
                for queries in options.queries:
                    groups = (
                        [wanted[:queries]] if sharing == "shared" else [[one] for one in wanted[:queries]]
                    )
                    engines = [standing(group, window, mode) for group in groups]
                    rate = window / sustained(engines, "traffic", batches, options.budget)
                    rates[mode, sharing, queries] = float(rate)
                    what = f"window of {window:,} rows, {mode}, {sharing}, {queries:,} queries"
                    print(f"{what}: {rate:,.0f} rows/s", file=sys.stderr)
        for (mode, sharing, queries), rate in rates.items():
            figures[f"rows_per_s.{mode}.{sharing}.w{window}.q{queries}"] = rate
        ahead = [
            queries
            for queries in options.queries
            if rates["eager", "shared", queries] > rates["lazy", "unshared", queries]
        ]
        figures[f"crossover.w{window}"] = min(ahead, default=0)


def standing(conditions: list[str], window: int, mode: str) -> Engine:
    """An engine without rows, whose queries stand over the last so many."""
    engine = create(window)
    psoup.register(engine, (text(one, window) for one in conditions), {"maintenance": mode})
    return engine
