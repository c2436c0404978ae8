"""What operators lose by the resources they are given."""

from __future__ import annotations

import numpy as np
import pytest

from engine.overload.precision.resources import (
    MeasuredCurve,
    bloom_distinct,
    bloom_intersect,
    bloom_rate,
    remembered,
    sampled,
    sampled_synopses,
    sum_variance,
    window_join,
    window_kept,
)


def one(value: float) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return np.array([value])


def test_sample_misses_what_it_does_not_keep() -> None:
    assert sampled(one(0.3)).fn[0] == pytest.approx(0.7)


def test_windows_of_a_join_cut_with_even_matches() -> None:
    assert window_join((40.0, 45.0), (100.0, 60.0)).fn[0] == pytest.approx(0.469, abs=5e-4)


def test_synopses_of_a_join_sampled() -> None:
    # Of windows of 100 and 60 s, 100 / 160 of the matches have their older row on the left.
    assert sampled_synopses(100 / 160, one(0.5), one(0.3)).fn[0] == pytest.approx(0.575)


def test_window_cut_by_measured_ages() -> None:
    ages = MeasuredCurve((0.0, 0.1, 1.0), (0.0, 90.0, 100.0))
    assert window_kept(ages.at(one(0.1)), 100.0).fn[0] == pytest.approx(0.1)
    assert window_kept(ages.at(one(0.55)), 100.0).fn[0] == pytest.approx(0.05)


def test_bloom_filter_says_yes_wrongly_as_often_as_measured() -> None:
    rng = np.random.default_rng(5)
    bits, hashes, values = 4_096, 3, 700
    rates = []
    for _ in range(20):
        held = np.zeros(bits, bool)
        held[rng.integers(0, bits, (values, hashes))] = True
        rates.append(held[rng.integers(0, bits, (20_000, hashes))].all(axis=1).mean())
    expected = bloom_rate(one(bits), hashes, values)[0]
    assert np.mean(rates) == pytest.approx(expected, abs=2e-3)
    assert bloom_distinct(one(bits), hashes, values).fn[0] == expected
    assert bloom_rate(one(0.0), hashes, values)[0] == 1.0
    assert bloom_rate(one(bits), hashes, 0)[0] == 0.0


def test_bloom_filter_of_intersect_gives_wrong_rows() -> None:
    rate = float(bloom_rate(one(1_000.0), 2, 300)[0])
    found = bloom_intersect(one(1_000.0), 2, 300, 0.25)
    assert found.fp[0] == pytest.approx(0.75 * rate / (0.25 + 0.75 * rate))
    assert found.fn[0] == 0.0


def test_distinct_that_remembers_less_repeats_rows() -> None:
    assert remembered(one(20.0), 80.0).fp[0] == pytest.approx(0.2)


def test_variance_of_sampled_aggregates() -> None:
    assert sum_variance(one(0.1), 1 / 1_000)[0] == pytest.approx(0.9 / (0.1 * 1_000))  # of COUNT
    values = np.arange(1.0, 101.0)
    spread = float((values**2).sum() / values.sum() ** 2)
    assert sum_variance(one(0.25), spread)[0] == pytest.approx(3 * spread)
    assert sum_variance(one(1.0), spread)[0] == 0.0
    assert np.isinf(sum_variance(one(0.0), spread)[0])


@pytest.mark.parametrize(
    ("places", "values"),
    [((), ()), ((0.0, 0.0), (1.0, 2.0)), ((0.0, float("nan")), (1.0, 2.0)), ((0.0,), (1.0, 2.0))],
)
def test_table_that_is_none_is_refused(places: tuple[float, ...], values: tuple[float, ...]) -> None:
    with pytest.raises(ValueError, match="table"):
        MeasuredCurve(places, values)
