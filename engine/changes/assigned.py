"""Table functions over an interval: the rows of closed windows with their lives.

A window that has closed never changes, so a row in it comes with the last instant of the window, and goes as
the clause behind the function has it. Retention takes rows out of windows one by one; a session then begins
later:

    session of rows at 5, 7, 9, closed at 12, the row at 5 retained until 20

    row      window_start   begin   end
    5        5              12      20
    7, 9     5              12      20
    7, 9     7              20      ...

Cost: of windows that open and close by the clock O(log rows), and the rows of those that come or go; of
sessions O(log rows) where none closes, else all rows that are retained. Rows of windows behind which rows are
counted are found by looking at every instant at which a window closes (:mod:`engine.changes.succession`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from engine.changes.source_interval import SourceInterval
from engine.changes.succession import succession
from engine.changes.temporal_relation import TemporalRelation, always, one_after_another
from engine.changes.transition import FOREVER, NEVER
from engine.changes.windows import Span, begins_of, ends_of, held, merged, moving, without
from engine.kernels import windows as kernels
from engine.language.query import Scan
from engine.model.batch import Column, Int64Array
from engine.model.limits import Limits
from engine.model.runs import places_of
from engine.model.types import BIGINT
from engine.operators.assignment import Assigned
from engine.operators.gather import rows_at
from engine.operators.keys import number
from engine.operators.places import timestamps_at
from engine.operators.relation import Relation
from engine.operators.scan import ScanAt
from engine.windows.assignment import Assignment, Hop, Session
from engine.windows.clauses import UNBOUNDED, RowWindow, TimeWindow
from tureen.errors import LimitExceeded


def assigned_lives(
    scan: Scan, assignment: Assignment, within: SourceInterval, changing: bool
) -> TemporalRelation:
    """The rows of a table function over a source that moves. Raises LimitExceeded.

    changing: those that do not change may be left out.
    """
    if isinstance(scan.window, RowWindow):
        return _last(scan, within)
    if isinstance(assignment, Hop):
        return _hops(scan, assignment, scan.window, within, changing)
    return _sessions(scan, assignment, scan.window, within, changing)


# --- windows that the clock opens and closes ------------------------------------------------------


def _hops(
    scan: Scan, hop: Hop, window: TimeWindow, within: SourceInterval, changing: bool
) -> TemporalRelation:
    """Spans are of windows' last instants. What retention takes is taken from every window that is held."""
    at_source, since_ms, until_ms = within.at_source, within.since_ms, within.until_ms
    whole = held(window, since_ms, until_ms)
    spans = moving(window, since_ms, until_ms) if changing else merged([whole])
    pieces = [(span, FOREVER) for span in spans]
    if changing and at_source.retained_to_ms is not None:
        pieces += [(span, at_source.retained_to_ms) for span in without(whole, spans)]
    found = [_hops_of(scan, hop, window, within, span, below) for span, below in sorted(pieces)]
    return one_after_another(found) if found else _none(scan, within)


def _hops_of(
    scan: Scan, hop: Hop, window: TimeWindow, within: SourceInterval, span: Span, below_ms: int
) -> TemporalRelation:
    """Rows below an instant in the windows whose last instants are in a span."""
    at, rows = within.at_source.at, within.at_source.at.rows
    low, high = span
    last_end = hop.last_end_at(high - 1)
    start = at.first_retained
    if low != NEVER:
        first_end = hop.first_end_after(low)
        if first_end > last_end:
            return _none(scan, within)
        start = max(start, rows.first_at_or_after(first_end - hop.size_ms))
    stop = min(at.end, rows.first_at_or_after(min(last_end, below_ms)))
    places = at.matching(scan.predicate, start, stop) if start < stop else []
    timestamps = timestamps_at(places)
    if not len(timestamps):
        return _none(scan, within)
    of_first = hop.first_end_after(int(timestamps[0]))
    first_end = of_first if low == NEVER else max(first_end, of_first)
    none = np.empty(0, np.int64)
    scope = (timestamps, hop.size_ms, hop.slide_ms, first_end, last_end)
    pairs = kernels.rows_of_hops(*scope, none, none)
    _bounded(pairs, within.limits)
    of_row, window_ends = np.empty(pairs, np.int64), np.empty(pairs, np.int64)
    if pairs:
        kernels.rows_of_hops(*scope, of_row, window_ends)
    stream = rows_at(rows.schema, places)
    assigned = Assigned(stream, of_row, window_ends - hop.size_ms, window_ends, whole=True)
    return _lives(assigned, window, within, timestamps)


def _lives(
    assigned: Assigned, window: TimeWindow, within: SourceInterval, timestamps: Int64Array
) -> TemporalRelation:
    instants = assigned.ends - 1
    begins, ends = begins_of(window, instants), ends_of(window, instants)
    return within.temporal(assigned.relation(), begins, ends, within.gone(timestamps[assigned.rows]))


def _none(scan: Scan, within: SourceInterval) -> TemporalRelation:
    return always(within.as_of(NEVER).relation(scan).relation)


def _bounded(pairs: int, limits: Limits) -> None:
    if pairs > limits.intermediate_rows_max:
        hint = "put a window after the table function, such as HOP(...) [RANGE 1 HOUR], or a longer slide"
        raise LimitExceeded("intermediate_rows_max", limits.intermediate_rows_max, pairs, hint=hint)


# --- sessions -------------------------------------------------------------------------------------


