"""A source as readers see it, and how the sources of a query stand at one instant.

NOW of a query is the least over its streams: what one of them has seen beyond it is not visible to the query.
A table never holds it back: it is seen as of that instant, or as of its own NOW where that is less, and one
whose time is of the other kind (arrival time beside event time) as it stands. A query over tables alone is
answered as of the latest of theirs.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from engine.model.answer import Lost
from engine.model.batch import Batch, Int64Array
from engine.model.source import SourceName, Stream
from engine.operators.scan import ScanAt
from engine.operators.table_scan import scan_earlier, scan_now
from engine.stems.rows import Rows
from engine.windows.source_clock import ClockView


@dataclass(frozen=True, slots=True)
class SourceView:
    """A source at the end of a step. waiting: rows above NOW. generations, errors: of predicates, by slot;
    the former goes on changing. violations: by constraint, rows that broke it. forgotten: by constraint,
    values of which it is not known any more that they were there. clock: of its partitions.
    """

    stream: Stream
    sql: str
    now_ms: int | None
    retained_from_ms: int | None
    rows: Rows
    waiting: Sequence[Batch]
    lost: Lost
    next_offsets: Mapping[int, int]
    generations: Int64Array
    errors: Int64Array
    violations: tuple[int, ...] = ()
    forgotten: tuple[int, ...] = ()
    clock: ClockView | None = None

    @property
    def latest_ms(self) -> int | None:
        """The timestamp of its newest record; None before there is one."""
        return None if self.clock is None else self.clock.latest_ms

    @property
    def behind_ms(self) -> int | None:
        """How far NOW is behind the newest record, whatever time the clock shows; None without a NOW."""
        newest = self.latest_ms
        return None if newest is None or self.now_ms is None else max(0, newest - self.now_ms)


def now_of(sources: Collection[SourceView]) -> int | None:
    """NOW of a query over these; None before it has one."""
    streams = [source.now_ms for source in sources if not source.stream.is_table]
    if not streams:
        return max((source.now_ms for source in sources if source.now_ms is not None), default=None)
    known = [now_ms for now_ms in streams if now_ms is not None]
    return min(known) if len(known) == len(streams) else None


def sources_at(sources: Mapping[SourceName, SourceView], instant_ms: int | None) -> dict[SourceName, ScanAt]:
    """How each stands at NOW of a query or an earlier instant, over the rows that are known now."""
    as_they_are = timeless([source.stream for source in sources.values()])
    return {name: _at(source, instant_ms, name in as_they_are) for name, source in sources.items()}


def timeless(streams: Collection[Stream]) -> frozenset[SourceName]:
    """Tables whose time is of another kind than the streams': they are taken as they are."""
    kinds = {stream.event_time for stream in streams if not stream.is_table}
    return frozenset(s.name for s in streams if s.is_table and kinds and s.event_time not in kinds)


def _at(source: SourceView, instant_ms: int | None, as_it_is: bool) -> ScanAt:
    rows, now_ms, retained_ms = source.rows, source.now_ms, source.retained_from_ms
    if instant_ms is None or now_ms is None:
        return scan_now(rows, None, retained_ms)
    if as_it_is or instant_ms >= now_ms:
        return scan_now(rows, now_ms, retained_ms)
    return scan_earlier(rows, instant_ms, retained_ms)
