"""From a bound query to the operators of a graph.

A stage that has no operator is worked out, with all below it, by a leaf of the query's own
(:mod:`engine.dataflow.operators.flow`).
"""

from __future__ import annotations

from collections.abc import Container, Hashable, Sequence
from dataclasses import dataclass, replace

from engine.algebra.distinct.stage import Distinct
from engine.algebra.filter.stage import Filter
from engine.algebra.operators import Stage
from engine.algebra.project.stage import Output
from engine.algebra.rules import asked_of
from engine.algebra.set_operation.stage import SetOperation
from engine.algebra.sort.stage import Sort
from engine.dataflow.node import Node
from engine.dataflow.operators.asof import AsOfNode
from engine.dataflow.operators.constant_rows import ConstantRowsNode, ConstantRowsSpec
from engine.dataflow.operators.distinct import DistinctNode
from engine.dataflow.operators.duplicates import DuplicatesNode
from engine.dataflow.operators.early_joins import EarlyInnerJoinNode, EarlyMatchNode, EarlyWindowJoinNode
from engine.dataflow.operators.group import GroupNode, GroupSpec
from engine.dataflow.operators.join import NO_KNOWN_EXITS, InnerJoinNode, Kept, Matching
from engine.dataflow.operators.known_exit_except import KnownExitExceptNode
from engine.dataflow.operators.known_exit_sets import KnownExitIntersectNode
from engine.dataflow.operators.latest import LatestNode, LatestSpec
from engine.dataflow.operators.match import MatchNode
from engine.dataflow.operators.ranked import RankedNode, RankedSpec
from engine.dataflow.operators.releasing_group import ReleasingGroupNode
from engine.dataflow.operators.releasing_join import ReleasingJoinNode
from engine.dataflow.operators.rows import ConditionNode, FilterNode, FilterSpec, ProjectNode, ProjectSpec
from engine.dataflow.operators.set_operations import Compared, CopiesNode, Union, UnionNode
from engine.dataflow.operators.set_rows import LeftRows, LeftRowsNode
from engine.dataflow.operators.two_inputs import TwoInputs
from engine.dataflow.operators.unnest import UnnestNode, UnnestSpec
from engine.dataflow.operators.window_extreme import WindowExtremeNode
from engine.dataflow.operators.window_functions import WindowFunctionsNode, WindowFunctionsSpec
from engine.dataflow.operators.window_join import Spans, WindowJoinNode
from engine.dataflow.parameters import Constants, parameterised
from engine.dataflow.policy import KeptEdge
from engine.dataflow.releases.release import NONE, Early, Final, Releases
from engine.language.query import Query, Scan
from engine.model.expressions import Column, columns_of
from engine.model.source import MADE, SourceName
from engine.windows.assignment import Session
from engine.windows.clauses import UNBOUNDED, RowWindow, TimeWindow


@dataclass(frozen=True, slots=True)
class ScanLeaf:
    """A leaf that queries share: a scan without its predicate, which is a column of it; with it where windows
    depend on it, as those of SESSION do. scan: the query's. exits_known: exits are told with the rows.
    entries: rows that enter are told alone, of windows of all sizes, and the window of ``kind`` is UNBOUNDED.
    held: retention takes no row from it.
    """

    kind: Scan
    scan: Scan
    exits_known: bool = False
    entries: bool = False
    held: bool = False


@dataclass(frozen=True, slots=True)
class OpaqueLeaf:
    """A leaf of a query's own: its first stages. reason: why the last of them has no operator."""

    query: Query
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Keeping:
    """How DISTINCT keeps rows. edge: one with known exits; None: exits are told. latest: of the duplicates of
    a row the last alone, else the whole input. exits_known: what it gives is.
    """

    edge: KeptEdge | None
    latest: bool
    exits_known: bool = False


@dataclass(frozen=True, slots=True)
class OperatorOver:
    """An operator over another. shape: what it does, without the constants in which queries may differ.
    stage: the same as the query says it; of ORDER BY with LIMIT the latter, of a window of rows the scan.
    keeping: how DISTINCT keeps rows; None: it counts them. span_ms: of MIN or MAX over entries, the size of
    the window, in which columns differ. final: when groups get no row any more.
    """

    shape: (
        ProjectSpec
        | FilterSpec
        | GroupSpec
        | RankedSpec
        | LatestSpec
        | WindowFunctionsSpec
        | ConstantRowsSpec
        | UnnestSpec
    )
    constants: Constants
    below: Plan
    stage: Stage | Scan
    keeping: Keeping | None = None
    span_ms: int | None = None
    final: Final | None = None

    @property
    def stages(self) -> tuple[Stage, ...]:
        """Those of a query that it stands for: one, or ORDER BY with LIMIT; none, where it is of a scan."""
        if isinstance(self.stage, Scan):
            return ()
        shape = self.shape
        if isinstance(shape, RankedSpec) and shape.order and not shape.numbered:
            return Sort(shape.order), self.stage
        return (self.stage,)


