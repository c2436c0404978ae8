"""BIT_AND, BIT_OR and BIT_XOR. O(rows)."""

from __future__ import annotations

import numpy as np

from engine.algebra.aggregate.stage import AggregateCall
from engine.model.batch import Column
from engine.model.types import BIGINT
from engine.operators.aggregates.members import Members


def all_of(members: Members, call: AggregateCall) -> tuple[Column, int]:
    """BIT_AND."""
    return _reduced(members, np.bitwise_and), 0


def any_of(members: Members, call: AggregateCall) -> tuple[Column, int]:
    """BIT_OR."""
    return _reduced(members, np.bitwise_or), 0


def odd_of(members: Members, call: AggregateCall) -> tuple[Column, int]:
    """BIT_XOR."""
    return _reduced(members, np.bitwise_xor), 0


def _reduced(members: Members, function: np.ufunc) -> Column:
    order, starts = members.arranged()
    values = members.values.values if order is None else members.values.values[order]
    there = starts[:-1] < starts[1:]
    found = np.zeros(members.groups, np.int64)
    if there.any():
        found[there] = function.reduceat(values, starts[:-1][there])
    return Column(BIGINT, found, None if there.all() else there)
