"""Equal rows that enter and leave at one instant cancel, as many as there are of both."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from engine.model.batch import Int64Array
from engine.model.changes import Weights

Codes = Callable[[Int64Array], Int64Array]
"""Returns int64 codes of the rows at these places; equal rows have equal codes."""


def remaining(codes_at: Codes, weights: Weights, groups: Int64Array) -> Int64Array:
    """The places of the rows that are left, ascending. groups: int64[n], ascending; rows that may cancel have
    the same.
    """
    n = len(weights)
    if not n:
        return np.arange(0)
    firsts = np.flatnonzero(np.diff(groups, prepend=groups[0] - 1))
    sizes = np.diff(firsts, append=n)
    totals = np.add.reduceat(weights.astype(np.int64), firsts)
    mixed = np.abs(totals) < sizes
    if not mixed.any():
        return np.arange(n)
    places = np.flatnonzero(np.repeat(mixed, sizes))
    codes = codes_at(places)
    order = np.lexsort((weights[places], codes, groups[places]))
    places, codes = places[order], codes[order]
    is_first = np.ones(len(places), np.bool_)
    is_first[1:] = (codes[1:] != codes[:-1]) | (groups[places[1:]] != groups[places[:-1]])
    starts = np.flatnonzero(is_first)
    run = np.cumsum(is_first) - 1
    went = np.add.reduceat((weights[places] < 0).astype(np.int64), starts)
    alike = np.diff(np.append(starts, len(places)))
    pairs = np.minimum(went, alike - went)[run]
    number = np.arange(len(places)) - starts[run]
    went = went[run]
    cancelled = (number < pairs) | ((number >= went) & (number < went + pairs))
    kept = np.ones(n, np.bool_)
    kept[places[cancelled]] = False
    return np.flatnonzero(kept)
