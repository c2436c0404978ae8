"""Queries that have no temporal form: evaluated whenever a row of one of their scans comes or goes.

Between two such instants nothing changes, so successive answers tell what does. Cost: an evaluation an
instant, and O(rows of all these answers); their number is bounded.
"""

from __future__ import annotations

import numpy as np

from engine.changes.lives import Lives
from engine.changes.succession import succession
from engine.changes.trip import Trip
from engine.language.query import Query
from engine.model.batch import Int64Array
from engine.operators.pipeline import relation_of
from engine.operators.relation import Relation


class Evaluations:
    """What a query gives on the way, in no order."""

    def __init__(self, query: Query, trip: Trip) -> None:
        self._query = query
        self._trip = trip
        self._lives: Lives | None = None

    def changed(self) -> Lives:
        """Rows that come or go."""
        return self.alive().changing(self._trip.way)

    def alive(self) -> Lives:
        """Rows that are there at some instant."""
        if self._lives is None:
            instants = instants_of(self._query, self._trip)
            following = (self._at(instant) for instant in instants.tolist())
            at_first = self._at(self._trip.way.since)
            self._lives = succession(at_first, following, instants, self._trip.limits)
        return self._lives

    def _at(self, instant: int) -> Relation:
        trip = self._trip
        at = {source: trip.standing(source, instant) for source in self._query.sources}
        return relation_of(self._query, at, trip.limits)


def instants_of(query: Query, trip: Trip) -> Int64Array:
    """int64, ascending, in the scale of lives: when rows of any of a query's scans come or go."""
    found = [trip.scanning(scan).changed().instants(trip.way) for scan in query.scans()]
    return np.unique(np.concatenate(found))
