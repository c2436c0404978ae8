"""Shedding begins at 80 % of a queue's reserve, ends below 50 %, and does not flap."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.overload.shedding import BETWEEN_S, Shedding


def test_it_begins_at_80_percent_and_not_below() -> None:
    shedding = Shedding(1_000)
    assert not shedding.observe(799, 0.0)
    assert shedding.observe(800, 0.1)


def test_it_lasts_down_to_half_and_ends_below() -> None:
    shedding = Shedding(1_000)
    shedding.observe(900, 0.0)
    assert shedding.observe(500, 10.0)
    assert not shedding.observe(499, 10.1)
    assert not shedding.observe(799, 100.0)


def test_it_changes_once_in_five_seconds_at_most() -> None:
    shedding = Shedding(1_000)
    shedding.observe(1_000, 0.0)
    assert shedding.observe(0, 4.999)
    assert not shedding.observe(0, 5.0)
    assert not shedding.observe(1_000, 9.999)
    assert shedding.observe(1_000, 10.0)


@pytest.mark.parametrize("reserve", [0, -1])
def test_queue_without_a_reserve_is_refused(reserve: int) -> None:
    with pytest.raises(ValueError, match="above 0"):
        Shedding(reserve)


@given(st.lists(st.tuples(st.integers(0, 2_000), st.floats(0, 10)), max_size=60))
def test_changes_lie_apart_and_each_has_its_reason(seen: list[tuple[int, float]]) -> None:
    shedding, now_s, changed_s = Shedding(1_000), 0.0, None
    for queued, passed_s in seen:
        now_s += passed_s
        before = shedding.is_on
        after = shedding.observe(queued, now_s)
        if after != before:
            assert queued >= 800 if after else queued < 500
            assert changed_s is None or now_s - changed_s >= BETWEEN_S
            changed_s = now_s
