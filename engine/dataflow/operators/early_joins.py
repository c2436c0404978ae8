"""Joins with windows that let go of rows before these leave them, by the constraints of streams
(:mod:`engine.dataflow.releases.early`).

What is told is the same: such a row has no partner and gets none, or nobody sees its pairs end. Its exit is
told by the scan all the same, and passed over. State that is made anew may have it again.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from functools import partial
from typing import Generic, TypeVar

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
from engine.dataflow.releases.side import Waiting
from engine.model import expressions as ex
from engine.model.attributes import Attribute
from engine.model.batch import BoolArray, Int64Array
from engine.model.source import SourceName

Rows = TypeVar("Rows", RowsInTime, KeyedRows)


class _EarlyJoin(TwoInputs, Generic[Rows]):
    """What these joins have in common, in whatever they keep rows."""

    _early: Early
    _keys: Keys
    _context: EvaluationContext | None

    def forget(self) -> None:
        super().forget()
        self._leave = EarlyLeave(self._early, self._keys, self._waiting(), self.settings.capacities)

    def rest(self) -> None:
        context, is_whole = self._context, self.refused is None
        super().rest()
        if context is not None and is_whole:
            self._sweep(context.transition)

    def _sweep(self, transition: Transition) -> None:
        """A transition is over: rows go, if there are many."""
        (left, right), before = self._stored(), self.rows
        if not self._leave.is_due(transition, left.has, right.has, before):
            return
        kept = (
            self._read_off(rows, entered, transition)
            for rows, entered in zip((left, right), self._early.entered, strict=True)
        )
        for rows, which in zip((left, right), self._leave.gone(transition, *kept), strict=True):
            self._let_go(rows, which)
        self._leave.swept(before - self.rows, left.has, right.has, self.rows)

    def _waiting(self) -> tuple[Waiting, Waiting]:
        """Keys of rows that wait in joins below, left and right."""
        return list, list

    @abstractmethod
    def _stored(self) -> tuple[Rows, Rows]:
        """The rows that are kept, left and right."""

    @abstractmethod
    def _read_off(self, rows: Rows, entered: Sequence[SourceName], transition: Transition) -> Kept:
        """Those of one input. entered: the streams that its rows are made of."""

    @abstractmethod
    def _let_go(self, rows: Rows, which: BoolArray) -> None:
        """Some of those of one input go."""

    @property
    def nbytes(self) -> int:
        return super().nbytes + self._leave.nbytes

    def attributes(self) -> tuple[Attribute, ...]:
        each = self.nbytes // self.rows if self.rows else 0
        released = self._leave.released
        return (
            *super().attributes(),
            Attribute("released_rows", released, "rows that constraints let go of"),
            Attribute("released_bytes", released * each, "what they would take, as the others do"),
        )

    def _check(self) -> None:
        super()._check()
        self._leave._check()


class EarlyWindowJoinNode(_EarlyJoin[RowsInTime], WindowJoinNode):
    """Joins two streams by windows of many sizes, from one store a stream."""

    def __init__(self, left: Node, right: Node, matching: Matching, early: Early) -> None:
        self._early = early
        WindowJoinNode.__init__(self, left, right, matching)

    def _stored(self) -> tuple[RowsInTime, RowsInTime]:
        return self._left.rows, self._right.rows

    def _read_off(self, rows: RowsInTime, entered: Sequence[SourceName], transition: Transition) -> Kept:
        return Kept(rows.key_numbers(), rows.has, lambda: rows.at[rows.low :] >> 1)

    def _let_go(self, rows: RowsInTime, which: BoolArray) -> None:
        rows.let_go(which)


class _EarlyKeyedJoin(_EarlyJoin[KeyedRows]):
    """Those that keep rows by their keys."""

    _matching: Matching

    def _waiting(self) -> tuple[Waiting, Waiting]:
        left, right = (
            [key.index for key in side if isinstance(key, ex.Column)]
            for side in zip(*self._matching.keys, strict=True)
        )
        return partial(waiting, self.left, left), partial(waiting, self.right, right)

    def _read_off(self, rows: KeyedRows, entered: Sequence[SourceName], transition: Transition) -> Kept:
        return _by_key(rows, entered, transition)

    def _let_go(self, rows: KeyedRows, which: BoolArray) -> None:
        rows.let_go(rows.slots()[which])


class EarlyInnerJoinNode(_EarlyKeyedJoin, InnerJoinNode):
    """Joins inputs whose rows have ids."""

    def __init__(self, left: Node, right: Node, matching: Matching, early: Early) -> None:
        self._early = early
        InnerJoinNode.__init__(self, left, right, matching)

    def _rows_of(self, node: Node) -> OwnedRows:
        return KeyedRows(
            self._keys, node.id_words, keeps_all=False, is_early=True, capacities=self.settings.capacities
        )

    def _stored(self) -> tuple[KeyedRows, KeyedRows]:
        left, right = self._left_rows, self._right_rows
        assert isinstance(left, KeyedRows)
        assert isinstance(right, KeyedRows)
        return left, right


class EarlyMatchNode(_EarlyKeyedJoin, MatchNode):
    """A join in which it matters whether a row has a partner, of rows that are not given without one."""

    def __init__(self, left: Node, right: Node, matching: Matching, early: Early) -> None:
        self._early = early
        MatchNode.__init__(self, left, right, matching)

    def _rows_of(self, node: Node) -> KeyedRows:
        return KeyedRows(
            self._keys,
            node.id_words,
            keeps_all=self.keeps_lonely,
            is_early=True,
            capacities=self.settings.capacities,
        )

    def _stored(self) -> tuple[KeyedRows, KeyedRows]:
        return self._left_rows, self._right_rows


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
