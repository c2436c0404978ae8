"""What each window holds, to the millisecond, as NOW moves over it by heartbeats."""

from __future__ import annotations

import math

import numpy as np
import pytest

from engine.model.step import Position, Register, Registration, Step
from engine.stems.segment import SEGMENT_ROWS
from tests.engine.feed import Feed, ticks
from tureen.errors import InstantOutOfRange

# --- SLIDE -----------------------------------------------------------------------------------------


def test_a_sliding_window_moves_in_steps_and_a_row_on_the_boundary_is_in_both() -> None:
    feed = Feed("SELECT v FROM s [RANGE 100 MILLISECONDS SLIDE 100 MILLISECONDS]")
    feed.put(*ticks([100, 101, 200, 250]))
    feed.now(250)
    assert feed.values() == [100, 101, 200]  # as at 200
    feed.now(299)
    assert feed.values() == [100, 101, 200]
    feed.now(300)
    assert feed.values() == [200, 250]


def test_steps_are_multiples_of_the_slide_before_1970_too() -> None:
    feed = Feed("SELECT v FROM s [RANGE 10 MILLISECONDS SLIDE 100 MILLISECONDS]")
    feed.put(*ticks([-311, -310, -300, -299, -205, -200]))
    feed.now(-200)
    assert feed.values() == [-205, -200]
    assert feed.values(at_ms=-201) == [-310, -300]
    assert feed.values(at_ms=-300) == [-310, -300]
    assert feed.values(at_ms=-301) == []


def test_now_and_unbounded_move_in_steps_too() -> None:
    feed = Feed(
        "SELECT v FROM s [NOW SLIDE 50 MILLISECONDS]",
        "SELECT v FROM s [UNBOUNDED SLIDE 50 MILLISECONDS]",
    )
    feed.put(*ticks([99, 100, 100, 101]))
    feed.now(149)
    assert feed.values("q0") == [100, 100]
    assert feed.values("q1") == [99, 100, 100]
    feed.now(150)
    assert feed.values("q0") == []
    assert feed.values("q1") == [99, 100, 100, 101]


def test_retention_keeps_what_a_step_back_needs() -> None:
    feed = Feed("SELECT v FROM s [RANGE 20 MILLISECONDS SLIDE 100 MILLISECONDS]", retain="1 MILLISECOND")
    feed.put(*ticks([80, 100, 150, 199]))
    feed.now(199)
    assert feed.values() == [80, 100]
    assert feed.answer().complete
    feed.now(200)
    assert feed.values() == [199]


# --- rows of each key, rows that satisfy a condition ------------------------------------------------


def test_last_rows_of_each_key_in_the_order_of_the_stream() -> None:
    feed = Feed("SELECT k, v FROM s [PARTITION BY k ROWS 2]", "SELECT v FROM s [PARTITION BY k ROWS 1]")
    feed.put((1, "a", 1.0), (2, "b", 2.0), (3, "a", 3.0), (3, "a", 4.0), (3, "c", 5.0), (4, "b", 6.0))
    feed.now(4)
    assert feed.rows() == [("b", 2), ("a", 3), ("a", 4), ("c", 5), ("b", 6)]
    assert feed.values("q1") == [4, 5, 6]
    assert feed.rows(at_ms=3) == [("b", 2), ("a", 3), ("a", 4), ("c", 5)]


def test_null_nan_and_both_zeros_are_keys() -> None:
    feed = Feed(
        "SELECT ts FROM s [PARTITION BY k ROWS 1]",
        "SELECT ts FROM s [PARTITION BY v ROWS 1]",
        "SELECT ts FROM s [PARTITION BY k, v ROWS 1]",
    )
    feed.put((1, None, math.nan), (2, "a", 0.0), (3, None, -0.0), (4, "a", None), (5, "a", math.nan))
    feed.put((6, "a", None))
    feed.now(6)
    assert feed.values("q0") == [3, 6]
    assert feed.values("q1") == [3, 5, 6]
    assert feed.values("q2") == [1, 2, 3, 5, 6]


