"""Slots of zones: what is in one stays, and room that nobody needs any more is given back."""

from __future__ import annotations

import random

import numpy as np

from engine.engine import Engine
from engine.summaries.cells import SLOTS_MIN, CellPool
from tests.strategies import batch_of

GRANULARITY_MS = 1_000


def test_slots_keep_their_cells_while_the_array_grows_and_shrinks() -> None:
    chosen = random.Random(7)
    pool = CellPool(2, 3)
    held: dict[int, int] = {}
    sizes = set()
    for turn in range(3_000):
        many = 120 if turn % 1_000 < 400 else 3
        if len(held) < many and (chosen.random() < 0.7 or not held):
            slot = pool.take()
            assert slot not in held
            assert not pool.of(slot).counters.any()
            held[slot] = turn
            pool.of(slot).counters[:] = turn
        elif held:
            slot = chosen.choice(list(held))
            del held[slot]
            pool.free(slot)
        sizes.add(len(pool.cells.counters))
        assert all((pool.of(slot).counters == turn).all() for slot, turn in held.items())
    while held:
        pool.free(held.popitem()[0])
    assert len(pool.cells.counters) == SLOTS_MIN
    assert max(sizes) >= 128


def nbytes(steps: list[list[int]]) -> int:
    """The size of a summary after steps with rows at these instants."""
    engine = Engine()
    engine.create("CREATE STREAM s (k BIGINT, ts TIMESTAMP) WITH (timestamp = 'ts')")
    engine.create("CREATE SUMMARY of_k ON s (k) WITH GRANULARITY 1 SECOND AND COLLAPSE(4, 3)")
    source = engine._parts.sources["s"]
    offset = 0
    for at in steps:
        rows = [(0, offset + place, ms, (ms % 50, ms)) for place, ms in enumerate(at)]
        offset += len(at)
        engine.ingest("s", batch_of(source.stream.schema, rows), clock_ms=10**9)
    (summary,) = source.summarised.at_work.values()
    return int(summary.nbytes)


def test_a_step_of_many_zones_leaves_a_summary_no_larger_than_small_ones() -> None:
    instants = np.arange(0, 400 * GRANULARITY_MS, 100).tolist()
    few = nbytes([instants[first : first + 10] for first in range(0, len(instants), 10)])
    assert nbytes([instants]) <= 2 * few
    later = np.arange(400 * GRANULARITY_MS, 500 * GRANULARITY_MS, 100).tolist()
    small = [later[first : first + 10] for first in range(0, len(later), 10)]
    assert nbytes([instants, *small]) <= 2 * few
