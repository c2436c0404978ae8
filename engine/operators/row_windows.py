"""Row windows that are no range: the last n rows of each key, or of those that satisfy a condition.

They hold what is retained. With keys every visible row is looked at once; without, the walk back from the
last row ends where n rows are found.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from engine.kernels import windows as kernels
from engine.language.evaluate import truth
from engine.model.batch import BoolArray, Int64Array
from engine.model.expressions import Expression
from engine.model.source import Schema
from engine.operators.gather import rows_at
from engine.operators.keys import number
from engine.operators.places import Places
from engine.operators.relation import Relation
from engine.stems.segment import SegmentView
from engine.windows.clauses import RowWindow

FIRST_BLOCK = 4_096

Matching = Callable[[Expression | None, int, int], list[tuple[SegmentView, Int64Array]]]
"""The rows start <= ordinal < stop that a predicate accepts."""


def last_rows(
    window: RowWindow, schema: Schema, first: int, end: int, matching: Matching
) -> tuple[Places, bool]:
    """The rows of the window over the ordinals from ``first`` up to ``end``, and whether it has as many as it
    may hold.

    With keys nobody can tell, so then the second is False.
    """
    if window.keys:
        candidates = matching(window.filter, first, end)
        keep = _last_of_each(window.keys, window.rows, rows_at(schema, candidates))
        return kept(candidates, keep), False
    return _walk_back(window, first, end, matching)


def last_of_relation(window: RowWindow, relation: Relation) -> tuple[Int64Array, bool]:
    """The rows of the window over a relation, and whether it has as many as it may hold, as :func:`last_rows`
    tells them: int64, the places of its rows, ascending.
    """
    n = len(relation)
    candidates = np.arange(n)
    if window.filter is not None:
        candidates = np.flatnonzero(truth(window.filter, relation.columns, n)[0])
    if not window.keys:
        return candidates[max(0, len(candidates) - window.rows) :], len(candidates) >= window.rows
    narrowed = relation if len(candidates) == n else relation.take(candidates)
    return candidates[_last_of_each(window.keys, window.rows, narrowed)], False


def _last_of_each(keys: Sequence[Expression], most: int, relation: Relation) -> BoolArray:
    columns, _ = relation.values_of(keys)
    codes, width = number(columns, len(relation))
    keep = np.empty(len(relation), np.bool_)
    kernels.last_of_each(codes, width, most, keep)
    return keep


def kept(places: Places, keep: BoolArray) -> Places:
    """The rows of ``places`` that a mask keeps. keep: bool[n]."""
    found, start = [], 0
    for part, where in places:
        kept = where[keep[start : start + len(where)]]
        if len(kept):
            found.append((part, kept))
        start += len(where)
    return found


def _walk_back(window: RowWindow, first: int, end: int, matching: Matching) -> tuple[Places, bool]:
    """Blocks from the last row back, each twice the one before, until there are enough rows."""
    blocks: list[tuple[SegmentView, Int64Array]] = []
    missing, size, stop = window.rows, FIRST_BLOCK, end
    while missing and stop > first:
        start = max(first, stop - size)
        for part, where in reversed(matching(window.filter, start, stop)):
            found = where[max(0, len(where) - missing) :]
            if len(found):
                blocks.append((part, found))
                missing -= len(found)
        stop, size = start, 2 * size
    return _by_part(blocks[::-1]), not missing


def _by_part(blocks: Sequence[tuple[SegmentView, Int64Array]]) -> Places:
    """Blocks of one part, one after another, as one."""
    found: list[tuple[SegmentView, list[Int64Array]]] = []
    for part, where in blocks:
        if found and found[-1][0] is part:
            found[-1][1].append(where)
        else:
            found.append((part, [where]))
    return [(part, each[0] if len(each) == 1 else np.concatenate(each)) for part, each in found]
