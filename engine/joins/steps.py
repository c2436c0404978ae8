"""The way of a probe: from a driving input through all others, index by index.

A step goes to one more input by an edge from an input that is bound; all other edges to bound inputs
are checked by the keys of the rows. Whatever the order, the combinations are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from engine.joins.shape import Shape
from engine.kernels import joins, key_table
from engine.model.batch import BoolArray, Int64Array

Int32Array = npt.NDArray[np.int32]

LISTS_MAX = 4_096
NO_TABLE: Int32Array = np.zeros(0, np.int32)


@dataclass(frozen=True, slots=True)
class Ends:
    """One end of an edge: the arrays of an index, as :mod:`engine.kernels.joins` describes them. table: of no
    length where rows are not looked up by their key.
    """

    keys: Int64Array
    back: Int32Array
    table: Int32Array
    first: int
    gone: int


@dataclass(frozen=True, slots=True)
class JoinStep:
    """A step of a probe: to the input ``place`` by the first of these edges; the others are checked."""

    place: int
    edges: tuple[int, ...]


def ends_of(keys: Int64Array, null: BoolArray, *, indexed: bool) -> Ends:
    """The end of an edge over a few rows, counted from 0, for one walk."""
    n = len(keys)
    back = np.where(null, key_table.UNKNOWN, 0).astype(np.int32)
    if not indexed:
        return Ends(keys, back, NO_TABLE, 0, 0)
    table = np.full(max(2, 1 << (2 * n).bit_length()), key_table.EMPTY, np.int32)
    known = np.empty(n, np.int64)
    key_table.insert(keys, null, 0, key_table.Index(table, known, back, 0, 0, 0), 0, 0)
    return Ends(known, back, table, 0, 0)


@dataclass(slots=True)
class NewRowBounds:
    """What new rows bring with them, of each input those from new_from on, int64[inputs].

    low: int64[inputs, new rows], those of input i from column new_at[i] on: the first row of each input that
    may meet the new one. counted: int64[inputs - 1, 3], what the kernels count.
    """

    new_from: Int64Array
    new_at: Int64Array
    low: Int64Array
    counted: Int64Array

    @classmethod
    def none(cls, inputs: int) -> NewRowBounds:
        """No row is new."""
        new_from = np.full(inputs, joins.NEVER, np.int64)
        counted = np.zeros((inputs - 1, 3), np.int64)
        return cls(new_from, np.zeros(inputs, np.int64), np.zeros((inputs, 0), np.int64), counted)

    def of(self, place: int, start: int, count: int) -> Int64Array:
        """int64[inputs, rows]: the bounds of one input's new rows from ``start`` on; none of rows not new."""
        if start < self.new_from[place]:
            return self.low[:, :0]
        begin = int(self.new_at[place] + start - self.new_from[place])
        return self.low[:, begin : begin + count]


@dataclass(frozen=True, slots=True)
class PartnerLists:
    """Where the kernel for two inputs lists partners, as it describes them."""

    heads: Int64Array
    spans: Int64Array
    lists: Int32Array

    @classmethod
    def for_rows(cls, n: int) -> PartnerLists:
        """For so many driving rows at a time."""
        heads = 1 << (min(max(n, 1), LISTS_MAX) - 1).bit_length()
        room = max(4 * joins.LISTED_MAX, 16 * heads)
        return cls(np.empty(heads, np.int64), np.empty((heads, 4), np.int64), np.empty(room, np.int32))


class ProbeScratch:
    """Room that probes of one shape use again. lists: of the kernel for two inputs. room: for so many
    combinations a reader has at first.
    """

    def __init__(self, inputs: int, room: int) -> None:
        self.room = room
        self.lists = PartnerLists.for_rows(LISTS_MAX)
        self._low = np.empty((inputs, 0), np.int64)

    def low(self, rows: int) -> Int64Array:
        """int64[inputs, rows], not written yet; the same memory each time."""
        if self._low.shape[1] < rows:
            self._low = np.empty((len(self._low), 2 * rows), np.int64)
        return self._low[:, :rows]


