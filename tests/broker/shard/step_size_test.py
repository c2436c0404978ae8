"""Steps grow smaller where they tell much, and large again."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from broker.shard.step_size import CALLS_S, RECORDS_MIN, ROWS_MIN, CallSize, StepSize, TransactionSize


def test_rows_that_many_queries_want_are_taken_up_few_at_a_time() -> None:
    size = StepSize(8_192)
    size.stepped(8_192, 819_200, 200_000)
    assert size.rows == 2_000
    size.stepped(2_000, 200_000, 200_000)
    assert size.rows == 2_000
    for _ in range(3):
        size.stepped(size.rows, size.rows, 200_000)
    assert size.rows == 8_192


def test_a_step_that_found_little_to_read_says_nothing_of_larger_ones() -> None:
    size = StepSize(8_192)
    size.stepped(8_192, 819_200, 200_000)
    size.stepped(3, 300, 200_000)
    assert size.rows == 2_000


@given(
    rows_max=st.integers(1, 10_000), steps=st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 10**7)))
)
def test_it_stays_within_its_bounds(rows_max: int, steps: list[tuple[int, int]]) -> None:
    size = StepSize(rows_max)
    for rows, told in steps:
        size.stepped(rows, told, 200_000)
        assert min(ROWS_MIN, rows_max) <= size.rows <= rows_max


def test_transactions_take_about_the_time_that_others_may_wait() -> None:
    size = TransactionSize(50_000, 0.5)
    for _ in range(4):
        size.wrote(size.records, 0.1)
    assert size.records == 50_000
    size.wrote(50_000, 5.0)
    assert size.records == 5_000
    size.wrote(10, 60.0)  # Kafka was away, or it waited for something else
    assert size.records == 5_000


@given(
    records_max=st.integers(1_000, 100_000),
    wrote=st.lists(st.tuples(st.integers(0, 10**6), st.floats(0, 1_000))),
)
def test_transactions_stay_within_their_bounds(records_max: int, wrote: list[tuple[int, float]]) -> None:
    size = TransactionSize(records_max, 0.5)
    for records, seconds in wrote:
        size.wrote(records, seconds)
        assert RECORDS_MIN <= size.records <= records_max


def test_steps_with_slow_calls_are_small_and_grow_again_when_calls_are_quick() -> None:
    size = CallSize(8_192)
    size.stepped(8_192, 8.192)  # a millisecond each
    assert size.rows == 250
    size.stepped(250, 0.25)
    assert size.rows == 250
    size.stepped(3, 0.0)  # it found little to read
    assert size.rows == 250
    for _ in range(6):
        size.stepped(size.rows, 0.01)
    assert size.rows == 8_192


@given(row_ms=st.lists(st.floats(0, 1_000), min_size=1, max_size=6), rows_max=st.integers(1, 10_000))
def test_whatever_calls_take_the_next_steps_take_little(row_ms: list[float], rows_max: int) -> None:
    size = CallSize(rows_max)
    for each in row_ms:
        for _ in range(30):
            size.stepped(size.rows, size.rows * each / 1_000)
            assert 1 <= size.rows <= rows_max
        assert size.rows == 1 or size.rows * each / 1_000 <= CALLS_S * 1.001
