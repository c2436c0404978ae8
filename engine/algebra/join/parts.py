"""A join in shards: partners are in one, and no row without one is in several."""

from __future__ import annotations

from dataclasses import replace

from engine.algebra.join.stage import Join
from engine.changes.parts import PartRows


def rows_in_parts(stage: Join, rows: PartRows, inner: PartRows | None) -> PartRows | str:
    assert inner is not None
    sided = stage.kind in ("semi", "anti")
    width = rows.width + (0 if sided else inner.width)
    shifted = frozenset(rows.width + column for column in inner.held)
    if rows.whole and inner.whole:
        return PartRows(True, width)
    if inner.whole:
        if stage.kind in ("right", "full"):
            return f"a {stage.kind.upper()} JOIN keeps rows of a table of which every shard has all rows"
        return replace(rows, width=width)
    if rows.whole:
        if stage.kind in ("left", "full", "anti"):
            return "the join keeps rows of a table of which every shard has all rows"
        if stage.kind == "semi":
            return rows.moved_to(inner, stage.keys) or "the join does not compare the key"
        return PartRows(False, width, shifted, inner.type)
    if not rows.together(inner, stage.keys):
        return "the join does not compare the keys of both sides"
    return PartRows(False, width, _held(stage, rows.held, shifted), rows.type)


def _held(stage: Join, left: frozenset[int], right: frozenset[int]) -> frozenset[int]:
    """The columns that have the key in each row: NULLs stand for those of a side that gives no partner."""
    match stage.kind:
        case "inner":
            return left | right
        case "right":
            return right
        case "full":
            return frozenset()
        case _:
            return left