def test_a_key_that_fails_is_the_null_key() -> None:
    feed = Feed("SELECT ts FROM (SELECT ts, 1 / v AS w FROM s) [PARTITION BY w ROWS 1]")
    feed.put((1, "a", 0.0), (2, "a", None), (3, "a", 2.0), (4, "a", 0.0))
    feed.now(4)
    assert feed.values() == [3, 4]
    assert feed.answer().errors == 0


def test_the_window_comes_before_where_and_its_own_condition_before_it() -> None:
    feed = Feed(
        "SELECT v FROM s [ROWS 2 WHERE k = 'a'] WHERE v > 1",
        "SELECT v FROM s [PARTITION BY k ROWS 1 WHERE v < 5] WHERE k <> 'c'",
        "SELECT v FROM s [RANGE 2 MILLISECONDS WHERE k = 'a'] WHERE v < 6",
        "SELECT COUNT(*) FROM s [ROWS 2 WHERE v / 0 > 1]",
    )
    feed.put((1, "a", 9.0), (2, "a", 0.0), (3, "b", 4.0), (4, "a", 2.0), (4, "c", 1.0), (5, "b", 7.0))
    feed.now(5)
    assert feed.values("q0") == [2]  # 0.0 is one of the two
    assert feed.values("q1") == [4, 2]
    assert feed.values("q2") == [2]
    assert feed.values("q3") == [0]


def test_rows_that_satisfy_a_condition_are_found_far_back() -> None:
    feed = Feed("SELECT v FROM s [ROWS 3 WHERE k = 'rare']")
    for start in range(0, 20_000, 5_000):
        feed.put(*[(t, "rare" if t % 6_000 == 0 else "often", float(t)) for t in range(start, start + 5_000)])
    feed.now(19_999)
    assert feed.values() == [6_000, 12_000, 18_000]
    assert feed.values(at_ms=17_999) == [0, 6_000, 12_000]
    assert feed.values(at_ms=5_999) == [0]


def test_keyed_windows_hold_what_is_retained_and_say_so() -> None:
    feed = Feed(
        "SELECT v FROM s [PARTITION BY k ROWS 1]",
        "SELECT v FROM s [ROWS 2 WHERE k = 'a']",
        "SELECT v FROM s [ROWS 3 WHERE k = 'a']",
        retain="10 MILLISECONDS",
    )
    feed.put((1, "a", 1.0), (2, "b", 2.0))
    feed.now(11)
    assert feed.values("q0") == [1, 2]
    assert feed.answer("q0").complete
    feed.put((15, "a", 15.0), (20, "a", 20.0))
    feed.now(20)
    answers = [feed.answer(query_id) for query_id in ("q0", "q1", "q2")]
    assert [answer.table.column("v").to_pylist() for answer in answers] == [[20], [15, 20], [15, 20]]
    assert [answer.complete for answer in answers] == [False, True, False]
    assert [answer.complete_from_ms for answer in answers] == [10, None, 10]


def test_rows_that_only_a_row_window_keeps_are_not_retained_for_others() -> None:
    feed = Feed(
        "SELECT v FROM s [ROWS 5]",
        "SELECT v FROM s [PARTITION BY k ROWS 1]",
        "SELECT v FROM s [ROWS 1 WHERE k = 'b']",
        "SELECT v FROM TUMBLE(s, 5 MILLISECONDS)",
        "SELECT v FROM SESSION(s PARTITION BY k, 5 MILLISECONDS)",
        retain="10 MILLISECONDS",
    )
    feed.put((1, "a", 1.0), (2, "b", 2.0), (25, "a", 25.0))
    feed.now(30)
    assert feed.values("q0") == [1, 2, 25]
    assert feed.answer("q0").complete
    for query_id, expected in (("q1", [25]), ("q2", []), ("q3", [25]), ("q4", [25])):
        assert feed.values(query_id) == expected
        assert feed.answer(query_id).complete_from_ms == 20


