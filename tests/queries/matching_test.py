"""Which standing queries a row satisfies, against the same predicates in Python, as queries come and go."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import pytest

from engine.model.batch import Batch, Column
from engine.model.source import SourceName
from engine.model.step import Position, Register, Registration, Step
from engine.queries.matching import RecordMatcher
from engine.stems.query_stem import QueryStem
from tests.capacities import small_engine

Row = tuple[int | None, int]
Condition = Callable[[Row], bool]

STREAM = "CREATE STREAM s (v BIGINT, w BIGINT, ts TIMESTAMP) WITH (timestamp = 'ts')"


def condition(rng: random.Random) -> tuple[str, Condition]:
    """A WHERE clause, or none, and what it means."""
    c, d = rng.randrange(20), rng.randrange(20)
    return rng.choice(
        [
            ("", lambda row: True),
            (f"WHERE v > {c}", lambda row: row[0] is not None and row[0] > c),
            (f"WHERE v = {c} AND w <> {d}", lambda row: row[0] == c and row[1] != d),
            (f"WHERE v BETWEEN {c} AND {d}", lambda row: row[0] is not None and c <= row[0] <= d),
            (f"WHERE v IS NULL OR w < {c}", lambda row: row[0] is None or row[1] < c),
            (f"WHERE v + w > {c}", lambda row: row[0] is not None and row[0] + row[1] > c),
            (f"WHERE 10 / w > {c}", lambda row: row[1] != 0 and 10 // row[1] > c),
            (
                f"WHERE v = {c} UNION SELECT w FROM s WHERE w = {d} UNION ALL SELECT 1 FROM s WHERE w = 3",
                lambda row: row[0] == c or row[1] in (d, 3),
            ),
            (f"WHERE v = {c} UNION ALL SELECT w FROM s", lambda row: True),
            (f"WHERE v = {c} EXCEPT SELECT w FROM s WHERE w = {d}", lambda row: row[0] == c),
        ]
    )


class World:
    """An engine, a matcher that follows it, and the conditions in Python."""

    def __init__(self) -> None:
        self.engine = small_engine()
        self.engine.create(STREAM)
        self.engine.create(STREAM.replace("STREAM s", "STREAM other"))
        stream = self.engine.catalogue["s"]
        self.schema = stream.schema  # type: ignore[union-attr]
        self.matcher = RecordMatcher(SourceName("s"), QueryStem(self.schema))
        self.conditions: dict[str, Condition] = {}

    def register(self, query_id: str, where: str, meant: Condition, **options: str) -> None:
        registration = Registration(query_id, f"SELECT v FROM s {where}", options=options)
        last = self.engine.position
        step = Step(Position(last.epoch, last.sequence + 1), 0, Register((registration,)))
        self.engine.enqueue(step)
        assert not self.engine.run()[0].failed
        self.conditions.pop(query_id, None)
        if options.get("paused") != "true":
            self.conditions[query_id] = meant

    def unregister(self, query_id: str) -> None:
        self.engine.unregister(query_id)
        del self.conditions[query_id]

    def check(self, rows: list[Row]) -> None:
        self.matcher.follow(self.engine.view().standing)
        self.matcher._check()
        found = self.matcher.match(self.batch(rows), 10_000)
        expected = [{name for name, meant in self.conditions.items() if meant(row)} for row in rows]
        assert [set(one.query_ids) for one in found] == expected
        assert [one.total for one in found] == [len(one.query_ids) for one in found]
        matches = self.matcher.pairs(self.batch(rows))
        names = self.matcher.query_ids
        pairs = [(row, names[query]) for row, query in zip(matches.rows, matches.queries, strict=True)]
        assert len(set(pairs)) == len(pairs)
        assert set(pairs) == {(row, name) for row, names in enumerate(expected) for name in names}

    def batch(self, rows: list[Row]) -> Batch:
        count = len(rows)
        of = self.schema.fields
        valid = np.array([v is not None for v, _ in rows], np.bool_)
        columns = (
            Column(of[0].type, np.array([v or 0 for v, _ in rows], np.int64), valid),
            Column(of[1].type, np.array([w for _, w in rows], np.int64)),
            Column(of[2].type, np.zeros(count, np.int64)),
        )
        return Batch(
            self.schema, columns, np.zeros(count, np.int32), np.arange(count), np.zeros(count, np.int64)
        )


@pytest.mark.parametrize("seed", range(5))
def test_matches_are_those_of_the_predicates(seed: int) -> None:
    rng = random.Random(seed)
    world = World()
    world.engine.register("elsewhere", "SELECT v FROM other")
    for place in range(80):
        where, meant = condition(rng)
        mode = rng.choice(["none", "lazy", "eager", "auto"])
        world.register(f"q{place}", where, meant, maintenance=mode)
        if rng.random() < 0.3:
            world.unregister(rng.choice(list(world.conditions)))
        if place % 10 == 0:
            rows: list[Row] = [(rng.choice([None, *range(20)]), rng.randrange(20)) for _ in range(30)]
            world.check(rows)
    world.check([])


def test_a_paused_query_matches_nothing_until_it_is_resumed() -> None:
    world = World()
    for paused in ("false", "true", "false"):
        world.register("q", "WHERE v > 3", lambda row: row[0] is not None and row[0] > 3, paused=paused)
        world.register("all", "", lambda row: True, paused=paused)
        world.check([(5, 0), (1, 0)])


def test_ids_are_limited_the_total_is_not() -> None:
    world = World()
    for place in range(7):
        world.register(f"q{place}", f"WHERE v > {place % 2}", lambda row: True)
    world.matcher.follow(world.engine.view().standing)
    (one,) = world.matcher.match(world.batch([(5, 0)]), 3)
    assert (len(one.query_ids), one.total) == (3, 7)
    (none,) = world.matcher.match(world.batch([(None, 0)]), 3)
    assert (none.query_ids, none.total) == ((), 0)


def test_nothing_of_it_is_seen_in_the_engine() -> None:
    world = World()
    world.register("q", "WHERE 10 / w > 1", lambda row: row[1] != 0 and 10 // row[1] > 1)
    world.check([(1, 0), (1, 2), (1, 9)])
    assert world.engine.view().query("q").predicate_errors == 0
