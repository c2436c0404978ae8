"""Scalar expressions: names resolved, types checked, SQL's many forms reduced to the few of
:mod:`engine.model.expressions`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from sqlglot import exp

from engine.language.bind.calls import bind_call, coerce
from engine.language.bind.comparable import arithmetic_hint, not_comparable
from engine.language.bind.intervals import (
    bind_interval,
    interval_arithmetic,
    months_of,
    moved_by_months,
    negated,
)
from engine.language.bind.members import joined_arrays, member_of_column
from engine.language.bind.scope import Scope, column_at
from engine.language.bind.temporal_filters import bind_now
from engine.language.bind.typenames import bind_type
from engine.language.grammar import nodes
from engine.language.grammar.operators import COMPARE_OPS
from engine.language.lengths import in_ms
from engine.language.literals import instant_literal, logical_literal, number_literal, typed
from engine.language.promotion import arithmetic, castable, common
from engine.model import expressions as bound
from engine.model.expressions import Expression, Literal
from engine.model.types import BOOLEAN, BYTES, INTERVAL, JSON, NULL, STRING, Kind
from tureen.errors import NotSupported, TypeMismatch

_READ = (Kind.DATE, Kind.TIMESTAMP, Kind.TIME)
TRUE = Literal(True, BOOLEAN)
FALSE = Literal(False, BOOLEAN)


def bind_scalar(node: exp.Expr, scope: Scope) -> Expression:
    """Any expression that something can be computed from. Raises QueryError with a place. Recursive: a few
    frames a level of the tree.
    """
    if scope.memo is not None:
        known = scope.memo.get(id(node))
        if known is None:
            known = scope.memo[id(node)] = _bind(node, scope)
        return known
    if scope.grouping is not None:
        key = scope.grouping.key(node)
        if key is not None:
            return key
    return _bind(node, scope)


def _bind(node: exp.Expr, scope: Scope) -> Expression:
    if isinstance(node, exp.Connector):
        operands = tuple(bind_condition(part, scope) for part in (node.this, node.expression))
        return bound.And(operands) if isinstance(node, exp.And) else bound.Or(operands)
    bind = _BINDERS.get(type(node))
    if bind is None:
        raise scope.place(node).refuse(
            NotSupported,
            "this expression is not supported",
            hint="the page on SQL lists the expressions that are supported",
        )
    return bind(node, scope)


def bind_condition(node: exp.Expr, scope: Scope) -> Expression:
    """An expression that must be BOOLEAN; a bare NULL is one."""
    expression = bind_scalar(node, scope)
    if expression.type.kind is Kind.NULL:
        return Literal(None, BOOLEAN)
    if expression.type.kind is not Kind.BOOLEAN:
        if isinstance(node.unnest(), exp.DPipe):
            hint = "|| joins strings; write OR"
        else:
            hint = f"write a comparison, such as x {'<> 0' if expression.type.is_numeric else '= y'}"
        raise scope.place(node).refuse(
            TypeMismatch, f"a condition must be BOOLEAN, this is {expression.type}", hint=hint
        )
    return expression


# --- literals and names


def _literal(node: exp.Expr, scope: Scope, negative: bool = False) -> Expression:
    if node.args.get("is_string"):
        return scope.binding.text.literal(node, Literal(str(node.this), STRING))
    number = number_literal(str(node.this), negative, scope.place(node))
    return scope.binding.text.literal(node, number, negative)


def _column(node: exp.Expr, scope: Scope) -> Expression:
    assert isinstance(node, exp.Column)
    if scope.grouping is not None:
        scope.grouping.refuse_ungrouped(node)
    owner = member_of_column(node, scope)
    if owner is not None:
        return bind_call(owner, scope, bind_scalar)
    if node.args.get("table") is None and scope.find(node) is None:
        alias = scope.aliases.get(str(node.this.this))
        if alias is not None:
            return bind_scalar(alias, replace(scope, aliases={}))
    return scope.column(node)


def _window_function(node: exp.Expr, scope: Scope) -> Expression:
    if scope.over is None:
        name = str(node.args["name"])
        written = f"{name}()" if name == "ROW_NUMBER" else f"{name}(...) OVER"
        hint = "select it in a subquery: FROM (SELECT *, ROW_NUMBER() OVER (...) AS n ...) WHERE n <= 3"
        if scope.clause in ("WHERE", "HAVING"):
            hint = f"write QUALIFY in the place of {scope.clause}, or {hint}"
        raise scope.place(node).refuse(NotSupported, f"{written} is not allowed in {scope.clause}", hint=hint)
    return scope.over.column(node, scope)


def _estimate(node: exp.Expr, scope: Scope) -> Expression:
    if scope.estimates is None:
        raise scope.place(node).refuse(
            NotSupported,
            f"an estimate of a summary is not allowed in {scope.clause}",
            hint="write it behind the query: WITH PREFERENCE desc SUMMARY.Estimate.Count(column)",
        )
    return scope.estimates.bind(node, scope)


def _window_call(node: exp.Expr, scope: Scope) -> Expression:
    """``TUMBLE_START(...)``: of the window in GROUP BY."""
    name, part, window = node.args["name"], node.args.get("part"), scope.window
    if part is not None and window is not None and same_window(node, window):
        return bind_scalar(column_at(f"window_{part}", node), scope)
    written = f"{name}_{part.upper()}" if part is not None else name
    hint = f"write FROM {name}(stream, ...), which gives window_start and window_end"
    if window is not None:
        hint = "write it with the same length as in GROUP BY"
    raise scope.place(node).refuse(NotSupported, f"{written} needs the same {name} in GROUP BY", hint=hint)


def same_window(left: exp.Expr, right: exp.Expr) -> bool:
    """Whether two are about one window. All windows of a stream follow its time, whatever they call it."""
    lengths = [[int(d.this) for d in node.args["durations"]] for node in (left, right)]
    return left.args["name"] == right.args["name"] and lengths[0] == lengths[1]


def _subquery(node: exp.Expr, scope: Scope) -> Expression:
    if scope.values is not None:
        return scope.values.bind(node, scope)
    words: dict[type[exp.Expr], str] = {
        nodes.InQuery: "IN (SELECT ...)",
        nodes.ExistsQuery: "EXISTS (SELECT ...)",
        nodes.AnyQuery: "ANY or ALL (SELECT ...)",
    }
    what = words.get(type(node), "a subquery in the place of a value")
    raise scope.place(node).refuse(
        NotSupported,
        f"{what} is not allowed in {scope.clause}",
        hint="write it in SELECT, WHERE, HAVING or ORDER BY",
    )


def _negate(node: exp.Expr, scope: Scope) -> Expression:
    inner = node.this
    if isinstance(inner, exp.Literal) and not inner.args.get("is_string"):
        return _literal(inner, scope, negative=True)
    operand = bind_scalar(inner, scope)
    if operand.type.kind is Kind.NULL:
        return operand
    if operand.type == INTERVAL:
        return negated(operand)
    if not operand.type.is_numeric:
        raise scope.place(inner).refuse(TypeMismatch, f"- needs a number, this is {operand.type}")
    return bound.Negate(operand, operand.type)


# --- conditions


def _compare(node: exp.Expr, scope: Scope) -> Expression:
    left, right = bind_scalar(node.this, scope), bind_scalar(node.expression, scope)
    return compare(COMPARE_OPS[type(node)], left, right, node.this, node.expression, scope)


def compare(
    op: bound.CompareOp,
    left: Expression,
    right: Expression,
    left_node: exp.Expr,
    right_node: exp.Expr,
    scope: Scope,
) -> Expression:
    """A comparison of two operands that must have a type in common."""
    left, right = _fit(left, right, left_node, scope), _fit(right, left, right_node, scope)
    if left.type.kind is Kind.NULL and right.type.kind is Kind.NULL:
        return Literal(None, BOOLEAN)
    shared = common([left.type, right.type])
    if shared is None:
        raise not_comparable(left, right, right_node, scope)
    if left.type == right.type:
        left, right = in_ms(left), in_ms(right)
    if shared.is_nested:
        if op not in ("=", "<>"):
            raise scope.place(left_node).refuse(
                TypeMismatch,
                f"{shared} has no order",
                hint="compare a part of it, or CAST(x AS STRING), its text",
            )
        left, right = coerce(left, shared), coerce(right, shared)
    return bound.Compare(op, left, right)


def _fit(expression: Expression, other: Expression, node: exp.Expr, scope: Scope) -> Expression:
    """A literal in the other operand's type: a string as an instant, a number as a wider one, NULL as
    anything.
    """
    if not isinstance(expression, Literal) or (isinstance(other, Literal) and other.type.kind is Kind.NULL):
        return expression
    if expression.type == STRING and other.type.kind in _READ:
        return instant_literal(expression, other.type, scope.place(node))
    if expression.type == STRING and other.type.logical is not None and expression.value is not None:
        return logical_literal(expression, other.type, scope.place(node))
    if expression.type.kind is Kind.NULL or other.type.is_numeric:
        return typed(expression, other.type)
    return expression


def _not(node: exp.Expr, scope: Scope) -> Expression:
    return bound.Not(bind_condition(node.this, scope))


def _is_null(node: exp.Expr, scope: Scope) -> Expression:
    return bound.IsNull(bind_scalar(node.this, scope))


def _is_truth(node: exp.Expr, scope: Scope) -> Expression:
    """``x IS TRUE`` is never NULL: CASE WHEN x THEN TRUE ELSE FALSE END."""
    operand = bind_condition(node.this, scope)
    condition = operand if node.args["value"] else bound.Not(operand)
    return bound.Case(((condition, TRUE),), FALSE, BOOLEAN)


def _distinct_from(node: exp.Expr, scope: Scope) -> Expression:
    """Like <>, but NULL is a value: equal to NULL, different from all else."""
    left, right = bind_scalar(node.this, scope), bind_scalar(node.expression, scope)
    differ = compare("<>", left, right, node.this, node.expression, scope)
    branches = (
        (bound.IsNull(left), bound.Not(bound.IsNull(right))),
        (bound.IsNull(right), TRUE),
    )
    return scope.binding.sized(bound.Case(branches, differ, BOOLEAN), node)


def _between(node: exp.Expr, scope: Scope) -> Expression:
    operand = bind_scalar(node.this, scope)
    low_node, high_node = node.args["low"], node.args["high"]
    low = compare(">=", operand, bind_scalar(low_node, scope), node.this, low_node, scope)
    high = compare("<=", operand, bind_scalar(high_node, scope), node.this, high_node, scope)
    return scope.binding.sized(bound.And((low, high)), node)


def _in(node: exp.Expr, scope: Scope) -> Expression:
    operand = in_ms(bind_scalar(node.this, scope))
    tests: list[Expression] = []
    choices: list[Literal] = []
    for choice in node.expressions:
        test = compare("=", operand, in_ms(bind_scalar(choice, scope)), node.this, choice, scope)
        right = test.right if isinstance(test, bound.Compare) else None
        if isinstance(right, Literal) and right.type == operand.type and not isinstance(operand, Literal):
            choices.append(right)
        else:
            tests.append(test)
    if len(choices) == 1:
        tests.append(bound.Compare("=", operand, choices[0]))
    elif choices:
        tests.append(bound.In(operand, tuple(dict.fromkeys(choices))))
    return scope.binding.sized(bound.Or(tuple(tests)), node) if len(tests) > 1 else tests[0]


def _like(node: exp.Expr, scope: Scope, escape: str | None = None) -> Expression:
    operand = bind_scalar(node.this, scope)
    if operand.type.kind is Kind.NULL:
        operand = Literal(None, STRING)
    if operand.type != STRING:
        raise scope.place(node.this).refuse(
            TypeMismatch, f"LIKE needs a STRING, this is {operand.type}", hint="cast it: CAST(x AS STRING)"
        )
    pattern_node = node.expression.unnest()
    if isinstance(pattern_node, exp.Null):
        return bound.Compare("=", operand, Literal(None, STRING))
    if not isinstance(pattern_node, exp.Literal) or not pattern_node.args.get("is_string"):
        raise scope.place(node.expression).refuse(
            NotSupported, "a pattern must be a string literal", hint="write LIKE 'a%', or STARTS_WITH(x, y)"
        )
    pattern = str(pattern_node.this)
    if escape is not None and _dangling(pattern, escape):
        raise scope.place(node.expression).refuse(
            TypeMismatch,
            "this pattern ends with its escape character",
            hint="double it to match it literally",
        )
    return bound.Like(operand, pattern, escape, isinstance(node, exp.ILike))


def _dangling(pattern: str, escape: str) -> bool:
    place = 0
    while place < len(pattern):
        if pattern[place] == escape:
            if place + 1 == len(pattern):
                return True
            place += 1
        place += 1
    return False


def _escape(node: exp.Expr, scope: Scope) -> Expression:
    character = node.expression.unnest()
    is_string = isinstance(character, exp.Literal) and character.args.get("is_string")
    if not is_string or len(str(character.this)) > 1:
        raise scope.place(node.expression).refuse(
            TypeMismatch, "ESCAPE needs one character", hint="write LIKE '10!%' ESCAPE '!'"
        )
    return _like(node.this, scope, str(character.this) or None)


# --- values


def _arithmetic(node: exp.Expr, scope: Scope) -> Expression:
    op = _ARITHMETIC_OPS[type(node)]
    months = months_of(node.expression) if op in ("+", "-") else None
    if months is not None:
        literal, count_node = months
        count = None if count_node is None else bind_scalar(count_node, scope)
        return moved_by_months(op, bind_scalar(node.this, scope), literal, count, node.expression, scope)
    left, right = bind_scalar(node.this, scope), bind_scalar(node.expression, scope)
    of_time = interval_arithmetic(op, left, right, node, scope)
    if of_time is not None:
        return of_time
    for side, part in ((left, node.this), (right, node.expression)):
        if not (side.type.is_numeric or side.type.kind is Kind.NULL):
            raise scope.place(part).refuse(
                TypeMismatch,
                f"{op} needs numbers, this is {side.type}",
                hint=arithmetic_hint(op, side, right if side is left else left),
            )
    if left.type.kind is Kind.NULL and right.type.kind is Kind.NULL:
        return Literal(None, NULL)
    if left.type.kind is Kind.NULL:
        left = Literal(None, right.type)
    if right.type.kind is Kind.NULL:
        right = Literal(None, left.type)
    type_ = arithmetic(op, left.type, right.type)
    if type_ is None:
        raise scope.place(node).refuse(
            TypeMismatch,
            f"{left.type} {op} {right.type} needs more than 18 decimal places",
            hint="cast one of them to DOUBLE",
        )
    return bound.Arithmetic(op, left, right, type_)


def _concatenate(node: exp.Expr, scope: Scope) -> Expression:
    sides = [bind_scalar(part, scope) for part in (node.this, node.expression)]
    joined = joined_arrays(node, sides, scope)
    if joined is not None:
        return bind_call(joined, scope, bind_scalar)
    return bound.Function("||", tuple(coerce(side, STRING) for side in sides), STRING)


def _case(node: exp.Expr, scope: Scope) -> Expression:
    subject_node = node.args.get("this")
    subject = None if subject_node is None else bind_scalar(subject_node, scope)
    branches: list[tuple[Expression, Expression]] = []
    values: list[tuple[Expression, exp.Expr]] = []
    for branch in node.args["ifs"]:
        if subject is None or subject_node is None:
            condition = bind_condition(branch.this, scope)
        else:
            wanted = bind_scalar(branch.this, scope)
            condition = compare("=", subject, wanted, subject_node, branch.this, scope)
        value = bind_scalar(branch.args["true"], scope)
        branches.append((condition, value))
        values.append((value, branch.args["true"]))
    default_node = node.args.get("default")
    otherwise: Expression = Literal(None, NULL)
    if default_node is not None:
        otherwise = bind_scalar(default_node, scope)
        values.append((otherwise, default_node))
    type_ = values[0][0].type
    for value, value_node in values[1:]:
        joined = common([type_, value.type])
        if joined is None:
            raise scope.place(value_node).refuse(
                TypeMismatch,
                f"the values of CASE must have one type: {type_} before, {value.type} here",
                hint="cast one of them: CAST(x AS TYPE)",
            )
        type_ = joined
    typed_branches = tuple((condition, coerce(value, type_)) for condition, value in branches)
    return scope.binding.sized(bound.Case(typed_branches, coerce(otherwise, type_), type_), node)


def _cast(node: exp.Expr, scope: Scope) -> Expression:
    target = bind_type(node.args["to"], scope.binding.text)
    operand = bind_scalar(node.this, scope)
    lenient = isinstance(node, exp.TryCast)
    if not castable(operand.type, target):
        hint = "use EPOCH_MS(t) or TO_TIMESTAMP(milliseconds)"
        kinds = {operand.type.kind, target.kind}
        if operand.type.logical is not None or target.logical is not None:
            hint = "cast it to STRING or JSON first"
        elif Kind.BOOLEAN in kinds:
            hint = "write CASE WHEN ... THEN ... END"
        raise scope.place(node.this).refuse(
            TypeMismatch, f"{operand.type} cannot be cast to {target}", hint=hint
        )
    instant = target.kind in _READ
    if instant and isinstance(node.this, exp.Literal) and isinstance(operand, Literal) and not lenient:
        literal = operand
        if operand.type == STRING:
            literal = instant_literal(operand, target, scope.place(node.this))
        if literal.type == target:
            return literal
    if target == BYTES and isinstance(operand, Literal) and operand.type == STRING and not lenient:
        return logical_literal(operand, BYTES, scope.place(node.this))
    if operand.type == target:
        return operand
    if operand.type == JSON and target.logical is None and target != STRING:
        operand = bound.Function("JSON_EXTRACT_STRING", (operand, Literal("$", STRING)), STRING)
    if isinstance(operand, Literal) and operand.is_null:
        return Literal(None, target)
    return bound.Cast(operand, target, lenient)


def _paren(node: exp.Expr, scope: Scope) -> Expression:
    return bind_scalar(node.this, scope)


_ARITHMETIC_OPS: dict[type[exp.Expr], bound.ArithmeticOp] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.Mod: "%",
}
_BINDERS: dict[type[Any], Callable[[Any, Scope], Expression]] = {
    exp.Column: _column,
    exp.Literal: _literal,
    exp.Boolean: lambda node, scope: TRUE if node.this else FALSE,
    exp.Null: lambda node, scope: Literal(None, NULL),
    exp.Paren: _paren,
    exp.Neg: _negate,
    exp.Not: _not,
    exp.Is: _is_null,
    nodes.IsTruth: _is_truth,
    nodes.DistinctFrom: _distinct_from,
    exp.Between: _between,
    exp.In: _in,
    exp.Like: _like,
    exp.ILike: _like,
    exp.Escape: _escape,
    exp.DPipe: _concatenate,
    exp.Case: _case,
    exp.Cast: _cast,
    exp.TryCast: _cast,
    nodes.WindowFunctionOver: _window_function,
    nodes.WindowCall: _window_call,
    nodes.NowCall: bind_now,
    nodes.IntervalLiteral: bind_interval,
    nodes.EstimateCall: _estimate,
    **dict.fromkeys(nodes.SUBQUERIES, _subquery),
    nodes.Call: lambda node, scope: bind_call(node, scope, bind_scalar),
    **dict.fromkeys(COMPARE_OPS, _compare),
    **dict.fromkeys(_ARITHMETIC_OPS, _arithmetic),
}
