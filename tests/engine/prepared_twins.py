"""Twin engines, of which one prepares queries that come: both are to tell the same."""

from __future__ import annotations

import random
import re
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import engine.preparing
import engine.slices
import engine.stems.data_stem
import engine.stems.placement
import engine.stems.segment
from engine.engine import Engine
from engine.language.functions import BUILT_IN, FunctionCatalogue
from engine.model.batch import Batch
from engine.model.changes import Changes
from engine.model.limits import DEFAULT_LIMITS, Limits
from engine.model.source import SourceName
from engine.model.step import Backfill, Body, Position, Records, Register, Registration, Step, Unregister
from engine.preparing import Preparation
from tests.memory_state import MemoryState

CLOCK_MS = 10**9
PAIRS = (
    "SELECT x.a, y.ts FROM s [RANGE 20 MILLISECONDS] AS x, s [RANGE 30 MILLISECONDS] AS y "
    "WHERE x.a = y.b AND x.t LIKE '%a%' AND y.b < 17"
)


def make_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Segments of a few rows, cohorts of a few queries, slices of three rows; everything is dear."""
    monkeypatch.setattr(engine.preparing, "ALLOWANCE_NS", 0)
    monkeypatch.setattr(engine.preparing, "LARGE_ROWS", 1)
    monkeypatch.setattr(engine.stems.segment, "SEGMENT_ROWS", 24)
    monkeypatch.setattr(engine.stems.data_stem, "SEALED_MIN", 5)
    monkeypatch.setattr(engine.stems.placement, "SHARE_MAX", 0.15)
    monkeypatch.setattr(engine.stems.placement, "PATH_MIN", 2)
    monkeypatch.setattr(engine.stems.placement, "SAMPLE_MIN", 10)
    monkeypatch.setattr(engine.stems.placement, "REVISED_EVERY", 1)
    monkeypatch.setattr(engine.slices, "SLICE_ROWS", 3)
    monkeypatch.setattr(engine.slices, "SLICE_ROWS_MIN", 3)


class Slow:
    """A timer by which everything takes long, so that every slice is small."""

    def __init__(self) -> None:
        self._ns = 0

    def __call__(self) -> int:
        self._ns += 10**9
        return self._ns


class Twins:
    """Two engines that take the same steps. Of one queries are prepared."""

    def __init__(
        self,
        seed: int,
        kind: str = "STREAM",
        functions: FunctionCatalogue = BUILT_IN,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        """kind: of their source ``s``; ``BOTH``: a stream, beside a table ``d``."""
        self.rng = random.Random(seed)
        self.kinds = {"s": "STREAM", "d": "TABLE"} if kind == "BOTH" else {"s": kind}
        self.functions = functions
        self.limits = limits
        self.timed = Engine(limits, timer=Slow(), functions=functions)
        self.plain = Engine(limits, functions=functions)
        self.number = self.stamp = 0
        self.preparing: dict[str, tuple[Registration, Preparation]] = {}
        self.standing: list[str] = []
        self.store = MemoryState()
        for name, of in self.kinds.items():
            key = ", PRIMARY KEY (b)" if of == "TABLE" else ""
            sql = f"CREATE {of} {name} (a INTEGER, b INTEGER, t STRING, ts TIMESTAMP{key}) "
            for each in (self.timed, self.plain):
                each.create(f"{sql} WITH (timestamp = 'ts') RETAIN 150 MILLISECONDS", CLOCK_MS)

    def step(self, body: Body) -> None:
        timed, plain = [self.apply(each, body) for each in (self.timed, self.plain)]
        assert timed == plain

    def apply(self, one: Engine, body: Body) -> list[tuple[Any, ...]]:
        """What one of them tells of a step, in no order."""
        one.enqueue(Step(Position(0, one.position.sequence + 1), CLOCK_MS, body))
        (result,) = one.run()
        assert not result.failed
        assert not result.broken
        return sorted((row for each in result.changes for row in rows_of(each)), key=repr)

    def registration(self) -> Registration:
        self.number += 1
        value = self.rng.randrange(20)
        condition = self.rng.choice(
            [
                f"t LIKE '%{self.rng.choice('abc')}%'",
                f"10 / (a - {value}) > 1",
                f"a = {value} AND 7 / (b - 2) > 0",
                f"a < {value} AND t LIKE '%b'",
            ]
        )
        own = self.rng.choice([f" AND b <> {1_000 + self.number}", ""])  # equal ones share a slot
        sql = self.rng.choice(
            [
                "SELECT a, ts FROM s WHERE {0}",
                "SELECT a FROM s [RANGE 30 MILLISECONDS] WHERE {0}",
                "SELECT b, COUNT(*) AS n, MIN(a) AS m FROM s [RANGE 40 MILLISECONDS] WHERE {0} GROUP BY b",
                "SELECT DISTINCT t FROM s [RANGE 200 MILLISECONDS] WHERE {0}",
                PAIRS,
            ]
        )
        if "d" in self.kinds and self.rng.random() < 0.5:
            sql = (
                "SELECT s.a, COUNT(*) AS n FROM s [RANGE 40 MILLISECONDS] JOIN d ON s.b = d.b "
                f"WHERE s.a <> {value} AND d.t LIKE '%a%' GROUP BY s.a"
            )
        if self.kinds["s"] == "TABLE":
            sql = re.sub(r" \[RANGE \d+ MILLISECONDS\]", "", sql)
        return Registration(f"q{self.number}", f"{sql.format(f'({condition}){own}')} EMIT CHANGES")

    def prepare(self) -> None:
        registration = self.registration()
        made = self.timed.preparing.of([registration])
        if made:
            self.preparing[registration.query_id] = registration, made[registration.query_id]

    def some(self, count: int) -> None:
        for _, one in list(self.preparing.values())[:1]:
            for _ in range(count):
                before = one.left
                made = one.is_made
                if not one.some() and not one.is_done:
                    assert one.beside
                    one.run()
                assert one.left < before or made or one.is_made
                assert 0 <= one.progress <= 1

    def come(self) -> None:
        """One of those that are prepared, finished or not, or another one."""
        if self.preparing and self.rng.random() < 0.8:
            name = self.rng.choice(list(self.preparing))
            registration, one = self.preparing.pop(name)
            self.step(Register((registration,)))
            one.dismiss()
        else:
            registration = self.registration()
            self.step(Register((registration,)))
        self.standing.append(registration.query_id)

    def give_up(self) -> None:
        if self.preparing:
            self.preparing.pop(self.rng.choice(list(self.preparing)))[1].dismiss()

    def go(self) -> None:
        if self.standing:
            self.step(Unregister((self.standing.pop(self.rng.randrange(len(self.standing))),)))

    def rows(self, n: int) -> None:
        """Of each source."""
        for name in self.kinds:
            self.step(Records(SourceName(name), self.batch(n, self.stamp, name), {}))
        self.stamp += n

    def batch(self, n: int, first: int, name: str = "s") -> Batch:
        stamps = np.arange(first, first + n)
        table = pa.table(
            {
                "a": pa.array([self.rng.choice([None, *range(20)]) for _ in range(n)], pa.int32()),
                "b": pa.array([self.rng.randrange(20) for _ in range(n)], pa.int32()),
                "t": pa.array([self.rng.choice(["a", "ab", "b", "c", None]) for _ in range(n)], pa.string()),
                "ts": pa.array(stamps, pa.timestamp("ms")),
                "deleted": pa.array([self.rng.random() < 0.1 for _ in range(n)]),
            }
        )
        schema = self.timed.catalogue[name].stored_schema
        table = table.select([field.name for field in schema])
        return Batch.from_arrow(schema, table, np.zeros(n), stamps, stamps)

    def history(self, n: int) -> None:
        boundary_ms = self.plain._source("s").boundary_ms
        if boundary_ms is not None and boundary_ms >= n:
            self.step(Backfill(SourceName("s"), self.batch(n, boundary_ms - n), boundary_ms - n, boundary_ms))

    def restart(self) -> None:
        self.timed.save(self.store)
        self.timed = Engine.restore(self.store, self.limits, timer=Slow(), functions=self.functions)
        self.preparing = {}

    def check(self) -> None:
        views = self.timed.view(), self.plain.view()
        for name in self.standing:
            answers = [sorted(view.snapshot(name).table.to_pylist(), key=repr) for view in views]
            assert answers[0] == answers[1]
            assert views[0].query(name).predicate_errors == views[1].query(name).predicate_errors
        self.timed._check()


def rows_of(changes: Changes) -> list[tuple[Any, ...]]:
    owners = np.repeat(np.arange(len(changes.query_ids)), np.diff(changes.starts))
    numbers = [None] * len(changes) if changes.copies is None else changes.copies.tolist()
    return [
        (changes.occasion, changes.query_ids[owner], repr(row), weight, at_ms, number)
        for owner, row, weight, at_ms, number in zip(
            owners.tolist(),
            changes.table.to_pylist(),
            changes.weights.tolist(),
            changes.at_ms.tolist(),
            numbers,
            strict=True,
        )
    ]


def visited(twins: Twins) -> list[int]:
    """How many rows the operators of each looked at."""
    each = (twins.timed, twins.plain)
    return [sum(graph.nodes.visited for graph in one._parts.following.graphs.by_set.values()) for one in each]
