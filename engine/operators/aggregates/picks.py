"""Aggregates that give one of the values: MIN, MAX, FIRST, LAST, BOOL_AND, BOOL_OR, ARG_MIN, ARG_MAX.

Of equal ones the first is given, and 0.0 of zeros. O(rows), and O(distinct log distinct) to order strings.
"""

from __future__ import annotations

import numpy as np

from engine.algebra.aggregate.stage import AggregateCall
from engine.kernels import aggregates
from engine.model.batch import Column, Int64Array
from engine.operators.aggregates.members import Members
from engine.operators.keys import order_keys, with_one_zero


def least(members: Members, call: AggregateCall) -> tuple[Column, int]:
    """MIN; of booleans whether all are TRUE."""
    return _extreme(members, order_keys(members.values)), 0


def greatest(members: Members, call: AggregateCall) -> tuple[Column, int]:
    """MAX; of booleans whether any is."""
    return _extreme(members, ~order_keys(members.values)), 0


def at_least(members: Members, call: AggregateCall) -> tuple[Column, int]:
    """ARG_MIN: the value beside the least of another."""
    order, _ = members.arranged()
    return at(members, order, _places(members, order_keys(members.more[0]))), 0


def at_greatest(members: Members, call: AggregateCall) -> tuple[Column, int]:
    """ARG_MAX: the value beside the greatest of another."""
    order, _ = members.arranged()
    return at(members, order, _places(members, ~order_keys(members.more[0]))), 0


def first(members: Members, call: AggregateCall) -> tuple[Column, int]:
    """The value of the first row that has one."""
    order, starts = members.arranged()
    return at(members, order, np.where(starts[:-1] < starts[1:], starts[:-1], -1)), 0


def last(members: Members, call: AggregateCall) -> tuple[Column, int]:
    """The value of the last row that has one."""
    order, starts = members.arranged()
    return at(members, order, np.where(starts[:-1] < starts[1:], starts[1:] - 1, -1)), 0


def _extreme(members: Members, keys: Int64Array) -> Column:
    order, _ = members.arranged()
    return with_one_zero(at(members, order, _places(members, keys)))


def _places(members: Members, keys: Int64Array) -> Int64Array:
    """Where, in the order group by group, the first of the least keys of each group is; -1 of none."""
    order, starts = members.arranged()
    places = np.empty(members.groups, np.int64)
    aggregates.least(keys if order is None else keys[order], starts, places)
    return places


def at(members: Members, order: Int64Array | None, places: Int64Array) -> Column:
    """The values at these places in order, NULL at -1."""
    if order is None:
        return members.values.take_or_null(places)
    there = places >= 0
    rows = np.full(len(places), -1)
    rows[there] = order[places[there]]
    return members.values.take_or_null(rows)
