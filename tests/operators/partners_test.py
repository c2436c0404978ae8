"""Pairs by keys and bounds against every row with every row; whole, in pieces, and counted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.operators import partners
from engine.operators.partners import Bound, BoundedValues, KnownPairs, PartnerKeys, ranges

few = st.integers(-1, 2)
values = st.integers(0, 6)


@st.composite
def bounded(draw: st.DrawFn, n: int, m: int) -> BoundedValues:
    of_right = draw(st.booleans())
    held, others = (m, n) if of_right else (n, m)

    def masks(size: int) -> Any:
        return np.array(
            draw(st.lists(st.sampled_from([True, True, False]), min_size=size, max_size=size)), bool
        )

    def numbers(size: int) -> Any:
        return np.array(draw(st.lists(values, min_size=size, max_size=size)), np.int64)

    bounds = [
        Bound(numbers(others), masks(others), lower, draw(st.booleans()))
        for lower in draw(st.sampled_from([[True], [False], [True, False]]))
    ]
    return BoundedValues(of_right, numbers(held), masks(held), tuple(bounds))


def within(given_bounds: BoundedValues, left: int, right: int) -> bool:
    held, other = (right, left) if given_bounds.of_right else (left, right)
    value = given_bounds.values[held]
    return bool(given_bounds.usable[held]) and all(
        bound.usable[other]
        and (value >= bound.values[other] if bound.lower else value <= bound.values[other])
        and not (bound.strict and value == bound.values[other])
        for bound in given_bounds.bounds
    )


@given(st.data(), st.lists(few, max_size=12), st.lists(few, max_size=12), st.booleans())
def test_pairs_are_those_equal_in_keys_and_within_bounds(data, left, right, with_bounds):
    codes = PartnerKeys(np.array(left, np.int64), np.array(right, np.int64), 3)
    limits = data.draw(bounded(len(left), len(right))) if with_bounds else None
    expected = [
        (one, other)
        for one in range(len(left))
        for other in range(len(right))
        if left[one] == right[other] != -1 and (limits is None or within(limits, one, other))
    ]
    found = ranges(codes, limits)
    assert found.count() == len(expected)
    assert list(zip(*found.pairs(), strict=True)) == expected
    assert np.flatnonzero(found.matched()).tolist() == sorted({one for one, _ in expected})
    if limits is not None and limits.of_right and not any(bound.lower for bound in limits.bounds):
        last = {}
        for one, other in expected:
            if one not in last or limits.values[other] >= limits.values[last[one]]:
                last[one] = other
        assert list(zip(*found.last().pairs(), strict=True)) == sorted(last.items())


@pytest.mark.parametrize("way", ["ranges", "by right", "given"])
def test_pieces_are_all_pairs_once(way):
    n, m = 300, 200
    codes = PartnerKeys(np.zeros(n, np.int64), np.zeros(m, np.int64), 1)
    everything = np.ones(n, bool)
    bound = Bound(np.zeros(m, np.int64), np.ones(m, bool), lower=True, strict=False)
    limits = (
        BoundedValues(False, np.arange(n)[::-1].copy(), everything, (bound,)) if way == "by right" else None
    )
    found = ranges(codes, limits)
    left, right = found.pairs()
    source = KnownPairs(left, right, n) if way == "given" else found
    pieces = list(source.pieces())
    assert len(pieces) == -(-n * m // partners.PIECE) > 3
    assert max(len(one) for one, _ in pieces) == partners.PIECE
    assert [each.tolist() for each in source.arranged(pieces)] == [left.tolist(), right.tolist()]
    assert (left * m + right).tolist() == list(range(n * m))
    assert source.matched().all()
