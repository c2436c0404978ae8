"""A transition of a graph in which something fails that never should: few queries end, the others go on.

Whoever reads an operator that failed is suspect. Where these are several, they are tried apart, in graphs of
their own whose state is made from the rows: those that go well so are told what they would have been. Who is
to blame is looked for by halves, in :data:`TRIALS_MAX` tries at most; who is suspect then ends with it. Where
nobody fails by itself, what they share failed for some other reason, and all of them end.

Rows that streams let go of and joins hold are not to be had again, so queries that may have such are not
tried, and end where a whole graph has to be made anew.

Cost: nothing while nothing fails, else a try is O(rows of the windows of its queries).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from engine.changes.transition import Transition
from engine.dataflow.graph import CannotCome, Graph
from engine.model.changes import Changes
from engine.model.defects import Defects, internal
from engine.model.limits import Limits
from tureen.errors import InternalError

TRIALS_MAX = 64


@dataclass(slots=True)
class _Outcome:
    """Collects what a transition does to queries. broken: those whose changes cannot be told, and why."""

    changes: list[Changes] = field(default_factory=list)
    broken: dict[str, Exception] = field(default_factory=dict)

    def failed(self) -> list[str]:
        """Queries that a defect broke."""
        return [name for name, error in self.broken.items() if isinstance(error, InternalError)]


def advanced(
    graph: Graph,
    transition: Transition,
    limits: Limits,
    now_ms: int,
    broken: dict[str, Exception],
    defects: Defects,
) -> tuple[Graph, list[Changes]]:
    """What changed on a transition, and the graph to go on with.

    broken: gets the queries whose changes cannot be told, and why. defects: those of these that a defect
    broke, and others that could not be made anew.
    """
    found, is_lost = _Outcome(), False
    try:
        found.changes += graph.advance(transition, limits, now_ms, found.broken)
    except Exception as defect:  # noqa: BLE001  (nobody knows whose it is yet)
        found = _Outcome(broken=dict.fromkeys(graph.query_ids, internal(defect)))
        is_lost = True
    suspects = found.failed()
    if len(suspects) > 1:
        spared = _tried_apart(graph, suspects, transition, limits, now_ms)
        for name in spared.names:
            del found.broken[name]
        found.changes += spared.outcome.changes
        found.broken |= spared.outcome.broken
    for name in found.failed():
        defects.note([name], found.broken[name])
    broken |= found.broken
    if is_lost:
        left = [name for name in graph.query_ids if name not in defects]
        graph = remade(graph, left, defects)
    return graph, found.changes


@dataclass(slots=True)
class _Spared:
    """names: suspects that are not to blame, and what became of them."""

    names: list[str] = field(default_factory=list)
    outcome: _Outcome = field(default_factory=_Outcome)


def _tried_apart(
    graph: Graph, suspects: Collection[str], transition: Transition, limits: Limits, now_ms: int
) -> _Spared:
    spared, is_to_blame = _Spared(), False
    first = [name for name in suspects if not graph.holds_for(name)]
    left = [first] if first else []
    for _ in range(TRIALS_MAX):
        if not left:
            break
        some = left.pop()
        found = _alone(graph, some, transition, limits, now_ms)
        failed = set(found.failed())
        spared.names += [name for name in some if name not in failed]
        spared.outcome.changes += found.changes
        spared.outcome.broken |= {name: why for name, why in found.broken.items() if name not in failed}
        bad = [name for name in some if name in failed]
        if len(bad) == 1:
            is_to_blame = True
        elif len(bad) < len(some):
            left += [bad] if bad else []
        else:
            left += [bad[: len(bad) // 2], bad[len(bad) // 2 :]]
    if not is_to_blame and len(first) == len(suspects):
        return _Spared()
    return spared


def _alone(
    graph: Graph, names: Collection[str], transition: Transition, limits: Limits, now_ms: int
) -> _Outcome:
    found = _Outcome()
    try:
        found.changes += graph.anew(names).advance(transition, limits, now_ms, found.broken)
    except Exception as defect:  # noqa: BLE001  (they are tried again by halves)
        return _Outcome(broken=dict.fromkeys(names, internal(defect)))
    return found


def remade(graph: Graph, names: Iterable[str], defects: Defects) -> Graph:
    """A graph for these queries in the place of one that failed, its state still to be made. defects: gets
    those that cannot be in it.
    """
    left = dict.fromkeys(names)
    for name in [name for name in left if graph.holds_for(name)]:
        defects.note([name], AssertionError("rows that joins hold are lost with a graph that failed"))
        del left[name]
    while True:
        try:
            return graph.anew(left)
        except CannotCome as refused:
            defects.note([refused.query_id], refused.defect)
            del left[refused.query_id]
