"""Stages of a query over lists of rows: one function a stage, each as its class in the model reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import assert_never

from engine.algebra.aggregate.stage import Aggregate
from engine.algebra.constant_rows.stage import ConstantRows
from engine.algebra.distinct.stage import Distinct
from engine.algebra.filter.stage import Filter
from engine.algebra.join.stage import Join
from engine.algebra.limit.stage import Limit
from engine.algebra.operators import Stage
from engine.algebra.project.stage import Project
from engine.algebra.row_number.stage import RowNumber
from engine.algebra.semi_join.stage import SemiJoin
from engine.algebra.set_operation.stage import SetOperation
from engine.algebra.sort.stage import Sort
from engine.algebra.streamed.stage import Streamed
from engine.algebra.unnest.stage import Unnest
from engine.algebra.window_functions.stage import WindowFunctions
from engine.algebra.with_ties.stage import WithTies
from engine.language.query import Query
from engine.model.expressions import Expression, Value
from engine.reference.aggregates import aggregate
from engine.reference.expressions import evaluate
from engine.reference.joins import join, semi_join, values_of
from engine.reference.ordering import compare, sort
from engine.reference.rows import Placed, Values
from engine.reference.seen import At
from engine.reference.set_operations import merged, set_operation
from engine.reference.streams import streamed
from engine.reference.unnest import unnest
from engine.reference.values import ERROR, Identity, identity, one_zero
from engine.reference.window_functions import window_functions
from engine.reference.windows import gone_versions, scan, width_of


def answer(query: Query, at: At) -> tuple[list[Values], int, int | None]:
    """The rows of a query over sources at instants, how many values were errors, from when it is complete.

    The last is None where nothing is missing; of several scans the latest counts.
    """
    rows, errors, complete_from, _ = _placed(query, at)
    return [row.values for row in rows], errors, complete_from


def _placed(query: Query, at: At) -> tuple[list[Placed], int, int | None, bool]:
    """The answer as :func:`answer` has it, with the rows as they are placed, and whether these are rows of
    streams in order of time.
    """
    seen = at[query.source]
    held = scan(query.scan, seen.source, seen.instant)
    rows, errors, froms = held.rows, 0, [held.complete_from]
    width = width_of(query.scan, seen.source)
    in_time = not seen.source.stream.is_table and query.scan.assignment is None
    for place, stage in enumerate(query.stages):
        met = 0
        if isinstance(stage, Streamed):
            elements = streamed(replace(query, stages=query.stages[:place]), stage, at, answer)
            rows, in_time = elements.rows, True  # errors below are those that the subquery meets now
            froms.append(elements.complete_from)
            continue
        if isinstance(stage, SemiJoin | Join | SetOperation):
            placed, inner_errors, inner_from, inner_in_time = _placed(stage.inner, at)
            inner = [row.values for row in placed]
            errors += inner_errors
            froms.append(inner_from)
            if isinstance(stage, SemiJoin):
                rows, met = semi_join(stage, rows, inner)
            elif isinstance(stage, Join):
                froms.append(_versions_from(stage, rows, at))
                rows, met = join(stage, rows, width, inner)
            elif stage.kind == "union" and in_time and inner_in_time:
                rows = merged(rows, placed)
            else:
                rows = set_operation(stage, rows, placed)
                in_time = in_time and stage.kind != "union"
        else:
            rows, met = _stage(stage, rows)
        in_time = in_time and not isinstance(stage, ConstantRows | Join | Aggregate | Sort | WithTies)
        errors += met
        width = _width_after(stage, width)
        assert all(len(row.values) == width for row in rows)
    return rows, errors, max((f for f in froms if f is not None), default=None), in_time


def _versions_from(stage: Join, rows: Sequence[Placed], at: At) -> int | None:
    """The instant from which the versions are there that the rows of a table's history are joined with."""
    source = at[stage.inner.source].source
    if stage.latest is None or not stage.inner.scan.history or not gone_versions(source):
        return None
    outcomes = [evaluate(stage.latest.outer, row.values) for row in rows]
    instants = [outcome for outcome in outcomes if isinstance(outcome, int)]
    since = source.retained_from
    return since if since is not None and instants and min(instants) < since else None