# --- at an earlier instant --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("clause", "earliest"),
    [
        ("s [RANGE 10 MILLISECONDS]", 110),
        ("s [RANGE 10 MILLISECONDS SLIDE 50 MILLISECONDS]", 150),
        ("s BEGIN NOW - 30 END NOW - 20", 130),
        ("s [ROWS 3 WHERE k = 'a']", 140),
        ("s [PARTITION BY k ROWS 1]", None),
        ("s [UNBOUNDED]", None),
        ("s BEGIN 50 END NOW", None),
        ("TUMBLE(s, 40 MILLISECONDS) [RANGE 39 MILLISECONDS]", 159),
        ("TUMBLE(s, 40 MILLISECONDS) [ROWS 2]", 159),
        ("TUMBLE(s, 40 MILLISECONDS) [ROWS 2 WHERE k = 'a']", 199),
        ("TUMBLE(s, 40 MILLISECONDS)", None),
    ],
)
def test_an_earlier_instant_is_answered_from_the_first_on_that_can_be(
    clause: str, earliest: int | None
) -> None:
    feed = Feed(f"SELECT v FROM {clause}", retain="100 MILLISECONDS")
    wide = Feed(f"SELECT v FROM {clause}")
    for each in (feed, wide):
        each.put(*ticks([10, 50, 90]))
        each.now(90)
        each.put(*ticks([100, 110]))
        each.put((120, "b", 120.0), *ticks([140, 161, 170, 199]))
        each.now(200)
    with pytest.raises(InstantOutOfRange) as refused:
        feed.values(at_ms=60)
    assert refused.value.earliest_ms == earliest
    if earliest is None:
        with pytest.raises(InstantOutOfRange):
            feed.values(at_ms=200)
        assert not feed.answer().complete
    else:
        with pytest.raises(InstantOutOfRange):
            feed.values(at_ms=earliest - 1)
        for at_ms in range(earliest, 201):
            assert feed.values(at_ms=at_ms) == wide.values(at_ms=at_ms)


def test_all_windows_of_a_query_have_to_reach() -> None:
    feed = Feed(
        "SELECT v FROM s [NOW] WHERE k IN (SELECT k FROM s [RANGE 30 MILLISECONDS])",
        retain="100 MILLISECONDS",
    )
    feed.put(*ticks([10, 150, 200]))
    feed.now(200)
    with pytest.raises(InstantOutOfRange) as refused:
        feed.values(at_ms=120)
    assert refused.value.earliest_ms == 130


# --- before NOW -----------------------------------------------------------------


@pytest.mark.parametrize(
    "clause",
    [
        "s [RANGE 1 SECOND SLIDE 1 SECOND]",
        "s [PARTITION BY k ROWS 1]",
        "s [ROWS 1 WHERE v > 0]",
        "TUMBLE(s, 1 SECOND)",
        "HOP(s, 1 SECOND, 2 SECONDS) [ROWS 1]",
        "SESSION(s PARTITION BY k, 1 SECOND)",
    ],
)
def test_before_there_is_a_now_and_over_no_rows_windows_are_empty(clause: str) -> None:
    feed = Feed(f"SELECT v FROM {clause} WHERE v > 1", f"SELECT COUNT(*) FROM {clause}")
    answer = feed.answer()
    assert (answer.now_ms, answer.table.num_rows, answer.complete) == (None, 0, True)
    assert feed.values("q1") == [0]
    feed.put(*ticks([5_000]))
    assert feed.now_ms() == 4_999
    assert feed.rows() == []
    assert feed.values("q1") == [0]


