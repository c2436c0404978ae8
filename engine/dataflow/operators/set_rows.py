"""INTERSECT and EXCEPT that give left rows as they are: the youngest of each value, or the oldest.

EXCEPT ALL ON (columns) gives rows that are equal in those columns alone, so it matters which of them are in
the answer; where somebody above goes by the order of rows, it does for all kinds. Left rows are kept with a
chain for each value and column (:mod:`engine.kernels.set_rows`), right rows are counted.

Cost: O(1) a row and column, amortised, and for a row that is not the last of its value those behind it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from engine.changes.context import EvaluationContext
from engine.changes.temporal_relation import Interval, TemporalRelation
from engine.dataflow.arrangements.pair_table import PairTable
from engine.dataflow.arrangements.row_store import RowStore, longer, with_none
from engine.dataflow.buffers.buffer import Work
from engine.dataflow.delta import Delta
from engine.dataflow.node import Node
from engine.dataflow.operators.set_operations import Compared, ComparedNode, moves_of
from engine.dataflow.turn import Turn
from engine.kernels import set_rows as kernels
from engine.kernels.set_copies import EXCEPT_ALL
from engine.kernels.set_rows import Chains, Form, RowVersions
from engine.model.batch import Column, Int32Array, Int64Array
from engine.model.lazy_columns import LazyColumns
from engine.operators.keys import with_one_zero
from engine.operators.relation import Relation

BY_ENTRY = ("slots", "cells", "previous", "following", "told")


@dataclass(frozen=True, slots=True)
class LeftRows:
    """whole: all columns are compared, and -0.0 is given as 0.0. read: the places of the columns that
    somebody above reads, None: all of them; others are not kept.
    """

    compared: Compared
    whole: bool
    read: frozenset[int] | None

    @property
    def oldest(self) -> bool:
        """Whether the rows of a value that are in the answer are the oldest; else the youngest."""
        return self.compared.form != EXCEPT_ALL


class LeftRowsNode(ComparedNode):
    """Rows of the left input, whose ids have the order of the relation. A row's id is the one there and its
    column.
    """

    def __init__(self, left: Node, right: Node, shape: LeftRows) -> None:
        super().__init__(left, right, shape.compared)
        assert left.id_words
        self._shape = shape
        self.id_words = left.id_words + 1
        self.ordered = left.ordered
        self.forget()

    def forget(self) -> None:
        self._forget_cells()
        self._kept: _Kept | None = None
        self._entries = PairTable(self.settings.capacities)
        """Gives an id, the entry, to each pair of a row's slot and its column."""
        self._records = 1
        self._held = _no_chains(self._cells.capacity)

    def _make_room(self, room: int) -> None:
        super()._make_room(room)
        held = self._held
        self._held = _with_cells(held, room)

    def _drop(self, columns: Int32Array) -> None:
        cells = self._of_columns(columns)
        if self._kept is not None:
            entries = np.empty(int(self._left[cells].sum()), np.int32)
            kernels.entries_of(cells, self._chains(self._kept), entries)
            self._entries.release(entries)
            rows = self._kept.rows
            wanted = np.zeros(len(rows.gone), np.bool_)
            wanted[self._entries.keys_of(self._entries.used())] = True
            rows.only(wanted)
        self._release(cells)

    def _release(self, cells: Int32Array) -> None:
        super()._release(cells)
        held = self._held
        held.first[cells] = held.last[cells] = held.border[cells] = kernels.NONE

    # --- rows that stand --------------------------------------------------------------------------

    def _stand(self, delta: Delta, cells: Int32Array) -> None:
        kept = self._kept_of(delta)
        ids = delta.ids_of()
        slots = kept.rows.found(ids, ids, self._columns_of(kept, delta))
        kernels.enter(self._entries_of(delta, slots, cells), self._chains(kept))

    def _settle(self, cells: Int32Array) -> None:
        if self._kept is not None:
            kernels.settle(cells, self._form(), self._chains(self._kept))
            self.entered += int(self._size[cells].sum())

    def standing(self, context: EvaluationContext, columns: Int32Array) -> Iterator[Delta]:
        if self._kept is not None:
            cells = self._of_columns(columns)
            n = int(self._size[cells].sum())
            slots, of = np.empty(n, np.int32), np.empty(n, np.int32)
            kernels.listed(cells, self._shape.oldest, self._chains(self._kept), slots, of)
            never, forever = np.full(n, kernels.NEVER), np.full(n, kernels.FOREVER)
            yield self._told(self._kept, slots, of, never, forever)

    # --- rows that move ---------------------------------------------------------------------------

    def _changed(self, turn: Turn) -> Delta:
        (left, right), interval = self._below(turn), turn.interval
        left = _moving(left, interval)
        kept, ids = self._kept_of(left), left.ids_of()
        of_left, of_right = self._cells_of(left, of_left=True), self._cells_of(right, of_left=False)
        came, went = interval.among(left.temporal.valid_from), interval.among(left.temporal.valid_to)
        slots = kept.rows.move(ids, ids, self._columns_of(kept, left), came, went)
        entries = self._entries_of(left, slots, of_left)
        made = _records(6 * len(of_left) + 2 * len(of_right))
        kernels.fold(
            moves_of(left, of_left, interval),
            entries,
            moves_of(right, of_right, interval),
            self._form(),
            self._chains(kept),
            made,
        )
        told = self._told_of(kept, made)
        self._entries.release(entries[np.repeat(went, left.counts())])
        kept.rows.gone[slots[went]] = True
        kept.rows.let_go(slots[went])
        kept.rows.released()
        self._release_empty(of_left, of_right)
        return told

    def _told_of(self, kept: _Kept, made: RowVersions) -> Delta:
        """The rows of records."""
        count = int(made.filled[0])
        self._records += count
        self.entered += int(made.stats[kernels.ENTERED])
        self.premature += int(made.stats[kernels.PREMATURE])
        there = np.flatnonzero(made.valid_from[:count] < made.valid_to[:count])
        slots, cells = made.slots[there], made.cells[there]
        return self._told(kept, slots, cells, made.valid_from[there], made.valid_to[there])

    def _told(self, kept: _Kept, slots: Int32Array, cells: Int32Array, *life: Int64Array) -> Delta:
        owners = self._cells.places_of(cells)
        ids = np.hstack([kept.rows.words[slots], owners.reshape(-1, 1)])
        return Delta.of_one_each(TemporalRelation(kept.relation(slots), *life), owners, lambda: ids)

    # --- rows and entries -------------------------------------------------------------------------

    def _kept_of(self, delta: Delta) -> _Kept:
        """What is kept of rows like these."""
        if self._kept is None:
            columns, read = delta.temporal.relation.columns, self._shape.read
            places = [place for place in range(len(columns)) if read is None or place in read]
            width = self.left.id_words
            types = [columns[place].type for place in places]
            rows = RowStore(width, width, types, self.settings.capacities)
            self._kept = _Kept(len(columns), {place: n for n, place in enumerate(places)}, rows)
        return self._kept

    def _columns_of(self, kept: _Kept, delta: Delta) -> Sequence[Column]:
        """The columns of rows that are kept."""
        columns = delta.temporal.relation.columns
        found = [columns[place] for place in kept.places]
        return list(map(with_one_zero, found)) if self._shape.whole else found

    def _entries_of(self, delta: Delta, slots: Int32Array, cells: Int32Array) -> Int32Array:
        """int32[pairs]: the entry of each pair of a row and a cell."""
        entries = self._entries.number(np.repeat(slots, delta.counts()), delta.owners)
        held, room = self._held, self._entries.capacity
        if len(held.cells) < room:
            held = held._replace(**{name: longer(getattr(held, name), room) for name in BY_ENTRY})
            self._held = held
        held.slots[entries] = np.repeat(slots, delta.counts())
        held.cells[entries] = cells
        return entries

    def _chains(self, kept: _Kept) -> Chains:
        return self._held._replace(words=kept.rows.words, left=self._left, right=self._right, size=self._size)

    def _form(self) -> Form:
        return Form(self._compared.form, self._shape.oldest, self._records)

    @property
    def state_work(self) -> Work:
        """Looks at the counts of values, rows that came into the answer, and those of them that left it
        before they left the input.
        """
        return self._work + Work(inserted=self.entered, negative=self.premature)

    @property
    def rows(self) -> int:
        return len(self._entries)

    @property
    def nbytes(self) -> int:
        rows = 0 if self._kept is None else self._kept.rows.nbytes
        held = sum(array.nbytes for array in self._held)
        return super().nbytes + self._entries.nbytes + rows + held

    def _check(self) -> None:
        """Chains are in order, and their answers one end of them."""
        super()._check()
        self._entries._check()
        if self._kept is None:
            return
        if not self._dead:
            self._kept.rows._check()
        held, found = self._chains(self._kept), list[int]()
        for cell in self._of_columns(self.columns.all()).tolist():
            chain = np.empty(int(self._left[cell]), np.int32)
            assert kernels.entries_of(np.array([cell], np.int32), held, chain) == len(chain)
            assert bool((held.cells[chain] == cell).all())
            assert (self._entries.places_of(chain) == self._cells.places_of(np.array([cell]))).all()
            assert (self._entries.keys_of(chain) == held.slots[chain]).all()
            rows = [tuple(row) for row in held.words[held.slots[chain]].tolist()]
            assert rows == sorted(set(rows))
            size = int(self._size[cell])
            inside = np.zeros(len(chain), np.bool_)
            inside[: size if self._shape.oldest else 0] = True
            inside[len(chain) - (0 if self._shape.oldest else size) :] = True
            assert ((held.told[chain] != kernels.OUTSIDE) == inside).all()
            border = size - 1 if self._shape.oldest else len(chain) - size
            assert held.border[cell] == (chain[border] if size else kernels.NONE)
            found += chain.tolist()
        if not self._dead:
            assert sorted(found) == self._entries.used().tolist()


