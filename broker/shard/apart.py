"""Followed queries whose state takes long to be made are set apart when a shard comes back, and rejoin.

The state that changes come from is not stored. The engine says for which queries a step takes too long to
make it (:meth:`engine.preparing.Preparing.of_followed`); these are set apart before anything else is done,
and threads make it beside (:mod:`engine.queries.apart`). Steps go on meanwhile. Once it is made, a step has
the queries rejoin, which tells what changed since, with the positions of the steps in which it did. What
takes too long is refused, and its queries go. Both are steps of the journal: where the worker ends in
between, the next owner goes on with the same queries. Used by the shard's thread alone; ``progress`` may be
read by others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from broker.shard.beside import Beside, Run
from broker.shard.outbox import Outgoing
from broker.shard.steps import Steps
from engine.model.step import Rejoin, SetApart
from engine.preparing import NEARLY
from engine.queries.apart import TOGETHER_MAX, Apart
from tureen.errors import TureenError


class QueriesApart:
    """Those of one shard."""

    def __init__(self, beside: Beside) -> None:
        self._beside = beside
        self._runs: dict[Apart, Run] = {}
        self._known = 0, 0
        """How many groups, and queries, are in ``progress``."""
        self.progress: Mapping[str, float] = {}
        """By id of a query that is set apart: what share of its state is made. Never changed in place."""

    def set_apart(self, steps: Steps) -> None:
        """Set apart those that are to be, besides those that were when the shard went. Raises Fenced,
        Interrupted.
        """
        outgoing = Outgoing()
        names = steps.engine.preparing.of_followed()
        for first in range(0, len(names), TOGETHER_MAX):
            steps.make(SetApart(names[first : first + TOGETHER_MAX]), outgoing)
        if outgoing.last is not None:
            steps.commit(outgoing)
        self._tell(steps.engine.apart())

    def go_on(self, steps: Steps, outgoing: Outgoing) -> None:
        """Begin to make what is not begun, have those rejoin for which it is made, and let those go for which
        it takes too long. O(groups that are set apart). Raises Interrupted.
        """
        groups = steps.engine.apart()
        if not groups and not self.progress:
            return
        late: dict[str, TureenError] = {}
        for group in groups:
            run = self._runs.get(group)
            if run is None:
                if self._beside.has_room:
                    self._runs[group] = self._beside.begin(group.run)
                    self._known = 0, 0
            elif run.is_over:
                if not steps.is_full:
                    steps.make(Rejoin(tuple(sorted(group.query_ids))), outgoing)
            elif self._beside.is_late(run):
                late |= {name: self._beside.refusal(name) for name in group.query_ids}
                group.refuse(next(iter(late.values())))
        steps.give_up(late, outgoing)
        left = steps.engine.apart()
        if self._known != _count(left):
            self._tell(left)
        self._beside.break_off()

    def _tell(self, groups: Sequence[Apart]) -> None:
        """Those that are left; threads that make something for others end soon."""
        self._known, there = _count(groups), set(groups)
        for group in [one for one in self._runs if one not in there]:
            self._beside.give_up(self._runs.pop(group))
        self.progress = {
            name: NEARLY if group in self._runs else 0.0 for group in groups for name in group.query_ids
        }

    def is_apart(self, name: str) -> bool:
        """Whether a query can neither be changed nor removed for now."""
        return name in self.progress


def _count(groups: Sequence[Apart]) -> tuple[int, int]:
    return len(groups), sum(len(group.query_ids) for group in groups)
