"""The joins a query begins with, where which of their inputs' rows belong together is kept.

An input is rows of a source and nothing else, so that whoever keeps combinations needs to know the rows of
its scan alone. Conditions are the query's own and are looked at here, join by join as the stages do. Errors
are counted as the stages would: keys that may err are not kept, and a condition that may ends the chain.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from engine.algebra.join.stage import Join
from engine.language.evaluate import truth
from engine.language.query import Query
from engine.model import expressions as ex
from engine.model.batch import Column, Int64Array
from engine.model.lazy_columns import LazyColumns
from engine.operators.join import join
from engine.operators.maintained.measure import can_err
from engine.operators.partners import PIECE
from engine.operators.relation import Relation, count
from tureen.errors import LimitExceeded


class CompositeSource(Protocol):
    """Which rows of joined inputs belong together, where that is kept (:mod:`engine.joins`)."""

    def places(self, query: Query, relations: Sequence[Relation]) -> Sequence[Int64Array] | None:
        """For the first two inputs of the query's leading joins or more, whose scans gave these relations: of
        each combination that is equal in keys the place of each part, in order of the first place, then the
        next; None where it is not kept.
        """
        ...


def leading_joins(query: Query) -> tuple[Join, ...]:
    """The joins that combinations may be kept for. Only the first may be of another kind than inner, and is
    then the last.
    """
    found: list[Join] = []
    for stage in query.stages:
        join = stage.join
        if join is None or join.latest is not None or not join.keys:
            break
        if (found and join.kind != "inner") or not _is_bare(join.inner):
            break
        found.append(join)
        if join.kind != "inner" or can_err(join.condition):
            break
    return tuple(found)


def _is_bare(inner: Query) -> bool:
    """Whether a query gives rows of its source as they are."""
    if inner.scan.assignment is not None or inner.scan.history or inner.outputs is None:
        return False
    return all(isinstance(output.expression, ex.Column) for output in inner.outputs)


def combined(
    joins: Sequence[Join],
    inputs: Sequence[Relation],
    places: Sequence[Int64Array],
    rows_max: int,
    candidates_max: int,
) -> tuple[Relation, int]:
    """What the joins give over these combinations of their inputs' rows, and how many errors they meet.

    Raises LimitExceeded.
    """
    if joins[0].kind != "inner":
        left, right = places
        return join(
            joins[0], inputs[0], inputs[1], rows_max, given=(left, right), candidates_max=candidates_max
        )
    errors = 0
    for stage in joins[: len(places) - 1]:
        if stage.condition is not None:
            kept, wrong = _satisfying(stage.condition, inputs, places)
            errors += wrong
            if len(kept) < len(places[0]):
                places = [each[kept] for each in places]
    total = len(places[0])
    if total > rows_max:
        hint = "narrow the windows, or join by more columns"
        raise LimitExceeded("intermediate_rows_max", rows_max, total, hint=hint)
    return Relation(_columns(inputs, places), total), errors


def _satisfying(
    condition: ex.Expression, inputs: Sequence[Relation], places: Sequence[Int64Array]
) -> tuple[Int64Array, int]:
    """The combinations, ascending, that satisfy a condition, and for how many it is an error."""
    found, errors = [], 0
    for start in range(0, len(places[0]), PIECE):
        piece = [each[start : start + PIECE] for each in places]
        true, error = truth(condition, _columns(inputs, piece), len(piece[0]))
        errors += count(error)
        found.append(start + np.flatnonzero(true))
    return (np.concatenate(found) if found else np.empty(0, np.int64)), errors


def _columns(inputs: Sequence[Relation], places: Sequence[Int64Array]) -> LazyColumns:
    """The columns of combinations, taken when they are read."""
    owners = [
        (owner, place)
        for owner, relation in enumerate(inputs[: len(places)])
        for place in range(len(relation.columns))
    ]

    def make(place: int) -> Column:
        owner, column = owners[place]
        return inputs[owner].columns[column].take(places[owner])

    return LazyColumns(len(owners), make)
