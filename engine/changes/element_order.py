"""The order of a stream's elements: by instant, those of one instant as in the relation that has them.

Cost: a sort, and an evaluation for each instant that has several.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from engine.algebra.streamed.stage import StreamOperator
from engine.changes.equality import codes_of
from engine.changes.temporal_relation import always, one_after_another
from engine.model.batch import Int64Array
from engine.operators.relation import Relation

PIECE_ROWS = 1 << 18
"""About so many rows of successive answers are compared at a time."""


def element_order(
    relation: Relation, timestamps: Int64Array, operator: StreamOperator, stands: Callable[[int], Relation]
) -> Int64Array:
    """The places of elements in their order: by instant, those of one instant as in the relation that has
    them.

    Cost: a sort, and an evaluation for each instant that has several.
    """
    instants, which, counts = np.unique(timestamps, return_inverse=True, return_counts=True)
    places = np.zeros(len(timestamps), np.int64)
    tied = np.flatnonzero(counts > 1)
    start = 0
    while start < len(tied):
        there, rows, stop = list[Relation](), 0, start
        while stop < len(tied) and (not there or rows < PIECE_ROWS):
            instant = 2 * int(instants[tied[stop]])
            there.append(stands(instant if operator == "istream" else instant - 1))
            rows, stop = rows + len(there[-1]), stop + 1
        some = np.flatnonzero((which >= tied[start]) & (which <= tied[stop - 1]) & (counts[which] > 1))
        groups = np.searchsorted(tied[start:stop], which[some])
        places[some] = _places_in(relation.take(some), groups, there)
        start = stop
    return np.lexsort((places, timestamps))


def _places_in(relation: Relation, groups: Int64Array, there: Sequence[Relation]) -> Int64Array:
    """int64[n]: where each row is in the relation of its group, of equal ones the last. groups: int64[n]."""
    n, sizes = len(relation), [len(each) for each in there]
    whole = one_after_another([always(each) for each in (relation, *there)]).relation
    group = np.concatenate([groups, np.repeat(np.arange(len(there)), sizes)])
    keys = codes_of(whole.columns, len(whole)) * len(there) + group
    mine, theirs = keys[:n], keys[n:]
    order, others = np.argsort(mine, kind="stable"), np.argsort(theirs, kind="stable")
    ordered = mine[order]
    behind = np.searchsorted(ordered, ordered, "right") - np.arange(n)  # of equal ones, itself among them
    found = np.empty(n, np.int64)
    found[order] = others[np.searchsorted(theirs[others], ordered, "right") - behind]
    return found
