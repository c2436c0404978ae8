"""Leaves that see the sources as one of the queries that read them does."""

from __future__ import annotations

from engine.changes.context import EvaluationContext
from engine.changes.marks import seen_by
from engine.standing.query import StandingQuery


class SeenByReaders:
    """readers: the queries, by id. All begin alike, so whose matches are kept serves for all."""

    readers: dict[str, StandingQuery]

    def _seen(self, context: EvaluationContext) -> EvaluationContext:
        """The transition with the matches that are kept for one of them."""
        reader = next(iter(self.readers.values()))
        return EvaluationContext(seen_by(reader, context.transition), context.limits)
