"""Ranges of ordinals: which rows of a source may come into a scan in the interval, and which may leave it.

Every row that does is in one of them; a row of a range need not. O(log rows).
"""

from __future__ import annotations

from engine.changes.transition import NEVER, SourceTransition, Transition
from engine.changes.windows import Span, going_and_coming
from engine.language.query import Scan
from engine.operators.scan import ScanAt
from engine.stems.rows import Rows
from engine.stems.table_stem import TableRows
from engine.windows.assignment import Hop
from engine.windows.clauses import RowWindow, TimeWindow

Range = tuple[int, int]

SUPERSEDED_MAX = 64
"""The rows of more that are superseded are not told one by one."""


def ordinals(at: ScanAt, span: Span) -> Range:
    """The visible rows with these timestamps that are retained at the beginning of the interval."""
    low, high = span
    if at.retained_from_ms is not None:
        low = max(low, at.retained_from_ms)
    start = at.rows.base if low == NEVER else at.rows.first_at_or_after(low)
    return start, min(at.end, at.rows.first_at_or_after(high))


def moved_ranges(
    window: TimeWindow, transition: Transition, at_source: SourceTransition
) -> tuple[Range, Range]:
    """Returns the ordinals of the rows that leave a plain window over a stream, and of those that enter."""
    went, came = going_and_coming(window, transition.since_ms, transition.until_ms)
    if at_source.retained_to_ms is not None:
        went = went[0], max(went[1], min(at_source.retained_to_ms, came[1]))
    return ordinals(at_source.at, went), ordinals(at_source.at, came)


def affected_ranges(scan: Scan, transition: Transition, at_source: SourceTransition) -> list[Range] | None:
    """Returns the ranges of the rows that may enter or leave a scan of any kind: its rows change only if its
    predicate accepts one of them. None: the ranges are not known.
    """
    if transition.since_ms == NEVER:
        return None
    rows = at_source.at.rows
    if isinstance(rows, TableRows) and not scan.history:
        return _versions(transition, at_source, rows)
    taken = (
        []
        if at_source.retained_to_ms is None
        else [ordinals(at_source.at, (NEVER, at_source.retained_to_ms))]
    )
    if not at_source.moves:
        return taken
    came = rows.first_at_or_after(transition.since_ms + 1), at_source.at.end
    window = scan.window
    if scan.history:
        return None if came[0] < came[1] else taken
    if isinstance(window, RowWindow):
        if scan.assignment is not None or not window.plain:
            return None
        pushed_out = max(rows.base, came[0] - window.rows), max(rows.base, came[1] - window.rows)
        return [came, pushed_out, *taken]
    if scan.assignment is None:
        return list(moved_ranges(window, transition, at_source))
    if not isinstance(scan.assignment, Hop):
        return None
    return [*_closed(scan.assignment, window, transition, rows), *taken]


def _versions(transition: Transition, at_source: SourceTransition, rows: TableRows) -> list[Range] | None:
    """Versions that come, and those that they supersede, or that retention takes as others, not seen yet, do
    so.
    """
    end = at_source.at.end
    start = rows.first_at_or_after(transition.since_ms + 1) if at_source.moves else end
    stop = end
    if at_source.retained_to_ms is not None:
        stop = max(end, rows.first_at_or_after(at_source.retained_to_ms + 1))
    before = rows.before[start - rows.base : stop - rows.base]
    before = before[before >= 0]
    if len(before) > SUPERSEDED_MAX:
        return None
    return [(start, end), *((gone, gone + 1) for gone in before.tolist())]


def _closed(hop: Hop, window: TimeWindow, transition: Transition, rows: Rows) -> list[Range]:
    """Rows of table-function windows that close in the interval, or that the clause lets go of."""
    begin_before_ms, last_before_ms = window.bounds_ms(transition.since_ms)
    begin_ms, last_ms = window.bounds_ms(transition.until_ms)
    found = [_within(hop, last_before_ms + 1, last_ms, rows)]
    if begin_ms is not None and begin_before_ms is not None:
        found.append(_within(hop, begin_before_ms, begin_ms - 1, rows))
    return found


def _within(hop: Hop, first_ms: int, last_ms: int, rows: Rows) -> Range:
    """Rows of the windows whose last instants lie between these."""
    first_end_ms, last_end_ms = hop.first_end_after(first_ms), hop.last_end_at(last_ms)
    if first_end_ms > last_end_ms:
        return (rows.base, rows.base)
    return rows.first_at_or_after(first_end_ms - hop.size_ms), rows.first_at_or_after(last_end_ms)