class Route:
    """From the rows of a driving input, in an order of the others.

    floor, upper: int64[inputs], rows floor <= ordinal < upper take part.
    """

    def __init__(
        self,
        shape: Shape,
        driver: int,
        order: Sequence[JoinStep],
        end_of: Callable[[int, int], Ends],
        bounds: NewRowBounds,
        floor: Int64Array,
        upper: Int64Array,
        lists: PartnerLists,
    ) -> None:
        """end_of: by the number of an edge and the input at one end of it. lists: no other route's."""
        self._lists = lists
        self._driver = driver
        self._bounds = bounds
        self._floor = floor
        self._upper = upper
        numbers = [
            (number, place) for step in order for number in step.edges for place in _ends(shape, number)
        ]
        self._ends = {at: end_of(*at) for at in numbers}  # the kernel has addresses: they are kept alive
        if len(shape.inputs) > 2:
            self._steps, self._checks = _plan(order, shape, self._ends)

    def run(
        self, start: int, stop: int, origin: Int64Array, parts: Int32Array, count: int
    ) -> tuple[int, int]:
        """Combine rows start .. stop-1 of the driving input, as the kernels do: (first not done, count)."""
        bounds = self._bounds
        if len(origin) == 2:
            return self._run_two(start, stop, origin, parts, count)
        order = joins.ProbeOrder(self._driver, self._steps, self._checks)
        meeting = joins.Meeting(self._floor, self._upper, bounds.new_from, bounds.new_at, bounds.low)
        return joins.combine(order, start, stop, meeting, origin, parts, count, bounds.counted)

    def _run_two(
        self, start: int, stop: int, origin: Int64Array, parts: Int32Array, count: int
    ) -> tuple[int, int]:
        bounds, driver, other = self._bounds, self._driver, 1 - self._driver
        own, probed = self._ends[0, driver], self._ends[0, other]
        low = bounds.of(driver, start, stop - start)
        fresh = int(bounds.new_from[other])
        fresh_low = bounds.of(other, fresh, max(0, int(self._upper[other]) - fresh))
        indexes = joins.TwoIndexes(
            own.keys,
            own.back,
            own.first,
            probed.table,
            probed.gone,
            probed.keys,
            probed.back,
            probed.first,
        )
        of_two = joins.TwoBounds(
            int(self._floor[other]),
            int(self._upper[other]),
            low[other],
            low[driver],
            fresh,
            fresh_low[driver],
            fresh_low[other],
        )
        listed = joins.ListedPartners(self._lists.heads, self._lists.spans, self._lists.lists)
        out = joins.TwoParts(driver, int(origin[driver]), int(origin[other]), parts)
        return joins.combine_two(start, stop, indexes, of_two, listed, out, count, bounds.counted)


def _ends(shape: Shape, number: int) -> tuple[int, int]:
    return shape.edges[number].left, shape.edges[number].right


def _plan(
    order: Sequence[JoinStep], shape: Shape, ends: Mapping[tuple[int, int], Ends]
) -> tuple[Int64Array, Int64Array]:
    """(steps, checks) for the kernel."""
    steps = np.zeros((len(order), joins.STEP_COLUMNS), np.int64)
    checks: list[list[int]] = []
    for line, step in zip(steps, order, strict=True):
        by, *others = step.edges
        bound = shape.edges[by].other(step.place)
        here, there = ends[by, bound], ends[by, step.place]
        began = len(checks)
        for number in others:
            other = shape.edges[number].other(step.place)
            one, own = ends[number, other], ends[number, step.place]
            ours = (own.keys.ctypes.data, own.back.ctypes.data, own.first)
            checks.append([other, one.keys.ctypes.data, one.back.ctypes.data, one.first, *ours])
        line[:] = (
            step.place,
            bound,
            here.keys.ctypes.data,
            here.back.ctypes.data,
            here.first,
            there.table.ctypes.data,
            len(there.table) - 1,
            there.gone,
            there.keys.ctypes.data,
            there.back.ctypes.data,
            there.first,
            began,
            len(checks),
        )
    return steps, np.array(checks, np.int64).reshape(len(checks), joins.CHECK_COLUMNS)
