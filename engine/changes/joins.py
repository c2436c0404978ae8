"""Joins over a way."""

from __future__ import annotations

from engine.changes.lives import Input
from engine.changes.trip import Trip
from engine.language.query import Join, SemiJoin


def joined(stage: Join | SemiJoin, left: Input, right: Input, trip: Trip) -> Input | None:
    """None: there is no temporal form."""
    return None
