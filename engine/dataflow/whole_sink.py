"""The sink of queries whose whole answer leaves at each instant at which a row of theirs comes or goes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from engine.changes.context import EvaluationContext
from engine.changes.source_interval import doubled, halved
from engine.changes.temporal_relation import TemporalRelation
from engine.dataflow.arrangements.keyed_rows import KeyedRows
from engine.dataflow.arrangements.keys import Keys
from engine.dataflow.arrangements.owned_rows import KeyValues
from engine.dataflow.delta import Delta
from engine.dataflow.node import Node
from engine.dataflow.operators.flow import FlowNode
from engine.dataflow.sinks import Sink, too_many
from engine.dataflow.turn import Turn
from engine.model.batch import Int64Array
from engine.model.changes import Changes
from engine.model.runs import places_of
from engine.operators.relation import Relation


class WholeSink(Sink):
    """RSTREAM: the answer at each instant at which a row of a scan comes or goes."""

    only_differences = False

    def __init__(self, top: Node, schema: pa.Schema) -> None:
        super().__init__(top, schema)
        self._scans: dict[str, Sequence[Scanned]] = {}
        self._coming: set[int] = set()
        self._moves: list[tuple[str, Int64Array]] = []
        self._forget_rows()

    def _forget_rows(self) -> None:
        self._rows: KeyedRows | None = None
        if not isinstance(self._top, FlowNode):
            capacities = self._top.settings.capacities
            self._rows = KeyedRows(
                Keys([], capacities), self._top.id_words, keeps_all=True, capacities=capacities
            )
            self._coming = set(self._columns.values())

    def read_scans(self, query_id: str, scans: Sequence[Scanned]) -> None:
        """A query reads these, so many columns of nodes."""
        self._scans[query_id] = scans
        for node, column in scans:
            node.want(column)

    def add(self, query_id: str, column: int) -> None:
        if column not in self._columns.values():
            self._coming.add(column)
        super().add(query_id, column)

    def remove(self, query_id: str) -> None:
        for node, column in self._scans.pop(query_id):
            node.leave(column)
        column = self._columns[query_id]
        super().remove(query_id)
        if column not in self._columns.values():
            self._coming.discard(column)
            if self._rows is not None:
                self._rows.drop(np.array([column], np.int32))

    def forget(self) -> None:
        self._moves.clear()
        self._forget_rows()

    def begin(self, context: EvaluationContext) -> None:
        if self._rows is None or not self._coming:
            return
        columns = np.array(sorted(self._coming), np.int32)
        self._coming.clear()
        for delta in self._top.standing(context, columns):
            self._rows.learn(delta.temporal.relation.columns, None)
            self._rows.stand(delta, _without_keys(delta))

    def take(self, turn: Turn) -> None:
        if self._rows is not None:
            delta = self._top.delta(turn).apart()
            delta = delta.where(np.isin(delta.owners, list(self._columns.values())))
            self._rows.learn(delta.temporal.relation.columns, None)
            self._rows.turned(self._rows.apply(delta, _without_keys(delta), turn.interval))
        for query_id, scans in self._scans.items():
            for node, column in scans:
                delta = node.delta(turn)
                self._moves.append((query_id, _moves(delta.where(delta.owners == column).temporal, turn)))

    def give(
        self, context: EvaluationContext, broken: dict[str, Exception], now_ms: int
    ) -> Iterator[Changes]:
        moves: dict[str, list[Int64Array]] = {}
        for query_id, instants in self._moves:
            moves.setdefault(query_id, []).append(instants)
        self._moves.clear()
        for query_id, column in self._columns.items():
            at = np.unique(np.concatenate([np.empty(0, np.int64), *moves.get(query_id, [])]))
            temporal = self._of(column, context)
            instants = doubled(at, 1)  # after retention
            low, high = instants.searchsorted(temporal.valid_from), instants.searchsorted(temporal.valid_to)
            counts = high - low
            total = int(counts.sum())
            if total > context.limits.changes_max:
                broken[query_id] = too_many(context.limits, total)
                continue
            rows = np.repeat(np.arange(len(temporal)), counts)
            places = places_of(low, counts)
            order = np.argsort(places, kind="stable")
            if total:
                told = context.transition.told(at[places[order]])
                columns = [column.take(rows[order]).to_arrow() for column in temporal.relation.columns]
                table = pa.Table.from_arrays(columns, schema=self._schema)
                yield Changes.of_one(query_id, table, np.ones(total, np.int8), told, now_ms)
        if self._rows is not None:
            self._rows.settle(context.interval.until)

    def _of(self, column: int, context: EvaluationContext) -> TemporalRelation:
        """The rows of a column that are there at an instant of a transition, in the order of the relation."""
        if self._rows is None:
            assert isinstance(self._top, FlowNode)
            return self._top.alive(context)
        slots = self._rows.slots()
        starts, owners = self._rows.owners_of(slots)
        slots = slots[np.repeat(np.arange(len(slots)), np.diff(starts))[owners == column]]
        slots = slots[np.lexsort(self._rows.ids_of(slots)[:, ::-1].T)]
        relation = Relation(self._rows.columns(slots), len(slots))
        return TemporalRelation(relation, self._rows.rows.valid_from[slots], self._rows.rows.valid_to[slots])


Scanned = tuple[Node, int]
"""A node that gives the rows of a scan, and the column of the scan's predicate."""


def _without_keys(delta: Delta) -> KeyValues:
    return KeyValues([], np.ones(len(delta.temporal), np.bool_))


def _moves(temporal: TemporalRelation, turn: Turn) -> Int64Array:
    """int64, ms: when rows come or go on a turn, but for those that are there for less than a millisecond."""
    lasting = halved(temporal.valid_from) != halved(temporal.valid_to)
    both = np.concatenate([temporal.valid_from[lasting], temporal.valid_to[lasting]])
    return halved(both[turn.interval.among(both)])
