"""From relations at successive instants to rows with lives: a row that stays is one row, and so are equal
rows, where nothing tells them apart.

Cost: O(rows of all of them), hashing; their number is bounded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from engine.changes.equality import codes_of
from engine.changes.temporal_relation import TemporalRelation, always, one_after_another
from engine.changes.transition import FOREVER, NEVER
from engine.model.batch import BoolArray, Column, Int64Array
from engine.model.limits import Limits
from engine.operators.relation import Relation
from tureen.errors import LimitExceeded


def succession(
    at_first: Relation,
    following: Iterable[Relation],
    instants: Int64Array,
    limits: Limits,
    identity: Callable[[Relation], Sequence[Column]] = lambda relation: relation.columns,
) -> TemporalRelation:
    """Rows that are there at first, and from each of these instants on, ascending, until the next.

    identity: the columns that are equal for what is one row. The order of the rows is of no meaning. Raises
    LimitExceeded: more than ``intermediate_rows_max`` rows in all of them.
    """
    pieces, total = [at_first], len(at_first)
    for relation in following:
        total += len(relation)
        if total > limits.intermediate_rows_max:
            hint = "take smaller steps, a narrower window, or no LIMIT"
            raise LimitExceeded("intermediate_rows_max", limits.intermediate_rows_max, total, hint=hint)
        pieces.append(relation)
    if len(pieces) == 1:
        return always(at_first)
    relation = one_after_another([always(piece) for piece in pieces]).relation
    time = np.repeat(np.arange(len(pieces)), [len(piece) for piece in pieces])
    return _runs(relation, identity(relation), time, instants)


def _runs(
    relation: Relation, identity: Sequence[Column], time: Int64Array, instants: Int64Array
) -> TemporalRelation:
    """One row for each run of successive times at which a row, or another copy of it, is there."""
    n = len(relation)
    if not n:
        return always(relation)
    codes = codes_of(identity, n)
    order = np.lexsort((time, codes))
    codes, times = codes[order], time[order]
    copies = _places_in_runs((codes[1:] == codes[:-1]) & (times[1:] == times[:-1]))
    by = np.lexsort((times, copies, codes))
    order, codes, times, copies = order[by], codes[by], times[by], copies[by]
    goes_on = (codes[1:] == codes[:-1]) & (copies[1:] == copies[:-1]) & (times[1:] == times[:-1] + 1)
    first, last = np.ones(n, np.bool_), np.ones(n, np.bool_)
    first[1:] = ~goes_on
    last[:-1] = ~goes_on
    from_ms = np.concatenate([[NEVER], instants])
    until_ms = np.concatenate([instants, [FOREVER]])
    return TemporalRelation(relation.take(order[first]), from_ms[times[first]], until_ms[times[last]])


def _places_in_runs(same: BoolArray) -> Int64Array:
    """int64[n + 1]: the place of each row in its run. same: bool[n], whether a row goes on with the run of
    the one before it.
    """
    places = np.arange(len(same) + 1)
    starts = np.zeros(len(places), np.int64)
    starts[1:] = np.where(same, 0, places[1:])
    return places - np.maximum.accumulate(starts)
