"""Which ordinals a window holds at an instant, and whether all of them are still there."""

from __future__ import annotations

from dataclasses import dataclass

from engine.stems.data_stem import Rows
from engine.windows.clauses import RowWindow, Window


@dataclass(frozen=True, slots=True)
class WindowRange:
    """start <= ordinal < stop. ``complete_from_ms``: None when complete (as in an Answer)."""

    start: int
    stop: int
    complete: bool = True
    complete_from_ms: int | None = None


def locate(window: Window, rows: Rows, now_ms: int, retained_from_ms: int | None, end: int) -> WindowRange:
    """The rows of a window at NOW over the first ``end`` ordinals. O(log rows)."""
    if isinstance(window, RowWindow):
        wanted = max(rows.origin, end - window.rows)
        start = max(wanted, rows.base)
        if wanted >= rows.base:
            return WindowRange(start, max(start, end))
        oldest = rows.timestamp_of(rows.base) if rows.base < rows.end else now_ms + 1
        return WindowRange(start, max(start, end), complete=False, complete_from_ms=oldest)
    begin_ms, last_ms = window.bounds_ms(now_ms)
    stop = min(end, rows.first_at_or_after(last_ms + 1))
    if retained_from_ms is None:
        start = rows.base if begin_ms is None else rows.first_at_or_after(begin_ms)
        return WindowRange(start, max(start, stop))
    reaches_back = begin_ms is None or begin_ms < retained_from_ms
    floor = rows.first_at_or_after(retained_from_ms)
    start = floor if reaches_back or begin_ms is None else rows.first_at_or_after(begin_ms)
    if reaches_back and floor > rows.origin:
        return WindowRange(start, max(start, stop), complete=False, complete_from_ms=retained_from_ms)
    return WindowRange(start, max(start, stop))
