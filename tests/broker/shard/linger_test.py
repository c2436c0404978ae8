"""When records wait a moment for others, and when they do not."""

from __future__ import annotations

from broker.shard.linger import ROWS_MAX, Linger


def test_records_after_few_wait_until_the_time_is_over() -> None:
    linger = Linger(0.02)
    assert linger.left_s(100.0) == 0.0  # the first ones do not
    linger.took(3, 100.0, lagging=False)
    assert 0.014 < linger.left_s(100.005) < 0.016
    assert linger.left_s(100.02) == 0.0
    assert linger.left_s(200.0) == 0.0  # nor does what comes after a pause


def test_nobody_waits_where_more_waits_or_many_came() -> None:
    linger = Linger(0.02)
    for rows, lagging in ((3, True), (ROWS_MAX, False), (0, False)):
        linger.took(2, 100.0, lagging=False)
        linger.took(rows, 100.001, lagging=lagging)
        assert linger.left_s(100.001) == 0.0
