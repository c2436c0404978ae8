"""What a query takes along to another group: rows or pairs that were found before its options changed.

The new group knows nothing of them and may find them again, so the two are put together without doubles.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from engine.kernels.promising import known_pairs
from engine.model.state_tree import Tree
from engine.promising.found import FoundPairs, FoundRows, PairRun
from engine.views.found_answers import Found


def together(carried: Found, found: Found) -> Found:
    """All of both, each once; both are rows, or both are pairs. O((n + m) log n)."""
    if isinstance(carried, FoundRows):
        assert isinstance(found, FoundRows)
        return replace(found, rows=np.union1d(carried.rows, found.rows))
    assert isinstance(found, FoundPairs)
    known, runs = carried.pairs(), []
    for run in found.runs:
        there = np.empty(len(run), np.bool_)
        known_pairs(run.left, run.right, known.left, known.right, there)
        runs.append(PairRun(run.left[~there], run.right[~there]))
    return FoundPairs((known, *(run for run in runs if len(run))))


def bare(found: Found) -> Found:
    """What was found, without what its group knows besides."""
    return FoundRows(found.rows) if isinstance(found, FoundRows) else FoundPairs((found.pairs(),))


def above(found: Found, bases: Sequence[int]) -> Found:
    """Without rows that are gone. bases: of each input, ordinals below this one are."""
    if isinstance(found, FoundRows):
        return FoundRows(found.rows[found.rows.searchsorted(bases[0]) :])
    left, right = bases
    return FoundPairs((found.pairs().from_floors(left, right),))


def found_tree(found: Found) -> Tree:
    """As it is stored."""
    if isinstance(found, FoundRows):
        return [found.rows]
    pairs = found.pairs()
    return [pairs.left, pairs.right]


def found_of_tree(tree: Tree) -> Found:
    """The inverse of :func:`found_tree`."""
    if len(tree) == 1:
        return FoundRows(tree[0])
    left, right = tree
    return FoundPairs((PairRun(left, right),))
