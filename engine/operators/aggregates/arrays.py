"""ARRAY_AGG: the values of a group as one, NULLs among them, in the order of the rows. O(rows)."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from engine.algebra.aggregate.stage import AggregateCall
from engine.language.aggregates import ARRAY_ELEMENTS_MAX
from engine.model.batch import Column
from engine.operators.aggregates.members import Members


def collect(members: Members, call: AggregateCall) -> tuple[Column, int]:
    """NULL of no rows; an error where they are too many."""
    order, starts = members.arranged()
    counts = np.diff(starts)
    too_long = counts > ARRAY_ELEMENTS_MAX
    column = members.values if order is None else members.values.take(order)
    if too_long.any():
        column = column.take(np.flatnonzero(~np.repeat(too_long, counts)))
        starts = np.concatenate([[0], np.cumsum(np.where(too_long, 0, counts))])
    lists = pa.ListArray.from_arrays(pa.array(starts, pa.int32()), column.to_arrow())
    valid = (counts > 0) & ~too_long
    places = np.arange(members.groups, dtype=np.int32)
    return Column(call.type, places, None if valid.all() else valid, lists), int(too_long.sum())
