"""Which queries with a preference keep nothing: each answer of theirs is found when it is asked for."""

from __future__ import annotations

from collections.abc import Iterator

from engine.model.approximation import Approximation
from engine.model.defects import Defects
from engine.model.limits import Limits
from engine.model.summary import SummaryName
from engine.promising.group import Member
from engine.queries.on_demand import Asked, FrozenSummary
from engine.queries.preference_tags import tag_on_demand
from engine.queries.promising_groups import GroupFactory


class OnDemandQueries:
    """Those over one set of sources."""

    def __init__(self, factory: GroupFactory, limits: Limits, defects: Defects) -> None:
        self._factory = factory
        self._limits = limits
        self._defects = defects
        self._members: dict[str, Member] = {}

    def put(self, member: Member) -> None:
        """A query comes, or has other options."""
        self._members[member.query_id] = member

    def remove(self, query_id: str) -> None:
        """A query goes, or is none of these any more; others are passed over."""
        self._members.pop(query_id, None)

    def frozen(self) -> dict[str, Asked]:
        """The queries as of now; not those without a summary of theirs. O(summaries that they use, and the
        rows in reach of these).
        """
        summaries_of: dict[SummaryName, FrozenSummary] = {}
        found: dict[str, Asked] = {}
        for query_id, member in self._members.items():
            with self._defects.of(query_id):
                key = self._factory.key_of(member.query)
                summaries = self._factory.summaries(key)
                if summaries is not None:
                    for name, summary in summaries.items():
                        if name not in summaries_of:
                            summaries_of[name] = FrozenSummary.of(summary)
                    found[query_id] = Asked(key, member, summaries_of, self._limits)
        return found

    def tags(self, query_id: str) -> Iterator[Approximation]:
        """What is not exact of an answer of one of these; nothing for others."""
        member = self._members.get(query_id)
        if member is not None:
            yield tag_on_demand(self._factory.key_of(member.query), self._limits.preference_work_max)
