"""A turn: the part of a transition that the nodes of a graph are taken through at once.

What a source does on the whole transition is found once (:mod:`engine.changes.scans`); a turn is a range of
instants of it, so short that what its rows are to all queries is in bounds.
"""

from __future__ import annotations

from dataclasses import dataclass

from engine.changes.lives import Way
from engine.changes.trip import Trip


@dataclass(frozen=True, slots=True, eq=False)
class Turn:
    """trip: the whole transition. way: the instants of the turn."""

    trip: Trip
    way: Way

    @classmethod
    def beginning(cls, trip: Trip) -> Turn:
        """The beginning of a transition, before anything moves."""
        return cls(trip, Way(trip.way.since, trip.way.since))