class Sessions(NamedTuple):
    """Whole sessions and their rows.

    timestamps: int64[n], ms, of the rows, ascending; of_row: int64[n], the session of each. starts, ends:
    int64[sessions], ms.
    """

    timestamps: Int64Array
    of_row: Int64Array
    starts: Int64Array
    ends: Int64Array


def _sessions(
    scan: Scan, session: Session, window: TimeWindow, within: SourceInterval, changing: bool
) -> TemporalRelation:
    at, rows = within.at_source.at, within.at_source.at.rows
    if changing and within.at_source.retained_to_ms is None:
        spans = moving(window, within.since_ms, within.until_ms)
        if not _may_end(at, spans, session.gap_ms):
            return _none(scan, within)
    places = at.matching(scan.predicate, at.first_retained, at.end)
    stream = rows_at(rows.schema, places)
    return session_lives(stream, _cut(session, stream, timestamps_at(places)), window, within, changing)


def session_lives(
    stream: Relation, sessions: Sessions, window: TimeWindow, within: SourceInterval, changing: bool
) -> TemporalRelation:
    """The rows of sessions over a source that moves. Raises LimitExceeded.

    stream: the rows of ``sessions``, with the columns of the source. changing: sessions that do not change
    may be left out.
    """
    timestamps, of_row, starts, window_ends = sessions
    begins = within.time(begins_of(window, window_ends - 1))
    ends = within.time(ends_of(window, window_ends - 1))
    interval = within.interval
    wanted = (begins < ends) & (begins <= interval.until)
    if changing:
        moves = interval.among(begins) | interval.among(ends)
        if within.at_source.retained_to_ms is not None:
            moves |= starts < within.at_source.retained_to_ms
        wanted &= moves
    rows_of = np.flatnonzero(wanted[of_row])
    taken = rows_of[np.argsort(of_row[rows_of], kind="stable")]
    window_starts = starts[of_row[taken]]
    since, until = np.full(len(taken), NEVER), np.full(len(taken), FOREVER)
    if within.at_source.retained_to_ms is not None:
        taken, window_starts, since, until = _shortened(taken, of_row, timestamps, within)
    found = of_row[taken]
    first, last = np.maximum(begins[found], since), np.minimum(ends[found], until)
    there = np.flatnonzero((first < last) & (first <= interval.until))
    order = there[np.lexsort((taken[there], window_starts[there], window_ends[found[there]]))]
    assigned = Assigned(stream, taken[order], window_starts[order], window_ends[found[order]], whole=True)
    return TemporalRelation(assigned.relation(), first[order], last[order])


def _may_end(at: ScanAt, spans: Iterable[Span], gap_ms: int) -> bool:
    """Whether a row is there that could be the last of a session whose last instant is in one of these."""
    rows = at.rows
    for low, high in spans:
        first = rows.base if low == NEVER else rows.first_at_or_after(low - gap_ms + 1)
        if first < min(at.end, rows.first_at_or_after(high - gap_ms + 1)):
            return True
    return False


def _cut(session: Session, stream: Relation, timestamps: Int64Array) -> Sessions:
    n = len(timestamps)
    columns, _ = stream.values_of(session.keys)
    codes, width = number(columns, n)
    of_row, starts, lasts = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
    count = kernels.sessions(codes, timestamps, width, session.gap_ms, of_row, starts, lasts)
    return Sessions(timestamps, of_row, starts[:count], lasts[:count] + session.gap_ms)


def _shortened(
    order: Int64Array, of_row: Int64Array, timestamps: Int64Array, within: SourceInterval
) -> tuple[Int64Array, ...]:
    """Rows with each start that retention gives their session: row, start, from when, until when.

    order: rows by session, then as they came.
    """
    sessions, stamps = of_row[order], timestamps[order]
    n = len(order)
    is_first = np.ones(n, np.bool_)
    is_first[1:] = sessions[1:] != sessions[:-1]
    is_next = is_first.copy()
    is_next[1:] |= stamps[1:] != stamps[:-1]
    heads = np.flatnonzero(is_next)
    gone = within.gone(stamps[heads])
    assert gone is not None
    since = np.full(len(heads), NEVER)
    later = ~is_first[heads[1:]]
    since[1:][later] = gone[:-1][later]
    used = since < gone
    heads, gone, since = heads[used], gone[used], since[used]
    starts_of = np.flatnonzero(is_first)
    stops_of = np.append(starts_of[1:], n)
    stops = stops_of[np.searchsorted(starts_of, heads, "right") - 1]
    counts = stops - heads
    total = int(counts.sum())
    _bounded(total, within.limits)
    places = places_of(heads, counts)
    return order[places], *(np.repeat(each, counts) for each in (stamps[heads], since, gone))


# --- the last rows of windows ---------------------------------------------------------------------


def _last(scan: Scan, within: SourceInterval) -> TemporalRelation:
    assert scan.assignment is not None
    closing = assigned_lives(replace(scan, window=UNBOUNDED), scan.assignment, within, True)
    interval = within.interval
    instants = closing.instants(interval)
    at_first = within.as_of(interval.since).relation(scan).relation
    relations = (within.as_of(instant).relation(scan).relation for instant in instants.tolist())
    return succession(at_first, relations, instants, within.limits, _of_rows)


def _of_rows(relation: Relation) -> list[Column]:
    """What tells rows of windows apart that are equal: the first of them leaves before the others."""
    return [Column(BIGINT, relation.stored_ordinals()), *relation.columns[-2:]]
