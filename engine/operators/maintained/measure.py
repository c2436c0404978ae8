"""What is kept for an aggregate: measures, of which slots with the same argument share one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from engine.algebra.aggregate.stage import AggregateCall
from engine.language.aggregates import Statistic
from engine.language.evaluate import evaluate, truth
from engine.language.evaluation.arithmetic import as_double
from engine.language.evaluation.vector import from_column
from engine.language.query import Query
from engine.model import expressions as ex
from engine.model.batch import Batch, BoolArray, Column
from engine.model.types import Kind
from engine.operators.scan import is_range


@dataclass(frozen=True, slots=True)
class Measure:
    """One statistic of an argument (None: of the rows) over the rows that a filter lets through."""

    statistic: Statistic
    argument: ex.Expression | None
    filter: ex.Expression | None

    @property
    def whole(self) -> bool:
        """Whether its values are whole numbers (unscaled ones of decimals, days, milliseconds)."""
        if self.statistic is Statistic.SPREAD or self.argument is None:
            return False
        return self.argument.type.kind is not Kind.DOUBLE


_NEVER_ERR = (ex.Column, ex.Literal, ex.Compare, ex.And, ex.Or, ex.Not, ex.IsNull, ex.In, ex.Like)


def measures_of(query: Query) -> tuple[Measure, ...] | None:
    """What must be kept for a query, each measure once; None where its answer cannot be had so.

    It can where the first stage is an aggregate without keys over a range of ordinals, and every call is of
    those whose results over parts of the rows can be put together.
    """
    stage = query.stages[0].aggregate
    if stage is None or stage.keys or not is_range(query.scan):
        return None
    if query.last_stream is not None:
        return None
    wanted: dict[Measure, None] = {}
    for call in stage.calls:
        if not is_kept(call):
            return None
        wanted.update(dict.fromkeys(measures_of_call(call)))
    return tuple(wanted)


def is_kept(call: AggregateCall) -> bool:
    """Whether its results over parts of the rows can be put together."""
    if not call.aggregate.mergeable or call.distinct:
        return False
    return (
        not call.arguments
        or call.arguments[0].type.kind not in (Kind.STRING, Kind.NULL)
        or call.aggregate.statistic is Statistic.COUNT
    )


def measures_of_call(call: AggregateCall) -> Iterator[Measure]:
    """The measures that a call is made of."""
    argument = call.arguments[0] if call.arguments else None
    for statistic in dict.fromkeys((Statistic.COUNT, call.aggregate.statistic)):
        yield Measure(statistic, argument, call.filter)
    if can_err(argument) or can_err(call.filter):
        yield Measure(Statistic.ERRORS, argument, call.filter)


def can_err(expression: ex.Expression | None) -> bool:
    """Whether a value may be an error, as far as its shape tells."""
    pending: list[object] = [expression]
    while pending:
        node = pending.pop()
        if isinstance(node, tuple):
            pending.extend(node)
        elif isinstance(node, _NEVER_ERR):
            pending.extend(getattr(node, name) for name in node.__dataclass_fields__ if name != "type")
        elif hasattr(node, "__dataclass_fields__") and hasattr(node, "type"):
            return True
    return False


@dataclass(frozen=True, slots=True)
class Operands:
    """An argument over n rows: its column (None: of COUNT(*)), where a row counts and where it is an error,
    bool[n]; None: everywhere, nowhere.
    """

    column: Column | None
    ok: BoolArray | None
    error: BoolArray | None

    def whole(self) -> npt.NDArray[np.int64]:
        assert self.column is not None
        return self.column.values.astype(np.int64, copy=False)

    def doubles(self) -> npt.NDArray[np.float64]:
        assert self.column is not None
        return as_double(from_column(self.column))


def operands(argument: ex.Expression | None, condition: ex.Expression | None, rows: Batch) -> Operands:
    """Evaluate an argument and its filter over all rows of a batch. O(rows)."""
    n = len(rows)
    ok: BoolArray | None = None
    error: BoolArray | None = None
    if condition is not None:
        ok, error = truth(condition, rows.columns, n)
    if argument is None:
        return Operands(None, ok, error)
    result = evaluate(argument, rows.columns, n)
    if result.error is not None:
        wrong = result.error if ok is None else result.error & ok
        error = wrong if error is None else error | wrong
    if result.column.valid is not None:
        ok = result.column.valid if ok is None else ok & result.column.valid
    return Operands(result.column, ok, error)
