"""What tells elements apart: what tells their rows apart, and the number of the element."""

from __future__ import annotations

from engine.algebra.unnest.stage import Unnest
from engine.changes.result_key import KnownColumns


def known_above(stage: Unnest, left: KnownColumns, inner: KnownColumns | None) -> KnownColumns:
    width = left.width + len(stage.own_columns)
    filled = left.filled if stage.ordinality is None or stage.keeps else left.filled | {width - 1}
    known = KnownColumns(width, constant=left.constant, filled=filled)
    if stage.ordinality is None:
        return known
    return known.with_keys(*([*key, width - 1] for key in left.keys))
