"""Streams of subqueries: the engine against the definition, answers, changes and refusals alike."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.model.limits import Limits
from engine.model.source import Stream
from engine.model.step import Records, Register, Registration, Step
from engine.reference import Reference
from tests.capacities import small_engine
from tests.differential.agreement import EngineSubject, assert_same_answers, told
from tests.differential.changes import Sums
from tests.differential.changes import agree as agree_on_changes
from tests.differential.telling import Followers, as_streams
from tests.memory_state import MemoryState
from tests.sql_streams import streaming
from tests.strategies import batch_of, examples
from tests.worlds import eventful_worlds, worlds

SOME = settings(max_examples=max(10, settings.default.max_examples // 4))
FEW = settings(max_examples=max(6, settings.default.max_examples // 6))
BACKS = st.lists(st.sampled_from([-1, 0, 1, 7, 30, 90]), max_size=1)


@SOME
@given(steps=worlds(streaming, streams_count=2, steps_max=6), backs=BACKS, data=st.data())
def test_answers_are_the_definition(steps: list[Step], backs: list[int], data: st.DataObject) -> None:
    store = MemoryState()
    engine, reference = EngineSubject(small_engine(Limits())), Reference(Limits())
    for place, step in enumerate(steps):
        assert told(engine.apply(step)) == told(reference.apply(step))
        engine.engine._check()
        if data.draw(st.sampled_from([False, False, False, True])):
            engine = engine.restarted(store)
        if place % 3 == 2:
            assert_same_answers(engine, reference, backs)
    assert_same_answers(engine, reference, [0, 20])


@FEW
@given(steps=eventful_worlds(streaming, streams_count=1, rounds=2, rows_max=3), data=st.data())
def test_changes_are_the_definition(steps: list[Step], data: st.DataObject) -> None:
    agree_on_changes(as_streams(steps, data))


SECONDS = "SELECT k, COUNT(*) AS n, SUM(v) AS total FROM s [RANGE 9 MILLISECONDS] GROUP BY k"
PAIRS = "SELECT a.k, b.v FROM s [RANGE 6 MILLISECONDS] a JOIN s [ROWS 3] b ON a.k = b.k"
FOLLOWED = [
    f"SELECT * FROM ({SECONDS}) [RANGE 7 MILLISECONDS]",
    f"SELECT k, MAX(n) AS most FROM ({SECONDS}) [RANGE 20 MILLISECONDS SLIDE 4 MILLISECONDS] GROUP BY k",
    f"SELECT * FROM ({SECONDS}) [ROWS 4] WHERE n > 1",
    f"SELECT * FROM DSTREAM ({SECONDS}) [PARTITION BY k ROWS 2 WHERE total > 3]",
    f"SELECT k, v FROM DSTREAM ({PAIRS}) [RANGE 5 MILLISECONDS] SAMPLE(60)",
    f"SELECT x.k, y.n FROM ({PAIRS}) [ROWS 3] x JOIN ({SECONDS}) [NOW] y ON x.k = y.k",
    f"SELECT COUNT(*) AS c FROM (SELECT k FROM ({SECONDS}) [ROWS 5] GROUP BY k) [RANGE 8 MILLISECONDS]",
    f"SELECT k FROM RSTREAM ({PAIRS}) [RANGE 4 MILLISECONDS]",
]


@settings(max_examples=examples(3))
@given(seed=st.integers(0, 2**32 - 1))
def test_what_is_told_step_by_step_adds_up_to_the_answers(seed: int) -> None:
    """Elements are kept from one step to the next; an answer works them out from the rows."""
    rng = np.random.default_rng(seed)
    followers, sums = Followers(EngineSubject(small_engine())), Sums()
    engine = followers.subject.engine
    engine.create(
        "CREATE STREAM s (k INT, v INT, ts TIMESTAMP NOT NULL) WITH (timestamp = 'ts') RETAIN 1 HOUR"
    )
    stream = engine.catalogue["s"]
    assert isinstance(stream, Stream)
    registrations = tuple(Registration(f"q{place}", sql) for place, sql in enumerate(FOLLOWED))
    followers.apply(followers.subject.next_step(0, Register(registrations)))
    store, offset, ts = MemoryState(), 0, 1_000
    for _ in range(10):
        rows = []
        for _ in range(int(rng.integers(1, 5))):
            ts += int(rng.choice([0, 0, 1, 2, 5]))
            rows.append((0, offset, ts, (int(rng.integers(3)), int(rng.integers(4)))))
            offset += 1
        body = Records(stream.name, batch_of(stream.schema, rows), {0: offset})
        result, telling = followers.apply(followers.subject.next_step(ts, body))
        assert not result.broken
        sums.add(followers.subject, telling)
        if rng.random() < 0.1:
            followers = followers.restarted(store)


DEPARTURES = "CREATE STREAM departures (dest STRING, delay INT, ts TIMESTAMP NOT NULL)"
COUNTS = "SELECT dest, COUNT(*) AS n FROM departures [RANGE 5 SECONDS] WHERE delay > 30 GROUP BY dest"
ROWS = [(0, "LAX", 45), (1_500, "SFO", 10), (2_000, "LAX", 60), (2_000, "BUR", 35), (9_000, "LAX", 5)]
EXAMPLE = {
    f"SELECT * FROM ISTREAM ({COUNTS})": {
        0: [("LAX", 1)],
        2_000: [("LAX", 1), ("LAX", 2), ("BUR", 1)],
        5_001: [("LAX", 1), ("LAX", 2), ("BUR", 1), ("LAX", 1)],
        7_001: [("LAX", 1), ("LAX", 2), ("BUR", 1), ("LAX", 1)],
    },
    f"SELECT * FROM ({COUNTS}) [RANGE 3 SECONDS]": {
        5_000: [("LAX", 2), ("BUR", 1)],
        5_001: [("LAX", 1)],
        8_001: [("LAX", 1)],
        8_002: [],
    },
    f"SELECT * FROM ({COUNTS}) [NOW]": {2_000: [("LAX", 2), ("BUR", 1)], 2_001: [], 5_001: [("LAX", 1)]},
    f"SELECT * FROM DSTREAM ({COUNTS}) [ROWS 2]": {
        2_000: [("LAX", 1)],
        5_001: [("LAX", 1), ("LAX", 2)],
        7_001: [("LAX", 1), ("BUR", 1)],
    },
    f"SELECT * FROM RSTREAM ({COUNTS}) [RANGE 0 SECONDS]": {
        2_000: [("LAX", 2), ("BUR", 1)],
        5_001: [("LAX", 1), ("BUR", 1)],
        7_001: [],
    },
    f"WITH c AS (ISTREAM ({COUNTS})) SELECT c.dest, n FROM c [PARTITION BY dest ROWS 1 WHERE n < 2]": {
        0: [("LAX", 1)],
        5_001: [("BUR", 1), ("LAX", 1)],
    },
    "SELECT dest, n FROM counts [ROWS 1]": {2_000: [("BUR", 1)], 8_999: [("LAX", 1)]},
}


@pytest.mark.parametrize("maintenance", ["none", "lazy", "eager"])
def test_the_example_of_the_page_on_what_answers_mean(maintenance: str) -> None:
    subject = EngineSubject()
    engine = subject.engine
    engine.create(f"{DEPARTURES} WITH (topic = 'd', timestamp = 'ts')")
    engine.create(f"CREATE STREAM counts AS ISTREAM ({COUNTS})")
    for place, sql in enumerate(EXAMPLE):
        subject.register(f"q{place}", sql, {"maintenance": maintenance})
    stream = engine.catalogue["departures"]
    assert isinstance(stream, Stream)
    placed = [(0, offset, ts, values) for offset, (ts, *values) in enumerate(ROWS)]
    for step in range(len(placed)):
        engine.ingest("departures", batch_of(stream.schema, placed[step : step + 1]))
    for place, (sql, expected) in enumerate(EXAMPLE.items()):
        for at_ms, rows in expected.items():
            assert subject.answer(f"q{place}", at_ms).rows == rows, (sql, at_ms)
        now = subject.answer(f"q{place}")
        assert now.rows == subject.answer(f"q{place}", now.now_ms).rows


def test_a_window_over_a_subquery_retains_what_its_elements_are_made_of() -> None:
    """Rows of the last 5 s, and 3 s and 1 ms more; of a window of rows the two before each of these."""
    subject = EngineSubject()
    engine = subject.engine
    engine.create(f"{DEPARTURES} WITH (topic = 'd', timestamp = 'ts') RETAIN 1 MILLISECOND")
    engine.register("time", f"SELECT * FROM ({COUNTS}) [RANGE 3 SECONDS]")
    rows = "SELECT SUM(delay) AS total FROM departures [ROWS 2]"
    engine.register("rows", f"SELECT * FROM ({rows}) [RANGE 3 SECONDS]")
    engine.register("all", f"SELECT * FROM ({rows}) [ROWS 1000]")
    stream = engine.catalogue["departures"]
    assert isinstance(stream, Stream)
    for offset in range(40):
        ts = 1_000 * offset
        engine.ingest("departures", batch_of(stream.schema, [(0, offset, ts, ("LAX", 31 + offset))]))
        for query_id in ("time", "rows"):
            answer = subject.answer(query_id)
            assert answer.complete, (query_id, offset)
    (source,) = engine.view().sources()
    assert source.now_ms == 38_999
    assert source.retained_from_ms == 38_999 - 8_001
    assert subject.answer("rows").rows == [(2 * 31 + 71,), (2 * 31 + 73,), (2 * 31 + 75,)]
    every = subject.answer("all")
    assert every.complete_from_ms == source.retained_from_ms
    assert every.rows == [(2 * 31 + 2 * offset - 1,) for offset in range(31, 39)]


def test_a_sample_of_a_subquery_is_a_tag_of_the_answer() -> None:
    subject = EngineSubject()
    subject.engine.create(f"{DEPARTURES} WITH (topic = 'd', timestamp = 'ts')")
    subject.engine.register("sampled", f"SELECT COUNT(*) FROM ({COUNTS}) SAMPLE(10) [RANGE 3 SECONDS]")
    subject.engine.register("whole", f"SELECT COUNT(*) FROM ({COUNTS}) SAMPLE(100) [RANGE 3 SECONDS]")
    view = subject.engine.view()
    (tag,) = view.approximation("sampled")
    assert (tag.kind, tag.origin, tag.amount, tag.unit) == ("sample", "declared", 10.0, "percent")
    assert tag.where == "istream sample 10 percent, window NOW - 3 seconds to NOW"
    assert view.approximation("whole") == ()
