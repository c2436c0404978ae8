"""UNION ALL, INTERSECT [ALL] and EXCEPT [ALL] of two relations, as
:class:`engine.algebra.set_operation.stage.SetOperation` says.

O(rows of both * columns), hashing.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from engine.algebra.set_operation.stage import SetOperation
from engine.kernels import set_operations as kernels
from engine.model.batch import Column, Int64Array, concatenate_columns
from engine.model.lazy_columns import LazyColumns
from engine.operators.distinct import with_plain_zeros
from engine.operators.keys import alike
from engine.operators.relation import Moments, Relation
from tureen.errors import LimitExceeded


def set_operation(stage: SetOperation, left: Relation, right: Relation, rows_max: int) -> Relation:
    """The rows of ``left`` and of ``right``, which is what ``stage.inner`` gives, as the stage has them.

    Raises LimitExceeded: more than ``rows_max`` rows.
    """
    if stage.kind == "union":
        return _union(left, right, rows_max)
    places = [(place, place) for place in range(len(left.columns))] if stage.on is None else stage.on
    codes, other_codes, width = alike(
        [left.columns[place] for place, _ in places],
        [right.columns[place] for _, place in places],
        len(left),
        len(right),
    )
    copies = np.bincount(other_codes, minlength=width)
    kept = np.empty(len(left), np.bool_)
    if stage.all:
        kernels.paired(codes, copies, kept)
        if stage.kind == "except":  # the oldest go: those of as many right rows
            np.logical_not(kept, out=kept)
    else:
        kernels.first_of_each(codes, (copies > 0) == (stage.kind == "intersect"), kept)
    rows = left if kept.all() else left.among(np.flatnonzero(kept))
    return rows if stage.on is not None else with_plain_zeros(rows)


def _union(left: Relation, right: Relation, rows_max: int) -> Relation:
    """The rows of both: in the order of time where the rows of both are, else one after the other. The order
    is worked out when a column is read.
    """
    n = len(left) + len(right)
    if n > rows_max:
        raise LimitExceeded("intermediate_rows_max", rows_max, n, hint="narrow the windows")

    def both(place: int) -> Column:
        return concatenate_columns(left.columns[place].type, [left.columns[place], right.columns[place]])

    if not (left.is_in_time and right.is_in_time):
        return Relation(LazyColumns(len(left.columns), both), n)

    @cache
    def sides() -> tuple[Moments, Moments]:
        return left.moments(), right.moments()

    @cache
    def order() -> Int64Array:
        found = np.empty(n, np.int64)
        one, other = sides()
        kernels.merged(*one, *other, found)
        return found

    def moments() -> Moments:
        return Moments(*(np.concatenate(pair)[order()] for pair in zip(*sides(), strict=True)))

    ordered = LazyColumns(len(left.columns), lambda place: both(place).take(order()))
    return Relation(ordered, n, moments=moments)
