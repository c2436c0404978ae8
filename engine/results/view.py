"""Views: what readers see, fixed at the end of a step.

A view is immutable and needs no lock: it holds the segments and the queries as they stood. One thing can pass
it by: a query that was removed after the view was taken may lose its slot to another while a reader
is at work. The slot's generation is read again at the end, and such a reader is told that the query is gone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from engine.limits import Limits
from engine.model.answer import Answer, QueryInfo, SourceInfo
from engine.model.batch import Int64Array
from engine.model.source import Stream
from engine.model.step import Position
from engine.operators.pipeline import evaluate
from engine.operators.scan import ScanAt
from engine.results.kept import Kept
from engine.standing import StandingQuery
from engine.stems.data_stem import Rows
from engine.windows.clauses import RowWindow
from tureen.errors import InstantOutOfRange, QueryPaused, UnknownQuery


@dataclass(frozen=True, slots=True)
class SourceView:
    """A source at the end of a step. generations, errors: of predicates, by slot; the former goes on
    changing.
    """

    stream: Stream
    sql: str
    now_ms: int | None
    retained_from_ms: int | None
    rows: Rows
    pending: int
    late: int
    rejected: int
    next_offsets: Mapping[int, int]
    generations: Int64Array
    errors: Int64Array
    kept: Mapping[str, Kept]


@dataclass(frozen=True, slots=True)
class View:
    """All answers at one position."""

    position: Position
    limits: Limits
    _sources: Mapping[str, SourceView]
    _queries: Mapping[str, StandingQuery]

    def snapshot(self, query_id: str, *, at_ms: int | None = None, rows_max: int | None = None) -> Answer:
        """The answer of a query at NOW, or at an earlier instant as known now.

        rows_max: refuse a larger answer; the engine's limit where None.
        Cost: O(segments + log rows + rows out) where matches are kept as row lists, one pass over the
        window's words where they are dense.
        Raises UnknownQuery, QueryPaused, InstantOutOfRange, LimitExceeded.
        """
        query = self._standing(query_id)
        if query.paused:
            raise QueryPaused()
        source = self._sources[query.query.source]
        now_ms = source.now_ms if at_ms is None else self._earlier(query, source, at_ms)
        limit = rows_max or self.limits.snapshot_rows_max
        kept = source.kept.get(query_id) if at_ms is None else None
        if kept is not None:
            result = kept.answer(limit)
        else:
            if at_ms is None:
                at = ScanAt.now(source.rows, now_ms, source.retained_from_ms)
            else:
                at = ScanAt.earlier(source.rows, at_ms, source.retained_from_ms)
            result = evaluate(query.query, at.with_slots(query.slot_of), limit)
            if any(source.generations[slot] != generation for slot, generation in query.slots):
                raise UnknownQuery()
        return Answer(
            query_id,
            result.table,
            self.position,
            now_ms,
            complete=result.complete_from_ms is None,
            complete_from_ms=result.complete_from_ms,
            errors=result.errors,
        )

    def _standing(self, query_id: str) -> StandingQuery:
        query = self._queries.get(query_id)
        if query is None:
            raise UnknownQuery()
        return query

    def _earlier(self, query: StandingQuery, source: SourceView, at_ms: int) -> int:
        """Check ``at=`` and return it: nothing the window needs may be gone."""
        now_ms, rows, retained = source.now_ms, source.rows, source.retained_from_ms
        if now_ms is None:
            raise InstantOutOfRange(at_ms, None, at_ms, hint="no row of the stream has entered yet")
        if at_ms > now_ms:
            hint = "the data has come no further; without an instant the answer is that of NOW"
            raise InstantOutOfRange(at_ms, None, now_ms, hint=hint)
        window = query.query.scan.window
        earliest: int | None = None
        if isinstance(window, RowWindow):
            if rows.base > 0 and rows.first_at_or_after(at_ms + 1) - window.rows < rows.base:
                place = rows.base + window.rows - 1
                earliest = rows.timestamp_of(place) if place < rows.end else now_ms
                raise InstantOutOfRange(at_ms, earliest, now_ms, hint="older rows are no longer retained")
        elif retained is not None and rows.first_at_or_after(retained) > 0:
            begin = window.begin
            begin_ms = None if begin is None else begin.at(at_ms)
            if begin_ms is None or begin_ms < retained:
                if begin is not None and begin.relative:
                    earliest = retained - begin.ms
                hint = "rows that the window needs are no longer retained"
                raise InstantOutOfRange(at_ms, earliest, now_ms, hint=hint)
        return at_ms

    def query(self, query_id: str) -> QueryInfo:
        """One query as lists show it. Raises UnknownQuery."""
        return self._info(self._standing(query_id))

    def queries(self) -> Iterator[QueryInfo]:
        """All queries, in order of registration."""
        return (self._info(query) for query in self._queries.values())

    def _info(self, query: StandingQuery) -> QueryInfo:
        source = query.query.source
        errors = self._sources[source].errors
        return QueryInfo(
            query.query_id,
            query.registration.sql,
            (source,),
            query.maintenance,
            query.registration.weight,
            query.born,
            sum(int(errors[slot]) for slot, _ in query.slots),
            query.paused,
        )

    def sources(self) -> list[SourceInfo]:
        """All sources, in order of creation."""
        return [
            SourceInfo(
                source.stream.name,
                source.sql,
                source.now_ms,
                source.retained_from_ms,
                source.rows.end - source.rows.base,
                source.pending,
                source.late,
                source.rejected,
                dict(source.next_offsets),
            )
            for source in self._sources.values()
        ]
