"""A source whose NOW is decided elsewhere, and whole copies of an engine."""

from __future__ import annotations

import numpy as np

from engine.engine import Engine
from engine.model.batch import Batch
from engine.model.source import SourceName, Stream
from engine.model.step import Decided, Position, Records, Step, StepResult
from tests.capacities import small_engine, small_restored
from tests.memory_state import MemoryState
from tests.strategies import batch_of

CREATE = "CREATE STREAM s (k INT, ts TIMESTAMP NOT NULL) WITH (topic = 's', timestamp = 'ts')"
QUERY = "SELECT k, COUNT(*) AS n FROM s [RANGE 10 SECONDS] GROUP BY k EMIT CHANGES"


def begun() -> Engine:
    engine = small_engine()
    engine.create(CREATE)
    engine.register("q", QUERY)
    return engine


def rows(engine: Engine, *told: tuple[int, int, int]) -> Batch:
    """(offset, timestamp, k) of partition 0."""
    stream = engine.catalogue["s"]
    assert isinstance(stream, Stream)
    return batch_of(stream.schema, [(0, offset, at_ms, (k,)) for offset, at_ms, k in told])


def bring(engine: Engine, batch: Batch, now_ms: int | None) -> StepResult:
    body = Records(SourceName("s"), batch, {}, decided=Decided(now_ms))
    engine.enqueue(Step(Position(1, engine.position.sequence + 1), 0, body))
    (result,) = engine.run()
    return result


def counted(engine: Engine) -> list[dict[str, int]]:
    rows: list[dict[str, int]] = engine.view().snapshot("q").table.to_pylist()
    return rows


def test_now_goes_where_it_is_told_and_no_row_is_late() -> None:
    engine = begun()
    assert bring(engine, rows(engine, (0, 5_000, 1)), None).now_ms is None
    assert counted(engine) == []
    result = bring(engine, rows(engine, (1, 4_000, 2), (2, 9_000, 3)), 5_000)
    assert (result.now_ms, result.entered, result.late) == (5_000, 2, ())
    assert counted(engine) == [{"k": 2, "n": 1}, {"k": 1, "n": 1}]
    assert bring(engine, rows(engine), 4_000).now_ms == 5_000  # never back
    result = bring(engine, rows(engine), 16_000)
    assert result.entered == 1
    told = [at for changes in result.changes for at in np.unique(changes.at_ms).tolist()]
    assert told == [9_000, 14_001, 15_001]
    assert counted(engine) == [{"k": 3, "n": 1}]


def test_a_copy_is_the_engine_and_saves_know_nothing_of_it() -> None:
    engine, store = begun(), MemoryState()
    engine.save(store)
    bring(engine, rows(engine, (0, 1_000, 1), (1, 2_000, 1), (2, 3_000, 2), (3, 90_000, 9)), 2_500)
    copies = MemoryState()
    engine.copy(copies)
    again = small_restored(copies)
    again._check()
    assert again.position == engine.position
    assert counted(again) == counted(engine)
    engine.save(store)
    saved = small_restored(store)
    for one in (engine, again, saved):
        bring(one, rows(one, (4, 3_100, 2)), 100_000)
    assert counted(engine) == counted(again) == counted(saved) == [{"k": 9, "n": 1}]
    twice = MemoryState()
    engine.copy(twice)
    assert counted(small_restored(twice)) == counted(engine)
