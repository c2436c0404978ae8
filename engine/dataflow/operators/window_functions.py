"""Window functions: of each run the rows in order, and their values where some that they are made of change.

A run is a partition, all rows of a column or those with one value of the keys. At an instant at which rows of
a run come or go, the values of those that may change are made before and behind it (:func:`reach_of`): where
all calls look a number of rows around them (LAG, LEAD, frames of ROWS), of so many rows around each that
moves; else of the whole run. Where rows come behind all others of a run, and all calls look back alone (LAG,
RANK, frames that end with the row), these are looked at once. Told are rows with other values, and no others.

Cost: O(log n) and a move of the slots behind it for each row that comes or goes; at each instant the
evaluation of twice as many rows as may change, and of those around them. State: the columns of rows that
somebody reads. Values are not kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from engine.algebra.sort.stage import SortKey
from engine.algebra.window_functions.stage import WindowFunctionCall, WindowFunctions
from engine.changes.context import EvaluationContext
from engine.changes.equality import equal_values
from engine.changes.temporal_relation import TemporalRelation
from engine.changes.transition import FOREVER, NEVER
from engine.dataflow.arrangements.ordered_runs import bounds_of
from engine.dataflow.delta import Delta
from engine.dataflow.node import Node
from engine.dataflow.operators.in_order import InOrder, KeptOrder
from engine.dataflow.turn import Turn
from engine.kernels import window_versions as kernels
from engine.kernels.ranked import RankVersions
from engine.kernels.window_versions import Lives, Reach, Segments
from engine.language.window_functions import WINDOW_FUNCTIONS
from engine.model.batch import BoolArray, Column, Int32Array, Int64Array, concatenate_columns
from engine.model.expressions import Expression, Literal
from engine.model.lazy_columns import LazyColumns
from engine.model.limits import Limits
from engine.operators.frames import in_runs
from engine.operators.relation import Relation
from engine.operators.window_functions import values_of_calls
from tureen.errors import LimitExceeded

ALL = 1 << 40
"""More rows than there are."""


@dataclass(frozen=True, slots=True)
class WindowFunctionsSpec:
    """The calls of a window. read: the places of the columns that somebody above reads, and those that are
    read here; None: all.
    """

    keys: tuple[Expression, ...]
    order: tuple[SortKey, ...]
    calls: tuple[WindowFunctionCall, ...]
    read: frozenset[int] | None

    @classmethod
    def of(cls, stage: WindowFunctions, read: frozenset[int] | None) -> WindowFunctionsSpec:
        """read: the places that somebody above reads, those of the calls among them."""
        own = stage.places_read
        return cls(stage.keys, stage.order, stage.calls, None if read is None or own is None else read | own)


class WindowFunctionsNode(InOrder):
    """A row's id is the one below and its column."""

    def __init__(self, below: Node, stage: WindowFunctionsSpec) -> None:
        self._calls = stage.calls
        self._reach, self._back = reach_of(stage.calls), looking_back(stage.calls)
        bounds = bounds_of(0, None, numbered=False)
        super().__init__(below, stage.keys, stage.order, bounds, stage.read)
        self.id_words = below.id_words + 1
        self.ordered = below.ordered

    # --- rows that stand --------------------------------------------------------------------------

    def standing(self, context: EvaluationContext, columns: Int32Array) -> Iterator[Delta]:
        kept = self._kept
        if kept is None:
            return
        there = kept.runs.first(self._runs_of_columns(columns))
        n = len(there.slots)
        self.visited += n
        values = self._values(kept, there.slots, there.runs.astype(np.int64))
        places, lives = np.arange(n), Lives(*[np.empty(0, np.int64)] * len(Lives._fields))
        runs, of_stretch = np.unique(there.runs, return_inverse=True)
        rows = _Rows(runs, there.slots, of_stretch.astype(np.int32), lives)
        versions = _Versions(places, there.valid_from, there.valid_to, values, places)
        yield self._given(kept, rows, [versions])

    # --- rows that move ---------------------------------------------------------------------------

    def _told(self, told: RankVersions, kept: KeptOrder, turn: Turn) -> Delta:
        rows = self._around(told, kept)
        n = len(rows.slots)
        appended, back = np.zeros(n, np.bool_), self._back
        if back is not None:
            appended = rows.appended(kept.rows.words, self._order.width if back.by_peers else -1)
        found = [] if back is None or not appended.any() else [self._appended(rows, appended, kept, back)]
        if not found or not appended.all():
            found.append(self._moved(rows, appended, kept, turn.context.limits))
        return self._given(kept, rows, found)

    def _appended(self, rows: _Rows, appended: BoolArray, kept: KeptOrder, back: LooksBack) -> _Versions:
        """What is told of runs that rows come behind: none changes another, so each is looked at once, among
        all that are there after all. appended: the places of the rows of these runs.
        """
        came = appended & (rows.lives.begins != NEVER)
        far = np.flatnonzero(appended)
        places = far[rows.ahead(came)[far] <= back.rows]
        self.visited += len(places)
        values = self._values(kept, rows.slots[places], rows.of_stretch[places].astype(np.int64))
        given = np.flatnonzero(came[places])
        place = places[given]
        return _Versions(place, rows.lives.begins[place], np.full(len(place), FOREVER), values, given)

    def _moved(self, rows: _Rows, appended: BoolArray, kept: KeptOrder, limits: Limits) -> _Versions:
        """What is told of the others: their rows before and behind each instant."""
        place, at = _moves(rows.lives, ~appended)
        stretches = _segments(at, place, self._reach, rows.lives)
        places, parts, inner = _rows_of(stretches, rows.lives, limits)
        self.visited += len(places)
        values = self._values(kept, rows.slots[places], parts)
        one, other = _changed_rows(places, parts, inner, len(rows.slots), values)
        return _chained(one, other, places, parts, stretches.at, values)

    def _values(self, kept: KeptOrder, slots: Int32Array, parts: Int64Array) -> list[Column]:
        """The calls of rows part by part, each in order. parts: int64[n], ascending."""

        def column(place: int) -> Column:
            return kept.rows.column(kept.places[place], slots)

        relation = Relation(LazyColumns(kept.width, column), len(slots))
        order = [kept.rows.words[slots, word] for word in range(self._order.width)]
        partitions = in_runs(parts, order)
        return values_of_calls(self._calls, self._sort_keys, partitions, relation)[0]

    def _given(self, kept: KeptOrder, rows: _Rows, found: Sequence[_Versions]) -> Delta:
        """Versions as a delta."""
        place = np.concatenate([each.places for each in found])
        slots, runs = rows.slots[place], rows.runs[rows.of_stretch[place]]
        column, width = kept.rows.columns(slots), kept.width

        def make(place: int) -> Column:
            if place < width:
                return column(kept.places[place])
            values = [each.values[place - width].take(each.rows) for each in found]
            return concatenate_columns(self._calls[place - width].type, values)

        relation = Relation(LazyColumns(width + len(self._calls), make), len(slots))
        valid_from = np.concatenate([each.valid_from for each in found])
        valid_to = np.concatenate([each.valid_to for each in found])
        owners = self._columns_of(runs)
        ids = self._ids_of(kept, slots, owners)
        return Delta.of_one_each(TemporalRelation(relation, valid_from, valid_to), owners, lambda: ids)

    def _around(self, told: RankVersions, kept: KeptOrder) -> _Rows:
        """The rows that came or went, and those around them whose values may change or that these are made
        of: stretches of runs, which do not overlap.
        """
        went = told.valid_to != FOREVER
        place, words = kept.runs.places(told.runs, told.slots), kept.rows.words
        by_word = [words[told.slots, word] for word in reversed(range(words.shape[1]))] if went.any() else []
        order = np.lexsort([*by_word, place, told.runs])
        slots, runs, place, went = told.slots[order], told.runs[order], place[order], went[order]

        reach = self._reach
        low = np.maximum(place - reach.low - reach.before, 0)
        high = np.minimum(place + reach.high + reach.behind + 1, kept.runs.counts(runs))
        begins = np.ones(len(order), np.bool_)
        begins[1:] = (runs[1:] != runs[:-1]) | (low[1:] > high[:-1])
        first, last, of = np.flatnonzero(begins), np.flatnonzero(np.roll(begins, -1)), np.cumsum(begins) - 1
        runs, low, staying = runs[first], low[first], high[last] - low[first]

        # Rows that left stand before those that are there, at the places that they would have.
        counts = staying + np.bincount(of[went], minlength=len(first))
        starts, left = np.cumsum(counts) - counts, np.cumsum(went) - went
        at = (starts - low - left[first])[of] + place + left
        rows = _Rows.of_stretches(runs, counts)
        is_left = np.zeros(len(rows.slots), np.bool_)
        is_left[at[went]] = True
        rows.slots[is_left], rows.slots[~is_left] = slots[went], kept.runs.stretch(runs, low, staying)
        rows.lives.begins[at], rows.lives.ends[at] = told.valid_from[order], told.valid_to[order]
        return rows


