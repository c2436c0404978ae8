"""Members of columns, and ``||`` of ARRAYs: calls that their texts do not look like."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from engine.language.bind.scope import Scope
from engine.language.grammar import nodes
from engine.model.expressions import Expression
from engine.model.types import Logical
from tureen.errors import TypeMismatch


def member_of_column(node: exp.Column, scope: Scope) -> nodes.Call | None:
    """``s.name`` of a column s as the member of a STRUCT; None: s is a source, or no column."""
    owner = node.args.get("table")
    if owner is None or scope.find(node) is not None:
        return None
    name = str(owner.this)
    column = exp.Column(this=owner.copy())
    found = scope.find(column) if name in scope.names.columns else None
    is_source = name == scope.names.name or any(part.name == name for part in scope.names.parts)
    if found is None or (is_source and found.type.logical is not Logical.STRUCT):
        return None
    literal = exp.Literal(this=str(node.this.this), is_string=True)
    call = nodes.Call(name=".", expressions=[column, literal])
    for made, like in ((column, owner), (column.this, owner), (literal, node.this), (call, node)):
        made.meta.update(like.meta)
    return call


def joined_arrays(node: exp.Expr, sides: Sequence[Expression], scope: Scope) -> nodes.Call | None:
    """``a || b`` where a side is an ARRAY, else None. Raises TypeMismatch for other nested values."""
    lists = [side.type.logical is Logical.ARRAY for side in sides]
    if not any(lists):
        for side, part in zip(sides, (node.this, node.expression), strict=True):
            if side.type.is_nested:
                raise scope.place(part).refuse(
                    TypeMismatch,
                    f"|| joins strings and ARRAYs, this is {side.type}",
                    hint="cast it: CAST(x AS STRING)",
                )
        return None
    name = "ARRAY_CONCAT" if all(lists) else "ARRAY_APPEND" if lists[0] else "ARRAY_PREPEND"
    call = nodes.Call(name=name, expressions=[node.this, node.expression])
    call.meta.update(node.meta)
    return call
