"""What the calls of a GROUP BY are made of, part by part: sums, sums of distinct values, the least value.

A part keeps state by cell. It folds the same events as the cells do, and gives for each version that these
made the columns of its calls.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np

from engine.dataflow.arrangements.cells import Entering, Versions, resized
from engine.dataflow.arrangements.copy_counts import grown
from engine.dataflow.arrangements.pairs import Pairs
from engine.dataflow.arrangements.string_labels import StringLabels
from engine.dataflow.totals import ROWS, Totals
from engine.kernels import multisets as kernels
from engine.kernels.cells import carry
from engine.language.aggregates import Statistic
from engine.language.expressions import Expression
from engine.language.query import Aggregate, AggregateCall
from engine.model.batch import BoolArray, Column, Int32Array, Int64Array
from engine.model.types import Kind
from engine.operators.aggregates.members import select
from engine.operators.keys import order_keys, with_one_zero
from engine.operators.relation import Relation

_LEAST = (Statistic.LEAST, Statistic.GREATEST)
DEAD_MIN = 1_024
"""So many entries that no row has stay in heaps in any case."""


def is_incremental(call: AggregateCall) -> bool:
    """Whether a call is made of rows that come and go, in whatever order."""
    if call.aggregate.invertible:
        return True
    return call.aggregate.statistic in _LEAST and call.arguments[0].type.kind is not Kind.ARRAY


class Part(ABC):
    """Some calls over one argument. calls: their places among those of the stage."""

    def __init__(self, calls: Sequence[int]) -> None:
        self.calls = tuple(calls)

    @abstractmethod
    def enter(self, relation: Relation, starts: Int64Array, cells: Int32Array, capacity: int) -> None:
        """Rows enter, as :meth:`engine.dataflow.arrangements.cells.Cells.enter` says. capacity: above all
        cells.
        """

    @abstractmethod
    def fold(self, relation: Relation, entering: Entering, versions: Versions, capacity: int) -> list[Column]:
        """Rows enter and leave; the values of the calls in each version."""

    @abstractmethod
    def standing(self, cells: Int32Array) -> list[Column]:
        """The values of the calls in cells as they stand."""

    @abstractmethod
    def release(self, cells: Int32Array, *, empty: bool) -> None:
        """These cells go. empty: no row has them."""

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Bytes of what is kept."""


def parts_of(stage: Aggregate) -> list[Part]:
    """The parts of the calls of a stage that are no plain sums."""
    distinct: dict[tuple[Expression, Expression | None], list[int]] = {}
    least: dict[tuple[Expression, Expression | None, bool], list[int]] = {}
    for place, call in enumerate(stage.calls):
        statistic = call.aggregate.statistic
        if statistic in _LEAST:
            key = call.arguments[0], call.filter, statistic is Statistic.GREATEST
            least.setdefault(key, []).append(place)
        elif call.distinct:
            distinct.setdefault((call.arguments[0], call.filter), []).append(place)
    found: list[Part] = [
        Distinct(places, [stage.calls[place] for place in places]) for places in distinct.values()
    ]
    found += [
        Least(calls, argument, condition, greatest=greatest)
        for (argument, condition, greatest), calls in least.items()
    ]
    return found


class _Values:
    """Values of cells, and how many rows have each."""

    def __init__(self, argument: Expression, condition: Expression | None) -> None:
        self._argument = argument
        self._condition = condition
        self.pairs = Pairs([argument.type])
        self.counts: Int64Array = np.zeros(self.pairs.capacity, np.int64)

    def of(
        self, relation: Relation, starts: Int64Array, cells: Int32Array
    ) -> tuple[Int32Array, Int32Array, Column]:
        """(the entry of each pair, -1 of a row that does not count; the entries of those that do; their
        values).
        """
        members, _ = select(
            relation, self._argument, self._condition, False, np.arange(len(relation)), len(relation)
        )
        rows, column = members.codes, with_one_zero(members.values)
        assert rows is not None
        place = np.full(len(relation), -1)
        place[rows] = np.arange(len(rows))
        of_pairs = np.repeat(place, np.diff(starts))
        counting = np.flatnonzero(of_pairs >= 0)
        held = of_pairs[counting]
        keys = self.pairs.number_keys([column], len(rows))
        ids = self.pairs.of(keys[held], cells[counting])
        self.counts = grown(self.counts, self.pairs.capacity)
        entries = np.full(len(of_pairs), -1, np.int32)
        entries[counting] = ids
        return entries, ids, column.take(held)

    def of_cells(self, cells: Int32Array) -> Int32Array:
        """The entries of some cells. O(entries)."""
        used = self.pairs.used()
        return used[np.isin(self.pairs.places_of(used), cells)]


