"""Predicates on one attribute as regions of its domain.

Every predicate made of comparisons of one column with constants, IN, IS NULL and any AND, OR, NOT of these is
TRUE on a union of intervals of the column's domain, FALSE on another, and NULL on the rest; it is never an
error. Domains are discrete: each value has a successor (the next integer, the next double, the string with a
zero character appended), so all intervals are half-open ``[start, stop)`` and need starts alone (CACQ's
grouped filters keep <, <=, >, >= and = in separate structures; one sorted array serves them all here).

Domain keys: BOOLEAN 0 and 1, integers as they are, DECIMAL unscaled, DATE days, TIMESTAMP ms, DOUBLE the
float (NaN above infinity), STRING the string.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from heapq import merge
from typing import Any

from engine.model import expressions as ex
from engine.model.source import DAY_MS
from engine.model.types import Kind, Type

Key = Any
"""A domain key: int, float or str, one kind within an attribute."""

INTERVALS_MAX = 4_096
"""A region with more intervals than this stays a residual predicate."""


class _Above:
    """The bound above every key."""

    def __repr__(self) -> str:
        return "ABOVE"


class _Below:
    """The bound below every key."""

    def __repr__(self) -> str:
        return "BELOW"


ABOVE = _Above()
BELOW = _Below()

WHOLE = frozenset({Kind.INTEGER, Kind.BIGINT, Kind.DATE, Kind.TIMESTAMP})
"""Kinds whose values are integers: those of one kind compare as these do."""

Interval = tuple[Key, Key]
"""``[start, stop)``; start may be BELOW, stop may be ABOVE."""


def _less(a: Key, b: Key) -> bool:
    """a < b over keys and the two bounds; NaN above every float."""
    if a is ABOVE or b is BELOW:
        return False
    if a is BELOW or b is ABOVE:
        return a is not b
    if isinstance(a, float):
        if math.isnan(a):
            return False
        if math.isnan(b):
            return True
    return bool(a < b)


@dataclass(frozen=True, slots=True)
class Region:
    """Disjoint intervals, ascending, none empty, none touching; ``null``: whether NULL belongs to it."""

    intervals: tuple[Interval, ...]
    null: bool = False

    def _check(self) -> None:
        previous: Key = None
        for start, stop in self.intervals:
            assert _less(start, stop)
            assert previous is None or _less(previous, start)
            previous = stop


EMPTY = Region(())
EVERY_VALUE = Region(((BELOW, ABOVE),))
NULL_ALONE = Region((), null=True)


def unite(a: Region, b: Region) -> Region:
    """The union. O(intervals)."""
    return Region(_joined(merge(a.intervals, b.intervals, key=_by_start)), a.null or b.null)


def _joined(ascending: Iterable[Interval]) -> tuple[Interval, ...]:
    """Intervals ascending by start, those that overlap or touch made one."""
    joined: list[Interval] = []
    for start, stop in ascending:
        if joined and not _less(joined[-1][1], start):
            if _less(joined[-1][1], stop):
                joined[-1] = (joined[-1][0], stop)
        else:
            joined.append((start, stop))
    return tuple(joined)


def intersect(a: Region, b: Region) -> Region:
    """The intersection. O(intervals)."""
    common: list[Interval] = []
    i = j = 0
    while i < len(a.intervals) and j < len(b.intervals):
        (a0, a1), (b0, b1) = a.intervals[i], b.intervals[j]
        start = b0 if _less(a0, b0) else a0
        stop = a1 if _less(a1, b1) else b1
        if _less(start, stop):
            common.append((start, stop))
        if _less(a1, b1):
            i += 1
        else:
            j += 1
    return Region(tuple(common), a.null and b.null)


def complement(a: Region) -> Region:
    """All values that are not in the region; NULL is in neither."""
    gaps: list[Interval] = []
    start: Key = BELOW
    for first, stop in a.intervals:
        if _less(start, first):
            gaps.append((start, first))
        start = stop
    if start is not ABOVE:
        gaps.append((start, ABOVE))
    return Region(tuple(gaps))


@dataclass(frozen=True, slots=True)
class Truth:
    """Where a predicate on one column is TRUE and where FALSE; elsewhere it is NULL."""

    true: Region
    false: Region


ALWAYS = Truth(Region(((BELOW, ABOVE),), null=True), EMPTY)
NEVER = Truth(EMPTY, Region(((BELOW, ABOVE),), null=True))
UNKNOWN = Truth(EMPTY, EMPTY)


def truth_of(predicate: ex.Expression) -> tuple[ex.Column, Truth] | None:
    """The one column a predicate speaks of and where it is TRUE and FALSE; None if it is of another form."""
    columns: set[ex.Column] = set()
    truth = _truth(predicate, columns)
    if truth is None or len(columns) != 1:
        return None
    if len(truth.true.intervals) > INTERVALS_MAX or len(truth.false.intervals) > INTERVALS_MAX:
        return None
    return next(iter(columns)), truth


def _truth(e: ex.Expression, columns: set[ex.Column]) -> Truth | None:
    match e:
        case ex.Literal(value=True):
            return ALWAYS
        case ex.Literal(value=False):
            return NEVER
        case ex.Literal(value=None):
            return UNKNOWN
        case ex.Column() if e.type.kind is Kind.BOOLEAN:
            return _comparison(e, "=", ex.Literal(True, e.type), columns)
        case ex.Not(operand):
            inner = _truth(operand, columns)
            return None if inner is None else Truth(inner.false, inner.true)
        case ex.And(operands):
            return _combine(operands, columns, conjunction=True)
        case ex.Or(operands):
            return _combine(operands, columns, conjunction=False)
        case ex.IsNull(ex.Column() as column):
            if not _same_column(column, columns):
                return None
            return Truth(NULL_ALONE, EVERY_VALUE)
        case ex.In(ex.Column() as column, choices):
            return _membership(column, choices, columns)
        case ex.Compare(op, ex.Column() as column, ex.Literal() as literal):
            return _comparison(column, op, literal, columns)
        case ex.Compare(op, ex.Literal() as literal, ex.Column() as column):
            return _comparison(column, ex.TURNED[op], literal, columns)
        case ex.Like(ex.Column() as column, pattern, escape, False):
            return _prefix(column, pattern, escape, columns)
        case _:
            return None


def _same_column(column: ex.Column, columns: set[ex.Column]) -> bool:
    columns.add(column)
    return len(columns) == 1


def _combine(
    operands: tuple[ex.Expression, ...], columns: set[ex.Column], *, conjunction: bool
) -> Truth | None:
    truths: list[Truth] = []
    for operand in operands:
        truth = _truth(operand, columns)
        if truth is None:
            return None
        truths.append(truth)
    both = _both_true if conjunction else _either_true
    while len(truths) > 1:  # in pairs: each interval is looked at log(operands) times
        paired = [both(one, other) for one, other in zip(truths[::2], truths[1::2], strict=False)]
        truths = paired + truths[len(paired) * 2 :]
    return truths[0]


def _both_true(one: Truth, other: Truth) -> Truth:
    return Truth(intersect(one.true, other.true), unite(one.false, other.false))


def _either_true(one: Truth, other: Truth) -> Truth:
    return Truth(unite(one.true, other.true), intersect(one.false, other.false))


def _membership(column: ex.Column, choices: tuple[ex.Literal, ...], columns: set[ex.Column]) -> Truth | None:
    if not _same_column(column, columns):
        return None
    points: list[Interval] = []
    with_null = False
    for choice in choices:
        if choice.value is None:
            with_null = True
            continue
        bounds = _bounds(column.type, choice)
        if bounds is None:
            return None
        if _less(*bounds):
            points.append(bounds)
    true = Region(_joined(sorted(points, key=_by_start)))
    return Truth(true, EMPTY if with_null else complement(true))


@dataclass(frozen=True, slots=True)
class _Ordered:
    """A key that sorts by :func:`_less`."""

    key: Key

    def __lt__(self, other: _Ordered) -> bool:
        return _less(self.key, other.key)


def _by_start(interval: Interval) -> _Ordered:
    return _Ordered(interval[0])


def _comparison(
    column: ex.Column, op: ex.CompareOp, literal: ex.Literal, columns: set[ex.Column]
) -> Truth | None:
    if not _same_column(column, columns):
        return None
    if literal.value is None:
        return UNKNOWN
    true = where(column, op, literal)
    return None if true is None else Truth(true, complement(true))


def simple_region(predicate: ex.Expression) -> tuple[int, Region] | None:
    """The place of the column and where ``column op constant`` is TRUE; None if it is of another form.

    The same as :func:`truth_of` without what it works out besides, since most conjuncts are of this form.
    """
    if not isinstance(predicate, ex.Compare):
        return None
    column, literal = predicate.left, predicate.right
    if not isinstance(column, ex.Column) or not isinstance(literal, ex.Literal) or literal.value is None:
        return None
    region = where(column, predicate.op, literal)
    return None if region is None else (column.index, region)


def where(column: ex.Column, op: ex.CompareOp, literal: ex.Literal) -> Region | None:
    """Where ``column op literal`` is TRUE, of a literal that is not NULL; None where it is no region."""
    bounds = _bounds(column.type, literal)
    if bounds is None:
        return None
    at_or_above, above = bounds
    match op:
        case "=":
            return _interval(at_or_above, above)
        case "<>":
            return complement(_interval(at_or_above, above))
        case "<":
            return _interval(BELOW, at_or_above)
        case "<=":
            return _interval(BELOW, above)
        case ">":
            return _interval(above, ABOVE)
        case ">=":
            return _interval(at_or_above, ABOVE)


def _interval(start: Key, stop: Key) -> Region:
    return Region(((start, stop),)) if _less(start, stop) else EMPTY


def _prefix(column: ex.Column, pattern: str, escape: str | None, columns: set[ex.Column]) -> Truth | None:
    """LIKE with no wildcard but a last ``%``: an interval of strings."""
    if column.type.kind is not Kind.STRING or (escape is not None and escape in pattern):
        return None
    prefix = pattern.removesuffix("%")
    if "%" in prefix or "_" in prefix or not _same_column(column, columns):
        return None
    if not pattern.endswith("%"):
        true = _interval(prefix, prefix + "\0")
    elif not prefix:
        true = EVERY_VALUE
    else:
        true = Region(((prefix, _after_prefix(prefix)),))
    return Truth(true, complement(true))


def _after_prefix(prefix: str) -> Key:
    """The least string above every string that begins with the prefix."""
    while prefix:
        last = ord(prefix[-1]) + 1
        if last <= 0x10FFFF:
            return prefix[:-1] + chr(last)
        prefix = prefix[:-1]
    return ABOVE


def _bounds(type_: Type, literal: ex.Literal) -> tuple[Key, Key] | None:
    """The first key >= the constant and the first key > it; ABOVE where there is none.

    None: the two cannot be compared key by key exactly.
    """
    value, kind = literal.value, literal.type.kind
    if type(value) is int and type_.kind is kind and kind in WHOLE and abs(value) < 2**63 - 1:
        return value, value + 1
    match type_.kind:
        case Kind.STRING if isinstance(value, str):
            return value, value + "\0"
        case Kind.BOOLEAN if isinstance(value, bool):
            return int(value), int(value) + 1
        case Kind.DOUBLE if isinstance(value, (int, float, Decimal)) and literal.type.is_numeric:
            return _double_bounds(float(value))
        case Kind.INTEGER | Kind.BIGINT if literal.type.is_numeric:
            return _whole_bounds(value, 1)
        case Kind.DECIMAL if literal.type.is_numeric and kind is not Kind.DOUBLE:
            return _whole_bounds(value, 10**type_.scale)
        case Kind.DATE if isinstance(value, int):
            return _whole_bounds(Fraction(value, DAY_MS) if kind is Kind.TIMESTAMP else value, 1)
        case Kind.TIMESTAMP if isinstance(value, int):
            return _whole_bounds(value * DAY_MS if kind is Kind.DATE else value, 1)
        case _:
            return None


def _whole_bounds(value: Any, scale: int) -> tuple[Key, Key] | None:
    """Bounds among integers k that stand for k / scale."""
    if isinstance(value, float):
        if math.isnan(value):
            return ABOVE, ABOVE
        if math.isinf(value):
            return (ABOVE, ABOVE) if value > 0 else (BELOW, BELOW)
        if abs(value) >= 2**53:  # the comparison is made in doubles, which skip integers there
            return None
    exact = Fraction(value) * scale
    return _within_64_bits(math.ceil(exact)), _within_64_bits(math.floor(exact) + 1)


def _within_64_bits(key: int) -> Key:
    if key > 2**63 - 1:
        return ABOVE
    return BELOW if key <= -(2**63) else key


def _double_bounds(value: float) -> tuple[Key, Key]:
    if math.isnan(value):
        return math.nan, ABOVE
    value += 0.0  # -0.0 and 0.0 are one value
    return value, (math.nan if value == math.inf else math.nextafter(value, math.inf))
