"""TPC-H's 22 queries as standing queries, equal to DuckDB over the same rows: asked when all rows are there,
and followed while rows of all tables come in random order, and while rows of tables go.

Our text of each query is in ``tpch/``; :mod:`tests.workloads.tpch_rows` makes the rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from engine.engine import Engine
from engine.model.source import SourceName, Stream
from engine.model.step import Heartbeat, Position, Step, StepResult
from tests.differential.duckdb_selects import close
from tests.workloads import tpch_rows
from tests.workloads.tpch_rows import QUERIES

SCALE, SEED = 0.01, 5
"""Of which every query has rows in its answer."""
GONE = {"supplier": 7, "part": 9, "partsupp": 11, "customer": 10, "nation": 12}
"""Every so many rows of a table go, from the first on."""

Row = tuple[Any, ...]


class Feed:
    """An engine with the tables, and the changes that it told of each query, added up."""

    def __init__(self) -> None:
        self.engine = Engine()
        for sql in tpch_rows.DECLARED.values():
            self.engine.create(sql)
        self.told: dict[str, Counter[Row]] = {}
        self.clock_ms = 0

    def source(self, name: str) -> Stream:
        source = self.engine.catalogue[name]
        assert isinstance(source, Stream)
        return source

    def bring(self, name: str, rows: pa.Table, first: int = 0, gone: bool = False) -> None:
        """Rows of a table, or of those that go."""
        for batch in tpch_rows.batches(self.source(name), rows, first=first, gone=gone):
            self.clock_ms = max(self.clock_ms, int(batch.timestamp[-1]))
            self._take([self.engine.ingest(name, batch, self.clock_ms)])

    def let_time_pass(self) -> None:
        """So that all rows are seen."""
        self.clock_ms += 1_000_000
        for name in tpch_rows.DECLARED:
            last = self.engine.position
            step = Step(Position(last.epoch, last.sequence + 1), self.clock_ms, Heartbeat(SourceName(name)))
            self.engine.enqueue(step)
            self._take(self.engine.run())

    def follow(self) -> None:
        for name, sql in QUERIES.items():
            self.engine.register(name, sql)
            self.told[name] = Counter(self.answer(name))
            self.engine.follow(name)

    def answer(self, name: str) -> list[Row]:
        return rows_of(self.engine.view().snapshot(name).table)

    def _take(self, results: Iterable[StepResult]) -> None:
        for result in results:
            for changes in result.changes:
                rows, starts = rows_of(changes.table), changes.starts.tolist()
                for place, name in enumerate(changes.query_ids):
                    for at in range(starts[place], starts[place + 1]):
                        self.told[name][rows[at]] += int(changes.weights[at])


@dataclass(frozen=True, slots=True)
class Look:
    """What there was of each query at one instant: its answer, that which the changes add up to, DuckDB's."""

    answers: Mapping[str, list[Row]]
    told: Mapping[str, Counter[Row]]
    expected: Mapping[str, list[Row]]


def rows_of(table: pa.Table) -> list[Row]:
    return list(zip(*[column.to_pylist() for column in table.columns], strict=True))


def expected(rows: Mapping[str, pa.Table]) -> dict[str, list[Row]]:
    """DuckDB's answers."""
    with duckdb.connect() as database:
        database.execute("SET threads = 1")
        for name, table in rows.items():
            database.register(name, table)
        return {name: database.sql(sql).fetchall() for name, sql in QUERIES.items()}


@pytest.fixture(scope="module")
def rows() -> dict[str, pa.Table]:
    return tpch_rows.make_rows(SCALE, SEED)


@pytest.fixture(scope="module")
def whole(rows: dict[str, pa.Table]) -> dict[str, list[Row]]:
    return expected(rows)


@pytest.fixture(scope="module")
def filled(rows: dict[str, pa.Table]) -> Feed:
    """Which has read all rows, and of which nobody asked anything before."""
    feed = Feed()
    for name, table in rows.items():
        feed.bring(name, table)
    feed.let_time_pass()
    return feed


@pytest.fixture(scope="module", params=[0.002, pytest.param(SCALE, marks=pytest.mark.slow)])
def looks(request: pytest.FixtureRequest) -> list[Look]:
    """When all rows were there, and when some of the tables' had gone; followed from some of the rows on."""
    rows = tpch_rows.make_rows(request.param, SEED)
    feed = Feed()
    shuffled = np.random.default_rng(SEED)
    pieces = []
    for name, table in rows.items():
        size = max(table.num_rows // 4, 20)
        firsts = range(0, table.num_rows, size)
        times = sorted(shuffled.random(len(firsts)))
        pieces += [
            (time, name, first, table.slice(first, size)) for time, first in zip(times, firsts, strict=True)
        ]
    pieces.sort(key=lambda piece: piece[0])
    for place, (_, name, first, table) in enumerate(pieces):
        if place == len(pieces) // 3:
            feed.follow()
        feed.bring(name, table, first)
    feed.let_time_pass()
    found = [Look(answers(feed), told(feed), expected(rows))]
    left = dict(rows)
    for name, every in GONE.items():
        places = np.arange(rows[name].num_rows)
        feed.bring(name, rows[name].take(places[::every]), first=len(places), gone=True)
        left[name] = rows[name].take(places[places % every != 0])
    feed.let_time_pass()
    return [*found, Look(answers(feed), told(feed), expected(left))]


def answers(feed: Feed) -> dict[str, list[Row]]:
    return {name: feed.answer(name) for name in QUERIES}


def told(feed: Feed) -> dict[str, Counter[Row]]:
    return {name: +counted for name, counted in feed.told.items()}


def check(found: list[Row], wanted: list[Row]) -> None:
    """In order, numbers up to the rounding of doubles."""
    assert len(found) == len(wanted)
    for one, other in zip(found, wanted, strict=True):
        assert all(close(a, b) for a, b in zip(one, other, strict=True)), (one, other)


def test_all_are_there() -> None:
    assert len(QUERIES) == 22


@pytest.mark.parametrize("name", QUERIES)
def test_asked(filled: Feed, whole: dict[str, list[Row]], name: str) -> None:
    filled.engine.register(name, QUERIES[name])
    assert whole[name]
    check(filled.answer(name), whole[name])


@pytest.mark.parametrize("name", QUERIES)
def test_followed(looks: list[Look], name: str) -> None:
    for look in looks:
        check(look.answers[name], look.expected[name])
        assert Counter(look.answers[name]) == look.told[name]
    assert looks[0].expected != looks[1].expected