def _width_after(stage: Stage, width: int) -> int:
    """How many columns a stage gives, of so many."""
    match stage:
        case Project(outputs):
            return len(outputs)
        case Aggregate(keys, calls):
            return len(keys) + len(calls)
        case ConstantRows(columns=columns):
            return len(columns)
        case RowNumber():
            return width + 1
        case WindowFunctions(calls=calls):
            return width + len(calls)
        case Unnest():
            return width + len(stage.own_columns)
        case Join(inner, kind) if kind not in ("semi", "anti"):
            return width + len(inner.columns)
        case _:
            return width


def _stage(stage: Stage, rows: list[Placed]) -> tuple[list[Placed], int]:
    """The rows after one stage and how many errors it met."""
    match stage:
        case Project(outputs):
            return _with_values(rows, [output.expression for output in outputs])
        case Filter(predicate):
            outcomes = [evaluate(predicate, row.values) for row in rows]
            kept = [row for row, outcome in zip(rows, outcomes, strict=True) if outcome is True]
            return kept, sum(outcome is ERROR for outcome in outcomes)
        case Aggregate():
            return _aggregate(stage, rows)
        case ConstantRows(rows=given):
            values = [tuple(literal.value for literal in row) for row in given]
            return [Placed(None, row) for row in values], 0
        case Distinct():
            return _distinct(rows), 0
        case Sort(keys):
            return sort(keys, rows)
        case WithTies():
            return _with_ties(stage, rows)
        case RowNumber():
            return _row_number(stage, rows)
        case WindowFunctions():
            return window_functions(stage, rows)
        case Unnest():
            return unnest(stage, rows)
        case Limit(count, offset):
            return rows[offset : None if count is None else offset + count], 0
        case SemiJoin() | Join() | SetOperation() | Streamed():
            raise AssertionError("needs more than rows")
        case _:
            assert_never(stage)


def _with_values(rows: Sequence[Placed], expressions: Sequence[Expression]) -> tuple[list[Placed], int]:
    """The rows with the values of these expressions, and how many of them are errors."""
    made = []
    errors = 0
    for row in rows:
        values, met = values_of(expressions, row.values)
        made.append(replace(row, values=values))
        errors += met
    return made, errors


def _aggregate(stage: Aggregate, rows: Sequence[Placed]) -> tuple[list[Placed], int]:
    groups: dict[Identity, tuple[Values, list[Placed]]] = {} if stage.keys else {(): ((), [])}
    errors = 0
    for row in rows:
        key, met = values_of([output.expression for output in stage.keys], row.values)
        errors += met
        groups.setdefault(identity(key), (tuple(map(one_zero, key)), []))[1].append(row)
    made = []
    for key, members in groups.values():
        values: list[Value] = list(key)
        for call in stage.calls:
            outcome, met = aggregate(call, members)
            assert outcome is not ERROR
            values.append(outcome)
            errors += met
        made.append(Placed(None, tuple(values)))
    return made, errors


def _distinct(rows: Sequence[Placed]) -> list[Placed]:
    kept: dict[Identity, Placed] = {}
    for row in rows:
        values = tuple(map(one_zero, row.values))
        kept.setdefault(identity(values), replace(row, values=values))
    return list(kept.values())


def _with_ties(stage: WithTies, rows: Sequence[Placed]) -> tuple[list[Placed], int]:
    placed, errors = sort(stage.keys, rows)
    stop = stage.offset + stage.count
    if stage.count and stop < len(placed):
        keys = [values_of([key.expression for key in stage.keys], row.values)[0] for row in placed]
        while stop < len(placed) and compare(stage.keys, keys[stop], keys[stop - 1]) == 0:
            stop += 1
    return placed[stage.offset : stop], errors


def _row_number(stage: RowNumber, rows: Sequence[Placed]) -> tuple[list[Placed], int]:
    groups: dict[Identity, list[Placed]] = {}
    errors = 0
    for row in rows:
        key, met = values_of(stage.keys, row.values)
        groups.setdefault(identity(key), []).append(row)
        errors += met
    numbers: dict[int, int] = {}
    for members in groups.values():
        ordered, met = sort(stage.order, members)
        numbers |= {id(row): number for number, row in enumerate(ordered, start=1)}
        errors += met
    top = [row for row in rows if stage.count is None or numbers[id(row)] <= stage.count]
    return [replace(row, values=(*row.values, numbers[id(row)])) for row in top], errors
