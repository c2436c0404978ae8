"""What tells rows of constants apart: a column in which no two are equal, or all columns."""

from __future__ import annotations

from engine.algebra.constant_rows.stage import ConstantRows
from engine.changes.result_key import KnownColumns


def known_above(stage: ConstantRows, left: KnownColumns, inner: KnownColumns | None) -> KnownColumns:
    width, rows = len(stage.columns), stage.rows
    filled = frozenset(place for place in range(width) if not any(row[place].is_null for row in rows))
    known = KnownColumns(width, filled=filled)
    if len(rows) <= 1:
        return known.with_keys([])
    keys = [[place] for place in range(width) if len({_plain(row[place].value) for row in rows}) == len(rows)]
    if len({tuple(_plain(one.value) for one in row) for row in rows}) == len(rows):
        keys.append([*range(width)])
    return known.with_keys(*keys)


def _plain(value: object) -> object:
    """Equal for values that groups take for one: NaN is."""
    return "nan" if isinstance(value, float) and value != value else value
