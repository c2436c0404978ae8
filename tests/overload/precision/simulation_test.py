"""Formulas against relations that are drawn at random and worked out exactly: within 0.01."""

from __future__ import annotations

from collections import Counter

import numpy as np
import numpy.typing as npt
import pytest

from engine.overload.precision.composition import (
    distinct,
    excepted,
    joined,
    selected,
    united,
    wrongly_removed,
)
from engine.overload.precision.precision import Precision
from engine.overload.precision.resources import (
    MeasuredCurve,
    bloom_distinct,
    bloom_intersect,
    bloom_rate,
    remembered,
    sampled,
    sampled_synopses,
    window_join,
    window_kept,
)

IntArray = npt.NDArray[np.int64]
SEEDS = range(3)
NEAR = 0.01


def figures(precision: Precision) -> tuple[float, float]:
    return float(precision.fp[0]), float(precision.fn[0])


def measured(due: IntArray, given: IntArray) -> tuple[float, float]:
    """(FP, FN) of bags of rows."""
    wanted, there = Counter(due.tolist()), Counter(given.tolist())
    right = sum((wanted & there).values())
    return (len(given) - right) / max(1, len(given)), (len(due) - right) / max(1, len(due))


def disturbed(rng: np.random.Generator, due: IntArray, fp: float, fn: float, wrong: IntArray) -> IntArray:
    """Rows of which some are missing and some were drawn from the wrong ones."""
    kept = due[rng.random(len(due)) >= fn]
    return np.concatenate([kept, rng.choice(wrong, int(len(kept) * fp / (1 - fp)))])


@pytest.mark.parametrize("seed", SEEDS)
def test_selection(seed: int) -> None:
    rng = np.random.default_rng(seed)
    due = np.arange(200_000)
    given = disturbed(rng, due, 0.2, 0.3, np.arange(10**6, 2 * 10**6))

    def passes(rows: IntArray) -> npt.NDArray[np.bool_]:
        return np.where(rows < 10**6, rows % 2 == 0, rows % 6 == 0)

    expected = figures(selected(Precision.of(0.2, 0.3), wrong_passes=1 / 3))
    assert measured(due[passes(due)], given[passes(given)]) == pytest.approx(expected, abs=NEAR)


def pairs(left: IntArray, right: IntArray, keys: int) -> IntArray:
    """Join rows whose key is their number modulo ``keys``; a pair is one number made of both."""
    order = np.argsort(right % keys, kind="stable")
    right, codes = right[order], np.sort(right % keys)
    low, high = np.searchsorted(codes, left % keys), np.searchsorted(codes, left % keys, side="right")
    counts = high - low
    places = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts) + np.repeat(low, counts)
    return np.repeat(left, counts) * 10**8 + right[places]


@pytest.mark.parametrize("seed", SEEDS)
def test_join(seed: int) -> None:
    rng = np.random.default_rng(seed)
    due = np.arange(20_000), np.arange(30_000)
    wrong = np.arange(10**6, 2 * 10**6)
    left = disturbed(rng, due[0], 0.1, 0.2, wrong)
    right = disturbed(rng, due[1], 0.15, 0.3, wrong)
    expected = figures(joined(Precision.of(0.1, 0.2), Precision.of(0.15, 0.3)))
    assert measured(pairs(*due, 2_000), pairs(left, right, 2_000)) == pytest.approx(expected, abs=NEAR)


@pytest.mark.parametrize("seed", SEEDS)
def test_intersection(seed: int) -> None:
    rng = np.random.default_rng(seed)
    a, b = np.arange(100_000), np.arange(60_000, 160_000)
    left = disturbed(rng, a, 0.0, 0.2, a)
    right = disturbed(rng, b, 0.0, 0.3, b)
    expected = figures(joined(Precision.of(0.0, 0.2), Precision.of(0.0, 0.3)))
    assert measured(np.intersect1d(a, b), np.intersect1d(left, right)) == pytest.approx(expected, abs=NEAR)


@pytest.mark.parametrize("seed", SEEDS)
def test_union(seed: int) -> None:
    rng = np.random.default_rng(seed)
    wrong = np.arange(10**6, 2 * 10**6)
    due = np.arange(50_000), np.arange(200_000, 350_000)
    given = disturbed(rng, due[0], 0.3, 0.1, wrong), disturbed(rng, due[1], 0.05, 0.4, wrong)
    expected = figures(united([Precision.of(0.3, 0.1), Precision.of(0.05, 0.4)], [50_000, 150_000]))
    assert measured(np.concatenate(due), np.concatenate(given)) == pytest.approx(expected, abs=NEAR)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("spread", "wrong_removed"), [(0.0, 0.0), (0.3, 0.2)])
