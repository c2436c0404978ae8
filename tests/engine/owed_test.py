"""Queries come over old rows at any moment: answers are right before, while and after their matches are made,
and through saves, restarts, drops and rows that leave.
"""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import engine.stems.new_queries
import engine.stems.owed_matches
import engine.stems.placement
import engine.stems.segment
from engine.language.evaluate import truth
from engine.model.batch import Batch
from engine.model.expressions import Expression
from engine.stems.match_place import slot_at
from tests.capacities import small_engine, small_restored
from tests.memory_state import MemoryState
from tests.strategies import examples

CREATE = (
    "CREATE STREAM s (a INTEGER, b INTEGER, t STRING, ts TIMESTAMP) "
    "WITH (timestamp = 'ts') RETAIN 150 MILLISECONDS"
)
CLOCK_MS = 10**9


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Segments of a few rows, some queries in each cohort, few matches made at a time."""
    monkeypatch.setattr(engine.stems.segment, "SEGMENT_ROWS", 24)
    monkeypatch.setattr(engine.stems.owed_matches, "CAUGHT_UP_MAX", 2)
    monkeypatch.setattr(engine.stems.placement, "SHARE_MAX", 0.15)
    monkeypatch.setattr(engine.stems.placement, "PATH_MIN", 2)
    monkeypatch.setattr(engine.stems.placement, "SAMPLE_MIN", 10)
    monkeypatch.setattr(engine.stems.placement, "REVISED_EVERY", 1)
    monkeypatch.setattr(engine.stems.new_queries, "SCANNED_MAX", 3)


class World:
    """An engine, its store, and what each query's predicate says."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.engine = small_engine()
        self.engine.create(CREATE, CLOCK_MS)
        self.store = MemoryState()
        self.predicates: dict[str, Expression] = {}
        self.errors: Counter[str] = Counter()
        self.number = self.stamp = 0

    def condition(self) -> str:
        value = self.rng.randrange(20)
        return self.rng.choice(
            [
                f"a < {value}",
                f"a = {value}",
                f"a >= {value} AND b < {self.rng.randrange(20)}",
                f"a = {value} OR b = 3",
                f"t LIKE '{self.rng.choice('abc')}%'",
                f"10 / (a - {value}) > 1",
                f"a = {value} AND 7 / (b - 2) > 0",
            ]
        )

    def register(self, count: int) -> None:
        for _ in range(count):
            self.number += 1
            name = f"q{self.number}"
            outputs = self.rng.choice(["ts", "ts", "COUNT(*)"])
            options = self.rng.choice(["", "", "", " EMIT CHANGES"]) if outputs == "ts" else ""
            # each has a predicate of its own, since equal ones share the count of errors
            sql = (
                f"SELECT {outputs} FROM s WHERE ({self.condition()}) AND b <> {1_000 + self.number}{options}"
            )
            self.engine.register(name, sql, CLOCK_MS)
            predicate = self.engine.prepare(sql).scan.predicate
            assert predicate is not None
            self.predicates[name] = predicate
            rows = self.engine.view().stored("s")
            self.count([name], rows.base, rows.end)

    def drop(self, count: int) -> None:
        for name in self.rng.sample(sorted(self.predicates), min(count, len(self.predicates))):
            self.engine.unregister(name, CLOCK_MS)
            del self.predicates[name]

    def rows(self, n: int) -> None:
        stamps = np.arange(self.stamp, self.stamp + n)
        self.stamp += n
        table = pa.table(
            {
                "a": pa.array([self.rng.choice([None, *range(20)]) for _ in range(n)], pa.int32()),
                "b": pa.array([self.rng.randrange(20) for _ in range(n)], pa.int32()),
                "t": pa.array([self.rng.choice(["a", "ab", "b", "c", None]) for _ in range(n)], pa.string()),
                "ts": pa.array(stamps, pa.timestamp("ms")),
            }
        )
        before = self.engine.view().stored("s").end
        schema = self.engine.catalogue["s"].schema
        self.engine.ingest("s", Batch.from_arrow(schema, table, np.zeros(n), stamps, stamps), CLOCK_MS)
        self.count(list(self.predicates), before, self.engine.view().stored("s").end)

    def count(self, names: list[str], start: int, stop: int) -> None:
        for _, batch in self.engine.view().stored("s").slices(start, stop):
            for name in names:
                _, error = truth(self.predicates[name], batch.columns, len(batch))
                self.errors[name] += 0 if error is None else int(error.sum())

    def restart(self) -> None:
        self.engine.save(self.store)
        self.engine = small_restored(self.store)

    def check(self) -> None:
        view = self.engine.view()
        rows = view.stored("s")
        batches = [batch for _, batch in rows.slices(rows.base, rows.end)]
        for name, predicate in self.predicates.items():
            expected = [
                int(stamp)
                for batch in batches
                for stamp in batch.timestamp[truth(predicate, batch.columns, len(batch))[0]]
            ]
            table = view.snapshot(name).table
            if table.column_names == ["ts"]:
                assert table.column(0).cast(pa.int64()).to_pylist() == expected
            else:
                assert table.column(0).to_pylist() == [len(expected)]
            assert view.query(name).predicate_errors == self.errors[name]
        self.engine._check()


@given(
    st.integers(0, 2**32),
    st.lists(st.tuples(st.sampled_from("qqrrrrrdosc"), st.integers(1, 9)), min_size=4, max_size=24),
)
@settings(
    max_examples=examples(25), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_any_course(seed: int, course: list[tuple[str, int]]) -> None:
    world = World(seed)
    world.rows(100)
    for step, count in course:
        match step:
            case "q":
                world.register(count)
            case "r":
                world.rows(6 * count)
            case "d":
                world.drop(count)
            case "o":
                for _ in range(count):
                    world.engine.idle()
            case "s":
                world.restart()
            case "c":
                world.check()
    world.check()
    while world.engine.idle():
        pass
    world.check()
    assert not any(part.matches.owed for part in world.engine.view().stored("s").parts)


def test_an_old_view_is_right_while_matches_are_made() -> None:
    world = World(1)
    world.rows(140)
    world.register(30)
    view, names = world.engine.view(), list(world.predicates)
    before = {name: view.snapshot(name).table for name in names}
    assert any(part.matches.owed for part in view.stored("s").parts)
    while world.engine.catch_up_some():
        for name in names[::5]:
            assert view.snapshot(name).table.equals(before[name])
    assert not any(part.matches.owed for part in world.engine.view().stored("s").parts)
    for name in names:
        assert view.snapshot(name).table.equals(before[name])
        assert world.engine.view().snapshot(name).table.equals(before[name])


def test_what_needs_all_matches_gets_them_at_once() -> None:
    world = World(2)
    world.rows(140)
    world.engine.register("emits", "SELECT ts FROM s WHERE a < 7 EMIT CHANGES", CLOCK_MS)
    world.engine.register("follows", "SELECT ts FROM s WHERE a < 8", CLOCK_MS)
    parts = world.engine.view().stored("s").parts
    slots = {name: slot_at(world.engine._queries[name].slots[0]) for name in ("emits", "follows")}
    assert not any(slots["emits"] in part.matches.owed for part in parts)
    assert any(slots["follows"] in part.matches.owed for part in parts)
    world.engine.follow("follows")
    assert not any(slots["follows"] in part.matches.owed for part in world.engine.view().stored("s").parts)
