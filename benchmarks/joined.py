"""The workload of joins, shared by several benchmarks: rows, queries, an engine that holds both, and numpy.

Two or more streams s0, s1, ... of integer columns k, uniform over `keys` values, and v, uniform over 0..255.
Rows come to each in turn, one a millisecond. A query joins the streams on k over the last rows of each, and
with probability 0.7 asks for an interval of v on a stream, `lo <= v < hi`, whose constants are multiples of
32. Made from a generator that the caller seeds.
"""

import gc
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from benchmarks import psoup
from benchmarks.psoup import Bounds
from benchmarks.timing import Timing
from engine.engine import Engine
from engine.model.batch import BATCH_ROWS_MAX, Batch, Column
from engine.model.limits import Limits
from engine.model.source import Field, Schema
from engine.model.types import INTEGER, TIMESTAMP

SCHEMA = Schema((Field("k", INTEGER), Field("v", INTEGER), Field("ts", TIMESTAMP, nullable=False)))
VALUES = 256
GRID = 32
STRETCHES = 5


@dataclass(frozen=True, slots=True)
class Rows:
    """k, v: int32[rows]; row i is of stream i % ways, its instant is i ms. values: v is below."""

    ways: int
    k: npt.NDArray[np.int32]
    v: npt.NDArray[np.int32]
    values: int = VALUES

    def __len__(self) -> int:
        return len(self.k)

    def steps(self, start: int = 0) -> list[list[Batch]]:
        """From row ``start`` on, a full batch of each stream after another."""
        size = self.ways * BATCH_ROWS_MAX
        return [
            [self.batch(place, first, min(first + size, len(self))) for place in range(self.ways)]
            for first in range(start, len(self), size)
        ]

    def batch(self, place: int, first: int, end: int) -> Batch:
        """The rows of one stream among these."""
        chosen = np.arange(first, end)
        chosen = chosen[chosen % self.ways == place]
        columns = (
            Column(INTEGER, self.k[chosen]),
            Column(INTEGER, self.v[chosen]),
            Column(TIMESTAMP, chosen),
        )
        return Batch(SCHEMA, columns, np.zeros(len(chosen), np.int32), chosen // self.ways, chosen)

    def take(self, places: npt.NDArray[np.int64]) -> "Rows":
        """The rows at these places, as many of each stream in turn."""
        return Rows(self.ways, self.k[places], self.v[places], self.values)


def make_rows(rng: np.random.Generator, n: int, ways: int, keys: int, values: int = VALUES) -> Rows:
    """Uniform keys and values; n is a multiple of ways."""
    return Rows(ways, rng.integers(0, keys, n, np.int32), rng.integers(0, values, n, np.int32), values)


def make_bounds(rng: np.random.Generator, queries: int, ways: int, rate: float = 0.7) -> Bounds:
    """int64[queries, ways, 2]: lo <= v < hi on each stream, 0 and 256 where there is no predicate. rate: how
    often there is one.
    """
    low = rng.integers(0, VALUES // GRID, (queries, ways))
    high = low + 1 + rng.integers(0, VALUES // GRID, (queries, ways)) % (VALUES // GRID - low)
    bounds = GRID * np.stack([low, high], axis=2)
    bounds[rng.random((queries, ways)) >= rate] = (0, VALUES)
    return bounds


def text(bounds: Bounds, window: int, outputs: str = "s0.k, s0.v, s1.v AS w", values: int = VALUES) -> str:
    """The SELECT of one query; bounds: int64[ways, 2], there is no predicate where they hold all values."""
    joins = "".join(
        f" JOIN s{place} [ROWS {window}] ON s{place - 1}.k = s{place}.k" for place in range(1, len(bounds))
    )
    wanted = " AND ".join(
        f"s{place}.v >= {lo} AND s{place}.v < {hi}"
        for place, (lo, hi) in enumerate(bounds.tolist())
        if (lo, hi) != (0, values)
    )
    return f"SELECT {outputs} FROM s0 [ROWS {window}]{joins}{wanted and f' WHERE {wanted}'}"


def create(ways: int, limits: Limits | None = None) -> Engine:
    """An engine with the streams and nothing in them."""
    engine = Engine(limits)
    for place in range(ways):
        engine.create(
            f"CREATE STREAM s{place} (k INTEGER, v INTEGER, ts TIMESTAMP NOT NULL) "
            f"WITH (topic='s{place}', timestamp='ts') RETAIN 1 SECONDS"
        )
    return engine


def ingest(engine: Engine, steps: Iterable[Sequence[Batch]], clock_ms: int) -> None:
    """Batches of all streams, in turn."""
    for batches in steps:
        for place, batch in enumerate(batches):
            engine.ingest(f"s{place}", batch, clock_ms)


def close(engine: Engine, rows: Rows) -> None:
    """A row beyond the last in each stream, so that NOW comes to the last of them and sees them all."""
    n = len(rows)
    beyond = Rows(rows.ways, np.full(n + rows.ways, -1, np.int32), np.zeros(n + rows.ways, np.int32))
    ingest(engine, [[beyond.batch(place, n, n + rows.ways) for place in range(rows.ways)]], n + rows.ways)


def lengths(rows: int, ways: int, window: int) -> tuple[int, int]:
    """How many rows (come before the clock starts, are a timed stretch) of about so many timed ones."""
    size = ways * BATCH_ROWS_MAX
    return -(-2 * ways * window // size) * size, -(-rows // (STRETCHES * size)) * size


def measure(
    engine: Engine, rows: Rows, bounds: Bounds, window: int, warm_up: int, stretch: int
) -> tuple[Timing, float]:
    """(time of each stretch, seconds to register) of a fresh engine."""
    began = time.perf_counter()
    psoup.register(engine, (text(one, window, values=rows.values) for one in bounds))
    register_s = time.perf_counter() - began
    steps = rows.steps()
    size = rows.ways * BATCH_ROWS_MAX
    clock_ms = len(rows)
    ingest(engine, steps[: warm_up // size], clock_ms)
    seconds = []
    gc.collect()
    for first in range(warm_up // size, len(steps), stretch // size):
        began = time.perf_counter()
        ingest(engine, steps[first : first + stretch // size], clock_ms)
        seconds.append(time.perf_counter() - began)
    close(engine, rows)
    return Timing(tuple(seconds)), register_s


def matching(rows: Rows, bounds: Bounds) -> npt.NDArray[np.bool_]:
    """bool[rows]: which rows satisfy a query's predicate on their stream."""
    lo, hi = bounds[np.arange(len(rows)) % rows.ways].T
    return (rows.v >= lo) & (rows.v < hi)


def held(rows: Rows, bounds: Bounds, window: int) -> int:
    """How many combinations a query's answer has when all rows are visible."""
    wanted = matching(rows, bounds)
    counts = []
    for place in range(rows.ways):
        last = np.arange(place, len(rows), rows.ways)[-window:]
        keys = rows.k[last][wanted[last]]
        counts.append(np.bincount(keys, minlength=int(rows.k.max()) + 1))
    return int(np.prod(counts, axis=0).sum())


def entering(rows: Rows, bounds: Bounds, window: int, start: int) -> int:
    """How many combinations of a query enter with the rows from ``start`` on."""
    wanted = matching(rows, bounds)
    n = len(rows) + 1
    new = np.flatnonzero(wanted)
    new = new[new >= start]
    partners = np.zeros((len(new), rows.ways), np.int64)
    for place in range(rows.ways):
        mine = np.arange(place, len(rows), rows.ways)
        there = mine[wanted[mine]]
        ordered = np.sort(rows.k[there].astype(np.int64) * n + there)
        seen = (new - place + rows.ways - 1) // rows.ways  # rows of the stream before the new one
        oldest = np.maximum(0, seen - window) * rows.ways + place
        keys = rows.k[new].astype(np.int64) * n
        partners[:, place] = np.searchsorted(ordered, keys + new) - np.searchsorted(ordered, keys + oldest)
        partners[new % rows.ways == place, place] = 1
    return int(partners.prod(axis=1).sum())
