"""Views: what readers see, fixed at the end of a step.

A view is immutable and needs no lock: it holds the segments and the queries as they stood. One thing can pass
it by: a query that was removed after the view was taken may lose its slot to another while a reader
is at work. The slot's generation is read again at the end, and such a reader is told that the query is gone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from engine.limits import Limits
from engine.model.answer import Answer, QueryInfo, SourceInfo
from engine.model.batch import Int64Array
from engine.model.source import Stream
from engine.model.step import Position
from engine.operators.earlier import can_answer, first_answer_ms
from engine.operators.pipeline import Evaluated, evaluate
from engine.operators.scan import ScanAt
from engine.results.kept import Kept
from engine.standing import StandingQuery
from engine.stems.data_stem import Rows
from tureen.errors import InstantOutOfRange, QueryPaused, UnknownQuery


@dataclass(frozen=True, slots=True)
class SourceView:
    """A source at the end of a step. generations, errors: of predicates, by slot; the former goes on
    changing. read: answers of eager aggregates that were asked for, each read from its tree once.
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
    read: dict[str, tuple[StandingQuery, Evaluated]] = field(default_factory=dict)


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
        source = self._sources[query.source]
        limit = rows_max or self.limits.snapshot_rows_max
        kept = source.kept.get(query_id) if at_ms is None else None
        at = self._at(query, source, at_ms)
        if kept is not None:
            result = kept.answer(limit)
        else:
            result = self._evaluated(query, source, at, at_ms, limit)
        return Answer(
            query_id,
            result.table,
            self.position,
            at.now_ms,
            complete=result.complete_from_ms is None,
            complete_from_ms=result.complete_from_ms,
            errors=result.errors,
        )

    def _evaluated(
        self, query: StandingQuery, source: SourceView, at: ScanAt, at_ms: int | None, limit: int
    ) -> Evaluated:
        """What the answer's rows are. That of an eager aggregate is read from its tree once in a view."""
        remembers = query.partials is not None and at_ms is None
        if remembers:
            known = source.read.get(query.query_id)
            if known is not None and known[0] is query:
                return known[1]
        result = evaluate(query.query, at, limit, self.limits.intermediate_rows_max, query.partials)
        if any(source.generations[slot] != generation for slot, generation in query.slots):
            raise UnknownQuery()
        if remembers:
            source.read[query.query_id] = query, result
        return result

    def _standing(self, query_id: str) -> StandingQuery:
        query = self._queries.get(query_id)
        if query is None:
            raise UnknownQuery()
        return query

    def _at(self, query: StandingQuery, source: SourceView, at_ms: int | None) -> ScanAt:
        """The stream at NOW, or at an earlier instant, where nothing that the windows need may be gone."""
        now_ms, rows, retained_ms = source.now_ms, source.rows, source.retained_from_ms
        if at_ms is None:
            return ScanAt.now(rows, now_ms, retained_ms).with_slots(query.slot_of)
        if now_ms is None:
            raise InstantOutOfRange(at_ms, None, at_ms, hint="no row of the stream has entered yet")
        if at_ms > now_ms:
            hint = "the data has come no further; without an instant the answer is that of NOW"
            raise InstantOutOfRange(at_ms, None, now_ms, hint=hint)
        at = ScanAt.earlier(rows, at_ms, retained_ms).with_slots(query.slot_of)
        if not can_answer(query.query, at):
            hint = "rows that the window needs are no longer retained"
            raise InstantOutOfRange(at_ms, first_answer_ms(query.query, at, now_ms), now_ms, hint=hint)
        return at

    def query(self, query_id: str) -> QueryInfo:
        """One query as lists show it. Raises UnknownQuery."""
        return self._info(self._standing(query_id))

    @property
    def standing(self) -> Mapping[str, StandingQuery]:
        """All queries by id; the same object until queries come or go."""
        return self._queries

    def modes(self) -> Mapping[str, int]:
        """How many queries are maintained in each mode. O(queries)."""
        return Counter(query.maintenance for query in self._queries.values())

    def queries(self) -> Iterator[QueryInfo]:
        """All queries, in order of registration."""
        return (self._info(query) for query in self._queries.values())

    def _info(self, query: StandingQuery) -> QueryInfo:
        source = query.source
        errors = self._sources[source].errors
        return QueryInfo(
            query.query_id,
            query.registration.sql,
            query.registration.parameters,
            (source,),
            query.maintenance,
            query.registration.weight,
            query.born,
            sum(int(errors[slot]) for slot, _ in query.slots),
            query.paused,
            query.registration.options,
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