@dataclass(frozen=True, slots=True)
class _Kept:
    """width: how many columns rows have. places: those that are kept, by which they are."""

    width: int
    places: dict[int, int]
    rows: RowStore

    def relation(self, slots: Int32Array) -> Relation:
        """The rows in these slots."""
        column = self.rows.columns(slots)
        return Relation(LazyColumns(self.width, lambda place: column(self.places[place])), len(slots))


def _moving(delta: Delta, interval: Interval) -> Delta:
    """Without rows that are there all along."""
    temporal = delta.temporal
    moves = interval.among(temporal.valid_from) | interval.among(temporal.valid_to)
    return delta if moves.all() else delta.take(np.flatnonzero(moves))


def _no_chains(cells: int) -> Chains:
    """Makes chains of no rows, with room for so many cells."""
    none, wide = np.zeros(0, np.int32), np.zeros(0, np.int64)
    ends = np.full((3, cells), kernels.NONE, np.int32)
    return Chains(
        words=wide.reshape(0, 1),
        slots=none,
        cells=none,
        previous=none,
        following=none,
        told=wide,
        first=ends[0].copy(),
        last=ends[1].copy(),
        border=ends[2].copy(),
        left=wide,
        right=wide,
        size=wide,
    )


def _with_cells(held: Chains, room: int) -> Chains:
    """Room for so many cells."""
    return held._replace(
        first=with_none(held.first, room),
        last=with_none(held.last, room),
        border=with_none(held.border, room),
    )


def _records(room: int) -> RowVersions:
    """Room for so many."""
    return RowVersions(
        np.empty(room, np.int32),
        np.empty(room, np.int32),
        np.empty(room, np.int64),
        np.empty(room, np.int64),
        np.zeros(1, np.int64),
        np.zeros(2, np.int64),
    )
