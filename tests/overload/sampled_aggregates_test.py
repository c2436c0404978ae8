"""Estimates from samples: without bias, and as near the truth as their 95 % intervals say."""

from __future__ import annotations

import math

import numpy as np
import pytest

from engine.overload.sampled_aggregates import NORMAL_95, widest_error
from tests.overload.sampled_aggregates import covers, estimate

RUNS = 1_000
FUNCTIONS = ("COUNT", "SUM", "AVG")


def error_of(function: str, values: np.ndarray, q: float) -> float | None:
    """The error told of one group with these values."""
    sums = [len(values)] if function == "COUNT" else [len(values), values.sum(), (values**2).sum()]
    return widest_error((function,), [np.array([one], np.float64) for one in sums], q)


@pytest.mark.parametrize("q", [0.05, 0.2, 0.7])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_95_percent_intervals_hold_in_93_percent_of_runs_and_nothing_is_biased(
    function: str, q: float
) -> None:
    random = np.random.default_rng(17)
    values = random.gamma(2.0, 10.0, 5_000)
    truth = {"COUNT": len(values), "SUM": values.sum(), "AVG": values.mean()}[function]
    found, held = np.empty(RUNS), 0
    for run in range(RUNS):
        kept = values[random.random(len(values)) < q]
        found[run] = {"COUNT": len(kept) / q, "SUM": kept.sum() / q, "AVG": kept.mean()}[function]
        held += covers(found[run], error_of(function, kept, q), float(truth))
    assert 0.93 * RUNS <= held <= 0.975 * RUNS
    assert abs(found.mean() - truth) <= 4 * found.std() / math.sqrt(RUNS)


def test_interval_of_a_count_is_that_of_the_formula() -> None:
    q, n = 0.25, 4_000
    assert error_of("COUNT", np.ones(1_000), q) == pytest.approx(NORMAL_95 * math.sqrt((1 - q) / (q * n)))


@pytest.mark.parametrize("function", FUNCTIONS)
def test_whole_population_is_exact(function: str) -> None:
    assert error_of(function, np.array([1.0, 2.0, 3.0]), 1.0) == 0.0


def test_sample_without_rows_or_with_sum_zero_claims_no_interval() -> None:
    assert [error_of(function, np.array([]), 0.5) for function in FUNCTIONS] == [None] * 3
    assert error_of("SUM", np.array([1.0, -1.0]), 0.5) is None
    assert estimate("SUM", [1.0, -1.0], 0.5) == (0.0, None)
    assert not covers(0.0, None, 0.0)


@pytest.mark.parametrize("q", [0.0, -0.1, 1.1, math.nan])
def test_impossible_shares_are_refused(q: float) -> None:
    for function in FUNCTIONS:
        with pytest.raises(ValueError, match="share"):
            error_of(function, np.array([1.0]), q)
