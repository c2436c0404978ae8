"""Ten thousand followed aggregates of one shape, and what a step costs that touches all of them.

A query counts and sums the rows of the last second by key, of those above a constant of its own; each emits
its changes. Every row satisfies all, so each step changes a row of every answer: one row comes, and those of
a second before leave. At the end some answers are folded from their changes and compared with snapshots.

With `--shapes` the same number of queries is divided among shapes that differ in what they sum, so that no
operator above the scan is shared between shapes.

At the end one answer that nobody reads is kept (`maintenance` eager), of 9,000 groups over a window of
100,000 rows; each step brings rows of a ninth of the groups. `rows_per_s.eager` are the rows that come a
second, `rows_per_s.lazy` those of the same query where only its matches are kept.

Figures: `ms_per_step.all` and `ms_per_step.shapes<n>`, the medians, `deltas_per_s`, changes a second over all
timed steps, and `state_bytes_per_group`.
"""

import argparse
import gc
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from benchmarks.events import Events
from benchmarks.numbers import Numbers
from benchmarks.report import Figure, Report
from benchmarks.timing import Timing
from engine.model.batch import Column
from engine.model.changes import Changes
from engine.model.types import INTEGER

KEYS = 9
PER_MS = 0.01
WINDOW_MS = 1_000
COMPARED = 20
GROUPS, TOUCHED, KEPT_ROWS = 9_000, 1_000, 100_000
"""Groups of the answer that is kept, groups that a step touches, and rows of the window."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options besides those that every benchmark has."""
    parser.add_argument("--queries", type=int, default=10_000, help="how many stand (default: %(default)s)")
    parser.add_argument(
        "--shapes", action=Numbers, nargs="+", default=[1, 100], help="among so many (default: %(default)s)"
    )
    parser.add_argument("--steps", type=int, default=200, help="that are timed (default: %(default)s)")


def run(options: argparse.Namespace) -> Report:
    """Each number of shapes in an engine of its own."""
    figures: dict[str, Figure] = {}
    for shapes in options.shapes:
        timing, deltas, state_bytes = measure(options, shapes)
        name = "all" if shapes == 1 else f"shapes{shapes}"
        figures[f"ms_per_step.{name}"] = timing.median_ms
        figures[f"spread.{name}"] = timing.spread
        if shapes == 1:
            figures["deltas_per_s"] = deltas / sum(timing.seconds)
            figures["state_bytes_per_group"] = state_bytes / (options.queries * KEYS)
        print(f"{shapes} shapes: {timing.median_ms:.2f} ms a step", file=sys.stderr)
    for mode in ("eager", "lazy"):
        figures[f"rows_per_s.{mode}"] = unread(options, mode)
    return Report(figures)


def unread(options: argparse.Namespace, mode: str) -> float:
    """Rows a second of steps that each touch a ninth of the groups of one answer, which nobody reads."""
    events = Events(np.random.default_rng(options.seed), ["events"], 2 * KEPT_ROWS)
    window = f"[RANGE {KEPT_ROWS - 1} MILLISECONDS]"
    text = f"SELECT k, COUNT(*) AS n, SUM(v) AS total FROM events {window} GROUP BY k"
    events.register([text], {"maintenance": mode})
    filled = KEPT_ROWS // TOUCHED
    seconds = []
    for place, batch in enumerate(
        events.batches("events", filled + options.steps, TOUCHED, per_ms=1.0, keys=TOUCHED)
    ):
        first = place % (GROUPS // TOUCHED) * TOUCHED
        keys = Column(INTEGER, batch.columns[1].values + np.int32(first))
        batch = replace(batch, columns=(batch.columns[0], keys, *batch.columns[2:]))
        began = time.perf_counter()
        events.ingest("events", batch)
        events.engine.view()
        if place >= filled:
            seconds.append(time.perf_counter() - began)
    return TOUCHED / Timing(tuple(seconds)).median_ms * 1e3


def texts(queries: int, shapes: int) -> Iterator[str]:
    """The queries, the shapes in turn."""
    for place in range(queries):
        shape = place % shapes
        total = "SUM(v)" if not shape else f"SUM(v * {shape}.0)"
        yield (
            f"SELECT k, COUNT(*) AS n, {total} AS total FROM events [RANGE {WINDOW_MS - 1} MILLISECONDS] "
            f"WHERE id >= {-place} GROUP BY k EMIT CHANGES"
        )


def measure(options: argparse.Namespace, shapes: int) -> tuple[Timing, int, int]:
    """(time of each step, changes of all, bytes of state)."""
    events = Events(np.random.default_rng(options.seed), ["events"], 10 * WINDOW_MS)
    events.register(texts(options.queries, shapes))
    folded: list[Counter[str]] = [Counter() for _ in range(COMPARED)]
    chosen = {f"q{place * options.queries // COMPARED}": place for place in range(COMPARED)}
    warm_up = int(3 * WINDOW_MS * PER_MS)
    seconds, deltas = [], 0
    gc.collect()
    gc.disable()
    for place, batch in enumerate(
        events.batches("events", warm_up + options.steps, 1, per_ms=PER_MS, keys=KEYS)
    ):
        began = time.perf_counter()
        changes = events.ingest("events", batch).changes
        if place >= warm_up:
            seconds.append(time.perf_counter() - began)
            deltas += sum(map(len, changes))
        fold(folded, chosen, changes)
    gc.enable()
    view = events.engine.view()
    for query_id, place in chosen.items():
        rows = Counter(map(repr, view.snapshot(query_id).table.to_pylist()))
        if rows != +folded[place]:
            raise RuntimeError(f"{query_id}: its changes do not add up to its answer")
    return Timing(tuple(seconds)), deltas, events.engine.footprint().changes


def fold(folded: Sequence[Counter[str]], chosen: dict[str, int], changes: Sequence[Changes]) -> None:
    """Add the changes of some queries to what they are of."""
    for each in changes:
        for place, query_id in enumerate(each.query_ids):
            into = chosen.get(query_id)
            if into is not None:
                low, high = each.starts[place : place + 2].tolist()
                rows = each.table.slice(low, high - low).to_pylist()
                for row, weight in zip(rows, each.weights[low:high].tolist(), strict=True):
                    folded[into][repr(row)] += weight
