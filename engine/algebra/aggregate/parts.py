"""GROUP BY in shards: the key is among its keys."""

from __future__ import annotations

from engine.algebra.aggregate.stage import Aggregate
from engine.changes.parts import PartRows


def rows_in_parts(stage: Aggregate, rows: PartRows, inner: PartRows | None) -> PartRows | str:
    keys = [key.expression for key in stage.keys]
    if not rows.is_held_by(keys):
        return "groups have rows of several keys"
    return rows.giving(keys, len(stage.calls))
