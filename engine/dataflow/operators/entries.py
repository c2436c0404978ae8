"""Entries: the rows that enter windows of many sizes over a source, each told once.

A row enters every window that ends at NOW at its own instant; when it leaves one is for the reader to know,
who holds windows of the sizes that it needs. The node's own window is the widest that is held.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from engine.changes.context import EvaluationContext
from engine.changes.source_interval import doubled
from engine.changes.temporal_relation import TemporalRelation
from engine.dataflow.buffers.settings import StateSettings
from engine.dataflow.delta import Delta
from engine.dataflow.node import Node
from engine.dataflow.operators.scan import ScanNode
from engine.language.query import Scan
from engine.model.batch import Int32Array
from engine.windows.clauses import NOW, Instant, TimeWindow


class EntriesNode(ScanNode):
    """Exits are not told. Rows that stand are given with the instants at which they entered."""

    def __init__(self, kind: Scan, settings: StateSettings | None = None) -> None:
        """kind: a scan without a predicate; its window does not matter."""
        super().__init__(_over(kind, 0), exits_known=True, settings=settings)
        self._held = Counter[int]()

    def hold(self, span_ms: int) -> None:
        """Somebody reads a window of this size: rows are in it for so many ms after their own."""
        self._held[span_ms] += 1
        self._fit()

    def release(self, span_ms: int) -> None:
        """One of those does not any more."""
        self._held[span_ms] -= 1
        if not self._held[span_ms]:
            del self._held[span_ms]
        self._fit()

    def _fit(self) -> None:
        widest = max(self._held, default=0)
        if _over(self.kind, widest) != self.kind:
            self.kind = _over(self.kind, widest)

    def moves(self, context: EvaluationContext) -> bool:
        """Whether rows may leave a window on a transition."""
        return context.transition.by_source[self.kind.source].moves

    def standing(self, context: EvaluationContext, columns: Int32Array) -> Iterator[Delta]:
        for delta in super().standing(context, columns):
            temporal = delta.temporal
            entered = doubled(self._timestamps(context, temporal.relation))
            yield replace(delta, temporal=TemporalRelation(temporal.relation, entered, temporal.valid_to))

    standing_sets = Node.standing_sets


def leaf_of(node: Node) -> EntriesNode:
    """The entries that an operator selects from, or computes its rows of."""
    while not isinstance(node, EntriesNode):
        (node,) = node.inputs
    return node


def _over(kind: Scan, span_ms: int) -> Scan:
    return replace(kind, window=TimeWindow(Instant(relative=True, ms=-span_ms), NOW))
