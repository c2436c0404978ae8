"""Joins with windows that let go of rows before these leave them, by the constraints of streams
(:mod:`engine.dataflow.releases.early`).

What is told is the same: such a row has no partner and gets none, or nobody sees its pairs end. Its exit is
told by the scan all the same, and passed over. State that is made anew may have it again.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from engine.changes.context import EvaluationContext
from engine.changes.transition import NEVER, Transition
from engine.dataflow.arrangements.keyed_rows import KeyedRows
from engine.dataflow.arrangements.keys import Keys
from engine.dataflow.arrangements.owned_rows import OwnedRows
from engine.dataflow.arrangements.rows_in_time import RowsInTime
from engine.dataflow.node import Node
from engine.dataflow.operators.join import InnerJoinNode, Matching, waiting
from engine.dataflow.operators.match import MatchNode
from engine.dataflow.operators.two_inputs import TwoInputs
from engine.dataflow.operators.window_join import WindowJoinNode
from engine.dataflow.releases.early import EarlyLeave, Kept
from engine.dataflow.releases.release import Early
from engine.model import expressions as ex
from engine.model.attributes import Attribute
from engine.model.batch import Int64Array
from engine.model.source import SourceName


class EarlyWindowJoinNode(WindowJoinNode):
    """Joins two streams by windows of many sizes, from one store a stream."""

    def __init__(self, left: Node, right: Node, matching: Matching, early: Early) -> None:
        self._early = early
        super().__init__(left, right, matching)

    def forget(self) -> None:
        super().forget()
        self._leave = EarlyLeave(self._early, self._keys, (list, list), self.settings.capacities)

    def rest(self) -> None:
        context, is_whole = self._context, self.refused is None
        super().rest()
        if context is None or not is_whole:
            return
        left, right = self._left.rows, self._right.rows
        if self._leave.is_due(context.transition, left.has, right.has, self.rows):
            before = self.rows
            gone = self._leave.gone(context.transition, _in_time(left), _in_time(right))
            for rows, which in zip((left, right), gone, strict=True):
                rows.let_go(which)
            self._leave.swept(before - self.rows, left.has, right.has, self.rows)

    @property
    def nbytes(self) -> int:
        return super().nbytes + self._leave.nbytes

    def attributes(self) -> tuple[Attribute, ...]:
        return *super().attributes(), *_released(self._leave.released, self.rows, self.nbytes)

    def _check(self) -> None:
        super()._check()
        self._leave._check()


class EarlyInnerJoinNode(InnerJoinNode):
    """Joins inputs whose rows have ids."""

    def __init__(self, left: Node, right: Node, matching: Matching, early: Early) -> None:
        self._early = early
        super().__init__(left, right, matching)

    def forget(self) -> None:
        super().forget()
        self._leave = _leaves(self, self._matching, self._early, self._keys)

    def _rows_of(self, node: Node) -> OwnedRows:
        return KeyedRows(
            self._keys, node.id_words, keeps_all=False, is_early=True, capacities=self.settings.capacities
        )

    def rest(self) -> None:
        context, is_whole = self._context, self.refused is None
        super().rest()
        if context is not None and is_whole:
            _sweep(context, self._early, self._leave, self._left_rows, self._right_rows)

    @property
    def nbytes(self) -> int:
        return super().nbytes + self._leave.nbytes

    def attributes(self) -> tuple[Attribute, ...]:
        return *super().attributes(), *_released(self._leave.released, self.rows, self.nbytes)

    def _check(self) -> None:
        super()._check()
        self._leave._check()


class EarlyMatchNode(MatchNode):
    """A join in which it matters whether a row has a partner, of rows that are not given without one."""

    def __init__(self, left: Node, right: Node, matching: Matching, early: Early) -> None:
        self._early = early
        super().__init__(left, right, matching)

    def forget(self) -> None:
        super().forget()
        self._leave = _leaves(self, self._matching, self._early, self._keys)

    def _rows_of(self, node: Node) -> KeyedRows:
        return KeyedRows(
            self._keys,
            node.id_words,
            keeps_all=self.keeps_lonely,
            is_early=True,
            capacities=self.settings.capacities,
        )

    def rest(self) -> None:
        context, is_whole = self._context, self.refused is None
        super().rest()
        if context is not None and is_whole:
            _sweep(context, self._early, self._leave, self._left_rows, self._right_rows)

    @property
    def nbytes(self) -> int:
        return super().nbytes + self._leave.nbytes

    def attributes(self) -> tuple[Attribute, ...]:
        return *super().attributes(), *_released(self._leave.released, self.rows, self.nbytes)

    def _check(self) -> None:
        super()._check()
        self._leave._check()


def _leaves(node: TwoInputs, matching: Matching, early: Early, keys: Keys) -> EarlyLeave:
    """What says which rows of a join go."""
    left, right = (
        [key.index for key in side if isinstance(key, ex.Column)] for side in zip(*matching.keys, strict=True)
    )
    both = partial(waiting, node.left, left), partial(waiting, node.right, right)
    return EarlyLeave(early, keys, both, node.settings.capacities)


def _sweep(
    context: EvaluationContext, early: Early, leave: EarlyLeave, left: OwnedRows, right: OwnedRows
) -> None:
    """A transition is over: rows go, if there are many."""
    assert isinstance(left, KeyedRows)
    assert isinstance(right, KeyedRows)
    transition, before = context.transition, len(left) + len(right)
    if not leave.is_due(transition, left.has, right.has, before):
        return
    kept = (
        _by_key(rows, entered, transition) for rows, entered in zip((left, right), early.entered, strict=True)
    )
    gone = leave.gone(transition, *kept)
    for rows, which in zip((left, right), gone, strict=True):
        rows.let_go(rows.slots()[which])
    after = len(left) + len(right)
    leave.swept(before - after, left.has, right.has, after)


def _in_time(rows: RowsInTime) -> Kept:
    return Kept(rows.key_numbers(), rows.has, lambda: rows.at[rows.low :] >> 1)


def _by_key(rows: KeyedRows, entered: Sequence[SourceName], transition: Transition) -> Kept:
    slots = rows.slots()

    def instants() -> Int64Array:
        ids = rows.ids_of(slots)
        each = [_instants(transition, source, ids[:, word]) for word, source in enumerate(entered)]
        latest: Int64Array = np.max(each, axis=0)
        return latest

    return Kept(rows.rows.key[slots], rows.has, instants)


def _instants(transition: Transition, source: SourceName, ordinals: Int64Array) -> Int64Array:
    """int64[n], ms: of rows of a stream; NEVER of those that it has no more."""
    found: Int64Array = np.full(len(ordinals), NEVER)
    at = transition.by_source[source].at
    there = np.flatnonzero(ordinals >= at.rows.base)
    if len(there):
        low, high = int(ordinals[there].min()), int(ordinals[there].max()) + 1
        parts = [part.timestamp[first:last] for part, first, last in at.rows.ranges(low, high)]
        found[there] = np.concatenate(parts)[ordinals[there] - low]
    return found


def _released(released: int, rows: int, nbytes: int) -> tuple[Attribute, ...]:
    each = nbytes // rows if rows else 0
    return (
        Attribute("released_rows", released, "rows that constraints let go of"),
        Attribute("released_bytes", released * each, "what they would take, as the others do"),
    )
