"""From a bound query to the operators of a graph.

A stage that has no operator is worked out, with all below it, by a leaf of the query's own
(:mod:`engine.dataflow.operators.flow`).
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass, replace

from engine.dataflow.calls import is_incremental
from engine.dataflow.node import Node
from engine.dataflow.operators.group import GroupNode
from engine.dataflow.operators.join import RIGHT, InnerJoinNode, JoinNode, Matching
from engine.dataflow.operators.match import MatchNode
from engine.dataflow.operators.rows import ConditionNode, FilterNode, ProjectNode
from engine.dataflow.parameters import Constants, parameterised
from engine.language.expressions import Column, Expression, IsNull, Literal, Or, columns_of
from engine.language.query import (
    Aggregate,
    Distinct,
    Filter,
    Join,
    JoinKind,
    Limit,
    Output,
    Project,
    Query,
    RowNumber,
    Scan,
    SemiJoin,
    Sort,
    Stage,
)
from engine.model.source import SourceName
from engine.model.types import BOOLEAN, Kind
from engine.windows.assignment import Hop
from engine.windows.clauses import TimeWindow


@dataclass(frozen=True, slots=True)
class Shared:
    """A leaf that queries share: a scan without its predicate, which is a column of it. scan: the query's."""

    kind: Scan
    scan: Scan


@dataclass(frozen=True, slots=True)
class Own:
    """A leaf of a query's own: its first stages."""

    query: Query


@dataclass(frozen=True, slots=True)
class Step:
    """An operator over another. shape: the stage, without the constants in which queries may differ."""

    shape: Stage
    constants: Constants
    below: Plan


@dataclass(frozen=True, slots=True)
class Joined:
    """A join of two plans."""

    matching: Matching
    left: Plan
    right: Plan


Plan = Shared | Own | Step | Joined


def plan_of(query: Query, tables: Container[SourceName]) -> Plan:
    """tables: which sources are."""
    plan: Plan = Own(_first(query, 0))
    if query.source not in tables and _is_shared(query.scan):
        plan = Shared(replace(query.scan, predicate=None), query.scan)
    for place, stage in enumerate(query.stages):
        if isinstance(stage, Join):
            above = _joined(stage, plan, query.stages[place + 1 :], tables)
        elif isinstance(stage, SemiJoin):
            above = _among(stage, plan, query.stages[place + 1 :], tables)
        else:
            above = _above(stage, plan, query.stages, place)
        plan = Own(_first(query, place + 1)) if above is None else above
    return plan


def own_of(query: Query) -> Plan:
    """The whole query as a leaf of its own."""
    return Own(_first(query, len(query.stages)))


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
        case Aggregate() as stage:
            return GroupNode(below, stage)
    raise AssertionError(step.shape)


def join_of(joined: Joined, left: Node, right: Node) -> JoinNode:
    """The operator of a join, over two others."""
    kind = InnerJoinNode if joined.matching.kind == "inner" else MatchNode
    return kind(left, right, joined.matching)


def _first(query: Query, stages: int) -> Query:
    return replace(query, sql="", stages=query.stages[:stages], uses=(), operator=None, emit=None)


def _is_shared(scan: Scan) -> bool:
    """Whether the predicate of a scan of a stream has no influence on which rows its window holds."""
    window = scan.window
    if isinstance(window, TimeWindow):
        return scan.assignment is None or isinstance(scan.assignment, Hop)
    return scan.assignment is None and window.plain


def _above(stage: Stage, below: Plan, stages: Sequence[Stage], place: int) -> Plan | None:
    """A stage over a plan; None where it has no operator. stages: those of the query."""
    match stage:
        case Project():
            return Step(stage, (), below)
        case Filter(predicate):
            shape, constants = parameterised(predicate)
            return Step(Filter(shape), constants, below)
        case Sort() if not any(isinstance(above, Limit) for above in stages[place + 1 :]):
            return below
        case Aggregate(keys, calls) if not _has_arrays(keys) and all(map(is_incremental, calls)):
            return Step(stage, (), below)
        case Distinct():
            keys = _columns_of(stages[:place])
            return None if _has_arrays(keys) else Step(Aggregate(keys, ()), (), below)
    return None


def _joined(
    stage: Join, left: Plan, following: Sequence[Stage], tables: Container[SourceName]
) -> Plan | None:
    """A join over a plan; None where it has no operator. following: the stages above it."""
    if stage.latest is not None:
        return None
    one, other = _with_ids(left), _with_ids(plan_of(stage.inner, tables))
    if one is None or other is None:
        return None
    return Joined(Matching(stage.kind, stage.keys, stage.condition, _read_by(following)), one, other)


def _among(
    stage: SemiJoin, left: Plan, following: Sequence[Stage], tables: Container[SourceName]
) -> Plan | None:
    """IN or EXISTS over a plan; None where it has no operator. following: the stages above it."""
    one, inner = _with_ids(left), plan_of(stage.inner, tables)
    columns = _columns_of(stage.inner.stages)
    if one is None or _has_arrays(columns):
        return None
    kind: JoinKind = "anti" if stage.negated else "semi"
    read = _read_by(following)
    if not stage.keys:
        return Joined(Matching(kind, (), None, read), one, _distinct(inner, Literal(True, BOOLEAN)))
    keys = tuple((key, column.expression) for key, column in zip(stage.keys, columns, strict=True))
    found = Joined(Matching(kind, keys, None, read), one, Step(Aggregate(columns, ()), (), inner))
    if not (stage.negated and stage.null_aware):
        return found
    key, column = keys[0]
    if not isinstance(key, Column):  # an error counts as NULL, but not to IsNull
        return None
    found = replace(
        found, matching=replace(found.matching, read=None if read is None else read | {key.index})
    )
    unknown = Or((IsNull(key), Column(RIGHT, "", BOOLEAN)))
    return Joined(Matching(kind, (), unknown, read), found, _distinct(inner, IsNull(column)))


def _distinct(below: Plan, expression: Expression) -> Plan:
    """The values of an expression, each once."""
    stages = (Project((Output("", expression),)),)
    return Step(Aggregate(_columns_of(stages), ()), (), Step(stages[0], (), below))


def _with_ids(plan: Plan) -> Plan | None:
    """The same with ids of rows; None where rows have none."""
    match plan:
        case Own(query) if query.stages or query.scan.history:
            return None
        case Own(query):
            return Shared(query.scan, replace(query.scan, predicate=None))
        case Step(Project() | Filter(), _, below):
            under = _with_ids(below)
            return None if under is None else replace(plan, below=under)
    return plan


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
            case Distinct():
                return None
        read.update(column.index for expression in expressions for column in columns_of(expression))
        if isinstance(stage, Project | Aggregate):
            return frozenset(read)
    return None


def _has_arrays(columns: Sequence[Output]) -> bool:
    """Whether equal values may be told apart, by the sign of a zero in an array, so that the first row
    decides.
    """
    return any(column.type.kind is Kind.ARRAY for column in columns)


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