class Distinct(Part):
    """Sums and counts of distinct values."""

    def __init__(self, calls: Sequence[int], over: Sequence[AggregateCall]) -> None:
        super().__init__(calls)
        self._totals = Totals(over)
        self._values = _Values(over[0].arguments[0], over[0].filter)
        self._state: Int64Array = np.zeros((0, self._totals.width), np.int64)

    def enter(self, relation: Relation, starts: Int64Array, cells: Int32Array, capacity: int) -> None:
        entries, _, _ = self._values.of(relation, starts, cells)
        values = self._added(relation, capacity)
        kernels.enter_distinct(starts, cells, entries, values, self._values.counts, self._state)
        self._carry(cells)

    def fold(self, relation: Relation, entering: Entering, versions: Versions, capacity: int) -> list[Column]:
        entries, ids, _ = self._values.of(relation, entering.starts, entering.cells)
        values = self._added(relation, capacity)
        made = np.empty((len(versions), self._totals.width), np.int64)
        kernels.distinct(
            entering.at,
            entering.rows,
            entering.weights,
            entering.starts,
            entering.cells,
            entries,
            values,
            self._values.counts,
            self._state,
            first_versions(versions, capacity),
            versions.begins,
            versions.following(),
            made,
        )
        columns = self._totals.columns(made)
        self._carry(versions.cells[versions.latest()])
        self._values.pairs.release(np.unique(ids[self._values.counts[ids] == 0]))
        return columns

    def standing(self, cells: Int32Array) -> list[Column]:
        self._state = resized(self._state, int(cells.max(initial=-1)) + 1, self._totals.width)
        return self._totals.columns(self._state[cells])

    def release(self, cells: Int32Array, *, empty: bool) -> None:
        if not empty:
            entries = self._values.of_cells(cells)
            self._values.counts[entries] = 0
            self._values.pairs.release(entries)
        self._state[cells[cells < len(self._state)]] = 0

    def _added(self, relation: Relation, capacity: int) -> Int64Array:
        values = self._totals.values(relation)
        values[:, ROWS] = 0
        self._state = resized(self._state, capacity, self._totals.width)
        return values

    def _carry(self, cells: Int32Array) -> None:
        cells = np.unique(cells)
        states = self._state[cells]
        for planes in self._totals.full(states):
            self._state = resized(self._state, len(self._state), self._totals.width)
            states = self._state[cells]
            carry(states, planes)
            self._state[cells] = states

    @property
    def nbytes(self) -> int:
        return self._values.pairs.nbytes + self._values.counts.nbytes + self._state.nbytes


