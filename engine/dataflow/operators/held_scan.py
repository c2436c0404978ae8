"""Scans of streams without windows whose rows stay however old they are: joins above them let rows go.

What is kept of a row that the stream has let go of is with those joins. When their state is made anew, they
are given the rows that are retained, and the others that were held for them
(:mod:`engine.dataflow.releases.held_rows`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from engine.changes.context import EvaluationContext
from engine.changes.temporal_relation import TemporalRelation
from engine.changes.transition import FOREVER, NEVER
from engine.dataflow.buffers.settings import StateSettings
from engine.dataflow.columns import KeyNumbers
from engine.dataflow.delta import Delta
from engine.dataflow.node import Node
from engine.dataflow.operators.scan import Predicate, ScanNode
from engine.dataflow.releases.held_rows import HeldRows
from engine.language.evaluate import truth
from engine.language.query import Scan
from engine.model.batch import Int32Array, Int64Array
from engine.model.expressions import Expression


@dataclass(frozen=True, slots=True)
class Holding:
    """What a query reads of a stream. slot: of its predicate; None where its matches are not kept. since: the
    step in which it began to be followed: rows that the stream had let go of by then are not among its rows.
    """

    query_id: str
    predicate: Expression | None
    slot: int | None
    since: int


class HeldScanNode(ScanNode):
    """A column is a query's own: each has rows of its own. held: those that the stream let go of."""

    def __init__(self, kind: Scan, held: HeldRows, settings: StateSettings | None = None) -> None:
        super().__init__(kind, settings=settings)
        self.held = held
        self._holdings: KeyNumbers[Holding] = KeyNumbers()
        self._resumed: set[int] = set()
        """Columns that had state which was lost: of what it was made from some rows are needed alone."""

    def column_of(self, holding: Holding) -> int:
        """The column of a query."""
        return self._holdings.number(holding)

    def _give_back(self, column: int) -> None:
        self._holdings.give_back(column)
        self._resumed.discard(column)

    def _predicate(self, column: int) -> Predicate:
        holding = self._holdings[column]
        return holding.predicate if holding.slot is None else holding.slot

    def resumed(self) -> None:
        """The state of all columns that there are was lost, or is not there yet."""
        self._resumed = set(self.columns.all().tolist())

    def moved(self, context: EvaluationContext) -> TemporalRelation:
        """The rows that enter."""
        changed = context.scan_history(self.kind).changed()
        return _staying(changed.where(context.interval.among(changed.valid_from)))

    def standing(self, context: EvaluationContext, columns: Int32Array) -> Iterator[Delta]:
        temporal = context.scan_history(self.kind).alive()
        temporal = _staying(temporal.where(temporal.valid_from <= context.interval.since))
        self.visited += len(temporal) + len(self.held)
        rows = context.transition.by_source[self.kind.source].at.rows
        resumed = np.array([int(column) in self._resumed for column in columns], np.bool_)
        yield from self._in_pieces(temporal, rows, columns[~resumed])
        if resumed.any():
            needed = self.held.may_need(temporal.relation.stored_ordinals())
            yield from self._in_pieces(temporal.where(needed), rows, columns[resumed])
        for column in columns.tolist():
            yield self._held_of(column)

    standing_sets = Node.standing_sets

    def _held_of(self, column: int) -> Delta:
        """The rows of a column that the stream let go of."""
        holding = self._holdings[column]
        relation, ordinals = self.held.since(holding.since)
        if column in self._resumed:
            needed = np.flatnonzero(self.held.may_need(ordinals))
            relation, ordinals = relation.take(needed), ordinals[needed]
        if holding.predicate is not None:
            accepted = np.flatnonzero(truth(holding.predicate, relation.columns, len(relation))[0])
            relation, ordinals = relation.take(accepted), ordinals[accepted]
        n = len(ordinals)
        temporal = TemporalRelation(relation, np.full(n, NEVER), np.full(n, FOREVER))

        def ids() -> Int64Array:
            return ordinals.reshape(-1, 1)

        return Delta.of_one_each(temporal, np.full(n, column, np.int32), ids)


def _staying(temporal: TemporalRelation) -> TemporalRelation:
    return TemporalRelation(temporal.relation, temporal.valid_from, np.full(len(temporal), FOREVER))
