"""GROUP BY, and the one group of a query with aggregates and without it.

Groups come in the order of their first row; a key that is -0.0 is given as 0.0. Each call is over the rows
that its filter lets through and whose argument is neither NULL nor an error. O(rows * (keys + calls)).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from engine.algebra.aggregate.stage import Aggregate, AggregateCall
from engine.model.batch import Column, Int64Array
from engine.operators.aggregates import (
    arrays,
    bits,
    moments,
    order_statistics,
    pairs,
    picks,
    sketches,
    totals,
)
from engine.operators.aggregates.in_pieces import result_in_pieces
from engine.operators.aggregates.members import Members, select
from engine.operators.keys import encode, with_one_zero
from engine.operators.relation import Relation

Function = Callable[[Members, AggregateCall], tuple[Column, int]]

FUNCTIONS: dict[str, Function] = {
    "COUNT": totals.count,
    "SUM": totals.total,
    "AVG": totals.average,
    "MIN": picks.least,
    "MAX": picks.greatest,
    "FIRST": picks.first,
    "LAST": picks.last,
    "BOOL_AND": picks.least,
    "BOOL_OR": picks.greatest,
    "VAR_SAMP": moments.spread,
    "VAR_POP": moments.spread,
    "STDDEV_SAMP": moments.spread,
    "STDDEV_POP": moments.spread,
    "ARRAY_AGG": arrays.collect,
    "APPROX_COUNT_DISTINCT": sketches.distinct_count,
    "APPROX_QUANTILE": sketches.quantile,
    "MEDIAN": order_statistics.continuous,
    "PERCENTILE_CONT": order_statistics.continuous,
    "PERCENTILE_DISC": order_statistics.discrete,
    "MODE": order_statistics.mode,
    "STRING_AGG": arrays.joined,
    "BIT_AND": bits.all_of,
    "BIT_OR": bits.any_of,
    "BIT_XOR": bits.odd_of,
    "ARG_MIN": picks.at_least,
    "ARG_MAX": picks.at_greatest,
    **pairs.FUNCTIONS,
}
"""By the names of :mod:`engine.language.aggregates`."""


def aggregate(stage: Aggregate, relation: Relation) -> tuple[Relation, int]:
    """Keys, then calls, and how many values were errors."""
    keys, errors = relation.values_of(key.expression for key in stage.keys)
    codes: Int64Array | None = None
    groups = 1
    if stage.keys:
        codes, firsts = encode(keys, len(relation))
        groups = len(firsts)
        keys = [with_one_zero(key.take(firsts)) for key in keys]
    columns, wrong = _call_columns(stage.calls, relation, codes, groups)
    return Relation([*keys, *columns], groups), errors + wrong


def call_columns(
    calls: Sequence[AggregateCall], relation: Relation, codes: Int64Array, groups: int
) -> list[Column]:
    """The values of calls. codes: int64[rows], the group that each row is in."""
    return _call_columns(calls, relation, codes, groups)[0]


def _call_columns(
    calls: Sequence[AggregateCall], relation: Relation, codes: Int64Array | None, groups: int
) -> tuple[list[Column], int]:
    """A column a call, and how many values were errors."""
    grouping = _Grouping(relation, codes, groups)
    columns, errors = [], 0
    for call in calls:
        found = result_in_pieces(call, relation, codes, groups)
        if found is not None:
            columns.append(found[0])
            errors += found[1]
            continue
        members, passed_over = grouping.members(call)
        column, wrong = FUNCTIONS[call.function](members, call)
        columns.append(column)
        errors += passed_over + wrong
    return columns, errors


class _Grouping:
    """The rows of a relation with the groups they are in."""

    def __init__(self, relation: Relation, codes: Int64Array | None, groups: int) -> None:
        self._relation = relation
        self._codes = codes
        self._groups = groups
        self._known: dict[tuple[object, ...], tuple[Members, int]] = {}

    def members(self, call: AggregateCall) -> tuple[Members, int]:
        """What a call is over, and how many rows an error keeps out of it."""
        of = (call.of_rows, call.filter, call.aggregate.keeps_nulls)
        known = (*of, call.order)
        if known not in self._known:
            self._known[known] = select(self._relation, *of, self._codes, self._groups, order=call.order)
        members, errors = self._known[known]
        return (members.distinct() if call.distinct else members), errors
