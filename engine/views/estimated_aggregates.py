"""COUNT and SUM over found rows, and over those that summaries estimate to be found yet.

    COUNT(*)    found rows + rows left
    SUM(x)      sum over found rows + rows left times the mean of x over found rows

stratum by stratum: of queries that name values of the summarised attribute a value is one, of others a bucket
of values. A stratum of which no row was found has the mean of all found rows. With GROUP BY only groups that
are strata are completed; groups of which no row was found are not there. Other aggregates are those of the
found rows. Where nothing is left the numbers are those of the exact query, to the bit.

Source: Ali, Aref, ElTabakh, *Scalability via Summaries: Stream Query Processing using Promising Tuples*,
section 4.3; the paper has the visited part alone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from engine.algebra.aggregate.stage import Aggregate, AggregateCall
from engine.language.query import Query
from engine.model.approximation import Approximation
from engine.model.batch import Column
from engine.model.expressions import Column as ColumnOf
from engine.model.expressions import columns_of
from engine.model.types import DOUBLE
from engine.operators.aggregate import call_columns
from engine.operators.keys import encode
from engine.operators.relation import Relation
from engine.promising.conditions import condition_on, taken_apart
from engine.promising.remaining_rows import RemainingRows

Float64Array = npt.NDArray[np.float64]

Visited = tuple[tuple[str, float | None], ...]
"""Columns with their values over visited rows."""

REPRESENTED = frozenset({"AVG", "APPROX_QUANTILE", "VAR_SAMP", "VAR_POP", "STDDEV_SAMP", "STDDEV_POP"})
"""Aggregates that are of some rows about what they are of all."""


def completed_calls(query: Query, column: int, *, by_values: bool) -> tuple[int, ...]:
    """The places among the calls of its first stage of those that are completed.

    column: the summarised attribute. by_values: whether strata are values of it.
    """
    stage = query.stages[0].aggregate
    if stage is None:
        return ()
    if stage.keys and not (by_values and _is_by(stage, column)):
        return ()
    return tuple(
        place
        for place, call in enumerate(stage.calls)
        if call.function in ("COUNT", "SUM") and not call.distinct
    )


def names_values(query: Query, column: int) -> bool:
    """Whether its predicate names values of a column."""
    predicate = query.scan.predicate
    columns = (
        [each for each in columns_of(predicate) if each.index == column] if predicate is not None else []
    )
    if not columns:
        return False
    return condition_on(taken_apart(predicate), column, columns[0].type).points is not None


def _is_by(stage: Aggregate, column: int) -> bool:
    (key, *more) = stage.keys
    return not more and isinstance(key.expression, ColumnOf) and key.expression.index == column


def unscaled_calls(query: Query) -> tuple[str, ...]:
    """Names of the aggregates of a query with a preference that are no estimates of those over all rows."""
    assert query.preference is not None
    completed: tuple[int, ...] = ()
    if len(query.preference.priorities) == 1:
        column = query.preference.priorities[0].column
        completed = completed_calls(query, column, by_values=names_values(query, column))
    if not query.aggregates:
        return ()
    first = query.aggregates[0]
    whole = set(completed) if first is query.stages[0] else set()
    return tuple(
        call.name
        for place, call in enumerate(first.calls)
        if place not in whole and (call.function not in REPRESENTED or call.distinct)
    )


def visited_part(visited: pa.Table, completed: pa.Table) -> Visited:
    """Returns the columns of an answer of one row that were completed by estimates, each with the value that
    the visited rows alone give; nothing for an answer of any other length.
    """
    if completed.num_rows != 1:
        return ()
    return tuple(
        (name, None if (value := visited.column(place)[0].as_py()) is None else float(value))
        for place, name in enumerate(completed.column_names)
        if pa.types.is_primitive(completed.schema.types[place])
        and not completed.column(place).equals(visited.column(place))
    )


def with_visited(tags: tuple[Approximation, ...], visited: Visited) -> tuple[Approximation, ...]:
    """The tags of an answer, that of its preference with what the visited rows alone give."""
    return tuple(replace(tag, visited=visited) if tag.kind == "preference" else tag for tag in tags)


@dataclass(frozen=True, slots=True)
class Completing:
    """Completes the calls at these places by the rows that are left."""

    left: RemainingRows
    calls: tuple[int, ...]

    def __call__(self, stage: Aggregate, rows: Relation, found: Relation) -> Relation:
        """found: what the stage gives of these rows."""
        columns = list(found.columns)
        share = self._of_groups if stage.keys else self._of_all
        for place in self.calls:
            number = len(stage.keys) + place
            columns[number] = _with(columns[number], share(stage, stage.calls[place], rows, columns[number]))
        return Relation(columns, len(found))

    def _of_groups(
        self, stage: Aggregate, call: AggregateCall, rows: Relation, value: Column
    ) -> Float64Array:
        """What is added to each group, float64[groups], in the units of the column's array."""
        (key,), _ = rows.values_of([stage.keys[0].expression])
        codes, firsts = encode([key], len(rows))
        counts = np.bincount(codes, minlength=len(firsts))
        left = self.left.rows[self.left.strata_of(key.take(firsts))]
        return left * _numbers(value) / counts

    def _of_all(self, stage: Aggregate, call: AggregateCall, rows: Relation, value: Column) -> Float64Array:
        left, n = self.left.rows, len(rows)
        strata = self.left.strata_of(rows.columns[self.left.column])
        counts = np.bincount(strata, minlength=len(left))
        (of_strata,) = call_columns([call], rows, strata, len(left))
        with np.errstate(divide="ignore", invalid="ignore"):
            means = _numbers(of_strata) / counts
        (argument, *_) = call.arguments or (None,)
        if (
            isinstance(argument, ColumnOf)
            and argument.index == self.left.column
            and self.left.values is not None
        ):
            if call.function == "SUM" and call.filter is None:
                means = np.append(self.left.values.values.astype(np.float64), 0.0)
        elif n:
            means = np.where(counts > 0, means, _numbers(value)[0] / n)
        elif call.function == "COUNT" and argument is None and call.filter is None:
            means = np.ones(len(left))
        means = np.where(left > 0.0, means, 0.0)
        return np.array([float((left * np.nan_to_num(means)).sum())])


def _numbers(column: Column) -> Float64Array:
    """float64[n]: what stands in the column's array; 0 where it is NULL."""
    numbers = column.values.astype(np.float64)
    return numbers if column.valid is None else np.where(column.valid, numbers, 0.0)


def _with(column: Column, more: Float64Array) -> Column:
    """The column with so much more in each row, whole numbers rounded; as it is where that does not fit."""
    valid = column.valid
    if valid is not None:
        valid = valid | (more != 0.0)
    held = column.values if column.valid is None else np.where(column.valid, column.values, 0)
    if column.type == DOUBLE:
        return replace(column, values=held + more, valid=valid)
    rounded = np.rint(more)
    fits = np.abs(_numbers(column) + rounded) < 10**18
    values = held + np.where(fits, rounded, 0.0).astype(np.int64)
    return replace(column, values=values.astype(column.values.dtype), valid=valid)
