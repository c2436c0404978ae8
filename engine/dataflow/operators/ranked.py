"""LIMIT with or without ORDER BY, and ROW_NUMBER: the first rows of each run, in order.

A run is all rows of a column, or those with one value of the keys. Rows that are equal in all sort keys go by
their ids: those have the order of the relation, or the keys tell all rows of a run apart.

Cost: O(log n) a row and run, and what :mod:`engine.kernels.ranked` says of those that are among the first;
with numbers O(rows behind it) for each of these. State: the columns of rows that somebody reads.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from engine.algebra.sort.stage import SortKey
from engine.changes.context import EvaluationContext
from engine.changes.temporal_relation import TemporalRelation
from engine.dataflow.arrangements.ordered_runs import bounds_of
from engine.dataflow.delta import Delta
from engine.dataflow.node import Node
from engine.dataflow.operators.in_order import InOrder, KeptOrder
from engine.dataflow.turn import Turn
from engine.kernels.ranked import RankVersions
from engine.model.batch import Column, Int32Array
from engine.model.expressions import Expression
from engine.model.lazy_columns import LazyColumns
from engine.model.types import BIGINT
from engine.operators.relation import Relation


@dataclass(frozen=True, slots=True)
class RankedSpec:
    """The rows offset <= place < most (None: all) of each value of the keys, in an order, numbered or not.

    read: the places of the columns that somebody above reads, None: all of them; others are not kept.
    """

    keys: tuple[Expression, ...]
    order: tuple[SortKey, ...]
    offset: int
    most: int | None
    numbered: bool
    read: frozenset[int] | None


class RankedNode(InOrder):
    """A row's id is the one below and its column."""

    def __init__(self, below: Node, stage: RankedSpec) -> None:
        self._numbered = stage.numbered
        bounds = bounds_of(stage.offset, stage.most, numbered=stage.numbered)
        super().__init__(below, stage.keys, stage.order, bounds, stage.read)
        self.id_words = below.id_words + 1
        self.ordered = below.ordered and (stage.numbered or not stage.order)

    def standing(self, context: EvaluationContext, columns: Int32Array) -> Iterator[Delta]:
        if self._kept is not None:
            yield self._given(self._kept.runs.first(self._runs_of_columns(columns)), self._kept)

    def _told(self, told: RankVersions, kept: KeptOrder, turn: Turn) -> Delta:
        return self._given(told, kept)

    def _given(self, told: RankVersions, kept: KeptOrder) -> Delta:
        column = kept.rows.columns(told.slots)

        def make(place: int) -> Column:
            return Column(BIGINT, told.numbers) if place == kept.width else column(kept.places[place])

        relation = Relation(LazyColumns(kept.width + self._numbered, make), len(told.slots))
        owners = self._columns_of(told.runs)
        ids = self._ids_of(kept, told.slots, owners)
        return Delta.of_one_each(
            TemporalRelation(relation, told.valid_from, told.valid_to), owners, lambda: ids
        )
