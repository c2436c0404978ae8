"""LIMIT with or without ORDER BY, and ROW_NUMBER: the first rows of each run, in order.

A run is all rows of a column, or those with one value of the keys. Rows that are equal in all sort keys go by
their ids: those have the order of the relation, or the keys tell all rows of a run apart.

Cost: O(log n) a row and run, and what :mod:`engine.kernels.ranked` says of those that are among the first;
with numbers O(rows behind it) for each of these. State: the columns of rows that somebody reads.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from engine.algebra.sort.stage import SortKey
from engine.changes.context import EvaluationContext
from engine.changes.temporal_relation import TemporalRelation
from engine.dataflow.arrangements.cells import events_of
from engine.dataflow.arrangements.ordered_runs import OrderedRuns, bounds_of
from engine.dataflow.arrangements.row_store import RowStore
from engine.dataflow.arrangements.sort_words import SortWords
from engine.dataflow.delta import Delta
from engine.dataflow.node import Node
from engine.dataflow.operators.runs import ByRun
from engine.dataflow.turn import Turn
from engine.kernels.ranked import RankEvents, RankVersions
from engine.model.batch import Column, Int32Array, Int64Array
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


class RankedNode(ByRun):
    """A row's id is the one below and its column."""

    def __init__(self, below: Node, stage: RankedSpec) -> None:
        super().__init__(below, stage.keys)
        self._stage = stage
        self._bounds = bounds_of(stage.offset, stage.most, numbered=stage.numbered)
        self.id_words = below.id_words + 1
        self.ordered = below.ordered and (stage.numbered or not stage.order)
        self.forget()

    def forget(self) -> None:
        self._order = SortWords(self._stage.order, self.settings.capacities)
        self._kept: _Kept | None = None
        self._forget_runs()

    def _drop_runs(self, runs: Int32Array) -> None:
        if self._kept is not None:
            self._kept.runs.drop(runs)

    # --- rows that stand --------------------------------------------------------------------------

    def _hydrate(self, context: EvaluationContext) -> None:
        if not self._coming:
            return
        for delta in self.below.standing(context, self._newly_wanted()):
            runs = self._runs_of(delta)
            kept, ids, words, values = self._read(delta)
            kept.runs.enter(delta.starts, runs, kept.rows.found(ids, words, values))

    def standing(self, context: EvaluationContext, columns: Int32Array) -> Iterator[Delta]:
        if self._kept is not None:
            yield self._given(self._kept.runs.first(self._runs_of_columns(columns)), self._kept)

    # --- rows that move ---------------------------------------------------------------------------

    def _changed(self, turn: Turn) -> Delta:
        delta, interval = self._below(turn), turn.interval
        begins, ends = delta.temporal.valid_from, delta.temporal.valid_to
        runs = self._runs_of(delta)
        kept, ids, words, values = self._read(delta)
        came, went = interval.among(begins), interval.among(ends)
        slots = kept.rows.move(ids, words, values, came, went)
        entering = RankEvents(*events_of(delta, interval), delta.starts, runs, slots)
        told = self._given(kept.runs.fold(entering, turn.context.limits), kept)
        kept.rows.let_go(slots[went])
        if self._order.is_wasteful(kept.rows.used_count):
            self._order.only(kept.rows.words[kept.rows.used()])
        if self._keys and len(runs):
            affected = np.unique(runs)
            self._release(affected, kept.runs.is_empty(affected))
        return told

    def _read(self, delta: Delta) -> tuple[_Kept, Int64Array, Int64Array, list[Column]]:
        """What is kept; of each row its id, the words that order it, and the columns that are kept."""
        columns = delta.temporal.relation.columns
        if self._kept is None:
            self._kept = self._nothing(columns)
        kept, ids = self._kept, delta.ids_of()
        words = self._order.of(delta.temporal.relation, kept.rows.words)
        return kept, ids, np.hstack([words, ids]), [columns[place] for place in kept.places]

    def _nothing(self, columns: Sequence[Column]) -> _Kept:
        """columns: those that rows have."""
        width, read, id_words = len(columns), self._stage.read, self.below.id_words
        places = [place for place in range(width) if read is None or place in read]
        types, capacities = [columns[place].type for place in places], self.settings.capacities
        rows = RowStore(self._order.width + id_words, id_words, types, capacities)
        kept = {place: number for number, place in enumerate(places)}
        return _Kept(width, kept, rows, OrderedRuns(self._bounds, rows, capacities))

    # --- what is told -----------------------------------------------------------------------------

    def _given(self, told: RankVersions, kept: _Kept) -> Delta:
        relation = kept.relation(told, numbered=self._stage.numbered)
        owners = self._columns_of(told.runs)
        temporal = TemporalRelation(relation, told.valid_from, told.valid_to)
        ids = np.hstack([kept.rows.words[told.slots, self._order.width :], owners.reshape(-1, 1)])
        return Delta.of_one_each(temporal, owners, lambda: ids)

    @property
    def rows(self) -> int:
        return 0 if self._kept is None else self._kept.rows.used_count

    @property
    def nbytes(self) -> int:
        if self._kept is None:
            return 0
        groups = 0 if self._groups is None else self._groups.nbytes
        return groups + self._kept.rows.nbytes + self._kept.runs.nbytes

    def _check(self) -> None:
        if self._groups is not None:
            self._groups._check()
        if self._kept is not None and not self._dead:
            self._kept.rows._check()
            self._kept.runs._check()


@dataclass(frozen=True, slots=True)
class _Kept:
    """width: how many columns rows have below. places: those that are kept, by which they are."""

    width: int
    places: dict[int, int]
    rows: RowStore
    runs: OrderedRuns

    def relation(self, told: RankVersions, *, numbered: bool) -> Relation:
        """The rows of some records."""
        column = self.rows.columns(told.slots)

        def make(place: int) -> Column:
            return Column(BIGINT, told.numbers) if place == self.width else column(self.places[place])

        return Relation(LazyColumns(self.width + numbered, make), len(told.slots))
