"""From exits that are known to exits that are told when they happen, for readers that need these.

The rows stand in a buffer (:mod:`engine.dataflow.buffers`) by exit; their values are read from below when
they leave. Cost: that of the buffer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from engine.changes.context import EvaluationContext
from engine.changes.temporal_relation import TemporalRelation, one_after_another
from engine.dataflow.arrangements.early_rows import EarlyRows
from engine.dataflow.arrangements.exit_rows import ExitRows, RowBlock
from engine.dataflow.arrangements.partitioned_rows import PartitionedRows
from engine.dataflow.arrangements.scanned_rows import ScannedRows
from engine.dataflow.buffers.buffer import Work
from engine.dataflow.buffers.settings import StateSettings
from engine.dataflow.delta import Delta
from engine.dataflow.kept_columns import KeepsColumns
from engine.dataflow.node import Node, UnaryNode
from engine.dataflow.policy import KeptEdge
from engine.dataflow.turn import Turn
from engine.model.batch import Column, Int32Array, Int64Array
from engine.model.lazy_columns import LazyColumns
from engine.operators.relation import Relation


class ExitsNode(KeepsColumns, UnaryNode):
    """Passes rows on and tells each exit at its instant."""

    def __init__(self, below: Node, edge: KeptEdge) -> None:
        super().__init__(below)
        assert below.exits_known
        self.id_words, self.ordered, self.telling = below.id_words, below.ordered, below.telling
        self._edge = edge
        self.forget()

    def forget(self) -> None:
        self._rows = exit_rows(self._edge, self.id_words, self.settings)
        self._forget_columns()

    def _drop(self, columns: Int32Array) -> None:
        self._rows.drop_columns(columns)

    def _hydrate(self, context: EvaluationContext) -> None:
        if len(self._newly_wanted()):  # a row stands once, with all its columns
            self._rows = exit_rows(self._edge, self.id_words, self.settings)
            for delta in self.below.standing(context, self.columns.all()):
                self.visited += len(delta.temporal)
                self._rows.insert(RowBlock.of(delta))

    def standing(self, context: EvaluationContext, columns: Int32Array) -> Iterator[Delta]:
        return self.below.standing(context, columns)

    def read(self, context: EvaluationContext, ids: Int64Array) -> Relation:
        return self.below.read(context, ids)

    def _changed(self, turn: Turn) -> Delta:
        delta = self._below(turn)
        interval, temporal = turn.interval, delta.temporal
        self.visited += len(temporal)
        stay = temporal.valid_to > interval.until
        if not stay.all():
            early = np.flatnonzero(temporal.valid_from <= interval.since)
            if len(early):
                self._rows.leave_early(delta.ids_of()[early])
        self._rows.insert(RowBlock.of(delta if stay.all() else delta.take(np.flatnonzero(stay))))
        left = self._rows.expire(turn.clock)
        leaves = self._leaving(left, turn.context, len(temporal.relation.columns))
        return _both(delta, self.columns.of(leaves))

    def _leaving(self, block: RowBlock, context: EvaluationContext, width: int) -> Delta:
        """Rows that leave."""
        columns = LazyColumns(width, _Values(self.below, context, block.ids).column)
        temporal = TemporalRelation(Relation(columns, block.n), block.valid_from, block.valid_to)
        return Delta(temporal, *block.spread(), lambda: block.ids)

    @property
    def state_work(self) -> Work:
        return self._rows.work

    @property
    def rows(self) -> int:
        return len(self._rows)

    @property
    def nbytes(self) -> int:
        return self._rows.nbytes

    def _check(self) -> None:
        self._rows._check()


def exit_rows(edge: KeptEdge, id_words: int, settings: StateSettings | None = None) -> ExitRows:
    """Where rows of an edge with known exits stand until they leave."""
    if edge.is_early:
        return EarlyRows(id_words, edge, settings)
    if edge.policy.strategy == "direct":
        return ScannedRows(id_words)
    return PartitionedRows(id_words, edge.span, edge.policy.partitions, settings)


@dataclass(slots=True)
class _Values:
    """The values of rows, read when the first column is."""

    node: Node
    context: EvaluationContext
    ids: Int64Array
    read: Relation | None = None

    def column(self, place: int) -> Column:
        if self.read is None:
            self.read = self.node.read(self.context, self.ids)
        return self.read.columns[place]


def _both(one: Delta, other: Delta) -> Delta:
    """The rows of two deltas."""
    if not len(one) or not len(other):
        return one if len(one) else other
    starts = np.concatenate([one.starts, other.starts[1:] + len(one)])
    owners = np.concatenate([one.owners, other.owners])
    ids = lambda: np.concatenate([one.ids_of(), other.ids_of()])  # noqa: E731
    return Delta(one_after_another([one.temporal, other.temporal]), starts, owners, ids)
