"""What steps of records may have of the time between two transactions."""

from __future__ import annotations

import pytest

from broker.shard.free_time import RECORDS_PART, RISE, FreeTime


def test_a_rise_is_taken_over_in_part_and_a_fall_whole() -> None:
    free = FreeTime()
    free.passed(600.0)
    free.passed(400.0)
    free.turn(1e9)
    assert free.turn_ns == pytest.approx(RECORDS_PART * RISE * 1_000.0)
    free.passed(50.0)
    free.turn(1e9)
    assert free.turn_ns == pytest.approx(RECORDS_PART * 50.0)
    free.turn(1e9)  # nothing passed since
    assert free.turn_ns == 0.0


def test_a_turn_is_bounded_and_spent_once() -> None:
    free = FreeTime()
    free.passed(1e6)
    free.turn(100.0)
    assert free.turn_ns == 100.0
    free.spent(30.0)
    assert free.turn_ns == 70.0
    free.spent(90.0)
    assert free.turn_ns == 0.0
