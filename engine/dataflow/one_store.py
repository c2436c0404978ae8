"""Joins of two streams by windows of time, and MIN and MAX of one, from what is kept once for windows of all
sizes.

Such a join has no ids: a pair may end for one query and stay for another. So it is only there where nobody
above asks for them: below groups, and where changes leave.
"""

from __future__ import annotations

from dataclasses import replace

from engine.dataflow.calls import is_recomputed
from engine.dataflow.operators.group import GroupSpec
from engine.dataflow.operators.rows import FilterSpec, ProjectSpec
from engine.dataflow.operators.window_extreme import is_extreme
from engine.dataflow.plan import Combined, Exits, Joined, OperatorOver, Plan, ScanLeaf
from engine.windows.clauses import NOW, UNBOUNDED, TimeWindow


def in_one_store(plan: Plan, *, has_ids: bool) -> Plan:
    """A plan that does the same. has_ids: somebody reads ids of its rows."""
    match plan:
        case OperatorOver(ProjectSpec() | FilterSpec(), below=below):
            return replace(plan, below=in_one_store(below, has_ids=has_ids))
        case OperatorOver(GroupSpec((), (call,), in_order=False), below=below) if is_extreme(call):
            entries = _entries(below)
            if entries is None:
                return replace(plan, below=in_one_store(below, has_ids=False))
            return replace(plan, below=entries[0], span_ms=entries[1])
        case OperatorOver(GroupSpec(_, calls, in_order=False), below=below):
            needs = any(is_recomputed(call) or call.aggregate.order_dependent for call in calls)
            return replace(plan, below=in_one_store(below, has_ids=needs))
        case OperatorOver(below=below) | Exits(below=below):
            return replace(plan, below=in_one_store(below, has_ids=True))
        case Joined(left=left, right=right) if not has_ids:
            return _joined(plan) or _both(plan, left, right)
        case Joined(left=left, right=right) | Combined(left=left, right=right):
            return _both(plan, left, right)
    return plan


def _both(plan: Joined | Combined, left: Plan, right: Plan) -> Plan:
    return replace(plan, left=in_one_store(left, has_ids=True), right=in_one_store(right, has_ids=True))


def _joined(plan: Joined) -> Plan | None:
    """A join of two streams; None where it is another one."""
    matching, left, right = plan.matching, plan.left, plan.right
    if matching.kind != "inner" or matching.latest is not None:
        return None
    one, other = _entries(left), _entries(right)
    if one is None or other is None:
        return None
    read_late = replace(matching, read=None)  # values are not kept, so nothing depends on which are read
    return replace(plan, matching=read_late, left=one[0], right=other[0], spans=(one[1], other[1]))


def _entries(plan: Plan) -> tuple[Plan, int] | None:
    """The rows that enter a window of a stream, and its size in ms."""
    match plan:
        case OperatorOver(ProjectSpec() | FilterSpec(), below=below):
            under = _entries(below)
            return None if under is None else (replace(plan, below=under[0]), under[1])
        case ScanLeaf(kind):
            span_ms = _span_ms(plan)
            if span_ms is not None:
                return replace(plan, kind=replace(kind, window=UNBOUNDED), entries=True), span_ms
    return None


def _span_ms(shared: ScanLeaf) -> int | None:
    """The size of a window that ends at NOW and has a beginning; None of another."""
    window = shared.kind.window
    if shared.kind.assignment is not None or not isinstance(window, TimeWindow):
        return None
    begin = window.begin
    if (
        begin is None
        or not begin.relative
        or begin.ms > 0
        or window.end != NOW
        or window.slide_ms is not None
    ):
        return None
    return -begin.ms
