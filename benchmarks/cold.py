"""A window ten times as large as the memory for it: its rows are on disk, and answers read them there.

A stream of `rows` rows (two BIGINT columns, an INTEGER, a DOUBLE, a STRING of one of 100,000 values, the
instant), all of which are retained, in two engines one after another: one with memory for all, one whose
sealed rows leave memory beyond a tenth of what they take. Before each answer of the second the system takes
back all pages of these rows, so that all that is looked at is read from the disk; `cached` is the same while
the system has memory to keep them. Answers of both are compared.

| case | the query |
|---|---|
| `invocation` | the rows of one value of a hundred of the INTEGER column |
| `join` | how many of the rows of one value of a thousand have a partner among 10,000 rows, by number |
| `group` | COUNT and SUM of all rows by a column of 100 values |

Then rows come while a thread asks for the first answer again and again.

Figures: `ms.<case>.warm`, `.cold`, `.cached`; `ratio_to_warm.<case>` (how many times as long it takes cold),
`bytes_read_per_row.<case>` (of the disk, for each row of the answer's rows looked at, by the system's count);
`column_mb` (of all sealed rows), `memory_mb.warm` and `memory_mb.cold` (what the process holds and the system
cannot take back, less what it held before), `rows_per_s.warm`, `rows_per_s.cold` (ingestion, with the
spilling), `data_rate_ratio` (rows a second while answers are read cold, to the same with memory for all).
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import psutil
import pyarrow as pa

from benchmarks.report import Figure, Report
from benchmarks.timing import repeat
from broker.memory.held import held_bytes, trim
from engine.dataflow.buffers.settings import StateSettings
from engine.engine import Engine
from engine.model.batch import BATCH_ROWS_MAX, Batch
from engine.model.capacities import Capacities
from engine.model.limits import Limits
from engine.model.spill import Array
from storage.spill_files import SpillFiles

MB = 1e6
SHARE = 10
"""Rows take so many times the memory that they are given."""
NAMES = 100_000
PARTNERS = 10_000
WITHIN_S = 5.0
"""How long rows come while answers are read."""
QUERIES = {
    "invocation": "SELECT id, price FROM s WHERE part = 7",
    "join": "SELECT COUNT(*) AS n FROM s JOIN d [ROWS 10000] ON s.number = d.number WHERE s.id % 1000 = 7",
    "group": "SELECT part, COUNT(*) AS n, SUM(number) AS total FROM s GROUP BY part",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options besides those that every benchmark has."""
    parser.add_argument("--rows", type=int, default=10_000_000, help="retained (default: %(default)s)")
    parser.add_argument("--times", type=int, default=7, help="repeats of each answer (default: %(default)s)")
    parser.add_argument("--folder", type=Path, help="where the rows on disk go (default: the system's)")


class TenthInMemory:
    """Rows leave memory beyond so many bytes."""

    def __init__(self, files: SpillFiles, bytes_max: int) -> None:
        self._files = files
        self._max = bytes_max
        self.engine: Engine | None = None

    def wanted(self) -> int:
        """As :class:`engine.model.spill.SpillSpace` has it."""
        assert self.engine is not None
        held = sum(source.rows.nbytes()[0] for source in self.engine._sources.values())
        return max(0, held - self._max)

    def write(self, arrays: Sequence[Array]) -> list[Array] | None:
        """As :class:`engine.model.spill.SpillSpace` has it."""
        return self._files.write(arrays)


