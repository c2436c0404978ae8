"""What a predicate says of the summarised attribute, and what else it asks.

    WHERE item IN (3, 5) AND price > 10        values 3 and 5, and another condition besides
    WHERE item BETWEEN 100 AND 900             a range

A condition narrows the cells that a query has to look at: a cell none of whose values may satisfy the
predicate holds nothing for it. It never rules out a row that the predicate accepts.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from engine.domains.regions import ABOVE, BELOW, WHOLE, Key, Region, unite
from engine.model.batch import Column
from engine.model.expressions import Expression
from engine.model.types import Kind, Type
from engine.stems.factors import Factors, factors

POINTS_MAX = 64
"""Ranges of no more whole values than this are taken as the values in them."""

ANYTHING = Region(((BELOW, ABOVE),), null=True)


@dataclass(frozen=True, slots=True)
class AttributeCondition:
    """Where the attribute of a row may lie that a predicate accepts."""

    # A superset of the values of accepted rows.
    region: Region
    # The values of the region, NaN apart, where it is made of single values; None: it has ranges.
    points: tuple[Key, ...] | None
    # Whether rows may be accepted whose attribute is NULL or NaN.
    unvalued: bool
    # Whether the predicate asks for something besides, so that not all rows in the region are accepted.
    narrower: bool


def condition_on(taken: Factors | None, column: int, type_: Type) -> AttributeCondition:
    """What a predicate says of the column at a place. taken: the predicate taken apart; None: every row.
    O(intervals log).
    """
    if taken is None:
        return AttributeCondition(ANYTHING, None, unvalued=True, narrower=False)
    region = Region(())
    for term in taken.terms:
        region = unite(region, term.get(column, ANYTHING))
    narrower = bool(taken.residuals) or any(place != column for term in taken.terms for place in term)
    # Whether a NaN is in the region: it is above all other doubles.
    with_nan = type_.kind is Kind.DOUBLE and bool(region.intervals) and region.intervals[-1][1] is ABOVE
    return AttributeCondition(region, _points(region, type_), region.null or with_nan, narrower)


def taken_apart(predicate: Expression | None) -> Factors | None:
    """The predicate as terms and residuals; None for one that accepts every row."""
    return None if predicate is None else factors(predicate)


def _points(region: Region, type_: Type) -> tuple[Key, ...] | None:
    points: list[Key] = []
    for start, stop in region.intervals:
        if isinstance(start, float) and math.isnan(start):
            continue
        if start is BELOW or stop is ABOVE:
            return None
        if _is_point(start, stop, type_):
            points.append(start)
        elif type_.kind in _WHOLE and stop - start <= POINTS_MAX:
            points.extend(range(start, stop))
        else:
            return None
    if type_.kind in _WHOLE:
        above = 1 << (8 * np.dtype(type_.dtype).itemsize - 1)
        points = [point for point in points if -above <= point < above]
    return tuple(points)


_WHOLE = WHOLE | {Kind.BOOLEAN, Kind.DECIMAL}


def _is_point(start: Key, stop: Key, type_: Type) -> bool:
    if type_.kind is Kind.STRING:
        return bool(stop == start + "\0")
    if type_.kind is Kind.DOUBLE:
        return bool(stop == math.nextafter(start, math.inf)) or (start == math.inf and math.isnan(stop))
    return bool(stop == start + 1)


def column_of(points: Sequence[Key], type_: Type) -> Column:
    """Domain keys of a type as a column of values, in that order."""
    if type_.kind is Kind.STRING:
        distinct = list(dict.fromkeys(points))
        code = {point: place for place, point in enumerate(distinct)}
        codes = np.array([code[point] for point in points], np.int32)
        return Column(type_, codes, None, pa.array(distinct, pa.string()))
    return Column(type_, np.array(points, type_.dtype))


def ends_of(region: Region, type_: Type) -> Iterator[tuple[Key | None, Key | None]]:
    """The least and the greatest value that each interval of a region may hold, NaN apart; None: no bound."""
    above = None
    if type_.kind in _WHOLE:
        above = 1 << (8 * np.dtype(type_.dtype).itemsize - 1)
    for start, stop in region.intervals:
        if isinstance(start, float) and math.isnan(start):
            continue
        low = None if start is BELOW or (above is not None and start < -above) else start
        high = None if stop is ABOVE or (isinstance(stop, float) and math.isnan(stop)) else stop
        if above is not None and (
            (low is not None and low >= above) or (high is not None and high <= -above)
        ):
            continue
        yield low, None if above is not None and high is not None and high >= above else high
