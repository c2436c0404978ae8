"""Eager answers whose upkeep would hold up a step are put off, and kept again once that is short."""

from __future__ import annotations

import pytest

from engine.engine import Engine
from engine.language.functions import FunctionCatalogue
from engine.model.expressions import UserFunction
from engine.model.step import Position, Records, Register, Registration, Step
from engine.model.types import BIGINT
from engine.queries.upkeep import UPKEEP_NS
from tests.capacities import small
from tests.strategies import batch_of

CREATE = "CREATE STREAM s (v BIGINT, ts TIMESTAMP NOT NULL) WITH (timestamp = 'ts') RETAIN 1 SECOND"
SHAPES = (
    "SELECT SLOW(v) AS x, ts FROM s [RANGE 1 SECOND]",
    "SELECT MAX(SLOW(v)) AS x, v FROM s [RANGE 1 SECOND] GROUP BY v",
    "SELECT SUM(SLOW(v)) AS x FROM s [RANGE 1 SECOND]",
    "SELECT v, COUNT(*) AS n FROM s [RANGE 1 SECOND] GROUP BY v HAVING SLOW(COUNT(*)) > 0",
    "SELECT v FROM s [RANGE 1 SECOND] ORDER BY SLOW(v)",
)
MS = 10**6


class Bench:
    """An engine whose timer shows what calls of SLOW took: so many nanoseconds each."""

    def __init__(self) -> None:
        self.now_ns = self.call_ns = 0
        self.calls = self.offset = self.ms = 0
        functions = FunctionCatalogue([UserFunction("SLOW", (BIGINT,), BIGINT, self.slow)])
        self.engine = Engine(functions=functions, timer=lambda: self.now_ns, state=small())
        self.engine.create(CREATE)

    def slow(self, value: int) -> int:
        self.calls += 1
        self.now_ns += self.call_ns
        return value

    def rows(self, count: int, ms: int = 0) -> int:
        """So many come in one step, and one that waits until the next. Returns how often SLOW was called."""
        before = self.calls
        stream = self.engine.catalogue["s"]
        first, self.offset = self.offset, self.offset + count + 1
        self.ms = max(self.ms + 1, ms)
        rows = [(0, place, self.ms, (place % 7, self.ms)) for place in range(first, self.offset - 1)]
        rows.append((0, self.offset - 1, self.ms + 1, (0, self.ms + 1)))
        self.engine.ingest("s", batch_of(stream.schema, rows), clock_ms=10**9)
        self.engine.view()
        return self.calls - before

    def register(self, name: str, sql: str, **options: str) -> None:
        position = Position(self.engine.position.epoch, self.engine.position.sequence + 1)
        body = Register((Registration(name, sql, options={"maintenance": "eager"} | options),))
        self.engine.enqueue(Step(position, 0, body))
        (result,) = self.engine.run()
        assert not result.failed
        self.engine.view()

    def beside(self) -> int:
        """What is put off is tried. Returns how many attempts there were."""
        tried = 0
        while (attempt := self.engine.attempt()) is not None:
            attempt.run()
            tried += 1
            self.engine.take_attempts()
            self.engine.view()
        self.engine._check()
        return tried

    def mode(self, name: str) -> str:
        return self.engine.view().query(name).maintenance

    def notice(self, name: str) -> str:
        put_off = self.engine.view().query(name).put_off
        return "" if put_off is None else put_off.notice

    def answer(self, name: str) -> list[object]:
        return self.engine.view().snapshot(name).table.to_pylist()


@pytest.mark.parametrize("sql", SHAPES)
def test_no_step_works_out_what_nobody_knows_the_time_of(sql: str) -> None:
    bench = Bench()
    bench.call_ns = MS
    bench.rows(200)
    calls = bench.calls
    bench.register("q", sql)
    assert bench.calls == calls
    assert bench.mode("q") == "lazy"
    assert bench.notice("q") == "eager, but answered lazily until it is known what its answer takes a step"
    bench.register("lazy", sql, maintenance="lazy")
    assert bench.answer("q") == bench.answer("lazy")


@pytest.mark.parametrize("sql", SHAPES)
def test_what_was_made_beside_is_kept(sql: str) -> None:
    bench = Bench()
    bench.rows(200)
    bench.call_ns = MS
    bench.register("q", sql)
    assert bench.beside()
    assert bench.mode("q") == "eager"  # it is current
    calls = bench.calls
    expected = bench.answer("q")
    if not sql.startswith("SELECT SUM"):  # of which the rows of a block are gone over
        assert bench.calls == calls
    bench.register("lazy", sql, maintenance="lazy")
    assert bench.answer("lazy") == expected


