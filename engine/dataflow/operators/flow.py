"""What has no operator of its own: the first stages of one query, worked out from the rows of the sources
(:mod:`engine.changes.instants`), or its scan alone where its windows depend on its predicate.

Cost, on transitions that may concern the query: stages take an evaluation for each instant at which a row of
a scan comes or goes, a scan alone takes what :mod:`engine.changes.scans` says; nothing is kept. A stream of a
subquery takes what the subquery's changes take, and the elements that its window holds are kept; where
retention takes the rows that they are made of, it takes an evaluation for each instant.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from engine.changes.context import EvaluationContext
from engine.changes.instants import Evaluations
from engine.changes.known_elements import is_settled
from engine.changes.stream_changes import Log, StreamChanges
from engine.changes.streams import Streams
from engine.changes.temporal_relation import Input, TemporalRelation
from engine.dataflow.buffers.settings import StateSettings
from engine.dataflow.delta import Delta
from engine.dataflow.node import Node
from engine.dataflow.operators.readers import SeenByReaders
from engine.dataflow.turn import Turn
from engine.language.query import Query
from engine.model.batch import Int32Array


class FlowNode(SeenByReaders, Node):
    """The first stages of a query, the same for all that begin with them. It has one column."""

    def __init__(self, query: Query, streams: Streams, settings: StateSettings | None = None) -> None:
        super().__init__(settings=settings)
        self._query = query
        self.sources = query.sources
        self._streams = streams
        self.readers = {}
        self._context: EvaluationContext | None = None
        self._flow: Input | None = None
        self._log: Log | None = None
        """What the last transition left of a stream of a subquery."""

    def want(self, column: int) -> None:
        self.columns.want(column)

    def leave(self, column: int) -> None:
        self.columns.leave(column)

    def alive(self, context: EvaluationContext) -> TemporalRelation:
        """The rows that are there at an instant of a transition. Raises LimitExceeded."""
        return self._over(context).alive()

    def moved(self, context: EvaluationContext) -> TemporalRelation:
        """The rows that come or go on a transition. Raises LimitExceeded."""
        return self._over(context).changed()

    def standing(self, context: EvaluationContext, columns: Int32Array) -> Iterator[Delta]:
        temporal = self._over(context).alive()
        yield self._of(temporal.where(temporal.valid_from <= context.interval.since))

    def _changed(self, turn: Turn) -> Delta:
        return self._of(self.moved(turn.context).changing(turn.interval))

    def _over(self, context: EvaluationContext) -> Input:
        if self._context is not context or self._flow is None:
            self._context = context
            self._flow = self._flow_over(self._seen(context))
        return self._flow

    def _flow_over(self, context: EvaluationContext) -> Input:
        if not self._query.stages:
            return context.scan_history(self._query.scan)
        last = self._query.stages[-1].stream
        if last is not None and is_settled(self._query, context, self._streams):
            log = self._log
            if log is not None and log.until_ms != context.transition.since_ms:
                log = None
            return StreamChanges(self._query, last, context, self._streams, log)
        return Evaluations(self._query, context, self._streams)

    def rest(self) -> None:
        super().rest()
        self._log = self._flow.log if isinstance(self._flow, StreamChanges) else None
        self._context = self._flow = None

    def forget(self) -> None:
        self._log = None

    @property
    def rows(self) -> int:
        return 0 if self._log is None else len(self._log.elements.timestamps)

    @property
    def nbytes(self) -> int:
        if self._log is None:
            return 0
        kept = 0 if self._log.followed is None else self._log.followed.nbytes
        return kept + self._log.elements.nbytes

    def _of(self, temporal: TemporalRelation) -> Delta:
        return Delta.of_one_each(temporal, np.zeros(len(temporal), np.int32))