# --- how far a change reaches -------------------------------------------------------------------------


def reach_of(calls: Sequence[WindowFunctionCall]) -> Reach:
    """How many rows around one that comes or goes may change, and are looked at for that."""
    each = [_reach(call) for call in calls]
    low, high, before, behind = (max(sizes) for sizes in zip(*each, strict=True))
    if max(low, high, before, behind) >= ALL:
        return Reach(ALL, ALL, ALL, ALL)
    return Reach(low, high, before, behind)


def _reach(call: WindowFunctionCall) -> Reach:
    everywhere = Reach(ALL, ALL, ALL, ALL)
    if call.function in ("LAG", "LEAD"):
        distance = 1
        if len(call.arguments) > 1:
            assert isinstance(call.arguments[1], Literal)
            distance = int(str(call.arguments[1].value))
        if call.ignore_nulls:
            return everywhere
        return Reach(0, distance, distance, 0) if call.function == "LAG" else Reach(distance, 0, 0, distance)
    frame = call.frame
    framed = call.aggregate is not None or WINDOW_FUNCTIONS[call.function].framed
    by_rows = framed and frame.unit == "rows" and frame.exclude in ("no others", "current row")
    if not by_rows or frame.start is None or frame.end is None:
        return everywhere
    before, behind = max(0, -int(frame.start)), max(0, int(frame.end))
    return Reach(behind, before, before, behind)


