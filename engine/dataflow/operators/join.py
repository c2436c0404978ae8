"""Joins: pairs of rows that are equal in keys and satisfy a condition, while both are there.

The rows of both inputs are kept by key (:mod:`engine.dataflow.arrangements.keyed_rows`), those of all
queries of a shape together. A column is a pair of columns, one of each input: a pair of rows belongs to it
where both rows do. On a turn the left rows that move meet all right rows that are there; then the right rows
that move meet the left rows that stay.

Cost: O(rows that move + their partners), and the condition for each pair.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Generic, TypeVar

import numpy as np

from engine.algebra.join.stage import JoinKind, Latest
from engine.changes.context import EvaluationContext
from engine.changes.temporal_relation import TemporalRelation
from engine.dataflow.arrangements.keyed_rows import KeyedRows
from engine.dataflow.arrangements.keys import Keys
from engine.dataflow.arrangements.known_exit_rows import KnownExitRows
from engine.dataflow.arrangements.owned_rows import KeyValues, OwnedRows
from engine.dataflow.buffers.buffer import Work
from engine.dataflow.delta import Delta
from engine.dataflow.kept_columns import KeepsColumns
from engine.dataflow.node import Node
from engine.dataflow.operators.rows import ConditionNode, FilterNode, ProjectNode
from engine.dataflow.operators.two_inputs import TwoInputs
from engine.dataflow.policy import KeptEdge
from engine.dataflow.turn import Turn
from engine.kernels import arranged as kernels
from engine.kernels.arranged import SlotPairs
from engine.language.evaluate import truth
from engine.model.batch import BoolArray, Column, Int32Array, Int64Array
from engine.model.expressions import Expression, columns_of
from engine.model.lazy_columns import LazyColumns
from engine.model.limits import Limits
from engine.model.runs import places_of
from engine.operators.keys import with_one_zero
from engine.operators.relation import Relation
from tureen.errors import LimitExceeded

PAIRS = 16_384
"""Pairs that are looked at at a time, unless one row has more."""


@dataclass(frozen=True, slots=True)
class Matching:
    """What makes two rows partners, and what a join gives. keys: over the rows of each input, of one type.
    read: the places of the columns of pairs that somebody reads; None: all. latest: of ASOF.
    """

    kind: JoinKind
    keys: tuple[tuple[Expression, Expression], ...]
    condition: Expression | None
    read: frozenset[int] | None
    latest: Latest | None = None


@dataclass(frozen=True, slots=True)
class MatchedSlots:
    """Slots of both inputs, when both rows are there, and whose they are: pair i is of the columns
    owners[starts[i]:starts[i + 1]].
    """

    left: Int32Array
    right: Int32Array
    valid_from: Int64Array
    valid_to: Int64Array
    starts: Int64Array
    owners: Int32Array

    def __len__(self) -> int:
        return len(self.left)

    def take(self, places: Int64Array) -> MatchedSlots:
        """Those at these places, in that order."""
        counts = np.diff(self.starts)[places]
        starts = np.concatenate([[0], np.cumsum(counts)])
        owners = self.owners[places_of(self.starts[places], counts)]
        return MatchedSlots(
            self.left[places],
            self.right[places],
            self.valid_from[places],
            self.valid_to[places],
            starts,
            owners,
        )


Kept = tuple[KeptEdge | None, KeptEdge | None]
"""How the rows of inputs with known exits are kept, left and right; None of an input without."""
NO_KNOWN_EXITS: Kept = (None, None)

RIGHT = 1 << 20
"""Columns of the right row may be numbered from here on too."""


Rows = TypeVar("Rows", bound=OwnedRows)


class JoinNode(KeepsColumns, TwoInputs, Generic[Rows]):
    """What all kinds of joins have in common. Its inputs have ids. keeps_lonely: rows that cannot have a
    partner, since their key is NULL, are kept.
    """

    keeps_lonely = False

    def __init__(self, left: Node, right: Node, matching: Matching) -> None:
        super().__init__(left, right)
        assert left.id_words
        assert right.id_words
        self.ordered = left.ordered and right.ordered
        self._matching = matching
        self._context: EvaluationContext | None = None
        self.forget()

    def forget(self) -> None:
        self._keys = Keys([key.type for key, _ in self._matching.keys], self.settings.capacities)
        self._left_rows, self._right_rows = self._rows_of(self.left), self._rows_of(self.right)
        self._forget_columns()
        self._room = self.settings.capacities.first(PAIRS)

    @abstractmethod
    def _rows_of(self, node: Node) -> Rows:
        """Where the rows of an input are kept."""

    # --- columns ----------------------------------------------------------------------------------

    def _drop(self, columns: Int32Array) -> None:
        self._left_rows.drop(columns)
        self._right_rows.drop(columns)

    # --- rows -------------------------------------------------------------------------------------

    def _hydrate(self, context: EvaluationContext) -> None:
        if not self._coming:
            return
        left, right = self._over_of(self._newly_wanted())
        for rows in (self._left_rows, self._right_rows):
            rows.sweep(context.clock(context.interval.since))
        for standing in self.left.standing(context, left.below):
            self.visited += len(standing.temporal)
            delta = left.spread(standing).owned()
            self._learn_left(delta)
            self._left_rows.stand(delta, self._left_values(delta.temporal.relation))
        for standing in self.right.standing(context, right.below):
            self.visited += len(standing.temporal)
            delta = right.spread(standing).owned()
            self._learn_right(delta)
            self._right_rows.stand(delta, self._right_values(delta.temporal.relation))

    def _learn_left(self, delta: Delta) -> None:
        self._left_rows.learn(delta.temporal.relation.columns, self._read)

    def _learn_right(self, delta: Delta) -> None:
        """After the left ones."""
        width, read = self._left_rows.width, self._read
        kept = None if read is None else {place - (RIGHT if place >= RIGHT else width) for place in read}
        self._right_rows.learn(delta.temporal.relation.columns, kept)

    @property
    def _read(self) -> frozenset[int] | None:
        """The places of the columns that somebody reads; None: all."""
        read, condition = self._matching.read, self._matching.condition
        if read is None or condition is None:
            return read
        return read | {column.index for column in columns_of(condition)}

    def _left_values(self, relation: Relation) -> KeyValues:
        return key_values([key for key, _ in self._matching.keys], relation)

    def _right_values(self, relation: Relation) -> KeyValues:
        return key_values([key for _, key in self._matching.keys], relation)

    def _changed(self, turn: Turn) -> Delta:
        left, right = self._below(turn)
        self.visited += len(left.temporal) + len(right.temporal)
        self._learn_left(left)
        self._learn_right(right)
        left_slots = self._left_rows.apply(left, self._left_values(left.temporal.relation), turn.interval)
        right_slots = self._right_rows.apply(
            right, self._right_values(right.temporal.relation), turn.interval
        )
        try:
            return self._given(turn, Moved(left, left_slots), Moved(right, right_slots))
        finally:
            self._left_rows.turned(left_slots)
            self._right_rows.turned(right_slots)

    @abstractmethod
    def _given(self, turn: Turn, left: Moved, right: Moved) -> Delta:
        """What the join gives on a turn on which these rows move, which are arranged."""

    def begin(self, context: EvaluationContext) -> None:
        self._context = context
        super().begin(context)

    def rest(self) -> None:
        context = self._context
        until = None if context is None else context.clock(context.interval.until)
        super().rest()
        if until is not None:
            self._left_rows.settle(until)
            self._right_rows.settle(until)
        self._context = None

    # --- pairs ------------------------------------------------------------------------------------

    def _pairs(self, turn: Turn, slots: Int32Array, *, of_left: bool, staying: bool = False) -> MatchedSlots:
        """The partners of rows of an input that are there with them at an instant of a turn, or at its
        beginning. slots: of the left input, or the right. staying: of those that do not move alone.
        Raises LimitExceeded.
        """
        limits, condition = turn.context.limits, self._matching.condition
        found: list[MatchedSlots] = []
        candidates, total = 0, 0
        for pairs in self._candidates(turn, slots, of_left=of_left, staying=staying):
            candidates += len(pairs)
            if condition is not None:
                check_candidates(candidates, limits)
                columns = self._columns(pairs.left, pairs.right)
                true, _ = truth(condition, columns, len(pairs))
                pairs = pairs.take(np.flatnonzero(true))
            total += len(pairs)
            check_pairs(total, limits)
            found.append(pairs)
        return one_after_another(found)

    def _candidates(
        self, turn: Turn, slots: Int32Array, *, of_left: bool, staying: bool = False
    ) -> Iterator[MatchedSlots]:
        """Yields the pairs of :meth:`_pairs` before the condition is applied, some at a time."""
        near, far = (self._left_rows, self._right_rows) if of_left else (self._right_rows, self._left_rows)
        near.cover_keys()
        far.cover_keys()
        skipped = far.moving if staying else np.zeros(len(far.moving), np.bool_)
        done = 0
        while done < len(slots):
            out = _room_for(self._room)
            before = done
            done, count = kernels.probe(
                slots, done, near.rows, far.rows, skipped, turn.interval.since, turn.interval.until, out
            )
            if done == before:
                self._room *= 2
                continue
            owners = out.owners[: out.starts[count]]
            temporal = out.valid_from[:count], out.valid_to[:count], out.starts[: count + 1], owners
            one, other = out.near[:count], out.far[:count]
            self.visited += count
            yield MatchedSlots(one, other, *temporal) if of_left else MatchedSlots(other, one, *temporal)

    def _columns(self, left: Int32Array, right: Int32Array) -> Sequence[Column]:
        """Those of pairs of slots."""
        return pair_columns(self._left_rows.columns(left), self._right_rows.columns(right))

    @property
    def state_work(self) -> Work:
        return self._left_rows.work + self._right_rows.work

    @property
    def rows(self) -> int:
        return len(self._left_rows) + len(self._right_rows)

    @property
    def nbytes(self) -> int:
        return self._keys.nbytes + self._left_rows.nbytes + self._right_rows.nbytes

    def _check(self) -> None:
        self._keys._check()
        self._left_rows._check()
        self._right_rows._check()


def pair_columns(left: Sequence[Column], right: Sequence[Column]) -> LazyColumns:
    """The columns of left rows, then those of right ones, which are those from RIGHT on too."""
    width = len(left)

    def make(place: int) -> Column:
        return left[place] if place < width else right[place - (RIGHT if place >= RIGHT else width)]

    return LazyColumns(width + len(right), make)


@dataclass(frozen=True, slots=True)
class Moved:
    """Rows that move on a turn, and their slots, NOBODY of those that are not kept."""

    delta: Delta
    slots: Int32Array

    def arranged(self) -> Int32Array:
        """The slots of those that have one."""
        found: Int32Array = self.slots[self.slots != kernels.NOBODY]
        return found


class InnerJoinNode(JoinNode[OwnedRows]):
    """Matched. The id of one is the left row's id and the right row's. Where the exits of an input are
    known, so are those of the pairs: the earlier of both.
    """

    def __init__(self, left: Node, right: Node, matching: Matching, kept: Kept = NO_KNOWN_EXITS) -> None:
        """kept: how inputs with known exits are kept, left and right."""
        self.exits_known = left.exits_known or right.exits_known
        self._kept = {left: kept[0], right: kept[1]} if left is not right else {left: kept[0]}
        super().__init__(left, right, matching)
        self.id_words = left.id_words + right.id_words

    def _rows_of(self, node: Node) -> OwnedRows:
        kept = self._kept[node]
        if kept is None:
            return KeyedRows(self._keys, node.id_words, keeps_all=False, capacities=self.settings.capacities)
        return KnownExitRows(self._keys, node.id_words, kept, partial(self._read_row, node), self.settings)

    def _read_row(self, node: Node, ids: Int64Array) -> Relation:
        assert self._context is not None
        return node.read(self._context, ids)

    def read(self, context: EvaluationContext, ids: Int64Array) -> Relation:
        words = self.left.id_words
        left = self._read_of(self.left, self._left_rows, context, ids[:, :words])
        right = self._read_of(self.right, self._right_rows, context, ids[:, words:])
        return Relation(pair_columns(left, right), len(ids))

    def _read_of(
        self, node: Node, rows: OwnedRows, context: EvaluationContext, ids: Int64Array
    ) -> Sequence[Column]:
        """The values of rows of an input: from there, or those that are kept."""
        if isinstance(rows, KeyedRows):
            return rows.read(ids)
        return node.read(context, ids).columns

    def _given(self, turn: Turn, left: Moved, right: Moved) -> Delta:
        of_left = self._pairs(turn, left.arranged(), of_left=True)
        of_right = self._pairs(turn, right.arranged(), of_left=False, staying=True)
        pairs = one_after_another([of_left, of_right])
        return self._of(self._without_known_exits(turn, pairs) if self.exits_known else pairs)

    def _without_known_exits(self, turn: Turn, pairs: MatchedSlots) -> MatchedSlots:
        """Without the pairs whose row that moves leaves early, but not before the exit that the pair was told
        with: that of the partner.
        """
        left, right = self._left_rows, self._right_rows
        stood = pairs.valid_from <= turn.interval.since
        if not stood.any():
            return pairs
        exits_known = (~left.moving[pairs.left] & (left.rows.valid_to[pairs.left] <= pairs.valid_to)) | (
            ~right.moving[pairs.right] & (right.rows.valid_to[pairs.right] <= pairs.valid_to)
        )
        return pairs.take(np.flatnonzero(~(stood & exits_known)))

    def waiting(self, places: Sequence[int]) -> list[Sequence[Column]]:
        """The values of some columns, of one input, of rows that pairs may still be made of."""
        width = self._left_rows.width
        is_left = all(place < width for place in places)
        rows, node = (self._left_rows, self.left) if is_left else (self._right_rows, self.right)
        below = [place if is_left else place - width for place in places]
        columns = rows.columns(rows.slots())
        return [[columns[place] for place in below], *waiting(node, below)]

    def standing(self, context: EvaluationContext, columns: Int32Array) -> Iterator[Delta]:
        turn = Turn.beginning(context)
        slots = self._left_rows.slots()
        for start in range(0, max(1, len(slots)), PAIRS):
            delta = self._of(self._pairs(turn, slots[start : start + PAIRS], of_left=True))
            yield delta.where(np.isin(delta.owners, columns))

    def _of(self, pairs: MatchedSlots) -> Delta:
        relation = Relation(self._columns(pairs.left, pairs.right), len(pairs))

        def ids() -> Int64Array:
            return np.hstack([self._left_rows.ids_of(pairs.left), self._right_rows.ids_of(pairs.right)])

        delta = Delta(
            TemporalRelation(relation, pairs.valid_from, pairs.valid_to), pairs.starts, pairs.owners, ids
        )
        return self.columns.of(delta)


def waiting(node: Node, places: Sequence[int]) -> list[Sequence[Column]]:
    """The values of columns of a node, of rows that joins below it keep."""
    match node:
        case ProjectNode():
            return waiting(node.below, node.places_below(places))
        case FilterNode() | ConditionNode():
            return waiting(node.below, places)
        case InnerJoinNode():
            return node.waiting(places)
    return []


def key_values(keys: Sequence[Expression], relation: Relation) -> KeyValues:
    """Keys of rows: NULL equals nothing."""
    columns, _ = relation.values_of(keys)
    usable: BoolArray = np.ones(len(relation), np.bool_)
    for column in columns:
        usable &= column.there()
    return KeyValues([with_one_zero(column) for column in columns], usable)


def _room_for(pairs: int) -> SlotPairs:
    starts = np.empty(pairs + 1, np.int64)
    starts[0] = 0
    return SlotPairs(
        np.empty(pairs, np.int32),
        np.empty(pairs, np.int32),
        np.empty(pairs, np.int64),
        np.empty(pairs, np.int64),
        starts,
        np.empty(4 * pairs, np.int32),
    )


def one_after_another(pieces: Sequence[MatchedSlots]) -> MatchedSlots:
    """The pairs of several."""
    if len(pieces) == 1:
        return pieces[0]
    starts = np.zeros(1 + sum(map(len, pieces)), np.int64)
    if pieces:
        np.cumsum(np.concatenate([np.diff(each.starts) for each in pieces]), out=starts[1:])
    none = np.empty(0, np.int64)
    return MatchedSlots(
        np.concatenate([none.astype(np.int32), *(each.left for each in pieces)]),
        np.concatenate([none.astype(np.int32), *(each.right for each in pieces)]),
        np.concatenate([none, *(each.valid_from for each in pieces)]),
        np.concatenate([none, *(each.valid_to for each in pieces)]),
        starts,
        np.concatenate([none.astype(np.int32), *(each.owners for each in pieces)]),
    )


def check_candidates(candidates: int, limits: Limits) -> None:
    """Raises LimitExceeded: a condition has more pairs to look at than is allowed."""
    if candidates > limits.join_candidates_max:
        hint = "narrow the windows, or join by an equality"
        raise LimitExceeded("join_candidates_max", limits.join_candidates_max, candidates, hint=hint)


def check_pairs(rows: int, limits: Limits) -> None:
    """Raises LimitExceeded: a join gives more pairs than is allowed."""
    if rows > limits.intermediate_rows_max:
        hint = "narrow the windows, or join by more columns"
        raise LimitExceeded("intermediate_rows_max", limits.intermediate_rows_max, rows, hint=hint)
