"""From a bound query to the operators of a graph.

A stage that has no operator is worked out, with all below it, by a leaf of the query's own
(:mod:`engine.dataflow.operators.flow`).
"""

from __future__ import annotations

from collections.abc import Container, Hashable, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest

from engine.algebra.aggregate.stage import Aggregate
from engine.algebra.distinct.stage import Distinct
from engine.algebra.filter.stage import Filter
from engine.algebra.join.stage import Join, JoinKind
from engine.algebra.limit.stage import Limit
from engine.algebra.operators import Stage
from engine.algebra.project.stage import Output, Project
from engine.algebra.row_number.stage import RowNumber
from engine.algebra.semi_join.stage import SemiJoin
from engine.algebra.set_operation.stage import SetOperation
from engine.algebra.sort.stage import Sort
from engine.algebra.streamed.stage import Streamed
from engine.dataflow.calls import is_recomputed
from engine.dataflow.node import Node
from engine.dataflow.operators.asof import AsOfNode
from engine.dataflow.operators.distinct import DistinctNode
from engine.dataflow.operators.duplicates import DuplicatesNode
from engine.dataflow.operators.foretold_sets import ForetoldExceptNode, ForetoldIntersectNode
from engine.dataflow.operators.group import GroupNode, InOrder
from engine.dataflow.operators.join import NOT_FORETOLD, RIGHT, InnerJoinNode, Kept, Matching
from engine.dataflow.operators.latest import LatestNode, LatestSpec
from engine.dataflow.operators.match import MatchNode
from engine.dataflow.operators.ranked import RankedNode, RankedSpec
from engine.dataflow.operators.releasing_group import ReleasingGroupNode
from engine.dataflow.operators.releasing_join import ReleasingJoinNode
from engine.dataflow.operators.rows import ConditionNode, FilterNode, ProjectNode
from engine.dataflow.operators.set_operations import Compared, CopiesNode, Union, UnionNode
from engine.dataflow.operators.set_rows import LeftRows, LeftRowsNode
from engine.dataflow.operators.two_inputs import TwoInputs
from engine.dataflow.operators.window_extreme import WindowExtremeNode
from engine.dataflow.operators.window_join import Spans, WindowJoinNode
from engine.dataflow.parameters import Constants, parameterised
from engine.dataflow.policy import KeptEdge
from engine.dataflow.releases.release import NONE, Final, Releases
from engine.language.query import Query, Scan
from engine.language.update_patterns import edges_of
from engine.model.expressions import Column, Expression, IsNull, Literal, Or, columns_of
from engine.model.source import MADE, SourceName
from engine.model.types import BOOLEAN, Kind
from engine.windows.assignment import Session
from engine.windows.clauses import UNBOUNDED, RowWindow, TimeWindow


@dataclass(frozen=True, slots=True)
class Shared:
    """A leaf that queries share: a scan without its predicate, which is a column of it; with it where windows
    depend on it, as those of SESSION do. scan: the query's. foretold: exits are told with the rows. entries:
    rows that enter are told alone, of windows of all sizes, and the window of ``kind`` is UNBOUNDED. held:
    retention takes no row from it.
    """

    kind: Scan
    scan: Scan
    foretold: bool = False
    entries: bool = False
    held: bool = False


@dataclass(frozen=True, slots=True)
class Own:
    """A leaf of a query's own: its first stages. reason: why the last of them has no operator."""

    query: Query
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Keeping:
    """How DISTINCT keeps rows. edge: a foretold one; None: exits are told. latest: of the duplicates of a row
    the last alone, else the whole input. foretold: what it gives is.
    """

    edge: KeptEdge | None
    latest: bool
    foretold: bool = False


@dataclass(frozen=True, slots=True)
class Step:
    """An operator over another. shape: what it does, without the constants in which queries may differ.
    stage: the same as the query says it; of ORDER BY with LIMIT the latter, of a window of rows the scan.
    keeping: how DISTINCT keeps rows; None: it counts them. span_ms: of MIN or MAX over entries, the size of
    the window, in which columns differ. final: when groups get no row any more.
    """

    shape: Stage | RankedSpec | InOrder | LatestSpec
    constants: Constants
    below: Plan
    stage: Stage | Scan
    keeping: Keeping | None = None
    span_ms: int | None = None
    final: Final | None = None