@dataclass(frozen=True, slots=True)
class Joined:
    """A join of two plans. stage: what it is of a query; of a NOT IN, which takes two joins, what this one
    does. kept: how the rows of inputs with known exits are kept. spans: of inputs that tell entries alone,
    the sizes of their windows, in which columns differ. releases: what lets rows go that never leave. early:
    what lets rows go before their windows do.
    """

    matching: Matching
    left: Plan
    right: Plan
    stage: Stage
    kept: Kept = NO_KNOWN_EXITS
    spans: Spans | None = None
    releases: Releases = NONE
    early: Early | None = None


@dataclass(frozen=True, slots=True)
class Combined:
    """A set operation of two plans. kept: how the rows of inputs with known exits are kept, at least the
    left. tells: what it gives is told when it happens all the same.
    """

    shape: Union | Compared | LeftRows
    left: Plan
    right: Plan
    stage: SetOperation
    kept: Kept = NO_KNOWN_EXITS
    tells: bool = False


@dataclass(frozen=True, slots=True)
class Exits:
    """Exits that are known below are told when they happen."""

    below: Plan
    edge: KeptEdge


Plan = ScanLeaf | OpaqueLeaf | OperatorOver | Joined | Combined | Exits


def key_of(plan: Plan, *below: Hashable) -> Hashable:
    """What tells the node of a plan from others. below: the keys of its inputs."""
    match plan:
        case ScanLeaf(kind, _, exits_known, entries, held):
            told = [("known exits", exits_known), ("entries", entries), ("held", held)]
            return next(((kind, word) for word, is_so in told if is_so), kind)
        case OpaqueLeaf(query):
            return query
        case OperatorOver(shape, constants):
            types = tuple(literal.type for literal in constants)
            return *below, shape, types, plan.keeping, plan.span_ms is not None, plan.final
        case Joined(matching):
            return *below, matching, plan.kept, plan.spans is not None, plan.releases, plan.early
        case Combined(shape, kept=kept, tells=tells):
            return *below, shape, kept, tells
        case Exits(edge=edge):
            return *below, "exits", edge


def shape_of(plan: Plan) -> Hashable:
    """What plans have in common that are columns of the same nodes."""
    match plan:
        case OperatorOver(below=below) | Exits(below=below):
            return key_of(plan, shape_of(below))
        case Joined(left=left, right=right) | Combined(left=left, right=right):
            return key_of(plan, shape_of(left), shape_of(right))
    return key_of(plan)


@dataclass(frozen=True, slots=True)
class Asked:
    """What is asked of a stage's operator. tables: which sources are. by_order: somebody above goes by the
    order of its rows.
    """

    tables: Container[SourceName]
    by_order: bool


@asked_of("node", each=True)
def plan_over(stage: Stage, below: Plan, query: Query, place: int, asked: Asked) -> Plan | str:
    """A stage over a plan, or why it has no operator. query: whose stage it is; place: where in it."""
    raise AssertionError(stage)


def plan_of(query: Query, tables: Container[SourceName], *, by_order: bool = False) -> Plan:
    """tables: which sources are. by_order: somebody above goes by the order of its rows."""
    plan = _scan(query, tables)
    for place, stage in enumerate(query.stages):
        ordered = by_order or any(each.goes_by_order for each in query.stages[place + 1 :])
        above = plan_over(stage, plan, query, place, Asked(tables, ordered))
        plan = OpaqueLeaf(first(query, place + 1), above) if isinstance(above, str) else above
    return plan


def whole_plan_of(query: Query, tables: Container[SourceName]) -> Plan:
    """Returns the plan of a query for RSTREAM: one whose rows have ids, or the whole query as a leaf of its
    own.
    """
    plan = plan_of(query, tables)
    identified = with_ids(plan)
    if identified is None:
        return OpaqueLeaf(first(query, len(query.stages)), f"RSTREAM: {NO_IDS}, by {reason_of(plan)}")
    return identified


def scans_of(query: Query, tables: Container[SourceName]) -> list[Plan]:
    """The plans of its scans."""
    inner = [stage.right_input for stage in query.stages if stage.right_input is not None]
    return [_scan(query, tables), *(plan for each in inner for plan in scans_of(each, tables))]


def is_selection(query: Query) -> bool:
    """Whether a query over a stream gives columns of the rows of a plain window of time, and does no more."""
    scan = query.scan
    return query.outputs is not None and scan.assignment is None and isinstance(scan.window, TimeWindow)


