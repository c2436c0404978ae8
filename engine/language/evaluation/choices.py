"""CASE and the functions that choose among their arguments; what is not chosen cannot err."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from engine.language.evaluation.comparison import compare
from engine.language.evaluation.vector import Array, Vector, but_not, choose, spread
from engine.model.expressions import CompareOp
from engine.model.types import Type


def case(
    conditions: Sequence[Vector], values: Sequence[Vector], otherwise: Vector, type_: Type, n: int
) -> Vector:
    """The value of the first condition that is TRUE; an error where a condition before that is one."""
    picks = np.full(n, len(conditions), np.int32)
    open_ = np.ones(n, np.bool_)
    failed = np.zeros(n, np.bool_)
    for place, condition in enumerate(conditions):
        if condition.error is not None:
            wrong = open_ & condition.error
            failed |= wrong
            open_ &= ~wrong
        taken = open_ & condition.values
        if condition.unusable is not None:
            taken &= ~condition.unusable
        picks[taken] = place
        open_ &= ~taken
    result = choose(type_, picks, [*values, otherwise], n)
    if not failed.any():
        return result
    error = failed if result.error is None else failed | result.error
    return Vector(type_, result.values, but_not(result.null, failed), error, result.dictionary)


def coalesce(arguments: Sequence[Vector], type_: Type, n: int) -> Vector:
    """The first that is not NULL."""
    picks = np.full(n, len(arguments) - 1, np.int32)
    open_ = np.ones(n, np.bool_)
    for place, argument in enumerate(arguments):
        taken = open_ if argument.null is None else open_ & ~argument.null
        picks[taken] = place
        open_ = open_ & ~taken
    return choose(type_, picks, arguments, n)


def nullif(arguments: Sequence[Vector], type_: Type, n: int) -> Vector:
    """CASE WHEN x = y THEN NULL ELSE x END."""
    value = arguments[0]
    equal = compare("=", arguments[0], arguments[1])
    hit: Array = equal.values if equal.unusable is None else equal.values & ~equal.unusable
    null = spread(hit if value.null is None else hit | value.null, n)
    error = (
        value.error
        if equal.error is None
        else equal.error
        if value.error is None
        else equal.error | value.error
    )
    error = None if error is None else but_not(spread(error, n), null)
    return Vector(type_, spread(value.values, n), null if null.any() else None, error, value.dictionary)


def single(arguments: Sequence[Vector], type_: Type, n: int) -> Vector:
    """The value; an error where the count is above 1, whatever the value is."""
    value, count = arguments
    many: Array = count.values > 1 if count.unusable is None else (count.values > 1) & ~count.unusable
    many = spread(many, n)
    null = None if value.null is None else but_not(spread(value.null, n), many)
    wrong = [mask for mask in (value.error, count.error) if mask is not None]
    for mask in wrong:
        many = many | spread(mask, n)
    error = but_not(many, null) if many.any() else None
    return Vector(type_, spread(value.values, n), null, error, value.dictionary)


def greatest(arguments: Sequence[Vector], type_: Type, n: int) -> Vector:
    """The greatest that is not NULL; an error where any is one."""
    return _extreme(">", arguments, type_, n)


def least(arguments: Sequence[Vector], type_: Type, n: int) -> Vector:
    """The least that is not NULL; an error where any is one."""
    return _extreme("<", arguments, type_, n)


def _extreme(op: CompareOp, arguments: Sequence[Vector], type_: Type, n: int) -> Vector:
    best = choose(type_, np.zeros(1, np.int32), arguments[:1], n)
    for argument in arguments[1:]:
        better = compare(op, argument, best)
        take = (
            spread(better.values, n)
            if better.unusable is None
            else spread(better.values & ~better.unusable, n)
        )
        if best.null is not None:
            take = take | best.null
        if argument.null is not None:
            take = take & ~argument.null
        if argument.error is not None:
            take = take | argument.error
        if best.error is not None:
            take = take & ~best.error
        best = choose(type_, take.astype(np.int32), [best, argument], n)
    return best