@pytest.mark.parametrize("sql", SHAPES)
def test_steps_take_no_longer_than_is_allowed(sql: str) -> None:
    bench = Bench()
    bench.rows(200)
    bench.call_ns = MS
    bench.register("q", sql)
    bench.register("lazy", sql, maintenance="lazy")
    for count in (1, 3, 300, 2, 300, 1):
        bench.beside()
        assert bench.rows(count) * MS <= 2 * UPKEEP_NS
        assert bench.answer("q") == bench.answer("lazy")


def test_it_is_kept_again_when_it_has_become_cheap() -> None:
    bench = Bench()
    bench.call_ns = MS
    bench.rows(100)
    bench.register("q", SHAPES[1])
    bench.beside()
    assert bench.rows(1) == 0
    assert bench.mode("q") == "lazy"
    assert bench.notice("q") == "eager, but answered lazily: its answer takes 102 ms a step"
    assert not bench.beside()  # not yet
    bench.now_ns += 20 * 10**9
    assert bench.beside() == 1
    assert bench.rows(1) == 0
    assert bench.mode("q") == "lazy"
    assert not bench.beside()
    bench.rows(5, ms=5_000)  # the others have left
    assert bench.beside()
    assert bench.mode("q") == "eager"
    assert bench.rows(1, ms=5_000) > 0
    assert bench.mode("q") == "eager"


def test_the_dearest_of_many_go_first() -> None:
    bench = Bench()
    bench.rows(9)
    names = [f"q{place}" for place in range(10)]
    for place, name in enumerate(names):
        bench.register(
            name, f"SELECT MAX(SLOW(v)) AS x, v FROM s [RANGE 1 SECOND] WHERE v <> {place} GROUP BY v"
        )
        bench.register(
            f"dear{place}",
            f"SELECT {'+'.join(['SLOW(v)'] * 5)} AS x, COUNT(*) AS n FROM s "
            f"[RANGE 1 SECOND] WHERE v <> {place} GROUP BY v",
        )
    bench.call_ns = MS // 2
    bench.beside()
    assert bench.rows(1) * bench.call_ns <= 1.2 * UPKEEP_NS
    kept = [name for name in names if bench.mode(name) == "eager"]
    assert len(kept) >= 8
    assert sum(bench.mode(f"dear{place}") == "eager" for place in range(10)) < 5


def test_small_answers_are_kept_at_once() -> None:
    bench = Bench()
    bench.rows(20)
    for name, sql in enumerate(SHAPES):
        bench.register(str(name), sql.replace("SLOW", "ABS"))
        assert bench.mode(str(name)) == "eager"
    assert bench.engine.attempt() is None


def test_what_is_put_off_goes_and_changes_as_others_do() -> None:
    bench = Bench()
    bench.call_ns = MS
    bench.rows(200)
    bench.register("q", SHAPES[1])
    attempt = bench.engine.attempt()
    assert attempt is not None
    bench.register("q", SHAPES[1], paused="true")
    attempt.run()
    assert attempt.made is None  # it was given up
    assert not bench.engine.take_attempts()
    bench.register("q", SHAPES[1], weight="2")
    assert bench.mode("q") == "lazy"
    bench.engine.unregister("q")
    assert bench.engine.attempt() is None
    bench.engine._check()


def test_a_failure_beside_ends_the_query_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench()
    bench.rows(200)
    bench.register("q", SHAPES[1])

    def fail(*_args: object, **_more: object) -> None:
        raise IndexError("injected")

    with monkeypatch.context() as patched:
        patched.setattr("engine.views.kept.evaluate", fail)
        attempt = bench.engine.attempt()
        assert attempt is not None
        attempt.run()
    bench.engine.take_attempts()
    bench.engine.view()
    assert set(bench.engine.defects) == {"q"}


def test_without_a_timer_all_is_kept() -> None:
    functions = FunctionCatalogue([UserFunction("SLOW", (BIGINT,), BIGINT, lambda value: value)])
    engine = Engine(functions=functions, state=small())
    engine.create(CREATE)
    rows = [(0, place, 0, (place, 0)) for place in range(100)]
    engine.enqueue(
        Step(
            Position(0, 2),
            0,
            Records(engine.catalogue["s"].name, batch_of(engine.catalogue["s"].schema, rows), {0: 100}),
        )
    )
    engine.run()
    body = Register(tuple(Registration(sql, sql, options={"maintenance": "eager"}) for sql in SHAPES))
    engine.enqueue(Step(Position(0, 3), 0, body))
    engine.run()
    assert {engine.view().query(sql).maintenance for sql in SHAPES} == {"eager"}
