"""Scans over an interval: the rows of a source's windows with their lives.

A row of a stream comes when NOW reaches it, or when a window that trails behind does, and goes when the
window leaves it behind or when retention takes it:

    window                     comes                      goes
    of time                    with its timestamp         with its timestamp
    [ROWS n]                   with its timestamp         with that of the n-th row after it
    [... ROWS n WHERE p]       likewise among the rows that satisfy p, or of its keys
    a table's versions         with its timestamp         with that of the version that supersedes it
    a table function's rows    with the last instant of their window, as rows of that instant do
                               (:mod:`engine.changes.assigned`)

Cost: what changed takes O(log rows + rows that come and go); for ``[ROWS n WHERE p]`` n rows more; for
``PARTITION BY``, when a row comes, the keys of all rows that are retained. What is alive takes O(rows of the
window).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial

import numpy as np

from engine.changes.assigned import assigned_lives
from engine.changes.ranges import ordinals
from engine.changes.source_interval import SourceInterval
from engine.changes.temporal_relation import Interval, TemporalRelation, always, one_after_another
from engine.changes.transition import FOREVER, NEVER
from engine.changes.windows import Span, begins_of, ends_of, held, merged, moving
from engine.kernels import grouping
from engine.language.query import Scan
from engine.model.batch import Column, Int64Array
from engine.model.source import Schema
from engine.model.types import BIGINT
from engine.operators.gather import ordinals_of, rows_at
from engine.operators.keys import alike, number
from engine.operators.places import Places, timestamps_at
from engine.operators.relation import Relation
from engine.operators.row_windows import last_rows
from engine.operators.scan import ScanAt
from engine.stems.rows import Rows
from engine.stems.segment import SegmentView
from engine.stems.table_stem import TableRows
from engine.windows.assignment import Assignment
from engine.windows.clauses import RowWindow, TimeWindow

Maker = Callable[[bool], TemporalRelation]
"""Rows of a scan, those that come or go alone, or all; others may be among them."""


class ScanHistory:
    """The rows of a scan in the interval."""

    def __init__(self, make: Maker, interval: Interval) -> None:
        self._interval = interval
        self._make = make
        self._changed: TemporalRelation | None = None
        self._alive: TemporalRelation | None = None

    def changed(self) -> TemporalRelation:
        """Rows that come or go."""
        if self._changed is None:
            self._changed = self._make(True).changing(self._interval)
        return self._changed

    def alive(self) -> TemporalRelation:
        """Rows that are there at some instant."""
        if self._alive is None:
            self._alive = self._make(False).there(self._interval)
        return self._alive


def scan_history(scan: Scan, within: SourceInterval) -> ScanHistory:
    """The rows of a scan in the interval of its source."""
    return ScanHistory(_maker(scan, within), within.interval)


def _maker(scan: Scan, within: SourceInterval) -> Maker:
    window, at_source = scan.window, within.at_source
    if not at_source.moves or at_source.at.now_ms is None:
        return partial(_standing, scan, within)
    if isinstance(at_source.at.rows, TableRows):
        return partial(_history if scan.history else _versions, scan, within, at_source.at.rows)
    if scan.assignment is not None:
        return partial(_assigned, scan, scan.assignment, within)
    if isinstance(window, TimeWindow):
        return partial(_of_time, scan, window, within)
    if window.plain:
        return partial(_last, scan, window, within)
    return partial(_last_of_each if window.keys else _last_satisfying, scan, window, within)


def _assigned(scan: Scan, assignment: Assignment, within: SourceInterval, changing: bool) -> TemporalRelation:
    return assigned_lives(scan, assignment, within, changing)


# --- windows of time ------------------------------------------------------------------------------


def _of_time(scan: Scan, window: TimeWindow, within: SourceInterval, changing: bool) -> TemporalRelation:
    at_source, since_ms, until_ms = within.at_source, within.since_ms, within.until_ms
    at, rows = at_source.at, at_source.at.rows
    whole = held(window, since_ms, until_ms)
    spans = moving(window, since_ms, until_ms) if changing else [whole]
    if changing and at_source.retained_to_ms is not None:
        spans = merged([*spans, (whole[0], min(whole[1], at_source.retained_to_ms))])
    places: Places = _places(at, scan, [ordinals(at, span) for span in spans])
    timestamps = timestamps_at(places)
    begins, ends = begins_of(window, timestamps), ends_of(window, timestamps)
    return within.temporal(rows_at(rows.schema, places), begins, ends, within.gone(timestamps))


def _places(at: ScanAt, scan: Scan, spans: Iterable[Span]) -> list[tuple[SegmentView, Int64Array]]:
    """Rows of these ordinals that the scan's predicate accepts, superseded versions of a table too."""
    found: list[tuple[SegmentView, Int64Array]] = []
    for start, stop in spans:
        if start < stop:
            found += ScanAt.matching(at, scan.predicate, start, stop)
    return found


