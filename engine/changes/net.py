"""From lives to changes: who comes and goes when, without equal rows that do both at one instant.

Changes stand in the order of their instants, at one instant those that go before those that come, and then as
the rows stood. Cost: O(rows), and hashing of those at instants at which rows both come and go.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from engine.changes.equality import codes_of, codes_of_table
from engine.changes.lives import Lives, Way
from engine.model.batch import Int32Array, Int64Array
from engine.model.changes import Weights

Codes = Callable[[Int64Array], Int64Array]
"""Of the rows at these places, the same for equal ones."""


def events(lives: Lives, way: Way) -> tuple[Int64Array, Weights, Int64Array]:
    """(place of the row, weight, instant) of each coming and going on the way, in order."""
    came, went = np.flatnonzero(way.among(lives.begins)), np.flatnonzero(way.among(lives.ends))
    rows = np.concatenate([went, came])
    instants = np.concatenate([lives.ends[went], lives.begins[came]])
    weights = np.ones(len(rows), np.int8)
    weights[: len(went)] = -1
    if len(rows) > 1 and bool((instants[1:] < instants[:-1]).any() or (len(went) and len(came))):
        order = np.lexsort((weights, instants))
        rows, weights, instants = rows[order], weights[order], instants[order]
    return rows, weights, instants


def netted(
    lives: Lives, rows: Int64Array, weights: Weights, instants: Int64Array
) -> tuple[Int64Array, Weights, Int64Array]:
    """Of events, as above, those that are left."""
    columns = lives.relation.columns

    def codes(places: Int64Array) -> Int64Array:
        return codes_of([column.take(rows[places]) for column in columns], len(places))

    kept = _left(codes, weights, _groups(instants, None))
    if len(kept) == len(rows):
        return rows, weights, instants
    return rows[kept], weights[kept], instants[kept]


def uncancelled(
    table: pa.Table, weights: Weights, at_ms: Int64Array, owners: Int32Array | None
) -> Int64Array:
    """The places of the rows that are left, ascending.

    owners: whose row each is, None: all are of one; rows of one owner and one instant stand together.
    """
    return _left(lambda places: codes_of_table(table.take(places)), weights, _groups(at_ms, owners))


def _groups(instants: Int64Array, owners: Int32Array | None) -> Int64Array:
    """int64[n], ascending: rows that may cancel have the same."""
    groups = np.zeros(len(instants), np.int64)
    differs = instants[1:] != instants[:-1]
    if owners is not None:
        differs |= owners[1:] != owners[:-1]
    np.cumsum(differs, out=groups[1:])
    return groups


def _left(codes_at: Codes, weights: Weights, groups: Int64Array) -> Int64Array:
    n = len(weights)
    if not n:
        return np.arange(0)
    sizes = np.bincount(groups)
    totals = np.bincount(groups, weights)
    mixed = np.abs(totals) < sizes
    if not mixed.any():
        return np.arange(n)
    places = np.flatnonzero(mixed[groups])
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
