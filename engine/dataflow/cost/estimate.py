"""Plans with what their operators cost, from the leaves up.

    selection, projection, union    a row in: 1
    join, intersection              a row in: the rows of the other side
    DISTINCT, delta*                a row in: half of the output
    GROUP BY                        a row in, and out: a new value of the aggregate
    negation                        a row in, and out: the logarithm of the values; and for each that leaves
                                    before its time a look for another left row

A row is in once where exits are known, and twice where each is told: so all but the last two cost twice in
``nt``. A join reads the *other* side of a row; the paper prints the side that it is of. Beside this the rows
of inputs are kept (:mod:`engine.dataflow.cost.structures`), as the plan says.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from math import log2

from engine.algebra.operators import Stage
from engine.dataflow.buffers.settings import StateSettings
from engine.dataflow.cost import flows, structures
from engine.dataflow.cost.flows import Flow
from engine.dataflow.cost.statistics import Statistics
from engine.dataflow.cost.structures import KeptState, Term
from engine.dataflow.operators.constant_rows import ConstantRowsSpec
from engine.dataflow.operators.group import GroupSpec
from engine.dataflow.operators.latest import LatestSpec
from engine.dataflow.operators.ranked import RankedSpec
from engine.dataflow.operators.rows import FilterSpec, ProjectSpec
from engine.dataflow.operators.set_operations import Compared, Union
from engine.dataflow.operators.unnest import UnnestSpec
from engine.dataflow.operators.window_functions import WindowFunctionsSpec
from engine.dataflow.plan import Combined, Exits, Joined, Keeping, OpaqueLeaf, OperatorOver, Plan, ScanLeaf
from engine.dataflow.policy import KeptEdge
from engine.language.query import Scan
from engine.language.update_patterns import Pattern
from engine.model.maintenance import UnitCosts
from engine.model.source import SourceName


@dataclass(frozen=True, slots=True)
class PlanCost:
    """What a plan costs. flow: what leaves its top operator. terms: what this costs. kept: its state.
    exits_known: whether exits are told with the rows that leave it.
    """

    flow: Flow
    terms: tuple[Term, ...]
    kept: tuple[KeptState, ...] = ()
    inputs: tuple[PlanCost, ...] = ()
    exits_known: bool = False

    def all_terms(self) -> Iterator[Term]:
        """Yields the terms of all operators."""
        yield from self.terms
        for each in self.inputs:
            yield from each.all_terms()

    @property
    def is_strict(self) -> bool:
        """Whether some edge is STR, so that not all exits can be known."""
        return self.flow.pattern is Pattern.STR or any(each.is_strict for each in self.inputs)

    @property
    def listed(self) -> float:
        """Entries of scanned lists a second."""
        return sum(term.listed for term in self.all_terms())

    @property
    def entries(self) -> float:
        """Entries a second that are really looked at, put in and taken out."""
        return sum(term.entries for term in self.all_terms())

    @property
    def ns(self) -> float:
        """Nanoseconds a second."""
        return sum(term.ns for term in self.all_terms())

    @property
    def state_bytes(self) -> float:
        """Bytes of state beside the rows of sources."""
        return sum(each.nbytes for each in self.kept) + sum(each.state_bytes for each in self.inputs)

    @property
    def premature(self) -> float:
        """The largest share, over all edges, of rows that leave before their time."""
        return max([self.flow.premature, *(each.premature for each in self.inputs)])


def estimate(
    plan: Plan,
    known: Statistics,
    units: UnitCosts,
    tables: Container[SourceName],
    settings: StateSettings | None = None,
) -> PlanCost:
    """What a plan costs whose exits are told at the top. known: of its sources; tables: which of them are.
    settings: what state is made with.
    """
    top = _Costs(known, units, tables, settings or StateSettings()).of(plan)
    told = top.flow.rate + top.flow.leaving
    emitted = Term("emit", 0.0, 0.0, told * units.emit_ns)  # no state is read for it
    return PlanCost(top.flow, (*top.terms, emitted), top.kept, top.inputs, top.exits_known)


@dataclass(frozen=True, slots=True)
class _Costs:
    known: Statistics
    units: UnitCosts
    tables: Container[SourceName]
    settings: StateSettings

    def of(self, plan: Plan) -> PlanCost:
        match plan:
            case ScanLeaf(_, scan):
                flow = flows.of_scan(scan, self.tables, self.known)
                return self._scan(flow, exits_known=plan.exits_known or plan.entries)
            case OpaqueLeaf(query) if not query.stages:
                return self._scan(flows.of_scan(query.scan, self.tables, self.known), exits_known=False)
            case OpaqueLeaf(query):
                return self._recomputed(flows.of_query(query, self.tables, self.known))
            case Exits(below, edge):
                return self._exits(self.of(below), edge)
            case OperatorOver(LatestSpec(), below=below, stage=Scan() as scan):
                return self._latest(scan, self.of(below))
            case OperatorOver(below=below):
                return self._step(plan, self.of(below))
            case Joined(_, left, right, stage, spans=tuple()):
                return self._by_windows(stage, self.of(left), self.of(right))
            case Joined(_, left, right, stage, kept):
                return self._two(stage, self.of(left), self.of(right), kept)
            case Combined(left=left, right=right):
                return self._combined(plan, self.of(left), self.of(right))

    # --- operators --------------------------------------------------------------------------------

    def _scan(self, flow: Flow, *, exits_known: bool) -> PlanCost:
        """The rows of sources are kept anyway; those that are told to leave are read again."""
        return PlanCost(flow, (self._touch(flow, exits_known, "scan"),), exits_known=exits_known)

    def _recomputed(self, flow: Flow) -> PlanCost:
        """All rows are worked out again at each step."""
        again = flow.steps_per_s * flow.rows
        return PlanCost(flow, (Term("recompute", again, again, again * self.units.fold_ns),))

    def _exits(self, below: PlanCost, edge: KeptEdge) -> PlanCost:
        flow = below.flow
        state = structures.kept("output", flow, edge, self.settings, eager=True)
        found = structures.terms(state, flow, edge, self.units, flow.rows, self.settings, eager=True)
        return PlanCost(flow, tuple(found), (state,), (below,))

    def _latest(self, scan: Scan, below: PlanCost) -> PlanCost:
        flow = flows.of_scan(scan, self.tables, self.known)
        moves = below.flow.rate + flow.leaving
        term = Term("place", moves, moves, moves * self.units.probe_ns)
        return PlanCost(flow, (term,), (KeptState("output", "hashed", flow.rows),), (below,))

    def _step(self, plan: OperatorOver, below: PlanCost) -> PlanCost:
        flow = below.flow
        for stage in plan.stages:
            flow = flows.above(stage, flow, None, self.known)
        match plan.shape:
            case ProjectSpec() | FilterSpec() | UnnestSpec():
                touched = (self._touch(below.flow, below.exits_known),)
                return PlanCost(flow, touched, (), (below,), below.exits_known)
            case ConstantRowsSpec():
                return PlanCost(flow, (), (), (below,))
            case RankedSpec() | WindowFunctionsSpec():
                return self._ranked(flow, below)
            case GroupSpec(calls=(), in_order=False):
                return self._distinct(flow, below, plan.keeping)
        if plan.span_ms is not None:
            return self._extreme(flow, below)
        return self._group(flow, below)

    def _distinct(self, flow: Flow, below: PlanCost, keeping: Keeping | None) -> PlanCost:
        """Duplicates are counted; or the whole input is kept; or of each value the last duplicate, by delta*,
        whose state is that of its output.
        """
        moved = _moved(below.flow, below.exits_known)
        found = [Term("probe", moved * flow.rows / 2, moved, moved * self.units.probe_ns)]
        groups = KeptState("output", "groups", flow.rows)
        if keeping is None:
            return PlanCost(flow, tuple(found), (groups,), (below,))
        edge, exits_known = keeping.edge, keeping.exits_known
        if keeping.latest:
            state = structures.kept("output", flow, edge, self.settings, eager=True)
            found += structures.terms(state, flow, edge, self.units, flow.rows, self.settings, eager=True)
            groups = KeptState("duplicates", "groups", flow.rows)
        else:
            state = structures.kept("input", below.flow, edge, self.settings, eager=True)
            found += structures.terms(
                state, below.flow, edge, self.units, flow.rows, self.settings, eager=True
            )
        return PlanCost(flow, tuple(found), (state, groups), (below,), exits_known)

    def _group(self, flow: Flow, below: PlanCost) -> PlanCost:
        """A new value for each row that comes and each that leaves. Sums need no rows."""
        moved = below.flow.rate + below.flow.leaving
        folded = Term("fold", moved, moved, moved * self.units.fold_ns)
        return PlanCost(flow, (folded,), (KeptState("output", "groups", flow.rows),), (below,))

    def _extreme(self, flow: Flow, below: PlanCost) -> PlanCost:
        """A row that comes puts those that it outdoes out; who leaves is not told."""
        rate = below.flow.rate
        folded = Term("fold", rate, rate, rate * self.units.fold_ns)
        return PlanCost(flow, (folded,), (KeptState("input", "shared", log2(2 + below.flow.rows)),), (below,))

    def _ranked(self, flow: Flow, below: PlanCost) -> PlanCost:
        moved = below.flow.rate + below.flow.leaving
        steps = moved * log2(2 + below.flow.rows)
        placed = Term("place", steps, steps, steps * self.units.sort_ns)
        return PlanCost(flow, (placed,), (KeptState("input", "hashed", below.flow.rows),), (below,))

    def _combined(self, plan: Combined, left: PlanCost, right: PlanCost) -> PlanCost:
        stage, edges = plan.stage, plan.kept
        flow = flows.above(stage, left.flow, right.flow, self.known)
        if isinstance(plan.shape, Union):
            exits_known = left.exits_known and right.exits_known
            touched = self._touch(left.flow, exits_known), self._touch(right.flow, exits_known)
            return PlanCost(flow, touched, (), (left, right), exits_known)
        counts = isinstance(plan.shape, Compared) and not any(edges)
        values = flows.own_values(stage, left.flow, right.flow, self.known)
        if counts:  # two a value
            state: tuple[KeptState, ...] = (KeptState("counts", "groups", 2 * values),)
        else:
            state = self._both(left, right, edges, eager=True)
        if stage.negates:
            return self._negation(stage, flow, left, right, state, edges, tells=plan.tells)
        one, other = _moved(left.flow, left.exits_known), _moved(right.flow, right.exits_known)
        listed = one * right.flow.rows + other * left.flow.rows
        found = [Term("probe", listed, one + other, (one + other) * self.units.probe_ns)]
        found += self._buffered((left, right), state, edges, values)
        return PlanCost(flow, tuple(found), state, (left, right), any(edges))

    def _buffered(
        self,
        sides: tuple[PlanCost, PlanCost],
        state: Sequence[KeptState],
        edges: tuple[KeptEdge | None, KeptEdge | None],
        values: float,
    ) -> Iterator[Term]:
        """What buffers of inputs with known exits cost whose exits are seen at their instants."""
        if any(edges):
            for side, held, edge in zip(sides, state, edges, strict=True):
                if edge is not None:
                    yield from structures.terms(
                        held, side.flow, edge, self.units, values, self.settings, eager=True
                    )

    def _two(
        self, stage: Stage, left: PlanCost, right: PlanCost, kept: tuple[KeptEdge | None, KeptEdge | None]
    ) -> PlanCost:
        flow = flows.above(stage, left.flow, right.flow, self.known)
        state = self._both(left, right, kept, eager=False)
        if stage.negates:
            return self._negation(stage, flow, left, right, state, kept, tells=True)
        exits_known = any(kept)
        one, other = _moved(left.flow, left.exits_known), _moved(right.flow, right.exits_known)
        listed, matches = one * right.flow.rows + other * left.flow.rows, _moved(flow, exits_known)
        ns = (one + other) * self.units.probe_ns + matches * self.units.match_ns
        found = [Term("probe", listed, one + other + matches, ns)]
        values = flows.own_values(stage, left.flow, right.flow, self.known)
        for side, held, edge in zip((left, right), state, kept, strict=True):
            found += structures.terms(held, side.flow, edge, self.units, values, self.settings, eager=False)
        return PlanCost(flow, tuple(found), state, (left, right), exits_known)

    def _by_windows(self, stage: Stage, left: PlanCost, right: PlanCost) -> PlanCost:
        """Rows that leave look for their partners without being told."""
        flow = flows.above(stage, left.flow, right.flow, self.known)
        units, sides = self.units, (left.flow, right.flow)
        rate, leaving = sum(each.rate for each in sides), sum(each.leaving for each in sides)
        one, other = left.flow, right.flow
        listed = (one.rate + one.leaving) * other.rows + (other.rate + other.leaving) * one.rows
        matches = flow.rate + flow.leaving
        ns = rate * units.probe_ns + leaving * units.visit_ns + matches * units.match_ns
        found = (
            Term("probe", listed, rate + leaving + matches, ns),
            Term("insert", rate, rate, rate * units.insert_ns),
        )
        state = KeptState("left", "shared", left.flow.rows), KeptState("right", "shared", right.flow.rows)
        return PlanCost(flow, found, state, (left, right))

    def _both(
        self, left: PlanCost, right: PlanCost, edges: tuple[KeptEdge | None, KeptEdge | None], *, eager: bool
    ) -> tuple[KeptState, KeptState]:
        one, other = edges
        return (
            structures.kept("left", left.flow, one, self.settings, eager=eager),
            structures.kept("right", right.flow, other, self.settings, eager=eager),
        )

    def _negation(
        self,
        stage: Stage,
        flow: Flow,
        left: PlanCost,
        right: PlanCost,
        state: tuple[KeptState, ...],
        edges: tuple[KeptEdge | None, KeptEdge | None],
        *,
        tells: bool,
    ) -> PlanCost:
        """A counter of each value, sorted in the paper, and left rows in the order in which they came. tells:
        a negative tuple is sent for each exit, not only for the premature ones.
        """
        values = flows.own_values(stage, left.flow, right.flow, self.known)
        shared = flows.shared_values(stage, left.flow, right.flow, self.known)
        counted = sum(each.flow.rate + each.flow.leaving for each in (left, right))
        listed = counted * log2(2 + values)
        early = flow.leaving * flow.premature
        looked = early + right.flow.leaving * shared
        among = left.flow.rows / max(1.0, values)
        exits_known = any(edges) and not tells
        sent = early if exits_known else flow.leaving
        found = [
            Term("count", listed, counted, counted * self.units.probe_ns),
            Term("left probes", looked * among, looked, looked * self.units.match_ns),
            Term("negative tuples", sent, sent, sent * self.units.touch_ns),
            *self._buffered((left, right), state, edges, values),
        ]
        return PlanCost(flow, tuple(found), state, (left, right), exits_known)

    # --- terms ------------------------------------------------------------------------------------

    def _touch(self, flow: Flow, exits_known: bool, name: str = "rows") -> Term:
        moved = _moved(flow, exits_known)
        return Term(name, moved, moved, moved * self.units.touch_ns)


def _moved(flow: Flow, exits_known: bool) -> float:
    """Rows a second that an operator above an edge gets: where exits are told each row twice."""
    return flow.rate + flow.leaving * (flow.premature if exits_known else 1.0)
