"""A node that gives what a test says, in as many turns as it says: an operator over it is tested alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from engine.changes.context import EvaluationContext
from engine.changes.temporal_relation import Interval, TemporalRelation
from engine.changes.transition import NEVER
from engine.dataflow.delta import Delta
from engine.dataflow.node import Node
from engine.dataflow.turn import Turn
from engine.model.batch import Int32Array, Int64Array
from engine.model.limits import Limits
from engine.operators.relation import Relation
from tests.capacities import small


class GivenNode(Node):
    """Rows that are simply there, each of some columns. ids: of a word each."""

    def __init__(
        self, temporal: TemporalRelation, owners: Sequence[Sequence[int]], ids: Sequence[int] | None = None
    ) -> None:
        super().__init__(settings=small())
        self.id_words = 0 if ids is None else 1
        starts = np.cumsum([0, *map(len, owners)])
        flat = [owner for each in owners for owner in each]
        words = np.array(ids or (), np.int64).reshape(-1, 1)
        make = None if ids is None else lambda: words
        self.whole = Delta(temporal, starts.astype(np.int64), np.array(flat, np.int32), make)

    def want(self, column: int) -> None:
        self.columns.want(column)

    def leave(self, column: int) -> None:
        self.columns.leave(column)

    def standing(self, context: EvaluationContext, columns: Int32Array) -> Iterator[Delta]:
        temporal = self.whole.temporal
        there = (temporal.valid_from <= context.interval.since) & (temporal.valid_to > context.interval.since)
        delta = self.whole.take(np.flatnonzero(there))
        yield delta.where(np.isin(delta.owners, columns))

    def _changed(self, turn: Turn) -> Delta:
        temporal, interval = self.whole.temporal, turn.interval
        delta = self.whole.take(
            np.flatnonzero(interval.among(temporal.valid_from) | interval.among(temporal.valid_to))
        )
        return self.columns.of(delta)

    def of(self, column: int) -> TemporalRelation:
        """The rows of a column."""
        held = np.isin(np.arange(len(self.whole.temporal)), self.whole.rows()[self.whole.owners == column])
        return self.whole.temporal.take(np.flatnonzero(held))


class KnownExitGivenNode(GivenNode):
    """The rows of another one, told with the instants at which they will leave. Those that leave earlier are
    told then.
    """

    exits_known = True

    def __init__(self, node: GivenNode, exits: Int64Array) -> None:
        """exits: int64[n], at or after the end of each row."""
        super().__init__(node.whole.temporal, [], range(len(exits)))
        self.whole = node.whole
        self.exits = exits

    def standing(self, context: EvaluationContext, columns: Int32Array) -> Iterator[Delta]:
        for delta in super().standing(context, columns):
            exits = self.exits[delta.ids_of()[:, 0]]
            yield _with_exits(delta, exits)

    def _changed(self, turn: Turn) -> Delta:
        delta, interval = super()._changed(turn), turn.interval
        exits, temporal = self.exits[delta.ids_of()[:, 0]], delta.temporal
        enters = temporal.valid_from > interval.since
        is_early = (temporal.valid_to < exits) & (temporal.valid_to <= interval.until)
        told = _with_exits(delta, np.where(is_early, temporal.valid_to, exits))
        return told.take(np.flatnonzero(enters | is_early))

    def read(self, context: EvaluationContext, ids: Int64Array) -> Relation:
        return self.whole.temporal.relation.take(ids[:, 0])


def _with_exits(delta: Delta, exits: Int64Array) -> Delta:
    temporal = TemporalRelation(delta.temporal.relation, delta.temporal.valid_from, exits)
    return Delta(temporal, delta.starts, delta.owners, delta.ids)


LIMITS = Limits()


@dataclass(frozen=True)
class GivenTrip:
    """A transition that nobody asks for its sources, and that is not measured."""

    interval: Interval
    limits: Limits = LIMITS
    laps: None = None

    def clock(self, instant: int) -> int:
        """No table moves alone."""
        return instant


def transitions(interval: Interval, cuts: Sequence[int]) -> Iterator[tuple[Any, Interval]]:
    """A way in transitions that end at these instants."""
    since = interval.since
    for until in [*cuts, interval.until]:
        if until > (since if since != NEVER else -1):
            part = Interval(since, until)
            yield GivenTrip(part), part
            since = until
