"""How much time a function may lose, by a clock of the test's own."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from broker.runtime.lost_time import CALLS, SHARE, LostTime


def test_it_rests_from_when_nothing_is_left_until_there_is_the_time_of_a_call() -> None:
    now_s = [0.0]
    lost = LostTime(0.2, lambda: now_s[0])
    lost.lose(0.7)
    assert not lost.rests
    lost.lose(0.2)
    assert lost.rests
    now_s[0] += 0.29 / SHARE
    assert lost.rests
    now_s[0] += 0.02 / SHARE
    assert not lost.rests
    lost.lose(0.1)
    assert not lost.rests


@given(st.lists(st.tuples(st.floats(0, 5), st.floats(0.001, 0.3)), min_size=1, max_size=50))
def test_over_a_long_time_it_loses_its_share(steps: list[tuple[float, float]]) -> None:
    now_s, total = [0.0], 0.0
    lost = LostTime(0.2, lambda: now_s[0])
    for pause_s, loss_s in steps:
        now_s[0] += pause_s
        if not lost.rests:
            lost.lose(loss_s)
            total += loss_s
    assert total <= CALLS * 0.2 + SHARE * now_s[0] + 0.3
