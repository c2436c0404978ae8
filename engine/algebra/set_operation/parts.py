"""UNION, INTERSECT and EXCEPT in shards: equal rows are in one."""

from __future__ import annotations

from dataclasses import replace

from engine.algebra.set_operation.stage import SetOperation
from engine.changes.parts import PartRows


def rows_in_parts(stage: SetOperation, rows: PartRows, inner: PartRows | None) -> PartRows | str:
    assert inner is not None
    word = stage.kind.upper()
    if rows.whole and inner.whole:
        return rows
    if rows.whole or (inner.whole and stage.kind == "union"):
        return f"a side of {word} is made of tables of which every shard has all rows"
    if stage.kind == "union":
        return replace(rows, held=rows.held & inner.held if rows.has_key_type_of(inner) else frozenset())
    if inner.whole:
        if not rows.is_held_by(one for one, _ in stage.compared):
            return f"{word} does not compare the key"
        return rows
    if not rows.together(inner, stage.compared):
        return f"{word} does not compare the keys of both sides"
    return rows
