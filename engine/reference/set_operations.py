"""Set operations over lists of rows, a copy at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from engine.algebra.set_operation.stage import SetOperation
from engine.reference.rows import Placed, Values
from engine.reference.values import Identity, identity, one_zero


def set_operation(stage: SetOperation, left: Sequence[Placed], right: Sequence[Placed]) -> list[Placed]:
    """The rows that the stage gives of ``left`` and those of its inner query."""
    if stage.kind == "union":
        return [*left, *right]
    places = [(place, place) for place in range(len(stage.inner.columns))] if stage.on is None else stage.on
    others = Counter(_compared(row.values, [place for _, place in places]) for row in right)
    kept = []
    met: set[Identity] = set()
    for row in left:
        key = _compared(row.values, [place for place, _ in places])
        if stage.all:
            has_equal = others[key] > 0
            others[key] -= has_equal  # one right row for one left row, the oldest first
        else:
            has_equal = others[key] > 0
            if key in met:
                continue
            met.add(key)
        if has_equal is (stage.kind == "intersect"):
            kept.append(row)
    if stage.on is not None:
        return kept
    return [replace(row, values=tuple(map(one_zero, row.values))) for row in kept]


def merged(left: Sequence[Placed], right: Sequence[Placed]) -> list[Placed]:
    """Rows of streams in the order of time, left before right where they are of one place."""
    return sorted([*left, *right], key=_moment)


def _moment(row: Placed) -> tuple[int, int, int]:
    assert row.moment is not None
    return row.moment


def _compared(values: Values, places: Sequence[int]) -> Identity:
    return identity([values[place] for place in places])
