"""Arithmetic with INTERVAL: lengths of time in milliseconds, and months that are added to an instant.

Values of INTERVAL are computed as the whole numbers that they are, and compared as such:

    t - u           EPOCH_MS(t) - EPOCH_MS(u)             t + i       TO_TIMESTAMP(EPOCH_MS(t) + ms of i)
    i + j, i - j    of their ms                           i * n       ms * n; rounded for a DOUBLE n
    i / n           ms / n, cut off; rounded likewise     i / j       a DOUBLE

Months have no fixed length, so only a literal has them, by itself or times a whole number, behind an instant
and ``+`` or ``-``: then they go by the calendar, before all that has a fixed length.
"""

from __future__ import annotations

from sqlglot import exp

from engine.language.bind.calls import coerce
from engine.language.bind.scope import Scope
from engine.language.grammar import nodes
from engine.language.lengths import in_ms, of_ms, time_of_day
from engine.model.expressions import Arithmetic, ArithmeticOp, Expression, Function, Literal, Negate
from engine.model.types import BIGINT, DOUBLE, INTEGER, INTERVAL, TIMESTAMP, Kind
from tureen.errors import NotSupported, TypeMismatch

_TIMES = (Kind.DATE, Kind.TIMESTAMP)


def bind_interval(node: exp.Expr, scope: Scope) -> Expression:
    """``INTERVAL '5' MINUTE`` by itself. Raises NotSupported for months."""
    if node.args.get("months") is not None:
        raise scope.place(node).refuse(
            NotSupported,
            "an INTERVAL of months, quarters or years has no fixed length: it can only be added to a time",
            hint="write t + INTERVAL '1' MONTH, or DAYS, such as INTERVAL '30' DAY",
        )
    return Literal(int(node.this), INTERVAL)


def months_of(node: exp.Expr) -> tuple[exp.Expr, exp.Expr | None] | None:
    """A literal that has months, and what it is multiplied with; None where a node is something else."""
    inside = node.unnest()
    if isinstance(inside, nodes.IntervalLiteral):
        return (inside, None) if inside.args.get("months") is not None else None
    if isinstance(inside, exp.Mul):
        for one, other in ((inside.this, inside.expression), (inside.expression, inside.this)):
            literal = one.unnest()
            if isinstance(literal, nodes.IntervalLiteral) and literal.args.get("months") is not None:
                return literal, other
    return None


def moved_by_months(
    op: ArithmeticOp,
    instant: Expression,
    months: exp.Expr,
    count: Expression | None,
    place: exp.Expr,
    scope: Scope,
) -> Expression:
    """``t + INTERVAL '1 year 2 days' * n``. Raises TypeMismatch."""
    if instant.type.kind not in _TIMES:
        raise scope.place(place).refuse(
            TypeMismatch,
            f"months are added to a time, this is {instant.type}",
            hint="write t + INTERVAL '1' MONTH",
        )
    if count is not None and not count.type.is_integer:
        raise scope.place(place).refuse(
            TypeMismatch,
            f"an INTERVAL of months is multiplied with whole numbers, this is {count.type}",
            hint="write DAYS for parts of a month",
        )
    moved = Function(
        "ADD_MONTHS", (coerce(instant, TIMESTAMP), _times(op, int(months.args["months"]), count)), TIMESTAMP
    )
    ms = int(months.this)
    if not ms:
        return moved
    added = _number(ms) if count is None else _times("+", ms, count)
    return _moved(op, moved, added)


def _times(op: ArithmeticOp, number: int, count: Expression | None) -> Expression:
    """A number, or the product of it and a count, as BIGINT, negated for ``-``."""
    literal = Literal(-number if op == "-" else number, BIGINT)
    if count is None:
        return literal
    return Arithmetic("*", coerce(count, BIGINT), literal, BIGINT)


def _number(ms: int) -> Literal:
    return Literal(ms, INTEGER if abs(ms) < 2**31 else BIGINT)


def _moved(op: ArithmeticOp, instant: Expression, ms: Expression) -> Expression:
    return Function("TO_TIMESTAMP", (Arithmetic(op, _epoch_ms(instant), ms, BIGINT),), TIMESTAMP)


def _epoch_ms(instant: Expression) -> Expression:
    return Function("EPOCH_MS", (coerce(instant, TIMESTAMP),), BIGINT)


def interval_arithmetic(
    op: ArithmeticOp, left: Expression, right: Expression, node: exp.Expr, scope: Scope
) -> Expression | None:
    """Arithmetic of which one side at least is a time or an INTERVAL; None: there is none of these types."""
    if Kind.INTERVAL in (left.type.kind, right.type.kind):
        left, right = (
            Literal(None, INTERVAL) if side.type.kind is Kind.NULL else side for side in (left, right)
        )
    kinds = left.type.kind, right.type.kind
    if op == "-" and kinds[0] in _TIMES and kinds[1] in _TIMES:
        return of_ms(Arithmetic("-", _epoch_ms(left), _epoch_ms(right), BIGINT))
    if op in ("+", "-") and kinds[0] in _TIMES and kinds[1] is Kind.INTERVAL:
        ms = (
            _number(right.value)
            if isinstance(right, Literal) and isinstance(right.value, int)
            else in_ms(right)
        )
        return _moved(op, left, ms)
    if op == "+" and kinds[0] is Kind.INTERVAL and kinds[1] in _TIMES:
        return _moved(op, right, in_ms(left))
    if Kind.TIME in kinds:
        found = _with_time_of_day(op, left, right)
        if found is not None:
            return found
    if kinds == (Kind.INTERVAL, Kind.INTERVAL) and op in ("+", "-", "%", "/"):
        if op == "/":
            sides = [coerce(in_ms(side), DOUBLE) for side in (left, right)]
            return Arithmetic("/", sides[0], sides[1], DOUBLE)
        return of_ms(Arithmetic(op, in_ms(left), in_ms(right), BIGINT))
    if op == "*" and kinds[1] is Kind.INTERVAL:
        left, right = right, left
    if op in ("*", "/") and left.type == INTERVAL and right.type.is_numeric:
        if right.type.is_integer:
            return of_ms(Arithmetic(op, in_ms(left), coerce(right, BIGINT), BIGINT))
        return of_ms(Arithmetic(op, coerce(in_ms(left), DOUBLE), coerce(right, DOUBLE), DOUBLE))
    if Kind.INTERVAL in kinds or Kind.TIME in kinds:
        raise scope.place(node).refuse(
            TypeMismatch,
            f"{left.type} {op} {right.type} is not supported",
            hint="an INTERVAL is added to a time or an INTERVAL, and multiplied with a number",
        )
    return None


def _with_time_of_day(op: ArithmeticOp, left: Expression, right: Expression) -> Expression | None:
    """TIME - TIME, TIME + INTERVAL, which goes round, and DATE + TIME; None: another."""
    kinds = left.type.kind, right.type.kind
    difference = Arithmetic(op, in_ms(left), in_ms(right), BIGINT)
    match op, kinds:
        case "-", (Kind.TIME, Kind.TIME):
            return of_ms(difference)
        case ("+" | "-", (Kind.TIME, Kind.INTERVAL)) | ("+", (Kind.INTERVAL, Kind.TIME)):
            return time_of_day(difference)
        case "+", (Kind.DATE, Kind.TIME):
            return _moved(op, left, in_ms(right))
        case "+", (Kind.TIME, Kind.DATE):
            return _moved(op, right, in_ms(left))
    return None


def negated(operand: Expression) -> Expression:
    """``-i``."""
    return of_ms(Negate(in_ms(operand), BIGINT))
