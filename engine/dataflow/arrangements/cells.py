"""Cells: a state of whole numbers for each (key, column) that has rows.

States add up, so a row that leaves is subtracted, and nothing depends on the order in which rows came.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from engine.changes.temporal_relation import Interval
from engine.dataflow.arrangements.pairs import Pairs
from engine.dataflow.delta import Delta, SetDelta
from engine.kernels import cells as kernels
from engine.kernels import exit_order, grouping, multisets, told
from engine.model.batch import BoolArray, Column, Int32Array, Int64Array
from engine.model.capacities import USUAL, Capacities
from engine.model.changes import Weights
from engine.model.runs import places_of
from engine.model.types import Type

COUNTED = 4
"""Events are put in order by counting them where there are no more instants an event between the first and
the last."""
MERGED = 32
"""Elsewhere by merging runs of them that are in order, where these are as long on average."""
SUMS_MIN = 1 << 16
"""Sums of keys and sets have places by number where there are no more than pairs and this; else they are
sorted."""
SPREAD_MAX = 1 << 20
"""Sums enter the cells of the columns of their sets in pieces of so many pairs."""


@dataclass(frozen=True, slots=True)
class CellEvents:
    """Rows that enter and leave cells: at, rows, weights of each event, by instant; row r is in
    cells[starts[r]:starts[r + 1]].
    """

    at: Int64Array
    rows: Int64Array
    weights: Weights
    starts: Int64Array
    cells: Int32Array

    @classmethod
    def of(cls, delta: Delta, cells: Int32Array, interval: Interval) -> CellEvents:
        """cells: int32[pairs], of the pairs of a delta."""
        return cls(*events_of(delta, interval), delta.starts, cells)


@dataclass(frozen=True, slots=True)
class Versions:
    """What cells went through: n versions, those of a cell in the order of their instants.

    cells: int32[n]. valid_from, valid_to: int64[n]. before: int32[n], the version before, -1: none. states:
    int64[n, S].
    """

    cells: Int32Array
    valid_from: Int64Array
    valid_to: Int64Array
    before: Int32Array
    states: Int64Array

    def __len__(self) -> int:
        return len(self.cells)

    def latest(self) -> BoolArray:
        """bool[n]: which is the last of its cell."""
        found: BoolArray = self.valid_to == kernels.FOREVER
        return found

    def emptied(self, rows: int) -> Int32Array:
        """The cells that have no rows after all. rows: the place of their number in a state."""
        found = np.empty(len(self), np.int32)
        return found[: kernels.emptied(self.cells, self.valid_to, self.states, rows, found)]

    def following(self) -> Int32Array:
        """int32[n]: the version after each, -1: none."""
        found = np.empty(len(self), np.int32)
        multisets.next_versions(self.before, found)
        return found


class CellStates:
    """Keeps the cells of one operator. One writer. The first number of a state counts the cell's rows."""

    def __init__(self, types: Sequence[Type], width: int, capacities: Capacities = USUAL) -> None:
        """types: of keys."""
        self.pairs = Pairs(types, capacities)
        self._state: Int64Array = np.zeros((self.pairs.capacity, width), np.int64)
        self._latest: Int32Array = np.full(self.pairs.capacity, -1, np.int32)

    @property
    def width(self) -> int:
        """How many numbers a state has."""
        return int(self._state.shape[1])

    @property
    def capacity(self) -> int:
        """Above all cells."""
        return self.pairs.capacity

    def widen(self, width: int) -> None:
        """States get more numbers, which are 0."""
        self._state = resized(self._state, len(self._state), width)

    def of(self, columns: Sequence[Column], delta: Delta) -> Int32Array:
        """int32[pairs]: the cell of each pair of a delta, made where there is none. columns: its rows'
        keys.
        """
        keys = self.pairs.number_keys(columns, len(delta.temporal))
        cells = self.pairs.of(np.repeat(keys, delta.counts()), delta.owners)
        self._make_room()
        return cells

    def states_of(self, cells: Int32Array) -> Int64Array:
        """int64[n, S], copies."""
        return self._state[cells]

    def enter(self, starts: Int64Array, cells: Int32Array, values: Int64Array) -> None:
        """Rows enter. starts, cells: row r is in cells[starts[r]:starts[r + 1]]. values: int64[rows, S]."""
        kernels.enter(starts, cells, values, self._state)

    def enter_sets(self, columns: Sequence[Column], given: SetDelta, values: Int64Array) -> None:
        """Rows enter, by sets of columns of the graph: they are added up for each (key, set), and the sums
        enter the cell of each column of the set. columns: the rows' keys. values: int64[rows, S].
        O(pairs of rows and sets * S + pairs of (key, set) and columns * S).
        """
        delta, sets = given.delta, given.sets
        if sets is not None and max(map(len, sets), default=1) == 1:
            owners = np.concatenate([np.empty(0, np.int32), *sets])[delta.owners]
            delta, sets = replace(delta, owners=owners), None
        if sets is None:
            self.enter(delta.starts, self.of(columns, delta), values)
            return
        keys = self.pairs.number_keys(columns, len(delta.temporal))
        words = np.repeat(keys.astype(np.int64), delta.counts()) * len(sets) + delta.owners
        span = int(words.max(initial=-1)) + 1
        if span > len(words) + SUMS_MIN:
            words, places = np.unique(words, return_inverse=True)
        else:
            places, words = words, np.arange(span)
        sums = np.zeros((len(words), self.width), np.int64)
        kernels.enter(delta.starts, places.astype(np.int32), values, sums)
        there = np.flatnonzero(sums[:, 0])
        self._enter_sums(words[there] // len(sets), words[there] % len(sets), sets, sums[there])

    def _enter_sums(
        self, keys: Int64Array, numbers: Int64Array, sets: Sequence[Int32Array], sums: Int64Array
    ) -> None:
        """keys, numbers: int64[n], those of a key and of a set. sums: int64[n, S]."""
        sizes = np.array([len(each) for each in sets], np.int64)
        begins = np.cumsum(sizes) - sizes
        owners = np.concatenate([np.empty(0, np.int32), *sets])
        step = max(1, SPREAD_MAX // max(1, int(sizes.max(initial=1))))
        for first in range(0, len(keys), step):
            of = slice(first, first + step)
            counts = sizes[numbers[of]]
            starts = np.zeros(len(counts) + 1, np.int64)
            np.cumsum(counts, out=starts[1:])
            columns = owners[places_of(begins[numbers[of]], counts)]
            cells = self.pairs.of(np.repeat(keys[of].astype(np.int32), counts), columns)
            self._make_room()
            kernels.enter(starts, cells, sums[of], self._state)

    def fold(self, entering: CellEvents, values: Int64Array) -> Versions:
        """Rows enter and leave."""
        room = 2 * int((entering.starts[1:] - entering.starts[:-1])[entering.rows].sum())
        cells, before = np.empty(room, np.int32), np.empty(room, np.int32)
        begins, ends = np.empty(room, np.int64), np.empty(room, np.int64)
        states = np.empty((room, self.width), np.int64)
        events = (entering.at, entering.rows, entering.weights, entering.starts, entering.cells)
        made = cells, begins, ends, before, states
        count = kernels.fold(*events, values, self._state, self._latest, *made)
        versions = Versions(cells[:count], begins[:count], ends[:count], before[:count], states[:count])
        self._latest[versions.cells] = -1
        return versions

    def carry(self, cells: Int32Array, planes: Int64Array) -> None:
        """See :func:`engine.kernels.cells.carry`."""
        states = self._state[cells]
        kernels.carry(states, planes)
        self._state[cells] = states

    def release(self, cells: Int32Array) -> None:
        """These go, each once."""
        self._state[cells] = 0
        self.pairs.release(cells)

    def _make_room(self) -> None:
        if len(self._latest) < self.capacity:
            self._state = resized(self._state, self.capacity, self.width)
            self._latest = np.full(self.capacity, -1, np.int32)

    @property
    def nbytes(self) -> int:
        return self.pairs.nbytes + self._state.nbytes + self._latest.nbytes

    def _check(self) -> None:
        self.pairs._check()
        assert bool((self._latest == -1).all())


def resized(state: Int64Array, rows: int, width: int) -> Int64Array:
    """int64[rows, width] at least, what is new 0."""
    if state.shape[0] >= rows and state.shape[1] >= width:
        return state
    larger = np.zeros((max(rows, state.shape[0]), max(width, state.shape[1])), np.int64)
    larger[: state.shape[0], : state.shape[1]] = state
    return larger


def events_of(delta: Delta, interval: Interval) -> told.Events:
    """Each entering and leaving in the interval, by instant, at one instant the leaving first."""
    n = len(delta.temporal)
    room = told.Events(np.empty(2 * n, np.int64), np.empty(2 * n, np.int64), np.empty(2 * n, np.int8))
    count = told.events(
        delta.temporal.valid_from, delta.temporal.valid_to, interval.since, interval.until, room
    )
    at, rows, weights = room.at[:count], room.rows[:count], room.weights[:count]
    descents = int(np.count_nonzero(at[1:] < at[:-1]))
    if descents:
        order = _by_instant(at, descents)
        at, rows, weights = at[order], rows[order], weights[order]
    return told.Events(at, rows, weights)


def _by_instant(at: Int64Array, descents: int) -> Int64Array | Int32Array:
    """The places of some instants in their order, equal ones as they stand; counted where they are near each
    other, merged where they stand in few runs, of which there is one more than descents, sorted elsewhere.
    """
    first, last = int(at.min()), int(at.max())
    if last - first <= COUNTED * len(at):
        starts, order = np.empty(last - first + 2, np.int64), np.empty(len(at), np.int64)
        grouping.bring_together(at - first, starts, order)
        return order
    if MERGED * descents <= len(at):
        return np.argsort(at, kind="stable")
    places = np.arange(len(at), dtype=np.int32)
    exit_order.sort(places, at.copy(), 0, len(at))
    return places
