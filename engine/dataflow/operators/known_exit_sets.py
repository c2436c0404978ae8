"""INTERSECT ALL over rows whose exits are known, which has known exits as far as can be.

Rows are kept as their ids, exits and cells, without values. A pair is there until the earlier exit of both
rows, unless one of them leaves before its time. Expiry follows the instants of the turn.

Cost: O(1) a row and column, amortised, and that of the buffers.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from engine.changes.context import EvaluationContext
from engine.changes.temporal_relation import TemporalRelation
from engine.dataflow.arrangements.cell_rows import CellRows
from engine.dataflow.arrangements.row_store import longer, with_none
from engine.dataflow.buffers.buffer import Work
from engine.dataflow.delta import Delta
from engine.dataflow.node import Node
from engine.dataflow.operators.join import Kept
from engine.dataflow.operators.set_operations import Compared, ComparedNode
from engine.dataflow.turn import Turn
from engine.kernels import set_pairs, set_rows
from engine.kernels.set_copies import Moves
from engine.kernels.set_pairs import PairSide, PairVersions
from engine.kernels.set_rows import ENTERED, PREMATURE
from engine.model.batch import Column, Int32Array, Int64Array
from engine.model.lazy_columns import LazyColumns
from engine.operators.distinct import with_plain_zeros
from engine.operators.relation import Relation


class KnownExitIntersectNode(ComparedNode):
    """INTERSECT ALL: pairs of equal rows. The id of one is that of the left row, of the right one, and its
    column; its values are those of the left row. Both inputs have known exits.
    """

    exits_known = True

    def __init__(self, left: Node, right: Node, compared: Compared, kept: Kept) -> None:
        """kept: how the rows of both are kept."""
        super().__init__(left, right, compared)
        assert left.exits_known
        assert right.exits_known
        self._kept = kept
        self._width = 0
        self.id_words = left.id_words + right.id_words + 1
        self.forget()

    def forget(self) -> None:
        self._forget_cells()
        of_left, of_right = self._kept
        assert of_left is not None
        assert of_right is not None
        self._left_rows = CellRows(of_left, self.left.id_words, self.settings)
        self._right_rows = CellRows(of_right, self.right.id_words, self.settings)
        self._records = 1
        self._links = [_no_links(self._cells.capacity) for _ in range(2)]
        self._pairs: Int64Array = np.zeros(0, np.int64)
        """The record of the pair of each left entry that is in one."""

    def _drop(self, columns: Int32Array) -> None:
        cells = self._of_columns(columns)
        dropped = np.zeros(self._cells.capacity, np.bool_)
        dropped[cells] = True
        for rows in self._both():
            rows.drop(dropped[rows.held.cells])
        self._release(cells)

    def _make_room(self, room: int) -> None:
        super()._make_room(room)
        self._links = [links._replace(last=with_none(links.last, room)) for links in self._links]

    def _make_entries(self) -> None:
        for place, rows in enumerate(self._both()):
            links, room = self._links[place], rows.entry_room
            if len(links.partner) < room:
                self._links[place] = links._replace(
                    partner=longer(links.partner, room),
                    previous=longer(links.previous, room),
                    following=longer(links.following, room),
                )
        if len(self._pairs) < self._left_rows.entry_room:
            self._pairs = longer(self._pairs, self._left_rows.entry_room)

    def _release(self, cells: Int32Array) -> None:
        super()._release(cells)
        for links in self._links:
            links.last[cells] = set_pairs.NONE

    # --- rows that stand --------------------------------------------------------------------------

    def _stand(self, delta: Delta, cells: Int32Array) -> None:
        self._width = len(delta.temporal.relation.columns)
        entries = self._left_rows.stand(delta, cells)
        self._make_entries()
        set_pairs.enter(entries, self._sides()[0])
        np.add.at(self._left, cells, 1)

    def _stand_right(self, delta: Delta, cells: Int32Array) -> None:
        super()._stand_right(delta, cells)
        entries = self._right_rows.stand(delta, cells)
        self._make_entries()
        set_pairs.enter(entries, self._sides()[1])

    def _settle(self, cells: Int32Array) -> None:
        for rows in self._both():
            rows.stood()
        set_pairs.settle(cells, self._pairs, *self._sides())
        self._size[cells] = np.minimum(self._left[cells], self._right[cells])
        self.entered += int(self._size[cells].sum())

    def standing(self, context: EvaluationContext, columns: Int32Array) -> Iterator[Delta]:
        left, right = self._both()
        _, entries = left.entries_of(left.slots())
        partners = self._links[0].partner[entries]
        entries, partners = entries[partners != set_pairs.NONE], partners[partners != set_pairs.NONE]
        owners = self._cells.places_of(left.held.cells[entries])
        wanted = np.isin(owners, columns)
        entries, partners = entries[wanted], partners[wanted]
        of_left, of_right = left.held.slots[entries], right.held.slots[partners]
        ids = np.hstack([left.ids[of_left], right.ids[of_right]])
        exits = np.minimum(left.exits[of_left], right.exits[of_right])
        never = np.full(len(exits), set_rows.NEVER)
        yield self._told(context, ids, left.held.cells[entries], never, exits)

    # --- rows that move ---------------------------------------------------------------------------

    def _changed(self, turn: Turn) -> Delta:
        (left, right), interval = self._below(turn), turn.interval
        self._width = len(left.temporal.relation.columns)
        of_left, of_right = self._cells_of(left, of_left=True), self._cells_of(right, of_left=False)
        left_rows, right_rows = self._both()
        left_moves, left_entries, left_gone = left_rows.move(left, of_left, interval)
        right_moves, right_entries, right_gone = right_rows.move(right, of_right, interval)
        self._make_entries()
        made = _pair_records(2 * (len(left_moves.cells) + len(right_moves.cells)))
        set_pairs.fold(
            left_moves,
            left_entries,
            right_moves,
            right_entries,
            self._records,
            self._pairs,
            *self._sides(),
            made,
        )
        count = int(made.filled[0])
        self._records += count
        self.entered += int(made.stats[ENTERED])
        self.premature += int(made.stats[PREMATURE])
        there = np.flatnonzero(made.valid_from[:count] < made.valid_to[:count])
        ids = np.hstack([left_rows.ids[made.left[there]], right_rows.ids[made.right[there]]])
        life = made.valid_from[there], made.valid_to[there]
        told = self._told(turn.context, ids, made.cells[there], *life)
        left_rows.release(left_gone)
        right_rows.release(right_gone)
        _add(left_moves, self._left)
        _add(right_moves, self._right)
        moved = np.concatenate([left_moves.cells, right_moves.cells])
        self._size[moved] = np.minimum(self._left[moved], self._right[moved])
        self._release_empty(moved)
        return told

    def _told(
        self, context: EvaluationContext, ids: Int64Array, cells: Int32Array, *life: Int64Array
    ) -> Delta:
        """Rows by the ids of the inputs. Those of columns that nobody wants any more may be among them."""
        owners = self._cells.places_of(cells)
        names = np.hstack([ids, owners.reshape(-1, 1)])
        read: list[Relation] = []

        def make(place: int) -> Column:
            if not read:
                read.append(self.read(context, names))
            return read[0].columns[place]

        relation = Relation(LazyColumns(self._width, make), len(ids))
        delta = Delta.of_one_each(TemporalRelation(relation, *life), owners, lambda: names)
        return self.columns.of(delta) if self._dead else delta

    def read(self, context: EvaluationContext, ids: Int64Array) -> Relation:
        found = self.left.read(context, np.ascontiguousarray(ids[:, : self.left.id_words]))
        return with_plain_zeros(found)

    def _both(self) -> tuple[CellRows, CellRows]:
        return self._left_rows, self._right_rows

    def _sides(self) -> tuple[PairSide, PairSide]:
        sides = [
            links._replace(exits=rows.exits, slots=rows.held.slots, cells=rows.held.cells)
            for links, rows in zip(self._links, self._both(), strict=True)
        ]
        return sides[0], sides[1]

    @property
    def state_work(self) -> Work:
        """Work on the rows of both inputs, and their looks at the counts of values. negative: how many rows
        of the answer left before their exit.
        """
        return self._work + self._left_rows.work + self._right_rows.work + Work(negative=self.premature)

    @property
    def rows(self) -> int:
        return len(self._left_rows) + len(self._right_rows)

    @property
    def nbytes(self) -> int:
        links = sum(array.nbytes for links in self._links for array in links)
        rows = self._left_rows.nbytes + self._right_rows.nbytes
        return super().nbytes + rows + links + self._pairs.nbytes

    def _check(self) -> None:
        super()._check()
        self._left_rows._check()
        self._right_rows._check()
        (left, right), alone = self._sides(), np.zeros((2, self._cells.capacity), np.int64)
        for place, (side, other) in enumerate(((left, right), (right, left))):
            rows = self._both()[place]
            _, entries = rows.entries_of(rows.slots())
            paired = entries[side.partner[entries] != set_pairs.NONE]
            assert (other.partner[side.partner[paired]] == paired).all()
            assert (other.cells[side.partner[paired]] == side.cells[paired]).all()
            np.add.at(alone[place], side.cells[entries], 1)
            np.subtract.at(alone[place], side.cells[paired], 1)
            for cell in self._cells.used().tolist():
                entry, length = int(side.last[cell]), 0
                while entry != set_pairs.NONE:
                    assert side.partner[entry] == set_pairs.NONE
                    assert side.cells[entry] == cell
                    entry, length = int(side.previous[entry]), length + 1
                assert length == alone[place, cell]
        assert not (alone[0] * alone[1]).any()


def _add(moves: Moves, counts: Int64Array) -> None:
    """Count the rows of cells that enter and leave."""
    signs = np.empty(len(moves.signs), np.int64)
    signs[moves.rows] = moves.signs
    np.add.at(counts, moves.cells, np.repeat(signs, np.diff(moves.starts)))


def _no_links(cells: int) -> PairSide:
    none = np.zeros(0, np.int32)
    last = np.full(cells, set_pairs.NONE, np.int32)
    return PairSide(np.zeros(0, np.int64), none, none, none, none, none, last)


def _pair_records(room: int) -> PairVersions:
    return PairVersions(
        np.empty(room, np.int32),
        np.empty(room, np.int32),
        np.empty(room, np.int32),
        np.empty(room, np.int64),
        np.empty(room, np.int64),
        np.zeros(1, np.int64),
        np.zeros(2, np.int64),
    )
