"""Operators that keep rows in order, run by run (:mod:`engine.dataflow.arrangements.ordered_runs`)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from engine.algebra.sort.stage import SortKey
from engine.changes.context import EvaluationContext
from engine.dataflow.arrangements.cells import events_of
from engine.dataflow.arrangements.ordered_runs import OrderedRuns
from engine.dataflow.arrangements.row_store import RowStore
from engine.dataflow.arrangements.sort_words import SortWords
from engine.dataflow.delta import Delta
from engine.dataflow.node import Node
from engine.dataflow.operators.runs import ByRun
from engine.dataflow.turn import Turn
from engine.kernels.ranked import RankBounds, RankEvents, RankVersions
from engine.model.batch import Column, Int32Array, Int64Array
from engine.model.expressions import Expression


@dataclass(frozen=True, slots=True)
class KeptOrder:
    """width: how many columns rows have below. places: those that are kept, by which they are."""

    width: int
    places: dict[int, int]
    rows: RowStore
    runs: OrderedRuns


class InOrder(ByRun):
    """A node whose runs are kept in order. Rows that are equal in all sort keys go by their ids."""

    def __init__(
        self,
        below: Node,
        keys: Sequence[Expression],
        order: tuple[SortKey, ...],
        bounds: RankBounds,
        read: frozenset[int] | None,
    ) -> None:
        """read: the places of the columns that are kept, None: all."""
        super().__init__(below, keys)
        self._sort_keys, self._bounds, self._read_places = order, bounds, read
        self.forget()

    def forget(self) -> None:
        self._order = SortWords(self._sort_keys, self.settings.capacities)
        self._kept: KeptOrder | None = None
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

    # --- rows that move ---------------------------------------------------------------------------

    def _changed(self, turn: Turn) -> Delta:
        delta, interval = self._below(turn), turn.interval
        begins, ends = delta.temporal.valid_from, delta.temporal.valid_to
        runs = self._runs_of(delta)
        kept, ids, words, values = self._read(delta)
        came, went = interval.among(begins), interval.among(ends)
        slots = kept.rows.move(ids, words, values, came, went)
        entering = RankEvents(*events_of(delta, interval), delta.starts, runs, slots)
        told = self._told(kept.runs.fold(entering, turn.context.limits), kept, turn)
        kept.rows.let_go(slots[went])
        if self._order.is_wasteful(kept.rows.used_count):
            self._order.only(kept.rows.words[kept.rows.used()])
        if self._keys and len(runs):
            affected = np.unique(runs)
            self._release(affected, kept.runs.is_empty(affected))
        return told

    @abstractmethod
    def _told(self, told: RankVersions, kept: KeptOrder, turn: Turn) -> Delta:
        """What is given of a turn. told: the rows of runs that came, or left, among those that are told."""

    def _read(self, delta: Delta) -> tuple[KeptOrder, Int64Array, Int64Array, list[Column]]:
        """What is kept; of each row its id, the words that order it, and the columns that are kept."""
        columns = delta.temporal.relation.columns
        if self._kept is None:
            self._kept = self._nothing(columns)
        kept, ids = self._kept, delta.ids_of()
        words = self._order.of(delta.temporal.relation, kept.rows.words)
        return kept, ids, np.hstack([words, ids]), [columns[place] for place in kept.places]

    def _nothing(self, columns: Sequence[Column]) -> KeptOrder:
        """columns: those that rows have."""
        width, read, id_words = len(columns), self._read_places, self.below.id_words
        places = [place for place in range(width) if read is None or place in read]
        types, capacities = [columns[place].type for place in places], self.settings.capacities
        rows = RowStore(self._order.width + id_words, id_words, types, capacities)
        kept = {place: number for number, place in enumerate(places)}
        return KeptOrder(width, kept, rows, OrderedRuns(self._bounds, rows, capacities))

    def _ids_of(self, kept: KeptOrder, slots: Int32Array, owners: Int32Array) -> Int64Array:
        """int64[n, w]: the ids of rows that are given to columns: the one below and the column."""
        return np.hstack([kept.rows.words[slots, self._order.width :], owners.reshape(-1, 1)])

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
