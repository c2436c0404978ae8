"""The k that rows need is that of the definitions, whatever the cuts; what is full forgets the oldest."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from engine.kernels.monitoring import (
    BUCKETS,
    NOTHING,
    Maxima,
    Spreads,
    displacements,
    sampled_places,
    spreads,
)

VALUES = st.lists(st.one_of(st.integers(-4, 8), st.just(NOTHING)), max_size=60)
CUTS = st.lists(st.integers(1, 9), min_size=1)


def maxima(size: int) -> Maxima:
    return Maxima(np.zeros(size, np.int64), np.zeros(size, np.int64), np.zeros(2, np.int64))


def in_parts(values: list[int], cuts: list[int]) -> list[tuple[int, list[int]]]:
    parts, start = [], 0
    while start < len(values):
        parts.append((start, values[start : start + cuts[len(parts) % len(cuts)]]))
        start += len(parts[-1][1])
    return parts


def histogram_of(needed: list[int]) -> list[int]:
    found = [0] * BUCKETS
    for k in needed:
        found[k.bit_length()] += 1
    return found


@given(VALUES, CUTS)
def test_displacement_is_how_far_before_the_first_larger_row_came(values: list[int], cuts: list[int]) -> None:
    needed = [
        next((row - before for before in range(row) if values[before] > value), 0)
        for row, value in enumerate(values)
        if value != NOTHING
    ]
    held, histogram, largest = maxima(64), np.zeros(BUCKETS, np.int64), 0
    for start, part in in_parts(values, cuts):
        largest = max(largest, displacements(np.array(part, np.int64), start, held, histogram))
    assert largest == max(needed, default=0)
    assert histogram.tolist() == histogram_of(needed)


@given(VALUES, CUTS)
def test_spread_is_how_many_others_came_since_the_first_of_a_key(keys: list[int], cuts: list[int]) -> None:
    needed = [
        sum(other != key for other in keys[keys.index(key) : row])
        for row, key in enumerate(keys)
        if key != NOTHING
    ]
    table, histogram, largest = _spreads(64), np.zeros(BUCKETS, np.int64), 0
    for start, part in in_parts(keys, cuts):
        largest = max(largest, spreads(np.array(part, np.int64), start, 0, table, histogram))
    assert largest == max(needed, default=0)
    assert histogram.tolist() == histogram_of(needed)


def test_memory_is_bounded_and_a_sample_of_keys_is_counted_whole() -> None:
    rising = np.arange(1_000)
    held, histogram = maxima(16), np.zeros(BUCKETS, np.int64)
    assert displacements(rising, 0, held, histogram) == 0
    assert displacements(np.array([0]), 1_000, held, histogram) == 16
    table, histogram = _spreads(64), np.zeros(BUCKETS, np.int64)
    keys = np.repeat(np.arange(4_000), 2)
    assert spreads(keys, 0, 15, table, histogram) == 0
    assert 0.5 < histogram.sum() / (len(keys) / 16) < 2
    assert int(table.used[0]) <= 33


def _spreads(size: int) -> Spreads:
    return Spreads(np.zeros((size, 3), np.int64), np.zeros(1, np.int64))


@given(st.lists(st.integers(-(2**63), 2**63 - 1), max_size=50), st.sampled_from([0, 1, 7, 1_023]))
def test_the_same_keys_are_in_a_sample_wherever_they_stand(keys: list[int], sampled: int) -> None:
    out = np.empty(len(keys), np.int64)
    places = out[: sampled_places(np.array(keys, np.int64), sampled, out)].tolist()
    assert places == [place for place, key in enumerate(keys) if _hash(key) & sampled == 0]


def _hash(key: int) -> int:
    """As of the tables of keys."""
    mixed = key * 0x9E3779B97F4A7C15 % 2**64
    return mixed ^ mixed >> 32
