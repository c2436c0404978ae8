"""At which instant each source of a query is seen: NOW of a query, and what an earlier instant means.

*   NOW of a query is the least NOW over its streams; while one of them has none, it has none, and all that it
    reads is empty.
*   A table never holds it back. One whose time is of the streams' kind is seen at NOW of the query, or at its
    own if that is earlier; one of the other kind at its own, whatever instant is asked for.
*   Of tables alone NOW is the greatest of theirs, and each is seen at its own, or at the instant asked for if
    that is earlier.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from engine.language.query import Query
from engine.reference.rows import Source


@dataclass(frozen=True, slots=True)
class Seen:
    """A source and the instant at which it is seen; None: it has no rows yet."""

    source: Source
    instant: int | None


At = Mapping[str, Seen]


def now_of(query: Query, sources: Mapping[str, Source]) -> int | None:
    """NOW of a query."""
    read = [sources[name] for name in query.sources]
    nows = [source.now for source in read if not source.stream.is_table]
    if nows:
        known = [now for now in nows if now is not None]
        return min(known) if len(known) == len(nows) else None
    return max((source.now for source in read if source.now is not None), default=None)


def seen_at(query: Query, sources: Mapping[str, Source], instant: int | None) -> At:
    """Every source of a query at an instant, at or before its NOW; None: before it has one."""
    read = {name: sources[name] for name in query.sources}
    kinds = {source.stream.event_time for source in read.values() if not source.stream.is_table}
    return {name: Seen(source, _instant(source, kinds, instant)) for name, source in read.items()}


def _instant(source: Source, kinds: set[bool], instant: int | None) -> int | None:
    if instant is None or source.now is None:
        return None
    if not source.stream.is_table:
        return instant
    if kinds and source.stream.event_time not in kinds:
        return source.now
    return min(instant, source.now)
