"""ASOF joins: of the partners of a left row the latest alone, of those that are not after it.

The rows of both inputs stand by key in the order of what is compared, the latest first. When a right row
enters or leaves, the left rows are looked at that are not before it, up to the next right row that stays.

Cost: O(1) a row that enters as the latest, and O(left rows that are looked at + partners passed over).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from engine.algebra.join.stage import Latest
from engine.changes.context import EvaluationContext
from engine.changes.transition import NEVER
from engine.dataflow.arrangements.owned_rows import KeyValues
from engine.dataflow.delta import Delta
from engine.dataflow.node import Node
from engine.dataflow.operators.join import PAIRS, MatchedSlots, Matching, Moved, one_after_another
from engine.dataflow.operators.match import MatchNode
from engine.dataflow.turn import Turn
from engine.kernels import asof as kernels
from engine.language.evaluate import truth
from engine.model.batch import Int32Array
from engine.model.expressions import Expression
from engine.operators.keys import order_keys
from engine.operators.relation import Relation


class AsOfNode(MatchNode):
    """INNER and LEFT. The id of a row is that of the left row, of the right row, and the column."""

    pairs_of_one = True

    def __init__(self, left: Node, right: Node, matching: Matching, latest: Latest) -> None:
        self._latest = latest
        super().__init__(left, right, matching)
        self._gives_pairs = True
        self._keeps_left = matching.kind == "left"
        self.id_words = left.id_words + right.id_words + 1

    def _left_values(self, relation: Relation) -> KeyValues:
        return _in_order(super()._left_values(relation), self._latest.outer, relation)

    def _right_values(self, relation: Relation) -> KeyValues:
        return _in_order(super()._right_values(relation), self._latest.inner, relation)

    def _given(self, turn: Turn, left: Moved, right: Moved) -> Delta:
        for rows in (self._left_rows, self._right_rows):
            rows.cover_keys()
        marks = self._left_rows.moving.copy()
        again = np.empty(len(marks), np.int32)
        again = again[
            : kernels.affected(
                right.arranged(),
                kernels.InOrder(self._left_rows.rows, self._left_rows.order),
                kernels.InOrder(self._right_rows.rows, self._right_rows.order),
                self._right_rows.moving,
                self._latest.strict,
                turn.interval.since,
                marks,
                again,
            )
        ]
        delta = self._of(self._looked_at(np.concatenate([left.arranged(), again]), turn))
        temporal, interval = delta.temporal, turn.interval
        return delta.take(
            np.flatnonzero(interval.among(temporal.valid_from) | interval.among(temporal.valid_to))
        )

    def standing(self, context: EvaluationContext, columns: Int32Array) -> Iterator[Delta]:
        turn = Turn.beginning(context)
        for rows in (self._left_rows, self._right_rows):
            rows.cover_keys()
        slots = self._left_rows.slots()
        for start in range(0, max(1, len(slots)), PAIRS):
            delta = self._of(self._looked_at(slots[start : start + PAIRS], turn))
            there = np.flatnonzero(
                delta.temporal.valid_to > turn.interval.since
            )  # not what a row was before its partner
            delta = delta.take(there)
            yield delta.where(np.isin(delta.owners, columns))

    def _looked_at(self, slots: Int32Array, turn: Turn) -> MatchedSlots:
        """Left rows with their latest partners, and without one."""
        starts, owners = self._left_rows.owners_of(slots)
        of = np.repeat(slots, np.diff(starts))
        pair, partners, begins, ends = kernels.latest(
            of,
            owners,
            kernels.InOrder(self._left_rows.rows, self._left_rows.order),
            kernels.InOrder(self._right_rows.rows, self._right_rows.order),
            self._latest.strict,
            turn.interval.since,
        )
        begins[begins <= turn.interval.since] = NEVER
        found = MatchedSlots(of[pair], partners, begins, ends, np.arange(len(pair) + 1), owners[pair])
        if self._matching.condition is not None:
            columns = self._columns(found.left, found.right)
            true, _ = truth(self._matching.condition, columns, len(found))
            found = found.take(np.flatnonzero(true))
        if not self._keeps_left:
            return found
        return one_after_another([found, self._cut(slots, found, of_left=True)])


def _in_order(keys: KeyValues, compared: Expression, relation: Relation) -> KeyValues:
    """Adds to keys the word by which rows are ordered; a row where ``compared`` is NULL has no partner."""
    (column,), _ = relation.values_of([compared])
    return KeyValues(keys.columns, keys.usable & column.there(), order_keys(column))
