"""GENERATE_SERIES and RANGE: rows of constants, each a step behind the one before.

GENERATE_SERIES ends with its stop, RANGE before it. Whole numbers and decimals go by numbers, instants by an
interval: each is the one before, so many months of the calendar and then milliseconds later.
"""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from sqlglot import exp

from engine.language.bind.constants import (
    COMPUTED,
    NO_CONSTANT,
    constant_of,
    constant_relation,
    constant_scope,
)
from engine.language.bind.environment import Environment
from engine.language.bind.relation import BoundRelation
from engine.language.bind.scalar import bind_scalar
from engine.language.bind.scope import Scope
from engine.language.grammar.series import USAGE
from engine.language.grammar.values import ROWS_MAX
from engine.language.promotion import common
from engine.model.expressions import Expression, Literal
from engine.model.source import DAY_MS
from engine.model.types import INTEGER, TIMESTAMP, Kind, Type
from tureen.errors import NotSupported, TypeMismatch

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
Number = int | Decimal
Step = Callable[[Number], Number]
"""Gives the value behind one."""


def bind_series(tree: exp.Expr, env: Environment) -> BoundRelation:
    """The rows of a Series. Raises TypeMismatch, NotSupported, LimitExceeded for too many."""
    scope, name = constant_scope(env, tree.args["name"]), str(tree.args["name"]).lower()
    written: list[exp.Expr] = list(tree.expressions)
    if len(written) == 1:
        zero = exp.Literal(this="0", is_string=False)
        zero.meta.update(tree.meta)
        written.insert(0, zero)
    bounds = [bind_scalar(node, scope) for node in written]
    step_node = tree.args.get("step")
    interval: tuple[int, int] | None = tree.args.get("interval")
    step: Step | None
    if interval is not None or any(bound.type.kind in (Kind.DATE, Kind.TIMESTAMP) for bound in bounds):
        type_, step = TIMESTAMP, _moving(tree, bounds, interval, scope)
        first, last = (_instant(bound, node, scope) for bound, node in zip(bounds, written, strict=True))
    else:
        parts, nodes = bounds, written
        if step_node is not None:
            parts, nodes = [*bounds, bind_scalar(step_node, scope)], [*written, step_node]
        type_, (first, last, by) = _numbers(parts, nodes, scope)
        step = None if by is None else _adding(by, tree, scope)
    ends = str(tree.args["name"]) == "GENERATE_SERIES"
    values: list[Literal] = []
    if first is not None and last is not None and step is not None:
        for value in _values(first, last, step, ends=ends):
            if len(values) == ROWS_MAX:
                raise scope.place(tree).exceeded(
                    "constant_rows_max", ROWS_MAX, hint="take a larger step, or a shorter series"
                )
            values.append(Literal(value, type_))
    return constant_relation((name,), (type_,), [(value,) for value in values])


def _values(first: Number, last: Number, step: Step, *, ends: bool) -> Iterator[Number]:
    """From first on; ends: the last one too."""
    value, up = first, step(first) > first
    while (value < last if up else value > last) or (ends and value == last):
        yield value
        value = step(value)


def _numbers(
    bounds: list[Expression], written: list[exp.Expr], scope: Scope
) -> tuple[Type, list[Number | None]]:
    """The type that first, last and step have in common, and their values; None for NULL."""
    for bound, node in zip(bounds, written, strict=True):
        if not (bound.type.is_integer or bound.type.kind in (Kind.DECIMAL, Kind.NULL)):
            raise scope.place(node).refuse(
                TypeMismatch,
                f"{scope.clause} goes by whole numbers, decimals and instants, this is {bound.type}",
                hint="cast it, as in CAST(x AS DECIMAL(10, 2)), or DATE '2024-01-31'",
            )
    type_ = common([INTEGER, *(bound.type for bound in bounds)])
    assert type_ is not None
    found = [_constant(bound, type_, node, scope) for bound, node in zip(bounds, written, strict=True)]
    return type_, found if len(found) == 3 else [*found, Decimal(1) if type_.kind is Kind.DECIMAL else 1]


def _constant(bound: Expression, type_: Type, node: exp.Expr, scope: Scope) -> Number | None:
    found = constant_of(bound, type_)
    if found is None:
        raise scope.place(node).refuse(NotSupported, NO_CONSTANT, hint=COMPUTED)
    value = found.value
    assert value is None or isinstance(value, int | Decimal)
    return value


def _adding(by: Number, tree: exp.Expr, scope: Scope) -> Step:
    if by == 0:
        raise scope.place(tree).refuse(TypeMismatch, "a series needs a step other than 0", hint=_usage(tree))
    return lambda value: value + by


def _usage(tree: exp.Expr) -> str:
    return USAGE.format(name=tree.args["name"])


def _moving(tree: exp.Expr, bounds: list[Expression], interval: tuple[int, int] | None, scope: Scope) -> Step:
    """What gives the instant one step later."""
    if interval is None or not any(interval):
        message = "a series of instants needs an INTERVAL as its step"
        raise scope.place(tree).refuse(
            TypeMismatch,
            message if interval is None else f"{message}, longer than nothing",
            hint=_usage(tree),
        )
    months, ms = interval
    if (months < 0) != (ms < 0) and months and ms:
        raise scope.place(tree).refuse(NotSupported, "months and the rest go in one direction")

    def moved(value: Number) -> Number:
        if not months:
            return value + ms
        instant = _EPOCH + timedelta(milliseconds=int(value))
        place = instant.year * 12 + instant.month - 1 + months
        year, month = place // 12, place % 12 + 1
        if not 1 <= year <= 9999:
            return value + (months * 31 * DAY_MS)
        instant = instant.replace(year=year, month=month, day=min(instant.day, monthrange(year, month)[1]))
        return (instant - _EPOCH) // timedelta(milliseconds=1) + ms

    return moved


def _instant(bound: Expression, node: exp.Expr, scope: Scope) -> Number | None:
    """The milliseconds of a DATE or TIMESTAMP, None for NULL."""
    if bound.type.kind not in (Kind.DATE, Kind.TIMESTAMP, Kind.NULL):
        raise scope.place(node).refuse(
            TypeMismatch,
            f"{scope.clause} by an INTERVAL goes from instant to instant, this is {bound.type}",
            hint="write DATE '2024-01-31' or TIMESTAMP '2024-01-31 12:00:00'",
        )
    return _constant(bound, TIMESTAMP, node, scope)
