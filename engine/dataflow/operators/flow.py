"""What has no operator of its own: the first stages of one query, worked out from the rows of the sources.

Cost: that of :mod:`engine.changes.flow`, a pass a transition for each query that one concerns; nothing is
kept.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from engine.changes.courses import seen_by
from engine.changes.flow import flow_of
from engine.changes.lives import Input, Lives
from engine.changes.stretch import halved
from engine.changes.trip import Trip
from engine.dataflow.delta import Delta
from engine.dataflow.node import Node
from engine.dataflow.turn import Turn
from engine.language.query import Query
from engine.model.batch import Int32Array, Int64Array
from engine.standing.query import StandingQuery


class FlowNode(Node):
    """The first stages of a query, the same for all that begin with them. It has one column."""

    def __init__(self, query: Query) -> None:
        super().__init__()
        self._query = query
        self.readers: dict[str, StandingQuery] = {}
        """Queries that begin so; they see the sources with the matches that are kept for one of them."""
        self._trip: Trip | None = None
        self._own: Trip | None = None
        self._flow: Input | None = None

    def want(self, column: int) -> None:
        self.columns.want(column)

    def leave(self, column: int) -> None:
        self.columns.leave(column)

    def alive(self, trip: Trip) -> Lives:
        """The rows that are there at an instant of a transition. Raises LimitExceeded."""
        return self._over(trip).alive()

    def instants(self, trip: Trip) -> Int64Array:
        """int64, ascending, ms: when rows of a scan come or go on a transition, but for those that are there
        for less than a millisecond.
        """
        self._over(trip)
        assert self._own is not None
        found: list[Int64Array] = []
        for scan in self._query.scans():
            lives = self._own.scanning(scan).changed()
            lasting = halved(lives.begins) != halved(lives.ends)
            both = lives.begins[lasting], lives.ends[lasting]
            found += [halved(instants[trip.way.among(instants)]) for instants in both]
        return np.unique(np.concatenate(found))

    def moved(self, trip: Trip) -> Lives:
        """The rows that come or go on a transition. Raises LimitExceeded."""
        return self._over(trip).changed()

    def standing(self, trip: Trip, columns: Int32Array) -> Iterator[Delta]:
        lives = self._over(trip).alive()
        yield self._of(lives.where(lives.begins <= trip.way.since))

    def _changed(self, turn: Turn) -> Delta:
        return self._of(self.moved(turn.trip).changing(turn.way))

    def _over(self, trip: Trip) -> Input:
        if self._trip is not trip or self._flow is None:
            reader = next(iter(self.readers.values()))
            self._own = Trip(seen_by(reader, trip.course), trip.limits)
            self._trip, self._flow = trip, flow_of(self._query, self._own)
        return self._flow

    def rest(self) -> None:
        super().rest()
        self._trip = self._own = self._flow = None

    def _of(self, lives: Lives) -> Delta:
        return Delta.of_one_each(lives, np.zeros(len(lives), np.int32))
