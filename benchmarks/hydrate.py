"""What it takes to come to be followed over rows that are there, and to go on after a restart.

State of followed queries is not stored: it is made from the retained rows with the first step after a query
came. A GROUP BY over a million retained rows comes and emits its changes (`group`), then 64 more of its
shape, one a step (`more`) and 64 others together (`more64`). They differ in a constant, and every row
satisfies all. Time is that of the first step, of a few rows; `registered` is what came before: the text, the
matches with the retained rows and the first answer.

Then ten thousand queries of a shape stand, each over one row in a thousand; the engine is saved, and a new
one restored from that store, which gives an answer and takes a step that tells changes (`restart_s`).

Figures: `ms.group`, `ms.more`, `ms.more64`, `ms.step` (nobody came), `ms.registered`; `rows_visited.<of>`,
rows that the operators looked at in that step; `restart_s`, of it `restored_s`; `changes.restart`, told after
it. `duckdb_ms.group`: DuckDB's answer of the first query, over the same rows, on one thread.
"""

import argparse
import gc
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa

from benchmarks.events import Events
from benchmarks.followed import fold
from benchmarks.report import Figure, Report
from benchmarks.timing import Timing
from engine.dataflow.operator_tree import OperatorTree
from engine.engine import Engine
from engine.model.changes import Changes
from storage.store import Store

KEYS = 100
PER_MS = 100
STEP_ROWS = 2 * PER_MS
"""Rows of a step: enough to move NOW."""
BATCH = 50_000
SELECTED = 1_000
"""A query of the restart has one row in so many."""
COMPARED = 10
"""Queries whose changes after the restart are compared with their answers."""
WINDOW = "[RANGE 1 HOUR]"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options besides those that every benchmark has."""
    parser.add_argument(
        "--rows", type=int, default=1_000_000, help="that are retained (default: %(default)s)"
    )
    parser.add_argument("--more", type=int, default=64, help="queries that come later (default: %(default)s)")
    parser.add_argument(
        "--queries", type=int, default=10_000, help="that stand at a restart (default: %(default)s)"
    )


def run(options: argparse.Namespace) -> Report:
    """Queries come, after a small trial that compiles what is compiled at its first use, then the restart."""
    small = argparse.Namespace(seed=options.seed, rows=2 * BATCH, more=1, queries=10)
    coming(small)
    restarting(small)
    return Report(coming(options) | restarting(options))


def coming(options: argparse.Namespace) -> dict[str, Figure]:
    """Queries come one after the other."""
    events = filled(options)
    grouped = f"SELECT k, COUNT(*) AS n, SUM(v) AS total FROM events {WINDOW} WHERE id >= {{}} GROUP BY k"
    texts = [f"{grouped.format(-place)} EMIT CHANGES" for place in range(1 + 2 * options.more)]
    began = time.perf_counter()
    events.register(texts[:1])
    figures: dict[str, Figure] = {"ms.registered": 1e3 * (time.perf_counter() - began)}
    figures["ms.group"] = 1e3 * step(events)
    figures["rows_visited.group"] = before = visited(events)
    seconds = []
    for place in range(1, 1 + options.more):
        events.register(texts[place : place + 1], first=place)
        seconds.append(step(events))
    figures["ms.more"] = Timing(tuple(seconds)).median_ms
    figures["rows_visited.more"] = (visited(events) - before) / options.more
    events.register(texts[1 + options.more :], first=1 + options.more)
    before = visited(events)
    figures["ms.more64"] = 1e3 * step(events)
    figures["rows_visited.more64"] = visited(events) - before
    figures["ms.step"] = Timing(tuple(step(events) for _ in range(20))).median_ms
    figures["duckdb_ms.group"] = by_duckdb(events, grouped.format(0))
    for name in ("registered", "group", "more", "more64", "step"):
        print(f"{name}: {figures[f'ms.{name}']:.1f} ms", file=sys.stderr)
    return figures


def by_duckdb(events: Events, text: str) -> float:
    """What an answer over the rows takes DuckDB on one thread, in ms."""
    pieces = []
    for odd in (0, 1):  # an answer has a million rows at most
        events.engine.register("held", f"SELECT k, v, id FROM events {WINDOW} WHERE id % 2 = {odd}")
        pieces.append(events.engine.view().snapshot("held").table)
        events.engine.unregister("held")
    with duckdb.connect() as database:
        database.execute("SET threads = 1")
        database.register("held", pa.concat_tables(pieces))
        database.execute("CREATE TABLE events AS SELECT * FROM held")
        seconds = []
        for _ in range(5):
            began = time.perf_counter()
            database.sql(text.replace(WINDOW, "")).to_arrow_table()
            seconds.append(time.perf_counter() - began)
    return Timing(tuple(seconds)).median_ms


def restarting(options: argparse.Namespace) -> dict[str, Figure]:
    """An engine with followed queries is saved and restored."""
    events = filled(options)
    events.register(
        f"SELECT k, COUNT(*) AS n, SUM(v) AS total FROM events {WINDOW} "
        f"WHERE n = {place % SELECTED} AND id >= {-place} GROUP BY k EMIT CHANGES"
        for place in range(options.queries)
    )
    step(events)
    chosen = {f"q{place * options.queries // COMPARED}": place for place in range(COMPARED)}
    folded = [answer(events.engine, query_id) for query_id in chosen]
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder))
        events.engine.save(store)
        gc.collect()
        began = time.perf_counter()
        events.engine = Engine.restore(store)
        events.engine.view().snapshot("q0")
        restored_s = time.perf_counter() - began
        step_s, changes = timed(events)
        fold(folded, chosen, changes)
        for query_id, place in chosen.items():
            if answer(events.engine, query_id) != +folded[place]:
                raise RuntimeError(f"{query_id}: its changes do not add up to its answer")
    print(f"restart: {restored_s:.2f} s, and {step_s:.2f} s for a step", file=sys.stderr)
    return {
        "restart_s": restored_s + step_s,
        "restored_s": restored_s,
        "changes.restart": sum(map(len, changes)),
    }


def answer(engine: Engine, query_id: str) -> Counter[str]:
    """Its rows."""
    return Counter(map(repr, engine.view().snapshot(query_id).table.to_pylist()))


def filled(options: argparse.Namespace) -> Events:
    """Rows, and no queries."""
    events = Events(np.random.default_rng(options.seed), ["events"], 2 * 3_600_000)
    for batch in events.batches("events", -(-options.rows // BATCH), BATCH, per_ms=PER_MS, keys=KEYS):
        events.ingest("events", batch)
    return events


def step(events: Events) -> float:
    """A step of a few rows, in seconds."""
    return timed(events)[0]


def timed(events: Events) -> tuple[float, Sequence[Changes]]:
    """A step of a few rows, in seconds, and what it tells."""
    (batch,) = events.batches("events", 1, STEP_ROWS, per_ms=PER_MS, keys=KEYS)
    gc.collect()
    gc.disable()
    began = time.perf_counter()
    changes = events.ingest("events", batch).changes
    spent = time.perf_counter() - began
    gc.enable()
    return spent, changes


def visited(events: Events) -> int:
    """Rows that the operators of the queries looked at so far."""
    return looked_at(events.engine.explain(query_id="q0").graph)


def looked_at(tree: OperatorTree) -> int:
    """By an operator and those below it."""
    return tree.state.visited + sum(map(looked_at, tree.inputs))
