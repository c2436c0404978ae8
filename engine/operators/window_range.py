"""Which ordinals a window holds at an instant, and whether all of them are still there."""

from __future__ import annotations

from dataclasses import dataclass

from engine.stems.rows import Rows
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
        whole_ms = rows.complete_from_ms
        if wanted < rows.base:
            oldest = rows.timestamp_of(rows.base) if rows.base < rows.end else now_ms + 1
            oldest = oldest if whole_ms is None else max(oldest, whole_ms)
            return WindowRange(start, max(start, end), complete=False, complete_from_ms=oldest)
        if whole_ms is None or (end - window.rows >= rows.base and rows.timestamp_of(start) >= whole_ms):
            return WindowRange(start, max(start, end))
        return WindowRange(start, max(start, end), complete=False, complete_from_ms=whole_ms)
    begin_ms, last_ms = window.bounds_ms(now_ms)
    stop = end if last_ms >= now_ms else min(end, rows.first_at_or_after(last_ms + 1))
    first_ms = begin_ms
    if retained_from_ms is not None and (begin_ms is None or begin_ms < retained_from_ms):
        first_ms = retained_from_ms
    start = rows.base if first_ms is None else rows.first_at_or_after(first_ms)
    gone_ms = rows.gone_before_ms(retained_from_ms)
    if gone_ms is not None and (begin_ms is None or begin_ms < gone_ms):
        return WindowRange(start, max(start, stop), complete=False, complete_from_ms=gone_ms)
    return WindowRange(start, max(start, stop))
