"""What a step tells its followers, as it comes together."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from engine.changes.difference import difference
from engine.model.changes import Changes
from engine.queries.subscriber import Subscriber
from engine.queries.whole_answers import Whole
from engine.standing.query import StandingQuery
from tureen.errors import TureenError


@dataclass(slots=True)
class PendingOutput:
    """What a step tells, as it comes together. began: queries whose answers are to be given whole at its end.
    resumed: queries that were paused and run again. broken: as in a StepResult.
    """

    changes: list[Changes] = field(default_factory=list)
    began: list[StandingQuery] = field(default_factory=list)
    resumed: list[StandingQuery] = field(default_factory=list)
    broken: dict[str, Exception] = field(default_factory=dict)

    def tell_differing(
        self, subscriber: Subscriber, query_id: str, was: Whole | TureenError, is_now: Whole | TureenError
    ) -> None:
        """How two answers of a query differ; broken where one of them cannot be given."""
        refused = was if isinstance(was, TureenError) else is_now
        if isinstance(refused, TureenError):
            self.broken[query_id] = refused
        elif isinstance(was, Whole):
            self.tell_difference(subscriber, was, refused, came_alone=subscriber.operator == "istream")

    def tell_difference(self, subscriber: Subscriber, was: Whole, is_now: Whole, *, came_alone: bool) -> None:
        """What the operator of a query lets through of it, at NOW; nothing while there is none. came_alone:
        rows that went are not told.
        """
        now_ms = is_now.now_ms
        if now_ms is None:
            return
        table, weights, copies = difference(was.table, is_now.table)
        if subscriber.operator == "rstream" and len(weights):
            table, weights = is_now.table, np.ones(is_now.table.num_rows, np.int8)
        elif subscriber.operator == "dstream":
            went = np.flatnonzero(weights < 0)
            table, weights, copies = table.take(went), weights[went], copies[went]
        elif came_alone:
            came = np.flatnonzero(weights > 0)
            table, weights, copies = table.take(came), weights[came], copies[came]
        if len(weights):
            numbers = copies if subscriber.copies else None
            at_ms = np.full(len(weights), now_ms)
            self.changes.append(
                Changes.of_one(is_now.query_id, table, weights, at_ms, now_ms, copies=numbers)
            )
