"""When a window of time holds a row: from which instant of NOW on, and until which.

Windows move one way, so the rows that come and go between two instants are those of two ranges of timestamps:

    window at since_ms        [begin ............... last]
    window at until_ms                 [begin ............... last]
    timestamps               go  go  go               come come

Every function is O(1) or a few operations on arrays; spans are half-open.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from engine.changes.transition import FOREVER, NEVER
from engine.model.batch import Int64Array
from engine.windows.clauses import TimeWindow

Span = tuple[int, int]
"""low <= timestamp < high."""


def begins_of(window: TimeWindow, timestamps: Int64Array) -> Int64Array:
    """int64[n]: the first instant of NOW at which the window holds a row; FOREVER where it never does."""
    begins = timestamps
    begin, end, slide_ms = window.begin, window.end, window.slide_ms
    if end.relative and end.ms < 0:
        begins = begins - end.ms
    if slide_ms is not None:
        begins = begins + -begins % slide_ms
    if not end.relative:
        begins = np.where(timestamps <= end.ms, begins, FOREVER)
    if begin is not None and not begin.relative:
        begins = np.where(timestamps >= begin.ms, begins, FOREVER)
    return begins


def ends_of(window: TimeWindow, timestamps: Int64Array) -> Int64Array:
    """int64[n]: the first instant of NOW at which the window holds a row no more; FOREVER where there is
    none, at or before its begin for a row that the window never holds.
    """
    begin, slide_ms = window.begin, window.slide_ms
    if begin is None or not begin.relative:
        return np.full(len(timestamps), FOREVER)
    if slide_ms is None:
        return timestamps + (1 - begin.ms)
    last = timestamps - begin.ms
    return last - last % slide_ms + slide_ms


def held(window: TimeWindow, since_ms: int, until_ms: int) -> Span:
    """Timestamps of rows that the window holds at an instant from since_ms to until_ms."""
    _, last_ms = window.bounds_ms(until_ms)
    return _first_ms(window, since_ms), last_ms + 1


def moving(window: TimeWindow, since_ms: int, until_ms: int) -> list[Span]:
    """Timestamps of rows that come or go at an instant since_ms < t <= until_ms, and perhaps of others;
    disjoint and ascending.
    """
    return merged(going_and_coming(window, since_ms, until_ms))


def going_and_coming(window: TimeWindow, since_ms: int, until_ms: int) -> tuple[Span, Span]:
    """Returns the span of the rows that go and the span of those that come, apart (:func:`moving` unites
    them); either may be empty.
    """
    first_ms, stop_ms = held(window, since_ms, until_ms)
    went = first_ms, min(_first_ms(window, until_ms), stop_ms)
    came = first_ms if since_ms == NEVER else max(first_ms, window.bounds_ms(since_ms)[1] + 1), stop_ms
    return went, came


def _first_ms(window: TimeWindow, now_ms: int) -> int:
    begin = window.begin
    if begin is None:
        return NEVER
    if now_ms == NEVER:
        return NEVER if begin.relative else begin.ms
    first_ms, _ = window.bounds_ms(now_ms)
    assert first_ms is not None
    return first_ms


def merged(spans: Iterable[Span]) -> list[Span]:
    """Unites spans into disjoint, ascending ones that hold the same timestamps; empty spans are dropped."""
    found: list[Span] = []
    for low, high in sorted(spans):
        if low >= high:
            continue
        if found and low <= found[-1][1]:
            found[-1] = found[-1][0], max(found[-1][1], high)
        else:
            found.append((low, high))
    return found


def without(span: Span, spans: Sequence[Span]) -> list[Span]:
    """What is left of a span without these, which are disjoint and ascending."""
    left: list[Span] = []
    low, stop = span
    for first, last in spans:
        if low < min(first, stop):
            left.append((low, min(first, stop)))
        low = max(low, last)
    if low < stop:
        left.append((low, stop))
    return left
