"""The queries over one set of sources as readers see them, fixed at the end of a step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

from engine.dataflow.graph import STREAMS
from engine.model.answer import Lost
from engine.model.approximation import Approximation
from engine.model.changes import Operator
from engine.model.limits import Limits
from engine.model.source import SourceName
from engine.operators.chain import CompositeSource
from engine.operators.earlier import can_answer, require_answer
from engine.operators.pipeline import Evaluated, evaluate
from engine.operators.scan import ConditionErrors, ScanAt
from engine.promising.found import FoundRows
from engine.sources.source_view import SourceView, sources_at
from engine.standing.query import StandingQuery
from engine.views.found_answers import NOTHING_YET, Found, evaluate_found
from engine.views.kept import KeptAnswer
from engine.views.row_counts import RowCounts
from engine.windows.clauses import UNBOUNDED
from tureen.errors import UnknownQuery


class Finding(Protocol):
    """A query with a preference for which nothing is kept."""

    def find(
        self, at: Mapping[SourceName, ScanAt], now_ms: int | None
    ) -> tuple[Found, tuple[Approximation, ...]]:
        """What is found with a grant of its own, and what of it is not exact."""
        ...


@dataclass(frozen=True, slots=True)
class SetView:
    """The queries over a set of sources at the end of a step.

    now_ms: their NOW. at: how the sources stand at it. joins: what is kept of joins. kept: answers that are
    kept. read: answers of eager aggregates that were asked for, each read from its tree once. counts: of a
    lone stream what counts are made from. found: for queries with a preference. asked: those of them for
    which nothing is kept.
    """

    sources: Mapping[SourceName, SourceView]
    now_ms: int | None
    at: Mapping[SourceName, ScanAt]
    joins: CompositeSource | None
    kept: Mapping[str, KeptAnswer]
    counts: RowCounts | None
    found: Mapping[str, Found] = field(default_factory=dict)
    asked: Mapping[str, Finding] = field(default_factory=dict)
    read: dict[str, tuple[StandingQuery, Evaluated]] = field(default_factory=dict)

    def evaluated(
        self, query: StandingQuery, at_ms: int | None, rows_max: int, first: int | None, limits: Limits
    ) -> Evaluated:
        """What the answer's rows are, or more of them than the first. That of an eager aggregate is read from
        its tree once in a view.

        Raises UnknownQuery: the query is gone; InstantOutOfRange, LimitExceeded.
        """
        if query.prefers:
            found = self.found.get(query.query_id, NOTHING_YET)
            return evaluate_found(query.query, query.at(self.at), found, rows_max, limits)
        remembers = query.partials is not None and at_ms is None
        if remembers:
            known = self.read.get(query.query_id)
            if known is not None and known[0] is query:
                return known[1]
        elif self.counts is not None and at_ms is None:
            counted = self.counts.count(query, self.at[query.sources[0]])
            if counted is not None:
                self._require_slots(query)
                self.counts.keep(counted)
                return counted.evaluated()
        wrong = ConditionErrors()
        at = query.at(self.at if at_ms is None else self.earlier(query, at_ms, limits), wrong)
        joins = self.joins if query.keeps_matches else None
        result = evaluate(query.query, at, rows_max, limits, query.partials, joins, STREAMS, first=first)
        if wrong.rows:
            result = replace(result, condition_errors=wrong.rows)
        self._require_slots(query)
        if remembers and result.rows.n == result.rows.total:
            self.read[query.query_id] = query, result
        return result

    def _require_slots(self, query: StandingQuery) -> None:
        """What was read was the query's. Raises UnknownQuery."""
        for name, (slot, generation) in query.places():
            if self.sources[name].generations[slot] != generation:
                raise UnknownQuery()

    def earlier(
        self, query: StandingQuery, at_ms: int, limits: Limits, last_ms: int | None = None
    ) -> Mapping[SourceName, ScanAt]:
        """The sources at an earlier instant, where nothing that the windows need may be gone; nor, with
        ``last_ms``, at any instant up to that one. Raises InstantOutOfRange.
        """

        def stand(instant_ms: int) -> Mapping[SourceName, ScanAt]:
            return query.at(sources_at(self.sources, instant_ms))

        lacking = "rows that the windows need are no longer retained, or were gone before the stream came"
        require_answer(query.query, stand, at_ms, self.now_ms, lacking, limits, STREAMS, last_ms)
        return sources_at(self.sources, at_ms)

    def tells_since(self, query: StandingQuery, operator: Operator, since_ms: int, limits: Limits) -> bool:
        """Whether all rows are there that changes after an instant are made of."""
        told = {  # what never came was not told
            name: replace(source, rows=replace(source.rows, complete_from_ms=None))
            for name, source in self.sources.items()
        }
        at = query.at(sources_at(told, since_ms))
        scan = query.query.scan
        gone_ms = at[scan.source].gone_before_ms
        selects = query.query.selects
        if operator == "istream" and selects and scan.window == UNBOUNDED and scan.assignment is None:
            return gone_ms is None or gone_ms <= since_ms + 1
        return can_answer(query.query, at, limits, STREAMS)

    def predicate_errors(self, query: StandingQuery) -> int:
        """Rows whose predicate ended as an error; of a query with a preference, of those visited for it."""
        if query.prefers:
            found = self.found.get(query.query_id, NOTHING_YET)
            return found.errors if isinstance(found, FoundRows) else 0
        return sum(int(self.sources[name].errors[slot]) for name, (slot, _) in query.places())

    @property
    def lost(self) -> Lost:
        """The records that all sources of the set lost."""
        return Lost.of([source.lost for source in self.sources.values()])
