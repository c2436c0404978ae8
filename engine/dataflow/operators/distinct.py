"""DISTINCT over rows whose exits are known: of each value the row that is given, and how long the last of
its duplicates stays (Golab and Oezsu, section 5.3.1: delta*). The input is not kept.

Which duplicate is kept: on WKS input the youngest leaves last; on WK input the youngest may leave first, so
that one is kept that leaves last. What takes the place of a row that leaves is given at that instant, with
an exit of its own. Cost: O(1) a row, and that of the buffer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from engine.changes.context import EvaluationContext
from engine.changes.transition import FOREVER, NEVER
from engine.dataflow.buffers.buffer import Work
from engine.dataflow.delta import Delta
from engine.dataflow.node import Node
from engine.dataflow.operators.by_cell import ByCell
from engine.dataflow.policy import KeptEdge
from engine.dataflow.turn import Turn
from engine.kernels import distinct as kernels
from engine.kernels.distinct import GIVEN, LATEST, NOBODY, NONE, TOLD, UNLISTED, WORDS, EmittedRows
from engine.model.batch import Int32Array, Int64Array
from engine.model.expressions import Expression


class DistinctNode(ByCell):
    """Keeps of each value the row that is given, and the duplicate that leaves last."""

    def __init__(
        self, below: Node, keys: Sequence[Expression], edge: KeptEdge, *, exits_known: bool = True
    ) -> None:
        """edge: what is given, which this node keeps. exits_known: the row that stands for a value is given
        with its exit, and another from then on; else a value is given as long as it is there.
        """
        super().__init__(below, keys)
        assert below.exits_known
        self.exits_known = exits_known
        if not exits_known:
            self.telling = frozenset(range(len(keys)))
        self._edge = edge
        self.forget()

    def forget(self) -> None:
        self._forget_runs()
        self._buffer = self._edge.buffer(self.settings)
        self._state = _no_cells(0)
        self._left: list[Int32Array] = []

    def _drop_runs(self, runs: Int32Array) -> None:
        listed = runs[self._state[runs, TOLD] != UNLISTED]
        self._buffer.remove(listed, self._state[listed, GIVEN])
        self._state[listed, TOLD] = UNLISTED

    def _hydrate(self, context: EvaluationContext) -> None:
        columns = self._newly_wanted()
        if not len(columns):
            return
        for delta in self.below.standing(context, columns):
            temporal = delta.temporal
            order = np.argsort(-temporal.valid_to, kind="stable")  # the first is given
            cells = self._runs_of(delta.take(order))
            _, new = self._arrive(delta.take(order), cells, _room(2 * len(cells)))
            self._state[new, TOLD] = NOBODY
            self._insert(new)

    def standing(self, context: EvaluationContext, columns: Int32Array) -> Iterator[Delta]:
        cells = self._runs_of_columns(columns)
        cells = cells[self._state[cells, TOLD] != UNLISTED]
        valid_to = self._state[cells, GIVEN] if self.exits_known else np.full(len(cells), FOREVER)
        yield self._of(EmittedRows(cells, np.full(len(cells), NEVER), valid_to))

    def _changed(self, turn: Turn) -> Delta:
        delta = self._below(turn)
        starts = delta.temporal.valid_from
        if len(starts) and not (starts[1:] >= starts[:-1]).all():
            delta = delta.take(np.argsort(starts, kind="stable"))
        cells, due = self._runs_of(delta), self._buffer.expire(turn.clock)
        given = _room(3 * len(cells) + len(due))
        count, new = self._arrive(delta, cells, given)
        due = np.concatenate([due, new])
        stay, count = kernels.expire(due, turn.clock, self._state, self.exits_known, given, count)
        self._insert(due[:stay])
        self._left.append(due[stay:])
        return self._of(EmittedRows(given.cells[:count], given.valid_from[:count], given.valid_to[:count]))

    def _arrive(self, delta: Delta, cells: Int32Array, given: EmittedRows) -> tuple[int, Int32Array]:
        """Rows arrive, in the order of their entry: how many are given, and the cells that are new."""
        self._make_room()
        new, temporal = np.empty(len(cells), np.int32), delta.temporal
        n_new, count = kernels.arrive(
            delta.starts,
            cells,
            temporal.valid_from,
            temporal.valid_to,
            self._state,
            self.exits_known,
            new,
            given,
        )
        return count, new[:n_new]

    def _insert(self, cells: Int32Array) -> None:
        self._buffer.insert(cells, self._state[cells, GIVEN])

    def rest(self) -> None:
        super().rest()
        left, self._left = self._left, []
        if left:
            cells = left[0] if len(left) == 1 else _each_once(left, len(self._state))
            self._release(cells, self._state[cells, TOLD] == UNLISTED)

    def _make_room(self) -> None:
        assert self._groups is not None
        room = self._groups.capacity
        if len(self._state) < room:
            more = _no_cells(room)
            more[: len(self._state)] = self._state
            self._state = more

    @property
    def state_work(self) -> Work:
        return self._buffer.work

    @property
    def rows(self) -> int:
        there = self._state[:, TOLD] != UNLISTED
        return len(self._buffer) + int(np.count_nonzero(self._state[there, LATEST] != NONE))

    @property
    def nbytes(self) -> int:
        assert self._groups is not None
        return self._groups.nbytes + self._buffer.nbytes + self._state.nbytes

    def _check(self) -> None:
        assert self._groups is not None
        self._groups._check()
        self._buffer._check()
        used = self._groups.used()
        assert bool((self._state[used, TOLD] == NOBODY).all())
        assert len(used) == len(self._buffer)
        given, latest = self._state[used, GIVEN], self._state[used, LATEST]
        assert bool(((latest == NONE) | (latest > given)).all())


def _room(n: int) -> EmittedRows:
    return EmittedRows(np.empty(n, np.int32), np.empty(n, np.int64), np.empty(n, np.int64))


def _no_cells(n: int) -> Int64Array:
    state = np.full((n, WORDS), NONE)
    state[:, TOLD] = UNLISTED
    return state


def _each_once(cells: Sequence[Int32Array], capacity: int) -> Int32Array:
    """Cells of several arrays, ascending. capacity: above all of them."""
    found = np.zeros(capacity, np.bool_)
    for some in cells:
        found[some] = True
    return np.flatnonzero(found).astype(np.int32)
