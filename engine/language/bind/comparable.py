"""Why two operands cannot be compared or computed with, and what to write instead."""

from __future__ import annotations

from sqlglot import exp

from engine.language.bind.scope import Scope
from engine.model.expressions import Expression, Literal
from engine.model.types import JSON, STRING, Kind
from tureen.errors import TypeMismatch


def not_comparable(left: Expression, right: Expression, node: exp.Expr, scope: Scope) -> Exception:
    """The refusal of a comparison of two types that have none in common."""
    kinds = {left.type.kind, right.type.kind}
    if JSON in (left.type, right.type):
        return scope.place(node).refuse(
            TypeMismatch,
            f"{left.type} cannot be compared with {right.type}",
            hint="write j ->> 'name' = 'text', or " + _member_as(right if left.type == JSON else left),
        )
    hint = "cast one of them: CAST(x AS TYPE)"
    if Kind.STRING in kinds and (left.type.is_numeric or right.type.is_numeric):
        literal = next((side for side in (left, right) if isinstance(side, Literal)), None)
        if literal is None:
            hint = "cast one of them: CAST(x AS DOUBLE) or CAST(x AS STRING)"
        elif literal.type.kind is Kind.STRING:
            hint = "write the number without quotes"
        else:
            hint = f"the other side is text: write '{literal.value}', or cast it: CAST(x AS DOUBLE)"
    elif kinds & {Kind.DATE, Kind.TIMESTAMP} and (left.type.is_numeric or right.type.is_numeric):
        hint = "write TIMESTAMP '2024-01-31 12:00:00', or TO_TIMESTAMP(milliseconds)"
    elif Kind.INTERVAL in kinds:
        hint = "write INTERVAL '5' MINUTE, or CAST(i AS BIGINT) for its milliseconds"
    elif Kind.BOOLEAN in kinds:
        hint = "write TRUE or FALSE"
    return scope.place(node).refuse(
        TypeMismatch, f"{left.type} cannot be compared with {right.type}", hint=hint
    )


def _member_as(other: Expression) -> str:
    """A member of JSON in the type of what it is compared with."""
    if other.type.kind is Kind.BOOLEAN:
        return "CAST(j -> 'name' AS BOOLEAN)"
    return f"CAST(j -> 'name' AS {'BIGINT' if not other.type.is_numeric else other.type}) = 5"


def arithmetic_hint(op: str, side: Expression, other: Expression) -> str:
    """What to write in place of arithmetic with ``side``, which is no number."""
    kinds = (Kind.DATE, Kind.TIMESTAMP)
    if op == "-" and {side.type.kind, other.type.kind} & {*kinds} and STRING in (side.type, other.type):
        return "write t - TIMESTAMP '2024-01-31 12:00:00', or t - CAST(s AS TIMESTAMP)"
    if side.type.kind is Kind.STRING:
        return "|| joins strings; CAST(x AS DOUBLE) makes a number"
    if side.type.kind not in kinds:
        return "cast it: CAST(x AS INTEGER)"
    if op not in "+-":
        return f"count in milliseconds: EPOCH_MS(t) {op} 60000"
    if side.type.kind is Kind.DATE:
        return f"write d {op} INTERVAL '1' DAY, or d {op} n * INTERVAL '1' DAY"
    return f"write t {op} INTERVAL '5' MINUTE, or EPOCH_MS(t) {op} 300000"
