"""Memory after 100,000 queries came and went: adding and dropping for ever leaves it where it was.

Over 1,000 standing queries of PSoup's workload and the rows of a window, a cycle registers a query and drops
it; after each thousand cycles a batch of rows comes, and the engine is saved to a store, as a broker saves
it. 10,000 cycles run first, so that caches are full and arrays as large as they get. Some dropped slots are
taken by others that stay a while: of the queries that come, each waits behind 100 others for its end. At the
end the answers of standing queries are compared with numpy.

Figures: `bytes_grown_per_cycle`, by which resident memory grew from the warm-up's end to the end, a cycle;
`cycles_per_s`; `resident_mb`. The plot shows the memory all along.
"""

import argparse
import sys
import tempfile
import time
from collections import deque
from pathlib import Path

import numpy as np

from benchmarks import psoup
from benchmarks.psoup import ROWS_PER_MS, Rows
from benchmarks.report import Plot, Report, Series
from benchmarks.resident import resident_bytes
from engine.engine import Engine
from engine.model.batch import BATCH_ROWS_MAX
from storage.store import Store

BATCH_EVERY = 1_000
WAITING = 100
WARM_UP = 10_000
RETAINED = 4 * BATCH_ROWS_MAX
CHECKED = 40


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options besides those that every benchmark has."""
    parser.add_argument("--cycles", type=int, default=100_000, help="(default: %(default)s)")
    parser.add_argument(
        "--standing", type=int, default=1_000, help="queries that stay (default: %(default)s)"
    )


def run(options: argparse.Namespace) -> Report:
    """Cycle over a store of its own."""
    with tempfile.TemporaryDirectory() as directory, Store(Path(directory) / "store") as store:
        return cycles_over(store, options)


def cycles_over(store: Store, options: argparse.Namespace) -> Report:
    """Cycle, measuring after each hundredth."""
    rng = np.random.default_rng(options.seed)
    warm_up = min(WARM_UP, options.cycles)
    total = warm_up + options.cycles
    bounds = psoup.make_bounds(rng, options.standing)
    rows = psoup.make_rows(rng, (2 + total // BATCH_EVERY + RETAINED // BATCH_ROWS_MAX) * BATCH_ROWS_MAX)
    batches = deque(rows.batches())
    clock_ms = int(rows.timestamp[-1])
    engine = psoup.create(RETAINED // ROWS_PER_MS)
    psoup.register(engine, map(psoup.text, bounds))
    while len(batches) > total // BATCH_EVERY + 1:
        engine.ingest("psoup", batches.popleft(), clock_ms)
    passing = [psoup.text(one) for one in psoup.make_bounds(rng, 10_000)]
    waiting: deque[str] = deque()
    cycles, megabytes = [], []
    look = max(20, options.cycles // 100)
    before, began = 0, 0.0
    for cycle in range(total):
        if cycle == warm_up:
            before, began = resident_bytes(), time.perf_counter()
        if cycle >= warm_up and (cycle - warm_up) % look == 0:
            cycles.append(cycle - warm_up)
            megabytes.append(resident_bytes() / 1e6)
        engine.register(f"passing{cycle}", passing[cycle % len(passing)])
        waiting.append(f"passing{cycle}")
        if len(waiting) > WAITING:
            engine.unregister(waiting.popleft())
        if cycle % BATCH_EVERY == 0:
            engine.ingest("psoup", batches.popleft(), clock_ms)
            engine.save(store)
    seconds = time.perf_counter() - began
    after = resident_bytes()
    check(engine, rows, bounds)
    print(f"{before / 1e6:,.1f} MB before, {after / 1e6:,.1f} MB after", file=sys.stderr)
    return Report(
        {
            "bytes_grown_per_cycle": (after - before) / options.cycles,
            "cycles_per_s": options.cycles / seconds,
            "resident_mb": after / 1e6,
        },
        Plot("cycles", "resident memory, MB", [Series(f"{options.standing:,} standing", cycles, megabytes)]),
    )


def check(engine: Engine, rows: Rows, bounds: psoup.Bounds) -> None:
    """Compare some standing queries' answers with numpy. Raises RuntimeError."""
    view = engine.view()
    source = view.sources()[0]
    assert source.now_ms is not None
    assert source.retained_from_ms is not None
    inside = (rows.timestamp >= source.retained_from_ms) & (rows.timestamp <= source.now_ms)
    values = rows.values[:, inside]
    for place in range(0, len(bounds), max(1, len(bounds) // CHECKED)):
        expected = int(psoup.matches(bounds[place], values).sum())
        if view.snapshot(f"q{place}").table.num_rows != expected:
            raise RuntimeError(f"query {place} does not have the {expected} rows that numpy finds")
