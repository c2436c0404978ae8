"""IN and EXISTS in shards: partners are in one."""

from __future__ import annotations

from engine.algebra.semi_join.stage import SemiJoin
from engine.changes.parts import PartRows


def rows_in_parts(stage: SemiJoin, rows: PartRows, inner: PartRows | None) -> PartRows | str:
    assert inner is not None
    if inner.whole:
        return rows
    if not stage.keys:
        return "EXISTS looks at rows of all keys"
    if stage.negated and stage.null_aware:
        return "NOT IN looks at NULLs of all keys; NOT EXISTS with an equality of the keys does not"
    if rows.whole:
        if stage.negated:
            return "rows without a partner would stay in every shard"
        return rows.moved_to(inner, stage.compared) or "IN or EXISTS does not compare the key"
    if not rows.together(inner, stage.compared):
        return "IN or EXISTS does not compare the keys of both sides"
    return rows
