"""Joins of two streams by windows of many sizes, from one store a stream (STREAM, CIDR 2003, section 3.2).

Windows that end at NOW differ in when rows leave them, so a row is kept once, as long as the widest holds it,
and a column is a pair of columns of the inputs with the sizes of its two windows. On a turn

    rows that enter      meet the partners that are there at its end, for the columns whose windows hold both
    each pair of sizes   has a range of rows a side that leave, whose pairs end for the columns of these sizes

so that no exit is sent through the graph: a row without partners costs each window a look at its key. A pair
may end for one column and stay for others, so pairs have no ids.

Cost: O(rows that enter + rows that leave times sizes + pairs that enter or end).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from engine.changes.context import EvaluationContext
from engine.changes.temporal_relation import Interval, TemporalRelation
from engine.changes.transition import NEVER
from engine.dataflow.arrangements.column_sets import runs_of
from engine.dataflow.arrangements.keys import Keys
from engine.dataflow.arrangements.rows_in_time import RowsInTime
from engine.dataflow.buffers.buffer import Work
from engine.dataflow.columns import Over
from engine.dataflow.delta import Delta
from engine.dataflow.kept_columns import DEAD_MIN
from engine.dataflow.node import Columns, Node
from engine.dataflow.operators.entries import leaf_of
from engine.dataflow.operators.join import (
    PAIRS,
    MatchedSlots,
    Matching,
    check_candidates,
    check_pairs,
    key_values,
    one_after_another,
    pair_columns,
)
from engine.dataflow.operators.two_inputs import TwoInputs
from engine.dataflow.turn import Turn
from engine.kernels import window_pairs as kernels
from engine.kernels.window_pairs import BothStreams, HeldFor, PairsOut, WindowExits, WordRuns
from engine.language.evaluate import truth
from engine.model.batch import Column, Int32Array, Int64Array
from engine.model.expressions import Expression
from engine.model.lazy_columns import LazyColumns
from engine.model.limits import Limits
from engine.operators.relation import Relation

Spans = tuple[int, int]
"""Sizes of the windows of a column in ms, left and right: a row is held for so long after its own instant."""

Find = Callable[[PairsOut, tuple[int, int]], tuple[tuple[int, int] | None, int]]
"""Fills in pairs from a cursor on; returns where there was no room any more, None at the end, and how many
pairs are whole.
"""


class WindowJoinNode(TwoInputs):
    """Pairs of rows of two streams, equal in keys and satisfying a condition, while both are in windows."""

    def __init__(self, left: Node, right: Node, matching: Matching) -> None:
        super().__init__(left, right)
        self._matching = matching
        self._placed: dict[int, tuple[int, int, int, int]] = {}
        """By column: those of the inputs, and the sizes of its windows."""
        self._context: EvaluationContext | None = None
        keys = matching.keys
        self._left = _Input(left, [key for key, _ in keys])
        self._right = _Input(right, [key for _, key in keys])
        self.forget()

    def forget(self) -> None:
        types = [key.type for key, _ in self._matching.keys]
        self._keys = Keys(types, self.settings.capacities, nullable=False)  # rows without one stay out
        self._left.forget(self._keys)
        self._right.forget(self._keys)
        self._views: _Views | None = None
        self._room = self.settings.capacities.first(PAIRS)

    # --- columns ----------------------------------------------------------------------------------

    def _came(self, column: int) -> None:
        left, right, spans = self._numbers[column]
        assert isinstance(spans, tuple)
        self._placed[column] = left, right, *spans
        wider = [self._left.came(left, spans[0]), self._right.came(right, spans[1])]
        self._views = None
        if any(wider):
            self.forget()

    def _went(self, column: int) -> None:
        left, right, left_ms, right_ms = self._placed.pop(column)
        self._left.went(left, left_ms)
        self._right.went(right, right_ms)
        self._views = None

    def _viewed(self) -> _Views:
        if self._views is None:
            columns = self.columns.all()
            placed = np.array([self._placed[column] for column in columns.tolist()], np.int64).reshape(-1, 4)
            self._views = _Views.of(columns, placed)
        return self._views

    # --- rows -------------------------------------------------------------------------------------

    def begin(self, context: EvaluationContext) -> None:
        self._context = context
        super().begin(context)

    def _hydrate(self, context: EvaluationContext) -> None:
        for each in (self._left, self._right):
            self.visited += each.hydrate(context)

    def rest(self) -> None:
        context = self._context
        super().rest()
        if context is not None:
            until = context.clock(context.interval.until)
            self._left.leave(until)
            self._right.leave(until)
        self._context = None

    def standing(self, context: EvaluationContext, columns: Int32Array) -> Iterator[Delta]:
        turn = Turn.beginning(context)
        now, rows = context.clock(context.interval.since), self._left.rows
        for start in range(rows.low, max(rows.low + 1, rows.high), PAIRS):
            place = start, min(start + PAIRS, rows.high)
            far = self._right.rows.low, self._right.rows.high
            delta = self._of(self._staying(turn, place, far, now, of_left=True))
            yield delta.where(np.isin(delta.owners, columns))

    def _changed(self, turn: Turn) -> Delta:
        left, right = self._left.rows, self._right.rows
        self.visited += self._left.enter(turn) + self._right.enter(turn)
        entered = left.high - self._left.entered, right.high - self._right.entered
        until = turn.interval.until
        found = [
            self._staying(turn, (entered[0], left.high), (right.low, right.high), until, of_left=True),
            self._staying(turn, (entered[1], right.high), (left.low, entered[0]), until, of_left=False),
        ]
        if all(each.leaf.moves(turn.context) for each in (self._left, self._right)):
            found += [self._leaving(turn, of_left=True), self._leaving(turn, of_left=False)]
        return self._of(one_after_another(found))

    # --- pairs ------------------------------------------------------------------------------------

    def _staying(
        self, turn: Turn, near: tuple[int, int], far: tuple[int, int], until: int, *, of_left: bool
    ) -> MatchedSlots:
        """The pairs of rows of one input from place to place, and such of the other, that are there at an
        instant.
        """
        views = self._viewed()
        both = self._both(views, of_left)._replace(far_low=far[0], far_high=far[1])
        held, most = views.held(of_left), views.most(of_left)

        def find(out: PairsOut, cursor: tuple[int, int]) -> tuple[tuple[int, int] | None, int]:
            row, count = kernels.staying(cursor[1], near[1], both, held, most, until, out)
            return (None if row == near[1] else (0, row)), count

        return self._found(find, (0, near[0]), turn.context.limits, of_left=of_left)

    def _leaving(self, turn: Turn, *, of_left: bool) -> MatchedSlots:
        """The pairs that end on a turn since a row of one input leaves its window first; of both at once, the
        left one.
        """
        views = self._viewed()
        both, sizes = self._both(views, of_left), views.sizes(of_left)
        tasks = _exits((self._left if of_left else self._right).rows, sizes.near, turn.interval)

        def find(out: PairsOut, cursor: tuple[int, int]) -> tuple[tuple[int, int] | None, int]:
            task, row, count = kernels.leaving(*cursor, tasks, both, views.columns, sizes, of_left, out)
            return (None if task == len(tasks.size) else (task, row)), count

        return self._found(find, (0, 0), turn.context.limits, of_left=of_left)

    def _both(self, views: _Views, of_left: bool) -> BothStreams:
        """Both inputs, the one whose rows are near first. of_left: that is the left one."""
        left, right = self._left.rows, self._right.rows
        near, far = (left, right) if of_left else (right, left)
        sets = left.sets.runs(views.over[0]), right.sets.runs(views.over[1])
        near_sets, far_sets = sets if of_left else sets[::-1]
        return BothStreams(near.stored(), far.stored(), far.low, far.high, near_sets, far_sets)

    def _found(self, find: Find, begin: tuple[int, int], limits: Limits, *, of_left: bool) -> MatchedSlots:
        """The pairs that satisfy the condition. Raises LimitExceeded."""
        found: list[MatchedSlots] = []
        cursor: tuple[int, int] | None = begin
        candidates, total = 0, 0
        while cursor is not None:
            out = _room_for(self._room)
            before = cursor
            cursor, count = find(out, cursor)
            if cursor == before:
                self._room *= 2
                continue
            starts = np.concatenate([[0], out.ends[:count]])
            near, far = out.near[:count], out.far[:count]
            left, right = (near, far) if of_left else (far, near)
            pairs = MatchedSlots(
                left, right, out.valid_from[:count], out.valid_to[:count], starts, out.owners[: starts[-1]]
            )
            candidates += count
            self.visited += count
            if self._matching.condition is not None:
                check_candidates(candidates, limits)
                true, _ = truth(self._matching.condition, self._columns(left, right), count)
                pairs = pairs.take(np.flatnonzero(true))
            total += len(pairs)
            check_pairs(total, limits)
            found.append(pairs)
        return one_after_another(found)

    def _of(self, pairs: MatchedSlots) -> Delta:
        relation = Relation(self._columns(pairs.left, pairs.right), len(pairs))
        temporal = TemporalRelation(relation, pairs.valid_from, pairs.valid_to)
        return Delta(temporal, pairs.starts, pairs.owners)

    def _columns(self, left: Int32Array, right: Int32Array) -> LazyColumns:
        context = self._context
        assert context is not None
        return pair_columns(self._left.columns(context, left), self._right.columns(context, right))

    # --- what is kept -----------------------------------------------------------------------------

    @property
    def state_work(self) -> Work:
        return self._left.rows.work + self._right.rows.work

    @property
    def rows(self) -> int:
        return len(self._left.rows) + len(self._right.rows)

    @property
    def nbytes(self) -> int:
        return self._keys.nbytes + self._left.rows.nbytes + self._right.rows.nbytes

    @property
    def keys(self) -> int:
        """How many distinct keys rows have."""
        return len(self._keys)

    @property
    def keys_nbytes(self) -> int:
        """Bytes of what numbers the keys, which are among those of what is kept."""
        return self._keys.nbytes

    def _check(self) -> None:
        self._keys._check()
        self._left.rows._check()
        self._right.rows._check()
        assert self._placed.keys() == set(self.columns.all().tolist())


class _Input:
    """One of the streams: its rows, the columns that are wanted of it, and the sizes of windows."""

    def __init__(self, node: Node, keys: list[Expression]) -> None:
        self.node = node
        self.leaf = leaf_of(node)
        self.entered = 0
        """How many rows entered on this turn."""
        self._keys = keys
        self._width = 0
        self._wanted = Columns(node.settings.capacities)
        self._coming: set[int] = set()
        self._dead: set[int] = set()
        self._spans: dict[int, int] = {}
        """How many columns have a window of a size."""
        self._kept_ms = -1
        """Rows of windows of this size and less are here."""

    def forget(self, keys: Keys) -> None:
        """keys: of the join."""
        self.rows = RowsInTime(keys, self.node.settings.capacities)
        self._coming, self._dead = set(self._wanted.all().tolist()), set()
        self._kept_ms = max(self._spans, default=-1)

    def came(self, column: int, span_ms: int) -> bool:
        """A column of the join reads this one. Returns whether rows are missing for a window of that size."""
        self.leaf.hold(span_ms)
        self.rows.sets.changed(column)
        self._spans[span_ms] = self._spans.get(span_ms, 0) + 1
        if self._wanted.want(column):
            if column in self._dead:
                self._bury()
            self._coming.add(column)
        return span_ms > self._kept_ms

    def went(self, column: int, span_ms: int) -> None:
        """One of those goes."""
        self.leaf.release(span_ms)
        self.rows.sets.changed(column)
        self._spans[span_ms] -= 1
        if not self._spans[span_ms]:
            del self._spans[span_ms]
        if self._wanted.leave(column):
            if column in self._coming:
                self._coming.discard(column)
            else:
                self._dead.add(column)

    def _bury(self) -> None:
        """Columns that nobody wants go."""
        self.rows.drop(np.array(sorted(self._dead), np.int32))
        self._dead.clear()

    def hydrate(self, context: EvaluationContext) -> int:
        """The rows come that stand for columns that came. Returns how many were looked at."""
        if len(self._dead) > DEAD_MIN + self._wanted.count:
            self._bury()
        if not self._coming:
            return 0
        columns, looked = np.array(sorted(self._coming), np.int32), 0
        self._coming.clear()
        for delta in self.node.standing(context, columns):
            looked += len(delta.temporal)
            self._learn(delta)
            self.rows.stand(delta, key_values(self._keys, delta.temporal.relation))
        return looked

    def enter(self, turn: Turn) -> int:
        """Rows of a turn come. Returns how many were looked at."""
        delta = self._wanted.of(self.node.delta(turn))
        self._learn(delta)
        before = len(self.rows)
        self.rows.append(delta, key_values(self._keys, delta.temporal.relation))
        self.entered = len(self.rows) - before
        return len(delta.temporal)

    def _learn(self, delta: Delta) -> None:
        self._width = len(delta.temporal.relation.columns)

    def leave(self, until: int) -> None:
        """Rows go that all windows have left by an instant."""
        self._kept_ms = min(self._kept_ms, max(self._spans, default=-1))
        self.rows.leave(until - 2 * (self._kept_ms + 1))

    def columns(self, context: EvaluationContext, places: Int32Array) -> LazyColumns:
        """The values of rows, read from their source when they are asked for."""
        read: list[Relation] = []

        def make(place: int) -> Column:
            if not read:
                read.append(self.node.read(context, self.rows.ordinals(places).reshape(-1, 1)))
            return read[0].columns[place]

        return LazyColumns(self._width, make)


@dataclass(frozen=True, slots=True)
class _Views:
    """How columns see the stores. over: the columns over those of each input. columns: by each pair of sizes
    that there is, which have it. left, right: for how many halves of a ms windows hold a row, by column;
    left_sizes, right_sizes: by pair of sizes.
    """

    over: tuple[Over, Over]
    columns: WordRuns
    left: Int64Array
    right: Int64Array
    left_sizes: Int64Array
    right_sizes: Int64Array

    @classmethod
    def of(cls, columns: Int32Array, placed: Int64Array) -> _Views:
        """placed: int64[columns, 4]."""
        over = (Over(columns, placed[:, 0].astype(np.int32)), Over(columns, placed[:, 1].astype(np.int32)))
        sizes, which = np.unique(placed[:, 2:], axis=0, return_inverse=True)
        room = int(columns.max(initial=-1)) + 1
        left, right = np.zeros(room, np.int64), np.zeros(room, np.int64)
        left[columns], right[columns] = 2 * (placed[:, 2] + 1), 2 * (placed[:, 3] + 1)
        runs, sizes = runs_of(which.reshape(-1), columns, len(sizes)), 2 * (sizes + 1)
        return cls(over, runs, left, right, sizes[:, 0].copy(), sizes[:, 1].copy())

    def held(self, of_left: bool) -> HeldFor:
        """By column, the near input first."""
        return HeldFor(self.left, self.right) if of_left else HeldFor(self.right, self.left)

    def sizes(self, of_left: bool) -> HeldFor:
        """By pair of sizes, the near input first."""
        both = self.left_sizes, self.right_sizes
        return HeldFor(*both) if of_left else HeldFor(*both[::-1])

    def most(self, of_left: bool) -> HeldFor:
        """The widest of each, int64[1]."""
        both = self.left.max(initial=0, keepdims=True), self.right.max(initial=0, keepdims=True)
        return HeldFor(*both) if of_left else HeldFor(*both[::-1])


def _exits(rows: RowsInTime, held: Int64Array, interval: Interval) -> WindowExits:
    """The rows that leave windows in an interval. held: by pair of sizes."""
    at = rows.at[rows.low :]
    since = max(interval.since, NEVER // 2)
    low = rows.low + np.searchsorted(at, since - held, side="right")
    high = rows.low + np.searchsorted(at, interval.until - held, side="right")
    sizes = np.flatnonzero(low < high)
    return WindowExits(sizes.astype(np.int32), low[sizes], high[sizes])


def _room_for(pairs: int) -> PairsOut:
    return PairsOut(
        np.empty(pairs, np.int32),
        np.empty(pairs, np.int32),
        np.empty(pairs, np.int64),
        np.empty(pairs, np.int64),
        np.empty(pairs, np.int64),
        np.empty(4 * pairs, np.int32),
    )