# --- windows of rows ------------------------------------------------------------------------------


def _last(scan: Scan, window: RowWindow, within: SourceInterval, changing: bool) -> TemporalRelation:
    """The last rows of the stream, whatever is retained by time."""
    at, rows = within.at_source.at, within.at_source.at.rows
    was = _end(rows, within.since_ms)
    spans = [(max(rows.base, was - window.rows), at.end)]
    if changing:
        pushed = max(rows.base, at.end - window.rows)
        spans = merged([(spans[0][0], min(pushed, was)), (was, at.end)])
    places = _places(at, scan, spans)
    pushing = ordinals_of(places) + window.rows
    return within.temporal(
        rows_at(rows.schema, places), timestamps_at(places), _timestamps_of(rows, pushing, at.end)
    )


def _last_satisfying(
    scan: Scan, window: RowWindow, within: SourceInterval, changing: bool
) -> TemporalRelation:
    """The last rows that satisfy the window's condition: those of the beginning, then those that came."""
    at, rows = within.at_source.at, within.at_source.at.rows
    first = at.first_retained
    was = max(first, _end(rows, within.since_ms))
    places, _ = last_rows(window, rows.schema, first, was, at.matching)
    return _counted(scan, window, within, [*places, *at.matching(window.filter, was, at.end)])


def _last_of_each(scan: Scan, window: RowWindow, within: SourceInterval, changing: bool) -> TemporalRelation:
    """The last rows of each value of the window's keys."""
    at = within.at_source.at
    return _counted(scan, window, within, at.matching(window.filter, at.first_retained, at.end))


def _counted(scan: Scan, window: RowWindow, within: SourceInterval, places: Places) -> TemporalRelation:
    """Returns the lives of these rows in a window that counts rows: a row leaves when the n-th later row with
    the same keys comes. The scan's predicate is applied afterwards.
    """
    at = within.at_source.at
    relation = rows_at(at.rows.schema, places)
    columns, _ = relation.values_of(window.keys)
    codes, width = number(columns, len(relation))
    order: Int64Array = np.arange(len(relation))
    if window.keys:
        grouping.bring_together(codes, np.empty(width + 1, np.int64), order)
    begins, ends = timestamps_at(places), np.full(len(relation), FOREVER)
    before, after = order[: max(0, len(order) - window.rows)], order[window.rows :]
    alike = codes[before] == codes[after]
    ends[before[alike]] = begins[after[alike]]
    if scan.predicate is not None:
        accepted = ordinals_of(at.satisfying(scan.predicate, places))
        ends[~np.isin(ordinals_of(places), accepted, assume_unique=True)] = NEVER
    return within.temporal(relation, begins, ends, within.gone(begins))


# --- tables ---------------------------------------------------------------------------------------


def _versions(scan: Scan, within: SourceInterval, rows: TableRows, changing: bool) -> TemporalRelation:
    """Each goes with the one that supersedes it, at once where that has the same timestamp."""
    at = within.at_source.at
    was = _end(rows, within.since_ms)
    places: Places
    if changing:
        went = _accepted(at, scan, rows, _gone_since(rows, was, at.end))
        places = [*went, *_places(at, scan, [(was, at.end)])]
    else:
        places = _superseded_from(_places(at, scan, [(rows.base, at.end)]), rows, was)
    places = _superseded_from(places, rows, _retained(at, rows))
    superseded = rows.superseded[ordinals_of(places) - rows.base]
    ends = _timestamps_of(rows, superseded, at.end)
    relation = rows_at(Schema(rows.schema.fields[:-1]), places)
    return within.temporal(relation, timestamps_at(places), ends, _spent(within, rows, superseded))


def _history(scan: Scan, within: SourceInterval, rows: TableRows, changing: bool) -> TemporalRelation:
    """Versions stay until nobody may ask for them any more."""
    at = within.at_source.at
    start = rows.base
    if changing and within.at_source.retained_to_ms is None:
        start = _end(rows, within.since_ms)
    places = _superseded_from(_places(at, scan, [(start, at.end)]), rows, _retained(at, rows))
    superseded = rows.superseded[ordinals_of(places) - rows.base]
    relation = rows_at(rows.schema, places)
    ends = np.full(len(relation), FOREVER)
    return within.temporal(relation, timestamps_at(places), ends, _spent(within, rows, superseded))


