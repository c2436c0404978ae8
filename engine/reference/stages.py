"""Stages of a query over lists of rows: one function a stage, each as its class in the model reads."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cmp_to_key
from typing import assert_never

from engine.language.expressions import Expression, Value
from engine.language.query import (
    Aggregate,
    Distinct,
    Filter,
    Limit,
    Project,
    Query,
    RowNumber,
    SemiJoin,
    Sort,
    SortKey,
    Stage,
)
from engine.model.types import Type
from engine.reference.aggregates import aggregate
from engine.reference.expressions import evaluate
from engine.reference.rows import Placed, Source, Values
from engine.reference.values import ERROR, Identity, identity, order
from engine.reference.windows import scan


def answer(query: Query, source: Source, instant: int | None) -> tuple[list[Values], int, int | None]:
    """The rows of a query at an instant, how many values were errors, and from when it is complete.

    The last is None where nothing is missing; of several scans the latest counts.
    """
    held = scan(query.scan, source, instant)
    rows, errors, complete_from = held.rows, 0, held.complete_from
    for stage in query.stages:
        if isinstance(stage, SemiJoin):
            inner, inner_errors, inner_from = answer(stage.inner, source, instant)
            errors += inner_errors
            if inner_from is not None:
                complete_from = inner_from if complete_from is None else max(complete_from, inner_from)
            types = [type_ for _, type_ in stage.inner.columns]
            rows, met = _semi_join(stage, rows, inner, types)
        else:
            rows, met = _stage(stage, rows)
        errors += met
    return [row.values for row in rows], errors, complete_from


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
        case Distinct():
            return _distinct(rows), 0
        case Sort(keys):
            return _sort(keys, rows)
        case RowNumber():
            return _row_number(stage, rows)
        case Limit(count, offset):
            return rows[offset : None if count is None else offset + count], 0
        case SemiJoin():
            raise AssertionError("needs the rows of its inner query")
        case _:
            assert_never(stage)


def _values(expressions: Sequence[Expression], row: Values) -> tuple[Values, int]:
    """What the expressions give over a row, NULL for errors, and how many those are."""
    outcomes = [evaluate(expression, row) for expression in expressions]
    errors = sum(outcome is ERROR for outcome in outcomes)
    return tuple(None if outcome is ERROR else outcome for outcome in outcomes), errors


def _with_values(rows: Sequence[Placed], expressions: Sequence[Expression]) -> tuple[list[Placed], int]:
    """The same rows with other values."""
    made = []
    errors = 0
    for row in rows:
        values, met = _values(expressions, row.values)
        made.append(Placed(row.ordinal, values))
        errors += met
    return made, errors


def _aggregate(stage: Aggregate, rows: Sequence[Placed]) -> tuple[list[Placed], int]:
    groups: dict[Identity, tuple[Values, list[Placed]]] = {} if stage.keys else {(): ((), [])}
    errors = 0
    for row in rows:
        key, met = _values([output.expression for output in stage.keys], row.values)
        errors += met
        groups.setdefault(identity(key), (key, []))[1].append(row)
    made = []
    for place, (key, members) in enumerate(groups.values()):
        values: list[Value] = list(key)
        for call in stage.calls:
            outcome, met = aggregate(call, members)
            assert outcome is not ERROR
            values.append(outcome)
            errors += met
        made.append(Placed(place, tuple(values)))
    return made, errors


def _distinct(rows: Sequence[Placed]) -> list[Placed]:
    kept: dict[Identity, Placed] = {}
    for row in rows:
        kept.setdefault(identity(row.values), row)
    return list(kept.values())


def _sort(keys: tuple[SortKey, ...], rows: Sequence[Placed]) -> tuple[list[Placed], int]:
    keyed: list[tuple[Values, Placed]] = []
    errors = 0
    for row in rows:
        values, met = _values([key.expression for key in keys], row.values)
        keyed.append((values, row))
        errors += met

    def compare(one: tuple[Values, Placed], other: tuple[Values, Placed]) -> int:
        return _compare(keys, one[0], other[0])

    return [row for _, row in sorted(keyed, key=cmp_to_key(compare))], errors


def _compare(keys: tuple[SortKey, ...], one: Values, other: Values) -> int:
    """-1, 0 or 1: which of two rows of sort keys comes first."""
    for key, a, b in zip(keys, one, other, strict=True):
        if a is None or b is None:
            placed = int(a is None) - int(b is None)
            placed = -placed if key.nulls_first else placed
        else:
            placed = order(a, key.expression.type, b, key.expression.type)
            placed = -placed if key.descending else placed
        if placed:
            return placed
    return 0


def _row_number(stage: RowNumber, rows: Sequence[Placed]) -> tuple[list[Placed], int]:
    groups: dict[Identity, list[Placed]] = {}
    errors = 0
    for row in rows:
        key, met = _values(stage.keys, row.values)
        groups.setdefault(identity(key), []).append(row)
        errors += met
    numbers: dict[int, int] = {}
    for members in groups.values():
        ordered, met = _sort(stage.order, members)
        numbers |= {id(row): number for number, row in enumerate(ordered, start=1)}
        errors += met
    top = [row for row in rows if stage.count is None or numbers[id(row)] <= stage.count]
    return [Placed(row.ordinal, (*row.values, numbers[id(row)])) for row in top], errors


def _semi_join(
    stage: SemiJoin, rows: Sequence[Placed], inner: Sequence[Values], types: Sequence[Type]
) -> tuple[list[Placed], int]:
    kept = []
    errors = 0
    for row in rows:
        keys, met = _values(stage.keys, row.values)
        errors += met
        found: bool | None = False
        for candidate in inner:
            equal = _equal(keys, [key.type for key in stage.keys], candidate, types)
            if equal is True:
                found = True
                break
            if equal is None and stage.null_aware:
                found = None
        if found is not None and found is not stage.negated:
            kept.append(row)
    return kept, errors


def _equal(keys: Values, key_types: Sequence[Type], candidate: Values, types: Sequence[Type]) -> bool | None:
    """Whether all keys equal an inner row's columns, in three-valued logic."""
    outcome: bool | None = True
    for a, a_type, b, b_type in zip(keys, key_types, candidate, types, strict=False):
        if a is None or b is None:
            outcome = None
        elif order(a, a_type, b, b_type) != 0:
            return False
    return outcome
