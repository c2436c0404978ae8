"""NOW jumps past two million live results: what it takes to forget them.

The results are those of query 1 with telnet over windows of 200,000 units, in the structures that a strategy
keeps them in: a calendar of partitions (UPA), one with an index of its entries, a list in order of arrival
that is scanned (DIRECT). Where nobody follows, a passed partition is dropped unread; where somebody does, all
that leave are handed over as arrays, in the order of their exits, and that takes as long as there are many.

`--engine` does the same through an engine whose query is followed: a row of each link far beyond the last
ones, so that all rows leave both windows and all results the answer, whose changes come as columns.

Figures: `results`, how many there were; `jump_ms` and `deletions_per_s`, of a calendar with ten partitions
where nobody follows and where somebody does; `jump_ms.<structure>`, `deletions_per_s.<structure>`;
`engine_deletions_per_s.<strategy>`, `engine_jump_ms.<strategy>`.
"""

from __future__ import annotations

import argparse
import gc
import time
from collections.abc import Callable, Mapping
from statistics import median

import numpy as np

from benchmarks.connections import UNIT_MS, Connections, make_connections
from benchmarks.link_queries import pairs
from benchmarks.report import Figure, Report
from benchmarks.update_patterns import EMIT, LABELS, STRATEGIES, Drive, window_clause
from engine.dataflow.buffers.buffer import Buffer
from engine.dataflow.buffers.calendar import Calendar
from engine.dataflow.buffers.indexed import Indexed
from engine.dataflow.buffers.scanned import ScannedBuffer
from engine.model.batch import BATCH_ROWS_MAX, Int64Array
from engine.model.runs import places_of

PROTOCOL = "telnet"
BATCH = 100_000
"""Results come into a structure by so many."""

STRUCTURES: Mapping[str, Callable[[int], Buffer]] = {
    "calendar10": lambda span: Calendar(span, 10),
    "calendar50": lambda span: Calendar(span, 50),
    "calendar10_in_arrival_order": lambda span: Calendar(span, 10, ordered=False),
    "indexed10": lambda span: Indexed(span, 10),
    "scanned": lambda span: ScannedBuffer(),
}
MAIN = "calendar10"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options besides those that every benchmark has."""
    parser.add_argument("--window", type=int, default=200_000, help="units (default: %(default)s)")
    parser.add_argument("--times", type=int, default=5, help="repeats (default: %(default)s)")
    parser.add_argument(
        "--engine", action=argparse.BooleanOptionalAction, default=True, help="through an engine as well"
    )
    parser.add_argument(
        "--strategies", nargs="+", choices=STRATEGIES, default=["nt", "direct", "upa10", "upa50"]
    )


def run(options: argparse.Namespace) -> Report:
    """Each structure, then each strategy."""
    window = options.window
    rows = make_connections(np.random.default_rng(options.seed), window + 4 * BATCH_ROWS_MAX)
    exits = exits_of(rows, window)
    span = 2 * UNIT_MS * window  # instants are halves of milliseconds
    figures: dict[str, Figure] = {"results": len(exits)}
    for structure, make in STRUCTURES.items():
        dropping = [jump(make(span), exits, lambda buffer: buffer.drop(span)) for _ in range(options.times)]
        taking = [jump(make(span), exits, lambda buffer: buffer.take(span)) for _ in range(options.times)]
        figures[f"jump_ms.{structure}"] = ms = 1e3 * median(dropping)
        figures[f"deletions_per_s.{structure}"] = per_s = len(exits) / median(taking)
        print(f"{structure}: {ms:.3f} ms where nobody follows, else {per_s:,.0f} deletions/s")
    for strategy in options.strategies if options.engine else ():
        jumps = [through_engine(rows, window, strategy) for _ in range(max(1, options.times // 2))]
        deletions = jumps[0][1]
        figures[f"engine_jump_ms.{strategy}"] = ms = 1e3 * median(seconds for seconds, _ in jumps)
        figures[f"engine_deletions_per_s.{strategy}"] = deletions / (ms / 1e3)
        print(f"{LABELS[strategy]}, through an engine: {deletions:,} deletions in {ms:.1f} ms")
    figures["jump_ms"] = figures[f"jump_ms.{MAIN}"]
    figures["deletions_per_s"] = figures[f"deletions_per_s.{MAIN}"]
    return Report(figures)


def exits_of(rows: Connections, window: int) -> Int64Array:
    """int64[n], instants in halves of milliseconds, from 1 on: when each result of query 1 leaves that is
    there after the first full window, in the order in which they enter.
    """
    inside = rows.of(PROTOCOL)[:2, :window]
    one, other = (np.flatnonzero(inside[link]) for link in range(2))
    order = np.argsort(rows.src[1, other], kind="stable")
    src = rows.src[1, other][order]
    low, high = (np.searchsorted(src, rows.src[0, one], side=side) for side in ("left", "right"))
    left = np.repeat(one, high - low)
    right = other[order[places_of(low, high - low)]]
    entry, oldest = np.maximum(left, right), np.minimum(left, right)
    return 2 * UNIT_MS * (oldest[np.argsort(entry, kind="stable")] + 1)


def jump(buffer: Buffer, exits: Int64Array, past: Callable[[Buffer], object]) -> float:
    """Seconds that a buffer with all results takes for a jump past them. Raises RuntimeError if some stay."""
    buffer.take(0)  # the clock
    for first in range(0, len(exits), BATCH):
        some = exits[first : first + BATCH]
        buffer.insert(np.arange(first, first + len(some), dtype=np.int32), some)
    gc.collect()
    began = time.process_time()
    past(buffer)
    seconds = time.process_time() - began
    if buffer.work.deleted < len(exits) or len(buffer):
        raise RuntimeError(f"{len(buffer)} of {len(exits)} results are still there")
    return seconds


def through_engine(rows: Connections, window: int, strategy: str) -> tuple[float, int]:
    """(seconds of the steps that let all go, how many deletions they told)."""
    query = pairs(PROTOCOL)
    drive = Drive(rows, query.links, window, BATCH_ROWS_MAX)
    text = query.text(window_clause(window)) + EMIT
    drive.register({"q": text}, {"maintenance": "none", **STRATEGIES[strategy]})
    while drive.units < window:
        drive.step()
    gc.collect()
    seconds, results = drive.jump(3 * window)
    deletions = sum(int((changes.weights < 0).sum()) for result in results for changes in result.changes)
    return seconds, deletions
