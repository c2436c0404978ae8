"""Queries with a preference for which nothing is kept: each answer spends a grant of its own when it is asked
for, over the rows and the summaries of the view that it is of.

The grant is ``preference_work_max`` units, so an answer of a view is the same whenever it is asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from engine.model.approximation import Approximation
from engine.model.limits import Limits
from engine.model.source import SourceName
from engine.model.summary import SummaryDefinition, SummaryName
from engine.model.types import Type
from engine.operators.scan import ScanAt
from engine.promising.group import GroupKey, Member
from engine.queries.preference_tags import GroupTags
from engine.queries.promising_groups import new_group
from engine.summaries.state import SummaryState
from engine.summaries.summary import Summary
from engine.views.found_answers import Found


@dataclass(frozen=True, slots=True)
class FrozenSummary:
    """A summary as it stood at the end of a step. type_: of its attribute."""

    definition: SummaryDefinition
    type_: Type
    state: SummaryState

    @classmethod
    def of(cls, summary: Summary) -> FrozenSummary:
        """O(its counters, and rows in reach)."""
        return cls(summary.definition, summary.type, summary.state())

    def thawed(self) -> Summary:
        """One that is nobody else's."""
        return Summary.restored(self.definition, self.type_, self.state)


@dataclass(frozen=True, slots=True)
class Asked:
    """One such query, as of a step; any thread may ask."""

    key: GroupKey
    member: Member
    summaries: Mapping[SummaryName, FrozenSummary]
    limits: Limits

    def find(
        self, at: Mapping[SourceName, ScanAt], now_ms: int | None
    ) -> tuple[Found, tuple[Approximation, ...]]:
        """What is found with the grant, and what of it is not exact. O(rows of windows, and the grant)."""
        summaries = {one.summary: self.summaries[one.summary].thawed() for one in self.key.priorities}
        group = new_group(self.key, summaries, self.limits)
        group.add(self.member, at)
        group.arrive(at, now_ms)
        group.spend(self.limits.preference_work_max, at)
        found = group.found(self.member.query_id)
        if now_ms is None:
            return found, ()
        return found, GroupTags(self.key, group).of(self.member, lambda: found)
