"""Functions that users wrote: called for the rows that have values, erring for the rows for which they raise.

A vectorised call that raises, or whose result is no column of the declared type and length, is repeated with
halves of its rows down to single ones, so that only the rows that err are errors: at most twice as many calls
as rows, few where few err.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any

import numpy as np
import pyarrow as pa

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
from engine.model.batch import Column, concatenate_columns
from engine.model.expressions import UserFunction
from engine.model.interruption import may_go_on
from engine.model.types import Kind, Type

STRING_BYTES_MAX = 1 << 20
CALLED_ROWS = 256
"""A function of single values is called for so many rows in one piece."""


def call_user(function: UserFunction, arguments: Sequence[Vector], n: int) -> Vector:
    """The function for each row; strict. One that is not deterministic is called for each of n rows, even
    where its arguments are constants.
    """
    size = height(arguments) if function.deterministic else n
    unusable: Array | None = None
    for argument in arguments:
        unusable = either(unusable, argument.unusable)
    usable = np.arange(size) if unusable is None else np.flatnonzero(~spread(unusable, size))
    columns = [to_column(argument, size)[0].take(usable) for argument in arguments]
    values = [_numpy(column) if function.vectorised else column.to_arrow().to_pylist() for column in columns]
    failed = np.zeros(len(usable), np.bool_)
    results: list[Column] = []
    at_once = len(usable) if function.vectorised else CALLED_ROWS
    for start in range(0, len(usable), max(1, at_once)):
        may_go_on()
        _run(function, values, start, min(start + at_once, len(usable)), results, failed)
    return _placed(function.result, arguments, results, usable, failed, size)


def is_calling(frame: FrameType | None) -> bool:
    """Whether a thread is in a user's function, by the frame that it runs: what is raised there is of that
    call alone. O(depth).
    """
    inner: FrameType | None = None
    while frame is not None and frame.f_globals is not globals():
        inner, frame = frame, frame.f_back
    if frame is None or inner is None or frame.f_code.co_name not in (_run.__name__, "<listcomp>"):
        return False
    return not str(inner.f_globals.get("__name__", "")).startswith("engine.")


def _numpy(column: Column) -> Array:
    kind = column.type.kind
    if kind is Kind.TIMESTAMP:
        return column.values.astype("datetime64[ms]")
    if kind is Kind.DATE:
        return column.values.astype("datetime64[D]")
    if kind in (Kind.STRING, Kind.DECIMAL):
        return np.array(column.to_arrow().to_pylist(), object)
    return column.values.copy()  # whatever it does to its arguments


def _run(
    function: UserFunction, values: Sequence[Any], start: int, stop: int, results: list[Column], failed: Array
) -> None:
    """Append columns of the rows start to stop; rows that err are noted, and stand as anything."""
    rows = [part[start:stop] for part in values]
    try:
        if function.vectorised:
            found = function.call(*rows)
            if len(found) != stop - start:
                raise ValueError("a vectorised function gives as many values as it takes")
        else:
            found = [function.call(*row) for row in zip(*rows, strict=True)]
        results.append(_column(found, function.result))
    except BaseException:  # noqa: BLE001  whatever a user's code raises; sys.exit(), KeyboardInterrupt, panics too
        if stop - start == 1:
            failed[start] = True
            results.append(_column([None], function.result))
            return
        middle = (start + stop) // 2
        _run(function, values, start, middle, results, failed)
        _run(function, values, middle, stop, results, failed)


def _column(found: Any, type_: Type) -> Column:
    """Raises ArrowException, ValueError, TypeError for what does not fit."""
    if isinstance(found, pa.ChunkedArray):
        found = found.combine_chunks()
    if isinstance(found, np.ndarray) and found.dtype.kind == "M":
        found = found.astype("datetime64[ms]")
    array = found if isinstance(found, pa.Array) else pa.array(found, from_pandas=False)
    if array.type != type_.arrow:
        array = _cast(array, type_)
    if type_.kind is Kind.STRING and any(
        value is not None and len(value.encode()) > STRING_BYTES_MAX for value in array.to_pylist()
    ):
        raise ValueError("a string of more than 1 MiB")
    return Column.from_arrow(type_, array)


def _cast(array: pa.Array, type_: Type) -> pa.Array:
    """Cast an array to the declared type where that loses nothing; a number is no text and a truth no number.
    Raises TypeError.
    """
    given = array.type
    numeric = pa.types.is_integer(given) or pa.types.is_floating(given) or pa.types.is_decimal(given)
    same = (
        pa.types.is_null(given)
        or (type_.is_numeric and numeric)
        or (type_.kind is Kind.STRING and (pa.types.is_string(given) or pa.types.is_large_string(given)))
        or (type_.kind in (Kind.DATE, Kind.TIMESTAMP) and pa.types.is_temporal(given))
    )
    if not same:
        raise TypeError(f"{given} is not {type_}")
    return array.cast(type_.arrow)


def _placed(
    type_: Type,
    arguments: Sequence[Vector],
    results: Sequence[Column],
    usable: Array,
    failed: Array,
    size: int,
) -> Vector:
    """The results at their rows; the rest is NULL or an error as the arguments say."""
    dictionary = pa.array([""], pa.string()) if type_.kind is Kind.STRING else None
    values = np.zeros(size, type_.dtype)
    null, error = np.zeros(size, np.bool_), np.zeros(size, np.bool_)
    if results:
        vector = from_column(concatenate_columns(type_, results))
        if vector.dictionary is not None and len(vector.dictionary):
            dictionary = vector.dictionary
        values[usable] = vector.values
        error[usable] = failed
        if vector.null is not None:
            null[usable] = vector.null & ~failed
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
