"""Which rows of a stream break its constraints, by definition.

Rows are looked at in the order in which they enter; one that breaks a promise does not enter, so that later
rows are not measured by it. NULL promises nothing. A value whose last row is older than RETAIN is forgotten.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from engine.model.constraint import Clustered, Constraint, Ordered, References, Unique, columns_of
from engine.reference.values import identity

Row = tuple[int, Mapping[str, Any]]
"""The instant of a row and its values by column."""


def broken_by(rows: Sequence[Row], constraints: Sequence[Constraint], retain_ms: int) -> list[int | None]:
    """For each row the place of the first constraint that it breaks, None where it enters."""
    entered: list[Row] = []
    found: list[int | None] = []
    for row in rows:
        broken = (place for place, one in enumerate(constraints) if _breaks(row, one, entered, retain_ms))
        found.append(next(broken, None))
        if found[-1] is None:
            entered.append(row)
    return found


def again_by(rows: Sequence[Row], constraints: Sequence[Constraint], retain_ms: int) -> list[tuple[int, int]]:
    """(row, constraint) of rows that enter though their value was there, and over, longer ago than RETAIN."""
    entered: list[Row] = []
    found = []
    for place, broken in enumerate(broken_by(rows, constraints, retain_ms)):
        if broken is None:
            for number, one in enumerate(constraints):
                if not isinstance(one, Ordered) and _breaks(rows[place], one, entered, rows[-1][0]):
                    found.append((place, number))
            entered.append(rows[place])
    return found


def _breaks(row: Row, constraint: Constraint, entered: Sequence[Row], retain_ms: int) -> bool:
    match constraint:
        case Ordered(column, k):
            before = [values[column] for _, values in entered[: max(0, len(entered) - k)]]
            ranks = [_rank(value) for value in before if value is not None]
            value = row[1][column]
            return value is not None and bool(ranks) and _rank(value) < max(ranks)
        case Unique(columns):
            value = key_of(row, columns)
            return value is not None and any(
                key_of(other, columns) == value and other[0] >= row[0] - retain_ms for other in entered
            )
        case Clustered(columns, k):
            value = key_of(row, columns)
            mine = [place for place, other in enumerate(entered) if key_of(other, columns) == value]
            if value is None or not mine:
                return False
            first = mine[0]
            for place in mine:
                if _others(entered, columns, first, place) > k:
                    first = place
            is_over = _others(entered, columns, first, len(entered)) > k
            return is_over and entered[mine[-1]][0] >= row[0] - retain_ms
    return False


def _others(entered: Sequence[Row], columns: Sequence[str], first: int, stop: int) -> int:
    """How many rows behind the first one and before ``stop`` have other values."""
    value = key_of(entered[first], columns)
    return sum(key_of(other, columns) != value for other in entered[first:stop])


def key_of(row: Row, columns: Sequence[str]) -> tuple[Any, ...] | None:
    """The values of some columns so that equal ones are equal; None where one is NULL."""
    values = [row[1][column] for column in columns]
    return None if None in values else tuple(identity(value) for value in values)


def _rank(value: Any) -> tuple[bool, Any]:
    """What orders as values do: NaN is above all."""
    is_nan = isinstance(value, float) and math.isnan(value)
    return is_nan, 0 if is_nan else value


def unmatched(row: Row, constraint: References, target: Sequence[Row], now_ms: int) -> bool | None:
    """Whether a row lacks the row of the target that it refers to; None: not known yet. target: rows that
    entered there, in order; now_ms: its NOW.
    """
    value = key_of(row, columns_of(constraint))
    if value is None:
        return False
    before = sum(other[0] <= row[0] for other in target)
    if constraint.within_rows is not None:
        last = before + constraint.within_rows
        passed = now_ms >= row[0] and len(target) >= last
        allowed = target[:last] if now_ms >= row[0] else target[:before]
    else:
        assert constraint.within_ms is not None
        passed = now_ms >= row[0] + constraint.within_ms
        allowed = [other for other in target if other[0] <= row[0] + constraint.within_ms]
    if any(key_of(other, constraint.target_columns) == value for other in allowed):
        return False
    return True if passed else None
