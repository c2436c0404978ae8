"""Queries that have no temporal form: evaluated whenever a row of one of their scans comes or goes.

Between two such instants nothing changes, so successive answers tell what does. Cost: an evaluation an
instant, and O(rows of all these answers); their number is bounded.
"""

from __future__ import annotations

from engine.changes.answer_instants import instants_of
from engine.changes.context import EvaluationContext
from engine.changes.streams import Streams
from engine.changes.succession import succession
from engine.changes.temporal_relation import TemporalRelation
from engine.language.query import Query
from engine.operators.pipeline import relation_of
from engine.operators.relation import Relation


class Evaluations:
    """What a query gives in the interval, in no order."""

    def __init__(self, query: Query, context: EvaluationContext, streams: Streams) -> None:
        self._query = query
        self._streams = streams
        self._context = context
        self._lives: TemporalRelation | None = None

    def changed(self) -> TemporalRelation:
        """Rows that come or go."""
        return self.alive().changing(self._context.interval)

    def alive(self) -> TemporalRelation:
        """Rows that are there at some instant."""
        if self._lives is None:
            instants = instants_of(self._query, self._context)
            following = (self._at(instant) for instant in instants.tolist())
            at_first = self._at(self._context.interval.since)
            self._lives = succession(at_first, following, instants, self._context.limits)
        return self._lives

    def _at(self, instant: int) -> Relation:
        context = self._context
        at = {source: context.standing(source, instant) for source in context.transition.by_source}
        return relation_of(self._query, at, context.limits, self._streams)
