"""Views: what readers see, fixed at the end of a step.

A view is immutable and needs no lock: it holds the segments and the queries as they stood. One thing can pass
it by: a query that was removed after the view was taken may lose its slot to another while a reader
is at work. The slot's generation is read again at the end, and such a reader is told that the query is gone.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from engine.changes.operator import operator_over
from engine.changes.output import ChangesOutput, output_of
from engine.changes.transition import NEVER
from engine.joins.joins import JoinViews
from engine.joins.shape import Shape
from engine.joins.view import JoinView
from engine.model.answer import Answer, CatchingUp, Lost, QueryInfo, SourceInfo
from engine.model.approximation import Approximation
from engine.model.batch import Batch
from engine.model.changes import Changes
from engine.model.defects import Defects, internal
from engine.model.limits import Limits
from engine.model.maintenance import QueryOptions, Strategy
from engine.model.period import At, Period, instants_of
from engine.model.source import SourceName, Stream
from engine.model.step import Position
from engine.operators.earlier import require_versions
from engine.operators.pipeline import Evaluated
from engine.overload.reduced_query import measured_as_declared
from engine.sources.source_view import SourceView
from engine.standing.queries import ShownQueries
from engine.standing.query import SetKey, StandingQuery
from engine.stems.rows import Rows
from engine.store.matches.match_counts import HeldMatches, match_counts
from engine.views.estimated_aggregates import with_visited
from engine.views.found_answers import evaluate_found
from engine.views.kept import with_completeness
from engine.views.measured import is_sampled, with_measured_error
from engine.views.period import changes_between, rows_until
from engine.views.recompute import History, answer_afresh, boundary_ms
from engine.views.set_view import SetView
from engine.windows.source_clock import PartitionTime
from tureen.errors import (
    InstantOutOfRange,
    NotSupported,
    QueryPaused,
    TureenError,
    UnknownQuery,
    UnknownSource,
)


@dataclass(frozen=True, slots=True)
class View:
    """All answers at one position."""

    position: Position
    limits: Limits
    _sources: Mapping[str, SourceView]
    _sets: Mapping[SetKey, SetView]
    _queries: ShownQueries
    _strategy_of: Callable[[StandingQuery], Strategy | None]
    """Returns the present strategy of a followed query: it may change at any time, but changes no answer."""
    _approximation: Mapping[str, tuple[Approximation, ...]] = field(default_factory=dict)
    """What of answers is not exact, by query id; exact ones are not in it."""
    _catching_up: Mapping[str, CatchingUp] = field(default_factory=dict)
    """Sources that have not yet what their topics held, as whoever reads those knows."""
    _defects: Defects | None = None
    """Takes the queries whose answers could not be worked out by a defect: those end."""
    apart: frozenset[str] = frozenset()
    """Queries of which what changed up to here is told by a later step."""

    def snapshot(
        self, query_id: str, at: At = None, *, rows_max: int | None = None, first: int | None = None
    ) -> Answer:
        """The answer of a query at NOW, at an earlier instant as known now, or over a period, as
        :func:`engine.views.period.rows_until` has it: ``now_ms`` is its last instant, ``errors`` and
        ``condition_errors`` are those of its first.

        rows_max: refuse a larger answer; the engine's limit where None. first: so many rows of it at most,
        the first; ``rows.total`` has how many there are, and only those that are given count for rows_max
        (but for a period).
        Cost: O(segments + log rows + rows out) where matches are kept as row lists, one pass over the
        window's words where they are dense; joins as :mod:`engine.operators.join` says.
        Raises UnknownQuery, QueryPaused, InstantOutOfRange, LimitExceeded; NotSupported: a period of a query
        with a preference; InternalError: a defect, which ends the query, but where memory was short.
        """
        try:
            query = self._standing(query_id)
            if query.paused:
                raise QueryPaused()
            if isinstance(at, Period):
                found = self._over_period(query, at, rows_max)
                return replace(found, rows=found.rows.first(first))
            return self._snapshot(query, at, rows_max, first)
        except TureenError:
            raise
        except Exception as defect:
            failed = internal(defect)
            if self._defects is not None and not isinstance(defect, MemoryError):
                self._defects.note([query_id], failed)
            raise failed from defect

    def _snapshot(
        self, query: StandingQuery, at_ms: int | None, rows_max: int | None, first: int | None
    ) -> Answer:
        query_id, over = query.query_id, self._sets[query.set_key]
        if at_ms is not None and query.prefers:
            _require_now(at_ms, over.now_ms)
            at_ms = None
        limit = rows_max or self.limits.snapshot_rows_max
        if query_id in over.asked:
            found = self._found_for(query, over, limit)
            return replace(found, rows=found.rows.first(first))
        kept = over.kept.get(query_id) if at_ms is None else None
        if kept is not None and not (kept.is_too_large and first is not None):
            now_ms, result = over.now_ms, kept.answer(limit, first)
            result = with_completeness(result, query.query, over.at)
        else:
            now_ms = over.now_ms if at_ms is None else at_ms
            result = over.evaluated(query, at_ms, limit, first, self.limits).first(first)
            if at_ms is not None:
                require_versions(result.complete_from_ms, at_ms, over.now_ms)
        answer = self._answer(query_id, now_ms, result, over)
        if result.visited:
            return replace(answer, approximation=with_visited(answer.approximation, result.visited))
        given = query.allotted
        declared = given is None and any(is_sampled(tag) for tag in answer.approximation)
        measured = None if given is None else given.measured
        if declared:
            measured = measured_as_declared(query.query)
        if measured is None:
            return answer
        at = query.at(over.at if at_ms is None else over.earlier(query, at_ms, self.limits))
        tags = with_measured_error(answer.approximation, measured, at, limit, self.limits, declared=declared)
        return replace(answer, approximation=tags)

    def _over_period(self, query: StandingQuery, period: Period, rows_max: int | None) -> Answer:
        """Every row that is there at an instant of a period."""
        if query.prefers:
            raise NotSupported("an answer with a preference is of NOW alone")
        over, limit = self._sets[query.set_key], rows_max or self.limits.snapshot_rows_max
        last_ms = _last_ms(period, over.now_ms)
        over.earlier(query, period.from_ms, self.limits, last_ms)
        began = self._snapshot(query, period.from_ms, limit, None)
        rows = rows_until(query, over.sources, began.table, period.from_ms, last_ms, limit, self.limits)
        catching_up = _lacking(self.catching_up(over.sources), last_ms, over)
        complete = began.complete_from_ms is None and not catching_up
        return replace(began, rows=rows, now_ms=last_ms, complete=complete, catching_up=catching_up)

    def _found_for(self, query: StandingQuery, over: SetView, limit: int) -> Answer:
        """The answer of a query with a preference for which nothing is kept."""
        found, tags = over.asked[query.query_id].find(over.at, over.now_ms)
        result = evaluate_found(query.query, query.at(over.at), found, limit, self.limits)
        answer = self._answer(query.query_id, over.now_ms, result, over)
        others = (tag for tag in answer.approximation if tag.kind != "preference")
        tags = (*others, *tags)
        return replace(answer, approximation=with_visited(tags, result.visited) if result.visited else tags)

    def afresh(
        self,
        query_id: str,
        histories: Mapping[SourceName, History],
        *,
        at: At = None,
        rows_max: int | None = None,
    ) -> Answer:
        """Evaluates an answer over history besides the rows that are held (:mod:`engine.views.recompute`).

        Raises UnknownQuery, QueryPaused, InstantOutOfRange, LimitExceeded, BackfillRefused; NotSupported: the
        query has a preference.
        """
        query = self._standing(query_id)
        if query.paused:
            raise QueryPaused()
        if query.prefers:
            raise NotSupported(
                "an answer with a preference is made of what was found so far, not from scratch",
                hint="ask without history, or register the query without WITH PREFERENCE",
            )
        limit = rows_max or self.limits.snapshot_rows_max
        over = self._sets[query.set_key]
        now_ms, result = answer_afresh(query, over.sources, histories, at, limit, self.limits)
        return self._answer(query_id, now_ms, result, over)

    def now_of(self, source: str) -> int | None:
        """NOW of a source; None where it has none yet, or is not there."""
        found = self._sources.get(source)
        return None if found is None else found.now_ms

    def boundary_ms(self, source: str) -> int | None:
        """Where a source's history ends: rows at or after this instant are there. None: it takes none.

        Raises UnknownSource.
        """
        found = self._sources.get(source)
        if found is None:
            raise UnknownSource(source)
        return boundary_ms(found)

    def held_matches(self, source: SourceName) -> HeldMatches | None:
        """How many of the rows that a source holds each predicate accepts; None: it is not there.

        O(segments * slots), and of bits O(words * rows).
        """
        found = self._sources.get(source)
        if found is None:
            return None
        segments = ((part.matches, part.n) for part in found.rows.parts)
        counts, known = match_counts(segments, len(found.generations))
        return HeldMatches(counts, known, found.generations, found.rows.count)

    def now_over(self, key: SetKey) -> int | None:
        """NOW of the queries over a set of sources; None where there is none yet."""
        over = self._sets.get(key)
        return None if over is None else over.now_ms

    def lost(self, query_id: str) -> Lost:
        """Records of a query's sources that gave no row. Raises UnknownQuery."""
        return self._sets[self._standing(query_id).set_key].lost

    def approximation(self, query_id: str) -> tuple[Approximation, ...]:
        """What of a query's answer is not exact; empty: it is exact. Raises UnknownQuery."""
        self._standing(query_id)
        return self._approximation.get(query_id, ())

    def with_catching_up(self, sources: Mapping[str, CatchingUp]) -> View:
        """Returns this view with a note of the sources that have not yet read what their topics held."""
        return self if sources == self._catching_up else replace(self, _catching_up=sources)

    @property
    def is_catching_up(self) -> bool:
        """Whether a source is."""
        return bool(self._catching_up)

    def catching_up(self, sources: Collection[str]) -> tuple[CatchingUp, ...]:
        """Returns those of some sources that have not yet read what their topics held."""
        return tuple(one for name, one in self._catching_up.items() if name in sources)

    def _answer(self, query_id: str, now_ms: int | None, result: Evaluated, over: SetView) -> Answer:
        catching_up = _lacking(self.catching_up(over.sources), now_ms, over)
        return Answer(
            query_id,
            result.rows,
            self.position,
            now_ms,
            complete=result.complete_from_ms is None and not catching_up,
            complete_from_ms=result.complete_from_ms,
            approximation=self._approximation.get(query_id, ()),
            errors=result.errors,
            lost=over.lost,
            catching_up=catching_up,
            condition_errors=over.predicate_errors(self._standing(query_id)) + result.condition_errors,
        )

    def _standing(self, query_id: str) -> StandingQuery:
        query = self._queries.get(query_id)
        if query is None:
            raise UnknownQuery()
        return query

    def changes(self, query_id: str, since_ms: int | None, rows_max: int) -> Changes:
        """What changed in the answer of a query since an earlier instant, up to NOW; None: since the
        beginning. Worked out from the rows that are retained: the changes that were told then, if its sources
        are streams.

        Raises UnknownQuery, QueryPaused; InstantOutOfRange where that is told no more; LimitExceeded.
        """
        query = self._standing(query_id)
        if query.paused:
            raise QueryPaused()
        over = self._sets[query.set_key]
        now_ms = over.now_ms
        if query.prefers:
            hint = (
                "changes of a preference are told as they are found; follow it, or fetch the current answer"
            )
            raise InstantOutOfRange(since_ms or 0, now_ms, now_ms or 0, hint=hint)
        streams = {name: source.stream for name, source in over.sources.items()}
        operator = operator_over(query.query, streams)
        since = NEVER if since_ms is None else since_ms
        if now_ms is None or since > now_ms:
            raise InstantOutOfRange(since, None, now_ms or since, hint="there is no data after it")
        if any(stream.is_table for stream in streams.values()):
            hint = "earlier states of a table are not kept; fetch the current answer"
            raise InstantOutOfRange(since, now_ms, now_ms, hint=hint)
        if not over.tells_since(query, operator, since, self.limits):
            hint = "rows that it needs are no longer retained; fetch the current answer"
            raise InstantOutOfRange(since, now_ms, now_ms, hint=hint)
        return changes_between(query, operator, over.sources, since, now_ms, rows_max, self.limits)

    def stream(self, source: SourceName) -> Stream:
        """A source's declaration."""
        return self._sources[source].stream

    def source(self, source: str) -> SourceView | None:
        """A source as it stands; None: it is not here."""
        return self._sources.get(source)

    def joins_of(self, source: SourceName) -> Iterator[tuple[SetKey, Shape, JoinView]]:
        """The joins that a source is an input of, each with the set of sources that it is kept for."""
        for over, at in self._sets.items():
            if source in over and isinstance(at.joins, JoinViews):
                for shape, join in at.joins.views.items():
                    if source in shape.inputs:
                        yield over, shape, join

    def stored(self, source: SourceName) -> Rows:
        """The rows that a source holds."""
        return self._sources[source].rows

    def waiting(self, source: SourceName) -> Sequence[Batch]:
        """Rows that a source has and that wait for NOW, each batch in order."""
        return self._sources[source].waiting

    def now_ms(self, query_id: str) -> int | None:
        """NOW of a query. Raises UnknownQuery."""
        return self._sets[self._standing(query_id).set_key].now_ms

    def output(self, query_id: str) -> ChangesOutput:
        """What leaves a query when its answer changes. Raises UnknownQuery."""
        query = self._standing(query_id).query
        return output_of(query, {name: self._sources[name].stream for name in query.sources})

    def query(self, query_id: str) -> QueryInfo:
        """One query as lists show it. Raises UnknownQuery."""
        return self._info(self._standing(query_id))

    @property
    def standing(self) -> ShownQueries:
        """All queries by id; the same object until queries come or go."""
        return self._queries

    def queries(self) -> Iterator[QueryInfo]:
        """All queries, in order of registration."""
        return (self._info(query) for query in self._queries.values())

    def _info(self, query: StandingQuery) -> QueryInfo:
        return QueryInfo(
            query.query_id,
            query.registration.sql,
            query.registration.parameters,
            query.sources,
            query.maintenance,
            query.asked_weight,
            query.born,
            self._sets[query.set_key].predicate_errors(query),
            query.paused,
            query.registration.options,
            self._strategy_of(query) or QueryOptions.of(query.registration.options).strategy or "auto",
            self._approximation.get(query.query_id, ()),
            query.tolerance,
            query.put_off,
        )

    def sources(self) -> list[SourceInfo]:
        """All sources, in order of creation."""
        return [
            SourceInfo(
                source.stream.name,
                source.sql,
                source.now_ms,
                source.retained_from_ms,
                source.rows.count,
                sum(map(len, source.waiting)),
                source.lost,
                dict(source.next_offsets),
                source.violations,
                source.forgotten,
            )
            for source in self._sources.values()
        ]

    def partitions_of(self, name: str, lagging: Collection[int] = ()) -> list[PartitionTime]:
        """Where the partitions of a source stand, by number; none where there is no such source. lagging:
        those with unread records.
        """
        source = self._sources.get(SourceName(name))
        return [] if source is None or source.clock is None else source.clock.partitions(lagging)


