"""The changes of a query's answer on a way of its sources: a pure function of the two.

Rows with lives flow from the scans through the stages (:mod:`engine.changes.flow`), once for the whole way;
what comes and goes of the last stage's rows, equal ones cancelled, is what changed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from engine.changes.copies import copies_of
from engine.changes.course import Course
from engine.changes.flow import flow_of
from engine.changes.instants import instants_of
from engine.changes.lives import Input
from engine.changes.memory import Memory
from engine.changes.net import events, netted
from engine.changes.stretch import by_retention, forgets, halved
from engine.changes.trip import Trip
from engine.language.query import Query
from engine.limits import Limits
from engine.model.batch import Int32Array, Int64Array
from engine.model.changes import Operator, Weights
from engine.operators.gather import schema_of
from engine.operators.relation import Relation
from tureen.errors import LimitExceeded

_NO_WEIGHTS, _NO_INSTANTS, _NO_COPIES = np.empty(0, np.int8), np.empty(0, np.int64), np.empty(0, np.int32)


@dataclass(frozen=True, slots=True)
class Told:
    """table, weights, at_ms, copies: as in :class:`engine.model.changes.Changes`, of one query."""

    table: pa.Table
    weights: Weights
    at_ms: Int64Array
    copies: Int32Array | None = None


def changes_of(
    query: Query,
    operator: Operator,
    course: Course,
    limits: Limits,
    *,
    copies: bool = False,
    memory: Memory | None = None,
) -> Told:
    """What the operator lets through of the changes on a way. copies: which of equal rows comes or goes is
    wanted; of all changes alone. memory: of this query, of the steps before; it changes nothing but the work.

    Raises LimitExceeded: more than ``changes_max`` changes, or more rows on the way to them than the limits
    allow.
    """
    remembered = None if memory is None or operator == "rstream" else memory.on(course)
    trip = Trip(course, limits, operator == "istream" and forgets(course), remembered)
    last = flow_of(query, trip)
    if operator == "rstream":
        return _whole(query, last, trip)
    told = _told(query, operator, last, trip, copies=copies)
    if remembered is not None:
        remembered.keep()
    return told


def _told(query: Query, operator: Operator, last: Input, trip: Trip, *, copies: bool) -> Told:
    """Of all operators but RSTREAM."""
    limits = trip.limits
    lives = last.changed()
    if not len(lives):
        return Told(_table(query, lives.relation), _NO_WEIGHTS, _NO_INSTANTS, _NO_COPIES if copies else None)
    rows, weights, instants = events(lives, trip.way)
    _bounded(len(rows), limits)
    rows, weights, instants = netted(lives, rows, weights, instants)
    if operator != "changes":
        kept = weights == (1 if operator == "istream" else -1)
        if trip.halves:
            kept &= ~by_retention(instants)
        rows, weights, instants = rows[kept], weights[kept], instants[kept]
    relation = lives.relation.take(rows)
    numbers = copies_of(last, relation, weights) if copies else None
    if trip.halves:
        instants = halved(instants)
    return Told(_table(query, relation), weights, trip.course.told(instants), numbers)


def _whole(query: Query, last: Input, trip: Trip) -> Told:
    """The answer at each instant at which a row of a scan comes or goes."""
    instants = instants_of(query, trip)
    lives = last.alive()
    low, high = instants.searchsorted(lives.begins), instants.searchsorted(lives.ends)
    counts = high - low
    total = int(counts.sum())
    _bounded(total, trip.limits)
    rows = np.repeat(np.arange(len(lives)), counts)
    places = np.arange(total) - np.repeat(np.cumsum(counts) - counts - low, counts)
    order = np.argsort(places, kind="stable")
    told = trip.course.told(instants[places[order]])
    return Told(_table(query, lives.relation.take(rows[order])), np.ones(total, np.int8), told)


def _table(query: Query, relation: Relation) -> pa.Table:
    if not len(relation):
        return schema_of(query.columns).empty_table()
    arrays = [column.to_arrow() for column in relation.columns]
    return pa.Table.from_arrays(arrays, schema=schema_of(query.columns))


def _bounded(changes: int, limits: Limits) -> None:
    if changes > limits.changes_max:
        hint = "take smaller steps, or a narrower window or predicate"
        raise LimitExceeded("changes_max", limits.changes_max, changes, hint=hint)
