"""From what a plan does to how its operators keep rows, by a policy.

Below the operators that need exits told when they happen, exits are known with the rows, as far down as
windows of time reach; there a node tells them. What keeps no rows besides the windows is the same in all
strategies.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass, replace

from engine.dataflow.early_plan import leaving_early
from engine.dataflow.one_store import in_one_store
from engine.dataflow.operators.group import GroupSpec
from engine.dataflow.operators.join import Matching
from engine.dataflow.operators.latest import LatestSpec
from engine.dataflow.operators.ranked import RankedSpec
from engine.dataflow.operators.rows import FilterSpec, ProjectSpec
from engine.dataflow.operators.set_operations import Compared, Union
from engine.dataflow.operators.set_rows import LeftRows
from engine.dataflow.operators.unnest import UnnestSpec
from engine.dataflow.plan import (
    Combined,
    Exits,
    Joined,
    Keeping,
    OpaqueLeaf,
    OperatorOver,
    Plan,
    ScanLeaf,
    columns_given,
    distinct,
    plan_of,
    whole_plan_of,
    with_ids,
)
from engine.dataflow.policy import TOLD, KeptEdge, Policy
from engine.dataflow.release_plan import releasing
from engine.language.query import Query, Scan
from engine.model.changes import Operator
from engine.model.source import SourceName, Stream
from engine.windows.clauses import TimeWindow


def physical(plan: Plan, policy: Policy, *, whole: bool = False) -> Plan:
    """A plan that does the same and tells exits when they happen. whole: ids of its rows are read."""
    if policy.one_store:
        return in_one_store(plan, has_ids=whole)
    return plan if policy == TOLD else _Physical(policy).told(plan)


@dataclass(frozen=True, slots=True)
class _KnownExits:
    """An edge. span: from entry to exit, in halves of a ms, at most. in_order: rows leave as they came.
    is_early: some leave before their time. kept: some node below keeps rows.
    """

    span: int
    in_order: bool
    is_early: bool = False
    kept: bool = True


_Made = tuple[Plan, _KnownExits | None]


@dataclass(frozen=True, slots=True)
class _Physical:
    policy: Policy

    def told(self, plan: Plan) -> Plan:
        """Exits are told when they happen."""
        made, known = self._made(plan)
        if known is None:
            return made
        if not known.kept:
            return plan
        return _telling(made) or Exits(made, self._edge(known))

    def _edge(self, known: _KnownExits) -> KeptEdge:
        return KeptEdge(self.policy, known.span, known.in_order, known.is_early)

    def _kept(self, known: _KnownExits | None) -> KeptEdge | None:
        return None if known is None else self._edge(known)

    def _made(self, plan: Plan) -> _Made:
        """The plan, and of what kind its edge is where exits are known."""
        match plan:
            case ScanLeaf(kind):
                span = _span(kind) if self.policy.knows_exits else None
                if span is None:
                    return plan, None
                return replace(plan, exits_known=True), _KnownExits(span, in_order=True, kept=False)
            case OpaqueLeaf() | Exits():
                return plan, None
            case OperatorOver(ProjectSpec() | FilterSpec() | UnnestSpec(), below=below):
                made, known = self._made(below)
                return replace(plan, below=made), known
            case OperatorOver(GroupSpec(calls=(), in_order=False), below=below):
                return self._distinct(plan, below)
            case OperatorOver(below=below):
                return replace(plan, below=self.told(below)), None
            case Joined():
                return self._joined(plan)
            case Combined(Union()):
                return self._united(plan) or self._told_both(plan)
            case Combined():
                return self._compared(plan) or self._told_both(plan)

    def _distinct(self, plan: OperatorOver, below: Plan) -> _Made:
        made, known = self._made(below)
        if known is None or known.is_early:
            identified = with_ids(below) if self.policy.strategy == "nt" else None
            if identified is None:
                return replace(plan, below=self.told(below)), None
            return replace(plan, below=self.told(identified), keeping=Keeping(None, latest=False)), None
        given = _KnownExits(known.span, in_order=False)
        latest = self.policy.strategy == "upa"
        edge = self._edge(given if latest else known)
        return replace(plan, below=made, keeping=Keeping(edge, latest, exits_known=True)), given

    def _told_both(self, plan: Combined) -> _Made:
        """A set operation of inputs that tell exits when they happen."""
        return replace(plan, left=self.told(plan.left), right=self.told(plan.right)), None

    def _joined(self, plan: Joined) -> _Made:
        matching = plan.matching
        sides = [self._made(plan.left), self._made(plan.right)]
        known = [each for _, each in sides if each is not None]
        is_early = len(known) < 2 or any(each.is_early for each in known)
        is_inner = matching.kind == "inner" and matching.latest is None
        is_read = all(each is not None or _values_stay(made) for made, each in sides)
        told = is_early and self.policy.structure == "negative"
        if not (known and is_inner and is_read) or told:
            return replace(plan, left=self.told(plan.left), right=self.told(plan.right)), None
        (left, one), (right, other) = sides
        kept = self._kept(one), self._kept(other)
        span = min(each.span for each in known)
        return replace(plan, left=left, right=right, kept=kept), _KnownExits(span, False, is_early)

    def _united(self, plan: Combined) -> _Made | None:
        """UNION ALL of inputs with known exits."""
        (left, one), (right, other) = self._made(plan.left), self._made(plan.right)
        if one is None or other is None:
            return None
        is_early, kept = one.is_early or other.is_early, one.kept or other.kept
        given = _KnownExits(max(one.span, other.span), False, is_early, kept)
        return replace(plan, left=left, right=right), given

    def _compared(self, plan: Combined) -> _Made | None:
        """INTERSECT or EXCEPT over inputs with known exits, each DISTINCT where rows are given once."""
        stage, shape = plan.stage, plan.shape
        if isinstance(shape, LeftRows) and shape.whole:
            return None  # somebody above goes by the order of rows
        sides = [plan.left, plan.right]
        if not stage.all:
            sides = [distinct(each, columns_given(stage.inner)) for each in sides]
        (left, one), (right, other) = map(self._made, sides)
        if one is None or (other is None and stage.kind == "intersect"):
            return None
        kept, told = (self._kept(one), self._kept(other)), self.policy.structure == "negative"
        if stage.kind == "intersect":
            assert other is not None
            is_early = one.is_early or other.is_early
            if is_early and told:
                return None
            compared = Compared.of(replace(stage, all=True))
            given = _KnownExits(min(one.span, other.span), False, is_early)
            return replace(plan, shape=compared, left=left, right=right, kept=kept), given
        if isinstance(shape, Compared):
            shape = LeftRows(Compared.of(replace(stage, all=True)), whole=True, read=None)
        made = replace(plan, shape=shape, left=left, right=right, kept=kept, tells=told)
        return made, None if told else _KnownExits(one.span, False, is_early=True)


def _values_stay(plan: Plan) -> bool:
    """Whether all rows that ever have one id have the same values, so that these are read by the id. A group
    has others after each row that comes, and numbers of values are given to others.
    """
    match plan:
        case ScanLeaf() | OperatorOver(LatestSpec()):
            return True
        case OperatorOver(
            ProjectSpec() | FilterSpec() | UnnestSpec() | RankedSpec(numbered=False), below=below
        ) | Exits(below):
            return _values_stay(below)
        case Joined(Matching(kind="semi" | "anti"), left) | Combined(LeftRows(), left):
            return _values_stay(left)
        case Joined(left=left, right=right) | Combined(Union(), left, right):
            return _values_stay(left) and _values_stay(right)
    return False


def _telling(plan: Plan) -> Plan | None:
    """Returns the plan with a DISTINCT that tells its exits itself, since it knows them; None where there is
    no such DISTINCT.
    """
    match plan:
        case OperatorOver(ProjectSpec() | FilterSpec() | UnnestSpec(), below=below):
            under = _telling(below)
            return None if under is None else replace(plan, below=under)
        case OperatorOver(keeping=Keeping() as keeping):
            return replace(plan, keeping=replace(keeping, exits_known=False))
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


def operators_of(
    query: Query,
    operator: Operator,
    policy: Policy,
    tables: Container[SourceName],
    streams: Mapping[SourceName, Stream],
) -> Plan:
    """The operators that the changes of a query come from. tables: which of its sources are."""
    whole = operator == "rstream"
    plan = (whole_plan_of if whole else plan_of)(query, tables)
    held = releasing(plan, operator, streams)
    return held or leaving_early(physical(plan, policy, whole=whole), operator, streams)
