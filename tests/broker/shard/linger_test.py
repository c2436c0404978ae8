"""When records wait a moment for others, how long, and when they do not."""

from __future__ import annotations

import pytest

from broker.shard.linger import LONGEST, REST, ROWS_MAX, Linger


def few(linger: Linger, now_s: float, cpu_s: float = 0.0, latency_ms_max: int | None = None) -> None:
    """A turn with few records, which takes so much of the processor."""
    linger.begins(now_s, now_s)
    linger.took(3, 0, latency_ms_max)
    linger.written(now_s + cpu_s)


def test_records_after_few_wait_until_the_time_is_over() -> None:
    linger = Linger(0.02)
    assert linger.left_s(100.0) == 0.0  # the first ones do not
    few(linger, 100.0)
    assert 0.014 < linger.left_s(100.005) < 0.016
    assert linger.left_s(100.02) == 0.0
    assert linger.left_s(200.0) == 0.0  # nor does what comes after a pause


def test_nobody_waits_where_more_waits_or_many_came() -> None:
    linger = Linger(0.02)
    for rows, left in ((3, 4), (ROWS_MAX, 0), (0, 0)):
        few(linger, 100.0)
        linger.begins(100.001, 100.001)
        linger.took(rows, left)
        assert linger.left_s(100.001) == 0.0


def test_what_came_during_a_turn_with_few_records_waits() -> None:
    linger = Linger(0.02)
    linger.begins(100.0, 0.0)
    linger.took(3, 3)
    assert linger.left_s(100.01) > 0.0


def test_wait_is_longer_where_turns_take_much_of_the_processor() -> None:
    linger = Linger(0.02)
    turn_s = 0.032 / REST
    for number in range(30):
        few(linger, float(number), turn_s)
    assert linger.left_s(29.0) == pytest.approx(0.04)
    for number in range(30, 60):
        few(linger, float(number), 1.0)
    assert linger.left_s(59.0) == pytest.approx(LONGEST * 0.02)
    for number in range(60, 90):
        few(linger, float(number), 0.001)
    assert linger.left_s(89.0) == pytest.approx(0.02)


def test_shards_take_up_few_records_at_the_same_instants() -> None:
    instants = set()
    for began_ms in range(100_000, 100_020, 3):
        linger = Linger(0.02)
        few(linger, began_ms / 1_000)
        left_s = linger.left_s(began_ms / 1_000)
        assert 0.0099 < left_s < 0.0301
        instants.add(round(began_ms / 1_000 + left_s, 6))
    assert instants == {100.02, 100.04}
    assert linger.has_few
    linger.took(ROWS_MAX, 0)
    assert not linger.has_few


def test_turn_with_many_records_says_nothing_about_those_with_few() -> None:
    linger = Linger(0.02)
    linger.begins(0.0, 0.0)
    linger.took(ROWS_MAX, 0)
    linger.written(1.0)
    linger.written(2.0)  # a transaction without records
    few(linger, 3.0)
    assert linger.left_s(3.0) == pytest.approx(0.02)


def test_no_row_waits_longer_than_half_of_what_a_query_allows() -> None:
    linger = Linger(0.02)
    few(linger, 100.0, latency_ms_max=10)
    assert linger.left_s(100.0) == pytest.approx(0.005)
    few(linger, 100.0, latency_ms_max=1_000)
    assert linger.left_s(100.0) == pytest.approx(0.02)


def test_what_was_gathered_has_waited_and_rests_where_turns_take_much() -> None:
    linger = Linger(0.02)
    for number in range(30):
        linger.begins(float(number), 0.0)
        linger.took(3, 0, gathered=True)
        assert linger.left_s(float(number)) == pytest.approx(0.01)
        linger.written(1.5 * 0.02 / REST)
    assert linger.rest_s == pytest.approx(0.03)
    for number in range(30, 60):
        few(linger, float(number), 0.5 * 0.02 / REST)
    assert linger.rest_s == 0.0
    linger.begins(100.0, 0.0)
    linger.took(3, 0, 10, gathered=True)
    assert linger.left_s(100.0) == pytest.approx(0.005)


def test_records_that_may_not_wait_are_not_gathered() -> None:
    linger = Linger(0.02)
    assert linger.hurries(79)
    assert not linger.hurries(80)
    assert not linger.hurries(None)
    assert not Linger(0.0).hurries(1)


def test_without_a_time_nobody_waits() -> None:
    linger = Linger(0.0)
    for number in range(30):
        few(linger, float(number), 0.1)
    assert linger.left_s(29.0) == 0.0
