"""Two streams and a table with thousands of rows: what the oracles of small examples are asked again of.

Batches are of 1 to 6,000 rows, keys go into the thousands, most strings come once; so structures of an engine
as a broker has it grow several times, labels and codes are given anew, and segments fill.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from engine.engine import Engine
from engine.model.batch import Batch
from engine.model.changes import Changes
from engine.model.source import DELETED
from engine.model.step import Register, Registration, StepResult, Unregister
from tests.differential.agreement import plain_rows
from tests.memory_state import MemoryState

SIZES = (1, 7, 300, 2, 6_000, 40, 1_500, 1, 3_000, 256, 4_097)
"""Rows of the batches, one after another."""
CLOCK_MS = 10**9
AT = "WITH (timestamp = 'ts', future_max = '100 days', idle_timeout = '100 days') RETAIN 1 DAY"
SOURCES = (
    f"""CREATE STREAM s (k STRING, g BIGINT, v DOUBLE, i INTEGER, p DECIMAL(9, 2), b BOOLEAN, made TIMESTAMP,
    ts TIMESTAMP NOT NULL) {AT}""",
    f"CREATE STREAM u (k STRING, g BIGINT, w DOUBLE, ts TIMESTAMP NOT NULL) {AT}",
    f"CREATE TABLE t (k STRING, n BIGINT, name STRING, ts TIMESTAMP NOT NULL, PRIMARY KEY (k)) {AT}",
)
LATEST = "(SELECT * FROM t QUALIFY row_number() OVER (PARTITION BY k ORDER BY place DESC) = 1)"
"""The rows of the table, in DuckDB."""


class Course:
    """An engine that takes one batch after another, and all rows that it took. seed: of the rows."""

    def __init__(self, seed: int, engine: Engine | None = None) -> None:
        self.engine = engine or Engine()
        self.rng = np.random.default_rng(seed)
        self.given: dict[str, list[pa.Table]] = {"s": [], "u": [], "t": []}
        self.batches: list[tuple[str, Batch]] = []
        """What was given, in order, as the engine took it."""
        self._store = MemoryState()
        self._now_ms = 1_000
        self._new = 0
        for sql in SOURCES:
            self.engine.create(sql, CLOCK_MS)

    def register(self, queries: dict[str, str], options: dict[str, str] | None = None) -> StepResult:
        """Queries come together."""
        made = tuple(Registration(id_, sql, options=options or {}) for id_, sql in queries.items())
        result = self.engine._now(Register(made), CLOCK_MS)
        assert not result.failed, result.failed
        return result

    def unregister(self, query_ids: Sequence[str]) -> StepResult:
        """They go together."""
        return self.engine._now(Unregister(tuple(query_ids)), CLOCK_MS)

    def run(self, sizes: Sequence[int] = SIZES) -> Iterator[StepResult]:
        """Each source gets a batch of each size in turn; the streams reach the same instants."""
        for place, size in enumerate(sizes):
            first = self._now_ms + 1
            self._now_ms += 1 + size // 3
            for name, rows in (("s", size), ("u", sizes[-1 - place] // 4 + 1), ("t", size // 5 + 1)):
                yield self._put(name, first, rows)

    def _put(self, name: str, first_ms: int, count: int) -> StepResult:
        stamps = np.sort(self.rng.integers(first_ms, self._now_ms + 1, count))
        stamps[-1] = self._now_ms  # all sources come as far
        table = pa.table(self._columns(name, count) | {"ts": pa.array(stamps, pa.timestamp("ms"))})
        offset = sum(map(len, self.given[name]))
        self.given[name].append(table)
        stored, offsets = self.engine.catalogue[name].stored_schema, np.arange(offset, offset + count)
        kept = table if name != "t" else table.append_column(DELETED.name, pa.array(np.zeros(count, bool)))
        batch = Batch.from_arrow(stored, kept, np.zeros(count), offsets, stamps)
        self.batches.append((name, batch))
        return self.engine.ingest(name, batch, CLOCK_MS)

    def _columns(self, name: str, n: int) -> dict[str, pa.Array]:
        rng = self.rng
        if name == "t":  # a few keys again and again, the others once
            columns = {"k": self._keys(n, known=0.3), "n": pa.array(rng.integers(0, 50, n))}
            return columns | {"name": self._some(self._strings(n))}
        columns = {
            "k": self._keys(n, known=0.5),
            "g": self._some(pa.array(rng.integers(0, 3_000, n))),
        }
        if name == "u":
            return columns | {"w": self._some(pa.array(rng.integers(-40, 4_000, n) / 4))}
        cents = [None if one < 0 else int(one) for one in rng.integers(-50, 10**6, n)]
        return columns | {
            "v": self._some(pa.array(rng.integers(-400, 40_000, n) / 8)),
            "i": self._some(pa.array(rng.integers(0, 100, n), pa.int32())),
            "p": pa.array(cents, pa.decimal128(9, 0)).cast(pa.decimal128(11, 2)).cast(pa.decimal128(9, 2)),
            "b": self._some(pa.array(rng.random(n) < 0.5)),
            "made": self._some(pa.array(rng.integers(0, 10**9, n), pa.timestamp("ms"))),
        }

    def _strings(self, n: int) -> pa.Array:
        """Ever new ones, in no order."""
        self._new += n
        return pa.array([f"{one:x}" for one in self.rng.integers(0, 2**62, n)])

    def _keys(self, n: int, known: float) -> pa.Array:
        """A share of known ones, of which there are some hundreds; the others are new."""
        new = self._strings(n).to_numpy(zero_copy_only=False)
        old = np.array([f"k{one}" for one in self.rng.zipf(1.3, n) % 700], object)
        return pa.array(np.where(self.rng.random(n) < known, old, new))

    def _some(self, array: pa.Array) -> pa.Array:
        """With NULL among them."""
        nulls = pa.array(self.rng.random(len(array)) < 0.02)
        return pc.if_else(nulls, pa.scalar(None, array.type), array)

    def restarted(self) -> None:
        """Saved, forgotten and restored."""
        self.engine.save(self._store)
        self.engine = Engine.restore(self._store)

    def answer(self, query_id: str) -> Counter[tuple[Any, ...]]:
        """The rows of an answer."""
        return Counter(plain_rows(self.engine.view().snapshot(query_id).table))

    def expected(self, sql: str) -> Counter[tuple[Any, ...]]:
        """What DuckDB answers over the rows up to NOW; ``place`` counts those of each source."""
        (now_ms,) = {source.now_ms for source in self.engine.view().sources()}
        with duckdb.connect() as database:
            database.execute("SET threads = 1")
            database.execute("SET TimeZone = 'UTC'")
            for name, tables in self.given.items():
                table = pa.concat_tables(tables)
                table = table.filter(pc.less_equal(table["ts"].cast(pa.int64()), now_ms))
                database.register(name, table.append_column("place", pa.array(np.arange(len(table)))))
            return Counter(plain_rows(database.sql(sql).to_arrow_table()))


class Folded:
    """By query the sum of its changes: never less than none of a row."""

    def __init__(self) -> None:
        self.rows: dict[str, Counter[tuple[Any, ...]]] = {}

    def add(self, result: StepResult) -> None:
        """What a step told."""
        assert not result.broken, result.broken
        for changes in result.changes:
            self._add(changes)

    def _add(self, changes: Changes) -> None:
        rows, weights = plain_rows(changes.table), changes.weights.tolist()
        for place, query_id in enumerate(changes.query_ids):
            held = self.rows.setdefault(query_id, Counter())
            for at in range(*changes.starts[place : place + 2].tolist()):
                held[rows[at]] += weights[at]
                if not held[rows[at]]:
                    del held[rows[at]]
            assert min(held.values(), default=0) >= 0, query_id

    def of(self, query_id: str) -> Counter[tuple[Any, ...]]:
        """The rows of a query."""
        return self.rows.get(query_id, Counter())
