"""The strategy of a query is changed while it is followed: no change is wrong, and none is told again."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.engine import Engine
from engine.model.batch import versions
from engine.model.source import Stream
from engine.model.step import Position, Register, Registration, Step, StepResult, Unregister
from tests.capacities import small_engine, small_restored
from tests.engine.feed import plain
from tests.memory_state import MemoryState
from tests.strategies import batch_of
from tureen.errors import OptionRefused, SettingsError

FEW = settings(max_examples=max(6, settings.default.max_examples // 4))
WITH = "WITH (timestamp = 'ts')"
CREATES = (
    f"CREATE STREAM s (k BIGINT, v BIGINT, ts TIMESTAMP NOT NULL) {WITH} RETAIN 1 DAY",
    f"CREATE STREAM u (k BIGINT, v BIGINT, ts TIMESTAMP NOT NULL) {WITH} RETAIN 1 DAY",
    f"CREATE TABLE t (k BIGINT PRIMARY KEY, v BIGINT, ts TIMESTAMP NOT NULL) {WITH}",
)
KNOWN_EXITS = {
    "join": """SELECT s.k, s.v, u.v AS o FROM s [RANGE 9 MILLISECONDS]
    JOIN u [RANGE 5 MILLISECONDS] ON s.k = u.k""",
    "distinct": "SELECT DISTINCT k FROM s [RANGE 7 MILLISECONDS]",
    "distincts": """SELECT x.k FROM (SELECT DISTINCT k FROM s [RANGE 9 MILLISECONDS]) AS x
    JOIN (SELECT DISTINCT k FROM u [RANGE 5 MILLISECONDS SLIDE 3 MILLISECONDS]) AS y ON x.k = y.k""",
    "groups": """SELECT s.k, COUNT(*) AS c, SUM(u.v) AS t FROM s [RANGE 9 MILLISECONDS]
    JOIN u [RANGE 5 MILLISECONDS] ON s.k = u.k GROUP BY s.k""",
    "union": "SELECT k FROM s [RANGE 9 MILLISECONDS] UNION ALL SELECT k FROM u [RANGE 4 MILLISECONDS]",
    "both": "SELECT k FROM s [RANGE 9 MILLISECONDS] INTERSECT ALL SELECT k FROM u [RANGE 4 MILLISECONDS]",
    "both once": "SELECT k FROM s [RANGE 9 MILLISECONDS] INTERSECT SELECT k FROM u [RANGE 4 MILLISECONDS]",
    "three": """SELECT DISTINCT s.v FROM s [RANGE 9 MILLISECONDS] JOIN u [RANGE 5 MILLISECONDS] ON s.k = u.k
    JOIN s AS z [RANGE 3 MILLISECONDS] ON u.v = z.v""",
}
STRICT = {
    "except": "SELECT k FROM s [RANGE 9 MILLISECONDS] EXCEPT ALL SELECT k FROM u [RANGE 5 MILLISECONDS]",
    "except on": """SELECT k, v FROM s [RANGE 9 MILLISECONDS]
    EXCEPT ALL ON (k) SELECT k FROM u [RANGE 5 MILLISECONDS]""",
    "except once": "SELECT k FROM s [RANGE 9 MILLISECONDS] EXCEPT SELECT k FROM u [RANGE 5 MILLISECONDS]",
    "over": """SELECT x.k, u.v FROM (SELECT k FROM s [RANGE 9 MILLISECONDS]
    EXCEPT ALL SELECT k FROM u [RANGE 5 MILLISECONDS]) AS x JOIN u [RANGE 8 MILLISECONDS] ON x.k = u.k""",
    "distinct over": """SELECT DISTINCT v FROM (SELECT k, v FROM s [RANGE 9 MILLISECONDS]
    EXCEPT ALL ON (k) SELECT k FROM u [RANGE 5 MILLISECONDS]) AS x""",
    "rows": "SELECT DISTINCT s.k, u.v FROM s [RANGE 9 MILLISECONDS] JOIN u [ROWS 3] ON s.k = u.k",
    "table": "SELECT s.v, t.v AS o FROM s [RANGE 9 MILLISECONDS] JOIN t ON s.k = t.k",
    "left": "SELECT s.k, u.v FROM s [RANGE 9 MILLISECONDS] LEFT JOIN u [RANGE 5 MILLISECONDS] ON s.k = u.k",
}
TEXTS = KNOWN_EXITS | STRICT
EMITTING = {name for place, name in enumerate(TEXTS) if place % 2}
"""Their texts say that they are followed; of the others somebody says so."""

Told = Mapping[str, Counter[Any]]
"""By query the changes of a step: weight, instant and row."""


class Driven:
    """An engine with all queries, each followed."""

    def __init__(self) -> None:
        self.engine = small_engine()
        for create in CREATES:
            self.engine.create(create)
        for name, text in TEXTS.items():
            self.register(name, text)
        self._follow()

    def _follow(self) -> None:
        for name in TEXTS.keys() - EMITTING:
            self.engine.follow(name)

    def register(self, name: str, text: str, **options: str) -> StepResult:
        if name in EMITTING:
            text += " EMIT CHANGES WITH (format = 'diff')"
        body = Register((Registration(name, text, options=options),))
        self.engine.enqueue(Step(Position(0, self.engine.position.sequence + 1), 0, body))
        (result,) = self.engine.run()
        return result

    def ingest(self, source: str, rows: list[tuple[int, int, int, tuple[Any, ...]]]) -> Told:
        stream = self.engine.catalogue[source]
        assert isinstance(stream, Stream)
        batch = batch_of(stream.schema, rows)
        if stream.is_table:
            batch = versions(stream, batch, np.array([row[3][1] is None for row in rows]))
        result = self.engine.ingest(source, batch)
        assert not result.broken
        return told_of(result)

    def restart(self) -> None:
        store = MemoryState()
        self.engine.copy(store)
        self.engine = small_restored(store)
        self._follow()


def told_of(result: StepResult) -> Told:
    found: dict[str, Counter[Any]] = {}
    for changes in result.changes:
        rows = list(zip(*(plain(column) for column in changes.table.columns), strict=True))
        for place, query_id in enumerate(changes.query_ids):
            assert query_id not in found
            of = range(*changes.starts[place : place + 2].tolist())
            instants = changes.at_ms[of.start : of.stop].tolist()
            assert instants == sorted(instants)
            weights = changes.weights[of.start : of.stop].tolist()
            found[query_id] = Counter(zip(weights, instants, rows[of.start : of.stop], strict=True))
    return {query_id: counted for query_id, counted in found.items() if counted}


def some_rows(rng: random.Random, clock_ms: int, offset: int) -> list[tuple[int, int, int, tuple[Any, ...]]]:
    """At most one jump of NOW, so that windows run empty now and then."""
    stamps = [clock_ms + rng.choice((0, 0, 1, 1, 2, 4))]
    for _ in range(rng.randint(0, 5)):
        stamps.append(stamps[-1] + rng.choice((0, 0, 0, 1, 1, 2, 12)))
    values = (None, 0, 1, 2, 3)
    return [(0, offset + n, at, (rng.choice(values), rng.choice(values))) for n, at in enumerate(stamps)]


def some_options(rng: random.Random) -> dict[str, str]:
    return {
        "strategy": rng.choice(("nt", "direct", "upa", "upa", "auto")),
        "structure": rng.choice(("auto", "partitioned", "negative", "indexed")),
        "partitions": rng.choice(("auto", "1", "2", "4")),
    }


@FEW
@given(st.integers(0, 2**32))
def test_a_change_of_strategy_changes_nothing_else(seed: int) -> None:
    rng = random.Random(seed)
    moving, twin = Driven(), Driven()
    clock_ms, offset = 10, 0
    for _ in range(10):
        for name in rng.sample(sorted(TEXTS), rng.randint(0, 6)):
            options = some_options(rng)
            result = moving.register(name, TEXTS[name], **options)
            assert not result.changes
            if name in STRICT and options["strategy"] == "direct":
                assert isinstance(result.failed[name], OptionRefused)
            else:
                assert not result.failed
                info = moving.engine.view().query(name)
                assert info.strategy in ("nt", options["strategy"]) or options["strategy"] == "auto"
        if rng.random() < 0.15:
            moving.restart()
        source = rng.choice(("s", "s", "u", "u", "t"))
        rows = some_rows(rng, clock_ms, offset)
        if source == "t":
            rows = [(0, of, at, (k or 0, v)) for _, of, at, (k, v) in rows]
        clock_ms, offset = max(clock_ms, rows[-1][2]), offset + len(rows)
        assert moving.ingest(source, rows) == twin.ingest(source, rows)
    moving.engine._check()


def test_strategies_are_told_and_counted() -> None:
    driven = Driven()
    for place, strategy in enumerate(("nt", "direct", "upa")):
        assert not driven.register("join", TEXTS["join"], strategy=strategy).failed
        assert driven.engine.view().query("join").strategy == strategy
        for source in ("s", "u"):
            driven.ingest(source, [(0, place, 10 + place, (1, 2))])
        counted = driven.engine.footprint().by_strategy
        others = 0 if strategy == "nt" else 1
        assert {name: state.queries for name, state in counted.items()} == {
            "nt": len(TEXTS) - others,
            **({strategy: 1} if others else {}),
        }
        assert counted["nt"].nbytes > 0
        assert sum(state.nbytes for state in counted.values()) == driven.engine.footprint().changes
    driven.engine.enqueue(Step(Position(0, driven.engine.position.sequence + 1), 0, Unregister(("join",))))
    driven.engine.run()
    assert set(driven.engine.footprint().by_strategy) == {"nt"}


MANY = (
    "SELECT DISTINCT k, v FROM s [RANGE 9 MILLISECONDS] WHERE v > {}",
    "SELECT k FROM s [RANGE 9 MILLISECONDS] WHERE v > {} EXCEPT SELECT k FROM u [RANGE 5 MILLISECONDS]",
    "SELECT k FROM s [RANGE 9 MILLISECONDS] WHERE v > {} UNION SELECT k FROM u [RANGE 5 MILLISECONDS]",
    "SELECT k, COUNT(*) AS c FROM s [RANGE 9 MILLISECONDS] WHERE v > {} GROUP BY k",
)


@pytest.mark.parametrize("text", MANY)
@pytest.mark.parametrize("strategy", ["nt", "upa"])
def test_memory_of_many_queries_of_one_shape_comes_back_when_they_go(text: str, strategy: str) -> None:
    options, found = {"strategy": strategy}, list[tuple[list[Told], list[int]]]()
    for many in (0, 300):
        engine, told, nbytes = Engine(), list[Told](), list[int]()
        for create in CREATES:
            engine.create(create)
        one = Registration("one", text.format(-1), options=options)
        others = [Registration(f"q{n}", text.format(-2 - n), options=options) for n in range(many)]
        for step in range(3):
            body = (
                Register((one,)),
                Register(tuple(others)),
                Unregister(tuple(each.query_id for each in others)),
            )
            engine.enqueue(Step(Position(0, engine.position.sequence + 1), 0, body[step]))
            engine.run()
            for each in ((one,), others, ())[step]:
                engine.follow(each.query_id)
            for source in ("s", "u"):
                stream = engine.catalogue[source]
                assert isinstance(stream, Stream)
                of = [(0, 40 * step + n, 10 + 4 * step + n // 10, (n * (step + 1), n)) for n in range(40)]
                told.append(told_of(engine.ingest(source, batch_of(stream.schema, of))))
            nbytes.append(engine.footprint().changes)
        engine._check()
        found.append(([{"one": each.get("one", Counter())} for each in told], nbytes))
    (alone, few), (beside, lots) = found
    assert beside == alone
    assert lots[1] > 10 * few[1]
    assert lots[2] < 1.5 * few[2]


def test_what_nobody_follows_tells_what_it_asks_for() -> None:
    engine = small_engine()
    engine.create(CREATES[0])
    for options, told in (({}, "auto"), ({"strategy": "upa"}, "upa"), ({"strategy": "AUTO"}, "auto")):
        body = Register((Registration("q", "SELECT k FROM s", options=options),))
        engine.enqueue(Step(Position(0, engine.position.sequence + 1), 0, body))
        engine.run()
        assert engine.view().query("q").strategy == told
    engine.follow("q")
    assert engine.view().query("q").strategy in ("nt", "direct", "upa")


def test_settings_of_buffers_change_no_change() -> None:
    rng = random.Random(7)
    moving, twin = Driven(), Driven()
    for name in TEXTS:
        moving.register(name, TEXTS[name], strategy="upa")
    clock_ms, offset = 10, 0
    for step in range(8):
        for name, values in (
            ("state_partitions", ("1", "3", "65536")),
            ("expiry_lazy_fraction", ("0.01", "0.5", "1")),
        ):
            if rng.random() < 0.4:
                value = rng.choice(values)
                moving.engine.set_attribute("state-buffers", name, value)
                assert moving.engine.stats()["state-buffers"][name] == float(value)
        rows = some_rows(rng, clock_ms, offset)
        clock_ms, offset = rows[-1][2], offset + len(rows)
        source = "su"[step % 2]
        assert moving.ingest(source, rows) == twin.ingest(source, rows)
    moving.engine._check()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("state_partitions", value) for value in ("0", "-1", "65537", "2.5", "inf", "nan", "", "ten")),
        *(("expiry_lazy_fraction", value) for value in ("0", "-0.1", "1.01", "inf", "nan", "")),
        ("partitions", "10"),
    ],
)
def test_settings_of_buffers_are_within_limits(name: str, value: str) -> None:
    engine = small_engine()
    before = engine.stats()["state-buffers"]
    with pytest.raises(SettingsError) as refused:
        engine.set_attribute("state-buffers", name, value)
    assert refused.value.hint
    assert engine.stats()["state-buffers"] == before
