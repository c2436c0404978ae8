"""The aggregates over the rows of one group, in plain Python.

Numbers are added up exactly, as fractions, and rounded once. What a sketch would approximate is exact here;
whoever compares grants the sketch its error.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

from engine.algebra.aggregate.stage import AggregateCall
from engine.model.types import Kind, Type
from engine.reference.expressions import evaluate
from engine.reference.rows import Placed
from engine.reference.values import ERROR, Identity, Outcome, fit, identity, one_zero, order

ARRAY_MAX = 100_000


def aggregate(call: AggregateCall, rows: Sequence[Placed]) -> tuple[Outcome, int]:
    """The value of a call over the rows of a group, in their order, and how many errors it met.

    A row whose filter is an error is passed over and counted; so is one whose argument is, if the filter
    lets it pass. A total that does not fit is counted and NULL.
    """
    errors = 0
    values: list[Outcome] = []
    for row in rows:
        if call.filter is not None:
            passes = evaluate(call.filter, row.values)
            errors += passes is ERROR
            if passes is not True:
                continue
        value = evaluate(call.arguments[0], row.values) if call.arguments else True
        if value is ERROR:
            errors += 1
        else:
            values.append(value)
    if call.function != "ARRAY_AGG":
        values = [value for value in values if value is not None]
    argument_type = call.arguments[0].type if call.arguments else call.type
    if call.distinct:
        values = distinct(values)
    outcome = _FUNCTIONS[call.function](values, argument_type, call)
    return (None, errors + 1) if outcome is ERROR else (outcome, errors)


def distinct(values: Sequence[Outcome]) -> list[Outcome]:
    """Equal values once, the first of them."""
    kept: dict[Identity, Outcome] = {}
    for value in values:
        kept.setdefault(identity(value), value)
    return list(kept.values())


# --- sums and means -----------------------------------------------------------------------------------


def _sum(values: Sequence[Outcome], type_: Type, call: AggregateCall) -> Outcome:
    if not values:
        return None
    if type_.kind is Kind.DOUBLE:
        return _of_doubles(values, lambda numbers: sum(numbers, Fraction(0)))
    total = sum((_exact(value) for value in values), Fraction(0))
    return fit(int(total) if call.type.is_integer else total, call.type)


def _avg(values: Sequence[Outcome], type_: Type, call: AggregateCall) -> Outcome:
    if not values:
        return None
    return _of_doubles(values, lambda numbers: sum(numbers, Fraction(0)) / len(values))


def _variance(population: bool, root: bool) -> Callable[[Sequence[Outcome], Type, AggregateCall], Outcome]:
    def value(values: Sequence[Outcome], type_: Type, call: AggregateCall) -> Outcome:
        n = len(values)
        if n < (1 if population else 2):
            return None
        floats = [_as_float(value) for value in values]
        if not all(map(math.isfinite, floats)):
            return math.nan

        def spread(numbers: Sequence[Fraction]) -> Fraction:
            squares = sum((number * number for number in numbers), Fraction(0))
            return (squares - sum(numbers, Fraction(0)) ** 2 / n) / (n if population else n - 1)

        variance = _of_doubles(floats, spread)
        return math.sqrt(variance) if root else variance

    return value


def _of_doubles(values: Sequence[Outcome], result: Callable[[Sequence[Fraction]], Fraction]) -> float:
    """What comes of the exact values, rounded once; zero is +0.0. Values that are not finite decide alone."""
    odd = [value for value in values if isinstance(value, float) and not math.isfinite(value)]
    if odd:
        return sum(odd)
    exact = result([_exact(value) for value in values])
    try:
        return float(exact) + 0.0
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


def _exact(value: Outcome) -> Fraction:
    assert isinstance(value, int | float | Decimal)
    return Fraction(value)


def _as_float(value: Outcome) -> float:
    assert isinstance(value, int | float | Decimal)
    return float(value)


# --- the others ---------------------------------------------------------------------------------------


def _count(values: Sequence[Outcome], type_: Type, call: AggregateCall) -> Outcome:
    return len(values)


def _extreme(sign: int) -> Callable[[Sequence[Outcome], Type, AggregateCall], Outcome]:
    def value(values: Sequence[Outcome], type_: Type, call: AggregateCall) -> Outcome:
        best: Outcome = None
        for each in values:
            if best is None or order(each, type_, best, type_) == sign:
                best = each
        plain: Outcome = one_zero(best)
        return plain

    return value


def _first(values: Sequence[Outcome], type_: Type, call: AggregateCall) -> Outcome:
    return values[0] if values else None


def _last(values: Sequence[Outcome], type_: Type, call: AggregateCall) -> Outcome:
    return values[-1] if values else None


def _array(values: Sequence[Outcome], type_: Type, call: AggregateCall) -> Any:
    if not values:
        return None
    return ERROR if len(values) > ARRAY_MAX else tuple(values)


def _all(values: Sequence[Outcome], type_: Type, call: AggregateCall) -> Outcome:
    return all(values) if values else None


def _any(values: Sequence[Outcome], type_: Type, call: AggregateCall) -> Outcome:
    return any(values) if values else None


def _approx_count(values: Sequence[Outcome], type_: Type, call: AggregateCall) -> Outcome:
    return len(distinct(values))


_FUNCTIONS: dict[str, Callable[[Sequence[Outcome], Type, AggregateCall], Outcome]] = {
    "COUNT": _count,
    "SUM": _sum,
    "AVG": _avg,
    "MIN": _extreme(-1),
    "MAX": _extreme(1),
    "VAR_SAMP": _variance(population=False, root=False),
    "VAR_POP": _variance(population=True, root=False),
    "STDDEV_SAMP": _variance(population=False, root=True),
    "STDDEV_POP": _variance(population=True, root=True),
    "FIRST": _first,
    "LAST": _last,
    "ARRAY_AGG": _array,
    "BOOL_AND": _all,
    "BOOL_OR": _any,
    "APPROX_COUNT_DISTINCT": _approx_count,
}
