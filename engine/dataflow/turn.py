"""A turn: the part of a transition that the nodes of a graph are taken through at once.

What a source does on the whole transition is found once (:mod:`engine.changes.scans`); a turn is a range of
instants of it, so short that what its rows are to all queries is in bounds.
"""

from __future__ import annotations

from dataclasses import dataclass

from engine.changes.context import EvaluationContext
from engine.changes.temporal_relation import Interval


@dataclass(frozen=True, slots=True, eq=False)
class Turn:
    """A part of a transition. context: that of the whole transition. interval: the instants of the turn."""

    context: EvaluationContext
    interval: Interval

    @property
    def clock(self) -> int:
        """The instant that the streams come to: known exits until then have happened."""
        return self.context.clock(self.interval.until)

    @classmethod
    def beginning(cls, context: EvaluationContext) -> Turn:
        """The beginning of a transition, before anything moves."""
        return cls(context, Interval(context.interval.since, context.interval.since))