def node_of(step: OperatorOver, below: Node) -> Node:
    """The operator of a step, over another."""
    match step.shape:
        case ProjectSpec(outputs):
            return ProjectNode(below, outputs)
        case FilterSpec(predicate) if step.constants:
            return ConditionNode(below, predicate, [literal.type for literal in step.constants])
        case FilterSpec(predicate):
            return FilterNode(below, predicate)
        case GroupSpec(keys) if step.keeping is not None:
            expressions, keeping = [key.expression for key in keys], step.keeping
            if keeping.latest and keeping.edge is not None:
                return DistinctNode(below, expressions, keeping.edge, exits_known=keeping.exits_known)
            return DuplicatesNode(below, expressions, keeping.edge, exits_known=keeping.exits_known)
        case GroupSpec(calls=calls) if step.span_ms is not None:
            (call,) = calls
            return WindowExtremeNode(below, call)
        case GroupSpec() as groups if step.final is not None:
            return ReleasingGroupNode(below, groups, step.final)
        case GroupSpec() as groups:
            return GroupNode(below, groups)
        case LatestSpec() as latest:
            return LatestNode(below, latest)
        case RankedSpec() as ranked:
            return RankedNode(below, ranked)
        case WindowFunctionsSpec() as functions:
            return WindowFunctionsNode(below, functions)
        case ConstantRowsSpec() as constants:
            return ConstantRowsNode(below, constants)
        case UnnestSpec() as spec:
            return UnnestNode(below, spec)


def node_of_two(plan: Joined | Combined, left: Node, right: Node) -> TwoInputs:
    """The operator of a join or a set operation, over two others."""
    match plan:
        case Joined():
            return _join_of(plan, left, right)
        case Combined(Union()):
            return UnionNode(left, right)
        case Combined(Compared() as compared, kept=kept):
            if kept == NO_KNOWN_EXITS:
                return CopiesNode(left, right, compared)
            return KnownExitIntersectNode(left, right, compared, kept)
        case Combined(LeftRows() as rows, kept=kept, tells=tells):
            if kept == NO_KNOWN_EXITS:
                return LeftRowsNode(left, right, rows)
            return KnownExitExceptNode(left, right, rows, kept, tells=tells)
    raise AssertionError(plan)


def _join_of(joined: Joined, left: Node, right: Node) -> TwoInputs:
    matching = joined.matching
    if joined.early is not None:
        return _early_of(joined, joined.early, left, right)
    if joined.spans is not None:
        return WindowJoinNode(left, right, matching)
    if matching.latest is not None:
        return AsOfNode(left, right, matching, matching.latest)
    if joined.releases != NONE:
        return ReleasingJoinNode(left, right, matching, joined.releases)
    if matching.kind == "inner":
        return InnerJoinNode(left, right, matching, joined.kept)
    return MatchNode(left, right, matching)


def _early_of(joined: Joined, early: Early, left: Node, right: Node) -> TwoInputs:
    matching = joined.matching
    if joined.spans is not None:
        return EarlyWindowJoinNode(left, right, matching, early)
    if matching.kind == "inner":
        return EarlyInnerJoinNode(left, right, matching, early)
    return EarlyMatchNode(left, right, matching, early)


def first(query: Query, stages: int) -> Query:
    """The relation that so many stages of a query give."""
    return replace(query, sql="", stages=query.stages[:stages], uses=(), operator=None, emit=None)


def _has_node(scan: Scan) -> bool:
    """Whether the rows that a window of a stream holds are found by a node."""
    return isinstance(scan.window, TimeWindow) or (scan.assignment is None and scan.window.plain)


def _scan(query: Query, tables: Container[SourceName]) -> Plan:
    scan = query.scan
    if query.source not in tables and _has_node(scan):
        own = isinstance(scan.assignment, Session)
        return ScanLeaf(scan if own else replace(scan, predicate=None), scan)
    if query.source not in tables and scan.assignment is None:
        assert isinstance(scan.window, RowWindow)
        return _latest(scan, scan.window)
    return OpaqueLeaf(first(query, 0))


def _latest(scan: Scan, window: RowWindow) -> Plan:
    """A window of rows by key or by condition."""
    rows = replace(scan, window=UNBOUNDED, predicate=window.filter)
    shared = ScanLeaf(replace(rows, predicate=None), rows)
    if scan.predicate is None:
        return OperatorOver(LatestSpec(window.rows, window.keys), (), shared, scan)
    made = {field.name for field in MADE}
    asked = tuple(sorted({c.index for c in columns_of(scan.predicate) if c.name in made}))
    plan = OperatorOver(LatestSpec(window.rows, window.keys, asked), (), shared, scan)
    predicate, constants = parameterised(scan.predicate)
    return OperatorOver(FilterSpec(predicate), constants, plan, Filter(scan.predicate))


NO_ORDER = "LIMIT, OVER, FIRST and LAST: it is not known which of equal rows comes first"
NO_IDS = "rows that are recomputed have no ids"


