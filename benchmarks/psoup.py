"""PSoup's workload, shared by several benchmarks: rows, queries, and an engine that holds both.

A stream of four integer columns of uniform values 0..255, ten rows a millisecond of event time. A query has
an interval predicate on each column with probability 0.7, `lo <= column < hi`, whose constants are multiples
of 32, so that a row satisfies about one query in nine. Made from a generator that the caller seeds.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from engine.engine import Engine
from engine.model.batch import BATCH_ROWS_MAX, Batch, Column
from engine.model.limits import Limits
from engine.model.source import Field, Schema
from engine.model.step import Position, Register, Registration, Step
from engine.model.types import INTEGER, TIMESTAMP

COLUMNS = ("a", "b", "c", "d")
SCHEMA = Schema((*(Field(name, INTEGER) for name in COLUMNS), Field("ts", TIMESTAMP, nullable=False)))
ROWS_PER_MS = 10

Bounds = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Rows:
    """values: int32[4, rows], one line a column; timestamp: int64[rows], ms, ascending."""

    values: npt.NDArray[np.int32]
    timestamp: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.timestamp)

    def batches(self) -> list[Batch]:
        """All rows, cut as a worker would read them, from one partition."""
        n = len(self.timestamp)
        return [
            self.batch(first, min(first + BATCH_ROWS_MAX, n), first) for first in range(0, n, BATCH_ROWS_MAX)
        ]

    def first(self, n: int) -> "Rows":
        """The first n of them."""
        return Rows(self.values[:, :n], self.timestamp[:n])

    def batch(self, first: int, end: int, offset: int) -> Batch:
        """Rows first .. end, with offsets from `offset` on."""
        columns = [Column(INTEGER, line[first:end].copy()) for line in self.values]
        timestamp = self.timestamp[first:end].copy()
        return Batch(
            SCHEMA,
            (*columns, Column(TIMESTAMP, timestamp)),
            np.zeros(end - first, np.int32),
            np.arange(offset, offset + end - first, dtype=np.int64),
            timestamp,
        )


def make_rows(rng: np.random.Generator, n: int, per_ms: int = ROWS_PER_MS) -> Rows:
    """Uniform values 0..255, `per_ms` rows a millisecond."""
    values = rng.integers(0, 256, (len(COLUMNS), n), np.int32)
    return Rows(values, np.arange(n, dtype=np.int64) // per_ms)


def make_bounds(rng: np.random.Generator, queries: int, grid: int = 32) -> Bounds:
    """int64[queries, 4, 2]: lo <= value < hi, multiples of `grid`; 0 and 256 where there is no predicate."""
    pairs = np.array([(lo, hi) for lo in range(0, 256, grid) for hi in range(lo + grid, 257, grid)])
    bounds = pairs[rng.integers(0, len(pairs), (queries, len(COLUMNS)))]
    bounds[rng.random((queries, len(COLUMNS))) >= 0.7] = (0, 256)
    return bounds


def condition(bounds: Bounds) -> str:
    """The predicate of one query, empty where it has none; bounds: int64[4, 2]."""
    return " AND ".join(
        f"{name} >= {lo} AND {name} < {hi}"
        for name, (lo, hi) in zip(COLUMNS, bounds.tolist(), strict=True)
        if (lo, hi) != (0, 256)
    )


def text(bounds: Bounds, outputs: str = "a, b, c, d", window: str = "") -> str:
    """The SELECT of one query; window: such as `[RANGE 5 SECONDS]`."""
    where = condition(bounds)
    return f"SELECT {outputs} FROM psoup{window and f' {window}'}{where and f' WHERE {where}'}"


def create(retain_ms: int, limits: Limits | None = None) -> Engine:
    """An engine with the stream and nothing in it."""
    engine = Engine(limits)
    columns = ", ".join(f"{name} INTEGER" for name in COLUMNS)
    engine.create(
        f"CREATE STREAM psoup ({columns}, ts TIMESTAMP NOT NULL) WITH (topic='psoup', timestamp='ts') "
        f"RETAIN {retain_ms} MILLISECONDS"
    )
    return engine


def register(engine: Engine, texts: Iterable[str], options: Mapping[str, str] | None = None) -> None:
    """Register the texts as q0, q1, ... in one step. Raises RuntimeError where one is refused."""
    register_named(engine, {f"q{n}": sql for n, sql in enumerate(texts)}, options)


def register_named(
    engine: Engine, texts: Mapping[str, str], options: Mapping[str, str] | None = None
) -> None:
    """Register texts under their names in one step. Raises RuntimeError where one is refused."""
    options = options or {}
    apply(engine, Register(tuple(Registration(name, sql, options=options) for name, sql in texts.items())))


def apply(engine: Engine, body: Register) -> None:
    """One step of registrations. Raises RuntimeError where one is refused."""
    last = engine.position
    engine.enqueue(Step(Position(last.epoch, last.sequence + 1), 0, body))
    failed = engine.run()[-1].failed
    if failed:
        raise RuntimeError(f"{len(failed)} queries were refused, as {next(iter(failed.values()))!r}")


def matches(bounds: Bounds, values: npt.NDArray[np.int32]) -> npt.NDArray[np.bool_]:
    """bool[rows]: which rows one query wants; bounds: int64[4, 2]."""
    low, high = bounds[:, :1], bounds[:, 1:]
    return ((values >= low) & (values < high)).all(axis=0)


def fill(engine: Engine, rows: Rows) -> None:
    """Bring the rows in, and one beyond them, so that NOW comes to the last of them and sees them all."""
    clock_ms = int(rows.timestamp[-1]) + 1
    for batch in rows.batches():
        engine.ingest("psoup", batch, clock_ms)
    one = np.array([clock_ms])
    columns = [Column(INTEGER, np.array([-1], np.int32)) for _ in COLUMNS]
    beyond = (*columns, Column(TIMESTAMP, one))
    engine.ingest("psoup", Batch(SCHEMA, beyond, np.zeros(1, np.int32), np.array([len(rows)]), one), clock_ms)
