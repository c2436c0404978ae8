"""Table functions at an instant: the rows of a stream in the windows that are closed.

    stream rows -> predicate -> windows of each row -> bracket window -> (columns, window_start, window_end)

Rows come by (window_end, window_start, their order in the stream) and are not numbered.

An answer is complete where no window of it, and none that the bracket window reaches, begins before what is
retained. Of sessions only those count as whole that begin at least the gap after it, since a row that is
gone may have belonged to an earlier part.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from engine.kernels import grouping
from engine.kernels import windows as kernels
from engine.model.batch import Column, Int64Array
from engine.model.lazy_columns import LazyColumns
from engine.model.limits import Limits
from engine.model.types import TIMESTAMP, TIMESTAMP_MS_MAX, TIMESTAMP_MS_MIN
from engine.operators.keys import number
from engine.operators.relation import Relation
from engine.operators.row_windows import last_of_relation
from engine.windows.assignment import WINDOW_COLUMNS, Assignment, Hop, Session
from engine.windows.clauses import RowWindow, Window
from tureen.errors import LimitExceeded

PAIRS_MAX = Limits().intermediate_rows_max
"""The most (row, window) pairs of one evaluation."""


@dataclass(frozen=True, slots=True)
class Assigned:
    """Pairs of a row and a window, in order. rows: places in ``stream``. starts, ends: of their windows.

    whole: whether no pair of the bracket window is missing.
    """

    stream: Relation
    rows: Int64Array
    starts: Int64Array
    ends: Int64Array
    whole: bool

    def relation(self) -> Relation:
        """The stream's columns, then window_start and window_end. Ordinals are those of the stream's rows."""
        stream, rows, width = self.stream, self.rows, len(self.stream.columns)

        def make(place: int) -> Column:
            if place < width:
                return stream.columns[place].take(rows)
            return _instants(self.starts if place == width else self.ends)

        columns = LazyColumns(width + len(WINDOW_COLUMNS), make)
        return Relation(columns, len(rows), lambda: stream.stored_ordinals()[rows])

    def take(self, pairs: Int64Array, *, whole: bool) -> Assigned:
        """The pairs at these places."""
        return Assigned(self.stream, self.rows[pairs], self.starts[pairs], self.ends[pairs], whole)


def _instants(ms: Int64Array) -> Column:
    """A TIMESTAMP column; NULL outside the years that a TIMESTAMP has."""
    outside = (ms < TIMESTAMP_MS_MIN) | (ms > TIMESTAMP_MS_MAX)
    return Column(TIMESTAMP, ms, ~outside if outside.any() else None)


@dataclass(frozen=True, slots=True)
class Bracket:
    """What a window behind a table function asks for at NOW: the windows whose last instant lies from
    begin_ms (None: the first ever) to last_ms, and of their rows perhaps the last ones alone.
    """

    begin_ms: int | None
    last_ms: int
    rows: RowWindow | None

    @classmethod
    def at(cls, window: Window, now_ms: int) -> Bracket:
        if isinstance(window, RowWindow):
            return cls(None, now_ms, window)
        begin_ms, last_ms = window.bounds_ms(now_ms)
        return cls(begin_ms, last_ms, None)


def first_needed_ms(hop: Hop, bracket: Bracket) -> int | None:
    """The start of the first window that a bracket window asks for; None: all there ever were."""
    return None if bracket.begin_ms is None else hop.first_end_after(bracket.begin_ms) - hop.size_ms


def hops_whole(hop: Hop, bracket: Bracket, gone_before_ms: int | None) -> bool:
    """Whether all rows are there of the windows that a bracket asks for."""
    if gone_before_ms is None:
        return True
    needed_ms = first_needed_ms(hop, bracket)
    if needed_ms is None:
        return False
    return needed_ms >= gone_before_ms or needed_ms + hop.size_ms > hop.last_end_at(bracket.last_ms)


def reaches_whole_sessions(session: Session, bracket: Bracket, gone_before_ms: int | None) -> bool:
    """Whether all sessions that ended before what is retained, or just after it, are outside a bracket."""
    complete_from_ms = _sessions_complete_from(session, gone_before_ms)
    if complete_from_ms is None:
        return True
    return bracket.begin_ms is not None and bracket.begin_ms >= complete_from_ms


def assign(
    assignment: Assignment,
    bracket: Bracket,
    stream: Relation,
    timestamps: Int64Array,
    gone_before_ms: int | None,
) -> Assigned:
    """The pairs of a bracket window. Raises LimitExceeded.

    stream: the rows that satisfy the predicate, in order, with their timestamps: for a Hop at least those
    that the bracket asks for, for a Session all. gone_before_ms: rows before this instant are gone; None
    where none are.
    Cost: O(rows + pairs).
    """
    if isinstance(assignment, Hop):
        assigned = _hops(assignment, bracket, stream, timestamps, gone_before_ms)
        complete_from_ms = gone_before_ms
    else:
        assigned = _sessions(assignment, bracket, stream, timestamps, gone_before_ms)
        complete_from_ms = _sessions_complete_from(assignment, gone_before_ms)
    if bracket.rows is None:
        return assigned
    pairs, found = last_of_relation(bracket.rows, assigned.relation())
    whole = complete_from_ms is None or (found and bool((assigned.starts[pairs] >= complete_from_ms).all()))
    return assigned.take(pairs, whole=whole)


def _hops(
    hop: Hop, bracket: Bracket, stream: Relation, timestamps: Int64Array, gone_before_ms: int | None
) -> Assigned:
    whole = hops_whole(hop, bracket, gone_before_ms)
    none = np.empty(0, np.int64)
    if not len(timestamps):
        return Assigned(stream, none, none, none, whole)
    needed_ms = first_needed_ms(hop, bracket)
    last_end = hop.last_end_at(bracket.last_ms)
    first_end = hop.first_end_after(int(timestamps[0]))
    if needed_ms is not None:
        first_end = max(first_end, needed_ms + hop.size_ms)
    scope = (timestamps, hop.size_ms, hop.slide_ms, first_end, last_end)
    pairs = kernels.rows_of_hops(*scope, none, none)
    if pairs > PAIRS_MAX:
        hint = "put a window after the table function, such as HOP(...) [RANGE 1 HOUR], or a longer slide"
        raise LimitExceeded("intermediate_rows_max", PAIRS_MAX, pairs, hint=hint)
    rows, ends = np.empty(pairs, np.int64), np.empty(pairs, np.int64)
    if pairs:
        kernels.rows_of_hops(*scope, rows, ends)
    return Assigned(stream, rows, ends - hop.size_ms, ends, whole)


def _sessions_complete_from(session: Session, gone_before_ms: int | None) -> int | None:
    return None if gone_before_ms is None else gone_before_ms + session.gap_ms - 1


def _sessions(
    session: Session, bracket: Bracket, stream: Relation, timestamps: Int64Array, gone_before_ms: int | None
) -> Assigned:
    n = len(timestamps)
    columns, _ = stream.values_of(session.keys)
    codes, width = number(columns, n)
    of_row, starts, lasts = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
    count = kernels.sessions(codes, timestamps, width, session.gap_ms, of_row, starts, lasts)
    starts, ends = starts[:count], lasts[:count] + session.gap_ms
    held = ends - 1 <= bracket.last_ms
    if bracket.begin_ms is not None:
        held &= ends - 1 >= bracket.begin_ms
    complete_from_ms = _sessions_complete_from(session, gone_before_ms)
    whole = reaches_whole_sessions(session, bracket, gone_before_ms) and (
        complete_from_ms is None or bool((starts[held] >= complete_from_ms).all())
    )
    inside = np.flatnonzero(held[of_row])
    rows = inside[_by_window(of_row[inside], starts, ends)]
    return Assigned(stream, rows, starts[of_row[rows]], ends[of_row[rows]], whole)


def _by_window(of_row: Int64Array, starts: Int64Array, ends: Int64Array) -> Int64Array:
    """The places of rows in the order of their sessions' ends, then starts, else as they came."""
    by_time = np.lexsort((starts, ends))
    sorted_starts, sorted_ends = starts[by_time], ends[by_time]
    rank = np.zeros(len(starts), np.int64)
    if len(starts):
        differs = (sorted_starts[1:] != sorted_starts[:-1]) | (sorted_ends[1:] != sorted_ends[:-1])
        rank[by_time[1:]] = np.cumsum(differs)
    order = np.empty(len(of_row), np.int64)
    grouping.bring_together(rank[of_row], np.empty(len(starts) + 1, np.int64), order)
    return order