def ranked(shape: RankedSpec | WindowFunctionsSpec, below: Plan, stage: Stage) -> Plan | str:
    """The first rows of a plan, or its rows with window functions, or why it has no operator."""
    expressions = [*shape.keys, *(key.expression for key in shape.order)]
    key = _unique(below)
    if key is not None and key <= {each.index for each in expressions if isinstance(each, Column)}:
        return OperatorOver(shape, (), below, stage)
    ordered = in_order(below)
    return NO_ORDER if ordered is None else OperatorOver(shape, (), ordered, stage)


def in_order(plan: Plan) -> Plan | None:
    """Returns the plan with ids of rows that have the order of the relation; None where rows have none."""
    match plan:
        case OpaqueLeaf() | ScanLeaf():
            return with_ids(plan)
        case OperatorOver(LatestSpec() | ConstantRowsSpec()):
            return plan
        case OperatorOver(ProjectSpec() | FilterSpec() | WindowFunctionsSpec() | UnnestSpec(), below=below):
            under = in_order(below)
            return None if under is None else replace(plan, below=under)
        case OperatorOver(GroupSpec() as groups, below=below) if groups.keys:
            under = in_order(below)
            return None if under is None else replace(plan, shape=replace(groups, in_order=True), below=under)
        case OperatorOver(RankedSpec() as shape, below=below) if shape.numbered or not shape.order:
            under = in_order(below)
            return None if under is None else replace(plan, below=under)
        case Joined(stage=stage) if stage.sorts:
            return None
        case Joined(matching, left, right):
            one = in_order(left)
            other = right if matching.kind in ("semi", "anti") else in_order(right)
            return None if one is None or other is None else replace(plan, left=one, right=other)
        case Combined(Union(merged), left, right):
            one, other = in_order(left), in_order(right)
            return None if merged or one is None or other is None else replace(plan, left=one, right=other)
        case Combined(LeftRows()):
            return plan
        case Combined(Compared() as compared, left):
            under = in_order(left)
            return None if under is None else replace(plan, shape=LeftRows(compared, True, None), left=under)
    return None


def _unique(plan: Plan) -> frozenset[int] | None:
    """Columns in which no two rows are equal that are there at one instant; None: none are known."""
    match plan:
        case OperatorOver(GroupSpec(keys)):
            return frozenset(range(len(keys)))
        case OperatorOver(FilterSpec() | RankedSpec() | WindowFunctionsSpec(), below=below):
            return _unique(below)
        case OperatorOver(ProjectSpec(outputs), below=below):
            key = _unique(below)
            expressions = [output.expression for output in outputs]
            places = {each.index: place for place, each in enumerate(expressions) if isinstance(each, Column)}
            if key is not None and key <= places.keys():
                return frozenset(places[place] for place in key)
        case Combined(Compared() | LeftRows(), left, stage=stage):
            return _unique(left) if stage.all else frozenset(range(len(stage.inner.columns)))
    return None


def distinct(below: Plan, columns: tuple[Output, ...]) -> Plan:
    """The rows of a plan, each once. columns: its own."""
    return OperatorOver(GroupSpec(columns), (), below, Distinct())


def with_ids(plan: Plan) -> Plan | None:
    """Returns the plan with ids of rows; None where rows have none."""
    match plan:
        case OpaqueLeaf(query) if query.stages:
            return None
        case OpaqueLeaf(query):
            return ScanLeaf(query.scan, replace(query.scan, predicate=None))
        case OperatorOver(ProjectSpec() | FilterSpec() | UnnestSpec(), below=below):
            under = with_ids(below)
            return None if under is None else replace(plan, below=under)
        case Combined(Union(), left, right):
            one, other = with_ids(left), with_ids(right)
            return None if one is None or other is None else replace(plan, left=one, right=other)
    return plan


def reason_of(plan: Plan) -> str | None:
    """Why rows of a plan have no ids."""
    match plan:
        case OpaqueLeaf(_, reason):
            return reason
        case OperatorOver(ProjectSpec() | FilterSpec() | UnnestSpec(), below=below):
            return reason_of(below)
        case Combined(Union(), left, right):
            return reason_of(left) or reason_of(right)
    return None


def read_by(stages: Sequence[Stage]) -> frozenset[int] | None:
    """The places of the columns of a relation that stages over it read; None: all of them."""
    read: frozenset[int] = frozenset()
    for stage in stages:
        if stage.places_read is None:
            return None
        read |= stage.places_read
        if stage.computed is not None:
            return read
    return None


def columns_given(query: Query) -> tuple[Output, ...]:
    """The columns that a query gives, each as it is."""
    return tuple(
        Output(name, Column(place, name, type_)) for place, (name, type_) in enumerate(query.columns)
    )
