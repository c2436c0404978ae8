"""State buffers: more partitions, or a longer interval between expiries, trade memory for time.

Entries come at a steady rate with exits uniform over the span ahead of the clock, as those of pairs of rows
of two windows are; one in a hundred leaves before its exit by a negative tuple. Places that leave are used
again.

With a varying number of partitions, a calendar whose entries leave at each step, in order: a negative tuple
has its partition searched, an entry that comes into the partition of the clock goes through a heap. With a
varying interval, a calendar of ten partitions whose entries leave as late as the interval allows, partition
by partition, and beside it a list that is scanned: both hold entries that are past their exit.

Figures, each `.p<partitions>` and `.i<interval as a share of the span>`, and with `.scanned` behind it of the
list: `ns_per_entry`, to insert it and to take it out; `visited_per_entry`; `visited_per_negative`, for each
negative tuple alone, without intervals; `bytes_per_live`, all arrays, and `held_per_live`, entries, both on
average over the entries that are not past their exit.
"""

from __future__ import annotations

import argparse
import gc
import sys
import time
from dataclasses import dataclass

import numpy as np

from benchmarks.numbers import Numbers
from benchmarks.report import Figure, Plot, Report, Series
from engine.dataflow.buffers.buffer import Buffer
from engine.dataflow.buffers.calendar import Calendar
from engine.dataflow.buffers.scanned import ScannedBuffer
from engine.model.batch import Int32Array, Int64Array

