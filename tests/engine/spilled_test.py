"""Sealed rows on disk: answers, changes and saves are those of an engine that keeps all in memory."""

from __future__ import annotations

import gc

import numpy as np
import pyarrow as pa
import pytest

from engine.dataflow.buffers.settings import StateSettings
from engine.engine import Engine
from engine.model.batch import BATCH_ROWS_MAX, Batch
from engine.model.capacities import Capacities
from engine.model.source import SourceName
from engine.model.spill import nbytes_of
from engine.model.step import DropSource, Position, Step, StepResult, Unregister
from engine.model.string_table import StringTable
from engine.stems import stream_strings
from engine.stems.segment import SEGMENT_ROWS
from tests.memory_state import MemoryState
from tests.spill import FILES, OftenSpilled

CLOCK_MS = 10**9
ROWS = 4 * SEGMENT_ROWS + 9_000
RETAINED = 3 * SEGMENT_ROWS
S = SourceName("s")
QUERIES = {
    "rare": "SELECT v, k FROM s WHERE v = 77 AND x > 0.5",
    "nulls": "SELECT COUNT(*) AS n FROM s WHERE g IS NULL",
    "like": "SELECT k FROM s WHERE k LIKE '%77' AND v >= 50",
    "groups": "SELECT g, COUNT(*) AS n, SUM(v) AS total, MAX(k) AS last FROM s GROUP BY g",
    "window": "SELECT COUNT(*) AS n, MIN(x) AS low FROM s [RANGE 90 SECONDS]",
    "rows": f"SELECT g, COUNT(*) AS n FROM s [ROWS {2 * SEGMENT_ROWS + 77}] GROUP BY g",
    "pairs": "SELECT a.v, b.v AS w FROM s [RANGE 9 SECONDS] a JOIN s b ON a.k = b.k WHERE a.v < 9",
    "last": "SELECT k, v FROM s [PARTITION BY g ROWS 1]",
}
FOLLOWED = ("groups", "window", "rare")


class AlwaysSpilled(OftenSpilled):
    """Wants all that is sealed; has always room while ``has_room``."""

    has_room = True

    def wanted(self) -> int:
        """As :class:`engine.model.spill.SpillSpace` has it."""
        return 1

    def write(self, arrays):
        """As :class:`engine.model.spill.SpillSpace` has it."""
        return FILES.write(arrays) if self.has_room else None


def table(rows: int) -> pa.Table:
    """A row a ms: k is ever new but for a tenth, g one of 50 or NULL, x some NaN."""
    rng = np.random.default_rng(11)
    number = np.arange(rows)
    number[::10] -= rng.integers(0, 9_000, len(number[::10])).clip(0, number[::10])
    group = rng.integers(0, 50, rows)
    x = rng.random(rows)
    x[::1_001] = np.nan
    return pa.table(
        {
            "k": pa.array([f"k{i:06d}" for i in number.tolist()]),
            "g": pa.array([None if g == 0 else f"group {g}" for g in group.tolist()]),
            "v": pa.array(rng.integers(0, 1_000, rows), pa.int32()),
            "x": pa.array(x),
            "ts": pa.array(np.arange(rows), pa.timestamp("ms")),
        }
    )


def batch(engine: Engine, rows: pa.Table, low: int, high: int) -> Batch:
    places = np.arange(low, high)
    schema = engine.catalogue["s"].schema
    return Batch.from_arrow(schema, rows.slice(low, high - low), np.zeros(len(places)), places, places)


def begun(space: OftenSpilled | None) -> Engine:
    engine = Engine(state=StateSettings(Capacities(spill=space)))
    columns = "k STRING, g STRING, v INTEGER, x DOUBLE, ts TIMESTAMP"
    engine.create(
        f"CREATE STREAM s ({columns}) WITH (timestamp = 'ts') RETAIN {RETAINED} MILLISECONDS", CLOCK_MS
    )
    for query, sql in QUERIES.items():
        engine.register(query, sql)
    for query in FOLLOWED:
        engine.follow(query)
    return engine


def spilled(engine: Engine) -> list[bool]:
    return [part.is_spilled for part in engine._sources[S].rows.sealed_from(0)]


def same_answers(one: Engine, other: Engine) -> None:
    ours, theirs = one.view(), other.view()
    for query in QUERIES:
        mine, wanted = (view.snapshot(query, rows_max=10**6).table for view in (ours, theirs))
        order = [(name, "ascending") for name in mine.column_names]
        assert mine.sort_by(order).equals(wanted.sort_by(order)), query


def told(result: StepResult) -> list[tuple[object, ...]]:
    """The changes, as values that are equal where the changes are, NaN included."""
    return [(one.query_ids, one.starts.tolist(), str(one.table.to_pydict())) for one in result.changes]


@pytest.mark.parametrize("space", [AlwaysSpilled, OftenSpilled])
def test_answers_and_changes_are_those_with_memory_for_all(
    space: type[OftenSpilled], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream_strings, "GENERATION_STRINGS", 100_000)
    rows = table(ROWS)
    disk, memory = begun(space()), begun(None)
    for number, low in enumerate(range(0, ROWS, BATCH_ROWS_MAX)):
        high = min(ROWS, low + BATCH_ROWS_MAX)
        mine, wanted = (one.ingest("s", batch(one, rows, low, high), CLOCK_MS) for one in (disk, memory))
        assert told(mine) == told(wanted)
        if number % 12 == 11:
            FILES.page_out()
            same_answers(disk, memory)
        if number == 20:
            for one in (disk, memory):
                one.register("late", "SELECT COUNT(*) AS n FROM s WHERE k > 'k02' AND v < 500")
    assert any(spilled(disk))
    tables = {part.columns[0].strings for part in disk._sources[S].rows.rows().parts}
    assert any(one is not None and one.is_spilled for one in tables)
    same_answers(disk, memory)
    for query, at_ms in (("late", None), ("window", ROWS - 80_000)):
        mine, wanted = (one.view().snapshot(query, at=at_ms).table for one in (disk, memory))
        assert mine.equals(wanted)
    disk._check()

    # What is saved is the same, and comes back onto disk.
    states = [MemoryState(), MemoryState()]
    for one, state in zip((disk, memory), states, strict=True):
        one.save(state)
    again = Engine.restore(states[0], state=StateSettings(Capacities(spill=space())))
    assert any(spilled(again))
    same_answers(again, Engine.restore(states[1]))


