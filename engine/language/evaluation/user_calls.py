"""Calls of a user's function for columns of rows that all have values.

A vectorised call that raises, or whose result is no column of the declared type and length, is repeated with
halves of its rows down to single ones, so that only the rows that err are errors: at most twice as many calls
as rows, few where few err. A call one by one is of single rows from the start, of vectorised functions too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

import numpy as np
import pyarrow as pa

from engine.language.evaluation.vector import Array
from engine.model.batch import Column, concatenate_columns
from engine.model.expressions import UserFunction
from engine.model.interruption import may_go_on
from engine.model.types import Kind, Type
from engine.model.user_calls import CallOutcome, Reason

STRING_BYTES_MAX = 1 << 20
CALLED_ROWS = 256
"""A function of single values is called for so many rows in one piece."""
TOLD_MAX = 200
"""Characters that are told of an error."""

Note = Callable[[int], object]
"""Is told the first row of each call before it begins."""


class _Mistyped(Exception):
    """What a function gave does not fit."""


@dataclass(slots=True)
class _Calls:
    """The calls for n rows. values: by argument, what the function takes. failed: bool[n]."""

    function: UserFunction
    values: Sequence[Any]
    failed: Array
    note: Note | None
    results: list[Column] = field(default_factory=list)
    reasons: Counter[Reason] = field(default_factory=Counter)
    told: str | None = None


def called(
    function: UserFunction, columns: Sequence[Column], note: Note | None = None, *, one_by_one: bool = False
) -> CallOutcome:
    """Call it here for n rows, of which none is NULL. There is at least one column."""
    n = len(columns[0])
    values = [_given(function, column) for column in columns]
    calls = _Calls(function, values, np.zeros(n, np.bool_), note)
    at_once = 1 if one_by_one else n if function.vectorised else CALLED_ROWS
    for start in range(0, n, max(1, at_once)):
        may_go_on()
        _run(calls, start, min(start + at_once, n))
    results = concatenate_columns(function.result, calls.results or [Column.no_rows(function.result)])
    return CallOutcome(results, calls.failed, calls.reasons, calls.told)


def is_calling(frame: FrameType | None) -> bool:
    """Whether a thread is in a user's function, by the frame that it runs: what is raised there is of that
    call alone. O(depth).
    """
    inner: FrameType | None = None
    while frame is not None and frame.f_globals is not globals():
        inner, frame = frame, frame.f_back
    if frame is None or inner is None or frame.f_code.co_name not in (_found.__name__, "<listcomp>"):
        return False
    return not str(inner.f_globals.get("__name__", "")).startswith("engine.")


def _given(function: UserFunction, column: Column) -> Any:
    """A column as the function takes it."""
    if function.arrow:
        return column.to_arrow()
    return _numpy(column) if function.vectorised else column.to_arrow().to_pylist()


def _numpy(column: Column) -> Array:
    kind = column.type.kind
    if kind is Kind.TIMESTAMP:
        return column.values.astype("datetime64[ms]")
    if kind is Kind.DATE:
        return column.values.astype("datetime64[D]")
    if kind in (Kind.STRING, Kind.DECIMAL):
        return np.array(column.to_arrow().to_pylist(), object)
    return column.values.copy()  # whatever it does to its arguments


def _run(calls: _Calls, start: int, stop: int) -> None:
    """Append columns of the rows start to stop; rows that err are noted, and stand as anything."""
    try:
        calls.results.append(_column(_found(calls, start, stop), calls.function.result))
    except BaseException as wrong:  # noqa: BLE001  whatever a user's code raises; sys.exit(), panics too
        if stop - start == 1:
            calls.failed[start] = True
            calls.reasons["mistyped" if isinstance(wrong, _Mistyped) else "raised"] += 1
            calls.told = _about(wrong)
            calls.results.append(_column([None], calls.function.result))
            return
        middle = (start + stop) // 2
        _run(calls, start, middle)
        _run(calls, middle, stop)


def _found(calls: _Calls, start: int, stop: int) -> Any:
    """What the function gives for these rows."""
    function, note = calls.function, calls.note
    rows = [part[start:stop] for part in calls.values]
    if function.vectorised:
        if note is not None:
            note(start)
        return _as_many(function.call(*rows), stop - start)
    if note is None:
        return [function.call(*row) for row in zip(*rows, strict=True)]
    found = []
    for place, row in enumerate(zip(*rows, strict=True), start):
        note(place)
        found.append(function.call(*row))
    return found


def _as_many(found: Any, n: int) -> Any:
    try:
        given = len(found)
    except Exception as failed:
        raise _Mistyped(f"{type(found).__name__} is no array") from failed
    if given != n:
        raise _Mistyped("a vectorised function gives as many values as it takes")
    return found


def _about(wrong: BaseException) -> str:
    """What is told of an error: nothing that may hold a value of a row."""
    if isinstance(wrong, _Mistyped):
        return str(wrong)[:TOLD_MAX]
    trace = wrong.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None or trace.tb_frame.f_globals is globals():
        return type(wrong).__name__[:TOLD_MAX]
    file = trace.tb_frame.f_code.co_filename.rpartition("/")[2]
    return f"{type(wrong).__name__} at {file}:{trace.tb_lineno}"[:TOLD_MAX]


def _column(found: Any, type_: Type) -> Column:
    """Raises _Mistyped for what does not fit."""
    try:
        return _converted(found, type_)
    except _Mistyped:
        raise
    except Exception as failed:
        raise _Mistyped(f"{_kind_of(found)} is not {type_}") from failed


def _kind_of(found: Any) -> str:
    """What is told of values that are no column: of one its class."""
    if isinstance(found, list) and len(found) == 1:
        return type(found[0]).__name__
    return str(getattr(found, "dtype", None) or getattr(found, "type", None) or type(found).__name__)


def _converted(found: Any, type_: Type) -> Column:
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
        raise _Mistyped("a string of more than 1 MiB")
    return Column.from_arrow(type_, array)


def _cast(array: pa.Array, type_: Type) -> pa.Array:
    """Cast an array to the declared type where that loses nothing; a number is no text and a truth no number.
    Raises _Mistyped, ArrowException.
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
        raise _Mistyped(f"{given} is not {type_}")
    return array.cast(type_.arrow)
