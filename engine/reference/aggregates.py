"""The aggregates over the rows of one group, in plain Python.

Whole numbers and decimals are added up exactly, as fractions, and rounded once. Doubles are combined in a
tree that depends on the rows' ordinals alone (:func:`fold`), so that every way to the same rows gives the
same bits; rows that no stream has numbered count from 0 among those that the call is over. What a sketch
would approximate is exact here; whoever compares grants the sketch its error.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from itertools import groupby
from typing import Any, TypeVar

from engine.language.query import AggregateCall
from engine.model.types import Kind, Type
from engine.reference.expressions import evaluate
from engine.reference.rows import Placed
from engine.reference.values import ERROR, Identity, Outcome, fit, identity, order

BLOCK_ROWS = 4_096
CHILDREN = 64
ARRAY_MAX = 100_000

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Item:
    """An argument's value, neither an error nor passed over by the filter, and its row's ordinal."""

    ordinal: int
    value: Outcome


def aggregate(call: AggregateCall, rows: Sequence[Placed]) -> tuple[Outcome, int]:
    """The value of a call over the rows of a group, in their order, and how many errors it met.

    A row whose filter is an error is passed over and counted; so is one whose argument is, if the filter
    lets it pass. A total that does not fit is counted and NULL.
    """
    errors = 0
    items: list[Item] = []
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
            items.append(Item(-1 if row.ordinal is None else row.ordinal, value))
    if call.function != "ARRAY_AGG":
        items = [item for item in items if item.value is not None]
    argument_type = call.arguments[0].type if call.arguments else call.type
    if call.distinct:
        items = distinct(items)
    if rows and rows[0].ordinal is None:
        items = [Item(place, item.value) for place, item in enumerate(items)]
    outcome = _FUNCTIONS[call.function](items, argument_type, call)
    return (None, errors + 1) if outcome is ERROR else (outcome, errors)


def distinct(items: Sequence[Item]) -> list[Item]:
    """Equal values once, the first of them."""
    kept: dict[Identity, Item] = {}
    for item in items:
        kept.setdefault(identity(item.value), item)
    return list(kept.values())


# --- the tree -----------------------------------------------------------------------------------------


def fold(
    items: Sequence[Item], one: Callable[[Any], T], add: Callable[[T, Any], T], merge: Callable[[T, T], T]
) -> T:
    """Combine values in the one order that their ordinals give.

    Ordinals in aligned blocks of 4,096 are added one by one, in order; then the results of 64 aligned
    neighbours are merged one by one, in order, and so on to the root. Who is absent takes no part.
    """
    nodes: list[tuple[int, T]] = []
    in_order = sorted(items, key=lambda item: item.ordinal)
    for block, members in groupby(in_order, key=lambda item: item.ordinal // BLOCK_ROWS):
        first, *rest = members
        result = one(first.value)
        for item in rest:
            result = add(result, item.value)
        nodes.append((block, result))
    while len(nodes) > 1:
        above: list[tuple[int, T]] = []
        for parent, children in groupby(nodes, key=lambda node: node[0] // CHILDREN):
            (_, result), *others = children
            for _, other in others:
                result = merge(result, other)
            above.append((parent, result))
        nodes = above
    return nodes[0][1]


def _plus(a: float, b: float) -> float:
    return a + b


# --- sums and means -----------------------------------------------------------------------------------


def _total(items: Sequence[Item], type_: Type) -> Any:
    """As a float for DOUBLE, else exact."""
    if type_.kind is Kind.DOUBLE:
        return fold(items, float, _plus, _plus)
    return sum((_exact(item.value) for item in items), Fraction(0))


def _exact(value: Outcome) -> Fraction:
    assert isinstance(value, int | Decimal)
    return Fraction(value)


def _sum(items: Sequence[Item], type_: Type, call: AggregateCall) -> Outcome:
    if not items:
        return None
    total = _total(items, type_)
    return fit(int(total) if call.type.is_integer else total, call.type)


def _avg(items: Sequence[Item], type_: Type, call: AggregateCall) -> Outcome:
    return float(_total(items, type_) / len(items)) if items else None


@dataclass(frozen=True, slots=True)
class Spread:
    """How many values, their mean, and the sum of the squares of their distances from it."""

    count: int
    mean: float
    squares: float


def _first_spread(value: float) -> Spread:
    return Spread(1, value, 0.0)


def _add_value(spread: Spread, value: float) -> Spread:
    """Welford's update."""
    count = spread.count + 1
    before = value - spread.mean
    mean = spread.mean + before / count
    return Spread(count, mean, spread.squares + before * (value - mean))


def _merge_spreads(one: Spread, other: Spread) -> Spread:
    """The pairwise update of Chan, Golub and LeVeque."""
    count = one.count + other.count
    apart = other.mean - one.mean
    mean = one.mean + apart * other.count / count
    squares = one.squares + other.squares + apart * apart * one.count * other.count / count
    return Spread(count, mean, squares)


def _variance(population: bool, root: bool) -> Callable[[Sequence[Item], Type, AggregateCall], Outcome]:
    def value(items: Sequence[Item], type_: Type, call: AggregateCall) -> Outcome:
        if len(items) < (1 if population else 2):
            return None
        floats = [Item(item.ordinal, _as_float(item.value)) for item in items]
        spread = fold(floats, _first_spread, _add_value, _merge_spreads)
        variance = spread.squares / (spread.count if population else spread.count - 1)
        return math.sqrt(variance) if root else variance

    return value


def _as_float(value: Outcome) -> float:
    assert isinstance(value, int | float | Decimal)
    return float(value)


# --- the others ---------------------------------------------------------------------------------------


def _count(items: Sequence[Item], type_: Type, call: AggregateCall) -> Outcome:
    return len(items)


def _extreme(sign: int) -> Callable[[Sequence[Item], Type, AggregateCall], Outcome]:
    def value(items: Sequence[Item], type_: Type, call: AggregateCall) -> Outcome:
        best: Outcome = None
        for item in items:
            if best is None or order(item.value, type_, best, type_) == sign:
                best = item.value
        return best

    return value


def _first(items: Sequence[Item], type_: Type, call: AggregateCall) -> Outcome:
    return items[0].value if items else None


def _last(items: Sequence[Item], type_: Type, call: AggregateCall) -> Outcome:
    return items[-1].value if items else None


def _array(items: Sequence[Item], type_: Type, call: AggregateCall) -> Any:
    if not items:
        return None
    return ERROR if len(items) > ARRAY_MAX else tuple(item.value for item in items)


def _all(items: Sequence[Item], type_: Type, call: AggregateCall) -> Outcome:
    return all(item.value for item in items) if items else None


def _any(items: Sequence[Item], type_: Type, call: AggregateCall) -> Outcome:
    return any(item.value for item in items) if items else None


def _approx_count(items: Sequence[Item], type_: Type, call: AggregateCall) -> Outcome:
    return len(distinct(items))


_FUNCTIONS: dict[str, Callable[[Sequence[Item], Type, AggregateCall], Outcome]] = {
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
