"""When grouped filters are one pass and when modules, given what either cost."""

from __future__ import annotations

import pytest

from engine.eddy.fusing import ROWS_MIN, TRIAL_MAX, WORDS_MAX, Fusing


def splits(fusing: Fusing, fused: float, split: float, batches: int, rows: int = 8_192) -> float:
    """The share of batches that went as modules, of those at such costs a row."""
    took = 0
    for _ in range(batches):
        way = fusing.splits(rows, 4, 3)
        fusing.observe(way, rows, rows * (split if way else fused))
        took += way
    return took / batches


def test_one_pass_where_rows_survive():
    fusing = Fusing()
    fusing.surviving = 0.9
    assert splits(fusing, 10.0, 1.0, 300) == 0


@pytest.mark.parametrize("dearer", [1.5, 5.0, 100.0])
@pytest.mark.parametrize("split", [False, True])
def test_the_cheaper_way_and_trials_that_take_little(dearer, split):
    """The dear way runs now and then, and what that takes more is a few hundredths of the work."""
    fusing = Fusing()
    fusing.surviving = 0.1
    costs = (10.0 * dearer, 10.0) if split else (10.0, 10.0 * dearer)
    splits(fusing, *costs, 40)
    share = splits(fusing, *costs, 3_000)
    trials = 1 - share if split else share
    assert 0 < trials * (dearer - 1) < max(0.07, 3 * dearer / TRIAL_MAX)


def test_a_change_is_followed():
    fusing = Fusing()
    fusing.surviving = 0.1
    splits(fusing, 10.0, 20.0, 200)
    splits(fusing, 20.0, 10.0, 1_000)
    assert splits(fusing, 20.0, 10.0, 300) > 0.9
    fusing.surviving = 1.0
    splits(fusing, 5.0, 10.0, 1_000)
    assert splits(fusing, 5.0, 10.0, 300) == 0


def test_what_delays_one_batch_is_no_news():
    fusing = Fusing()
    fusing.surviving = 0.1
    splits(fusing, 10.0, 20.0, 100)
    fusing.observe(False, 8_192, 1e12)
    assert splits(fusing, 10.0, 20.0, 10) < 1 / 3


@pytest.mark.parametrize(
    ("rows", "words", "attributes"),
    [(ROWS_MIN - 1, 4, 3), (8_192, WORDS_MAX + 1, 3), (8_192, 4, 1)],
)
def test_not_worth_a_trial(rows, words, attributes):
    fusing = Fusing()
    splits(fusing, 10.0, 1.0, 10)
    fusing.surviving = 0.0
    assert not any(fusing.splits(rows, words, attributes) for _ in range(100))


def test_set_by_hand():
    fusing = Fusing()
    fusing.mode = "split"
    assert fusing.splits(1, 1, 1)
    assert not fusing.splits(1, 0, 0)
    fusing.mode = "fused"
    assert not fusing.splits(8_192, 4, 3)