@dataclass(frozen=True, slots=True)
class Joined:
    """A join of two plans. stage: of the query; of a NOT IN, which takes two joins, what this one does. kept:
    how the rows of foretold inputs are kept. spans: of inputs that tell entries alone, the sizes of their
    windows, in which columns differ. releases: what lets rows go before they leave.
    """

    matching: Matching
    left: Plan
    right: Plan
    stage: Join | SemiJoin
    kept: Kept = NOT_FORETOLD
    spans: Spans | None = None
    releases: Releases = NONE


@dataclass(frozen=True, slots=True)
class Combined:
    """A set operation of two plans. kept: how the rows of foretold inputs are kept, the left one at least.
    tells: what it gives is told when it happens all the same.
    """

    shape: Union | Compared | LeftRows
    left: Plan
    right: Plan
    stage: SetOperation
    kept: Kept = NOT_FORETOLD
    tells: bool = False


@dataclass(frozen=True, slots=True)
class Exits:
    """What is foretold below is told when it happens."""

    below: Plan
    edge: KeptEdge


Plan = Shared | Own | Step | Joined | Combined | Exits


def key_of(plan: Plan, *below: Hashable) -> Hashable:
    """What tells the node of a plan from others. below: the keys of its inputs."""
    match plan:
        case Shared(kind, _, foretold, entries, held):
            told = [("foretold", foretold), ("entries", entries), ("held", held)]
            return next(((kind, word) for word, is_so in told if is_so), kind)
        case Own(query):
            return query
        case Step(shape, constants):
            types = tuple(literal.type for literal in constants)
            return *below, shape, types, plan.keeping, plan.span_ms is not None, plan.final
        case Joined(matching):
            return *below, matching, plan.kept, plan.spans is not None, plan.releases
        case Combined(shape, kept=kept, tells=tells):
            return *below, shape, kept, tells
        case Exits(edge=edge):
            return *below, "exits", edge


def shape_of(plan: Plan) -> Hashable:
    """What plans have in common that are columns of the same nodes."""
    match plan:
        case Step(below=below) | Exits(below=below):
            return key_of(plan, shape_of(below))
        case Joined(left=left, right=right) | Combined(left=left, right=right):
            return key_of(plan, shape_of(left), shape_of(right))
    return key_of(plan)


def plan_of(query: Query, tables: Container[SourceName]) -> Plan:
    """tables: which sources are."""
    plan = _scan(query, tables)
    for place, (stage, following) in enumerate(zip_longest(query.stages, query.stages[1:])):
        if isinstance(stage, Sort) and isinstance(following, Limit):
            continue  # one operator with what follows
        if isinstance(stage, Join):
            above = _joined(stage, plan, query.stages[place + 1 :], tables)
        elif isinstance(stage, SemiJoin):
            above = _among(stage, plan, query.stages[place + 1 :], tables)
        elif isinstance(stage, SetOperation):
            above = _combined(stage, plan, query, place, tables)
        elif isinstance(stage, Streamed):
            above = "a window over a subquery: its changes are those of what it gave at earlier instants"
        else:
            above = _above(stage, plan, query.stages, place)
        plan = Own(_first(query, place + 1), above) if isinstance(above, str) else above
    return plan


def whole_plan_of(query: Query, tables: Container[SourceName]) -> Plan:
    """Returns the plan of a query for RSTREAM: one whose rows have ids, or the whole query as a leaf of its
    own.
    """
    plan = plan_of(query, tables)
    identified = with_ids(plan)
    if identified is None:
        return Own(_first(query, len(query.stages)), f"RSTREAM: {_NO_IDS}, by {_reason_of(plan)}")
    return identified


