"""Earlier instants: whether a query can be answered there, and the first instant after it where it can."""

from __future__ import annotations

from engine.language.query import Query
from engine.operators.scan import ScanAt


def can_answer(query: Query, at: ScanAt) -> bool:
    """Whether nothing that the query's windows reach back to is gone."""
    return all(at.is_complete(scan) for scan in query.scans())


def first_answer_ms(query: Query, at: ScanAt, now_ms: int) -> int | None:
    """The first instant after ``at``, where the query cannot be answered, at which it can; None: not up to
    NOW.

    Windows reach back less far the later they stand, so bisection finds it: as many looks as the time from
    the first row that is there to NOW has bits.
    """
    assert at.now_ms is not None
    low, high = max(at.now_ms, _nothing_before_ms(at, now_ms)), now_ms

    def possible(instant_ms: int) -> bool:
        earlier = ScanAt.earlier(at.rows, instant_ms, at.retained_from_ms)
        return can_answer(query, earlier.with_slots(at.slot_of))

    if not possible(high):
        return None
    while high - low > 1:
        middle = (low + high) // 2
        if possible(middle):
            high = middle
        else:
            low = middle
    return high


def _nothing_before_ms(at: ScanAt, now_ms: int) -> int:
    """An instant at which nothing of what is there is visible or retained yet."""
    rows = at.rows
    first_ms = rows.timestamp_of(rows.base) if rows.base < rows.end else now_ms
    return (first_ms if at.retained_from_ms is None else min(first_ms, at.retained_from_ms)) - 1
