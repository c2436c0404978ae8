"""Joins in which it matters whether a row has a partner: outer joins, IN and EXISTS, and their negations.

Whether a row has one changes while its partners enter and leave, for each column by itself. On a turn the
rows that move, and those whose partners do, are looked at with all partners that they have: each life is cut
where the first partner enters and the last one leaves.

Cost: O(rows that are looked at + their partners).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from engine.changes.context import EvaluationContext
from engine.changes.temporal_relation import TemporalRelation
from engine.changes.transition import FOREVER
from engine.dataflow.arrangements.keyed_rows import KeyedRows
from engine.dataflow.delta import Delta
from engine.dataflow.node import Node
from engine.dataflow.operators.join import PAIRS, JoinNode, MatchedSlots, Matching, Moved, one_after_another
from engine.dataflow.turn import Turn
from engine.kernels import covers
from engine.kernels.arranged import NOBODY
from engine.model.batch import Int32Array, Int64Array
from engine.operators.relation import Relation

EVERYBODY = -1
"""The last word of the id of a pair, which may be of many columns."""


class MatchNode(JoinNode[KeyedRows]):
    """The id of a row is that of the left row, of the right row where the kind gives pairs (both with words
    that stand for a row that is missing), and the column that the row is of. pairs_of_one: a pair is of one
    column too.
    """

    keeps_lonely = True
    pairs_of_one = False

    def __init__(self, left: Node, right: Node, matching: Matching) -> None:
        super().__init__(left, right, matching)
        kind = matching.kind
        self._gives_pairs = kind in ("left", "right", "full")
        if not self._gives_pairs:
            self.ordered = left.ordered
        self._looks_left = kind != "right"
        self._looks_right = kind in ("right", "full")
        self.id_words = left.id_words + 1 + (right.id_words if self._gives_pairs else 0)

    def _rows_of(self, node: Node) -> KeyedRows:
        return KeyedRows(
            self._keys, node.id_words, keeps_all=self.keeps_lonely, capacities=self.settings.capacities
        )

    def _given(self, turn: Turn, left: Moved, right: Moved) -> Delta:
        of_left = self._pairs(turn, left.arranged(), of_left=True)
        of_right = self._pairs(turn, right.arranged(), of_left=False, staying=True)
        pieces = [of_left, of_right] if self._gives_pairs else []
        if self._looks_left:
            again = np.unique(of_right.left)
            partners = one_after_another([of_left, self._pairs(turn, again, of_left=True)])
            pieces.append(self._cut(np.concatenate([left.arranged(), again]), partners, of_left=True))
        if self._looks_right:
            again = np.unique(of_left.right)
            again = np.concatenate([right.arranged(), again[~self._right_rows.moving[again]]])
            pieces.append(self._cut(again, self._pairs(turn, again, of_left=False), of_left=False))
        delta = self._of(one_after_another(pieces))
        temporal, interval = delta.temporal, turn.interval
        return delta.take(
            np.flatnonzero(interval.among(temporal.valid_from) | interval.among(temporal.valid_to))
        )

    def standing(self, context: EvaluationContext, columns: Int32Array) -> Iterator[Delta]:
        turn = Turn.beginning(context)
        for of_left in (True, False) if self._looks_right else (True,):
            slots = (self._left_rows if of_left else self._right_rows).slots()
            for start in range(0, max(1, len(slots)), PAIRS):
                piece = slots[start : start + PAIRS]
                partners = self._pairs(turn, piece, of_left=of_left)
                pieces = [partners] if of_left and self._gives_pairs else []
                if self._looks_left or not of_left:
                    pieces.append(self._cut(piece, partners, of_left=of_left))
                delta = self._of(one_after_another(pieces))
                yield delta.where(np.isin(delta.owners, columns))

    def _cut(self, slots: Int32Array, partners: MatchedSlots, *, of_left: bool) -> MatchedSlots:
        """Rows of an input while they have partners (``semi``), or while they have none, each piece of one
        column. slots: each once. partners: all that these rows have.
        """
        rows = self._left_rows if of_left else self._right_rows
        starts, owners = rows.owners_of(slots)
        row = np.repeat(np.arange(len(slots)), np.diff(starts))
        place_of = np.empty(len(rows.moving), np.int64)
        place_of[slots] = np.arange(len(slots))
        pair = np.repeat(np.arange(len(partners)), np.diff(partners.starts))
        near = (partners.left if of_left else partners.right)[pair]
        covered = np.searchsorted(row << 32 | owners, place_of[near] << 32 | partners.owners)
        begins, ends = partners.valid_from[pair], partners.valid_to[pair]
        order = np.lexsort((begins, covered))
        first = np.searchsorted(covered[order], np.arange(len(row) + 1))
        room = len(row) + len(order)
        found, from_, until = np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room, np.int64)
        count = covers.cut_out(
            rows.rows.valid_from[slots[row]],
            rows.rows.valid_to[slots[row]],
            first,
            begins[order],
            ends[order],
            self._matching.kind == "semi",
            found,
            from_,
            until,
        )
        found = found[:count]
        one, nobody = slots[row[found]], np.full(count, NOBODY, np.int32)
        left, right = (one, nobody) if of_left else (nobody, one)
        return MatchedSlots(left, right, from_[:count], until[:count], np.arange(count + 1), owners[found])

    def _of(self, pairs: MatchedSlots) -> Delta:
        columns = self._columns(pairs.left, pairs.right)
        if not self._gives_pairs:
            columns = self._left_rows.columns(pairs.left)
        temporal = TemporalRelation(Relation(columns, len(pairs)), pairs.valid_from, pairs.valid_to)
        delta = Delta(temporal, pairs.starts, pairs.owners, lambda: self._ids(pairs))
        return self.columns.of(delta)

    def _ids(self, pairs: MatchedSlots) -> Int64Array:
        words = [_or(self._left_rows.ids_of(pairs.left), pairs.left, FOREVER)]
        of_one = (pairs.right == NOBODY) | (pairs.left == NOBODY) | self.pairs_of_one
        if self._gives_pairs:
            words.append(_or(self._right_rows.ids_of(pairs.right), pairs.right, NOBODY))
        owner = np.where(of_one, pairs.owners[pairs.starts[:-1]], EVERYBODY)
        return np.hstack([*words, owner.reshape(-1, 1)])


def _or(ids: Int64Array, slots: Int32Array, missing: int) -> Int64Array:
    ids[slots == NOBODY] = missing
    return ids
