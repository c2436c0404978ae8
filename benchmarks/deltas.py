"""Rows a second through one followed query of each kind: what its changes cost, and nothing else.

Each query in an engine of its own, EMIT CHANGES, over streams of 8 rows a millisecond whose windows hold
8,000 rows and whose keys are such that a row has about ten partners. Rows come in batches of 8,192, so that a
step replaces the window, and in batches of 64 (figures that end in `.b64`), so that it changes a hundredth of
it; one batch of each stream in turn. Time is that of steps, with the changes as columns, and the processor's,
so that other work on the machine matters less: a step is one thread's. Figures of two versions compare only
where both ran on one machine, one after the other.

Figures: `rows_per_s.<op>`, `deltas_per_s.<op>`.
"""

import argparse
import gc
import sys
import time
from itertools import product

import numpy as np

from benchmarks.events import Events
from benchmarks.report import Figure, Report
from benchmarks.timing import Timing

PER_MS = 8.0
WINDOW = "[RANGE 999 MILLISECONDS]"
KEYS = 800
BATCH, SMALL = 8_192, 64
TEXTS = {
    "group": f"SELECT k, COUNT(*) AS n, SUM(n) AS total FROM s {WINDOW} GROUP BY k",
    "distinct": f"SELECT DISTINCT k FROM s {WINDOW}",
    "tumble": """SELECT k, window_end, COUNT(*) AS n FROM TUMBLE(s, INTERVAL '1' SECOND)
        GROUP BY k, window_end""",
    "session": """SELECT k, window_end, COUNT(*) AS n
        FROM SESSION(s PARTITION BY k, INTERVAL '20' MILLISECOND) GROUP BY k, window_end""",
    "not_in": f"SELECT id, k FROM s {WINDOW} WHERE k NOT IN (SELECT n FROM u {WINDOW})",
    "top10": f"SELECT id, v FROM s {WINDOW} ORDER BY v DESC LIMIT 10",
    "min_max": f"SELECT k, MIN(n) AS low, MAX(n) AS high FROM s {WINDOW} GROUP BY k",
    "avg": f"SELECT k, AVG(v) AS mean FROM s {WINDOW} GROUP BY k",
    "join": f"SELECT s.id, u.id AS other FROM s {WINDOW} JOIN u {WINDOW} ON s.k = u.k",
    "join3": f"""SELECT s.id, u.id AS other, w.id AS third FROM s {WINDOW} JOIN u {WINDOW} ON s.k = u.k
        JOIN w {WINDOW} ON u.id = w.id""",
    "self_join": f"SELECT a.id, b.id AS other FROM s {WINDOW} AS a JOIN s {WINDOW} AS b ON a.k = b.k",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options besides those that every benchmark has."""
    parser.add_argument("--ops", nargs="*", choices=TEXTS, default=list(TEXTS), help="(default: all)")
    parser.add_argument("--batches", type=int, default=20, help="timed rounds of each (default: %(default)s)")


def run(options: argparse.Namespace) -> Report:
    """Each kind in turn."""
    figures: dict[str, Figure] = {}
    for op, size in product(options.ops, (BATCH, SMALL)):
        timing, rows, deltas = measure(op, size, options)
        if size == SMALL:
            op += f".b{size}"
        rows_per_s = timing.per_s(rows)
        figures[f"rows_per_s.{op}"] = rows_per_s
        figures[f"deltas_per_s.{op}"] = deltas / sum(timing.seconds)
        print(f"{op}: {rows_per_s:,.0f} rows/s", file=sys.stderr)
    return Report(figures)


def measure(op: str, size: int, options: argparse.Namespace) -> tuple[Timing, int, int]:
    """(time of each round, a batch of each stream; rows of a round; changes of all). size: of a batch."""
    text = TEXTS[op]
    names = [name for name in "suw" if f" {name} " in text or f"({name}" in text]
    events = Events(np.random.default_rng(options.seed), names, 10_000)
    events.register([f"{text} EMIT CHANGES"])
    warm_up = 4
    seconds, deltas = [], 0
    for name in names:  # the windows are full
        for batch in events.batches(name, 2, BATCH, per_ms=PER_MS, keys=KEYS):
            events.ingest(name, batch)
    streams = [
        events.batches(name, warm_up + options.batches, size, per_ms=PER_MS, keys=KEYS) for name in names
    ]
    gc.collect()
    gc.disable()
    for place, batches in enumerate(zip(*streams, strict=True)):
        began = time.process_time()
        found = [events.ingest(name, batch).changes for name, batch in zip(names, batches, strict=True)]
        if place >= warm_up:
            seconds.append(time.process_time() - began)
            deltas += sum(len(changes) for each in found for changes in each)
    gc.enable()
    return Timing(tuple(seconds)), size * len(names), deltas
