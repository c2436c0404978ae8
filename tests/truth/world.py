"""Streams of rows that come evenly, whose values are drawn at random; answers at instants all over them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from engine.engine import Engine
from engine.model.allotment import Allotment
from engine.model.answer import Answer
from engine.model.batch import Batch, versions
from engine.model.shed import Shed
from engine.model.source import SourceName
from engine.model.step import Allocate, Body, Position, Records, Register, Registration, Step, StepResult

EVERY_MS = 4
"""Between two rows of a stream."""
WINDOW_MS = 4_000
ROWS = WINDOW_MS // EVERY_MS
"""Rows of a window."""
KEYS = 50
"""Values of k, which come as often as each other in every window, and of j, which are drawn at random."""
GROUPS = 4
"""Values of g."""
VALUES = 700
"""Values of r, drawn at random: many have a row or two in a window, others none. z goes by r, and some of its
values come many times as often as others."""
SPAN_MS = 40_000
INSTANTS = tuple(range(2 * WINDOW_MS, SPAN_MS, WINDOW_MS // 2 + 177))
MANY_INSTANTS = tuple(range(2 * WINDOW_MS, SPAN_MS, 277))


class World:
    """An engine with streams s, t and u and a table d. Its queries are fetched at INSTANTS."""

    def __init__(self, seed: int, retain: str = "1 HOUR") -> None:
        self.engine = Engine()
        self._rng = np.random.default_rng(seed)
        self._offsets: dict[str, int] = {}
        self.until_ms = 1
        for name in "stu":
            self.engine.create(
                f"CREATE STREAM {name} (k BIGINT, j BIGINT, g BIGINT, r BIGINT, z BIGINT, v BIGINT, "
                "x DOUBLE, id BIGINT, ts TIMESTAMP) "
                f"WITH (timestamp = 'ts') RETAIN {retain}"
            )
        self.engine.create("CREATE TABLE d (k BIGINT PRIMARY KEY, x DOUBLE)")
        keys = np.arange(KEYS + 1)  # the last one stays above NOW
        table = pa.table({"k": keys, "x": -np.log1p(-(keys + 0.5) / (KEYS + 1))})
        facts = self.engine.view().stream(SourceName("d"))
        stamps = np.where(keys == KEYS, 10**6, 1)
        batch = versions(facts, Batch.from_arrow(facts.schema, table, keys * 0, keys, stamps), keys < 0)
        self.engine.ingest("d", batch, 10**6)

    def feed(self, span_ms: int = SPAN_MS, shed: Mapping[str, int] | None = None) -> list[StepResult]:
        """Rows of all streams for so long. shed: of streams, the level at which these rows are."""
        found = []
        for name in "stu":
            level = (shed or {}).get(name)
            batch = self._batch(name, span_ms)
            first, until = int(batch.offset[0]), int(batch.offset[-1]) + 1
            sheds = None if level is None else Shed(level, {0: (first, until)})
            found.append(self.step(Records(SourceName(name), batch, {0: until}, shed=sheds)))
        self.until_ms += span_ms
        return found

    def _batch(self, name: str, span_ms: int) -> Batch:
        count, first = span_ms // EVERY_MS, self._offsets.get(name, 0)
        self._offsets[name] = first + count
        # Keys in rounds, each in another order: every window has each of them as often.
        rounds = [self._rng.permutation(KEYS) for _ in range(-(-count // KEYS))]
        stamps = self.until_ms + np.arange(count) * EVERY_MS + self._rng.integers(0, EVERY_MS, count)
        table = pa.table(
            {
                "k": np.concatenate(rounds)[:count],
                "j": self._rng.integers(0, KEYS, count),
                "g": self._rng.integers(0, GROUPS, count),
                "r": self._rng.integers(0, VALUES, count),
                "v": self._rng.integers(1, 100, count),
                "x": self._rng.exponential(10.0, count),
                "id": first + np.arange(count),
                "ts": pa.array(np.sort(stamps), pa.timestamp("ms")),
            }
        )
        r = table["r"].to_numpy()
        table = table.add_column(
            4, "z", pa.array((r / VALUES) ** 4 * KEYS, pa.float64()).cast(pa.int64(), safe=False)
        )
        schema = self.engine.catalogue[name].schema
        offsets = first + np.arange(count)
        return Batch.from_arrow(schema, table, np.zeros(count), offsets, np.sort(stamps))

    def step(self, body: Body) -> StepResult:
        """Apply a body as the next step; nothing of it is refused."""
        last = self.engine.position
        self.engine.enqueue(Step(Position(last.epoch, last.sequence + 1), self.until_ms + 10**6, body))
        (result,) = self.engine.run()
        assert not result.failed, result.failed
        return result

    def register(self, query_id: str, sql: str, **options: str) -> None:
        self.step(Register((Registration(query_id, sql, options=options),)))

    def unregister(self, *query_ids: str) -> None:
        for query_id in query_ids:
            self.engine.unregister(query_id)

    def give(self, allotments: Mapping[str, Allotment]) -> StepResult:
        return self.step(Allocate(tuple(allotments.items())))

    def answer(self, query_id: str, at_ms: int | None = None) -> Answer:
        return self.engine.view().snapshot(query_id, at=at_ms)


def rows_of(table: pa.Table) -> Counter[tuple[Any, ...]]:
    """As a bag."""
    return Counter(zip(*(column.to_pylist() for column in table.columns), strict=True))


def misses(due: pa.Table, given: pa.Table) -> tuple[int, int, int, int]:
    """(wrong rows, rows given, missing rows, rows due)."""
    wanted, there = rows_of(due), rows_of(given)
    right = sum((wanted & there).values())
    return there.total() - right, there.total(), wanted.total() - right, wanted.total()


def deviations(due: pa.Table, given: pa.Table, keys: int, columns: Sequence[str]) -> dict[str, list[float]]:
    """By aggregate: how far each group that both answers have is off, relative to its value."""
    found: dict[str, list[float]] = {name: [] for name in columns}
    mine = {tuple(list(row.values())[:keys]): row for row in given.to_pylist()}
    for row in due.to_pylist():
        other = mine.get(tuple(list(row.values())[:keys]))
        if other is None:
            continue
        for name in columns:
            if row[name]:
                found[name].append((other[name] or 0) / row[name] - 1.0)
    return found
