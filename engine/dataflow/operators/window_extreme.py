"""MIN and MAX of a stream over windows of many sizes, from one stair a predicate
(:mod:`engine.kernels.window_extremes`).

A row that a later one outdoes is kept for no window, so what is kept of a predicate is a few rows, whatever
the number of windows. A column is a column of the input and the size of its window. Without GROUP BY alone:
one row for each column, NULL where no row of the window counts.

Cost: O(rows that enter + rows kept + windows + changes).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np

from engine.algebra.aggregate.stage import AggregateCall
from engine.changes.context import EvaluationContext
from engine.changes.temporal_relation import TemporalRelation
from engine.changes.transition import FOREVER, NEVER
from engine.dataflow.columns import KeyNumbers
from engine.dataflow.delta import Delta
from engine.dataflow.node import Node
from engine.dataflow.operators.entries import EntriesNode, leaf_of
from engine.dataflow.turn import Turn
from engine.kernels import window_extremes as kernels
from engine.kernels.window_extremes import Stairs, StairWindows, VersionsOut
from engine.language.aggregates import Statistic
from engine.model.batch import BoolArray, Column, Int32Array, Int64Array
from engine.model.types import Kind
from engine.operators.aggregates.members import select
from engine.operators.keys import order_keys, values_in_order, with_one_zero
from engine.operators.relation import Relation

VERSIONS = 4_096
"""Room for versions at first."""


class WindowExtremeNode(Node):
    """One call over entries. The id of a row is its column."""

    id_words = 1
    telling = frozenset((0,))
    _until = NEVER

    def __init__(self, below: Node, call: AggregateCall) -> None:
        super().__init__(below)
        self._call = call
        self.below = below
        self._numbers: KeyNumbers[tuple[int, int]] = KeyNumbers()
        self._stairs_of: dict[int, Counter[int]] = {}
        """By column of the input: how many columns have a window of a size, ms."""
        self._room = self.settings.capacities.first(VERSIONS)
        self.forget()

    @property
    def _leaf(self) -> EntriesNode:
        return leaf_of(self.below)

    @property
    def _least(self) -> bool:
        return self._call.aggregate.statistic is Statistic.LEAST

    def forget(self) -> None:
        self._coming = set(self._stairs_of)
        self._order: list[int] = []
        """Columns of the input, in the order of stairs."""
        self._stairs = _no_stairs(0)
        self._kept_ms = max(self._spans(), default=-1)
        self._windows: StairWindows | None = None

    def _spans(self) -> Iterator[int]:
        return (span_ms for spans in self._stairs_of.values() for span_ms in spans)

    # --- columns ----------------------------------------------------------------------------------

    def column(self, below: int, span_ms: int) -> int:
        """The column of one below with a window of a size, as long as somebody wants it."""
        return self._numbers.number((below, span_ms))

    def want(self, column: int) -> None:
        if not self.columns.want(column):
            return
        below, span_ms = self._numbers[column]
        self._windows = None
        self._leaf.hold(span_ms)
        if below not in self._stairs_of:
            self.below.want(below)
            self._stairs_of[below] = Counter()
            self._coming.add(below)
        self._stairs_of[below][span_ms] += 1
        if span_ms > self._kept_ms:
            self.forget()

    def leave(self, column: int) -> None:
        if not self.columns.leave(column):
            return
        below, span_ms = self._numbers.give_back(column)
        self._windows = None
        self._leaf.release(span_ms)
        spans = self._stairs_of[below]
        spans[span_ms] -= 1
        if not spans[span_ms]:
            del spans[span_ms]
        if not spans:
            del self._stairs_of[below]
            self._coming.discard(below)
            self.below.leave(below)
            if below in self._order:
                self._without(self._order.index(below))

    def _without(self, place: int) -> None:
        """A stair goes."""
        stairs, counts = self._stairs, np.diff(self._stairs.starts)
        kept = np.repeat(np.arange(len(counts)) != place, counts)
        starts = np.concatenate([[0], np.cumsum(np.delete(counts, place))]).astype(np.int64)
        self._stairs = Stairs(starts, stairs.at[kept], stairs.word[kept])
        del self._order[place]

    def _viewed(self) -> StairWindows:
        """The windows over stairs."""
        if self._windows is None:
            place_of = {below: place for place, below in enumerate(self._order)}
            columns = self.columns.all()
            known = np.array([self._numbers[column] for column in columns.tolist()], np.int64).reshape(-1, 2)
            places = np.array([place_of[below] for below in known[:, 0].tolist()], np.int64)
            order = np.argsort(places, kind="stable")
            starts = np.searchsorted(places[order], np.arange(len(self._order) + 1)).astype(np.int64)
            self._windows = StairWindows(starts, columns[order], 2 * (known[order, 1] + 1))
        return self._windows

    # --- rows -------------------------------------------------------------------------------------

    def _hydrate(self, context: EvaluationContext) -> None:
        if not self._coming:
            return
        columns = np.array(sorted(self._coming), np.int32)
        self._coming.clear()
        self._windows = None
        self._order += columns.tolist()
        starts = np.concatenate([self._stairs.starts, np.full(len(columns), self._stairs.starts[-1])])
        self._stairs = self._stairs._replace(starts=starts)
        for delta in self.below.standing(context, columns):
            self.visited += len(delta.temporal)
            self._stairs = self._joined(delta)[2]

    def _joined(self, delta: Delta) -> tuple[Stairs, Int64Array, Stairs]:
        """Rows enter: (stairs with all of them, of each row the next that is no less, the stairs after)."""
        new, old = self._entering(delta), self._stairs
        room = len(old.at) + len(new.at)
        both, left = _no_stairs(len(self._order), room), _no_stairs(len(self._order), room)
        greater = np.empty(room, np.int64)
        kept = kernels.join_stairs(old, new, both, greater, left)
        return both, greater, Stairs(left.starts, left.at[:kept], left.word[:kept])

    def _entering(self, delta: Delta) -> Stairs:
        """The rows of a delta that count, by stair."""
        relation, n = delta.temporal.relation, len(delta.temporal)
        members, _ = select(relation, self._call.of_rows, self._call.filter, False, np.arange(n), n)
        rows = members.codes
        assert rows is not None
        words = np.zeros(n, np.int64)
        words[rows] = order_keys(with_one_zero(members.values))
        counts: BoolArray = np.zeros(n, np.bool_)
        counts[rows] = True
        place_of = np.full(max(self._order, default=-1) + 1, -1, np.int64)
        place_of[self._order] = np.arange(len(self._order))
        of_pairs, owners = delta.rows(), delta.owners
        stairs = np.where(owners < len(place_of), place_of[np.minimum(owners, len(place_of) - 1)], -1)
        pairs = np.flatnonzero(counts[of_pairs] & (stairs >= 0))
        pairs = pairs[np.argsort(stairs[pairs], kind="stable")]
        starts = np.searchsorted(stairs[pairs], np.arange(len(self._order) + 1)).astype(np.int64)
        rows = of_pairs[pairs]
        return Stairs(starts, delta.temporal.valid_from[rows], ~words[rows] if self._least else words[rows])

    def _changed(self, turn: Turn) -> Delta:
        delta = self.below.delta(turn)
        self.visited += len(delta.temporal)
        both, greater, self._stairs = self._joined(delta)
        if not self._leaf.moves(turn.context):
            return self._told(_no_versions(0))
        return self._told(self._versions(both, greater, turn.interval.since, turn.interval.until))

    def _versions(self, both: Stairs, greater: Int64Array, since: int, until: int) -> VersionsOut:
        """What windows have on an interval, of those where that changes."""
        found, cursor, windows = [], (0, 0), self._viewed()
        while cursor[0] < len(self._order):
            out = _no_versions(self._room)
            *stopped, count = kernels.versions(
                *cursor, both, greater, windows, max(since, NEVER // 2), until, out
            )
            if tuple(stopped) == cursor:
                self._room *= 2
            cursor = stopped[0], stopped[1]
            found.append(VersionsOut._make(each[:count] for each in out))
        if not found:
            return _no_versions(0)
        return VersionsOut._make(map(np.concatenate, zip(*found, strict=True)))

    def _told(self, versions: VersionsOut) -> Delta:
        words = np.where(versions.there, ~versions.word if self._least else versions.word, 0)
        value = values_in_order(self._call.type, words)
        column = Column(value.type, value.values, None if versions.there.all() else versions.there)
        relation = Relation([column], len(words))
        temporal = TemporalRelation(relation, versions.valid_from, versions.valid_to)
        ids = versions.column.astype(np.int64).reshape(-1, 1)
        return Delta.of_one_each(temporal, versions.column, lambda: ids)

    def standing(self, context: EvaluationContext, columns: Int32Array) -> Iterator[Delta]:
        now, windows, stairs = context.clock(context.interval.since), self._viewed(), self._stairs
        n = len(windows.column)
        out = _no_versions(n)
        out.column[:], out.valid_from[:], out.valid_to[:] = windows.column, NEVER, FOREVER
        for stair in range(len(self._order)):
            here = slice(windows.starts[stair], windows.starts[stair + 1])
            first, end = stairs.starts[stair], stairs.starts[stair + 1]
            inside = first + np.searchsorted(stairs.at[first:end], now - windows.held[here], side="right")
            out.there[here] = inside < end
            out.word[here] = stairs.word[np.minimum(inside, end - 1)] if end > first else 0
        out.word[~out.there] = 0
        yield self._told(VersionsOut._make(each[np.isin(out.column, columns)] for each in out))

    def begin(self, context: EvaluationContext) -> None:
        self._until = context.clock(context.interval.until)
        super().begin(context)

    def rest(self) -> None:
        super().rest()
        self._kept_ms = min(self._kept_ms, max(self._spans(), default=-1))
        left = _no_stairs(len(self._stairs.starts) - 1, len(self._stairs.at))
        kept = kernels.trim(self._stairs, self._until - 2 * (self._kept_ms + 1), left)
        self._stairs = Stairs(left.starts, left.at[:kept].copy(), left.word[:kept].copy())

    @property
    def rows(self) -> int:
        return len(self._stairs.at)

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in self._stairs)

    def _check(self) -> None:
        assert set(self._order) | self._coming == self._stairs_of.keys()
        assert self.columns.count == sum(len(spans) for spans in self._stairs_of.values())
        for first, end in zip(self._stairs.starts[:-1], self._stairs.starts[1:], strict=True):
            at, word = self._stairs.at[first:end], self._stairs.word[first:end]
            assert bool((word[1:] < word[:-1]).all())
            assert bool((at[1:] >= at[:-1]).all())


def is_extreme(call: AggregateCall) -> bool:
    """Whether a call asks for the least or the greatest of numbers or instants."""
    kind = call.arguments[0].type.kind if call.arguments else None
    is_end = call.aggregate.statistic in (Statistic.LEAST, Statistic.GREATEST)
    return is_end and kind not in (None, Kind.STRING, Kind.NULL)


def _no_stairs(count: int, rows: int = 0) -> Stairs:
    return Stairs(np.zeros(count + 1, np.int64), np.empty(rows, np.int64), np.empty(rows, np.int64))


def _no_versions(n: int) -> VersionsOut:
    words = np.empty((3, n), np.int64)
    return VersionsOut(np.empty(n, np.int32), words[0], np.empty(n, np.bool_), words[1], words[2])
