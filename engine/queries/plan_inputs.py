"""What a plan is made of, taken between two steps, so that the plan can be made beside them.

To take it costs O(sources + size of the query), whatever rows there are. To make a plan of it takes as long
as rows are looked at, and may be done in any thread: it reads views, and facts that were written down.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from engine.algebra.operators import Stage
from engine.dataflow.cost.estimated_rows import estimated_rows
from engine.dataflow.operator_tree import ExpectedOf
from engine.eddy.statistics import ModuleStatistics
from engine.language.query import Query, Scan
from engine.model.approximation import Expected
from engine.model.expressions import Expression
from engine.model.limits import Limits
from engine.model.maintenance import MaintenanceChoice
from engine.model.source import SourceName, Stream
from engine.model.tolerance import Tolerance
from engine.operators.scan import ScanAt
from engine.overload.precision.of_query import (
    CopiesOf,
    approximate_operators,
    shape_of_query,
    shares_given,
)
from engine.overload.proposals.proposal import Proposal
from engine.overload.proposals.sources_in_text import Catalogue
from engine.queries.plan_preference import PlanPreference
from engine.queries.planner import Planner, Setting
from engine.queries.proposing import proposals_for
from engine.queries.strategist import StrategyInputs
from engine.sources.source_view import SourceView
from engine.standing.query import StandingQuery
from engine.views.found_answers import Found
from tureen.errors import UnknownQuery


@dataclass(frozen=True, slots=True)
class HeldPredicate:
    """A predicate over rows of a source. facts: how its Query SteM serves it; empty where no matches are
    kept. others: how many other queries have the same; None where no matches are kept: it is asked for.
    """

    source: SourceName
    predicate: Expression
    facts: Mapping[str, Any]
    others: int | None


@dataclass(frozen=True, slots=True)
class SourcesAt:
    """The sources of a set as they stood: what is estimated of queries over them. late: the share of rows of
    each that came too late. copies_of: how many of their rows have a value.
    """

    views: Mapping[SourceName, SourceView]
    at: Mapping[SourceName, ScanAt]
    late: Mapping[SourceName, float]
    limits: Limits
    copies_of: CopiesOf

    def rows_of(self, query: Query) -> list[float]:
        """How many rows are estimated of its scan and of each stage."""
        return list(estimated_rows(query, self.at))

    def expected_of(self, query: Query, asked: Query | None) -> ExpectedOf:
        """What the operators of a query may expect to give. asked: what was registered, where that is more.
        To be asked while the query is there.
        """
        told = approximate_operators(query, self.rows_of, self.late, asked, self.copies_of)
        found = {id(of): one for of, one in told}  # equal ones may stand over other inputs

        def expected(of: Scan | Stage) -> Expected | None:
            one = found.get(id(of))
            return None if one is None else one.expected

        return expected

    def expected(self, asked: Query, less: Query) -> Expected:
        """What an answer may expect that is that of ``less``, where another query is asked."""
        shape = shape_of_query(asked, self.rows_of, self.late, copies_of=self.copies_of)
        shares = shares_given(asked, less)
        return Expected() if shares is None else shape.expected(shares)[-1].expected

    def proposals(
        self,
        query: Query,
        sql: str,
        catalogue: Catalogue,
        bind: Callable[[str], Query],
        tolerance: Tolerance,
    ) -> tuple[Proposal, ...]:
        """Other texts that use less, for a query that ``sql`` means. tolerance: what it allows."""
        return proposals_for(query, sql, catalogue, self.views, self.at, self.limits, bind, tolerance)


@dataclass(frozen=True, slots=True)
class PlanInputs:
    """Holds what the plan of one query is made of, whether it is registered or not."""

    query: Query
    # None: the query is not registered.
    standing: StandingQuery | None
    # The streams and tables that it reads.
    streams: Mapping[SourceName, Stream]
    sources: SourcesAt
    setting: Setting
    planner: Planner
    # Whether no matches are kept since it takes too long to make them, as in MaintenanceChoice.
    unaffordable: bool
    predicates: tuple[HeldPredicate, ...]
    # The modules that its rows go through, which other queries share.
    modules: Mapping[str, tuple[ModuleStatistics, ...]]
    # Streams that have no NOW yet.
    waits_for: tuple[SourceName, ...]
    # How many queries read each source.
    readers: Mapping[SourceName, int]
    # None: the query has no preference.
    preference: PlanPreference | None
    # What is found so far for a query with a preference.
    found: Found
    # Whether it emits its changes, or somebody follows it.
    followed: bool
    # What the way of its changes is chosen by.
    strategy: StrategyInputs

    @property
    def asked(self) -> Query | None:
        """What was registered, where the query is given less."""
        return None if self.standing is None or self.standing.allotted is None else self.standing.asked

    def choice(self) -> MaintenanceChoice:
        """How its answer is maintained, or would be."""
        if self.standing is None:
            return self.planner.first(self.query, self.setting)
        return self.planner.as_it_is(self.standing, self.setting, unaffordable=self.unaffordable)

    def require_slots(self) -> None:
        """What was read of kept matches was the query's. Raises UnknownQuery: it has gone meanwhile."""
        for name, (slot, generation) in () if self.standing is None else self.standing.places():
            if self.sources.views[name].generations[slot] != generation:
                raise UnknownQuery()
