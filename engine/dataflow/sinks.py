"""Sinks: from deltas to the changes that leave, of all queries that give the same columns.

Equal rows that enter and leave an answer at one instant cancel. Cost: O(changes), a sort, and hashing of
those that may cancel.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa

from engine.changes.context import EvaluationContext
from engine.changes.equality import codes_of, double_bits, equal_values
from engine.changes.source_interval import by_retention, halved
from engine.changes.temporal_relation import TemporalRelation, one_after_another
from engine.dataflow.arrangements.cells import events_of
from engine.dataflow.arrangements.copy_counts import CopyCounts
from engine.dataflow.cancel import remaining
from engine.dataflow.columns import Readers
from engine.dataflow.delta import Delta
from engine.dataflow.node import Node
from engine.dataflow.turn import Turn
from engine.kernels import meeting
from engine.kernels import told as kernels
from engine.kernels.told import Events, ItemLists
from engine.model.batch import BoolArray, Column, Int32Array, Int64Array
from engine.model.changes import Changes, Operator, Weights
from engine.model.limits import Limits
from engine.model.types import Kind
from engine.operators.relation import Relation
from tureen.errors import LimitExceeded


class Sink(ABC):
    """The queries that read one node in one way. only_differences: nothing leaves where nothing changed."""

    only_differences = True

    def __init__(self, top: Node, schema: pa.Schema) -> None:
        self._top = top
        self._schema = schema
        self._columns: dict[str, int] = {}
        self._readers: _Queries | None = None

    @property
    def query_ids(self) -> Collection[str]:
        """The queries."""
        return self._columns.keys()

    def add(self, query_id: str, column: int) -> None:
        """A query reads a column of the node."""
        self._columns[query_id] = column
        self._readers = None
        self._top.want(column)

    def remove(self, query_id: str) -> None:
        """A query goes."""
        self._readers = None
        self._top.leave(self._columns.pop(query_id))

    @property
    def nbytes(self) -> int:
        """Bytes of what is kept."""
        return 0

    def begin(self, context: EvaluationContext) -> None:
        """A transition begins; the node has begun it."""
        return

    @abstractmethod
    def take(self, turn: Turn) -> None:
        """What changes on a turn."""

    @abstractmethod
    def give(
        self, context: EvaluationContext, broken: dict[str, Exception], now_ms: int
    ) -> Iterator[Changes]:
        """What leaves on a transition. broken: gets the queries of which more would leave than the limit
        allows.
        """

    def forget(self) -> None:
        """What is kept is not true any more."""
        return

    def _reading(self) -> _Queries:
        if self._readers is None:
            self._readers = _Queries(self._columns)
        return self._readers


class ChangeSink(Sink):
    """All changes, or those by which rows come (ISTREAM) or go (DSTREAM)."""

    def __init__(
        self,
        top: Node,
        operator: Operator,
        schema: pa.Schema,
        *,
        counts_copies: bool,
        limited: bool,
    ) -> None:
        """counts_copies: copies of equal rows are told apart. limited: ``changes_max`` is of each query."""
        super().__init__(top, schema)
        self._limited = limited
        self._operator = operator
        self._copies = CopyCounts(top.settings.capacities) if counts_copies else None
        self._coming: dict[str, int] = {}
        self._taken: list[tuple[Delta, Turn]] = []

    @property
    def only(self) -> tuple[str, int] | None:
        """The only query, with its column, where what it is told is each row that comes; else None."""
        if len(self._columns) != 1 or self._limited or self._copies is not None:
            return None
        return next(iter(self._columns.items())) if self._operator == "istream" else None

    def table(self, relation: Relation) -> pa.Table:
        """Rows as they are told."""
        columns = [column.to_arrow() for column in relation.columns]
        return pa.Table.from_arrays(columns, schema=self._schema)

    def add(self, query_id: str, column: int) -> None:
        if self._copies is not None:
            self._coming[query_id] = column
        super().add(query_id, column)

    def remove(self, query_id: str) -> None:
        super().remove(query_id)
        if self._copies is not None and self._coming.pop(query_id, None) is None:
            self._copies.leave(query_id)

    @property
    def nbytes(self) -> int:
        return 0 if self._copies is None else self._copies.nbytes

    def begin(self, context: EvaluationContext) -> None:
        if self._copies is None or not self._coming:
            return
        coming = _Queries(self._coming)
        self._coming.clear()
        for delta in self._top.standing(context, np.unique(coming.columns)):
            pairs, readers = coming.of(delta.owners)
            rows = delta.rows()[pairs]
            columns = [column.take(rows) for column in delta.temporal.relation.columns]
            self._copies.number(columns, coming.query_ids, readers, np.ones(len(rows), np.int8))

    def forget(self) -> None:
        self._taken.clear()
        if self._copies is not None:
            self._copies = CopyCounts(self._top.settings.capacities)
            self._coming = dict(self._columns)

    def take(self, turn: Turn) -> None:
        delta = self._top.delta(turn)
        if len(delta):
            self._taken.append((delta, turn))

    def give(
        self, context: EvaluationContext, broken: dict[str, Exception], now_ms: int
    ) -> Iterator[Changes]:
        changes = self._given(context, broken, now_ms)
        if changes is not None:
            yield changes

    def _given(self, context: EvaluationContext, broken: dict[str, Exception], now_ms: int) -> Changes | None:
        reading = self._reading()
        if self._operator == "istream" and len(self._taken) == 1 and self._copies is None:
            coming = _coming(*self._taken[0], reading)
            if coming is not None and not (self._limited and len(coming[0]) > context.limits.changes_max):
                self._taken.clear()
                return self._come(*coming, context, now_ms)
        found = _Found(self._taken, reading, self._operator)
        self._taken.clear()
        most = context.limits.changes_max if self._limited else int(found.counts.sum())
        for place in np.flatnonzero(found.counts > most).tolist():
            broken[reading.query_ids[place]] = too_many(context.limits, int(found.counts[place]))
        counts = np.where(found.counts > most, 0, found.counts)
        at, rows, weights = found.told(counts, reading)
        if not len(rows):
            return None
        temporal, forgets = found.temporal, found.forgets
        readers = np.repeat(np.arange(len(counts), dtype=np.int32), counts)
        if forgets:
            order = np.lexsort((weights, at, readers))
            at, rows, weights = at[order], rows[order], weights[order]
        of_rows = temporal.relation.columns
        if self._top.telling is None or forgets:
            left = _uncancelled(of_rows, rows, readers, at, weights)
        else:
            left = np.ones(len(rows), np.bool_)
        if self._operator != "changes":
            left &= weights == (1 if self._operator == "istream" else -1)
        if not left.all():
            readers, at, rows, weights = readers[left], at[left], rows[left], weights[left]
        if not len(readers):
            return None
        columns = [column.take(rows) for column in of_rows]
        copies = None
        if self._copies is not None:
            copies = self._copies.number(columns, reading.query_ids, readers, weights)
        if len(reading.query_ids) == 1:
            starts, whose = np.array([0, len(readers)]), readers[:1]
        else:
            told = np.bincount(readers, minlength=len(reading.query_ids))
            whose = np.flatnonzero(told).astype(np.int32)
            starts = np.concatenate([[0], np.cumsum(told[whose])])
        return Changes(
            reading.names(whose),
            starts,
            pa.Table.from_arrays([column.to_arrow() for column in columns], schema=self._schema),
            weights,
            context.transition.told(at),
            np.full(len(whose), now_ms),
            copies=copies,
        )

    def _come(
        self, rows: TemporalRelation, at: Int64Array, context: EvaluationContext, now_ms: int
    ) -> Changes | None:
        """All rows come to the only query, at these instants."""
        n = len(rows)
        if not n:
            return None
        told, table = context.transition.told(at), self.table(rows.relation)
        return Changes.of_one(next(iter(self._columns)), table, np.ones(n, np.int8), told, now_ms)


def _coming(delta: Delta, turn: Turn, reading: _Queries) -> tuple[TemporalRelation, Int64Array] | None:
    """The rows that come to the only query there is, and when, in ms; None where there are others, where a
    row that goes may take back one that comes, or where they stand in another order.
    """
    temporal, interval = delta.temporal, turn.interval
    if not reading.reads_all(delta):
        return None
    went = interval.among(temporal.valid_to)
    if went.any() and not by_retention(temporal.valid_to[went]).all():
        return None
    temporal = temporal.where(interval.among(temporal.valid_from))
    at = temporal.valid_from
    if by_retention(at).any() or (at[1:] < at[:-1]).any():
        return None
    return temporal, halved(at)


def too_many(limits: Limits, changes: int) -> LimitExceeded:
    """Refuses so many changes of a query."""
    hint = "take smaller steps, or a narrower window or predicate"
    return LimitExceeded("changes_max", limits.changes_max, changes, hint=hint)


class _Queries(Readers):
    """Queries by the column that each reads."""

    def __init__(self, columns: Mapping[str, int]) -> None:
        self.query_ids = tuple(columns)
        self.columns: Int32Array = np.array(list(columns.values()), np.int32)
        super().__init__(self.columns)

    def reads_all(self, delta: Delta) -> bool:
        """Whether there is one query, and each row of a delta is of its column alone."""
        if len(self.columns) != 1 or len(delta.owners) != len(delta.temporal):
            return False
        return bool((delta.owners == self.columns[0]).all())

    def names(self, places: Int32Array) -> tuple[str, ...]:
        """The ids of the queries at these places, ascending."""
        if len(places) == len(self.query_ids):
            return self.query_ids
        return tuple([self.query_ids[place] for place in places.tolist()])


class _Found:
    """What changed on the turns of a transition.

    counts: int64[queries], of how many rows each is told. forgets: whether retention made any of it.
    """

    def __init__(self, taken: Sequence[tuple[Delta, Turn]], reading: _Queries, operator: Operator) -> None:
        self._happened: list[tuple[Events, ItemLists | None]] = []
        """Without lists: all are told to the one query that there is."""
        self._lives = [delta.temporal for delta, _ in taken]
        self.counts: Int64Array = np.zeros(len(reading.query_ids), np.int64)
        self.forgets = False
        for delta, turn in taken:
            events, owners = events_of(delta, turn.interval), ItemLists(delta.starts, delta.owners)
            forgotten = by_retention(events.at)
            if forgotten.any():
                self.forgets = True
                if operator == "istream":
                    at, rows, weights = events
                    events = Events(at[~forgotten], rows[~forgotten], weights[~forgotten])
            if reading.reads_all(delta):
                self.counts += len(events.rows)
                self._happened.append((events, None))
                continue
            kernels.count(events.rows, owners, reading.lists, self.counts)
            self._happened.append((events, owners))

    @property
    def temporal(self) -> TemporalRelation:
        """All rows."""
        return one_after_another(self._lives)

    def told(self, counts: Int64Array, reading: _Queries) -> Events:
        """By query, and of each by instant and weight, unless retention made some: instants in ms, rows, and
        weights of all changes. counts: those above, 0 of queries that are not told.
        """
        n = int(counts.sum())
        if n and len(self._happened) == 1 and self._happened[0][1] is None:
            at, rows, weights = self._happened[0][0]
            return Events(halved(at), rows, weights)
        told = Events(np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int8))
        cursors = np.where(counts > 0, np.cumsum(counts) - counts, -1)
        base = 0
        for (events, owners), temporal in zip(self._happened, self._lives, strict=True):
            if owners is not None:
                kernels.hand_out(events, base, owners, reading.lists, cursors, told)
            elif n:
                here = slice(int(cursors[0]), int(cursors[0]) + len(events.rows))
                told.at[here], told.rows[here] = halved(events.at), base + events.rows
                told.weights[here] = events.weights
                cursors[0] += len(events.rows)
            base += len(temporal)
        return told


def _uncancelled(
    of_rows: Sequence[Column], rows: Int64Array, readers: Int32Array, at: Int64Array, weights: Weights
) -> BoolArray:
    """bool[n]: which changes are left. They stand by query, instant and weight. of_rows: columns; rows: the
    row of each change.
    """
    n = len(weights)
    kept = np.ones(n, np.bool_)
    if n < 2 or weights.min() == weights.max():
        return kept
    places, groups = np.empty(n, np.int64), np.empty(n, np.int64)
    count, widest = kernels.mixed(readers, at, weights, places, groups)
    if not count:
        return kept
    places, groups = places[:count], groups[:count]
    if widest == 2:  # one row gives way to another
        came = places[1::2]
        equal = _equal(of_rows, rows[came - 1], rows[came])
        kept[came[equal]] = kept[came[equal] - 1] = False
        return kept
    columns, weights = [column.take(rows[places]) for column in of_rows], weights[places]
    may = np.flatnonzero(_may_cancel(columns, weights, groups))
    codes = lambda some: codes_of([column.take(may[some]) for column in columns], len(some))  # noqa: E731
    kept[places[may]] = False
    kept[places[may[remaining(codes, weights[may], groups[may])]]] = True
    return kept


def _may_cancel(columns: Sequence[Column], weights: Weights, groups: Int64Array) -> BoolArray:
    """bool[n]: which changes may have an equal one of the other sign in their group, by hashes."""
    n = len(weights)
    hashes = groups.astype(np.uint64)
    for column in columns:
        if column.type.kind is not Kind.NULL:
            double = column.type.kind is Kind.DOUBLE
            words = double_bits(column.values) if double else column.values.astype(np.int64, copy=False)
            if column.valid is not None:
                words = np.where(column.valid, words, 0)
            meeting.mix(hashes, words)
    room = 1 << max(0, n // 4).bit_length()
    return meeting.may_meet(hashes, weights, np.zeros(room, np.uint64), np.zeros(room, np.uint64))


def _equal(columns: Sequence[Column], some: Int64Array, others: Int64Array) -> BoolArray:
    """bool[n]: which rows equal which others to the bit."""
    equal = np.ones(len(some), np.bool_)
    for column in columns:
        equal &= equal_values(column, some, others)
    return equal