SPAN = 2_000_000
"""Halves of ms."""
STEPS = 500
"""Steps in which a span passes."""
PREMATURE = 0.01
INTERVALS = 0.002, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options besides those that every benchmark has."""
    parser.add_argument("--live", type=int, default=200_000, help="live entries (default: %(default)s)")
    parser.add_argument(
        "--partitions",
        action=Numbers,
        nargs="+",
        default=[1, 2, 5, 10, 20, 50, 100, 500, 1_000, 5_000],
        help="(default: %(default)s)",
    )
    parser.add_argument(
        "--intervals", type=float, nargs="+", default=INTERVALS, help="of the span (default: %(default)s)"
    )


@dataclass(frozen=True, slots=True)
class Cost:
    """What an entry cost, and what a live one took."""

    ns: float
    visited: float
    negative: float
    """Visited for a negative tuple."""
    size: float
    """Bytes."""
    held: float
    """Entries."""


def run(options: argparse.Namespace) -> Report:
    """Each number of partitions, then each interval."""
    figures: dict[str, Figure] = {}
    by_partitions, by_interval, scanned = [], [], []
    for partitions in options.partitions:
        cost = measure(Calendar(SPAN, partitions), options.live, 1, PREMATURE, options.seed)
        by_partitions.append(cost)
        figures |= figures_of(cost, f"p{partitions}")
        figures[f"visited_per_negative.p{partitions}"] = cost.negative
        print(f"{partitions:,} partitions: {cost.ns:.0f} ns an entry, {cost.size:.1f} bytes", file=sys.stderr)
    for share in options.intervals:
        every = max(1, round(share * STEPS))
        for kept, buffer in ((by_interval, Calendar(SPAN, 10, ordered=False)), (scanned, ScannedBuffer())):
            cost = measure(buffer, options.live, every, 0, options.seed)
            kept.append(cost)
            figures |= figures_of(cost, f"i{share:g}" + ".scanned" * (kept is scanned))
        print(f"every {share:g} of the span: {by_interval[-1].ns:.0f} ns an entry", file=sys.stderr)
    return Report(figures, plots(options, by_partitions, by_interval, scanned))


def figures_of(cost: Cost, key: str) -> dict[str, Figure]:
    """The figures of one run; ``key`` ends their names."""
    return {
        f"ns_per_entry.{key}": cost.ns,
        f"visited_per_entry.{key}": cost.visited,
        f"bytes_per_live.{key}": cost.size,
        f"held_per_live.{key}": cost.held,
    }


def plots(
    options: argparse.Namespace, by_partitions: list[Cost], by_interval: list[Cost], scanned: list[Cost]
) -> list[Plot]:
    """Time and memory, by partitions and by interval."""
    partitions, intervals = options.partitions, list(options.intervals)
    return [
        Plot(
            "partitions",
            "entries visited for a negative tuple",
            [Series("calendar", partitions, [cost.negative for cost in by_partitions])],
            log=True,
        ),
        Plot(
            "partitions",
            "bytes a live entry",
            [Series("calendar", partitions, [cost.size for cost in by_partitions])],
            log=True,
        ),
        Plot(
            "interval / span",
            "entries visited for each entry",
            [
                Series("10 partitions", intervals, [cost.visited for cost in by_interval]),
                Series("scanned list", intervals, [cost.visited for cost in scanned]),
            ],
            log=True,
        ),
        Plot(
            "interval / span",
            "entries held for each live one",
            [
                Series("10 partitions", intervals, [cost.held for cost in by_interval]),
                Series("scanned list", intervals, [cost.held for cost in scanned]),
            ],
        ),
    ]


def measure(buffer: Buffer, live: int, every: int, premature: float, seed: int) -> Cost:
    """Over one span after another has filled the buffer. every: steps from one expiry to the next. Raises
    RuntimeError if other entries are there at last than should be.
    """
    rng = np.random.default_rng(seed)
    step, rate = SPAN // STEPS, 2 * live // STEPS
    free = Free()
    exits_of: Int64Array = np.zeros(0, np.int64)
    spent, sizes, held, negatives, searched = 0, list[float](), list[float](), 0, 0
    gc.collect()
    buffer.expire(0)
    for turn in range(1, 2 * STEPS + 1):
        now = turn * step
        if turn == STEPS + 1:
            before, spent, negatives, searched = buffer.work.visited, 0, 0, 0
        exits = now + rng.integers(1, SPAN + 1, rate)
        places = free.take(rate)
        if free.top > len(exits_of):
            exits_of = np.concatenate([exits_of, np.zeros(2 * free.top - len(exits_of), np.int64)])
        exits_of[places] = exits
        began = time.process_time_ns()
        buffer.insert(places, exits)
        left = buffer.expire(now) if turn % every == 0 else places[:0]
        spent += time.process_time_ns() - began
        exits_of[left] = 0
        free.give(left)
        if premature:
            gone = rng.choice(
                np.flatnonzero(exits_of > now), int(premature * rate) or 1, replace=False
            ).astype(np.int32)
            visited = buffer.work.visited
            began = time.process_time_ns()
            for place in range(len(gone)):
                buffer.remove(gone[place : place + 1], exits_of[gone[place : place + 1]])
            spent += time.process_time_ns() - began
            searched += buffer.work.visited - visited
            negatives += len(gone)
            exits_of[gone] = 0
            free.give(gone)
        if turn > STEPS:
            ahead = np.count_nonzero(exits_of > now)
            sizes.append(buffer.nbytes / max(1, ahead))
            held.append(len(buffer) / max(1, ahead))
    if sorted(buffer.live(now).tolist()) != np.flatnonzero(exits_of > now).tolist():
        raise RuntimeError("other entries are there than should be")
    entries = rate * STEPS
    visited = buffer.work.visited - before
    return Cost(
        spent / entries,
        visited / entries,
        searched / max(1, negatives),
        float(np.mean(sizes)),
        float(np.mean(held)),
    )


class Free:
    """Places that may be used."""

    def __init__(self) -> None:
        self._places: Int32Array = np.empty(0, np.int32)
        self.top = 0
        """Above all places that were."""

    def take(self, n: int) -> Int32Array:
        """Those that went last, then new ones."""
        again = self._places[max(0, len(self._places) - n) :]
        self._places = self._places[: len(self._places) - len(again)]
        new = np.arange(self.top, self.top + n - len(again), dtype=np.int32)
        self.top += len(new)
        return np.concatenate([again, new])

    def give(self, places: Int32Array) -> None:
        """These went."""
        self._places = np.concatenate([self._places, places])
