"""Steps grow smaller where they tell much, and large again."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from broker.worker.step_size import ROWS_MIN, StepSize


def test_rows_that_many_queries_want_are_taken_up_few_at_a_time() -> None:
    size = StepSize(8_192, 200_000)
    size.stepped(8_192, 819_200)
    assert size.rows == 2_000
    size.stepped(2_000, 200_000)
    assert size.rows == 2_000
    for _ in range(3):
        size.stepped(size.rows, size.rows)
    assert size.rows == 8_192


def test_a_step_that_found_little_to_read_says_nothing_of_larger_ones() -> None:
    size = StepSize(8_192, 200_000)
    size.stepped(8_192, 819_200)
    size.stepped(3, 300)
    assert size.rows == 2_000


@given(
    rows_max=st.integers(1, 10_000), steps=st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 10**7)))
)
def test_it_stays_within_its_bounds(rows_max: int, steps: list[tuple[int, int]]) -> None:
    size = StepSize(rows_max, 200_000)
    for rows, told in steps:
        size.stepped(rows, told)
        assert min(ROWS_MIN, rows_max) <= size.rows <= rows_max
