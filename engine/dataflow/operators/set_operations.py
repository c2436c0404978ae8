"""UNION ALL, and INTERSECT [ALL] and EXCEPT [ALL] of whole rows, which are counted.

Where all columns are compared nobody sees which of equal rows is in the answer, so it is kept as how many
copies of each value there are: inputs need no ids, nothing is kept but two counts a value and query, and a
row that gives way to an equal one at one instant is not told.

Cost: O(1) a row and column, amortised. NULL equals NULL here, NaN equals NaN, and -0.0 is given as 0.0.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from engine.algebra.set_operation.stage import SetOperation
from engine.changes.context import EvaluationContext
from engine.changes.temporal_relation import Interval, TemporalRelation, always, one_after_another
from engine.dataflow.arrangements.cells import events_of
from engine.dataflow.arrangements.pairs import Pairs
from engine.dataflow.arrangements.row_store import longer
from engine.dataflow.buffers.buffer import Work
from engine.dataflow.delta import Delta
from engine.dataflow.kept_columns import KeepsColumns
from engine.dataflow.node import Node
from engine.dataflow.operators.two_inputs import TwoInputs
from engine.dataflow.turn import Turn
from engine.kernels import set_copies as kernels
from engine.kernels.set_copies import CopyVersions, Counts, Moves
from engine.model.batch import Int32Array, Int64Array
from engine.model.types import Type
from engine.operators.keys import with_one_zero
from engine.operators.relation import Relation


@dataclass(frozen=True, slots=True)
class Union:
    """UNION ALL. merged: its rows are in the order of time; else those of the left input come first."""

    merged: bool = False


@dataclass(frozen=True, slots=True)
class Compared:
    """INTERSECT or EXCEPT. form: one of :mod:`engine.kernels.set_copies`. on: the places of the columns that
    are compared, left and right; types: theirs.
    """

    form: int
    on: tuple[tuple[int, int], ...]
    types: tuple[Type, ...]

    @classmethod
    def of(cls, stage: SetOperation) -> Compared:
        """As a stage has it, which is no UNION."""
        columns = stage.inner.columns
        on = stage.on if stage.on is not None else tuple((place, place) for place in range(len(columns)))
        forms = {
            ("intersect", False): kernels.INTERSECT,
            ("intersect", True): kernels.INTERSECT_ALL,
            ("except", False): kernels.EXCEPT,
            ("except", True): kernels.EXCEPT_ALL,
        }
        return cls(forms[stage.kind, stage.all], on, tuple(columns[place][1] for _, place in on))


class UnionNode(TwoInputs):
    """Rows of both. It keeps nothing. The id of a row is its side and its id there, with zeros behind it
    where those of the other side are longer. Exits are known where those of both inputs are.
    """

    def __init__(self, left: Node, right: Node) -> None:
        super().__init__(left, right)
        if left.id_words and right.id_words:
            self.id_words = 1 + max(left.id_words, right.id_words)
            self.ordered = left.ordered and right.ordered
        assert left.exits_known == right.exits_known
        self.exits_known = left.exits_known

    def standing(self, context: EvaluationContext, columns: Int32Array) -> Iterator[Delta]:
        left, right = self._over_of(columns)
        for delta in self.left.standing(context, left.below):
            yield self._of_side(0, left.spread(delta).owned())
        for delta in self.right.standing(context, right.below):
            yield self._of_side(1, right.spread(delta).owned())

    def _changed(self, turn: Turn) -> Delta:
        left, right = self._below(turn)
        left, right = self._of_side(0, left), self._of_side(1, right)
        if not len(left.temporal) or not len(right.temporal):
            return left if len(left.temporal) else right
        temporal = one_after_another([left.temporal, right.temporal])
        starts = np.concatenate([left.starts, left.starts[-1] + right.starts[1:]])
        owners = np.concatenate([left.owners, right.owners])
        ids = (lambda: np.concatenate([left.ids_of(), right.ids_of()])) if self.id_words else None
        return Delta(temporal, starts, owners, ids)

    def read(self, context: EvaluationContext, ids: Int64Array) -> Relation:
        sides = [np.flatnonzero(ids[:, 0] == side) for side in range(2)]
        found = [
            node.read(context, np.ascontiguousarray(ids[rows, 1 : 1 + node.id_words]))
            for node, rows in zip(self.inputs, sides, strict=True)
            if len(rows) or len(rows) == len(ids)
        ]
        order = np.empty(len(ids), np.int64)
        order[np.concatenate(sides)] = np.arange(len(ids))
        return one_after_another([always(each) for each in found]).relation.take(order)

    def _of_side(self, side: int, delta: Delta) -> Delta:
        """Gives the rows of a side the ids that they have here: the side, and the id below."""
        self.visited += len(delta.temporal)

        def ids() -> Int64Array:
            below = delta.ids_of()
            words = np.zeros((len(below), self.id_words), np.int64)
            words[:, 0], words[:, 1 : 1 + below.shape[1]] = side, below
            return words

        return Delta(delta.temporal, delta.starts, delta.owners, ids if self.id_words else None)


class ComparedNode(KeepsColumns, TwoInputs):
    """What INTERSECT and EXCEPT have in common: a *cell* for each value of each column, with its counts."""

    def __init__(self, left: Node, right: Node, compared: Compared) -> None:
        super().__init__(left, right)
        self._compared = compared

    def _forget_cells(self) -> None:
        self._forget_columns()
        self._cells = Pairs(self._compared.types, self.settings.capacities)
        self._left = np.zeros(self._cells.capacity, np.int64)
        self._right = np.zeros(self._cells.capacity, np.int64)
        self._size = np.zeros(self._cells.capacity, np.int64)
        self._work = Work()

    def _hydrate(self, context: EvaluationContext) -> None:
        if not self._coming:
            return
        columns = self._newly_wanted()
        left, right = self._over_of(columns)
        for standing in self.left.standing(context, left.below):
            delta = left.spread(standing).owned()
            self._stand(delta, self._cells_of(delta, of_left=True))
        for standing in self.right.standing(context, right.below):
            delta = right.spread(standing).owned()
            self._stand_right(delta, self._cells_of(delta, of_left=False))
        self._settle(self._of_columns(columns))

    @abstractmethod
    def _stand(self, delta: Delta, cells: Int32Array) -> None:
        """Left rows are there; cells: of each of their pairs."""

    def _stand_right(self, delta: Delta, cells: Int32Array) -> None:
        """Right rows are there."""
        kernels.enter(cells, self._right)

    @abstractmethod
    def _settle(self, cells: Int32Array) -> None:
        """The rows of these cells are there."""

    # --- cells ------------------------------------------------------------------------------------

    def _cells_of(self, delta: Delta, *, of_left: bool) -> Int32Array:
        """int32[pairs]: the cell of each. Asked once of each delta."""
        self.visited += len(delta.temporal)
        self._work.visited += len(delta.owners)
        columns = delta.temporal.relation.columns
        places = [left if of_left else right for left, right in self._compared.on]
        values = [with_one_zero(columns[place]) for place in places]
        keys = self._cells.number_keys(values, len(delta.temporal))
        cells = self._cells.of(np.repeat(keys, delta.counts()), delta.owners)
        if len(self._size) < self._cells.capacity:
            self._make_room(self._cells.capacity)
        return cells

    def _make_room(self, room: int) -> None:
        """For so many cells."""
        self._left, self._right = longer(self._left, room), longer(self._right, room)
        self._size = longer(self._size, room)

    def _of_columns(self, columns: Int32Array) -> Int32Array:
        cells = self._cells.used()
        return cells[np.isin(self._cells.places_of(cells), columns)]

    def _release_empty(self, *some: Int32Array) -> None:
        """Those of these cells go that have no row."""
        cells = np.concatenate(some)
        self._release(np.unique(cells[self._left[cells] + self._right[cells] == 0]))

    def _release(self, cells: Int32Array) -> None:
        """These cells go, each once."""
        self._left[cells] = self._right[cells] = self._size[cells] = 0
        self._cells.release(cells)

    @property
    def state_work(self) -> Work:
        """Each row looks at the counts of its value."""
        return self._work

    @property
    def rows(self) -> int:
        return len(self._cells)

    @property
    def nbytes(self) -> int:
        return self._cells.nbytes + self._left.nbytes + self._right.nbytes + self._size.nbytes

    def _check(self) -> None:
        self._cells._check()
        used = self._cells.used()
        left, right, size = self._left[used], self._right[used], self._size[used]
        assert bool(((left >= 0) & (right >= 0) & (left + right > 0)).all())
        sizes = [kernels.size_of(self._compared.form, *each) for each in zip(left, right, strict=True)]
        assert size.tolist() == sizes
        assert int(self._left.sum()) == int(left.sum())
        assert int(self._right.sum()) == int(right.sum())


class CopiesNode(ComparedNode):
    """Copies of values. The id of one is its cell and its number there."""

    id_words = 2

    def __init__(self, left: Node, right: Node, compared: Compared) -> None:
        super().__init__(left, right, compared)
        self.telling = frozenset(range(len(compared.types)))
        self.forget()

    def forget(self) -> None:
        self._forget_cells()
        self._top = np.full(self._cells.capacity, kernels.NONE, np.int32)

    def _make_room(self, room: int) -> None:
        super()._make_room(room)
        self._top = np.full(room, kernels.NONE, np.int32)

    def _drop(self, columns: Int32Array) -> None:
        self._release(self._of_columns(columns))

    def _stand(self, delta: Delta, cells: Int32Array) -> None:
        kernels.enter(cells, self._left)

    def _settle(self, cells: Int32Array) -> None:
        kernels.resize(cells, self._compared.form, self._counts())

    def standing(self, context: EvaluationContext, columns: Int32Array) -> Iterator[Delta]:
        cells = self._of_columns(columns)
        sizes = self._size[cells]
        copies = np.arange(1, 1 + int(sizes.sum())) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        cells = np.repeat(cells, sizes)
        never, forever = np.full(len(cells), kernels.NEVER), np.full(len(cells), kernels.FOREVER)
        yield self._told(cells, copies, never, forever)

    def _changed(self, turn: Turn) -> Delta:
        left, right = self._below(turn)
        of_left, of_right = self._cells_of(left, of_left=True), self._cells_of(right, of_left=False)
        made = _records(len(of_left) + len(of_right))
        kernels.fold(
            moves_of(left, of_left, turn.interval),
            moves_of(right, of_right, turn.interval),
            self._compared.form,
            self._counts(),
            made,
        )
        count = int(made.filled[0])
        kept = np.flatnonzero(made.valid_from[:count] < made.valid_to[:count])
        told = self._told(made.cells[kept], made.copies[kept], made.valid_from[kept], made.valid_to[kept])
        self._release_empty(of_left, of_right)
        return told

    def _told(self, cells: Int32Array, copies: Int64Array | Int32Array, *life: Int64Array) -> Delta:
        relation = Relation(self._cells.columns(cells), len(cells))
        ids = np.stack([cells, copies], axis=1).astype(np.int64)
        return Delta.of_one_each(TemporalRelation(relation, *life), self._cells.places_of(cells), lambda: ids)

    def _counts(self) -> Counts:
        return Counts(self._left, self._right, self._size, self._top)

    @property
    def nbytes(self) -> int:
        return super().nbytes + self._top.nbytes

    def _check(self) -> None:
        super()._check()
        assert bool((self._top == kernels.NONE).all())


def moves_of(delta: Delta, cells: Int32Array, interval: Interval) -> Moves:
    """The rows of a delta that enter and leave cells. cells: int32[pairs]."""
    return Moves(*events_of(delta, interval), delta.starts, cells)


def _records(pairs: int) -> CopyVersions:
    """Room for what pairs of a row and a cell may lead to: each enters and leaves once."""
    room = 2 * pairs
    return CopyVersions(
        np.empty(room, np.int32),
        np.empty(room, np.int32),
        np.empty(room, np.int32),
        np.empty(room, np.int64),
        np.empty(room, np.int64),
        np.zeros(1, np.int64),
    )