@dataclass(frozen=True, slots=True)
class LooksBack:
    """How far calls look whose value of a row is made of those before it and its peers alone: at how many
    rows, and whether at peers, so that one that comes later changes those that are there.
    """

    rows: int
    by_peers: bool


def looking_back(calls: Sequence[WindowFunctionCall]) -> LooksBack | None:
    """What calls look at, where all of them look back alone; None: one does not."""
    each = [_looking_back(call) for call in calls]
    found = [one for one in each if one is not None]
    if len(found) < len(each):
        return None
    return LooksBack(max(one.rows for one in found), any(one.by_peers for one in found))


def _looking_back(call: WindowFunctionCall) -> LooksBack | None:
    if call.function == "LAG":
        return LooksBack(_reach(call).before, by_peers=False)
    if call.function in ("RANK", "DENSE_RANK"):
        return LooksBack(ALL, by_peers=True)
    framed = call.aggregate is not None or WINDOW_FUNCTIONS[call.function].framed
    frame = call.frame
    if not framed or frame.end is None or frame.end > 0:
        return None
    if frame.unit == "rows" and frame.exclude in ("no others", "current row"):
        return LooksBack(ALL if frame.start is None else max(0, -int(frame.start)), by_peers=False)
    return LooksBack(ALL, by_peers=True)


# --- rows and their lives -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Rows:
    """Rows by place. runs: of each stretch, the run that it is a part of. slots, of_stretch: int32, the slot
    of each row, and which stretch it is in.
    """

    runs: Int32Array
    slots: Int32Array
    of_stretch: Int32Array
    lives: Lives

    @classmethod
    def of_stretches(cls, runs: Int32Array, counts: Int64Array) -> _Rows:
        """So many rows of each run, that neither come nor go; their slots are to be written."""
        n, stops = int(counts.sum()), np.cumsum(counts)
        lives = Lives(
            np.full(n, NEVER),
            np.full(n, FOREVER),
            np.repeat(stops - counts, counts),
            np.repeat(stops, counts),
        )
        return cls(
            runs, np.empty(n, np.int32), np.repeat(np.arange(len(runs), dtype=np.int32), counts), lives
        )

    def appended(self, words: Int64Array, peers: int) -> BoolArray:
        """bool by place: whether rows come at the end of its stretch, and nothing else moves in it. words: by
        slot; peers: of :func:`engine.kernels.window_versions.appended`.
        """
        firsts = np.empty(len(self.runs), np.int64)
        kernels.appended(self.slots, self.of_stretch, self.lives, words, peers, firsts)
        found: BoolArray = (firsts >= 0)[self.of_stretch]
        return found

    def ahead(self, came: BoolArray) -> Int64Array:
        """int64 by place: how far behind it the first row of its stretch stands that came."""
        places = np.flatnonzero(came)
        stretches, at = np.unique(self.of_stretch[places], return_index=True)
        firsts = np.zeros(len(self.runs), np.int64)
        firsts[stretches] = places[at]
        found: Int64Array = firsts[self.of_stretch] - np.arange(len(self.of_stretch))
        return found


