"""Earlier instants: whether a query can be answered there, and if not, from which instant on."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from engine.language.query import Query
from engine.model.limits import DEFAULT_LIMITS, Limits
from engine.model.source import SourceName
from engine.operators.pipeline import complete_from_of
from engine.operators.scan import ScanAt
from engine.operators.stream_source import StreamSource
from tureen.errors import InstantOutOfRange


def can_answer(
    query: Query,
    at: Mapping[SourceName, ScanAt],
    limits: Limits = DEFAULT_LIMITS,
    streams: StreamSource | None = None,
    last_ms: int | None = None,
) -> bool:
    """Whether nothing that the query's windows reach back to is gone from any of its sources. limits,
    streams: as of an evaluation, which a query with streams of subqueries takes. last_ms: nor does at any
    instant up to this one; None: at that where the sources stand alone. Raises LimitExceeded.
    """
    if not all(at[scan.source].is_complete(scan, last_ms) for scan in query.scans()):
        return False
    if streams is None or not query.has_streams:
        return True
    return complete_from_of(query, at, limits, streams) is None


def require_answer(
    query: Query,
    standing_at: Callable[[int], Mapping[SourceName, ScanAt]],
    at_ms: int,
    now_ms: int | None,
    lacking: str,
    limits: Limits = DEFAULT_LIMITS,
    streams: StreamSource | None = None,
    last_ms: int | None = None,
) -> None:
    """Raises InstantOutOfRange where a query cannot be answered at an instant. now_ms: NOW of the query.

    lacking: why, where rows are gone. last_ms: at one of those from the instant up to this one; None: alone.
    """
    if now_ms is None:
        raise InstantOutOfRange(at_ms, None, at_ms, hint="the query's sources have no row yet")
    if at_ms > now_ms:
        hint = "there is no data after it; without an instant the answer is that of NOW"
        raise InstantOutOfRange(at_ms, None, now_ms, hint=hint)
    if not can_answer(query, standing_at(at_ms), limits, streams, last_ms):
        first_ms = first_answer_ms(
            query, standing_at, at_ms, now_ms if last_ms is None else last_ms, limits, streams, last_ms
        )
        raise InstantOutOfRange(at_ms, first_ms, now_ms, hint=lacking)


def require_versions(complete_from_ms: int | None, at_ms: int, now_ms: int | None) -> None:
    """Raises InstantOutOfRange where an answer at an earlier instant turned out to lack versions."""
    if complete_from_ms is not None:
        assert now_ms is not None
        hint = "versions of a table that rows are joined with are no longer retained"
        raise InstantOutOfRange(at_ms, None, now_ms, hint=hint)


def first_answer_ms(
    query: Query,
    standing_at: Callable[[int], Mapping[SourceName, ScanAt]],
    at_ms: int,
    now_ms: int,
    limits: Limits = DEFAULT_LIMITS,
    streams: StreamSource | None = None,
    last_ms: int | None = None,
) -> int | None:
    """The first instant after ``at_ms``, where the query cannot be answered, at which it can, and up to
    ``last_ms`` as for :func:`can_answer`; None: not up to NOW.

    standing_at: how the query's sources stand at an instant. Windows reach back less far the later they
    stand, so bisection finds it: as many looks as the time from the first row that is there to NOW has bits.
    """
    low, high = max(at_ms, nothing_before_ms(standing_at(at_ms), now_ms)), now_ms
    if not can_answer(query, standing_at(high), limits, streams, last_ms):
        return None
    while high - low > 1:
        middle = (low + high) // 2
        if can_answer(query, standing_at(middle), limits, streams, last_ms):
            high = middle
        else:
            low = middle
    return high


def nothing_before_ms(at: Mapping[SourceName, ScanAt], now_ms: int) -> int:
    """An instant at which nothing of what is there is visible or retained yet."""
    known = [now_ms]
    for source in at.values():
        rows = source.rows
        if rows.base < rows.end:
            known.append(rows.timestamp_of(rows.base))
        if source.retained_from_ms is not None:
            known.append(source.retained_from_ms)
    return min(known) - 1
