"""Many rows: segments fill, are sealed, packed, let go and come back, and answers stay what numpy says."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from engine.engine import Engine
from engine.model.batch import BATCH_ROWS_MAX, Batch
from engine.stems.match_place import slot_at
from engine.stems.segment import SEGMENT_ROWS
from tests.capacities import small_engine, small_restored
from tests.memory_state import MemoryState
from tureen.errors import InstantOutOfRange, UnknownQuery

ROWS = 2 * SEGMENT_ROWS + 9_000
CLOCK_MS = 10**9


class Stream:
    """Rows with a value of 0..99, a key of 40 strings or NULL, a timestamp each 10 ms, two rows a tick."""

    def __init__(self, rows: int = ROWS) -> None:
        rng = np.random.default_rng(7)
        self.value = rng.integers(0, 100, rows).astype(np.int32)
        keys = rng.integers(-1, 40, rows)
        self.key = np.array([None if k < 0 else f"key{k}" for k in keys], object)
        self.stamp = np.arange(rows) // 2 * 10
        self.table = pa.table(
            {
                "v": self.value,
                "k": pa.array(self.key, pa.string()),
                "ts": pa.array(self.stamp, pa.timestamp("ms")),
            }
        )

    def batch(self, schema, start: int, stop: int) -> Batch:
        return Batch.from_arrow(
            schema,
            self.table.slice(start, stop - start),
            np.zeros(stop - start),
            np.arange(start, stop),
            self.stamp[start:stop],
        )


def fill(engine: Engine, stream: Stream, start: int = 0, stop: int | None = None) -> None:
    schema = engine.catalogue["s"].schema
    stop = len(stream.stamp) if stop is None else stop
    for low in range(start, stop, BATCH_ROWS_MAX):
        rows = stream.batch(schema, low, min(stop, low + BATCH_ROWS_MAX))
        engine.ingest("s", rows, clock_ms=CLOCK_MS)


def new_engine(retain: str = "100 DAYS") -> Engine:
    engine = small_engine()
    sql = f"CREATE STREAM s (v INTEGER, k STRING, ts TIMESTAMP) WITH (timestamp = 'ts') RETAIN {retain}"
    engine.create(sql, CLOCK_MS)
    return engine


def offsets(engine: Engine, query_id: str, stream: Stream, mask: np.ndarray) -> None:
    """The answer holds exactly the visible rows of the mask, in order."""
    answer = engine.view().snapshot(query_id)
    visible = stream.stamp <= answer.now_ms
    expected = stream.table.filter(pa.array(mask & visible)).select(answer.table.column_names)
    assert answer.table.combine_chunks().equals(expected.combine_chunks())


def test_old_and_new_rows_meet_old_and_new_queries():
    stream = Stream()
    engine = new_engine()
    for q in range(130):  # three words: some hold selective queries alone, one holds everything
        engine.register(f"rare{q}", f"SELECT v, k FROM s WHERE v = {q}")
    fill(engine, stream, 0, SEGMENT_ROWS + 100)
    engine.register("late-dense", "SELECT k, v FROM s WHERE v < 90")
    engine.register("late-rare", "SELECT k FROM s WHERE k = 'key3' AND v > 50")
    fill(engine, stream, SEGMENT_ROWS + 100)
    engine.register("last", "SELECT v FROM s WHERE k IS NULL OR v * 2 = 8")
    engine._check()
    null = np.array([k is None for k in stream.key])
    offsets(engine, "rare7", stream, stream.value == 7)
    offsets(engine, "rare129", stream, stream.value == 129)
    offsets(engine, "late-dense", stream, stream.value < 90)
    offsets(engine, "late-rare", stream, (stream.key == "key3") & (stream.value > 50))
    offsets(engine, "last", stream, null | (stream.value == 4))


def test_counts_and_windows_across_segments():
    stream = Stream()
    engine = new_engine()
    engine.register("count", "SELECT COUNT(*) FROM s WHERE v < 10")
    engine.register("all", "SELECT COUNT(*) FROM s")
    fill(engine, stream)
    engine.register("range", "SELECT v FROM s [RANGE 400 SECONDS] WHERE v = 5")
    engine.register("rows", f"SELECT v FROM s [ROWS {SEGMENT_ROWS + 3}] WHERE v = 5")
    view = engine.view()
    now_ms = view.snapshot("count").now_ms
    visible = stream.stamp <= now_ms
    assert view.snapshot("count").table.column(0).to_pylist() == [int((visible & (stream.value < 10)).sum())]
    assert view.snapshot("all").table.column(0).to_pylist() == [int(visible.sum())]
    offsets(engine, "range", stream, (stream.stamp >= now_ms - 400_000) & (stream.value == 5))
    last = np.arange(len(visible)) >= visible.sum() - SEGMENT_ROWS - 3
    offsets(engine, "rows", stream, last & (stream.value == 5))
    for at in (0, 9, 10, 555_555, now_ms):
        mask = (stream.stamp <= at) & (stream.stamp >= at - 400_000) & (stream.value == 5)
        assert view.snapshot("range", at=at).table.num_rows == mask.sum()


def test_slots_are_used_again_and_old_views_do_not_lie():
    stream = Stream(SEGMENT_ROWS + 5_000)
    engine = new_engine()
    engine.register("a", "SELECT v FROM s WHERE v < 50")
    fill(engine, stream)
    before = engine.view()
    expected = before.snapshot("a").table
    engine.register("b", "SELECT v FROM s WHERE v = 1")
    assert before.snapshot("a").table.equals(expected)
    with pytest.raises(UnknownQuery):
        before.snapshot("b")
    engine.unregister("a")
    assert before.snapshot("a").table.equals(expected)  # nobody took its slot yet
    engine.register("c", "SELECT v FROM s WHERE v >= 50")
    offsets(engine, "c", stream, stream.value >= 50)
    offsets(engine, "b", stream, stream.value == 1)
    with pytest.raises(UnknownQuery):
        engine.view().snapshot("a")
    engine._check()


def test_rows_leave_when_nothing_needs_them():
    stream = Stream()
    engine = new_engine(retain="1 SECOND")
    engine.register("wide", "SELECT v FROM s [RANGE 300 SECONDS]")
    engine.register("open", "SELECT v FROM s")
    fill(engine, stream)
    now_ms = engine.view().snapshot("wide").now_ms
    wide = engine.view().snapshot("wide")
    assert wide.complete
    assert wide.table.num_rows == ((stream.stamp >= now_ms - 300_000) & (stream.stamp <= now_ms)).sum()
    unbounded = engine.view().snapshot("open")
    assert not unbounded.complete
    assert unbounded.complete_from_ms == now_ms - 300_000
    assert unbounded.table.num_rows == wide.table.num_rows
    segments = engine.stats()["data-stem/s"]["segments"]
    engine.unregister("wide")
    assert (
        engine.stats()["data-stem/s"]["rows"]
        == ((stream.stamp >= now_ms - 1_000) & (stream.stamp <= now_ms)).sum()
    )
    assert engine.stats()["data-stem/s"]["segments"] < segments
    with pytest.raises(InstantOutOfRange):
        engine.view().snapshot("open", at=now_ms - 500_000)
    engine._check()


def test_a_restored_engine_goes_on_as_if_nothing_had_been():
    stream = Stream()
    cut = SEGMENT_ROWS + 20_000
    engine, store = new_engine(retain="500 SECONDS"), MemoryState()
    engine.register("a", "SELECT v, k FROM s WHERE v < 3")
    engine.register("b", "SELECT k FROM s WHERE k = 'key1' OR v % 50 = 0")
    fill(engine, stream, 0, 30_000)
    engine.save(store)
    fill(engine, stream, 30_000, cut)
    engine.save(store)
    restored = small_restored(store)
    for one in (engine, restored):
        fill(one, stream, cut)
        one.register("c", "SELECT v FROM s [ROWS 100]")
        one._check()
    for query_id in "abc":
        mine, theirs = engine.view().snapshot(query_id), restored.view().snapshot(query_id)
        assert mine.table.combine_chunks().equals(theirs.table.combine_chunks())
        assert (mine.position, mine.now_ms, mine.complete) == (
            theirs.position,
            theirs.now_ms,
            theirs.complete,
        )
    restored.save(store)
    again = small_restored(store)
    assert again.view().snapshot("a").table.num_rows == engine.view().snapshot("a").table.num_rows


def test_policies_can_be_swapped_while_running():
    stream = Stream(20_000)
    engine = new_engine()
    engine.register("a", "SELECT v FROM s WHERE v % 3 = 1 AND v % 5 = 2")
    engine.register("b", "SELECT v FROM s WHERE v % 3 = 1")
    fill(engine, stream, 0, 9_000)
    engine.set_attribute("query-stem/s", "policy", "fixed")
    fill(engine, stream, 9_000)
    assert engine.stats()["query-stem/s"]["policy"] == "fixed"
    offsets(engine, "a", stream, (stream.value % 3 == 1) & (stream.value % 5 == 2))
    offsets(engine, "b", stream, stream.value % 3 == 1)


def test_segments_that_cannot_match_are_passed_over():
    stream = Stream()
    engine = new_engine()
    fill(engine, stream)
    parts = engine._sources["s"].rows.rows().parts
    sealed = [part for part in parts if part.zones]
    assert len(sealed) == 2
    second = stream.stamp[SEGMENT_ROWS + 500]
    for query_id, predicate, expected in (
        ("none", "v > 99", [False, False]),
        (
            "one",
            f"ts >= TIMESTAMP '1970-01-01 00:00:00' AND ts < '{np.datetime64(int(second), 'ms')}'",
            [True, True],
        ),
        ("first", "ts < '1970-01-01 00:01:00'", [True, False]),
        ("some", "v = 3 OR k = 'key1'", [True, True]),
    ):
        engine.register(query_id, f"SELECT v, ts FROM s WHERE {predicate}")
        stem = engine._sources["s"].queries
        probe = stem.probe([slot_at(place) for place in engine._queries[query_id].slots], stem.cohorts)
        assert [probe.may_match(part.zones) for part in sealed] == expected
    offsets(engine, "none", stream, stream.value > 99)
    offsets(engine, "one", stream, stream.stamp < second)
    offsets(engine, "first", stream, stream.stamp < 60_000)
    offsets(engine, "some", stream, (stream.value == 3) | (stream.key == "key1"))