def test_except(seed: int, spread: float, wrong_removed: float) -> None:
    """d = 0.4; of B's wrong rows a share falls on A minus B, and B removes a share of A's wrong rows."""
    rng = np.random.default_rng(seed)
    count = 200_000
    a = np.arange(count)
    b = np.concatenate([np.arange(80_000), np.arange(10**6, 10**6 + 40_000)])
    difference = np.arange(80_000, count)
    b_found = b[rng.random(len(b)) >= 0.25]
    wrong_count = int(len(b_found) * 0.2 / 0.8)
    on_difference = rng.choice(difference, int(wrong_count * spread), replace=False)
    elsewhere = np.arange(2 * 10**6, 2 * 10**6 + wrong_count - len(on_difference))
    a_found = a[rng.random(count) >= 0.2]
    a_wrong = np.arange(3 * 10**6, 3 * 10**6 + int(len(a_found) * 0.1 / 0.9))
    removed_wrong = a_wrong[rng.random(len(a_wrong)) < wrong_removed]
    right = np.concatenate([b_found, on_difference, elsewhere])
    given = np.setdiff1d(np.concatenate([a_found, a_wrong]), np.concatenate([right, removed_wrong]))
    left, b_precision = Precision.of(0.1, 0.2), Precision.of(0.2, 0.25)
    removed = wrongly_removed(b_precision, len(b), len(difference), spread)
    expected = excepted(left, b_precision, overlap=0.4, removed=removed, wrong_removed=wrong_removed)
    assert measured(difference, given) == pytest.approx(figures(expected), abs=NEAR)


@pytest.mark.parametrize("seed", SEEDS)
def test_distinct(seed: int) -> None:
    rng = np.random.default_rng(seed)
    values = np.arange(100_000)
    copies = np.array([1, 1, 2, 3, 5])[values % 5]
    due = np.repeat(values, copies)
    kept = due[rng.random(len(due)) >= 0.3]
    # Wrong values of two copies each.
    wrong = np.repeat(np.arange(10**6, 10**6 + int(len(kept) * 0.2 / 0.8 / 2)), 2)
    given = np.unique(np.concatenate([kept, wrong]))
    shape = ((1, 0.4), (2, 0.2), (3, 0.2), (5, 0.2))
    expected = figures(distinct(Precision.of(0.2, 0.3), copies=shape, wrong_copies=2.0))
    assert measured(values, given) == pytest.approx(expected, abs=NEAR)