def scans_of(query: Query, tables: Container[SourceName]) -> list[Plan]:
    """The plans of its scans."""
    inner = [stage.right_input for stage in query.stages if stage.right_input is not None]
    return [_scan(query, tables), *(plan for each in inner for plan in scans_of(each, tables))]


def is_selection(query: Query) -> bool:
    """Whether a query over a stream gives columns of the rows of a plain window of time, and does no more."""
    scan = query.scan
    return (
        len(query.stages) == 1
        and isinstance(query.stages[0], Project)
        and scan.assignment is None
        and isinstance(scan.window, TimeWindow)
    )


def node_of(step: Step, below: Node) -> Node:
    """The operator of a step, over another."""
    match step.shape:
        case Project(outputs):
            return ProjectNode(below, outputs)
        case Filter(predicate) if step.constants:
            return ConditionNode(below, predicate, [literal.type for literal in step.constants])
        case Filter(predicate):
            return FilterNode(below, predicate)
        case Aggregate(keys) if step.keeping is not None:
            expressions, keeping = [key.expression for key in keys], step.keeping
            if keeping.latest and keeping.edge is not None:
                return DistinctNode(below, expressions, keeping.edge, foretold=keeping.foretold)
            return DuplicatesNode(below, expressions, keeping.edge, foretold=keeping.foretold)
        case Aggregate() as stage if step.span_ms is not None:
            return WindowExtremeNode(below, stage)
        case Aggregate() as stage if step.final is not None:
            return ReleasingGroupNode(below, stage, step.final)
        case Aggregate() as stage:
            return GroupNode(below, stage)
        case InOrder(stage):
            return GroupNode(below, stage, in_order=True)
        case LatestSpec() as latest:
            return LatestNode(below, latest)
        case RankedSpec() as ranked:
            return RankedNode(below, ranked)
    raise AssertionError(step.shape)


def node_of_two(plan: Joined | Combined, left: Node, right: Node) -> TwoInputs:
    """The operator of a join or a set operation, over two others."""
    match plan:
        case Joined():
            return _join_of(plan, left, right)
        case Combined(Union()):
            return UnionNode(left, right)
        case Combined(Compared() as compared, kept=kept):
            if kept == NOT_FORETOLD:
                return CopiesNode(left, right, compared)
            return ForetoldIntersectNode(left, right, compared, kept)
        case Combined(LeftRows() as rows, kept=kept, tells=tells):
            if kept == NOT_FORETOLD:
                return LeftRowsNode(left, right, rows)
            return ForetoldExceptNode(left, right, rows, kept, tells=tells)
    raise AssertionError(plan)


def _join_of(joined: Joined, left: Node, right: Node) -> TwoInputs:
    matching = joined.matching
    if joined.spans is not None:
        return WindowJoinNode(left, right, matching)
    if matching.latest is not None:
        return AsOfNode(left, right, matching, matching.latest)
    if joined.releases != NONE:
        return ReleasingJoinNode(left, right, matching, joined.releases)
    if matching.kind == "inner":
        return InnerJoinNode(left, right, matching, joined.kept)
    return MatchNode(left, right, matching)


def _first(query: Query, stages: int) -> Query:
    return replace(query, sql="", stages=query.stages[:stages], uses=(), operator=None, emit=None)


def _has_node(scan: Scan) -> bool:
    """Whether the rows that a window of a stream holds are found by a node."""
    return isinstance(scan.window, TimeWindow) or (scan.assignment is None and scan.window.plain)


def _scan(query: Query, tables: Container[SourceName]) -> Plan:
    scan = query.scan
    if query.source not in tables and _has_node(scan):
        own = isinstance(scan.assignment, Session)
        return Shared(scan if own else replace(scan, predicate=None), scan)
    if query.source not in tables and scan.assignment is None:
        assert isinstance(scan.window, RowWindow)
        return _latest(scan, scan.window)
    return Own(_first(query, 0))


