"""What tells numbered rows apart: the number, among rows of equal keys."""

from __future__ import annotations

from engine.algebra.row_number.stage import RowNumber
from engine.changes.result_key import KnownColumns, plain_places


def known_above(stage: RowNumber, left: KnownColumns, inner: KnownColumns | None) -> KnownColumns:
    number = left.width
    numbered = KnownColumns(number + 1, left.keys, left.constant, left.filled | {number})
    numbered = numbered.with_constants([number] if stage.count == 1 else [])
    places = plain_places(stage.keys)
    return numbered if places is None else numbered.with_keys([*places, number])