@dataclass(frozen=True, slots=True)
class _Versions:
    """Versions of rows: their places, the instants between which they stand, the values of the rows that were
    evaluated, and which of these each is.
    """

    places: Int64Array
    valid_from: Int64Array
    valid_to: Int64Array
    values: Sequence[Column]
    rows: Int64Array


def _moves(lives: Lives, some: BoolArray) -> tuple[Int64Array, Int64Array]:
    """(place, instant) of all among some places that come or go, by run, instant and place."""
    came = np.flatnonzero(some & (lives.begins != NEVER))
    went = np.flatnonzero(some & (lives.ends != FOREVER))
    place = np.concatenate([came, went])
    at = np.concatenate([lives.begins[came], lives.ends[went]])
    order = np.lexsort([place, at, lives.starts[place]])
    return place[order], at[order]


def _segments(at: Int64Array, place: Int64Array, reach: Reach, lives: Lives) -> Segments:
    made = Segments(*(np.empty(len(at), np.int64) for _ in Segments._fields))
    count = kernels.segments(at, place, reach, lives, made)
    return Segments(*(each[:count] for each in made))


def _rows_of(stretches: Segments, lives: Lives, limits: Limits) -> tuple[Int64Array, Int64Array, BoolArray]:
    """(places, parts, inner) of the rows of segments. Raises LimitExceeded where they are too many."""
    room = 2 * int((stretches.high - stretches.low + 1).sum())
    most = 4 * limits.intermediate_rows_max
    if room > most:
        hint = (
            "narrow the window, or partition by more: all rows of a partition may change with each that comes"
        )
        raise LimitExceeded("intermediate_rows_max", limits.intermediate_rows_max, room, hint=hint)
    places, parts, inner = np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room, np.bool_)
    count = kernels.rows_of(stretches, lives, places, parts, inner)
    return places[:count], parts[:count], inner[:count]


# --- what is told -------------------------------------------------------------------------------------


def _changed_rows(
    places: Int64Array, parts: Int64Array, inner: BoolArray, width: int, values: Sequence[Column]
) -> tuple[Int64Array, Int64Array]:
    """The rows before and behind an instant that are not the same: (before, behind), -1 where there is none.
    width: above all places.
    """
    sides = [np.flatnonzero(inner & (parts % 2 == side)) for side in range(2)]
    before, behind = sides
    keys = [(parts[side] // 2) * width + places[side] for side in sides]
    found = np.searchsorted(keys[1], keys[0])
    found = np.minimum(found, max(0, len(behind) - 1))
    both = keys[1][found] == keys[0] if len(behind) else np.zeros(len(before), np.bool_)
    one, other = before[both], behind[found[both]] if len(behind) else behind
    same = np.ones(len(one), np.bool_)
    for column in values:
        same &= equal_values(column, one, other)
    alone = np.ones(len(behind), np.bool_)
    alone[found[both]] = False
    gone, new = before[~both], behind[alone]
    return (
        np.concatenate([one[~same], gone, np.full(len(new), -1)]),
        np.concatenate([other[~same], np.full(len(gone), -1), new]),
    )


def _chained(
    before: Int64Array,
    behind: Int64Array,
    places: Int64Array,
    parts: Int64Array,
    at: Int64Array,
    values: Sequence[Column],
) -> _Versions:
    """The versions that changes of rows make, of each one behind the other. before, behind: changes as rows
    that were evaluated. at: by segment.
    """
    either = np.where(before >= 0, before, behind)
    place, instant = places[either], at[parts[either] // 2]
    order = np.lexsort([instant, place])
    before, behind, place, instant = before[order], behind[order], place[order], instant[order]
    first = np.ones(len(place), np.bool_)
    first[1:] = place[1:] != place[:-1]
    until = np.full(len(place), FOREVER)
    until[:-1][~first[1:]] = instant[1:][~first[1:]]
    old, new = np.flatnonzero(first & (before >= 0)), np.flatnonzero(behind >= 0)
    return _Versions(
        np.concatenate([place[old], place[new]]),
        np.concatenate([np.full(len(old), NEVER), instant[new]]),
        np.concatenate([instant[old], until[new]]),
        values,
        np.concatenate([before[old], behind[new]]),
    )
