"""A stream of keyed events and an engine over it, for benchmarks of answers that are followed.

Columns `id`, `k` (a key), `n` (0 to 999), `v` (a DOUBLE) and `ts`; so many rows a millisecond, in order, from
one partition. Made from a generator that the caller seeds.
"""

from collections.abc import Iterable, Iterator

import numpy as np

from engine.engine import Engine
from engine.model.batch import Batch, Column
from engine.model.source import Field, Schema
from engine.model.step import Register, Registration, StepResult
from engine.model.types import DOUBLE, INTEGER, TIMESTAMP
from engine.model.usage import Clock

SCHEMA = Schema(
    (
        Field("id", INTEGER),
        Field("k", INTEGER),
        Field("n", INTEGER),
        Field("v", DOUBLE),
        Field("ts", TIMESTAMP, nullable=False),
    )
)
REGISTERED_TOGETHER = 1_000


class Events:
    """An engine with streams of this kind, and their rows to come. One owner."""

    def __init__(
        self, rng: np.random.Generator, names: Iterable[str], retain_ms: int, clock: Clock | None = None
    ) -> None:
        """clock: the engine measures its entities by it."""
        self.engine = Engine(clock=clock)
        self._rng = rng
        self._rows = dict.fromkeys(names, 0)
        self._clock_ms = 0
        for name in self._rows:
            self.engine.create(
                f"CREATE STREAM {name} (id INTEGER, k INTEGER, n INTEGER, v DOUBLE, ts TIMESTAMP NOT NULL) "
                f"WITH (topic = '{name}', timestamp = 'ts') RETAIN {retain_ms} MILLISECONDS"
            )

    def register(self, texts: Iterable[str], options: dict[str, str] | None = None, first: int = 0) -> None:
        """Queries q0, q1, ... come, or from another number on. Raises the first refusal."""
        wanted = [
            Registration(f"q{place}", text, options=options or {}) for place, text in enumerate(texts, first)
        ]
        for first in range(0, len(wanted), REGISTERED_TOGETHER):
            some = tuple(wanted[first : first + REGISTERED_TOGETHER])
            self.engine._now(Register(some), self._clock_ms)

    def batches(self, name: str, count: int, rows: int, *, per_ms: float, keys: int) -> Iterator[Batch]:
        """So many batches of the next rows of a stream. per_ms: rows a millisecond. keys: how many."""
        for _ in range(count):
            first = self._rows[name]
            self._rows[name] = first + rows
            places = np.arange(first, first + rows)
            timestamp = (places / per_ms).astype(np.int64)
            columns = (
                Column(INTEGER, places.astype(np.int32)),
                Column(INTEGER, self._rng.integers(0, keys, rows, np.int32)),
                Column(INTEGER, self._rng.integers(0, 1_000, rows, np.int32)),
                Column(DOUBLE, self._rng.normal(size=rows)),
                Column(TIMESTAMP, timestamp),
            )
            yield Batch(SCHEMA, columns, np.zeros(rows, np.int32), places, timestamp)

    def ingest(self, name: str, batch: Batch) -> StepResult:
        """A step."""
        self._clock_ms = max(self._clock_ms, int(batch.timestamp[-1]))
        return self.engine.ingest(name, batch, self._clock_ms)