def _latest(scan: Scan, window: RowWindow) -> Plan:
    """A window of rows by key or by condition."""
    rows = replace(scan, window=UNBOUNDED, predicate=window.filter)
    shared = Shared(replace(rows, predicate=None), rows)
    if scan.predicate is None:
        return Step(LatestSpec(window.rows, window.keys), (), shared, scan)
    made = {field.name for field in MADE}
    asked = tuple(sorted({c.index for c in columns_of(scan.predicate) if c.name in made}))
    plan = Step(LatestSpec(window.rows, window.keys, asked), (), shared, scan)
    predicate, constants = parameterised(scan.predicate)
    return Step(Filter(predicate), constants, plan, Filter(scan.predicate))


def _above(stage: Stage, below: Plan, stages: Sequence[Stage], place: int) -> Plan | str:
    """A stage over a plan, or why it has no operator. stages: those of the query."""
    match stage:
        case Project():
            return Step(stage, (), below, stage)
        case Filter(predicate):
            shape, constants = parameterised(predicate)
            return Step(Filter(shape), constants, below, stage)
        case Sort():
            return _NO_ORDER if any(map(_goes_by_order, stages[place + 1 :])) else below
        case Aggregate(keys, calls):
            if any(call.aggregate.order_dependent for call in calls):
                in_order = _in_order(below)
                return _NO_ORDER if in_order is None else Step(stage, (), in_order, stage)
            if not any(map(is_recomputed, calls)):
                return Step(stage, (), below, stage)
            identified = with_ids(below)
            if identified is None:
                return f"GROUP BY: {_NO_IDS}, by {_reason_of(below)}"
            return Step(stage, (), identified, stage)
        case Distinct():
            keys = _columns_of(stages[:place])
            return Step(Aggregate(keys, ()), (), below, stage)
        case Limit(0):
            return Step(Filter(Literal(False, BOOLEAN)), (), below, stage)
        case Limit(count, offset):
            sort = stages[place - 1] if place else None
            order = sort.keys if isinstance(sort, Sort) else ()
            most, read = None if count is None else offset + count, _read_by(stages[place + 1 :])
            return _ranked(RankedSpec((), order, offset, most, False, read), below, stage)
        case RowNumber(by, order, count):
            return _ranked(RankedSpec(by, order, 0, count, True, _read_by(stages[place + 1 :])), below, stage)
    raise AssertionError(stage)


_NO_ORDER = "LIMIT, ROW_NUMBER, FIRST and LAST: it is not known which of equal rows comes first"
_NO_IDS = "rows that are recomputed have no ids"


def _goes_by_order(stage: Stage) -> bool:
    """Whether what a stage gives depends on the order of what is below it."""
    if isinstance(stage, Aggregate):
        return any(call.aggregate.order_dependent for call in stage.calls)
    return isinstance(stage, Limit | RowNumber)


def _ranked(shape: RankedSpec, below: Plan, stage: Stage) -> Plan | str:
    """The first rows of a plan, or why it has no operator."""
    expressions = [*shape.keys, *(key.expression for key in shape.order)]
    key = _unique(below)
    if key is not None and key <= {each.index for each in expressions if isinstance(each, Column)}:
        return Step(shape, (), below, stage)
    in_order = _in_order(below)
    return _NO_ORDER if in_order is None else Step(shape, (), in_order, stage)


def _in_order(plan: Plan) -> Plan | None:
    """Returns the plan with ids of rows that have the order of the relation; None where rows have none."""
    match plan:
        case Own() | Shared():
            return with_ids(plan)
        case Step(LatestSpec()):
            return plan
        case Step(Project() | Filter(), below=below):
            under = _in_order(below)
            return None if under is None else replace(plan, below=under)
        case Step(Aggregate() as stage, below=below) if stage.keys:
            under = _in_order(below)
            return None if under is None else replace(plan, shape=InOrder(stage), below=under)
        case Step(RankedSpec() as shape, below=below) if _in_order(below) is not None:
            return plan if shape.numbered or not shape.order else None
        case Joined(matching, left, right):
            one = _in_order(left)
            other = right if matching.kind in ("semi", "anti") else _in_order(right)
            return None if one is None or other is None else replace(plan, left=one, right=other)
        case Combined(Union(merged), left, right):
            one, other = _in_order(left), _in_order(right)
            return None if merged or one is None or other is None else replace(plan, left=one, right=other)
        case Combined(LeftRows()):
            return plan
        case Combined(Compared() as compared, left):
            under = _in_order(left)
            return None if under is None else replace(plan, shape=LeftRows(compared, True, None), left=under)
    return None


