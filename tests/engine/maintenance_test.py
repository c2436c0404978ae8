"""Modes of maintenance: how they are asked for, that they may change, and what a pause means."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

from engine.engine import Engine
from engine.model.maintenance import Costs, Load, choose
from engine.model.step import Position, Register, Registration, Step, StepResult
from tests.capacities import small_engine, small_restored
from tests.memory_state import MemoryState
from tests.strategies import batch_of
from tureen.errors import OptionRefused, QueryPaused

MODES = ("none", "lazy", "eager")
TEXT = "SELECT v, v * 2 AS twice FROM s [RANGE 10 MILLISECONDS] WHERE v > 2"


def engine_with(texts: dict[str, str]) -> Engine:
    engine = small_engine()
    engine.create("CREATE STREAM s (v BIGINT, ts TIMESTAMP NOT NULL) WITH (timestamp = 'ts')")
    for mode in MODES:
        for name, sql in texts.items():
            register(engine, f"{name}-{mode}", sql, maintenance=mode)
    return engine


def register(engine: Engine, query_id: str, sql: str, **options: str) -> StepResult:
    position = Position(engine.position.epoch, engine.position.sequence + 1)
    engine.enqueue(Step(position, 0, Register((Registration(query_id, sql, options=options),))))
    (result,) = engine.run()
    return result


def bring(engine: Engine, first: int, values: list[int], *, step_ms: int = 1) -> None:
    stream = engine.catalogue["s"]
    rows = []
    for place, value in enumerate(values, start=first):
        rows.append((0, place, place * step_ms, (value, place * step_ms)))
    engine.ingest("s", batch_of(stream.schema, rows), clock_ms=10_000)


def answers(engine: Engine, name: str) -> list[list[tuple[object, ...]]]:
    view = engine.view()
    return [
        [tuple(row.values()) for row in view.snapshot(f"{name}-{mode}").table.to_pylist()] for mode in MODES
    ]


def test_all_modes_answer_the_same_while_the_window_slides():
    engine = engine_with({"rows": TEXT, "count": TEXT.replace("v, v * 2 AS twice", "COUNT(*)")})
    seen = set()
    for first in range(0, 120, 4):
        bring(engine, first, [first % 7, 1, 3, first % 5])
        for name in ("rows", "count"):
            none, lazy, eager = answers(engine, name)
            assert none == lazy == eager
            seen.add(str(lazy))
        engine._check()
    assert len(seen) > 10


def test_a_mode_changes_while_the_query_stands():
    engine = engine_with({"rows": TEXT})
    bring(engine, 0, [1, 5, 9])
    for mode in ("eager", "none", "lazy", "none", "eager"):
        register(engine, "rows-lazy", TEXT, maintenance=mode)
        assert engine.view().query("rows-lazy").maintenance == mode
        bring(engine, engine.view().sources()[0].rows + 10, [7, 2])
        none, changed, eager = answers(engine, "rows")
        assert none == changed == eager
        engine._check()


def test_a_view_taken_before_a_change_still_answers():
    engine = engine_with({"rows": TEXT})
    bring(engine, 0, [1, 5, 9])
    before = engine.view()
    expected = before.snapshot("rows-eager").table
    register(engine, "rows-eager", TEXT, maintenance="none")
    assert before.snapshot("rows-eager").table == expected


def test_a_paused_query_keeps_nothing_and_comes_back_whole():
    engine = engine_with({"rows": TEXT})
    bring(engine, 0, [1, 5, 9])
    register(engine, "rows-lazy", TEXT, maintenance="lazy", paused="true")
    register(engine, "rows-eager", TEXT, maintenance="eager", paused="true")
    assert engine.stats()["query-stem/s"]["predicates"] == 0
    bring(engine, 3, [4, 6])
    for mode in ("lazy", "eager"):
        assert engine.view().query(f"rows-{mode}").paused
        with pytest.raises(QueryPaused):
            engine.view().snapshot(f"rows-{mode}")
    register(engine, "rows-lazy", TEXT, maintenance="lazy")
    register(engine, "rows-eager", TEXT, maintenance="eager", paused="false")
    none, lazy, eager = answers(engine, "rows")
    assert none == lazy == eager != []


def test_modes_and_pauses_outlive_a_restart():
    engine = engine_with({"rows": TEXT})
    bring(engine, 0, [1, 5, 9])
    register(engine, "rows-none", TEXT, maintenance="none", paused="true")
    store = MemoryState()
    engine.save(store)
    again = small_restored(store)
    again._check()
    assert [(q.maintenance, q.paused) for q in again.view().queries()] == [
        ("none", True),
        ("lazy", False),
        ("eager", False),
    ]
    assert again.view().snapshot("rows-eager").table == again.view().snapshot("rows-lazy").table


@pytest.mark.parametrize("options", [{"maintenance": "sometimes"}, {"paused": "perhaps"}])
def test_an_option_that_cannot_be_is_refused_and_changes_nothing(options):
    engine = engine_with({"rows": TEXT})
    for query_id in ("rows-lazy", "new"):
        failed = register(engine, query_id, TEXT, **options).failed
        assert isinstance(failed[query_id], OptionRefused)
    assert engine.view().query("rows-lazy").maintenance == "lazy"
    assert len(list(engine.view().queries())) == len(MODES)


COSTS = Costs(match_ns=0.1, evaluate_ns=5, read_ns=0.5, gather_ns=20, answer_ns=100_000, keep_ns=50_000)


@pytest.mark.parametrize(
    ("load", "mode"),
    [
        (Load(1e6, 100, answers_per_s=0.001, window_rows=1e5, selectivity=0.01), "none"),
        (Load(1e5, 100, answers_per_s=1, window_rows=1e6, selectivity=0.01), "lazy"),
        (Load(100, 1, answers_per_s=1_000, window_rows=1e6, selectivity=0.01), "eager"),
    ],
)
def test_the_cost_model_weighs_upkeep_against_answers(load, mode):
    choice = choose(COSTS, load)
    assert choice.maintenance == mode
    assert choice.shares[mode] == min(choice.shares.values())
    assert mode in choice.reason


def test_an_open_choice_follows_how_often_the_answer_is_asked_for():
    engine = small_engine(costs=replace(COSTS, answer_ns=1_000))
    engine.create("CREATE STREAM s (v BIGINT, ts TIMESTAMP NOT NULL) WITH (timestamp = 'ts')")
    stream = engine.catalogue["s"]
    for second in range(12):
        rows = [(0, 50 * second + i, 1_000 * second + 20 * i, (i, 0)) for i in range(50)]
        engine.ingest("s", batch_of(stream.schema, rows), clock_ms=1_000 * second)
    register(engine, "open", TEXT.replace("10 MILLISECONDS", "10 SECONDS"))
    register(engine, "closed", TEXT, maintenance="lazy")
    assert engine.view().query("open").maintenance != "eager"
    answer = engine.view().snapshot("open").table
    assert engine.revisions.revise({"open": 100_000, "closed": 100_000}, seconds=1.0) == 1
    assert engine.view().query("open").maintenance == "eager"
    assert engine.view().query("closed").maintenance == "lazy"
    assert engine.revisions.revise({"open": 100_000}, seconds=1.0) == 0
    assert engine.view().snapshot("open").table == answer
    engine.revisions.revise({}, seconds=1.0)
    assert engine.view().query("open").maintenance != "eager"
    assert engine.view().snapshot("open").table == answer
    engine._check()


def test_matches_of_a_query_are_kept_while_it_is_followed():
    engine = small_engine(costs=replace(COSTS, match_ns=1_000))
    engine.create("CREATE STREAM s (v BIGINT, ts TIMESTAMP NOT NULL) WITH (timestamp = 'ts')")
    stream = engine.catalogue["s"]
    for query_id, emit in (("told", " EMIT CHANGES"), ("quiet", ""), ("followed", "")):
        register(engine, query_id, TEXT + emit)
    for second in range(12):
        rows = [(0, 50 * second + i, 1_000 * second + 20 * i, (i, 0)) for i in range(50)]
        engine.ingest("s", batch_of(stream.schema, rows), clock_ms=1_000 * second)
    register(engine, "told later", TEXT + " EMIT CHANGES")
    register(engine, "quiet later", TEXT)

    def modes() -> dict[str, str]:
        return {query.query_id: query.maintenance for query in engine.view().queries()}

    engine.revisions.revise({}, seconds=10.0)
    kept = {"told": "lazy", "told later": "lazy"}
    assert modes() == kept | {"quiet": "none", "quiet later": "none", "followed": "none"}
    engine.follow("followed")
    engine.revisions.revise({}, seconds=10.0)
    assert modes() == kept | {"quiet": "none", "quiet later": "none", "followed": "lazy"}
    engine.unfollow("followed")
    engine.revisions.revise({}, seconds=10.0)
    assert modes()["followed"] == "none"
    engine._check()


@pytest.mark.parametrize("mode", ["auto", "lazy"])
def test_a_condition_that_old_rows_would_take_too_long_for_is_evaluated_when_asked(mode: str) -> None:
    second_ns = itertools.count(step=10**9)
    engine = small_engine(timer=lambda: next(second_ns))
    engine.create(
        "CREATE STREAM s (v BIGINT, ts TIMESTAMP NOT NULL) WITH (timestamp = 'ts', retain = '1 day')"
    )
    bring(engine, 0, list(range(10)) * 200)
    either = " OR ".join(f"v + {number} = {3 * number}" for number in range(300))
    register(engine, "heavy", f"SELECT v FROM s WHERE {either}", maintenance=mode)
    register(engine, "light", "SELECT v FROM s WHERE v > 2", maintenance=mode)
    plan = engine.explain(query_id="heavy")
    assert plan.maintenance == "none"
    assert "hold up other queries" in plan.reason
    assert engine.explain(query_id="light").maintenance == "lazy"
    told = f"SELECT v FROM s WHERE {either} OR v = -1 EMIT CHANGES"
    register(engine, "told", told, maintenance=mode)  # each step asks which of its rows match
    assert engine.explain(query_id="told").maintenance == "lazy"
    register(engine, "kept", f"SELECT v FROM s WHERE {either}", maintenance="eager")
    assert engine.explain(query_id="kept").maintenance == "eager"
    assert engine.view().snapshot("heavy").table.num_rows == 1_000
    bring(engine, 2_000, [0, 1])
    assert engine.view().snapshot("heavy").table.num_rows == 1_001
    register(engine, "heavy", f"SELECT v FROM s WHERE {either}", maintenance="none")
    assert "hold up other queries" not in engine.explain(query_id="heavy").reason
    engine._check()


def test_many_conditions_that_come_together_are_measured_within_one_allowance() -> None:
    """With a clock on which each look at it takes 9 ms: a bulk of conditions does not hold up its shard."""
    times_ns = itertools.count(step=9 * 10**6)
    engine = small_engine(timer=lambda: next(times_ns))
    engine.create(
        "CREATE STREAM s (v BIGINT, ts TIMESTAMP NOT NULL) WITH (timestamp = 'ts', retain = '1 day')"
    )
    bring(engine, 0, list(range(10)) * 2_000)
    either = " OR ".join(f"v + {number} = {3 * number}" for number in range(200))
    texts = [f"SELECT v FROM s WHERE {either} OR v = {number + 3}" for number in range(100)]
    lazy = {"maintenance": "lazy"}
    texts.append("SELECT COUNT(*) AS n FROM s WHERE v > 2")
    asked = tuple(Registration(f"q{place}", text, options=lazy) for place, text in enumerate(texts))
    began_ns = next(times_ns)
    engine.enqueue(Step(Position(engine.position.epoch, engine.position.sequence + 1), 0, Register(asked)))
    (result,) = engine.run()
    assert not result.failed
    assert next(times_ns) - began_ns < 10**9
    told = [Registration(f"t{place}", f"{text} EMIT CHANGES") for place, text in enumerate(texts)]
    began_ns = next(times_ns)
    assert engine.preparing.of(told).keys() == {f"t{place}" for place in range(100)}
    assert next(times_ns) - began_ns < 10**9
    assert engine.explain(query_id="q99").maintenance == "none"
    assert (
        engine.explain(query_id="q100").maintenance == "lazy"
    )  # an index has its condition: it takes no time
    assert engine.view().snapshot("q99").table.num_rows == 10_000
    engine._check()


def test_short_conditions_over_strings_are_measured() -> None:
    """What one takes is many times what a condition over numbers does, so that a bulk of them is not kept
    unseen: on a clock on which each look takes 9 ms few fit one allowance.
    """
    times_ns = itertools.count(step=9 * 10**6)
    engine = small_engine(timer=lambda: next(times_ns))
    engine.create("CREATE STREAM s (v BIGINT, ts TIMESTAMP NOT NULL) WITH (timestamp = 'ts')")
    engine.create("CREATE STREAM t (w STRING, ts TIMESTAMP NOT NULL) WITH (timestamp = 'ts')")
    bring(engine, 0, list(range(10)) * 2_000)
    rows = [(0, place, place, (f"{place:05}", place)) for place in range(20_000)]
    engine.ingest("t", batch_of(engine.catalogue["t"].schema, rows), clock_ms=30_000)
    numbers = [f"SELECT v FROM s WHERE v = {n} OR v + 1 = {n}" for n in range(100)]
    strings = [f"SELECT w FROM t WHERE w LIKE '%{n}%' OR w = '{n}'" for n in range(100)]
    asked = tuple(
        Registration(f"{name}{place}", text, options={"maintenance": "lazy"})
        for name, texts in (("v", numbers), ("w", strings))
        for place, text in enumerate(texts)
    )
    engine.enqueue(Step(Position(engine.position.epoch, engine.position.sequence + 1), 0, Register(asked)))
    (result,) = engine.run()
    assert not result.failed
    kept = {
        name: sum(engine.explain(query_id=f"{name}{place}").maintenance == "lazy" for place in range(100))
        for name in "vw"
    }
    assert kept["v"] == 100
    assert kept["w"] < 60
    assert engine.view().snapshot("w77").table.num_rows == sum("77" in f"{n:05}" for n in range(20_000))
