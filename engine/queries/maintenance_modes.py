"""How answers of the queries over a set of sources are maintained: as their options say, or as the planner
chooses where these leave it open, as far as that is affordable (:mod:`engine.queries.allowance`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from engine.language.query import Query
from engine.model.defects import Defects
from engine.model.expressions import Expression
from engine.model.maintenance import Maintenance, QueryOptions
from engine.model.source import SourceName
from engine.queries.admitted_query import AdmittedQuery, needs_matches
from engine.queries.allowance import Allowance
from engine.queries.planner import Planner
from engine.queries.sources_now import SourcesNow
from engine.sources.source import Source
from engine.standing.query import StandingQuery
from engine.stems.factors import Factors

Predicates = tuple[tuple[SourceName, Expression | Factors], ...]
"""The predicates of a query, each with its source."""


class MaintenanceModes:
    """One owner, as the engine."""

    def __init__(
        self, sources: Mapping[SourceName, Source], now: SourcesNow, planner: Planner, defects: Defects
    ) -> None:
        """now: of these sources. planner, defects: the engine's."""
        self._sources = sources
        self._now = now
        self.planner = planner
        self._defects = defects
        self.unaffordable: set[str] = set()
        """Queries whose matches are not kept, since it takes too long to make them."""
        self.paused: set[str] = set()

    def choose(
        self, coming: Sequence[AdmittedQuery], wanted: Sequence[Predicates], allowance: Allowance
    ) -> list[tuple[Maintenance, bool]]:
        """How each is maintained, and whether it is paused. wanted: its predicates."""
        chosen: dict[int, Maintenance] = {}
        modes: list[tuple[Maintenance, bool]] = []
        setting = self._now.setting()
        for one, predicates in zip(coming, wanted, strict=True):
            options, query_id = QueryOptions.of(one.registration.options), one.query_id
            mode = options.maintenance
            if mode == "auto" and one.prefers:
                mode = "lazy"
            elif mode == "auto":
                like: Query = one.like
                mode = "none"
                with self._defects.of(query_id):
                    mode = chosen.get(id(like)) or self.planner.first(like, setting).maintenance
                    chosen[id(like)] = mode
            self.gone(query_id)
            if options.paused:
                self.paused.add(query_id)
            is_free = (
                one.prefers
                or needs_matches(one)
                or all(isinstance(predicate, Factors) for _, predicate in predicates)
            )
            if not (mode == "none" or options.paused or is_free or allowance.takes(one.query, self._sources)):
                mode = "none"
                self.unaffordable.add(query_id)
            modes.append((mode, options.paused))
        return modes

    def gone(self, query_id: str) -> None:
        """A query goes."""
        self.unaffordable.discard(query_id)
        self.paused.discard(query_id)

    def again(
        self, query: StandingQuery, answers_per_s: float, allowance: Allowance, *, followed: bool
    ) -> Maintenance:
        """How a query that leaves it open is maintained from now on."""
        if query.prefers:
            return query.maintenance
        setting = self._now.setting()
        mode = self.planner.again(query, setting, answers_per_s, followed=followed).maintenance
        if mode == query.maintenance or (mode == "eager" and query.put_off is not None):
            return query.maintenance
        if not query.keeps_matches and not allowance.takes(query.query, self._sources):
            return query.maintenance
        self.unaffordable.discard(query.query_id)
        return mode