def _lacking(
    catching_up: tuple[CatchingUp, ...], now_ms: int | None, over: SetView
) -> tuple[CatchingUp, ...]:
    """The sources that have not yet what an answer at an instant may need, of those that catch up."""
    if now_ms is None or over.now_ms is None or now_ms >= over.now_ms:
        return catching_up
    # Rows above NOW are no part of an earlier instant.
    return tuple(one for one in catching_up if not one.is_read)


def _last_ms(period: Period, now_ms: int | None) -> int:
    """The last instant of a period. Raises InstantOutOfRange where it is after NOW."""
    instants = None if now_ms is None else instants_of(period, now_ms)
    if instants is None:
        end_ms = period.from_ms if period.to_ms is None else period.to_ms
        hint = "a period ends at NOW at the latest; leave its end out for that"
        if now_ms is None:
            hint = "the query's sources have no row yet"
        raise InstantOutOfRange(end_ms, None, end_ms if now_ms is None else now_ms, hint=hint)
    return instants[1]


def _require_now(at_ms: int, now_ms: int | None) -> None:
    """Raises InstantOutOfRange unless the instant is NOW: what was found is of the windows at NOW."""
    if at_ms != now_ms:
        hint = "an answer with a preference is of NOW; leave AT out, or ask without WITH PREFERENCE"
        raise InstantOutOfRange(at_ms, now_ms, now_ms or at_ms, hint=hint)
