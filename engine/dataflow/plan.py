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


Plan = Shared | Own | Step


def plan_of(query: Query, tables: Container[SourceName]) -> Plan:
    """tables: which sources are."""
    plan: Plan = Own(_first(query, 0))
    if query.source not in tables and _is_shared(query.scan):
        plan = Shared(replace(query.scan, predicate=None), query.scan)
    for place, stage in enumerate(query.stages):
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
