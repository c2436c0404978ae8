"""Folds over ordinals: kernels agree to the bit with plain twins that build the tree level by level."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.kernels import folds

BLOCK, FAN = 4_096, 64
Moments = tuple[float, float, float]

values = st.floats(-1e9, 1e9) | st.sampled_from([-0.0, 0.0, math.inf, -math.inf, math.nan])
ordinals = st.integers(0, 20_000) | st.integers(0, 10**7) | st.integers(0, 2**62)
sparse = st.lists(st.tuples(ordinals, values), max_size=60, unique_by=lambda pair: pair[0]).map(sorted)


def tree(rows: Sequence[tuple[int, float]], one: Callable[[float], Any], add: Any, merge: Any) -> Any:
    """Blocks, then nodes of 64, until one is left; None of no rows."""
    nodes = []
    for block, members in groupby(rows, key=lambda row: row[0] // BLOCK):
        result = None
        for _, value in members:
            result = one(value) if result is None else add(result, value)
        nodes.append((block, result))
    return up(nodes, merge)


def up(nodes: list[tuple[int, Any]], merge: Any) -> Any:
    while len(nodes) > 1:
        above = []
        for parent, children in groupby(nodes, key=lambda node: node[0] // FAN):
            result = None
            for _, child in children:
                result = child if result is None else merge(result, child)
            above.append((parent, result))
        nodes = above
    return nodes[0][1] if nodes else None


def add(a: float, b: float) -> float:
    return a + b


def welford(held: Moments, value: float) -> Moments:
    n, mean, squares = held
    before = value - mean
    after = mean + before / (n + 1)
    return n + 1, after, squares + before * (value - after)


def chan(a: Moments, b: Moments) -> Moments:
    n = a[0] + b[0]
    apart = b[1] - a[1]
    return n, a[1] + apart * b[0] / n, a[2] + b[2] + apart * apart * a[0] * b[0] / n


def sum_of(rows: Sequence[tuple[int, float]]) -> float | None:
    return tree(rows, float, add, add)


def moments_of(rows: Sequence[tuple[int, float]]) -> Moments | None:
    return tree(rows, lambda value: (1.0, value, 0.0), welford, chan)


def bits(value: float) -> str:
    return "NaN" if math.isnan(value) else float(value).hex()


def arrays(rows: Sequence[tuple[int, float]]) -> tuple[Any, Any]:
    return np.array([row[0] for row in rows], np.int64), np.array([row[1] for row in rows], np.float64)


@given(st.lists(sparse, min_size=1, max_size=4))
@settings(max_examples=150)
def test_sums_and_moments_of_groups(groups):
    starts = np.cumsum([0, *map(len, groups)]).astype(np.int64)
    at, given_values = arrays([row for group in groups for row in group])
    sums, means, squares = (np.empty(len(groups), np.float64) for _ in range(3))
    folds.fold_sums(at, given_values, starts, sums)
    folds.fold_moments(at, given_values, starts, means, squares)
    for place, group in enumerate(groups):
        total, moments = sum_of(group), moments_of(group)
        assert bits(sums[place]) == bits(-0.0 if total is None else total)
        if moments is not None:
            assert [bits(means[place]), bits(squares[place])] == [bits(moments[1]), bits(moments[2])]


@given(sparse)
@settings(max_examples=80)
def test_blocks_alone(rows):
    at, given_values = arrays(rows)
    ids, sums = np.empty(len(rows), np.int64), np.empty(len(rows), np.float64)
    n = folds.block_sums(at, given_values, ids, sums)
    expected = [(block, list(members)) for block, members in groupby(rows, key=lambda row: row[0] // BLOCK)]
    assert ids[:n].tolist() == [block for block, _ in expected]
    assert [bits(each) for each in sums[:n]] == [bits(sum_of(members)) for _, members in expected]
    states = [np.empty(len(rows), np.float64) for _ in range(3)]
    assert folds.block_moments(at, given_values, ids, *states) == n
    for place, (_, members) in enumerate(expected):
        assert [bits(state[place]) for state in states] == [bits(each) for each in moments_of(members)]


@given(sparse, st.sets(st.integers(0, 5)))
@settings(max_examples=150)
def test_nodes_of_two_levels_side_by_side(rows, whole):
    """Blocks of some nodes are merged beforehand; it makes no difference."""
    rows = [(ordinal % 10**6, value) for ordinal, value in rows]
    rows = sorted({ordinal: (ordinal, value) for ordinal, value in rows}.values())
    levels, ids, sums, moments = [], [], [], []
    node_rows = BLOCK * FAN
    for node, members in groupby(rows, key=lambda row: row[0] // node_rows):
        inner = list(members)
        pieces = (
            [inner]
            if node in whole
            else [list(b) for _, b in groupby(inner, key=lambda row: row[0] // BLOCK)]
        )
        for piece in pieces:
            levels.append(1 if node in whole else 0)
            ids.append(piece[0][0] // (node_rows if node in whole else BLOCK))
            sums.append(sum_of(piece))
            moments.append(moments_of(piece))
    where = np.array(levels, np.int64), np.array(ids, np.int64)
    total, expected = sum_of(rows), moments_of(rows)
    assert bits(folds.fold_node_sums(*where, np.array(sums, np.float64))) == bits(
        -0.0 if total is None else total
    )
    states = np.array(moments, np.float64).reshape(-1, 3).T.copy()
    found = folds.fold_node_moments(*where, *states)
    assert [bits(each) for each in found] == [bits(each) for each in expected or (0.0, 0.0, 0.0)]
