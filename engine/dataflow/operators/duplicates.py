"""DISTINCT with the whole input at hand (Golab and Oezsu, section 5.3.1: the classic form): the strategies
``nt``, where exits are told and entries are found by the ids of rows, and ``direct``, where they are known
and the input is scanned for those that leave.

Cost: O(1) a row for a told exit; of ``direct`` all entries a turn.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from engine.changes.context import EvaluationContext
from engine.changes.transition import FOREVER, NEVER
from engine.dataflow.arrangements.id_slots import IdSlots
from engine.dataflow.arrangements.row_store import longer
from engine.dataflow.buffers.buffer import Work
from engine.dataflow.delta import Delta
from engine.dataflow.node import Node
from engine.dataflow.operators.by_cell import ByCell
from engine.dataflow.policy import KeptEdge
from engine.dataflow.turn import Turn
from engine.kernels import duplicates as kernels
from engine.kernels.distinct import EmittedRows
from engine.kernels.duplicates import NOBODY, Entries
from engine.model.batch import BoolArray, Int32Array, Int64Array
from engine.model.expressions import Expression

ROOM_MIN = 256


class DuplicatesNode(ByCell):
    """The id of a row is its cell: a value, and a column that has it. An entry is a row of a cell."""

    def __init__(
        self, below: Node, keys: Sequence[Expression], edge: KeptEdge | None, *, exits_known: bool = False
    ) -> None:
        """edge: how input with known exits is kept; None: exits are told. exits_known: the row that stands
        for a value is given with its exit, and another from then on; else a value is given as long as it is
        there.
        """
        super().__init__(below, keys)
        self.exits_known = exits_known
        assert below.exits_known == (edge is not None)
        if not self.exits_known:
            self.telling = frozenset(range(len(keys)))
        self._edge = edge
        self.work = Work()
        self.forget()

    def forget(self) -> None:
        self._forget_runs()
        self._buffer = None if self._edge is None else self._edge.buffer(self.settings)
        capacities = self.settings.capacities
        room = capacities.first(ROOM_MIN)
        self._ids = IdSlots(self.below.id_words + 1, capacities)
        self._id_of: Int64Array = np.empty((room, self.below.id_words + 1), np.int64)
        self._alive: BoolArray = np.zeros(room, np.bool_)
        none: Int32Array = np.full(0, NOBODY, np.int32)
        by_entry = np.zeros(room, np.int32)
        self._rows = Entries(
            none,
            none.copy(),
            none.astype(np.int64),
            by_entry,
            by_entry.copy(),
            by_entry.copy(),
            by_entry.astype(np.int64),
        )
        self._left: list[Int32Array] = []

    # --- rows -------------------------------------------------------------------------------------

    def _hydrate(self, context: EvaluationContext) -> None:
        columns = self._newly_wanted()
        if not len(columns):
            return
        for delta in self.below.standing(context, columns):
            entries, at = self._enter(delta, np.arange(len(delta.temporal)))
            self._take(entries, at, np.ones(len(entries), np.int8))

    def standing(self, context: EvaluationContext, columns: Int32Array) -> Iterator[Delta]:
        cells = self._runs_of_columns(columns)
        cells = cells[self._rows.given[cells] != NOBODY]
        until = np.full(len(cells), FOREVER)
        if self.exits_known:
            until = self._rows.valid_to[self._rows.given[cells]]
        yield self._of(EmittedRows(cells, np.full(len(cells), NEVER), until))

    def _changed(self, turn: Turn) -> Delta:
        delta, interval = self._below(turn), turn.interval
        temporal = delta.temporal
        enters = temporal.valid_from > interval.since
        known = np.flatnonzero(~enters & (temporal.valid_to <= interval.until))
        if self._buffer is None:  # before others come, which may have their ids
            leaving = self._ids.find(_ids(delta.take(known)))
            went = np.repeat(temporal.valid_to[known], delta.counts()[known])
        entered, came = self._enter(delta, np.flatnonzero(enters), interval.until)
        if self._buffer is not None:
            leaving = self._buffer.expire(turn.clock)
            went = self._rows.valid_to[leaving]
        else:
            short = entered[self._rows.valid_to[entered] <= interval.until]
            leaving = np.concatenate([leaving, short])
            went = np.concatenate([went, self._rows.valid_to[short]])
            self.work.negative += len(leaving)
        at = np.concatenate([came, went])
        what = np.repeat(np.array([1, 0], np.int8), [len(came), len(went)])
        order = np.lexsort((-what, at))
        events = np.concatenate([entered, leaving])
        given = self._take(events[order], at[order], what[order])
        self._leave(leaving)
        return self._of(given)

    def _take(self, entries: Int32Array, at: Int64Array, enters: np.ndarray) -> EmittedRows:
        n = len(entries)
        given = EmittedRows(np.empty(n, np.int32), np.empty(n, np.int64), np.empty(n, np.int64))
        count, visited = kernels.take(entries, at, enters, self.exits_known, self._rows, given)
        self.work.visited += visited
        return EmittedRows(given.cells[:count], given.valid_from[:count], given.valid_to[:count])

    def _enter(
        self, delta: Delta, rows: Int64Array, until: int | None = None
    ) -> tuple[Int32Array, Int64Array]:
        """The entries of some rows, one a column, and when they enter. until: of the turn; rows that are gone
        by then are not found by their ids, which others may have after them.
        """
        delta = delta.take(rows)
        cells = self._runs_of(delta)
        self._make_room(len(cells))
        entries = np.flatnonzero(~self._alive)[: len(cells)].astype(np.int32)
        counts, temporal = delta.counts(), delta.temporal
        self._alive[entries] = True
        self._rows.cell[entries] = cells
        self._rows.valid_to[entries] = np.repeat(temporal.valid_to, counts)
        if self._buffer is not None:
            self._buffer.insert(entries, self._rows.valid_to[entries])
        else:
            self._id_of[entries] = _ids(delta)
            stay = entries if until is None else entries[self._rows.valid_to[entries] > until]
            self._ids.put(self._id_of[stay], stay)
        self.work.inserted += len(entries)
        return entries, np.repeat(temporal.valid_from, counts)

    def _leave(self, entries: Int32Array) -> None:
        if self._buffer is None:
            self._ids.remove(self._id_of[entries], entries)
        self._alive[entries] = False
        self.work.deleted += len(entries)
        self._left.append(self._rows.cell[entries])

    def rest(self) -> None:
        super().rest()
        left, self._left = self._left, []
        if left:
            cells = np.unique(np.concatenate(left))
            self._release(cells, self._rows.first[cells] == NOBODY)

    def _drop_runs(self, runs: Int32Array) -> None:
        entries = np.flatnonzero(self._alive).astype(np.int32)
        entries = entries[np.isin(self._rows.cell[entries], runs)]
        if self._buffer is not None:
            self._buffer.remove(entries, self._rows.valid_to[entries])
        else:
            self._ids.remove(self._id_of[entries], entries)
        self._alive[entries] = False
        self._rows.first[runs] = self._rows.given[runs] = NOBODY

    def _make_room(self, more: int) -> None:
        """For so many entries, and all cells."""
        assert self._groups is not None
        rows, capacity = self._rows, self._groups.capacity
        if len(rows.first) < capacity:
            first, given = np.full((2, capacity), NOBODY, np.int32)
            told = np.full(capacity, NOBODY, np.int64)
            first[: len(rows.first)], given[: len(rows.given)] = rows.first, rows.given
            rows = rows._replace(first=first, given=given, told=told)
        used = int(np.count_nonzero(self._alive))
        if used + more > len(self._alive):
            room = 2 * (used + more)
            by_entry = ("cell", "following", "previous", "valid_to")
            rows = rows._replace(**{name: longer(getattr(rows, name), room) for name in by_entry})
            self._alive, self._id_of = longer(self._alive, room), longer(self._id_of, room)
        self._rows = rows

    @property
    def state_work(self) -> Work:
        return self.work

    @property
    def rows(self) -> int:
        return int(np.count_nonzero(self._alive))

    @property
    def nbytes(self) -> int:
        assert self._groups is not None
        buffer = self._ids.nbytes + self._id_of.nbytes if self._buffer is None else self._buffer.nbytes
        return self._groups.nbytes + buffer + self._alive.nbytes + sum(array.nbytes for array in self._rows)

    def _check(self) -> None:
        assert self._groups is not None
        self._groups._check()
        used = self._groups.used()
        assert bool((self._rows.given[used] != NOBODY).all())
        assert bool((self._rows.cell[self._rows.given[used]] == used).all())
        assert bool((self._rows.told == NOBODY).all())


def _ids(delta: Delta) -> Int64Array:
    """int64[pairs, w + 1]: an id for each pair of a row and a column: the row's id, and the column."""
    ids = np.repeat(delta.ids_of(), delta.counts(), axis=0)
    return np.hstack([ids, delta.owners.astype(np.int64).reshape(-1, 1)])
