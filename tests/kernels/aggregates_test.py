"""Grouping, exact totals, least keys, and partials of 64 slots agree with plain twins on random input."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.kernels import aggregates, grouping, partials
from tests.strategies import examples

seeds = st.integers(0, 2**32 - 1)
whole = st.integers(-(2**63), 2**63 - 1) | st.sampled_from([0, 1, -1, 2**63 - 1, -(2**63), 2**32, -(2**32)])


@given(st.lists(st.integers(0, 5), max_size=40))
@settings(max_examples=examples(80))
def test_codes_by_first_appearance_and_rows_brought_together(given_codes):
    known = list(dict.fromkeys(given_codes))
    codes = np.array([known.index(code) for code in given_codes], np.int64)
    firsts = np.full(len(known), -1, np.int64)
    grouping.first_rows(codes, firsts)
    assert firsts.tolist() == [given_codes.index(code) for code in known]
    starts, order = np.empty(len(known) + 2, np.int64), np.empty(len(codes), np.int64)
    grouping.bring_together(codes, starts, order)
    groups = [[row for row, code in enumerate(codes) if code == group] for group in range(len(known) + 1)]
    assert [order[a:b].tolist() for a, b in pairwise(starts)] == groups


@given(st.lists(st.lists(whole, max_size=12), max_size=5))
@settings(max_examples=examples(100))
def test_totals_are_exact_and_least_keys_the_first(groups):
    starts = np.cumsum([0, *map(len, groups)]).astype(np.int64)
    values = np.array([value for group in groups for value in group], np.int64)
    high, low, least = (np.empty(len(groups), np.int64) for _ in range(3))
    aggregates.sums(values, starts, high, low)
    assert [(int(above) << 32) + int(below) for above, below in zip(high, low, strict=True)] == [
        sum(group) for group in groups
    ]
    assert all(0 <= each < 2**32 for each in low.tolist())
    aggregates.least(values, starts, least)
    expected = [
        int(start) + group.index(min(group)) if group else -1
        for start, group in zip(starts, groups, strict=False)
    ]
    assert least.tolist() == expected


# --- partials of 64 slots


def words(rng: np.random.Generator, n: int, density: float) -> Any:
    return np.packbits(rng.random((n, 64)) < density, axis=-1, bitorder="little").view(np.uint64).reshape(n)


def rows_of(column: Any, slot: int) -> list[int]:
    return [row for row, word in enumerate(column.tolist()) if word >> slot & 1]


def doubles(rng: np.random.Generator, n: int) -> Any:
    values = rng.normal(0, 1e3, n)
    values[rng.random(n) < 0.1] = rng.choice([math.nan, -0.0, 0.0, math.inf, -math.inf])
    return values


def exact(value: Any) -> Any:
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value.hex()
    return value


def above(a: float, b: float) -> bool:
    """NaN is above all."""
    return not math.isnan(b) and (math.isnan(a) or a > b)


def least_of(held: float, values: list[float], better: Callable[[float, float], bool]) -> float:
    for value in values:
        if better(value, held):
            held = value
    return held


def added(held: Any, values: list[Any]) -> Any:
    for value in values:
        held = held + value
    return held


@given(seeds, st.integers(0, 600), st.sampled_from([0.0, 0.01, 0.3, 1.0]))
@settings(max_examples=examples(40))
def test_counts(seed, n, density):
    column = words(np.random.default_rng(seed), n, density)
    counts = np.arange(64)
    partials.count(column, counts)
    assert counts.tolist() == [slot + len(rows_of(column, slot)) for slot in range(64)]


DOUBLES: dict[str, tuple[Any, float, Callable[[float, list[float]], float]]] = {
    "least": (
        partials.least_doubles,
        math.nan,
        lambda held, values: least_of(held, values, lambda a, b: above(b, a)),
    ),
    "greatest": (partials.greatest_doubles, -math.inf, lambda held, values: least_of(held, values, above)),
}


@pytest.mark.parametrize("name", DOUBLES)
@given(seeds, st.integers(0, 40), st.sampled_from([0.02, 0.5]))
@settings(max_examples=examples(40))
def test_doubles(name, seed, n, density):
    kernel, empty, twin = DOUBLES[name]
    rng = np.random.default_rng(seed)
    column, values = words(rng, n, density), doubles(rng, n)
    held = np.full(64, empty)
    held[:10] = doubles(rng, 10)
    expected = [twin(held[slot].item(), values[rows_of(column, slot)].tolist()) for slot in range(64)]
    kernel(column, values, held)
    assert [exact(value) for value in held.tolist()] == [exact(value) for value in expected]


WHOLE: dict[str, tuple[Any, Callable[[int, list[int]], int]]] = {
    "add": (partials.add_whole, added),
    "least": (partials.least_whole, lambda held, values: min([held, *values])),
    "greatest": (partials.greatest_whole, lambda held, values: max([held, *values])),
}


@pytest.mark.parametrize("name", WHOLE)
@given(seeds, st.integers(0, 40), st.sampled_from([0.02, 0.5]))
@settings(max_examples=examples(30))
def test_whole_numbers(name, seed, n, density):
    kernel, twin = WHOLE[name]
    rng = np.random.default_rng(seed)
    column, values, held = words(rng, n, density), rng.integers(-(2**50), 2**50, n), rng.integers(-9, 9, 64)
    expected = [twin(int(held[slot]), values[rows_of(column, slot)].tolist()) for slot in range(64)]
    kernel(column, values, held)
    assert held.tolist() == expected


@given(seeds, st.integers(0, 60), st.integers(1, 30))
@settings(max_examples=examples(40))
def test_set_bits(seed, pairs, n):
    rng = np.random.default_rng(seed)
    rows = np.sort(rng.integers(100, 100 + n, pairs)).astype(np.uint16)
    slots = rng.integers(0, 5 * 64, pairs).astype(np.int32)
    places, masks = np.array([1, -1, 0, 2]), words(rng, 3, 0.5)  # word 4 lies beyond
    out = words(rng, 3 * n, 0.1).reshape(3, n)
    expected = out.tolist()
    for row, slot in zip(rows.tolist(), slots.tolist(), strict=True):
        if slot < 4 * 64 and places[slot >> 6] >= 0:
            place = int(places[slot >> 6])
            expected[place][row - 100] |= 1 << (slot & 63) & int(masks[place])
    partials.set_bits(rows, slots, 100, places, masks, out)
    assert out.tolist() == expected


@given(seeds, st.integers(0, 40))
@settings(max_examples=examples(30))
def test_restrict(seed, n):
    rng = np.random.default_rng(seed)
    column, ok = words(rng, n, 0.5), rng.random(n) < 0.5
    mask = int(words(rng, 1, 0.5)[0]) | 1 << 63
    out = np.empty(n, np.uint64)
    partials.restrict(column, np.uint64(mask), ok, out)
    assert out.tolist() == [word & mask if ok[row] else 0 for row, word in enumerate(column.tolist())]
