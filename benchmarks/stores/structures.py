"""Lines by structure, T1 to T4, and what their insertions and visits take on this machine."""

from __future__ import annotations

import argparse
import time
from functools import cache

from benchmarks.stores.costs import PAPER, STRUCTURES, Costs
from benchmarks.stores.promising import STORES, Promising, batch_of, definition, stream
from benchmarks.stores.runs import WINDOW_S, Line
from benchmarks.stores.sales import draw
from benchmarks.stores.simple import without_summary
from benchmarks.timing import repeat
from engine.model.types import INTEGER
from engine.stems.data_stem import DataStem
from engine.stems.query_stem import QueryStem
from engine.summaries.summary import Summary

BATCH = 4_096
MEASURED_S = 150
"""Seconds of sales whose insertion is measured."""
VISITED_S, VISITED_GAP, VISITED_STEP_MS = 120, 10, 5_000
"""Sales over which visits are measured: seconds, gap, and ms of a step."""


def structures(costs: Costs, step_ms: int) -> dict[str, Line]:
    """The join by each, with the most frequent items first."""
    lines: dict[str, Line] = {"t1": without_summary(costs)}
    for name in STRUCTURES[1:]:
        lines[name] = Promising(structure=name, costs=costs, step_ms=step_ms)
    return lines


def costs_of(options: argparse.Namespace) -> Costs:
    """Those of the clock that is asked for: the paper's, or with insertions as measured beside a visit."""
    if options.clock == "paper":
        return PAPER
    return measured(options.seed, min(VISITED_S, options.seconds))


@cache
def measured(seed: int, seconds: float) -> Costs:
    """A visit stays 2.5 units; an insertion is what it takes here beside a visit of the promising set, in
    steps of many rows: to store a row, to summarise it, and to take it into the set.
    """
    rows = draw(seed, seconds, VISITED_GAP)
    line = Promising(step_ms=VISITED_STEP_MS)
    line.timed(draw(seed, 2, VISITED_GAP), 1_000 * WINDOW_S)  # compiles
    output, took = line.timed(rows, 1_000 * WINDOW_S)
    unit_ns = 1e9 * took.spend_s / max(1, output.visits) / PAPER.visit
    arrive_ns = 1e9 * took.arrive_s / len(rows)
    insertion = {
        name: (insert_ns(name, seed) + (arrive_ns if name != "t1" else 0.0)) / unit_ns for name in STRUCTURES
    }
    told = ", ".join(f"{name} {units:.3f}" for name, units in insertion.items())
    print(f"a visit takes {unit_ns * PAPER.visit:.0f} ns, 2.5 units; insertions in units: {told}")
    return Costs(insertion=insertion)


def insert_ns(structure: str, seed: int) -> float:
    """What it takes to store a row and to summarise it, in batches."""
    sales = draw(seed, MEASURED_S, 10).of(0)
    name = STORES[0]
    source = stream(name, MEASURED_S)
    batches = [
        batch_of(sales.part(slice(first, first + BATCH)), source, first)
        for first in range(0, len(sales), BATCH)
    ]

    def enter() -> None:
        stem = DataStem(source.stored_schema, QueryStem(source.stored_schema))
        summary = None if structure == "t1" else Summary(definition(name, structure), INTEGER)
        for place, batch in enumerate(batches):
            stem.append(batch)
            if summary is not None:
                summary.enter(batch.columns[0], batch.timestamp, place * BATCH)
                summary.advance(int(batch.timestamp[-1]))

    return 1e9 * repeat(enter, times=3, clock=time.process_time).median_s / len(sales)
