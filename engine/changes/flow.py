"""The stages of a query over a way, each from the one below it: what :func:`flow_of` makes of a plan.

A stage that has no temporal form, or whose input has lost the order that it goes by, is evaluated at every
instant at which a row of any scan comes or goes (:mod:`engine.changes.instants`), and with it all of its
query.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from engine.changes import distinct, groups, numbered
from engine.changes.instants import Evaluations
from engine.changes.joins import Joining
from engine.changes.lives import Input, Lives, Touched, Way
from engine.changes.membership import membership
from engine.changes.trip import Trip
from engine.language.evaluate import truth
from engine.language.expressions import Column as ColumnOf
from engine.language.query import (
    Aggregate,
    Distinct,
    Filter,
    Join,
    Limit,
    Output,
    Project,
    Query,
    RowNumber,
    SemiJoin,
    Sort,
    Stage,
)
from engine.operators.pipeline import projected


def flow_of(query: Query, trip: Trip) -> Input:
    """What the last stage of a query gives on the way."""
    below: Input = trip.scanning(query.scan)
    stages = list(query.stages)
    while stages:
        stage = stages.pop(0)
        following = stages[0] if stages else None
        if isinstance(stage, Sort) and isinstance(following, Limit):
            stages.pop(0)
            above = _firsts(stage, following, below, trip)
        else:
            above = _above(stage, below, trip)
        if above is None:
            return Evaluations(query, trip)
        below = above
    return below


def _above(stage: Stage, below: Input, trip: Trip) -> Input | None:
    """None: there is no temporal form."""
    limits = trip.limits
    match stage:
        case Project(outputs):
            return Projected(outputs, below)
        case Filter():
            return Filtered(stage, below)
        case Sort():
            return Reordered(below)
        case Limit():
            return _firsts(None, stage, below, trip)
        case Aggregate():
            return groups.Groups(stage, below, limits) if groups.can(stage, below) else None
        case Distinct():
            return distinct.Distincts(below)
        case RowNumber():
            return numbered.Numbered(stage, below, limits) if numbered.can(stage, below) else None
        case SemiJoin():
            return membership(stage, below, flow_of(stage.inner, trip), limits)
        case Join():
            inner = flow_of(stage.inner, trip)
            return Joining(stage, below, inner, limits) if stage.latest is None or inner.ordered else None


def _firsts(sort: Sort | None, limit: Limit, below: Input, trip: Trip) -> Input | None:
    return (
        numbered.Firsts(sort, limit, below, trip.limits) if numbered.can_first(sort, limit, below) else None
    )


class Projected:
    """Columns computed row by row. Computed once for the rows that are asked for."""

    def __init__(self, outputs: Sequence[Output], below: Input) -> None:
        self.way: Way = below.way
        self.ordered = below.ordered
        self._outputs = outputs
        self._below = below
        self._changed: Lives | None = None
        self._alive: Lives | None = None

    def changed(self) -> Lives:
        """Rows that come or go."""
        if self._changed is None:
            self._changed = self._of(self._below.changed())
        return self._changed

    def alive(self, touched: Touched | None = None) -> Lives:
        """Rows that are there at some instant."""
        if touched is None:
            if self._alive is None:
                self._alive = self._of(self._below.alive())
            return self._alive
        keys = [self._outputs[key.index].expression for key in touched.keys if isinstance(key, ColumnOf)]
        if len(keys) == len(touched.keys):
            return self._of(self._below.alive(Touched(tuple(keys), touched.values, touched.n)))
        alive = self.alive()
        return alive.where(touched.among(alive.relation))

    def _of(self, lives: Lives) -> Lives:
        relation, _ = projected(self._outputs, lives.relation)
        return Lives(relation, lives.begins, lives.ends)


class Filtered:
    """Rows where a predicate is TRUE."""

    def __init__(self, stage: Filter, below: Input) -> None:
        self.way: Way = below.way
        self.ordered = below.ordered
        self._predicate = stage.predicate
        self._below = below
        self._changed: Lives | None = None

    def changed(self) -> Lives:
        """Rows that come or go."""
        if self._changed is None:
            self._changed = self._of(self._below.changed())
        return self._changed

    def alive(self, touched: Touched | None = None) -> Lives:
        """Rows that are there at some instant."""
        return self._of(self._below.alive(touched))

    def _of(self, lives: Lives) -> Lives:
        true, _ = truth(self._predicate, lives.relation.columns, len(lives))
        return lives.take(np.flatnonzero(true))


class Reordered:
    """The same rows in an order that is of no meaning to an answer's changes."""

    ordered = False

    def __init__(self, below: Input) -> None:
        self.way: Way = below.way
        self._below = below

    def changed(self) -> Lives:
        """Rows that come or go."""
        return self._below.changed()

    def alive(self, touched: Touched | None = None) -> Lives:
        """Rows that are there at some instant."""
        return self._below.alive(touched)
