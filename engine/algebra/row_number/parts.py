"""ROW_NUMBER in shards: the key is among its keys."""

from __future__ import annotations

from dataclasses import replace

from engine.algebra.row_number.stage import RowNumber
from engine.changes.parts import PartRows


def rows_in_parts(stage: RowNumber, rows: PartRows, inner: PartRows | None) -> PartRows | str:
    if not rows.is_held_by(stage.keys):
        return "ROW_NUMBER counts rows of several keys"
    return replace(rows, width=rows.width + 1)
