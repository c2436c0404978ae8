"""Estimates from samples: without bias, and as near the truth as their 95 % intervals say."""

from __future__ import annotations

import math

import numpy as np
import pytest

from engine.overload.sampled_aggregates import (
    NORMAL_95,
    AggregateEstimate,
    SampleSums,
    estimated_average,
    estimated_count,
    estimated_sum,
)

RUNS = 1_000


def sums(values: np.ndarray) -> SampleSums:
    return SampleSums(len(values), float(values.sum()), float((values**2).sum()))


def of_runs(q: float) -> tuple[np.ndarray, list[SampleSums]]:
    random = np.random.default_rng(17)
    values = random.gamma(2.0, 10.0, 5_000)
    return values, [sums(values[random.random(len(values)) < q]) for _ in range(RUNS)]


@pytest.mark.parametrize("q", [0.05, 0.2, 0.7])
def test_95_percent_intervals_hold_in_93_percent_of_runs_and_nothing_is_biased(q: float) -> None:
    values, samples = of_runs(q)
    truths = (len(values), values.sum(), values.mean())
    for truth, estimated in zip(truths, (estimated_count, estimated_sum, estimated_average), strict=True):
        estimates = [estimated(sample, q) for sample in samples]
        held = sum(one.covers(float(truth)) for one in estimates)
        assert 0.93 * RUNS <= held <= 0.975 * RUNS, estimated.__name__
        found = np.array([one.value for one in estimates])
        assert abs(found.mean() - truth) <= 4 * found.std() / math.sqrt(RUNS)


def test_interval_of_a_count_is_that_of_the_formula() -> None:
    q, n = 0.25, 4_000
    estimate = estimated_count(SampleSums(1_000), q)
    assert estimate.value == n
    assert estimate.error == pytest.approx(NORMAL_95 * math.sqrt((1 - q) / (q * n)))


def test_whole_population_is_exact() -> None:
    whole = SampleSums(3, 6.0, 14.0)
    assert estimated_count(whole, 1.0) == AggregateEstimate(3.0, 0.0)
    assert estimated_sum(whole, 1.0) == AggregateEstimate(6.0, 0.0)
    assert estimated_average(whole, 1.0) == AggregateEstimate(2.0, 0.0)


def test_sample_without_rows_or_with_sum_zero_claims_no_interval() -> None:
    assert estimated_count(SampleSums(0), 0.5) == AggregateEstimate(0.0, None)
    assert estimated_sum(SampleSums(0), 0.5) == AggregateEstimate(None, None)
    assert estimated_average(SampleSums(0), 0.5) == AggregateEstimate(None, None)
    assert estimated_sum(SampleSums(2, 0.0, 2.0), 0.5) == AggregateEstimate(0.0, None)
    assert not estimated_sum(SampleSums(2, 0.0, 2.0), 0.5).covers(0.0)


@pytest.mark.parametrize("q", [0.0, -0.1, 1.1, math.nan])
def test_impossible_shares_are_refused(q: float) -> None:
    for estimated in (estimated_count, estimated_sum, estimated_average):
        with pytest.raises(ValueError, match="share"):
            estimated(SampleSums(1, 1.0, 1.0), q)
