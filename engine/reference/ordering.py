"""ORDER BY over lists of rows."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cmp_to_key

from engine.algebra.sort.stage import SortKey
from engine.reference.joins import values_of
from engine.reference.rows import Placed, Values
from engine.reference.values import order


def sort(keys: tuple[SortKey, ...], rows: Sequence[Placed]) -> tuple[list[Placed], int]:
    """The rows in order, stably, and how many keys were errors."""
    keyed: list[tuple[Values, Placed]] = []
    errors = 0
    for row in rows:
        values, met = values_of([key.expression for key in keys], row.values)
        keyed.append((values, row))
        errors += met

    def in_order(one: tuple[Values, Placed], other: tuple[Values, Placed]) -> int:
        return compare(keys, one[0], other[0])

    return [row for _, row in sorted(keyed, key=cmp_to_key(in_order))], errors


def compare(keys: tuple[SortKey, ...], one: Values, other: Values) -> int:
    """-1, 0 or 1: which of two rows of sort keys comes first."""
    for key, a, b in zip(keys, one, other, strict=True):
        if a is None or b is None:
            placed = int(a is None) - int(b is None)
            placed = -placed if key.nulls_first else placed
        else:
            placed = order(a, key.expression.type, b, key.expression.type)
            placed = -placed if key.descending else placed
        if placed:
            return placed
    return 0
