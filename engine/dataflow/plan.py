"""From a bound query to the nodes of a graph: which of its stages have operators that keep state.

What has none, and the stages before it, are worked out by a leaf of the query's own
(:mod:`engine.dataflow.operators.flow`).
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass, replace

from engine.dataflow.calls import is_incremental
from engine.dataflow.node import Node
from engine.dataflow.operators.group import GroupNode
from engine.dataflow.operators.rows import ConditionNode, FilterNode, ProjectNode
from engine.dataflow.parameters import Constants, parameterised
from engine.language.expressions import Column
from engine.language.query import (
    Aggregate,
    Distinct,
    Filter,
    Limit,
    Output,
    Project,
    Query,
    Scan,
    Sort,
    Stage,
)
from engine.model.source import SourceName
from engine.model.types import Kind
from engine.windows.assignment import Hop
from engine.windows.clauses import TimeWindow


@dataclass(frozen=True, slots=True)
class Plan:
    """leaf: the scan that queries of a shape share, without its predicate; or a query's own first stages.
    stages: those above, each an operator.
    """

    leaf: Scan | Query
    stages: tuple[Stage, ...]


def plan_of(query: Query, tables: Container[SourceName]) -> Plan:
    """tables: which sources are."""
    split = _first_incremental(query.stages)
    if not split and query.source not in tables and _is_shared(query.scan):
        return Plan(replace(query.scan, predicate=None), _operators(query.stages, 0))
    own = replace(query, sql="", stages=query.stages[:split], uses=(), operator=None, emit=None)
    return Plan(own, _operators(query.stages, split))


def own_of(query: Query) -> Plan:
    """The whole query as a leaf of its own."""
    return Plan(replace(query, sql="", uses=(), operator=None, emit=None), ())


def is_selection(query: Query) -> bool:
    """Whether a query over a stream gives columns of the rows of a plain window of time, and does no more."""
    scan = query.scan
    return (
        len(query.stages) == 1
        and isinstance(query.stages[0], Project)
        and scan.assignment is None
        and isinstance(scan.window, TimeWindow)
    )


def shape_of(stage: Stage) -> tuple[Stage, Constants]:
    """A stage of a plan without the constants in which queries of a shape may differ, and those."""
    if not isinstance(stage, Filter):
        return stage, ()
    predicate, constants = parameterised(stage.predicate)
    return Filter(predicate), constants


def node_of(shape: Stage, constants: Constants, below: Node) -> Node:
    """The operator of a stage, over another. constants: of any query of the shape."""
    match shape:
        case Project(outputs):
            return ProjectNode(below, outputs)
        case Filter(predicate) if constants:
            return ConditionNode(below, predicate, [literal.type for literal in constants])
        case Filter(predicate):
            return FilterNode(below, predicate)
        case Aggregate():
            return GroupNode(below, shape)
    raise AssertionError(shape)


def _is_shared(scan: Scan) -> bool:
    """Whether the predicate of a scan of a stream has no influence on which rows its window holds."""
    window = scan.window
    if isinstance(window, TimeWindow):
        return scan.assignment is None or isinstance(scan.assignment, Hop)
    return scan.assignment is None and window.plain


def _first_incremental(stages: Sequence[Stage]) -> int:
    """From this stage on each has an operator."""
    for place in range(len(stages) - 1, -1, -1):
        if not _is_incremental(stages, place):
            return place + 1
    return 0


def _is_incremental(stages: Sequence[Stage], place: int) -> bool:
    match stages[place]:
        case Project() | Filter():
            return True
        case Sort():
            return not any(isinstance(above, Limit) for above in stages[place + 1 :])
        case Aggregate(keys, calls):
            return not _has_arrays(keys) and all(map(is_incremental, calls))
        case Distinct():
            return not _has_arrays(_columns_of(stages[:place]))
    return False


def _has_arrays(columns: Sequence[Output]) -> bool:
    """Whether equal values may be told apart, by the sign of a zero in an array, so that the first row
    decides.
    """
    return any(column.type.kind is Kind.ARRAY for column in columns)


def _operators(stages: Sequence[Stage], first: int) -> tuple[Stage, ...]:
    """Stages from one on, without those that change nothing but the order; DISTINCT as GROUP BY."""
    found: list[Stage] = []
    for place in range(first, len(stages)):
        match stages[place]:
            case Sort():
                pass
            case Distinct():
                found.append(Aggregate(_columns_of(stages[:place]), ()))
            case stage:
                found.append(stage)
    return tuple(found)


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
