"""The aggregates over the rows of one group, in plain Python.

Numbers are added up exactly, as fractions, and rounded once. What a sketch would approximate is exact here;
whoever compares grants the sketch its error.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

from engine.algebra.aggregate.stage import AggregateCall
from engine.algebra.sort.stage import SortKey
from engine.model.expressions import Expression, Literal
from engine.model.types import Kind, Type
from engine.reference import nested
from engine.reference.expressions import evaluate
from engine.reference.rows import Placed
from engine.reference.values import ERROR, Identity, Outcome, fit, identity, one_zero, order

ARRAY_MAX = 100_000
STRING_BYTES_MAX = 1 << 20
_Row = tuple[list[Outcome], tuple[Outcome, ...]]
"""The keys of the order, and the arguments."""


def aggregate(call: AggregateCall, rows: Sequence[Placed]) -> tuple[Outcome, int]:
    """The value of a call over the rows of a group, in their order, and how many errors it met.

    A row whose filter is an error is passed over and counted; so is one whose argument is, if the filter
    lets it pass. A total that does not fit is counted and NULL.
    """
    errors = 0
    of_rows = taken_of_rows(call)
    taken: list[_Row] = []
    for row in rows:
        if call.filter is not None:
            passes = evaluate(call.filter, row.values)
            errors += passes is ERROR
            if passes is not True:
                continue
        value = tuple(evaluate(one, row.values) for one in of_rows) if of_rows else (True,)
        key = [evaluate(one.expression, row.values) for one in call.order]
        if ERROR in value or ERROR in key:
            errors += 1
        elif call.function == "ARRAY_AGG" or None not in value:
            taken.append((key, value))
    for place, by in reversed(list(enumerate(call.order))):
        taken = in_order(taken, by, place)
    values = [value for _, value in taken]
    if call.distinct:
        values = distinct(values)
    argument_type = of_rows[0].type if of_rows else call.type
    if len(of_rows) < 2:
        outcome = _FUNCTIONS[call.function]([one for (one,) in values], argument_type, call)
    else:
        outcome = _OF_SEVERAL[call.function](values, of_rows[1].type, call)
    return (None, errors + 1) if outcome is ERROR else (outcome, errors)


def taken_of_rows(call: AggregateCall) -> tuple[Expression, ...]:
    """The arguments that are taken from each row; constants follow them."""
    return call.arguments[: _OF_ROWS.get(call.function, 1)]


def distinct(values: Sequence[tuple[Outcome, ...]]) -> list[tuple[Outcome, ...]]:
    """Equal values once, the first of them."""
    kept: dict[tuple[Identity, ...], tuple[Outcome, ...]] = {}
    for value in values:
        kept.setdefault(tuple(map(identity, value)), value)
    return list(kept.values())


def in_order(rows: Sequence[_Row], by: SortKey, place: int) -> list[_Row]:
    """By the key at this place. Stable: rows with equal ones stay as they are."""
    type_ = by.expression.type

    def before(a: _Row, b: _Row) -> int:
        left, right = a[0][place], b[0][place]
        if left is None or right is None:
            sign = (left is None) - (right is None)
            return -sign if by.nulls_first else sign
        return -order(left, type_, right, type_) if by.descending else order(left, type_, right, type_)

    return sorted(rows, key=functools.cmp_to_key(before))


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
    return ERROR if len(values) > ARRAY_MAX else nested.written([nested.inside(one, type_) for one in values])


def _all(values: Sequence[Outcome], type_: Type, call: AggregateCall) -> Outcome:
    return all(values) if values else None


def _any(values: Sequence[Outcome], type_: Type, call: AggregateCall) -> Outcome:
    return any(values) if values else None


def _approx_count(values: Sequence[Outcome], type_: Type, call: AggregateCall) -> Outcome:
    return len(distinct([(value,) for value in values]))


def _ascending(values: Sequence[Outcome], type_: Type) -> list[Outcome]:
    def compared(a: Outcome, b: Outcome) -> int:
        return order(a, type_, b, type_)

    return sorted(values, key=functools.cmp_to_key(compared))


def _literal(call: AggregateCall, place: int) -> Any:
    argument = call.arguments[place]
    assert isinstance(argument, Literal)
    return argument.value


def _continuous(values: Sequence[Outcome], type_: Type, call: AggregateCall) -> Outcome:
    if not values:
        return None
    share = Fraction(_literal(call, 1)) if len(call.arguments) > 1 else Fraction(1, 2)
    if len(call.arguments) > 2:
        share = 1 - share
    ordered = [_as_float(value) for value in _ascending(values, type_)]
    place = (len(ordered) - 1) * share
    below, part = math.floor(place), float(place - math.floor(place))
    if part == 0:
        return ordered[below] + 0.0
    return ordered[below] * (1.0 - part) + ordered[below + 1] * part + 0.0


def _discrete(values: Sequence[Outcome], type_: Type, call: AggregateCall) -> Outcome:
    share = Fraction(_literal(call, 1))
    ordered = _ascending(values, type_)
    if len(call.arguments) > 2:
        ordered.reverse()
    for place, value in enumerate(ordered, 1):
        if Fraction(place, len(ordered)) >= share:
            plain: Outcome = one_zero(value)
            return plain
    return None


def _mode(values: Sequence[Outcome], type_: Type, call: AggregateCall) -> Outcome:
    best, most = None, 0
    for value in _ascending(values, type_):
        times = sum(order(value, type_, other, type_) == 0 for other in values)
        if times > most:
            best, most = value, times
    plain: Outcome = one_zero(best)
    return plain


def _joined(values: Sequence[Outcome], type_: Type, call: AggregateCall) -> Outcome:
    separator = _literal(call, 1) if len(call.arguments) > 1 else ","
    joined = separator.join(map(str, values))
    if not values:
        return None
    return ERROR if len(joined.encode()) > STRING_BYTES_MAX else joined


def _bits(operator: Callable[[Any, Any], Any]) -> Callable[[Sequence[Outcome], Type, AggregateCall], Outcome]:
    return lambda values, type_, call: functools.reduce(operator, values) if values else None


# --- of several arguments -----------------------------------------------------------------------------


def _at_extreme(sign: int) -> Callable[[Sequence[tuple[Outcome, ...]], Type, AggregateCall], Outcome]:
    def value(values: Sequence[tuple[Outcome, ...]], type_: Type, call: AggregateCall) -> Outcome:
        best: tuple[Outcome, ...] | None = None
        for each in values:
            if best is None or order(each[1], type_, best[1], type_) == sign:
                best = each
        return best[0] if best is not None else None

    return value


def _pairs(values: Sequence[tuple[Outcome, ...]], type_: Type, call: AggregateCall) -> Outcome:
    """By the definitions, over exact fractions, but for the roundings that two passes make on the way."""
    ys, xs = ([_as_float(pair[at]) for pair in values] for at in (0, 1))
    n = len(values)
    if call.function == "REGR_COUNT":
        return n
    if not n:
        return None
    y, x = _rounded(ys) / n, _rounded(xs) / n
    if call.function in ("REGR_AVGX", "REGR_AVGY"):
        return x if call.function == "REGR_AVGX" else y
    beside = [(b - y, a - x) for b, a in zip(ys, xs, strict=True)]
    if not all(map(math.isfinite, (*ys, *xs))):
        yy = xx = yx = math.nan
    else:
        yy, xx, yx = (_rounded([p[i] * p[j] for p in beside]) for i, j in ((0, 0), (1, 1), (0, 1)))
    slope = None if xx == 0 else yx / xx
    correlation = None
    if xx != 0 and yy != 0:
        ratio = yx / (math.sqrt(xx) * math.sqrt(yy))
        correlation = ratio if math.isnan(ratio) else max(-1.0, min(1.0, ratio))
    match call.function:
        case "COVAR_POP":
            return yx / n
        case "COVAR_SAMP":
            return yx / (n - 1) if n > 1 else None
        case "CORR":
            return correlation
        case "REGR_SXX" | "REGR_SYY" | "REGR_SXY":
            return {"REGR_SXX": xx, "REGR_SYY": yy, "REGR_SXY": yx}[call.function]
        case "REGR_SLOPE":
            return slope
        case "REGR_INTERCEPT":
            return None if slope is None else y - slope * x
    if xx == 0:
        return None
    return 1.0 if yy == 0 else None if correlation is None else correlation**2


def _rounded(values: Sequence[float]) -> float:
    return _of_doubles(values, lambda numbers: sum(numbers, Fraction(0)))


_OF_SEVERAL: dict[str, Callable[[Sequence[tuple[Outcome, ...]], Type, AggregateCall], Outcome]] = {
    "COUNT": lambda values, type_, call: len(values),
    "ARG_MIN": _at_extreme(-1),
    "ARG_MAX": _at_extreme(1),
    **dict.fromkeys(
        (
            *("COVAR_POP", "COVAR_SAMP", "CORR", "REGR_COUNT", "REGR_AVGX", "REGR_AVGY", "REGR_SXX"),
            *("REGR_SYY", "REGR_SXY", "REGR_SLOPE", "REGR_INTERCEPT", "REGR_R2"),
        ),
        _pairs,
    ),
}
_OF_ROWS = dict.fromkeys(_OF_SEVERAL, 2) | {"COUNT": 64}


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
    "MEDIAN": _continuous,
    "PERCENTILE_CONT": _continuous,
    "PERCENTILE_DISC": _discrete,
    "MODE": _mode,
    "STRING_AGG": _joined,
    "BIT_AND": _bits(operator.and_),
    "BIT_OR": _bits(operator.or_),
    "BIT_XOR": _bits(operator.xor),
}
