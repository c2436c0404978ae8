"""Users' functions in expressions: called for the rows that have values, erring for the rows for which they
raise, give what does not fit, or have no end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from engine.language.evaluation.user_calls import called
from engine.language.evaluation.vector import (
    Array,
    Vector,
    either,
    from_column,
    height,
    spread,
    strict,
    to_column,
)
from engine.model.expressions import UserFunction
from engine.model.types import Kind, Type
from engine.model.user_calls import CallOutcome


def call_user(function: UserFunction, arguments: Sequence[Vector], n: int) -> Vector:
    """The function for each row; strict. One that is not deterministic is called for each of n rows, even
    where its arguments are constants.
    """
    size = height(arguments) if function.deterministic else n
    unusable: Array | None = None
    for argument in arguments:
        unusable = either(unusable, argument.unusable)
    usable = np.arange(size) if unusable is None else np.flatnonzero(~spread(unusable, size))
    if not len(usable):
        return _placed(function.result, arguments, None, usable, size)
    columns = [to_column(argument, size)[0].take(usable) for argument in arguments]
    meter = function.meter
    began_ns = meter.now()
    outcome = called(function, columns) if function.run is None else function.run(columns)
    meter.count(outcome, meter.now() - began_ns)
    return _placed(function.result, arguments, outcome, usable, size)


def _placed(
    type_: Type, arguments: Sequence[Vector], outcome: CallOutcome | None, usable: Array, size: int
) -> Vector:
    """The results at their rows; the rest is NULL or an error as the arguments say."""
    dictionary = pa.array([""], pa.string()) if type_.kind is Kind.STRING else None
    values = np.zeros(size, type_.dtype)
    null, error = np.zeros(size, np.bool_), np.zeros(size, np.bool_)
    if outcome is not None:
        vector = from_column(outcome.results)
        if vector.dictionary is not None and len(vector.dictionary):
            dictionary = vector.dictionary
        values[usable] = vector.values
        error[usable] = outcome.failed
        if vector.null is not None:
            null[usable] = vector.null & ~outcome.failed
    given = strict(arguments, type_, values, error, dictionary)
    missing = either(given.null, null) if null.any() else given.null
    return Vector(type_, given.values, missing, given.error, given.dictionary)


def late(evaluate: Callable[[Array], Vector], decided: Vector, deciding: bool, n: int) -> Vector | None:
    """A further operand of AND or OR for the rows that are not decided yet; None where all are.

    evaluate: the operand for these rows. deciding: the value that decides. Rows that are decided stand with
    the other value, which changes nothing.
    """
    done = decided.values == deciding
    if decided.unusable is not None:
        done = done & ~decided.unusable
    rows = np.flatnonzero(~spread(done, n))
    if not len(rows):
        return None
    found = evaluate(rows)
    values = np.full(n, not deciding)
    values[rows] = found.values
    masks: list[Array | None] = []
    for mask in (found.null, found.error):
        whole = None
        if mask is not None:
            whole = np.zeros(n, np.bool_)
            whole[rows] = mask
        masks.append(whole)
    return Vector(found.type, values, masks[0], masks[1])
