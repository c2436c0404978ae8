"""Windows of rows by key or by condition: the last n rows of each run, as rows come in their order.

    PARTITION BY k ROWS n          over all rows that are retained
    ROWS n WHERE p                 over those that satisfy p

A row that n others of its run followed never comes back, so nothing but the rows of the window is kept. Cost:
O(1) a row that comes or goes; O(retained) when a query comes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from engine.changes.context import EvaluationContext
from engine.changes.temporal_relation import TemporalRelation
from engine.dataflow.arrangements.cells import events_of
from engine.dataflow.arrangements.row_store import longer
from engine.dataflow.arrangements.word_table import WordTable
from engine.dataflow.arrangements.words import Words
from engine.dataflow.delta import Delta
from engine.dataflow.node import Node
from engine.dataflow.operators.runs import ByRun
from engine.dataflow.turn import Turn
from engine.kernels import queues as kernels
from engine.kernels.queues import Queues, Released, WindowVersions
from engine.model.batch import Column, Int32Array, Int64Array
from engine.model.expressions import Expression
from engine.model.lazy_columns import LazyColumns
from engine.operators.relation import Relation

ROOM_MIN = 256


@dataclass(frozen=True, slots=True)
class LatestSpec:
    """The last ``rows`` of each value of the keys. asked: places of columns that a condition above reads and
    that rows are made with, if they do not store them: these are kept besides.
    """

    rows: int
    keys: tuple[Expression, ...]
    asked: tuple[int, ...] = ()


class LatestNode(ByRun):
    """A row's id is the one below and its column."""

    def __init__(self, below: Node, stage: LatestSpec) -> None:
        super().__init__(below, stage.keys)
        self._most = stage.rows
        self._asked = stage.asked
        self.id_words = below.id_words + 1
        self.ordered = below.ordered
        self.forget()

    def forget(self) -> None:
        self._forget_runs()
        self._codes: Words | None = None
        self._width = 0
        """Columns that rows store; the others follow them in tuples, as ``_asked`` has them."""
        self._ids = WordTable(self.below.id_words, self.settings.capacities)
        self._values: Int64Array = np.zeros((0, 0), np.int64)
        self._queues = _no_queues()
        self._records = 1

    def _drop_runs(self, runs: Int32Array) -> None:
        self._make_room(runs)
        released = _released(len(self._queues.slots))
        kernels.clear(runs, self._queues, released)
        self._give_back(released)

    # --- rows that stand --------------------------------------------------------------------------

    def _hydrate(self, context: EvaluationContext) -> None:
        if not self._coming:
            return
        for delta in self.below.standing(context, self._newly_wanted()):
            slots = self._put(delta, np.arange(len(delta.temporal)))
            runs = self._runs_of(delta)
            self._make_room(runs)
            released = _released(len(runs))
            kernels.enter(delta.starts, runs, slots, self._most, self._queues, released)
            self._give_back(released)

    def standing(self, context: EvaluationContext, columns: Int32Array) -> Iterator[Delta]:
        runs = self._runs_of_columns(columns)
        self._make_room(runs)
        n = int(self._queues.counts[runs].sum())
        slots, of = np.empty(n, np.int32), np.empty(n, np.int32)
        kernels.listed(runs, self._queues, slots, of)
        yield self._told(slots, of, np.full(n, kernels.NEVER), np.full(n, kernels.FOREVER))

    # --- rows that move ---------------------------------------------------------------------------

    def _changed(self, turn: Turn) -> Delta:
        delta, interval = self._below(turn), turn.interval
        came = interval.among(delta.temporal.valid_from)
        slots = np.full(len(came), -1, np.int32)
        slots[~came] = self._ids.find(np.ascontiguousarray(delta.ids_of()[~came]))
        entering = np.flatnonzero(came)
        slots[entering] = self._put(delta, entering)
        runs = self._runs_of(delta)
        self._make_room(runs)
        at, rows, signs = events_of(delta, interval)
        room = 2 * int(np.diff(delta.starts)[rows].sum())
        made, released = _records(room), _released(room)
        base = self._records
        kernels.fold(
            at, rows, signs, delta.starts, runs, slots, self._most, base, self._queues, made, released
        )
        count = int(made.filled[0])
        self._records += count
        kept = np.flatnonzero(made.valid_from[:count] < made.valid_to[:count])
        told = self._told(made.slots[kept], made.runs[kept], made.valid_from[kept], made.valid_to[kept])
        self._give_back(released)
        affected = np.unique(runs)
        self._release(affected, self._queues.counts[affected] == 0)
        return told

    def _told(self, slots: Int32Array, runs: Int32Array, begins: Int64Array, ends: Int64Array) -> Delta:
        tuples, owners = self._values[slots], self._columns_of(runs)
        codes = None if self._codes is None else self._codes.as_they_stand()

        def make(place: int) -> Column:
            assert codes is not None
            return codes.column(place if place < width else width + made.index(place), tuples)

        width, made = self._width, self._made(self._width)
        ids = np.hstack([self._ids.words[slots], owners.reshape(-1, 1)])
        relation = Relation(LazyColumns(width, make), len(slots))
        return Delta.of_one_each(TemporalRelation(relation, begins, ends), owners, lambda: ids)

    # --- rows -------------------------------------------------------------------------------------

    def _put(self, delta: Delta, rows: Int64Array) -> Int32Array:
        """The slots of rows that are there, or come: their ids by number."""
        stored = delta.temporal.relation.columns
        columns = [*stored, *(stored[place] for place in self._made(len(stored)))]
        if self._codes is None:
            self._width = len(stored)
            self._codes = Words([column.type for column in columns], self.settings.capacities)
            self._values = np.zeros((self._ids.capacity, self._codes.width), np.int64)
        slots = self._ids.number(np.ascontiguousarray(delta.ids_of()[rows]))
        if len(self._values) < self._ids.capacity:
            self._values = longer(self._values, self._ids.capacity)
        self._values[slots] = self._codes.encode([column.take(rows) for column in columns], len(rows))
        return slots

    def _made(self, width: int) -> list[int]:
        """Places of columns that no row stores."""
        return [place for place in self._asked if place >= width]

    def _give_back(self, released: Released) -> None:
        """Rows that are in no run any more go."""
        self._ids.release(released.slots[: int(released.filled[0])])
        if self._codes is not None and self._codes.is_wasteful(len(self._ids)):
            self._codes.shrink(self._values, self._ids.used())

    def _make_room(self, runs: Int32Array) -> None:
        """For pairs of rows with these runs."""
        held = self._queues
        width = int(runs.max(initial=-1)) + 1
        if width > len(held.counts):
            by_run = ("first", "last", "counts")
            held = held._replace(**{name: longer(getattr(held, name), 2 * width) for name in by_run})
        if len(held.held) < self._ids.capacity:
            held = held._replace(held=longer(held.held, self._ids.capacity))
        room, free = len(held.slots), int(held.top[0])
        if len(runs) > free:
            more = max(room, len(runs), self.settings.capacities.first(ROOM_MIN))
            by_entry = ("slots", "following", "told", "free")
            held = held._replace(**{name: longer(getattr(held, name), room + more) for name in by_entry})
            held.free[free : free + more] = np.arange(room, room + more)
            held.top[0] += more
        self._queues = held

    @property
    def rows(self) -> int:
        return len(self._ids)

    @property
    def nbytes(self) -> int:
        codes = 0 if self._codes is None else self._codes.nbytes
        groups = 0 if self._groups is None else self._groups.nbytes
        queues = sum(each.nbytes for each in self._queues)
        return groups + codes + self._ids.nbytes + self._values.nbytes + queues

    def _check(self) -> None:
        self._ids._check()
        held, used = self._queues, int(self._queues.counts.sum())
        assert used + int(held.top[0]) == len(held.slots)
        assert bool((held.counts <= self._most).all())
        slots, of = np.empty(used, np.int32), np.empty(used, np.int32)
        kernels.listed(np.flatnonzero(held.counts).astype(np.int32), held, slots, of)
        assert np.bincount(slots, minlength=len(held.held)).tolist() == held.held.tolist()
        assert np.unique(slots).tolist() == self._ids.used().tolist()


def _no_queues() -> Queues:
    none, wide = np.zeros(0, np.int32), np.zeros(0, np.int64)
    return Queues(none, none, wide, none, none, wide, none, np.zeros(1, np.int64), none)


def _records(room: int) -> WindowVersions:
    slots, runs = np.empty(room, np.int32), np.empty(room, np.int32)
    return WindowVersions(
        slots, runs, np.empty(room, np.int64), np.empty(room, np.int64), np.zeros(1, np.int64)
    )


def _released(room: int) -> Released:
    return Released(np.empty(room, np.int32), np.zeros(1, np.int64))
