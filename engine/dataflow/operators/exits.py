"""From exits that are foretold to exits that are told when they happen, for readers that need these.

The rows stand in a buffer (:mod:`engine.dataflow.buffers`) by exit; their values are read from below when
they leave. Cost: that of the buffer.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from engine.changes.context import EvaluationContext
from engine.changes.temporal_relation import TemporalRelation, one_after_another
from engine.dataflow.arrangements.foretold_rows import ForetoldRows
from engine.dataflow.arrangements.keys import Keys
from engine.dataflow.arrangements.owned_rows import KeyValues
from engine.dataflow.delta import Delta
from engine.dataflow.node import Above, Node
from engine.dataflow.policy import Edge
from engine.dataflow.turn import Turn
from engine.model.batch import Int32Array, Int64Array
from engine.operators.relation import Relation


class ExitsNode(Above):
    """The same rows, with each exit told at its instant."""

    def __init__(self, below: Node, edge: Edge) -> None:
        super().__init__(below)
        assert below.foretold
        self.id_words, self.ordered, self.telling = below.id_words, below.ordered, below.telling
        self._edge = edge
        self._context: EvaluationContext | None = None
        self.forget()

    def forget(self) -> None:
        self._rows = ForetoldRows(Keys([]), self.below.id_words, self._edge, self._read_rows)
        self._coming = bool(self.columns.count)

    def _came(self, column: int) -> None:
        self._coming = True

    def _went(self, column: int) -> None:
        if not self.columns.count:
            self.forget()

    def begin(self, context: EvaluationContext) -> None:
        self._context = context
        super().begin(context)

    def rest(self) -> None:
        super().rest()
        self._context = None

    def _hydrate(self, context: EvaluationContext) -> None:
        if self._coming:
            self.forget()
            self._coming = False
            for delta in self.below.standing(context, self.columns.all()):
                self.visited += len(delta.temporal)
                self._rows.learn(delta.temporal.relation.columns, None)
                self._rows.stand(delta, _without_keys(delta))

    def standing(self, context: EvaluationContext, columns: Int32Array) -> Iterator[Delta]:
        return self.below.standing(context, columns)

    def read(self, context: EvaluationContext, ids: Int64Array) -> Relation:
        return self.below.read(context, ids)

    def _read_rows(self, ids: Int64Array) -> Relation:
        assert self._context is not None
        return self.below.read(self._context, ids)

    def _changed(self, turn: Turn) -> Delta:
        delta = self._below(turn)
        interval, temporal = turn.interval, delta.temporal
        self.visited += len(temporal)
        self._rows.learn(temporal.relation.columns, None)
        self._rows.turned(self._rows.apply(delta, _without_keys(delta), interval))
        left = self._rows.take_left(interval.until)
        leaves = self._leaving(left)
        self._rows.let_go(left)
        stood = leaves.temporal.valid_from <= interval.since
        return _both(delta, leaves if stood.all() else leaves.take(np.flatnonzero(stood)))

    def _leaving(self, slots: Int32Array) -> Delta:
        """Rows that leave."""
        starts, owners = self._rows.owners_of(slots)
        ids = self._rows.ids_of(slots)
        rows = self._rows.rows
        temporal = TemporalRelation(
            Relation(self._rows.values_of(ids), len(slots)), rows.valid_from[slots], rows.valid_to[slots]
        )
        return Delta(temporal, starts, owners, lambda: ids)

    @property
    def rows(self) -> int:
        return len(self._rows)

    @property
    def nbytes(self) -> int:
        return self._rows.nbytes

    def _check(self) -> None:
        self._rows._check()


def _without_keys(delta: Delta) -> KeyValues:
    return KeyValues([], np.ones(len(delta.temporal), np.bool_))


def _both(one: Delta, other: Delta) -> Delta:
    """The rows of two deltas."""
    if not len(one) or not len(other):
        return one if len(one) else other
    starts = np.concatenate([one.starts, other.starts[1:] + len(one)])
    owners = np.concatenate([one.owners, other.owners])
    ids = lambda: np.concatenate([one.ids_of(), other.ids_of()])  # noqa: E731
    return Delta(one_after_another([one.temporal, other.temporal]), starts, owners, ids)
