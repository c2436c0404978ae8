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
    there = places >= 0
    if there.all():
        return members.values.take(places if order is None else order[places])
    if not members.m:
        values = members.values
        nothing = np.zeros(members.groups, values.type.dtype)
        return Column(values.type, nothing, there, values.strings)
    places = np.maximum(places, 0)
    column = members.values.take(places if order is None else order[places])
    return Column(column.type, column.values, there, column.strings)
