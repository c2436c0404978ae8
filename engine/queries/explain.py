"""EXPLAIN: what a query is made of, what it shares, what it costs, and how its answer is maintained.

Costs are times of this machine where those were measured (:class:`engine.model.maintenance.Costs`); rows are
estimated from the rows retained, by what is kept of the query's matches or else by fixed shares. ANALYZE
evaluates the query once, each stage timed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Protocol

from engine.changes.operator import operator_over, operator_rule
from engine.changes.result_key import result_key
from engine.dataflow.cost.estimated_rows import estimated_rows, ordinals
from engine.dataflow.graph import STREAMS
from engine.dataflow.operator_tree import ExpectedOf, OperatorTree
from engine.dataflow.plan import Plan as DataflowPlan
from engine.dataflow.strategy_plan import Explained, StrategyPlan
from engine.eddy.eddy import Timer
from engine.eddy.statistics import ModuleStatistics
from engine.language.query import Emit, Query, Scan
from engine.language.render import render_expression, render_scan, render_stage
from engine.language.update_patterns import update_patterns
from engine.model.approximation import Expected
from engine.model.changes import Operator
from engine.model.expressions import Expression
from engine.model.limits import Limits
from engine.model.maintenance import Costs, Maintenance
from engine.model.source import SourceName, Stream
from engine.model.tolerance import WEIGHT_DEFAULT
from engine.operators.chain import CompositeSource
from engine.operators.pipeline import relation_of
from engine.operators.relation import Relation
from engine.operators.scan import ScanAt
from engine.overload.precision.of_query import approximate_steps
from engine.promising.found import FoundPairs
from engine.queries.plan_inputs import PlanInputs
from engine.queries.plan_preference import PlanPreference
from engine.stems.factors import Factors, factors
from engine.views.found_answers import evaluate_found, found_at
from engine.windows.clauses import UNBOUNDED
from tureen.errors import LimitExceeded


class StandingWork(Protocol):
    """Knows the operators and the predicates that stand."""

    def operators(
        self, plan: DataflowPlan, sources: Sequence[SourceName], expected_of: ExpectedOf
    ) -> OperatorTree:
        """The operators of a plan, with what those that are there keep."""
        ...

    def holders(self, predicates: Sequence[tuple[SourceName, Expression, Factors]]) -> list[int]:
        """How many queries have each of these predicates."""
        ...


Told = tuple[OperatorTree, list[int]]
Ask = Callable[[Callable[[StandingWork], Told]], Told]


TWICE_NS = 200_000_000
"""What ANALYZE evaluates in less is evaluated once more."""


@dataclass(frozen=True, slots=True)
class PlanStep:
    """One operator, from the scan up, with what it does, a line each.

    pattern: update pattern of the edge that leaves it (MON, WKS, WK, STR). estimated_ns: of one evaluation;
    None where nothing was measured. actual_*: of ANALYZE. expected: the precision of what leaves it; None
    where that is exact, or nothing tells.
    """

    operator: str
    details: tuple[str, ...]
    pattern: str
    estimated_rows: float
    estimated_ns: float | None
    actual_rows: int | None = None
    actual_ns: int | None = None
    expected: Expected | None = None


@dataclass(frozen=True, slots=True)
class PlanPredicate:
    """A predicate of the plan, over rows of a source. facts: how its Query SteM serves it; empty where no
    matches are kept. shared_with: how many other queries have the same, so that it is looked at once.
    """

    source: str
    predicate: str
    facts: Mapping[str, Any]
    shared_with: int


@dataclass(frozen=True, slots=True)
class PlanView:
    """The window of a scan as a view of the one store of its source, which all windows over it share: rows
    are numbered as they came, and a row goes when the last window has passed it.

    begin, end: the rows of the window, end excluded, before any condition; of windows that are no range of
    rows (by keys, by a condition) those among which they are. store_begin, store_end: the rows there are.
    queries: those that read the source.
    """

    source: str
    begin: int
    end: int
    store_begin: int
    store_end: int
    queries: int


@dataclass(frozen=True, slots=True)
class Plan:
    """How a query is answered.

    modules: what rows go through on their way to its matches, shared with other queries, by where it is: the
    Query SteM of each source, the join. waits_for: streams that have no NOW yet, so that the query has none.
    operator: which changes of its answer leave it (:data:`engine.model.changes.Operator`), operator_rule: by
    which rule, in words; emit: where to, None: nowhere but to those who follow it. key: the columns that tell
    its rows apart, None: no key does. graph: the operators that its changes come from while it is followed,
    shared with other followed queries. views: of each scan, in the order of the text. as_from_now: its
    changes are those rows of an unbounded stream that come, so they are told from [NOW] alone, and none is
    kept for them. tolerance, weight: by its options, else by its text. preference: where its rows come from,
    if it has one.
    """

    query_id: str | None
    sources: tuple[str, ...]
    uses: tuple[str, ...]
    maintenance: Maintenance
    reason: str
    paused: bool
    predicates: tuple[PlanPredicate, ...]
    steps: tuple[PlanStep, ...]
    modules: Mapping[str, tuple[ModuleStatistics, ...]]
    waits_for: tuple[str, ...]
    operator: Operator
    operator_rule: str
    emit: Emit | None
    key: tuple[str, ...] | None
    followed: bool
    graph: OperatorTree
    strategy: StrategyPlan
    views: tuple[PlanView, ...]
    as_from_now: bool
    tolerance: Mapping[str, float]
    weight: float
    preference: PlanPreference | None = None

    def as_dict(self) -> dict[str, Any]:
        """As JSON values."""
        return asdict(self)


def planned(inputs: PlanInputs, ask: Ask, timer: Timer | None) -> Plan:
    """The plan, in any thread. ask: has the engine asked between two steps, and waits for what it says, in
    O(operators + constants of the query). timer: to ANALYZE. Raises as :func:`explain`.
    """
    strategy = inputs.strategy
    way = strategy.way()
    expected_of, operators = inputs.sources.expected_of(way.query, inputs.asked), strategy.plan(way)
    others = [
        (one.source, one.predicate, factors(one.predicate)) for one in inputs.predicates if one.others is None
    ]
    tree, counts = ask(
        lambda engine: (
            engine.operators(operators, way.query.sources, expected_of),
            engine.holders(others) if others else [],
        )
    )
    known = iter(counts)
    predicates = tuple(
        replace(one, others=next(known)) if one.others is None else one for one in inputs.predicates
    )
    return explain(replace(inputs, predicates=predicates), strategy.explained(way, tree), timer)


def explain(inputs: PlanInputs, graph: Explained, timer: Timer | None) -> Plan:
    """The plan. graph: the operators of its changes. timer: to ANALYZE.

    Raises LimitExceeded, and what the caller ends the work with (:mod:`engine.model.interruption`).
    """
    query, standing, streams, limits = inputs.query, inputs.standing, inputs.streams, inputs.sources.limits
    at = inputs.setting.at
    if standing is not None:
        at = standing.at(at)
    key = result_key(query, streams)
    steps = _estimated(inputs, at)
    preference, found = inputs.preference, inputs.found
    if timer is not None:
        composites = found if preference is not None and isinstance(found, FoundPairs) else None
        seen = at if preference is None else found_at(query, at, found)
        times = _analyzed(query, seen, limits, timer, composites)
        if preference is not None:
            answer = evaluate_found(query, at, found, limits.snapshot_rows_max, limits)
            preference = replace(preference, visited=dict(answer.visited))
        steps = [
            replace(step, actual_rows=count, actual_ns=spent)
            for step, (count, spent) in zip(steps, times, strict=True)
        ]
    choice = inputs.choice()
    inputs.require_slots()
    return Plan(
        standing.query_id if standing is not None else None,
        query.sources,
        query.views,
        choice.maintenance,
        choice.reason,
        standing is not None and standing.paused,
        tuple(
            PlanPredicate(one.source, render_expression(one.predicate), one.facts, one.others or 0)
            for one in inputs.predicates
        ),
        tuple(steps),
        inputs.modules,
        inputs.waits_for,
        operator_over(query, streams),
        operator_rule(query, streams),
        query.emit,
        None if key is None else tuple(query.columns[place][0] for place in key),
        inputs.followed,
        graph.tree,
        graph.strategy,
        tuple(_view(scan, at[scan.source], inputs.readers[scan.source]) for scan in query.scans()),
        _is_as_from_now(query, streams),
        (query if standing is None else standing).tolerance.named(),
        (query.weight or WEIGHT_DEFAULT) if standing is None else standing.weight,
        preference,
    )


def _estimated(inputs: PlanInputs, at: Mapping[SourceName, ScanAt]) -> list[PlanStep]:
    """The steps of the plan with what is expected of them, before anything is measured."""
    query, asked = inputs.query, inputs.asked
    rows = list(estimated_rows(query, at))
    tables = {name: stream for name, stream in inputs.streams.items() if stream.is_table}
    steps = [
        PlanStep(
            lines[0],
            lines[1:],
            pattern.name,
            estimated,
            _estimated_ns(place, rows, query, at, inputs.planner.costs),
        )
        for place, (lines, pattern, estimated) in enumerate(
            zip(_lines(query), update_patterns(query, tables), rows, strict=True)
        )
    ]
    precision = approximate_steps(
        query,
        lambda inner: list(estimated_rows(inner, at)),
        inputs.sources.late,
        asked,
        inputs.sources.copies_of,
    )
    if precision is None:
        return steps
    places = range(len(steps)) if asked is None else _places(asked, query)
    return [
        replace(step, expected=one.expected)
        for step, one in zip(steps, (precision[place] for place in places), strict=True)
    ]


def _places(asked: Query, less: Query) -> Iterator[int]:
    """For each step of a query that is given less, the step of the one that is asked: what it scales follows
    the aggregate that it scales.
    """
    yield 0
    place = 0
    left = len(less.stages) - len(asked.stages)
    for before, stage in zip((None, *less.stages), less.stages, strict=False):
        follows = before is not None and before.aggregate is not None
        if left > 0 and follows and stage.outputs_of_rows is not None:
            left -= 1
        else:
            place += 1
        yield place


def _is_as_from_now(query: Query, streams: Mapping[SourceName, Stream]) -> bool:
    """Whether [UNBOUNDED] of a stream is as good as [NOW] to tell the query's changes: ISTREAM of a selection
    (STREAM, section 2.2). For a join it never is: what a stream is joined with may change.
    """
    scan = query.scan
    if operator_over(query, streams) != "istream" or streams[scan.source].is_table:
        return False
    return query.selects and scan.window == UNBOUNDED and scan.assignment is None


def _lines(query: Query) -> Iterable[tuple[str, ...]]:
    yield (f"scan {query.source}", *render_scan(query.scan))
    for stage in query.stages:
        first, *inside = render_stage(stage)
        yield (first, *(line.removeprefix("  ") for line in inside))


def _view(scan: Scan, at: ScanAt, queries: int) -> PlanView:
    begin, end = ordinals(scan, at)
    return PlanView(scan.source, begin, end, at.rows.base, at.rows.end, queries)


def _estimated_ns(
    place: int, rows: list[float], query: Query, at: Mapping[SourceName, ScanAt], costs: Costs | None
) -> float | None:
    """Estimates the time of a step of a plan, in ns. The scan (place 0) reads kept matches or evaluates its
    predicate; a stage touches each of its rows once. None: no costs were measured.
    """
    if costs is None:
        return None
    if place:
        return rows[place - 1] * costs.gather_ns
    predicate, scan_at = query.scan.predicate, at[query.source]
    if predicate is None:
        return costs.answer_ns
    start, stop = ordinals(query.scan, scan_at)
    kept = scan_at.slot_of(predicate) is not None
    return costs.answer_ns + (stop - start) * (costs.read_ns if kept else costs.evaluate_ns)


def _analyzed(
    query: Query,
    at: Mapping[SourceName, ScanAt],
    limits: Limits,
    timer: Timer,
    composites: CompositeSource | None,
) -> list[tuple[int, int]]:
    """(rows, nanoseconds) of the scan and each stage. What takes little is evaluated twice, since what is
    compiled at its first use is no part of a stage. Raises LimitExceeded.
    """
    ranges = (ordinals(scan, at[scan.source]) for scan in query.scans())
    rows = sum(end - begin for begin, end in ranges)
    if rows > limits.analyze_rows_max:
        hint = "EXPLAIN without ANALYZE estimates; or narrow the windows"
        raise LimitExceeded("analyze_rows_max", limits.analyze_rows_max, rows, hint=hint)
    began = timer()
    found = _timed(query, at, limits, timer, composites)
    return _timed(query, at, limits, timer, composites) if timer() - began < TWICE_NS else found


def _timed(
    query: Query,
    at: Mapping[SourceName, ScanAt],
    limits: Limits,
    timer: Timer,
    composites: CompositeSource | None,
) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    before = timer()

    def reached(relation: Relation) -> None:
        nonlocal before
        for place in range(len(relation.columns)):  # columns are made when they are read
            relation.columns[place]
        now = timer()
        found.append((len(relation), max(0, now - before)))
        before = now

    if composites is None:
        relation_of(query, at, limits, STREAMS, reached=reached)
        return found
    for count in range(len(query.stages) + 1):  # its leading joins are read from pairs, all at once
        before = timer()
        reached(relation_of(replace(query, stages=query.stages[:count]), at, limits, STREAMS, composites))
    spent = [each for _, each in found]
    return [(rows, max(0, ns - less)) for (rows, ns), less in zip(found, [0, *spent], strict=False)]
