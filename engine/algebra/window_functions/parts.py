"""Window functions in shards: the key is among those of PARTITION BY."""

from __future__ import annotations

from dataclasses import replace

from engine.algebra.window_functions.stage import WindowFunctions
from engine.changes.parts import PartRows


def rows_in_parts(stage: WindowFunctions, rows: PartRows, inner: PartRows | None) -> PartRows | str:
    if not rows.is_held_by(stage.keys):
        return "OVER (...) is about rows of several keys"
    return replace(rows, width=rows.width + len(stage.calls))
