"""GROUP BY, and the one group of a query with aggregates and no keys; DISTINCT is a GROUP BY without calls.

A group is a cell: how many rows it has and what its calls are made of. A step touches the cells of the rows
that move, and tells the versions that each went through. Cost: O(pairs * numbers of a state), and a look-up
of a pair's value for DISTINCT, MIN and MAX.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from engine.algebra.aggregate.stage import AggregateCall
from engine.algebra.project.stage import Output
from engine.changes.context import EvaluationContext
from engine.changes.equality import equal_values
from engine.changes.temporal_relation import TemporalRelation
from engine.dataflow.arrangements.cells import CellEvents, CellStates, Versions
from engine.dataflow.calls import parts_of
from engine.dataflow.delta import Delta
from engine.dataflow.extremes import Extremes
from engine.dataflow.kept_columns import KeepsColumns
from engine.dataflow.node import Node, UnaryNode
from engine.dataflow.part import Part
from engine.dataflow.totals import ROWS, Totals
from engine.dataflow.turn import Turn
from engine.kernels import cells as kernels
from engine.model.batch import BoolArray, Column, Int32Array, Int64Array
from engine.operators.keys import with_one_zero
from engine.operators.relation import Relation


@dataclass(frozen=True, slots=True)
class GroupSpec:
    """A row for each value of the keys, with the calls of its group; DISTINCT has none. in_order: with ids
    that have the order of the relation.
    """

    keys: tuple[Output, ...]
    calls: tuple[AggregateCall, ...] = ()
    in_order: bool = False


class GroupNode(KeepsColumns, UnaryNode):
    """One row for each group that has rows; without keys one for each column. The id of a row is its cell; of
    groups in order, which have keys, that of the first row of the group, and the column.
    """

    def __init__(self, below: Node, groups: GroupSpec) -> None:
        super().__init__(below)
        self._keys, self._calls = groups.keys, groups.calls
        self.ordered = groups.in_order
        self.id_words = below.id_words + 1 if groups.in_order else 1
        if not groups.in_order:
            self.telling = frozenset(range(len(groups.keys) + len(groups.calls)))
        self.forget()

    def forget(self) -> None:
        capacities = self.settings.capacities
        self._parts = parts_of(self._calls, self.below.id_words, capacities)
        self._first = Extremes([0], [], None, None, self.below.id_words, capacities) if self.ordered else None
        others = {place for part in self._parts for place in part.calls}
        self._summed = [place for place in range(len(self._calls)) if place not in others]
        self._totals = Totals([self._calls[place] for place in self._summed])
        self._cells = CellStates([key.type for key in self._keys], self._totals.width, capacities)
        self._forget_columns()

    def _drop(self, columns: Int32Array) -> None:
        self._release(self._of_columns(columns), empty=False)

    # --- rows that stand --------------------------------------------------------------------------

    def _hydrate(self, context: EvaluationContext) -> None:
        if not self._coming:
            return
        columns = self._newly_wanted()
        if not self._keys:
            nothing = np.zeros(len(columns), np.int64)
            temporal = TemporalRelation(Relation([], len(columns)), nothing, nothing)
            self._cells.of([], Delta.of_one_each(temporal, columns))
        if self._all_parts:
            for delta in self.below.standing(context, columns):
                self.visited += len(delta.temporal)
                cells = self._cells_of(delta)
                self._cells.enter(delta.starts, cells, self._values(delta.temporal.relation))
                for part in self._all_parts:
                    part.enter(delta, cells, self._cells.capacity)
        else:
            for each in self.below.standing_sets(context, columns):
                self.visited += len(each.delta.temporal)
                relation = each.delta.temporal.relation
                self._cells.enter_sets(self._key_columns(relation), each, self._values(relation))
        used = self._cells.pairs.used()
        self._carry(self._cells.states_of(used), lambda: used)

    def standing(self, context: EvaluationContext, columns: Int32Array) -> Iterator[Delta]:
        cells = self._of_columns(columns)
        n = len(cells)
        calls = self._in_order(
            self._totals.columns(self._cells.states_of(cells)), [part.standing(cells) for part in self._parts]
        )
        temporal = TemporalRelation(
            self._row(cells, calls), np.full(n, kernels.NEVER), np.full(n, kernels.FOREVER)
        )
        yield self._delta_of(temporal, cells, None if self._first is None else self._first.standing(cells))

    def _of_columns(self, columns: Int32Array) -> Int32Array:
        cells = self._cells.pairs.used()
        return cells[np.isin(self._cells.pairs.places_of(cells), columns)]

    # --- rows that move ---------------------------------------------------------------------------

    def _changed(self, turn: Turn) -> Delta:
        delta = self._below(turn)
        self.visited += len(delta.temporal)
        values = self._values(delta.temporal.relation)
        entering = CellEvents.of(delta, self._cells_of(delta), turn.interval)
        versions = self._cells.fold(entering, values)
        calls = self._in_order(
            self._totals.columns(versions.states),
            [part.fold(delta, entering, versions, self._cells.capacity) for part in self._parts],
        )
        first = None
        if self._first is not None:
            first = self._first.fold(delta, entering, versions, self._cells.capacity)
        told = self._told(versions, calls, first)
        if self._keys:
            self._release(versions.emptied(ROWS), empty=True)
        self._carry(versions.states, lambda: versions.cells[versions.latest()])
        return told

    def _told(self, versions: Versions, calls: Sequence[Column], ids: Sequence[Column] | None) -> Delta:
        """The versions that give a row, those that give the same one after the other as one. ids: the words
        of the ids of first rows.
        """
        there: BoolArray = np.ones(len(versions), np.bool_)
        if self._keys:
            there = versions.states[:, ROWS] > 0
        before = versions.before
        equal = (before >= 0) & there & there[before]
        for column in (*calls, *(ids or ())):
            if equal.any():
                equal &= equal_values(column, slice(None), before)
        if equal.any():
            first = np.empty(len(versions), np.int32)
            kernels.join_equal(equal, before, versions.valid_to, first)
        kept = np.flatnonzero(there & ~equal)
        cells = versions.cells[kept]
        relation = self._row(cells, [column.take(kept) for column in calls])
        temporal = TemporalRelation(relation, versions.valid_from[kept], versions.valid_to[kept])
        return self._delta_of(temporal, cells, ids and [column.take(kept) for column in ids])

    def _delta_of(
        self, temporal: TemporalRelation, cells: Int32Array, first: Sequence[Column] | None
    ) -> Delta:
        """Rows of these cells."""
        owners = self._cells.pairs.places_of(cells)

        def ids() -> Int64Array:
            if first is None:
                return cells.astype(np.int64).reshape(-1, 1)
            return np.stack([*(column.values for column in first), owners], axis=1)

        return Delta.of_one_each(temporal, owners, ids)

    # --- cells ------------------------------------------------------------------------------------

    def _values(self, relation: Relation) -> Int64Array:
        values = self._totals.values(relation)
        self._cells.widen(self._totals.width)
        return values

    def _cells_of(self, delta: Delta) -> Int32Array:
        """int32[pairs]: the cell of each."""
        return self._cells.of(self._key_columns(delta.temporal.relation), delta)

    def _key_columns(self, relation: Relation) -> list[Column]:
        columns, _ = relation.values_of(key.expression for key in self._keys)
        return list(map(with_one_zero, columns))

    def _release(self, cells: Int32Array, *, empty: bool) -> None:
        """empty: no row has them."""
        if len(cells):
            self._cells.release(cells)
            for part in self._all_parts:
                part.release(cells, empty=empty)

    @property
    def _all_parts(self) -> list[Part]:
        return self._parts if self._first is None else [*self._parts, self._first]

    def _carry(self, states: Int64Array, cells: Callable[[], Int32Array]) -> None:
        """states: all that these cells are in. cells: asked for where some have grown large."""
        if self._totals.has_digits:
            for planes in self._totals.full(states):
                self._cells.widen(self._totals.width)
                self._cells.carry(cells(), planes)

    def _in_order(self, summed: Sequence[Column], others: Sequence[Sequence[Column]]) -> list[Column]:
        """A column a call."""
        found = dict(zip(self._summed, summed, strict=True))
        for part, columns in zip(self._parts, others, strict=True):
            found.update(zip(part.calls, columns, strict=True))
        return [found[place] for place in range(len(found))]

    def _row(self, cells: Int32Array, calls: Sequence[Column]) -> Relation:
        return Relation([*self._cells.pairs.columns(cells), *calls], len(cells))

    @property
    def rows(self) -> int:
        return len(self._cells.pairs)

    @property
    def nbytes(self) -> int:
        return self._cells.nbytes + sum(part.nbytes for part in self._all_parts)

    def _check(self) -> None:
        self._cells._check()
        if self._keys:
            assert bool((self._cells.states_of(self._cells.pairs.used())[:, ROWS] > 0).all())
