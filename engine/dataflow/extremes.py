"""MIN and MAX, FIRST and LAST: of the rows of a cell the one that is the least in an order, or the greatest.

The order is that of the values, or that of the rows, by their ids. The entries of a cell
(:mod:`engine.dataflow.counted`) stand in a heap for each end that is asked for.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from engine.dataflow.arrangements.cells import CellEvents, Versions
from engine.dataflow.arrangements.row_store import longer
from engine.dataflow.arrangements.string_labels import StringLabels
from engine.dataflow.counted import Counted
from engine.dataflow.delta import Delta
from engine.dataflow.part import Part, first_versions
from engine.kernels import multisets as kernels
from engine.model.batch import Column, Int32Array, Int64Array
from engine.model.capacities import USUAL, Capacities
from engine.model.expressions import Expression
from engine.model.types import Kind
from engine.operators.keys import order_keys

DEAD_MIN = 1_024
"""So many entries that no row has stay in heaps in any case."""


class Extremes(Part):
    """Calls over one argument."""

    def __init__(
        self,
        least: Sequence[int],
        greatest: Sequence[int],
        argument: Expression | None,
        condition: Expression | None,
        id_words: int = 0,
        capacities: Capacities = USUAL,
    ) -> None:
        """least, greatest: the places of the calls that want either. id_words: how many words the ids of rows
        have, where those are the order; 0: the values are. argument: None: the words of the id are given.
        """
        super().__init__([*least, *greatest])
        self._counted = Counted(argument, condition, id_words, capacities)
        self._id_words = id_words
        self._gives = slice(None) if argument is None else slice(-1, None)
        strings = argument is not None and argument.type.kind is Kind.STRING and not id_words
        self._labels = StringLabels(capacities) if strings else None
        ends = ((least, False), (greatest, True))
        self._heaps = [_Heaps(max(1, id_words), len(calls), turned) for calls, turned in ends if calls]
        self._dead_min = capacities.first(DEAD_MIN)
        self._most = self._dead_min

    def enter(self, delta: Delta, cells: Int32Array, capacity: int) -> None:
        entries = self._entries(delta, cells, capacity)
        for each in self._heaps:
            kernels.enter_heaps(delta.starts, cells, entries, each.heaps)
        self._renew_if_many_are_dead()

    def fold(self, delta: Delta, entering: CellEvents, versions: Versions, capacity: int) -> list[Column]:
        entries = self._entries(delta, entering.cells, capacity)
        following, columns = versions.following(), []
        for each in self._heaps:
            found = np.empty(len(versions), np.int32)
            kernels.least(
                entering.at,
                entering.rows,
                entering.weights,
                entering.starts,
                entering.cells,
                entries,
                each.heaps,
                first_versions(versions, capacity),
                versions.valid_from,
                following,
                found,
            )
            columns += self._columns(found)[self._gives] * each.calls
        self._renew_if_many_are_dead()
        return columns

    def standing(self, cells: Int32Array) -> list[Column]:
        columns = []
        for each in self._heaps:
            each.make_room(self._counted.pairs.capacity, int(cells.max(initial=-1)) + 1)
            found = np.empty(len(cells), np.int32)
            kernels.roots(cells, each.heaps, found)
            columns += self._columns(found)[self._gives] * each.calls
        return columns

    def release(self, cells: Int32Array, *, empty: bool) -> None:
        if not empty:
            entries = self._counted.of_cells(cells)
            for each in self._heaps:
                each.heaps.counts[entries] = 0
            self._renew()

    def _entries(self, delta: Delta, cells: Int32Array, capacity: int) -> Int32Array:
        entries, found, columns = self._counted.of(delta, cells)
        for each in self._heaps:  # before labels move: those of new entries are moved with the others
            each.make_room(self._counted.pairs.capacity, capacity)
        if self._id_words:
            words = np.stack([column.values for column in columns[: self._id_words]], axis=1)
        else:
            words = self._words(columns[0])
        for each in self._heaps:
            each.heaps.keys[found] = ~words if each.turned else words
        return entries

    def _words(self, column: Column) -> Int64Array:
        if self._labels is None:
            return order_keys(column).reshape(-1, 1)
        labels, moved = self._labels.of(column)
        if moved is not None:
            used = self._counted.pairs.used()
            for each in self._heaps:
                each.heaps.keys[used, 0] = each.turn(moved.of(each.turn(each.heaps.keys[used, 0])))
        return labels.reshape(-1, 1)

    def _columns(self, entries: Int32Array) -> list[Column]:
        """The ids and values of entries, NULL where there is none."""
        there = entries >= 0
        valid = None if there.all() else there
        columns = self._counted.pairs.columns(np.maximum(entries, 0))
        return [Column(column.type, column.values, valid, column.strings) for column in columns]

    def _renew_if_many_are_dead(self) -> None:
        if len(self._counted.pairs) > self._most:
            self._renew()

    def _renew(self) -> None:
        """Entries that no row has go, and the heaps are built anew."""
        pairs, first = self._counted.pairs, self._heaps[0]
        used = pairs.used()
        alive = first.heaps.counts[used] > 0
        pairs.release(used[~alive])
        used = used[alive]
        if self._labels is not None:
            self._labels.only(first.turn(first.heaps.keys[used, 0]))
        for each in self._heaps:
            each.heaps.heaped[:], each.heaps.roots[:] = False, kernels.NONE
            kernels.build(pairs.places_of(used), used, each.heaps)
        self._most = self._dead_min + 2 * len(used)

    @property
    def nbytes(self) -> int:
        labels = 0 if self._labels is None else self._labels.nbytes
        heaps = sum(array.nbytes for each in self._heaps for array in each.heaps)
        return self._counted.pairs.nbytes + labels + heaps


class _Heaps:
    """The heaps of one end. calls: how many want it. turned: whether it is the greatest."""

    def __init__(self, words: int, calls: int, turned: bool) -> None:
        self.calls = calls
        self.turned = turned
        self.heaps = kernels.Heaps(
            keys=np.zeros((0, words), np.int64),
            counts=np.zeros(0, np.int64),
            heaped=np.zeros(0, np.bool_),
            roots=np.zeros(0, np.int32),
            child=np.zeros(0, np.int32),
            sibling=np.zeros(0, np.int32),
        )

    def turn(self, keys: Int64Array) -> Int64Array:
        """From the order of values to that of heaps, and back."""
        return ~keys if self.turned else keys

    def make_room(self, entries: int, cells: int) -> None:
        """For entries and cells below these."""
        heaps = self.heaps
        if len(heaps.counts) < entries:
            by_entry = ("keys", "counts", "heaped", "child", "sibling")
            heaps = heaps._replace(**{name: longer(getattr(heaps, name), entries) for name in by_entry})
        if len(heaps.roots) < cells:
            roots = np.full(cells, kernels.NONE, np.int32)
            roots[: len(heaps.roots)] = heaps.roots
            heaps = heaps._replace(roots=roots)
        self.heaps = heaps
