"""UNNEST in shards: always."""

from __future__ import annotations

from dataclasses import replace

from engine.algebra.unnest.stage import Unnest
from engine.changes.parts import PartRows


def rows_in_parts(stage: Unnest, rows: PartRows, inner: PartRows | None) -> PartRows:
    return replace(rows, width=rows.width + len(stage.own_columns))
