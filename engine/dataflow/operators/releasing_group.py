"""Groups that are over by the constraints of a stream: their state goes, and what was told of them stays.

A group that is not over keeps the ordinals of its rows beside its state, for the stream has to hold these
rows as long as state may be made anew of them.
"""

from __future__ import annotations

import numpy as np

from engine.changes.context import EvaluationContext
from engine.dataflow.arrangements.keys import Keys
from engine.dataflow.delta import Delta
from engine.dataflow.node import Node
from engine.dataflow.operators.group import GroupNode, GroupSpec
from engine.dataflow.releases.reading import Frontier, KeysOver
from engine.dataflow.releases.release import Final
from engine.model.attributes import Attribute
from engine.model.batch import BoolArray, Int32Array, Int64Array
from engine.model.source import SourceName


class ReleasingGroupNode(GroupNode):
    """Over a scan that holds its rows. released: how many groups were let go of."""

    def __init__(self, below: Node, groups: GroupSpec, final: Final) -> None:
        assert below.id_words == 1
        self._final = final
        self.released = 0
        super().__init__(below, groups)

    def forget(self) -> None:
        super().forget()
        self._context: EvaluationContext | None = None
        over = self._final.over
        self._over_keys = Keys([self._keys[key].expression.type for key in self._final.over_keys])
        self._over = None if over is None else KeysOver(over, self._over_keys, nulls=True)
        self._bounds = [Frontier(each) for each in self._final.below]
        self._ordinals: Int64Array = np.empty(0, np.int64)
        """Ordinals of the rows of groups, int64[entries]: one entry for each group that a row is in."""
        self._cell_of: Int32Array = np.empty(0, np.int32)
        """The group of each."""

    @property
    def is_coming(self) -> bool:
        """Whether state of some column is to be made yet."""
        return bool(self._coming)

    def needs(self, source: SourceName) -> list[Int64Array]:
        """The ordinals of the rows of a stream that its groups have, perhaps several times."""
        return [self._ordinals] if source == self._final.source else []

    def begin(self, context: EvaluationContext) -> None:
        self._context = context
        super().begin(context)

    def rest(self) -> None:
        context, is_whole = self._context, self.refused is None
        super().rest()
        self._context = None
        if context is not None and is_whole:
            self._let_go(context)

    def _cells_of(self, delta: Delta) -> Int32Array:
        cells = super()._cells_of(delta)
        self._ordinals = np.concatenate([self._ordinals, delta.ids_of()[delta.rows(), 0]])
        self._cell_of = np.concatenate([self._cell_of, cells])
        return cells

    def _release(self, cells: Int32Array, *, empty: bool) -> None:
        super()._release(cells, empty=empty)
        left = ~np.isin(self._cell_of, cells)
        self._ordinals, self._cell_of = self._ordinals[left], self._cell_of[left]

    def _let_go(self, context: EvaluationContext) -> None:
        """A transition is over: groups go."""
        at = context.transition.by_source[self._final.source].at
        cells = self._cells.pairs.used()
        columns = self._cells.pairs.columns(cells)
        is_over: BoolArray = np.zeros(len(cells), np.bool_)
        if self._over is not None:
            numbers = self._over.advance(at)
            keys = [columns[key] for key in self._final.over_keys]
            is_over |= np.isin(self._over_keys.find(keys, len(cells)), numbers)
            self._over_keys.give_back(numbers)
        for bound in self._bounds:
            least = bound.advance(at)
            if least is not None:
                column = columns[bound.below.key]
                is_over |= column.there() & (column.values.astype(np.int64) < least)
        if is_over.any():
            self.released += int(np.count_nonzero(is_over))
            self._release(cells[is_over], empty=False)

    @property
    def nbytes(self) -> int:
        facts = sum(bound.nbytes for bound in self._bounds) + (0 if self._over is None else self._over.nbytes)
        return super().nbytes + facts + self._over_keys.nbytes + self._ordinals.nbytes + self._cell_of.nbytes

    def attributes(self) -> tuple[Attribute, ...]:
        each = self.nbytes // self.rows if self.rows else 0
        return (
            *super().attributes(),
            Attribute("released_rows", self.released, "groups that constraints let go of"),
            Attribute("released_bytes", self.released * each, "what they would take, as the others do"),
        )

    def _check(self) -> None:
        super()._check()
        self._over_keys._check()
        if self._over is not None:
            self._over._check()
        assert set(self._cell_of.tolist()) == set(self._cells.pairs.used().tolist())