class Least(Part):
    """The least value, or the greatest."""

    def __init__(
        self, calls: Sequence[int], argument: Expression, condition: Expression | None, *, greatest: bool
    ) -> None:
        super().__init__(calls)
        self._values = _Values(argument, condition)
        self._greatest = greatest
        self._labels = StringLabels() if argument.type.kind is Kind.STRING else None
        self._keys: Int64Array = np.zeros(0, np.int64)
        self._heaped: BoolArray = np.zeros(0, np.bool_)
        self._child: Int32Array = np.zeros(0, np.int32)
        self._sibling: Int32Array = np.zeros(0, np.int32)
        self._roots: Int32Array = np.zeros(0, np.int32)
        self._most = DEAD_MIN

    def enter(self, relation: Relation, starts: Int64Array, cells: Int32Array, capacity: int) -> None:
        entries = self._entries(relation, starts, cells, capacity)
        kernels.enter_heaps(starts, cells, entries, *self._heaps())
        self._renew_if_many_are_dead()

    def fold(self, relation: Relation, entering: Entering, versions: Versions, capacity: int) -> list[Column]:
        entries = self._entries(relation, entering.starts, entering.cells, capacity)
        found = np.empty(len(versions), np.int32)
        kernels.least(
            entering.at,
            entering.rows,
            entering.weights,
            entering.starts,
            entering.cells,
            entries,
            *self._heaps(),
            first_versions(versions, capacity),
            versions.begins,
            versions.following(),
            found,
        )
        columns = self._columns(found)
        self._renew_if_many_are_dead()
        return columns

    def standing(self, cells: Int32Array) -> list[Column]:
        self._make_room(int(cells.max(initial=-1)) + 1)
        found = np.empty(len(cells), np.int32)
        kernels.roots(cells, *self._heaps(), found)
        return self._columns(found)

    def release(self, cells: Int32Array, *, empty: bool) -> None:
        if not empty:
            self._values.counts[self._values.of_cells(cells)] = 0
            self._renew()

    def _entries(
        self, relation: Relation, starts: Int64Array, cells: Int32Array, capacity: int
    ) -> Int32Array:
        entries, ids, column = self._values.of(relation, starts, cells)
        self._make_room(capacity)
        if self._labels is None:
            keys = order_keys(column)
        else:
            keys, moved = self._labels.of(column)
            if moved is not None:
                used = self._values.pairs.used()
                self._keys[used] = self._turned(moved.of(self._turned(self._keys[used])))
        self._keys[ids] = self._turned(keys)
        return entries

    def _turned(self, keys: Int64Array) -> Int64Array:
        """From the order of values to that of heaps, and back."""
        return ~keys if self._greatest else keys

    def _make_room(self, capacity: int) -> None:
        room = self._values.pairs.capacity
        if len(self._keys) < room:
            for name in ("_keys", "_heaped", "_child", "_sibling"):
                held = getattr(self, name)
                longer = np.zeros(room, held.dtype)
                longer[: len(held)] = held
                setattr(self, name, longer)
        if len(self._roots) < capacity:
            roots = np.full(capacity, -1, np.int32)
            roots[: len(self._roots)] = self._roots
            self._roots = roots

    def _heaps(self) -> tuple[Int64Array, Int64Array, BoolArray, Int32Array, Int32Array, Int32Array]:
        return self._keys, self._values.counts, self._heaped, self._roots, self._child, self._sibling

    def _columns(self, entries: Int32Array) -> list[Column]:
        """The values of entries, NULL where there is none, once for each call."""
        there = entries >= 0
        (column,) = self._values.pairs.columns(np.maximum(entries, 0))
        valid = None if there.all() else there
        found = Column(column.type, column.values, valid, column.strings)
        return [found for _ in self.calls]

    def _renew_if_many_are_dead(self) -> None:
        if len(self._values.pairs) > self._most:
            self._renew()

    def _renew(self) -> None:
        """Entries that no row has go, and the heaps are built anew."""
        used = self._values.pairs.used()
        alive = self._values.counts[used] > 0
        self._values.pairs.release(used[~alive])
        used = used[alive]
        if self._labels is not None:
            self._labels.only(self._turned(self._keys[used]))
        self._heaped[:], self._roots[:] = False, -1
        kernels.build(self._values.pairs.places_of(used), used, *self._heaps())
        self._most = DEAD_MIN + 2 * len(used)

    @property
    def nbytes(self) -> int:
        labels = 0 if self._labels is None else self._labels.nbytes
        return self._values.pairs.nbytes + labels + sum(each.nbytes for each in self._heaps())


def first_versions(versions: Versions, capacity: int) -> Int32Array:
    """int32[capacity]: the first version of each cell that has one."""
    cursor = np.full(capacity, -1, np.int32)
    kernels.first_versions(versions.cells, versions.before, cursor)
    return cursor
