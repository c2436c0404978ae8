"""Choices that queries leave open, maintenance and strategy, are made again as loads change."""

from __future__ import annotations

from collections.abc import Mapping

from engine.eddy.eddy import Timer
from engine.parts import Parts
from engine.queries.allowance import Allowance
from engine.queries.candidates import ConstraintCandidates
from engine.queries.planner import is_left_open
from engine.standing.query import StandingQuery

REVISED_MAX = 256


class Revisions:
    """One owner, as the engine."""

    def __init__(self, parts: Parts, timer: Timer | None) -> None:
        """timer: as the engine has it."""
        self._parts = parts
        self._timer = timer
        self._left: list[str] = []
        """The queries that are looked at before the others are looked at again."""
        self._candidates = ConstraintCandidates(parts.sources)

    def revise(self, answers: Mapping[str, int], seconds: float) -> int:
        """Choose maintenance and strategy again where queries leave them open; returns how many changed. No
        answer does. Columns by which they join and group are observed from then on.

        answers: how often each query was asked in these seconds; those that were not are left out.
        At most :data:`REVISED_MAX` queries a call, in turn, so that a call is short.
        """
        changed, queries = 0, self._parts.queries
        allowance = Allowance(self._timer)
        for _ in range(min(REVISED_MAX, len(queries))):
            if not self._left:
                self._left = list(queries)
            query = queries.get(self._left.pop())
            if query is None or query.query_id in self._parts.defects:
                continue
            with self._parts.defects.of(query.query_id):
                answers_per_s = answers.get(query.query_id, 0) / seconds
                changed += self._revised(query, answers_per_s, allowance)
        if not self._left:
            self._candidates.all_seen()
        return changed

    def _revised(self, query: StandingQuery, answers_per_s: float, allowance: Allowance) -> int:
        """Choose again for one query; how many choices changed."""
        self._candidates.look_at(query)
        parts, following = self._parts, self._parts.following
        changed = int(following.revise(query))
        if not is_left_open(query):
            return changed
        followed = query.query_id in following
        after = parts.sets.of(query).revise(query, answers_per_s, allowance, followed=followed)
        if after is query:
            return changed
        parts.queries[query.query_id] = after
        following.changed(after)
        parts.outdate(after.sources)
        parts.progress.may_owe = True
        return changed + 1
