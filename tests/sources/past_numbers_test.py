"""Past values that are whole numbers are known as runs: each that comes again is told, however many."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.model.batch import Column
from engine.model.types import BIGINT
from engine.sources.past_numbers import NumberRuns, PastNumbers
from engine.sources.past_values import PastValues, hashes_of, values_of

LEAST, MOST = -(2**63), 2**63 - 1
NUMBERS = st.lists(st.one_of(st.integers(-9, 9), st.sampled_from([LEAST, LEAST + 1, MOST - 1, MOST])))


@given(st.lists(NUMBERS), NUMBERS, st.integers(2, 12))
def test_numbers_are_known_or_counted(pieces: list[list[int]], asked: list[int], runs_max: int) -> None:
    past, told = PastNumbers(runs_max), set[int]()
    for piece in pieces:
        past.add(np.array(piece, np.int64))
        past._check()
        told.update(piece)
    for wanted in (asked, sorted(told)):
        found = past.has(np.array(wanted, np.int64)).tolist()
        assert not {one for one, known in zip(wanted, found, strict=True) if known} - told
    known = int(past.has(np.array(sorted(told), np.int64)).sum())
    assert known + past.forgotten >= len(told)
    assert past.forgotten or known == len(told)
    again = PastNumbers(10**6)
    again.restore(*past.saved(np.array(asked, np.int64)))
    again._check()
    everything = np.array(sorted(told | set(asked)), np.int64)
    assert again.has(everything).tolist() == (past.has(everything) | np.isin(everything, asked)).tolist()


@given(NUMBERS)
def test_runs_are_those_of_the_numbers(numbers: list[int]) -> None:
    runs = NumberRuns.of(np.array(numbers, np.int64), np.array(numbers, np.int64))
    runs._check()
    both = zip(runs.first.tolist(), runs.last.tolist(), strict=True)
    spelt = [number for first, last in both for number in range(first, last + 1)]
    assert spelt == sorted(set(numbers))
    assert runs.count == len(spelt)


@given(NUMBERS)
def test_numbers_that_were_saved_as_hashes_are_known(numbers: list[int]) -> None:
    values = np.array(numbers, np.int64)
    hashes = hashes_of([Column(BIGINT, values)])
    assert values_of(hashes).tolist() == numbers
    past, before = PastNumbers(), PastValues()
    before.add(hashes)
    past.restore(*before.saved(np.empty(0, np.int64)))
    assert past.has(values).all()


@pytest.mark.parametrize("step", [1, -1])
def test_numbers_that_count_up_take_no_room(step: int) -> None:
    past = PastNumbers()
    rng = np.random.default_rng(1)
    for first in range(0, 3_000_000, 10_000):
        piece = step * np.arange(first, first + 10_000)
        past.add(rng.permutation(piece))
    assert past.nbytes <= 64
    assert past.forgotten == 0
    assert past.has(step * rng.integers(0, 3_000_000, 1_000)).all()
    assert not past.has(np.array([-1, 3_000_000]) * step).any()