def test_rows_leave_memory_between_steps_and_views_before_stay() -> None:
    space = AlwaysSpilled()
    space.has_room = False
    rows = table(2 * SEGMENT_ROWS + 500)
    engine, memory = begun(space), begun(None)
    for low in range(0, len(rows), BATCH_ROWS_MAX):
        for one in (engine, memory):
            one.ingest("s", batch(one, rows, low, min(len(rows), low + BATCH_ROWS_MAX)), CLOCK_MS)
    before, held = engine.view(), engine.footprint()
    assert not any(spilled(engine))
    assert not engine.make_room()  # the disk has no room
    space.has_room = True
    while engine.make_room():
        assert engine.view() is not before
    assert all(spilled(engine))
    after = engine.footprint()
    on_disk = sum(nbytes_of(part.arrays()) for part in engine._sources[S].rows.sealed_from(0))
    assert after.rows + on_disk == held.rows
    assert on_disk > 25 * 2 * SEGMENT_ROWS
    same_answers(engine, memory)
    assert before.snapshot("rare").table.equals(engine.view().snapshot("rare").table)


def test_an_open_segment_leaves_memory_where_nothing_else_can_if_it_is_half_full() -> None:
    space = AlwaysSpilled()
    engine, memory = begun(space), begun(None)
    rows = table(50_000)
    for low, high in ((0, 8_192), *((low, low + 8_192) for low in range(8_192, 40_960, 8_192))):
        for one in (engine, memory):
            one.ingest("s", batch(one, rows, low, high), CLOCK_MS)
        assert engine.make_room() == (high == 40_960)
    assert spilled(engine) == [True]
    same_answers(engine, memory)
    for one in (engine, memory):
        one.ingest("s", batch(one, rows, 40_960, 49_152), CLOCK_MS)
    same_answers(engine, memory)
    engine._check()


def test_a_stream_that_is_dropped_lets_go_of_its_rows_and_views_before_keep_theirs() -> None:
    engine = begun(AlwaysSpilled())
    rows = table(2 * SEGMENT_ROWS)
    for low in range(0, len(rows), BATCH_ROWS_MAX):
        engine.ingest("s", batch(engine, rows, low, low + BATCH_ROWS_MAX), CLOCK_MS)
    source, before = engine._sources[S], engine.view()  # somebody knows of the stream still
    answer = before.snapshot("rare").table
    for body in (Unregister(tuple(QUERIES)), DropSource(S)):
        engine.enqueue(Step(Position(0, engine.position.sequence + 1), CLOCK_MS, body))
        engine.run()
    assert len(source.rows) == 0
    assert before.snapshot("rare").table.equals(answer)
    gc.collect()
    held = FILES.nbytes
    del before
    engine.view()
    gc.collect()
    assert FILES.nbytes < held - 20 * SEGMENT_ROWS


def test_row_lists_leave_memory_too_and_take_those_of_queries_that_come() -> None:
    space = AlwaysSpilled()
    space.has_room = False
    rows = table(2 * SEGMENT_ROWS + 500)
    engine, memory = begun(space), begun(None)
    for one in (engine, memory):
        for number in range(300):
            one.register(f"q{number}", f"SELECT v FROM s WHERE v BETWEEN {number} AND {number + 30}")
    for low in range(0, len(rows), BATCH_ROWS_MAX):
        for one in (engine, memory):
            one.ingest("s", batch(one, rows, low, min(len(rows), low + BATCH_ROWS_MAX)), CLOCK_MS)
    while engine.idle() or memory.idle():
        pass
    space.has_room = True
    before = engine.footprint().matches
    while engine.make_room():
        pass
    assert engine.footprint().matches < before - 10**6
    FILES.page_out()
    for one in (engine, memory):
        one._check()
        for number in range(300, 400):
            one.register(f"q{number}", f"SELECT v FROM s WHERE v BETWEEN {number} AND {number + 30}")
        while one.idle():
            pass
    for number in range(0, 400, 7):
        mine, wanted = (one.view().snapshot(f"q{number}").table for one in (engine, memory))
        assert mine.equals(wanted)
    while engine.make_room():
        pass
    mine, wanted = (one.view().snapshot("q350").table for one in (engine, memory))
    assert mine.equals(wanted)
    engine._check()


def test_a_table_on_disk_takes_more_strings() -> None:
    strings = StringTable()
    first = strings.number(pa.array([f"a{n}" for n in range(1_000)]))
    assert strings.spill(AlwaysSpilled()) > 0
    assert strings.spill(AlwaysSpilled()) == 0
    FILES.page_out()
    assert strings.find(pa.array(["a7", "a999", "b"]))[0].tolist()[:2] == [7, 999]
    assert strings.number(pa.array([f"a{n}" for n in range(1_000)])).tolist() == first.tolist()
    more = strings.number(pa.array([f"b{n}" for n in range(3_000)]))
    assert more.tolist() == list(range(1_000, 4_000))
    assert not strings.is_spilled
    strings._check()
