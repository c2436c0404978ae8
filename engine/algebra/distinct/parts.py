"""DISTINCT in shards: the key is among the columns."""

from __future__ import annotations

from engine.algebra.distinct.stage import Distinct
from engine.changes.parts import PartRows


def rows_in_parts(stage: Distinct, rows: PartRows, inner: PartRows | None) -> PartRows | str:
    if not rows.whole and not rows.held:
        return "DISTINCT is over columns without the key"
    return rows