def run(options: argparse.Namespace) -> Report:
    """Both engines, one after another."""
    figures: dict[str, Figure] = {}
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        files = SpillFiles(Path(folder))
        warm, column_bytes = measured(options, "warm", None, lambda: None, figures)
        figures["column_mb"] = column_bytes / MB
        space = TenthInMemory(files, column_bytes // SHARE)
        cold, _ = measured(options, "cold", space, files.page_out, figures)
    for case in QUERIES:
        order = [(name, "ascending") for name in warm[case].column_names]
        if not warm[case].sort_by(order).equals(cold[case].sort_by(order)):
            raise RuntimeError(f"{case}: the answers of both engines differ")
        figures[f"ratio_to_warm.{case}"] = figures[f"ms.{case}.cold"] / figures[f"ms.{case}.warm"]
    figures["data_rate_ratio"] = figures["reading_rows_per_s.cold"] / figures["reading_rows_per_s.warm"]
    return Report(figures)


def measured(
    options: argparse.Namespace,
    name: str,
    space: TenthInMemory | None,
    page_out: Callable[[], None],
    figures: dict[str, Figure],
) -> tuple[dict[str, pa.Table], int]:
    """The answers of an engine, and the bytes of its columns; its figures are added."""
    trim()
    before = held_bytes()
    rng = np.random.default_rng(options.seed)
    engine = filled(rng, options.rows, name, space, figures)
    trim()
    figures[f"memory_mb.{name}"] = (held_bytes() - before) / MB
    column_bytes = engine._sources[next(iter(engine._sources))].rows.nbytes()[0]
    answers = {}
    for case in QUERIES:

        def ask(case: str = case) -> pa.Table:
            return engine.view().snapshot(case, rows_max=options.rows).table

        answers[case] = ask()
        timing = repeat(ask, times=options.times, prepare=page_out)
        figures[f"ms.{case}.{name}"] = timing.median_ms
        if space is not None:
            figures[f"ms.{case}.cached"] = repeat(ask, times=options.times).median_ms
            page_out()
            read = read_bytes()
            ask()
            figures[f"bytes_read_per_row.{case}"] = (read_bytes() - read) / options.rows
        print(f"{name}, {case}: {timing.median_ms:.1f} ms", file=sys.stderr)
    figures[f"reading_rows_per_s.{name}"] = while_read(engine, rng, options.rows, page_out)
    return answers, column_bytes


def filled(
    rng: np.random.Generator,
    rows: int,
    name: str,
    space: TenthInMemory | None,
    figures: dict[str, Figure],
) -> Engine:
    """An engine with all rows and queries."""
    engine = Engine(Limits(snapshot_rows_max=rows), state=StateSettings(Capacities(spill=space)))
    if space is not None:
        space.engine = engine
    retained = f"RETAIN {2 * rows} MILLISECONDS"
    columns = "id BIGINT, number BIGINT, part INTEGER, price DOUBLE, name STRING, ts TIMESTAMP NOT NULL"
    engine.create(f"CREATE STREAM s ({columns}) WITH (topic='s', timestamp='ts') {retained}")
    engine.create(
        f"CREATE STREAM d (number BIGINT, ts TIMESTAMP NOT NULL) WITH (topic='d', timestamp='ts') {retained}"
    )
    partners = {"number": np.arange(PARTNERS) * 7, "ts": np.arange(PARTNERS)}
    for first in range(0, PARTNERS, BATCH_ROWS_MAX):
        engine.ingest(
            "d",
            batch(engine, "d", {k: v[first : first + BATCH_ROWS_MAX] for k, v in partners.items()}, first),
        )
    engine.ingest("d", batch(engine, "d", {"number": np.array([0]), "ts": np.array([4 * rows])}, PARTNERS))
    for query, sql in QUERIES.items():
        engine.register(query, sql)
    took_s = 0.0
    for first in range(0, rows, BATCH_ROWS_MAX):
        coming = made(engine, rng, first, min(first + BATCH_ROWS_MAX, rows))
        began_s = time.perf_counter()
        engine.ingest("s", coming, first)
        took_s += time.perf_counter() - began_s
    figures[f"rows_per_s.{name}"] = rows / took_s
    return engine


def made(engine: Engine, rng: np.random.Generator, first: int, end: int) -> Batch:
    """Rows of these numbers; the instant of each is its number."""
    n = end - first
    names = pa.array(
        [f"name {one:06d} of the hundred thousand" for one in rng.integers(0, NAMES, n).tolist()]
    )
    columns = {
        "id": np.arange(first, end),
        "number": rng.integers(0, 7 * PARTNERS, n),
        "part": rng.integers(0, 100, n, np.int32),
        "price": rng.random(n),
        "name": names,
        "ts": np.arange(first, end),
    }
    return batch(engine, "s", columns, first)


def batch(
    engine: Engine, stream: str, columns: dict[str, npt.NDArray[np.generic] | pa.Array], first: int
) -> Batch:
    """A batch of these columns, its first offset given."""
    schema = engine.catalogue[stream].schema
    given = {
        name: pa.array(values).cast(pa.timestamp("ms")) if name == "ts" else pa.array(values)
        for name, values in columns.items()
    }
    n = len(columns["ts"])
    stamps = np.asarray(columns["ts"], np.int64)
    return Batch.from_arrow(
        schema, pa.table(given), np.zeros(n, np.int32), np.arange(first, first + n), stamps
    )


def while_read(engine: Engine, rng: np.random.Generator, first: int, page_out: Callable[[], None]) -> float:
    """Rows a second that come in while another thread asks for answers, one after another."""
    views, stop = [engine.view()], threading.Event()

    def ask() -> None:
        while not stop.is_set():
            page_out()
            views[-1].snapshot("invocation", rows_max=2 * first)

    coming = [made(engine, rng, first + n, first + n + BATCH_ROWS_MAX) for n in _batches()]
    thread = threading.Thread(target=ask)
    thread.start()
    began_s, entered = time.perf_counter(), 0
    while entered < len(coming) and time.perf_counter() - began_s < WITHIN_S:
        engine.ingest("s", coming[entered], first)
        entered += 1
        views[-1] = engine.view()
    took_s = time.perf_counter() - began_s
    stop.set()
    thread.join()
    return entered * BATCH_ROWS_MAX / took_s


def _batches() -> range:
    """Where the batches of some 2 million rows begin."""
    return range(0, 256 * BATCH_ROWS_MAX, BATCH_ROWS_MAX)


def read_bytes() -> int:
    """What this process had the system read from disks so far."""
    return int(psutil.Process().io_counters().read_bytes)