def test_an_instant_before_all_time_is_empty_where_nothing_is_gone() -> None:
    feed = Feed("SELECT v FROM HOP(s, 1 HOUR, 1 DAY) [RANGE 1 HOUR]", "SELECT v FROM SESSION(s, 1 DAY)")
    feed.put(*ticks([0, 10]))
    feed.now(10)
    for query_id in ("q0", "q1"):
        assert feed.values(query_id, at_ms=-(2**70)) == []


# --- the ways of maintenance, and segments ---------------------------------------------------------

CLAUSES = [
    "s [RANGE 2 SECONDS SLIDE 700 MILLISECONDS] WHERE v > 50",
    "s [PARTITION BY k ROWS 3] WHERE v > 50",
    "s [PARTITION BY k ROWS 3 WHERE v > 20] WHERE v < 90",
    "s [ROWS 40 WHERE k = 'b'] WHERE v > 50",
    "s [ROWS 7 WHERE v / (v - 1) > 0] WHERE 1 / v < 0.05",
    "TUMBLE(s, 1 SECOND) WHERE v > 50",
    "HOP(s, 300 MILLISECONDS, 1 SECOND) [RANGE 5 SECONDS] WHERE v > 50 AND window_start < ts",
    "HOP(s, 300 MILLISECONDS, 1 SECOND) [PARTITION BY window_end, k ROWS 1 WHERE v > 20] WHERE v < 90",
    "SESSION(s PARTITION BY k, 40 MILLISECONDS) [RANGE 2 SECONDS] WHERE v > 50",
]


@pytest.mark.parametrize("clause", CLAUSES)
def test_however_it_is_maintained_a_window_holds_the_same(clause: str) -> None:
    feed = Feed(retain="3 SECONDS")
    for mode in ("none", "lazy", "eager"):
        options = {"maintenance": mode}
        for shape, columns in (("rows", "*"), ("sum", "k, COUNT(*), SUM(v * 0.1)")):
            sql = f"SELECT {columns} FROM {clause}" + (" GROUP BY k" if shape == "sum" else "")
            registration = Registration(f"{mode}-{shape}", sql, options=options)
            position = Position(0, feed.engine.position.sequence + 1)
            feed.engine.enqueue(Step(position, feed.clock_ms, Register((registration,))))
            feed.engine.run()
    rng = np.random.default_rng(3)
    seen = 0
    for start in range(0, 6_000, 750):
        stamps = np.sort(rng.integers(start, start + 750, 60))
        keys = rng.choice(["a", "b", "c", None], 60)
        values = rng.integers(0, 100, 60)
        feed.put(*[(int(t), k, float(v)) for t, k, v in zip(stamps, keys, values, strict=True)])
        for shape in ("rows", "sum"):
            known = feed.answer(f"none-{shape}")
            seen += known.table.num_rows
            for mode in ("lazy", "eager"):
                answer = feed.answer(f"{mode}-{shape}")
                assert answer.table.equals(known.table), (mode, shape)
                assert (answer.complete_from_ms, answer.errors) == (known.complete_from_ms, known.errors)
    assert seen > 50


def test_row_windows_reach_over_segments() -> None:
    n = 2 * SEGMENT_ROWS + 1_000
    feed = Feed(
        "SELECT v FROM s [ROWS 3 WHERE k = 'x' AND v < 500]",
        "SELECT v FROM s [PARTITION BY k ROWS 2]",
        "SELECT v FROM s [PARTITION BY k ROWS 2 WHERE v <> 400] WHERE v > 300",
    )
    for start in range(0, n, 8_000):
        stamps = range(start, min(n, start + 8_000))
        feed.put(*[(t, "x" if t % 100 == 0 else "y", float(t)) for t in stamps])
    feed.now(n - 1)
    assert feed.values("q0") == [200, 300, 400]
    last = (n - 1) // 100 * 100
    assert feed.values("q1") == sorted([last - 100, last, *[t for t in (n - 1, n - 2, n - 3) if t % 100][:2]])
    assert feed.values("q2", at_ms=450) == [449, 450]
    assert feed.values("q2", at_ms=400) == [398, 399]
