"""No query loses a larger share of the rows than it allows, whatever comes and whatever is shed."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from engine.model.shed import LEVEL_MAX
from engine.overload.loss_credit import HORIZON_ROWS, LossCredit

LEVELS = st.sets(st.integers(1, LEVEL_MAX), max_size=5)
STEPS = st.lists(st.tuples(st.integers(1, 9_000), st.booleans()), max_size=60)


@given(levels=LEVELS, steps=STEPS)
def test_share_shed_stays_below_each_level(levels: set[int], steps: list[tuple[int, bool]]) -> None:
    credit, came = LossCredit(), 0
    lost = dict.fromkeys(levels, 0)
    credit.allow(levels)
    for rows, wanted in steps:
        level = credit.level_for(rows) if wanted else None
        assert level is None or level in levels
        credit.passed(rows, level)
        came += rows
        for one in lost:
            lost[one] += rows if level is not None and one >= level else 0
            assert lost[one] <= one / LEVEL_MAX * came + 1e-6


@given(levels=LEVELS, steps=STEPS, rows=st.integers(1, 9_000))
def test_lowest_level_with_credit_is_taken(
    levels: set[int], steps: list[tuple[int, bool]], rows: int
) -> None:
    credit = LossCredit()
    credit.allow(levels)
    for count, wanted in steps:
        credit.passed(count, credit.level_for(count) if wanted else None)
    level = credit.level_for(rows)
    below = [one for one in levels if level is None or one < level]
    if below:
        credit.allow([max(below)])
        assert credit.level_for(rows) is None


def test_queries_that_allow_all_lose_all_at_once() -> None:
    credit = LossCredit()
    credit.allow([LEVEL_MAX, 500_000])
    assert credit.level_for(8_192) == LEVEL_MAX
    credit.passed(8_192, LEVEL_MAX)
    assert credit.level_for(8_192) == 500_000


def test_a_level_that_comes_has_saved_nothing_and_one_that_goes_is_forgotten() -> None:
    credit = LossCredit()
    credit.allow([500_000])
    credit.passed(1_000, None)
    assert credit.level_for(1_000) == 500_000
    credit.allow([400_000])
    assert credit.level_for(1_000) is None
    credit.allow([500_000])
    assert credit.level_for(1_000) is None


def test_what_is_saved_up_is_bounded() -> None:
    credit = LossCredit()
    credit.allow([100_000])
    credit.passed(50 * HORIZON_ROWS, None)
    shed = 0
    while credit.level_for(1_000) is not None:
        credit.passed(1_000, 100_000)
        shed += 1_000
    assert shed <= 0.1 * (HORIZON_ROWS + shed)


def test_nothing_is_shed_where_no_query_allows_it() -> None:
    credit = LossCredit()
    credit.allow([])
    credit.passed(10_000, None)
    assert credit.level_for(1) is None
