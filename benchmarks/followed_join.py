"""Bytes of a followed equijoin of two windows of a million rows, by structure, and what its rows cost.

One query with EMIT CHANGES over two streams of 8 rows a millisecond, `s.k = u.k`, keys uniform over as many
values as a window has rows: a row has a partner on average, and most keys have one row or two. The windows
are filled, then some more rows come, in batches of 8,192 of each stream in turn; they are timed (the
processor's time of steps). Columns of rows are apart: they are there once, whoever reads them.

Two structures know the rows by their keys: the operator of the graph that changes come from, and the indexes
that the answer is read by when it is fetched. Bytes are those of the arrays that are held, divided by the
rows of both windows: a row, with its key.

Figures: `bytes_per_row.changes.rows`, rows of the operator, their chains and who accepts them;
`bytes_per_row.changes.keys`, numbers of keys; `bytes_per_row.indexes`, of both sides; `bytes_per_row.stored`,
these together; `bytes_per_row.composites`, pairs of rows that are kept for fetches; `bytes_per_row.copies`,
rows of the answer, which are counted since equal ones are told as copies; `bytes_per_row.columns`;
`keys_per_row`, distinct keys of both windows; `rows_per_s`, rows of both streams; `spread`.
"""

import argparse
import gc
import sys
import time

import numpy as np

from benchmarks.events import Events
from benchmarks.report import Figure, Report
from benchmarks.timing import Timing
from engine.dataflow.operators.window_join import WindowJoinNode

PER_MS = 8
BATCH = 8_192
STREAMS = ("s", "u")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options besides those that every benchmark has."""
    parser.add_argument("--window", type=int, default=1_000_000, help="rows of each (default: %(default)s)")
    parser.add_argument("--keys", type=int, help="how many there are (default: as many as rows of a window)")
    parser.add_argument("--rounds", type=int, default=20, help="timed batches of each (default: %(default)s)")


def run(options: argparse.Namespace) -> Report:
    """Fill the windows, time what comes then, and count."""
    window, rounds = options.window - options.window % PER_MS or PER_MS, options.rounds
    keys = options.keys or window
    events = Events(np.random.default_rng(options.seed), STREAMS, 1_000)
    of_time = f"[RANGE {window // PER_MS - 1} MILLISECONDS]"
    events.register(
        [f"SELECT s.id, u.id AS other FROM s {of_time} JOIN u {of_time} ON s.k = u.k EMIT CHANGES"]
    )
    filled = -(-window // BATCH) + 1
    streams = [
        events.batches(name, filled + rounds, BATCH, per_ms=float(PER_MS), keys=keys) for name in STREAMS
    ]
    seconds = []
    gc.collect()
    gc.disable()
    for place, batches in enumerate(zip(*streams, strict=True)):
        began = time.process_time()
        for name, batch in zip(STREAMS, batches, strict=True):
            events.ingest(name, batch)
        if place >= filled:
            seconds.append(time.process_time() - began)
    gc.enable()
    timing = Timing(tuple(seconds))
    rows_per_s = timing.per_s(BATCH * len(STREAMS))
    print(f"{rows_per_s:,.0f} rows/s", file=sys.stderr)
    figures: dict[str, Figure] = {"rows_per_s": rows_per_s, "spread": timing.spread}
    return Report(figures | held(events))


def held(events: Events) -> dict[str, Figure]:
    """Bytes by structure a row of both windows."""
    (graph,) = events.engine._following.graphs.by_set.values()
    (join,) = [node for node in graph.nodes.by_key.values() if isinstance(node, WindowJoinNode)]
    footprint, rows = events.engine.footprint(), join.rows
    keys = join.keys_nbytes
    found = {
        "changes.rows": join.nbytes - keys,
        "changes.keys": keys,
        "indexes": footprint.indexes,
        "stored": join.nbytes + footprint.indexes,
        "composites": footprint.composites,
        "copies": footprint.changes - graph.nodes.nbytes,
        "columns": footprint.rows,
    }
    figures: dict[str, Figure] = {f"bytes_per_row.{name}": nbytes / rows for name, nbytes in found.items()}
    return figures | {"keys_per_row": join.keys / rows}
