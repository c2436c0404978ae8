"""Queries that are swapped out and brought back, at any moment: answers as if they had stayed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import invariant, precondition, rule

from engine.engine import Engine
from engine.language.functions import FunctionCatalogue
from engine.model.expressions import UserFunction
from engine.model.limits import Limits
from engine.model.source import SourceName
from engine.model.step import Body, DropSource, Position, Register, Registration, Step
from engine.model.types import BIGINT
from tests.capacities import small_engine, small_restored
from tests.differential.agreement import EngineSubject, outcome
from tests.differential.stateful import EngineMachine
from tests.engine.feed import Feed
from tests.memory_state import MemoryState
from tureen.errors import HandleInUse, LimitExceeded, QueryError, SourceConflict, UnknownQuery


class SwappingMachine(EngineMachine):
    """As its base, beside an engine that swaps nothing; the process is killed at any moment as well."""

    def __init__(self) -> None:
        super().__init__()
        self.engine.engine.swapping.store = self.store
        self.staying = EngineSubject()
        self.unsaved: list[Step] = []

    def apply(self, body: Body) -> None:
        super().apply(body)
        step = Step(Position(1, self.sequence), self.clock, body)
        self.unsaved.append(step)
        self.staying.apply(step)

    def warm(self) -> list[str]:
        return self.engine.standing()

    def swapped(self) -> list[str]:
        return [state.registration.query_id for state in self.engine.engine.swapping.states()]

    @precondition(lambda self: self.warm())
    @rule(data=st.data())
    def swap_out(self, data: st.DataObject) -> None:
        swapping = self.engine.engine.swapping
        names = data.draw(st.sets(st.sampled_from(sorted(self.warm())), min_size=1))
        may = {name for name in names if swapping.may(name)}
        assert set(swapping.out(names)) == may
        assert may.isdisjoint(self.warm())

    @rule(data=st.data(), count=st.integers(1, 8), swaps=st.booleans())
    def bring_records(self, data: st.DataObject, count: int, swaps: bool) -> None:
        if swaps:
            self.engine.engine.swapping.out(self.warm())
        super().bring_records(data, count)

    @rule(ms=st.sampled_from([1, 5, 50, 500]), lagging=st.sampled_from([frozenset(), frozenset({2})]))
    def let_time_pass(self, ms: int, lagging: frozenset[int]) -> None:
        self.engine.engine.swapping.out(self.warm())
        super().let_time_pass(ms, lagging)

    @precondition(lambda self: self.swapped())
    @rule(data=st.data())
    def bring_back(self, data: st.DataObject) -> None:
        names = data.draw(st.lists(st.sampled_from(sorted(self.swapped())), min_size=1, unique=True))
        assert self.engine.engine.swapping.back(names) == tuple(names)
        assert set(names) <= set(self.warm())

    @rule()
    def save(self) -> None:
        super().save()
        self.unsaved.clear()

    @rule()
    def restart(self) -> None:
        before = sorted(self.swapped())
        super().restart()
        self.unsaved.clear()
        self.engine.engine.swapping.store = self.store
        assert sorted(self.swapped()) == before

    @rule()
    def die(self) -> None:
        if self.store.position() is None:
            self.engine = EngineSubject()
        else:
            self.engine = EngineSubject.from_store(self.store)
        self.engine.engine.swapping.store = self.store
        for step in self.unsaved:
            self.engine.apply(step)

    @invariant()
    def answers_agree(self) -> None:
        warm, swapped = self.warm(), self.swapped()
        assert len(swapped) == self.engine.engine.swapping.count
        assert sorted([*warm, *swapped]) == sorted(self.reference.standing())
        for name in warm:
            for back in (None, 0, 20):
                self.agrees(name, back)

    def agrees(self, name: str, back: int | None) -> None:
        at_ms = None
        if back is not None:
            now_ms = None
            if not self.engine.engine.view().query(name).paused:
                now_ms = self.reference.answer(name).now_ms
            at_ms = 1_000 if now_ms is None else now_ms - back
        mine: Any = outcome(self.engine, name, at_ms)
        for other in (self.reference, self.staying):
            assert mine == outcome(other, name, at_ms), name

    def teardown(self) -> None:
        if hasattr(self, "stream"):
            self.engine.engine.swapping.back(self.swapped())
            self.holds_together()
            self.answers_agree()


TestSwappingMachine = SwappingMachine.TestCase
TestSwappingMachine.settings = settings(
    max_examples=max(10, settings.default.max_examples // 4), stateful_step_count=20
)


def swappable(*sqls: str, retain: str = "3 MILLISECONDS") -> tuple[Feed, MemoryState]:
    """A feed whose engine has a store, with queries q0, q1, ..."""
    feed, store = Feed(retain=retain), MemoryState()
    feed.engine.swapping.store = store
    for number, sql in enumerate(sqls):
        feed.engine.register(f"q{number}", sql)
    return feed, store


def test_rows_that_only_a_swapped_query_needs_stay_until_it_goes() -> None:
    feed, store = swappable("SELECT k, v FROM s [RANGE 50 MILLISECONDS]", "SELECT v FROM s [ROWS 2]")
    feed.put((100, "a", 1.0), (101, "b", 2.0))
    assert feed.engine.swapping.out(["q0"]) == ("q0",)
    feed.put((140, "c", 3.0))
    feed.engine.save(store)
    feed.engine = small_restored(store)
    feed.engine.swapping.store = store
    feed.put((149, "d", 4.0), (150, "e", 5.0))
    assert feed.engine.swapping.back(["q0", "q1", "none"]) == ("q0",)
    assert [row[0] for row in feed.rows("q0")] == ["a", "b", "c", "d"]
    feed.engine.swapping.out(["q0"])
    feed.engine.unregister("q0")
    feed.put((151, "f", 6.0))
    feed.engine._check()
    (source,) = feed.engine.view().sources()
    assert source.rows < 6
    assert feed.engine.swapping.count == 0


def test_a_swapped_query_is_known_to_registrations_and_holds_what_it_reads() -> None:
    feed, _ = swappable("SELECT k FROM s WHERE v > 1")
    engine = feed.engine
    engine.swapping.out(["q0"])
    with pytest.raises(UnknownQuery):
        engine.view().snapshot("q0")
    engine.register("q0", "SELECT k FROM s WHERE v > 1")
    assert engine.swapping.count == 1, "said again as it is, it stays where it is"
    with pytest.raises(SourceConflict, match="1 query reads"):
        drop(engine, "s")
    with pytest.raises(HandleInUse):
        engine.register("q0", "SELECT k FROM s WHERE v > 2")
    engine.swapping.out(["q0"])
    changed = Registration("q0", "SELECT k FROM s WHERE v > 1", options={"paused": "true"})
    assert not EngineSubject(engine).apply(step_of(engine, Register((changed,)))).failed
    assert engine.view().query("q0").paused
    engine.swapping.out(["q0"])
    engine.alter("q0", "SELECT v FROM s")
    assert not engine.view().query("q0").paused
    engine.swapping.out(["q0"])
    engine.unregister("q0")
    engine.unregister("q0")
    assert engine.swapping.count == 0
    drop(engine, "s")


def test_swapped_queries_count_towards_the_limit() -> None:
    engine = small_engine(Limits(queries_max=2))
    engine.create("CREATE STREAM s (k BIGINT)")
    engine.swapping.store = MemoryState()
    engine.register("q0", "SELECT k FROM s WHERE k > 1")
    engine.register("q1", "SELECT k FROM s WHERE k > 2")
    engine.swapping.out(["q0", "q1"])
    with pytest.raises(LimitExceeded, match="2"):
        engine.register("q2", "SELECT k FROM s WHERE k > 3")
    engine.unregister("q1")
    engine.register("q2", "SELECT k FROM s WHERE k > 3")


@pytest.mark.parametrize(
    ("sql", "options"),
    [
        ("SELECT k FROM s EMIT CHANGES", {}),
        ("SELECT k FROM s WHERE v > 1", {"maintenance": "eager"}),
        ("SELECT k FROM s WHERE v > 1", {"max_error": "0.1"}),
        ("SELECT k FROM s WHERE v / 2 > 1", {}),
        ("SELECT k FROM s SAMPLE(10)", {}),
    ],
)
def test_what_rows_and_text_do_not_give_back_stays(sql: str, options: dict[str, str]) -> None:
    feed, _ = swappable("SELECT k FROM s WHERE v > 1")
    registration = Registration("q", sql, options=options)
    assert not EngineSubject(feed.engine).apply(step_of(feed.engine, Register((registration,)))).failed
    assert feed.engine.swapping.out(["q", "unknown", "q0"]) == ("q0",)


def test_nothing_is_swapped_without_a_store_or_while_it_is_followed() -> None:
    feed = Feed("SELECT k FROM s")
    assert feed.engine.swapping.out(["q0"]) == ()
    feed.engine.swapping.store = MemoryState()
    feed.engine.follow("q0")
    assert feed.engine.swapping.out(["q0"]) == ()
    feed.engine.unfollow("q0")
    assert feed.engine.swapping.out(["q0"]) == ("q0",)
    feed.engine.follow("q0")
    feed.put((10, "a", 1.0), (11, "b", 1.0))
    assert len(feed.told[-1].changes) == 1


def test_the_least_valuable_go_first() -> None:
    texts = [f"SELECT k FROM s WHERE v > {n}" for n in range(3)]
    feed, _ = swappable(*texts, "SELECT k FROM s EMIT CHANGES", retain="1 DAYS")
    feed.put(*((n, "a", float(n)) for n in range(100)))
    found = feed.engine.swapping.freeable({"q0": 2.0, "q2": 1.0})
    assert [one.query_id for one in found] == ["q1", "q2", "q0"]
    assert all(one.nbytes >= 600 for one in found)


def test_thousands_of_queries_over_thousands_of_rows_with_joins_and_restarts() -> None:
    """Queries come and go between disk and memory; each answer is that of an engine that swaps nothing."""
    rng, store = np.random.default_rng(7), MemoryState()
    shapes = (
        "SELECT v FROM s [RANGE {a} MILLISECONDS] WHERE v >= {a} AND v < {b}",
        "SELECT k, COUNT(*) AS n FROM s [ROWS {a}] WHERE v < {b} GROUP BY k",
        "SELECT a.v, b.v AS w FROM s [ROWS {a}] a JOIN s [ROWS {b}] b ON a.k = b.k WHERE b.v < {b}",
    )
    feeds = [Feed(retain="100 MILLISECONDS"), Feed(retain="100 MILLISECONDS")]
    feeds[0].engine.swapping.store = store
    names: list[str] = []
    for turn in range(6):
        coming = [
            Registration(f"q{turn}-{n}", shapes[n % 3].format(a=a, b=a + 10))
            for n, a in enumerate(rng.integers(1, 90, 400).tolist())
        ]
        rows = [
            (turn * 100 + n // 20, f"new-{turn}-{int(x)}", x)
            for n, x in enumerate(rng.integers(0, 100, 2_000).astype(float).tolist())
        ]
        for feed in feeds:
            EngineSubject(feed.engine).apply(step_of(feed.engine, Register(tuple(coming))))
            feed.put(*rows)
        names += [one.query_id for one in coming]
        warm = [one.query_id for one in feeds[0].engine.view().queries()]
        out = feeds[0].engine.swapping.out(rng.choice(warm, len(warm) // 2, replace=False).tolist())
        assert len(out) == len(warm) // 2
        if turn % 2:
            feeds[0].engine.save(store)
            feeds[0].engine = Engine.restore(store)
            feeds[0].engine.swapping.store = store
            there = list(feeds[0].engine.view().queries())
            assert len(there) == len(names) - feeds[0].engine.swapping.count
        asked = rng.choice(names, 100, replace=False).tolist()
        feeds[0].engine.swapping.back(asked)
        feeds[0].engine._check()
        for name in asked:
            mine, theirs = (EngineSubject(feed.engine).answer(name) for feed in feeds)
            assert mine == theirs


def step_of(engine: Engine, body: Body) -> Step:
    return Step(Position(engine.position.epoch, engine.position.sequence + 1), 10**6, body)


def drop(engine: Engine, name: str) -> None:
    for refusal in EngineSubject(engine).apply(step_of(engine, DropSource(SourceName(name)))).failed.values():
        raise refusal


def test_a_text_that_cannot_be_bound_any_more_is_refused_and_can_be_removed() -> None:
    store = MemoryState()
    functions = FunctionCatalogue([UserFunction("TWICE", (BIGINT,), BIGINT, lambda value: value)])
    engine = small_engine(functions=functions)
    engine.create("CREATE STREAM s (k BIGINT)")
    engine.swapping.store = store
    engine.register("kept", "SELECT k FROM s")
    engine.register("q", "SELECT twice(k) AS k FROM s")
    assert engine.swapping.out(["q", "kept"]) == ("q", "kept")
    engine.save(store)
    engine = small_restored(store)
    engine.swapping.store = store
    with pytest.raises(QueryError):
        engine.swapping.back(["q", "kept"])
    assert [one.query_id for one in engine.swapping.admitted()] == []
    assert engine.view().query("kept").sql == "SELECT k FROM s"
    with pytest.raises(QueryError):
        engine.register("q", "SELECT twice(k) AS k FROM s WHERE k > 1")
    engine.unregister("q")
    with pytest.raises(UnknownQuery):
        engine.view().query("q")
    engine.save(store)
    assert list(store.swapped_queries()) == []
