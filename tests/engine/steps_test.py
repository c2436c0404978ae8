"""The engine's surface: order of steps, budgets, refusals, removals, windows to the millisecond."""

from __future__ import annotations

import pytest

from engine.model.limits import Limits
from engine.model.source import SourceName
from engine.model.step import (
    DropSource,
    Heartbeat,
    Position,
    Records,
    Register,
    Registration,
    Step,
    Unregister,
)
from tests.capacities import small_engine
from tests.engine.steps import CREATE, engine_with, rows, values
from tureen.errors import (
    HandleInUse,
    LimitExceeded,
    NotSupported,
    SettingsError,
    SourceConflict,
    StepOutOfOrder,
    UnknownColumn,
    UnknownSource,
)


def test_steps_must_follow_each_other():
    engine = engine_with()
    after = engine.position.sequence + 1
    with pytest.raises(StepOutOfOrder):
        engine.enqueue(Step(Position(0, after + 1), 0, Heartbeat(SourceName("s"))))
    engine.enqueue(Step(Position(3, after), 0, Heartbeat(SourceName("s"))))
    with pytest.raises(StepOutOfOrder):
        engine.enqueue(Step(Position(2, after + 1), 0, Heartbeat(SourceName("s"))))


def test_offsets_must_follow_each_other():
    engine = engine_with()
    engine.ingest("s", rows(engine, 5, (1, 10), (2, 20)))
    with pytest.raises(StepOutOfOrder):
        engine.ingest("s", rows(engine, 6, (1, 30)))


def test_views_wait_for_queued_steps_to_run():
    engine = engine_with("SELECT v FROM s")
    start = engine.position.sequence
    for i in range(3):
        body = Records(SourceName("s"), rows(engine, 4 * i, *[(i, 100 * i + j) for j in range(4)]), {})
        engine.enqueue(Step(Position(0, start + 1 + i), 0, body))
    assert values(engine) == []
    assert [r.position.sequence for r in engine.run()] == [start + 1, start + 2, start + 3]
    assert values(engine) == [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2]  # the last row stands above NOW
    assert engine.run() == []


def test_a_query_dropped_between_batches_is_gone_and_the_others_are_not():
    engine = engine_with("SELECT v FROM s WHERE v > 1", "SELECT v FROM s WHERE v > 2")
    engine.ingest("s", rows(engine, 0, (1, 10), (2, 20), (3, 30)))
    engine.unregister("q0")
    engine.ingest("s", rows(engine, 3, (4, 40), (5, 50)))
    assert values(engine, "q1") == [3, 4]
    engine.unregister("q0")  # a second time is nothing


def test_window_edges_to_the_millisecond():
    engine = engine_with("SELECT v FROM s [RANGE 100 MILLISECONDS]", "SELECT v FROM s [NOW]")
    engine.ingest("s", rows(engine, 0, (1, 1000), (2, 1001), (3, 1101), (4, 1102)))
    assert engine.view().snapshot("q0").now_ms == 1101
    assert values(engine) == [2, 3]
    assert values(engine, "q1") == [3]
    at = engine.view().snapshot("q0", at=1100)
    assert at.table.column("v").to_pylist() == [1, 2]


def test_windows_close_on_idle_input():
    engine = small_engine()
    engine.create(CREATE.replace("idle_timeout", "idle_advances = true, idle_timeout"))
    engine.register("q0", "SELECT v FROM s [RANGE 5 SECONDS]")
    engine.ingest("s", rows(engine, 0, (1, 10_000)), clock_ms=50_000)
    assert values(engine) == []

    def beat(clock_ms: int) -> None:
        position = Position(0, engine.position.sequence + 1)
        engine.enqueue(Step(position, clock_ms, Heartbeat(SourceName("s"))))
        engine.run()

    beat(50_999)
    assert values(engine) == []
    beat(51_000)
    assert values(engine) == [1]
    beat(56_000)
    assert values(engine) == [1]
    beat(56_001)
    assert values(engine) == []


def test_refusals_of_one_step_leave_the_others():
    engine = engine_with("SELECT v FROM s")
    registrations = (
        Registration("good", "SELECT v FROM s WHERE v = 1"),
        Registration("column", "SELECT w FROM s"),
        Registration("stream", "SELECT v FROM t"),
        Registration("q0", "SELECT v FROM s WHERE v = 2"),
        Registration("ddl", CREATE),
    )
    engine.enqueue(Step(Position(0, engine.position.sequence + 1), 0, Register(registrations)))
    failed = engine.run()[0].failed
    kinds = {name: type(error) for name, error in failed.items()}
    assert kinds == {"column": UnknownColumn, "stream": UnknownSource, "q0": HandleInUse, "ddl": NotSupported}
    assert {info.query_id for info in engine.view().queries()} == {"q0", "good"}


def test_registering_the_same_text_again_is_nothing():
    engine = engine_with("SELECT v FROM s")
    engine.ingest("s", rows(engine, 0, (1, 10), (2, 20)))
    engine.register("q0", "SELECT v FROM s")
    assert values(engine) == [1]


def test_limits_are_told():
    engine = engine_with("SELECT v FROM s", limits=Limits(queries_max=1, snapshot_rows_max=1))
    with pytest.raises(LimitExceeded, match="queries_max"):
        engine.register("one-more", "SELECT v FROM s")
    engine.ingest("s", rows(engine, 0, (1, 10), (2, 20), (3, 30)))
    with pytest.raises(LimitExceeded, match="snapshot_rows_max"):
        engine.view().snapshot("q0")


def test_a_stream_goes_only_when_nobody_reads_it():
    engine = engine_with("SELECT v FROM s")

    def drop() -> dict[str, Exception]:
        engine.enqueue(Step(Position(0, engine.position.sequence + 1), 0, DropSource(SourceName("s"))))
        return dict(engine.run()[0].failed)

    refused = drop()["s"]
    assert isinstance(refused, SourceConflict)
    assert (
        refused.hint
        == "end them first, as DROP STREAM s CASCADE does; SHOW QUERIES EXTENDED lists what each reads"
    )
    engine.enqueue(Step(Position(0, engine.position.sequence + 1), 0, Unregister(("q0",))))
    engine.run()
    assert drop() == {}
    assert isinstance(drop()["s"], UnknownSource)
    engine.create(CREATE)
    engine.register("q0", "SELECT v FROM s")
    engine.ingest("s", rows(engine, 0, (1, 10), (2, 20)))
    assert values(engine) == [1]


def test_a_stream_cannot_come_twice_with_two_meanings():
    engine = engine_with()
    engine.create(CREATE)
    with pytest.raises(SourceConflict):
        engine.create(CREATE.replace("v INTEGER", "v BIGINT"))


def test_only_what_is_settable_can_be_set():
    engine = engine_with()
    with pytest.raises(SettingsError, match="policy"):
        engine.set_attribute("query-stem/s", "policy", "clairvoyant")
    with pytest.raises(SettingsError):
        engine.set_attribute("data-stem/s", "rows", "0")
