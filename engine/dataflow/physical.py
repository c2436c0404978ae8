"""From what a plan does to how its operators keep rows, by a policy.

Below the operators that need exits told when they happen, exits are foretold with the rows, as far down as
windows of time reach; there a node tells them. What keeps no rows besides the windows is the same in all
strategies.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from engine.dataflow.plan import Combined, Exits, Joined, Keeping, Own, Plan, Shared, Step, with_ids
from engine.dataflow.policy import TOLD, Edge, Policy
from engine.language.query import Aggregate, Filter, Project, Scan
from engine.windows.clauses import TimeWindow


def physical(plan: Plan, policy: Policy) -> Plan:
    """A plan that does the same and tells exits when they happen."""
    return plan if policy == TOLD else _Physical(policy).told(plan)


@dataclass(frozen=True, slots=True)
class _Foretold:
    """An edge. span: from entry to exit, in halves of a ms, at most. in_order: rows leave as they came.
    is_early: some leave before their time. kept: some node below keeps rows.
    """

    span: int
    in_order: bool
    is_early: bool = False
    kept: bool = True


@dataclass(frozen=True, slots=True)
class _Physical:
    policy: Policy

    def told(self, plan: Plan) -> Plan:
        """Exits are told when they happen."""
        made, foretold = self._made(plan)
        if foretold is None:
            return made
        if not foretold.kept:
            return plan
        return _telling(made) or Exits(made, self._edge(foretold))

    def _edge(self, foretold: _Foretold) -> Edge:
        return Edge(self.policy, foretold.span, foretold.in_order, foretold.is_early)

    def _kept(self, foretold: _Foretold | None) -> Edge | None:
        return None if foretold is None else self._edge(foretold)

    def _made(self, plan: Plan) -> tuple[Plan, _Foretold | None]:
        """The plan, and of what kind its edge is where exits are foretold."""
        match plan:
            case Shared(kind):
                span = _span(kind) if self.policy.foretells else None
                if span is None:
                    return plan, None
                return replace(plan, foretold=True), _Foretold(span, in_order=True, kept=False)
            case Own() | Exits():
                return plan, None
            case Step(Project() | Filter(), below=below):
                made, foretold = self._made(below)
                return replace(plan, below=made), foretold
            case Step(Aggregate(_, ()), below=below):
                return self._distinct(plan, below)
            case Step(below=below):
                return replace(plan, below=self.told(below)), None
            case Joined():
                return self._joined(plan)
            case Combined(left=left, right=right):
                return replace(plan, left=self.told(left), right=self.told(right)), None

    def _distinct(self, plan: Step, below: Plan) -> tuple[Plan, _Foretold | None]:
        made, foretold = self._made(below)
        if foretold is None or foretold.is_early:
            identified = with_ids(below) if self.policy.strategy == "nt" else None
            if identified is None:
                return replace(plan, below=self.told(below)), None
            return replace(plan, below=self.told(identified), keeping=Keeping(None, latest=False)), None
        given = _Foretold(foretold.span, in_order=False)
        latest = self.policy.strategy == "upa"
        edge = self._edge(given if latest else foretold)
        return replace(plan, below=made, keeping=Keeping(edge, latest, foretold=True)), given

    def _joined(self, plan: Joined) -> tuple[Plan, _Foretold | None]:
        matching = plan.matching
        sides = [self._made(plan.left), self._made(plan.right)]
        foretold = [each for _, each in sides if each is not None]
        is_early = len(foretold) < 2 or any(each.is_early for each in foretold)
        is_inner = matching.kind == "inner" and matching.latest is None
        if not (foretold and is_inner) or (is_early and self.policy.structure == "negative"):
            return replace(plan, left=self.told(plan.left), right=self.told(plan.right)), None
        (left, one), (right, other) = sides
        kept = self._kept(one), self._kept(other)
        span = min(each.span for each in foretold)
        return replace(plan, left=left, right=right, kept=kept), _Foretold(span, False, is_early)


def _telling(plan: Plan) -> Plan | None:
    """The same with exits told by its DISTINCT, which knows them; None where it has none to do so."""
    match plan:
        case Step(Project() | Filter(), below=below):
            under = _telling(below)
            return None if under is None else replace(plan, below=under)
        case Step(keeping=Keeping() as keeping):
            return replace(plan, keeping=replace(keeping, foretold=False))
    return None


def _span(scan: Scan) -> int | None:
    """For how many halves of a ms at most a window holds a row; None where that is not known when it enters,
    or has no end.
    """
    window = scan.window
    if scan.assignment is not None or not isinstance(window, TimeWindow):
        return None
    begin = window.begin
    if begin is None or not begin.relative:
        return None
    return 2 * (1 - begin.ms + (window.slide_ms or 0))