def _unique(plan: Plan) -> frozenset[int] | None:
    """Columns in which no two rows are equal that are there at one instant; None: none are known."""
    match plan:
        case Step(Aggregate(keys) | InOrder(Aggregate(keys))):
            return frozenset(range(len(keys)))
        case Step(Filter() | RankedSpec(), below=below):
            return _unique(below)
        case Step(Project(outputs), below=below):
            key = _unique(below)
            expressions = [output.expression for output in outputs]
            places = {each.index: place for place, each in enumerate(expressions) if isinstance(each, Column)}
            if key is not None and key <= places.keys():
                return frozenset(places[place] for place in key)
        case Combined(Compared() | LeftRows(), left, stage=stage):
            return _unique(left) if stage.all else frozenset(range(len(stage.inner.columns)))
    return None


def _joined(stage: Join, left: Plan, following: Sequence[Stage], tables: Container[SourceName]) -> Plan | str:
    """A join over a plan, or why it has no operator. following: the stages above it."""
    inner = plan_of(stage.inner, tables)
    one, other = with_ids(left), with_ids(inner)
    if one is None or other is None:
        return f"JOIN: {_NO_IDS}, by {_reason_of(left) or _reason_of(inner)}"
    matching = Matching(stage.kind, stage.keys, stage.condition, _read_by(following), stage.latest)
    if stage.latest is None:
        return Joined(matching, one, other, stage)
    if stage.kind not in ("inner", "left"):
        return "ASOF JOIN that keeps right rows: a partner is known when all left rows are"
    compared = stage.latest.outer.type, stage.latest.inner.type
    if compared[0] != compared[1] or compared[0].kind in (Kind.STRING, Kind.ARRAY, Kind.NULL):
        return "ASOF JOIN by strings: they have no order that stays"
    in_order = _in_order(other)
    return _NO_ORDER if in_order is None else Joined(matching, one, in_order, stage)


def _combined(
    stage: SetOperation, left: Plan, query: Query, place: int, tables: Container[SourceName]
) -> Plan | str:
    """A set operation over a plan, or why it has no operator. place: of the stage."""
    inner = plan_of(stage.inner, tables)
    if stage.kind == "union":
        edge, other = edges_of(_first(query, place), tables)[-1], edges_of(stage.inner, tables)[-1]
        merged = edge.merges is not None and other.merges is not None
        return Combined(Union(merged), left, inner, stage)
    compared = Compared.of(stage)
    if stage.on is None:
        return Combined(compared, left, inner, stage)
    in_order = _in_order(left)
    if in_order is None:
        return "EXCEPT ALL ON: it is not known which of equal rows came first"
    return Combined(LeftRows(compared, False, _read_by(query.stages[place + 1 :])), in_order, inner, stage)


def _among(
    stage: SemiJoin, left: Plan, following: Sequence[Stage], tables: Container[SourceName]
) -> Plan | str:
    """IN or EXISTS over a plan, or why it has no operator. following: the stages above it."""
    one, inner = with_ids(left), plan_of(stage.inner, tables)
    columns = _columns_of(stage.inner.stages)
    if one is None:
        return f"IN and EXISTS: {_NO_IDS}, by {_reason_of(left)}"
    kind: JoinKind = "anti" if stage.negated else "semi"
    read = _read_by(following)
    if not stage.keys:
        return Joined(Matching(kind, (), None, read), one, _distinct(inner, Literal(True, BOOLEAN)), stage)
    keys = tuple((key, column.expression) for key, column in zip(stage.keys, columns, strict=True))
    values = Step(Aggregate(columns, ()), (), inner, Distinct())
    found = Joined(Matching(kind, keys, None, read), one, values, replace(stage, null_aware=False))
    if not (stage.negated and stage.null_aware):
        return found
    key, column = keys[0]
    if not isinstance(key, Column):
        return "NOT IN of an expression: an error counts as NULL"  # but not to IsNull
    found = replace(
        found, matching=replace(found.matching, read=None if read is None else read | {key.index})
    )
    unknown = Or((IsNull(key), Column(RIGHT, "", BOOLEAN)))
    nulls = _distinct(inner, IsNull(column))
    return Joined(Matching(kind, (), unknown, read), found, nulls, replace(stage, keys=()))