def _gone_since(rows: TableRows, was: int, end: int) -> Int64Array:
    """Ordinals, ascending, of rows that were the table's among the first ``was`` and are no more."""
    before = rows.before[was - rows.base : end - rows.base]
    before = before[(before >= 0) & (before < was)]
    return np.sort(before[rows.superseded[before - rows.base] != before])


def _accepted(at: ScanAt, scan: Scan, rows: Rows, ordinals: Int64Array) -> Places:
    """Returns the rows at these ordinals, ascending, that the predicate of the scan accepts."""
    places = []
    for part in rows.parts if len(ordinals) else ():
        low, high = ordinals.searchsorted([part.first, part.end])
        if low < high:
            places.append((part, ordinals[low:high] - part.first))
    return places if scan.predicate is None else at.satisfying(scan.predicate, places)


def _superseded_from(places: Places, rows: TableRows, end: int) -> Places:
    """Without versions that were superseded below this ordinal."""
    if end <= rows.base:
        return places
    found = []
    for part, where in places:
        kept = rows.not_superseded(part.first + where, end) - part.first
        if len(kept):
            found.append((part, kept))
    return found


def _retained(at: ScanAt, rows: TableRows) -> int:
    """What an ordinal below this one superseded is in no answer."""
    retained_ms = at.retained_from_ms
    return rows.base if retained_ms is None else rows.first_at_or_after(retained_ms + 1)


def _spent(within: SourceInterval, rows: TableRows, superseded: Int64Array) -> Int64Array | None:
    """When versions go that nobody may ask for after the interval; None: none does."""
    to_ms = within.at_source.retained_to_ms
    if to_ms is None:
        return None
    return np.where(superseded < rows.first_at_or_after(to_ms + 1), within.end, FOREVER)


# --- sources that stand still ---------------------------------------------------------------------


def _standing(scan: Scan, within: SourceInterval, changing: bool) -> TemporalRelation:
    """The rows as they stand, which retention alone may change."""
    at_source, nothing_before = within.at_source, within.since_ms == NEVER
    if changing and at_source.retained_to_ms is None and not nothing_before:
        return always(within.as_of(NEVER).relation(scan).relation)
    begin = NEVER + 1 if nothing_before else NEVER
    before = at_source.at.relation(scan).relation
    begins, ends = np.full(len(before), begin), np.full(len(before), FOREVER)
    if at_source.retained_to_ms is None or at_source.at.now_ms is None:
        return TemporalRelation(before, begins, ends)
    after = within.as_of(within.end).relation(scan).relation
    if scan.assignment is None:
        ends[~np.isin(before.stored_ordinals(), after.stored_ordinals())] = within.end
        return TemporalRelation(before, begins, ends)
    there, here = _of_windows(before), _of_windows(after)
    codes, others, width = alike(there, here, len(before), len(after))
    stays, was = np.zeros(width, np.bool_), np.zeros(width, np.bool_)
    stays[others], was[codes] = True, True
    ends[~stays[codes]] = within.end
    came = after.take(np.flatnonzero(~was[others]))
    later, forever = np.full(len(came), within.end), np.full(len(came), FOREVER)
    return one_after_another([TemporalRelation(before, begins, ends), TemporalRelation(came, later, forever)])


def _of_windows(relation: Relation) -> list[Column]:
    """What tells the rows of windows apart: where they begin and end, and the row."""
    return [*relation.columns[-2:], Column(BIGINT, relation.stored_ordinals())]


# --- ordinals and instants ------------------------------------------------------------------------


def _end(rows: Rows, since_ms: int) -> int:
    """The ordinal after the last row that was visible."""
    return rows.base if since_ms == NEVER else rows.first_at_or_after(since_ms + 1)


def _timestamps_of(rows: Rows, ordinals: Int64Array, end: int) -> Int64Array:
    """The timestamp of the row at each of these ordinals; FOREVER where it is not below ``end``."""
    found = np.full(len(ordinals), FOREVER)
    known = np.flatnonzero(ordinals < end)
    if not len(known):
        return found
    wanted = ordinals[known]
    first = int(wanted.min())
    stamps = _stamps(rows, first, int(wanted.max()) + 1)
    found[known] = stamps[wanted - first]
    return found


def _stamps(rows: Rows, start: int, stop: int) -> Int64Array:
    """int64[stop - start]: the timestamps of these ordinals."""
    pieces: Sequence[Int64Array] = [
        part.timestamp[first:last] for part, first, last in rows.ranges(start, stop)
    ]
    return pieces[0] if len(pieces) == 1 else np.concatenate(pieces)
