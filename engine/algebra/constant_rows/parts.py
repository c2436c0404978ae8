"""VALUES in shards: each has all of them."""

from __future__ import annotations

from engine.algebra.constant_rows.stage import ConstantRows
from engine.changes.parts import PartRows


def rows_in_parts(stage: ConstantRows, rows: PartRows, inner: PartRows | None) -> PartRows:
    return PartRows(True, len(stage.columns))