def distinct(below: Plan, stage: SetOperation) -> Plan:
    """The rows of a plan, each once. stage: whose columns are of the same types."""
    return Step(Aggregate(_columns_of(stage.inner.stages), ()), (), below, Distinct())


def _distinct(below: Plan, expression: Expression) -> Plan:
    """The values of an expression, each once."""
    stages = (Project((Output("", expression),)),)
    return Step(Aggregate(_columns_of(stages), ()), (), Step(stages[0], (), below, stages[0]), Distinct())


def with_ids(plan: Plan) -> Plan | None:
    """Returns the plan with ids of rows; None where rows have none."""
    match plan:
        case Own(query) if query.stages:
            return None
        case Own(query):
            return Shared(query.scan, replace(query.scan, predicate=None))
        case Step(Project() | Filter(), below=below):
            under = with_ids(below)
            return None if under is None else replace(plan, below=under)
        case Combined(Union(), left, right):
            one, other = with_ids(left), with_ids(right)
            return None if one is None or other is None else replace(plan, left=one, right=other)
    return plan


def _reason_of(plan: Plan) -> str | None:
    """Why rows of a plan have no ids."""
    match plan:
        case Own(_, reason):
            return reason
        case Step(Project() | Filter(), below=below):
            return _reason_of(below)
        case Combined(Union(), left, right):
            return _reason_of(left) or _reason_of(right)
    return None


def _read_by(stages: Sequence[Stage]) -> frozenset[int] | None:
    """The places of the columns of a relation that stages over it read; None: all of them."""
    read: set[int] = set()
    for stage in stages:
        match stage:
            case Project(outputs):
                expressions = [output.expression for output in outputs]
            case Aggregate(keys, calls):
                expressions = [key.expression for key in keys]
                expressions += [argument for call in calls for argument in call.arguments]
                expressions += [call.filter for call in calls if call.filter is not None]
            case Filter(predicate):
                expressions = [predicate]
            case Sort(order):
                expressions = [key.expression for key in order]
            case Limit():
                expressions = []
            case RowNumber(keys, order):
                expressions = [*keys, *(key.expression for key in order)]
            case SemiJoin(keys):
                expressions = list(keys)
            case Join():
                expressions = [key for key, _ in stage.keys]
                expressions += [] if stage.condition is None else [stage.condition]
                expressions += [] if stage.latest is None else [stage.latest.outer]
            case SetOperation(kind="union"):
                expressions = []
            case SetOperation(on=tuple() as on):
                read.update(place for place, _ in on)
                expressions = []
            case Distinct() | SetOperation() | Streamed():
                return None
        read.update(column.index for expression in expressions for column in columns_of(expression))
        if isinstance(stage, Project | Aggregate):
            return frozenset(read)
    return None


def _columns_of(stages: Sequence[Stage]) -> tuple[Output, ...]:
    """The columns that the last of some stages gives."""
    for stage in reversed(stages):
        match stage:
            case Project(outputs):
                given = [(output.name, output.type) for output in outputs]
            case Aggregate(keys, calls):
                given = [(key.name, key.type) for key in keys] + [(call.name, call.type) for call in calls]
            case _:
                continue
        return tuple(Output(name, Column(place, name, type_)) for place, (name, type_) in enumerate(given))
    raise AssertionError("a stage below DISTINCT gives columns")
