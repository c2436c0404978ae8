"""Windows of TUMBLE, HOP and SESSION: their edges, and when they close, as NOW moves by heartbeats."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest

from engine.model.batch import Batch
from engine.model.source import DAY_MS, SourceName
from engine.model.step import Heartbeat, Position, Records, Step
from engine.model.types import TIMESTAMP_MS_MIN
from tests.capacities import small_engine
from tests.engine.feed import Feed, plain, ticks
from tureen.errors import LimitExceeded

# --- TUMBLE and HOP ---------------------------------------------------------------------------------


def test_a_tumbling_window_is_half_open_and_appears_when_now_passes_its_last_instant() -> None:
    feed = Feed(
        "SELECT v, window_start, window_end FROM TUMBLE(s, INTERVAL '100' MILLISECONDS)",
        "SELECT window_end, COUNT(*) FROM TUMBLE(s, ts, 100 MILLISECONDS) GROUP BY window_end",
    )
    feed.put(*ticks([100, 199, 200, 250]))
    feed.now(250)
    assert feed.rows() == [(100, 100, 200), (199, 100, 200)]
    feed.now(298)
    assert feed.rows("q1") == [(200, 2)]
    feed.now(299)  # no row came: heartbeats alone
    assert feed.rows() == [(100, 100, 200), (199, 100, 200), (200, 200, 300), (250, 200, 300)]
    assert feed.rows("q1") == [(200, 2), (300, 2)]
    assert feed.rows("q1", at_ms=298) == [(200, 2)]
    assert feed.rows("q1", at_ms=198) == []


def test_windows_are_aligned_before_1970_and_by_an_offset() -> None:
    feed = Feed(
        "SELECT v, window_start FROM TUMBLE(s, 100 MILLISECONDS)",
        "SELECT v, window_start FROM TUMBLE(s, 100 MILLISECONDS, 130 MILLISECONDS)",
    )
    feed.put(*ticks([-201, -200, -170, -101, -1, 0, 30]))
    feed.now(200)
    assert feed.rows() == [
        (-201, -300),
        (-200, -200),
        (-170, -200),
        (-101, -200),
        (-1, -100),
        (0, 0),
        (30, 0),
    ]
    assert feed.rows("q1") == [
        (-201, -270),
        (-200, -270),
        (-170, -170),
        (-101, -170),
        (-1, -70),
        (0, -70),
        (30, 30),
    ]


def test_hops_that_are_no_multiple_of_their_slide() -> None:
    feed = Feed(
        "SELECT window_start, window_end, v FROM HOP(s, 100 MILLISECONDS, 250 MILLISECONDS)",
        "SELECT window_start, window_end, v FROM HOP(s, 100 MILLISECONDS, 30 MILLISECONDS)",
    )
    feed.put(*ticks([49, 50, 100, 129, 130]))
    feed.now(1_000)
    assert feed.rows() == [
        (-200, 50, 49),
        *[(-100, 150, v) for v in (49, 50, 100, 129, 130)],
        *[(0, 250, v) for v in (49, 50, 100, 129, 130)],
        *[(100, 350, v) for v in (100, 129, 130)],
    ]
    assert feed.rows("q1") == [(100, 130, 100), (100, 130, 129)]  # between windows rows are in none


def test_ties_late_rows_and_batches_change_no_window() -> None:
    whole = Feed("SELECT v, window_end FROM HOP(s, 50 MILLISECONDS, 100 MILLISECONDS) WHERE v <> 7")
    pieces = Feed("SELECT v, window_end FROM HOP(s, 50 MILLISECONDS, 100 MILLISECONDS) WHERE v <> 7")
    rows = [(10, "a", 1.0), (60, "a", 2.0), (60, "b", 3.0), (60, "a", 7.0), (110, "a", 4.0)]
    whole.put(*rows)
    for row in rows:
        pieces.put(row)
    for feed in (whole, pieces):
        feed.now(149)
        late = feed.put((149, "late", 9.0), (60, "late", 9.0))
        assert late.late == (0, 1)
        assert feed.rows() == [
            (1, 50),
            (1, 100),
            (2, 100),
            (3, 100),
            (2, 150),
            (3, 150),
            (4, 150),
        ]


def test_a_bracket_window_applies_to_a_windows_last_instant() -> None:
    feed = Feed(
        "SELECT v, window_end FROM TUMBLE(s, 100 MILLISECONDS) [RANGE 100 MILLISECONDS]",
        "SELECT v FROM TUMBLE(s, 100 MILLISECONDS) [NOW]",
        "SELECT v FROM TUMBLE(s, 100 MILLISECONDS) [ROWS 2]",
        "SELECT v FROM TUMBLE(s, 100 MILLISECONDS) [PARTITION BY window_end ROWS 1 WHERE v < 250]",
        "SELECT v FROM TUMBLE(s, 100 MILLISECONDS) [RANGE 1 SECOND WHERE v > 100 AND window_end < TIMESTAMP "
        "'1970-01-01 00:00:00.250']",
        "SELECT v FROM TUMBLE(s, 100 MILLISECONDS) BEGIN NOW - 200 END NOW - 100",
    )
    feed.put(*ticks([50, 100, 180, 200, 250, 299]))
    feed.now(299)
    assert feed.rows("q0") == [(100, 200), (180, 200), (200, 300), (250, 300), (299, 300)]
    assert feed.values("q1") == [200, 250, 299]
    assert feed.values("q2") == [250, 299]
    assert feed.values("q3") == [50, 180, 200]
    assert feed.values("q4") == [180]
    assert feed.values("q5") == [50, 100, 180]
    feed.now(300)
    assert feed.rows("q0") == [(200, 300), (250, 300), (299, 300)]
    assert feed.values("q1") == []
    assert feed.values("q5") == [100, 180]


def test_windows_yet_to_close_keep_their_rows() -> None:
    feed = Feed(
        "SELECT v FROM HOP(s, 50 MILLISECONDS, 100 MILLISECONDS)",
        "SELECT v FROM HOP(s, 50 MILLISECONDS, 100 MILLISECONDS) [NOW]",
        retain="1 MILLISECOND",
    )
    feed.put(*ticks([10, 20]))
    feed.now(99)
    assert feed.values("q1") == [10, 20]
    assert feed.answer("q1").complete
    assert feed.values("q0") == [10, 20, 10, 20]  # of the windows that end at 50 and at 100
    feed.now(199)  # 49 and on are retained, for the window from 50 to 150
    answer = feed.answer("q0")
    assert (answer.table.num_rows, answer.complete, answer.complete_from_ms) == (0, False, 49)
    assert feed.answer("q1").complete


def test_a_window_that_begins_before_what_is_retained_makes_an_answer_incomplete() -> None:
    feed = Feed("SELECT v FROM TUMBLE(s, 100 MILLISECONDS) [RANGE 150 MILLISECONDS]", retain="1 MILLISECOND")
    feed.put(*ticks([0, 99, 100]))
    feed.now(199)
    assert feed.values() == [0, 99, 100]
    feed.put(*ticks([260]))
    feed.now(299)
    assert feed.answer().complete
    assert feed.values() == [100, 260]
    feed.engine.register("wide", "SELECT v FROM TUMBLE(s, 100 MILLISECONDS) [RANGE 200 MILLISECONDS]")
    answer = feed.answer("wide")
    assert (answer.complete, answer.complete_from_ms) == (False, 49)
    assert feed.values("wide") == [99, 100, 260]
    feed.engine.register("rows", "SELECT v FROM TUMBLE(s, 100 MILLISECONDS) [ROWS 2]")
    feed.engine.register("more", "SELECT v FROM TUMBLE(s, 100 MILLISECONDS) [ROWS 3]")
    assert feed.answer("rows").complete
    assert not feed.answer("more").complete


def test_the_overlap_of_hops_is_bounded_and_so_are_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    feed = Feed("SELECT COUNT(*) FROM HOP(s, 1 MILLISECOND, 1 SECOND)")
    with pytest.raises(LimitExceeded, match="windows_a_row_max"):
        feed.engine.register("far", "SELECT v FROM HOP(s, 1 MILLISECOND, 1001 MILLISECONDS)")
    feed.put(*ticks([0, 0, 0]))
    feed.now(5_000)
    assert feed.values() == [3_000]
    monkeypatch.setattr("engine.operators.assignment.PAIRS_MAX", 2_999)
    with pytest.raises(LimitExceeded, match="intermediate_rows_max"):
        feed.answer()


# --- SESSION ----------------------------------------------------------------------------------------


def test_a_session_ends_the_gap_after_its_last_row() -> None:
    sql = "SELECT v, window_start, window_end FROM SESSION(s, INTERVAL '100' MILLISECONDS)"
    feed = Feed(sql)
    feed.put(*ticks([10, 109]))
    feed.now(207)
    assert feed.rows() == []
    feed.put(*ticks([208]))  # within the gap of 109, in another step
    feed.now(306)
    assert feed.rows() == []
    feed.now(307)
    assert feed.rows() == [(10, 10, 308), (109, 10, 308), (208, 10, 308)]
    feed.put(*ticks([308]))  # exactly at the end: outside
    feed.now(407)
    assert feed.rows()[3:] == [(308, 308, 408)]
    assert feed.rows(at_ms=306) == []
    assert len(feed.rows(at_ms=307)) == 3


def test_sessions_of_keys_do_not_touch_each_other() -> None:
    feed = Feed(
        "SELECT k, v, window_start, window_end FROM SESSION(s PARTITION BY k, ts, 10 MILLISECONDS)",
        "SELECT k, v FROM SESSION(TABLE s PARTITION BY k, DESCRIPTOR(ts), 10 MILLISECONDS) WHERE v > 1",
    )
    feed.put((-20, "a", 1.0), (-15, None, 2.0), (-14, "a", 3.0), (-12, None, 4.0), (-4, "a", 5.0))
    feed.put((-2, None, 6.0), (-2, "b", 7.0))
    feed.now(20)
    assert feed.rows() == [
        ("a", 1, -20, -4),
        ("a", 3, -20, -4),
        (None, 2, -15, -2),
        (None, 4, -15, -2),
        ("a", 5, -4, 6),
        (None, 6, -2, 8),
        ("b", 7, -2, 8),
    ]
    assert [v for _, v in feed.rows("q1")] == [3, 2, 4, 5, 6, 7]


def test_sessions_that_begin_and_end_together_keep_the_order_of_rows() -> None:
    feed = Feed("SELECT k, v FROM SESSION(s PARTITION BY k, 10 MILLISECONDS)")
    feed.put((0, "a", 1.0), (0, "b", 2.0), (4, "b", 3.0), (4, "a", 4.0), (5, "c", 5.0))
    feed.now(14)
    assert feed.rows() == [("a", 1), ("b", 2), ("b", 3), ("a", 4), ("c", 5)]


def test_null_nan_and_both_zeros_are_keys_of_sessions() -> None:
    feed = Feed("SELECT ts, window_start FROM SESSION(s PARTITION BY v, 10 MILLISECONDS)")
    feed.put((0, "x", 0.0), (1, "x", math.nan), (2, "x", None), (3, "x", -0.0), (4, "x", math.nan))
    feed.put((5, "x", None))
    feed.now(100)
    assert sorted(feed.rows()) == [(0, 0), (1, 1), (2, 2), (3, 0), (4, 1), (5, 2)]


def test_a_bracket_window_takes_sessions_by_their_last_instant() -> None:
    feed = Feed(
        "SELECT v FROM SESSION(s PARTITION BY k, 10 MILLISECONDS) [RANGE 5 MILLISECONDS]",
        "SELECT v FROM SESSION(s PARTITION BY k, 10 MILLISECONDS) [ROWS 2]",
        "SELECT v FROM SESSION(s PARTITION BY k, 10 MILLISECONDS) [PARTITION BY k ROWS 1]",
    )
    feed.put((0, "a", 1.0), (2, "b", 2.0), (3, "a", 3.0), (9, "c", 4.0))
    feed.now(16)
    assert feed.values("q0") == [2, 1, 3]  # their last instants are 11 and 12
    feed.now(17)
    assert feed.values("q0") == [1, 3]
    feed.now(18)
    assert feed.values("q0") == [4]
    assert feed.values("q1") == [3, 4]
    assert feed.values("q2") == [2, 3, 4]


def test_sessions_of_what_is_retained_say_from_when_they_are_whole() -> None:
    feed = Feed(
        "SELECT v FROM SESSION(s, 10 MILLISECONDS)",
        "SELECT v FROM SESSION(s, 10 MILLISECONDS) [RANGE 20 MILLISECONDS]",
        "SELECT v FROM SESSION(s, 10 MILLISECONDS) [ROWS 1]",
        retain="50 MILLISECONDS",
    )
    feed.put(*ticks([0, 5]))
    feed.now(50)
    assert feed.answer("q0").complete
    feed.put(*ticks([60, 65]))
    feed.now(80)  # retained from 30; what is gone may reach into sessions that begin before 39
    for query_id, complete in (("q0", False), ("q1", True), ("q2", True)):
        answer = feed.answer(query_id)
        assert (answer.complete, answer.complete_from_ms) == (complete, None if complete else 30)
    assert feed.values("q0") == [60, 65]
    assert feed.values("q2") == [65]
    feed.put(*ticks([90, 97, 104, 111, 118, 125, 132, 139]))
    feed.now(142)  # retained from 92: the session that is open lost its first row
    feed.now(148)
    assert feed.values("q1") == [104, 111, 118, 125, 132, 139]
    assert feed.answer("q1").complete_from_ms == 98
    assert feed.answer("q2").complete_from_ms == 98


# --- other streams, other times ---------------------------------------------------------------------


def test_windows_of_a_stream_in_arrival_time() -> None:
    engine = small_engine()
    engine.create("CREATE STREAM s (v INTEGER)")
    sql = "SELECT window_end, COUNT(*) FROM TUMBLE(s, 100 MILLISECONDS) GROUP BY window_end"
    engine.register("q0", sql)

    def step(body: Records | Heartbeat, clock_ms: int) -> list[tuple[int, int]]:
        position = Position(0, engine.position.sequence + 1)
        engine.enqueue(Step(position, clock_ms, body))
        engine.run()
        table = engine.view().snapshot("q0").table
        return list(zip(plain(table.column(0)), plain(table.column(1)), strict=True))

    rows = pa.table({"v": pa.array([1, 2, 3], pa.int32())})
    schema = engine.catalogue["s"].schema
    batch = Batch.from_arrow(schema, rows, np.zeros(3), np.arange(3), [10, 99, 100])
    assert step(Records(SourceName("s"), batch, {}), 100) == [(100, 2)]
    assert step(Heartbeat(SourceName("s")), 199) == [(100, 2)]
    assert step(Heartbeat(SourceName("s")), 200) == [(100, 2), (200, 1)]


def test_windows_outside_the_years_of_a_timestamp_have_no_such_column() -> None:
    feed = Feed(
        "SELECT v, window_start FROM TUMBLE(s, 8 DAYS)",
        "SELECT v FROM TUMBLE(s, 8 DAYS) WHERE window_start IS NULL",
    )
    following = -719_160 * DAY_MS  # the first multiple of 8 days that is a TIMESTAMP
    feed.put((TIMESTAMP_MS_MIN, "a", 1.0), (following, "a", 2.0))
    feed.now(following + 8 * DAY_MS)
    assert feed.rows() == [(1, None), (2, following)]
    assert feed.values("q1") == [1]