@pytest.mark.parametrize("seed", SEEDS)
def test_operators_on_one_another(seed: int) -> None:
    """Samples of both sides of a join, whose pairs are made distinct by the left row."""
    rng = np.random.default_rng(seed)
    a, b = np.arange(60_000), np.arange(60_000)
    left, right = a[rng.random(len(a)) < 0.8], b[rng.random(len(b)) < 0.6]
    due = np.unique(pairs(a, b, 20_000) // 10**8)
    given = np.unique(pairs(left, right, 20_000) // 10**8)
    # Each left row has three pairs, which share it: of those kept all pairs are missed when all three
    # partners are. So DISTINCT stands above what the right side lost, and the left side loses besides.
    one = Precision(np.zeros(1), np.array([0.4]))
    expected = joined(sampled(np.array([0.8])), distinct(one, copies=((3, 1.0),)))
    assert measured(due, given) == pytest.approx(figures(expected), abs=NEAR)


def window_matches(
    rng: np.random.Generator, windows_s: tuple[float, float], rate: int = 10
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_]]:
    """Matches of a window join of two streams by a key: (age of the older row in s, whether it is left)."""
    span, keys = 4_000.0, 400
    at = [np.sort(rng.uniform(0, span, int(span * rate))) for _ in range(2)]
    key = [rng.integers(0, keys, len(one)) for one in at]
    older, left_older = [], []
    for value in range(keys):
        gaps = at[0][key[0] == value][:, None] - at[1][key[1] == value][None, :]
        inside = np.where(gaps < 0, -gaps <= windows_s[0], gaps <= windows_s[1])
        older.append(np.abs(gaps[inside]))
        left_older.append((gaps < 0)[inside])
    return np.concatenate(older), np.concatenate(left_older)


@pytest.mark.parametrize("seed", SEEDS)
def test_windows_of_a_join_cut(seed: int) -> None:
    rng = np.random.default_rng(seed)
    age, left_older = window_matches(rng, (100.0, 60.0))
    kept = np.where(left_older, age <= 40.0, age <= 45.0)
    expected = window_join((40.0, 45.0), (100.0, 60.0))
    assert 1 - kept.mean() == pytest.approx(float(expected.fn[0]), abs=NEAR)


@pytest.mark.parametrize("seed", SEEDS)
def test_windows_of_a_join_cut_by_measured_ages(seed: int) -> None:
    """Matches that are mostly young: the table is measured on one half and tried on the other."""
    rng = np.random.default_rng(seed)
    ages = rng.exponential(20.0, 200_000)
    left_older = rng.random(len(ages)) < 0.7
    half = np.arange(len(ages)) % 2 == 0
    places = np.linspace(0.0, 1.0, 33)
    tables = [
        MeasuredCurve(tuple(places), tuple(float((ages[half & side] <= 100 * each).sum()) for each in places))
        for side in (left_older, ~left_older)
    ]
    shares = 0.15, 0.4
    kept = sum(table.at(np.array([share])) for table, share in zip(tables, shares, strict=True))
    whole = sum(float(table.at(np.ones(1))[0]) for table in tables)
    found = window_kept(np.asarray(kept), whole).fn[0]
    tried = ~half & (ages <= 100)
    given = np.where(left_older, ages <= 15.0, ages <= 40.0)[tried].mean()
    assert 1 - given == pytest.approx(float(found), abs=NEAR)


@pytest.mark.parametrize("seed", SEEDS)
def test_synopses_of_a_join_sampled(seed: int) -> None:
    """Each stored row is kept or not once, for all its matches."""
    rng = np.random.default_rng(seed)
    span, keys, count = 2_000.0, 100, 20_000
    at = [np.sort(rng.uniform(0, span, count)) for _ in range(2)]
    key = [rng.integers(0, keys, count) for _ in range(2)]
    stored = [rng.random(count) < rate for rate in (0.5, 0.3)]
    due = given = 0
    for value in range(keys):
        left, right = key[0] == value, key[1] == value
        gaps = at[0][left][:, None] - at[1][right][None, :]
        inside = np.where(gaps < 0, -gaps <= 100.0, gaps <= 60.0)
        older_kept = np.where(gaps < 0, stored[0][left][:, None], stored[1][right][None, :])
        due += int(inside.sum())
        given += int((inside & older_kept).sum())
    expected = sampled_synopses(100 / 160, np.array([0.5]), np.array([0.3]))
    assert 1 - given / due == pytest.approx(float(expected.fn[0]), abs=NEAR)


@pytest.mark.parametrize("seed", SEEDS)
def test_distinct_that_remembers_less(seed: int) -> None:
    """A value is given when it was not seen within the window: wrong where it was, within the whole one."""
    rng = np.random.default_rng(seed)
    values = rng.integers(0, 3_000, 60_000)
    last: dict[int, int] = {}
    due = older = given = wrong = 0
    for at, value in enumerate(values.tolist()):
        ago = at - last.get(value, -(10**9))
        last[value] = at
        due += ago > 4_000
        older += 1_000 < ago <= 4_000
        if ago > 1_000:
            given += 1
            wrong += ago <= 4_000
    expected = remembered(np.array([float(older)]), float(due))
    assert wrong / given == pytest.approx(float(expected.fp[0]), abs=1e-12)


@pytest.mark.parametrize("seed", SEEDS)
def test_bloom_filters(seed: int) -> None:
    rng = np.random.default_rng(seed)
    bits, hashes, count = 60_000, 2, 20_000

    def places(values: IntArray) -> IntArray:
        draws = np.random.default_rng(seed + 99).integers(0, bits, (200_000, hashes))
        return draws[values]

    held = np.zeros(bits, bool)
    b = np.arange(count)
    held[places(b)] = True
    a = np.arange(count // 2, count // 2 + 100_000)
    said = held[places(a)].all(axis=1)
    overlap = (count // 2) / 100_000
    expected = bloom_intersect(np.array([float(bits)]), hashes, count, overlap)
    assert measured(np.intersect1d(a, b), a[said]) == pytest.approx(figures(expected), abs=NEAR)
    missing = float(bloom_distinct(np.array([float(bits)]), hashes, count).fn[0])
    new = rng.integers(count, 200_000, 100_000)
    assert held[places(new)].all(axis=1).mean() == pytest.approx(missing, abs=NEAR)
    g = float(bloom_rate(np.array([float(bits)]), hashes, count)[0])
    exact = Precision.of(0.0, 0.0)
    left_over = excepted(exact, exact, overlap=overlap, removed=g)
    assert measured(np.setdiff1d(a, b), a[~said]) == pytest.approx(figures(left_over), abs=NEAR)
