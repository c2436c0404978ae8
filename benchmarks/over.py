"""Rows a second through window functions: evaluated when they are asked for, and followed.

A stream of 8 rows a millisecond with a thousand keys, which are the partitions. Lazily: one answer over
``--rows`` rows. Followed: one query with EMIT CHANGES over all rows, of which ``--before`` are there when it
comes, in batches of 8,192, and ``--queries`` of one shape, each of a part of the keys
(``rows_per_s.followed_many.<op>``). RANK is followed over a window of ``--window`` rows: with each that comes
or goes half of its partition change, which are told. Time is the processor's: a step and an answer are one
thread's.

Kinds: the first ten of each partition by ROW_NUMBER (top10), LAG (lag), SUM over the last 100 rows (sum100),
RANK (rank). Figures: ``rows_per_s.lazy.<op>``, ``rows_per_s.followed.<op>``, each with ``.min``, the slowest
round, and ``rows_per_s.lazy.min`` and ``rows_per_s.followed.min`` over all kinds.
"""

import argparse
import gc
import sys
import time
from collections.abc import Callable
from itertools import pairwise

import numpy as np

from benchmarks.events import Events
from benchmarks.report import Figure, Report
from benchmarks.timing import Timing

PER_MS = 8
BATCH = 8_192
ROUNDS_WARM = 2
PARTITION = "PARTITION BY k ORDER BY"
TEXTS = {
    "top10": f"SELECT id, k, v FROM {{rows}} QUALIFY ROW_NUMBER() OVER ({PARTITION} v DESC) <= 10",
    "lag": f"SELECT id, k, LAG(v) OVER ({PARTITION} ts) AS before FROM {{rows}}",
    "sum100": f"SELECT id, k, SUM(n) OVER ({PARTITION} ts ROWS 99 PRECEDING) AS total FROM {{rows}}",
    "rank": f"SELECT id, k, RANK() OVER ({PARTITION} v) AS place FROM {{rows}}",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options besides those that every benchmark has."""
    parser.add_argument("--ops", nargs="*", choices=TEXTS, default=list(TEXTS), help="(default: all)")
    parser.add_argument("--rows", type=int, default=1_000_000, help="of an answer (default: %(default)s)")
    parser.add_argument("--before", type=int, default=100_000, help="rows that stand (default: %(default)s)")
    parser.add_argument("--window", type=int, default=10_000, help="rows of RANK (default: %(default)s)")
    parser.add_argument("--queries", type=int, default=1_000, help="of one shape (default: %(default)s)")
    parser.add_argument("--keys", type=int, default=1_000, help="partitions (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=5, help="timed rounds of each (default: %(default)s)")


def run(options: argparse.Namespace) -> Report:
    """Each kind in turn."""
    figures: dict[str, Figure] = {}
    ways: dict[str, Callable[[str, argparse.Namespace], tuple[Timing, int]]] = {
        "lazy": lazily,
        "followed": followed,
        "followed_many": followed_by_many,
    }
    for way, measure in ways.items():
        slowest = []
        for op in options.ops:
            timing, rows = measure(TEXTS[op], options)
            figures[f"rows_per_s.{way}.{op}"] = timing.per_s(rows)
            figures[f"rows_per_s.{way}.{op}.min"] = rows / max(timing.seconds)
            slowest.append(rows / max(timing.seconds))
            print(f"{way} {op}: {timing.per_s(rows):,.0f} rows/s", file=sys.stderr)
        figures[f"rows_per_s.{way}.min"] = min(slowest)
    return Report(figures)


def lazily(text: str, options: argparse.Namespace) -> tuple[Timing, int]:
    """(time of each answer, its rows before the condition)."""
    rows = options.rows - options.rows % BATCH or BATCH
    events = Events(np.random.default_rng(options.seed), "s", rows)
    for batch in events.batches("s", rows // BATCH, BATCH, per_ms=PER_MS, keys=options.keys):
        events.ingest("s", batch)
    events.register([text.replace("{rows}", "s")])
    view = events.engine.view()
    return _timed(lambda: view.snapshot("q0"), options.rounds), rows


def followed(text: str, options: argparse.Namespace) -> tuple[Timing, int]:
    """(time of each step, rows that come in it)."""
    return _steps(text, [""], options)


def followed_by_many(text: str, options: argparse.Namespace) -> tuple[Timing, int]:
    """As one, of queries that have some keys each: together all."""
    lows = [place * options.keys // options.queries for place in range(options.queries + 1)]
    conditions = [f"WHERE k >= {low} AND k < {high}" for low, high in pairwise(lows)]
    return _steps(text, conditions, options)


def _steps(text: str, conditions: list[str], options: argparse.Namespace) -> tuple[Timing, int]:
    window = f"[RANGE {options.window // PER_MS - 1} MILLISECONDS]" if "RANK" in text else ""
    events = Events(np.random.default_rng(options.seed), "s", 10_000_000)
    full = options.before // BATCH + 1
    batches = events.batches(
        "s", full + ROUNDS_WARM + options.rounds, BATCH, per_ms=PER_MS, keys=options.keys
    )
    for _ in range(full):
        events.ingest("s", next(batches))
    texts = [text.replace("{rows}", f"s {window} {condition}") for condition in conditions]
    events.register([f"{each} EMIT CHANGES" for each in texts])

    def step() -> None:
        broken = events.ingest("s", next(batches)).broken
        assert not broken, broken

    return _timed(step, options.rounds), BATCH


def _timed(do: Callable[[], object], rounds: int) -> Timing:
    seconds = []
    gc.collect()
    gc.disable()
    for place in range(ROUNDS_WARM + rounds):
        began = time.process_time()
        do()
        if place >= ROUNDS_WARM:
            seconds.append(time.process_time() - began)
    gc.enable()
    return Timing(tuple(seconds))
