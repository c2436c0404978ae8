"""EXPLAIN: what a query is made of, what it shares, what it costs, and how its answer is maintained.

Costs are times of this machine where those were measured (:class:`engine.model.maintenance.Costs`); rows are
estimated from the rows retained, by what is kept of the query's matches or else by fixed shares. ANALYZE
evaluates the query once, each stage timed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from engine.changes.operator import operator_over, operator_rule
from engine.changes.result_key import result_key
from engine.dataflow.graph import STREAMS
from engine.dataflow.operator_tree import OperatorTree
from engine.dataflow.strategy_plan import Explained, StrategyPlan
from engine.eddy.eddy import Timer
from engine.eddy.statistics import ModuleStatistics
from engine.language.query import (
    Aggregate,
    Distinct,
    Emit,
    Filter,
    Join,
    Limit,
    Project,
    Query,
    RowNumber,
    Scan,
    SemiJoin,
    SetOperation,
    Stage,
)
from engine.language.render import render_expression, render_scan, render_stage
from engine.language.update_patterns import update_patterns
from engine.model.approximation import Expected
from engine.model.changes import Operator
from engine.model.limits import Limits
from engine.model.maintenance import Costs, Maintenance, MaintenanceChoice
from engine.model.source import SourceName, Stream
from engine.model.tolerance import WEIGHT_DEFAULT
from engine.operators.chain import CompositeSource
from engine.operators.pipeline import relation_of
from engine.operators.relation import Relation
from engine.operators.scan import ScanAt, is_range
from engine.overload.precision.of_query import CopiesOf, approximate_steps
from engine.promising.found import FoundPairs
from engine.queries.plan_preference import PlanPreference
from engine.results.found_answers import Found, evaluate_found, found_at
from engine.standing.query import StandingQuery
from engine.stems.query_stem import QueryStem
from engine.windows.clauses import UNBOUNDED

FILTERED, GROUPED, KEPT_ONCE, JOINED, TOPPED = 1 / 3, 0.1, 0.5, 0.5, 0.1
"""Shares of rows that are taken to leave a filter, an aggregate with keys, DISTINCT, a semi-join, a top n; of
pairs, by a join without keys: as a filter."""

SAMPLED_ROWS = 4_096
"""So many of the last rows tell how many match where no matches are kept."""


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


def explain(
    query: Query,
    streams: Mapping[SourceName, Stream],
    standing: StandingQuery | None,
    choice: MaintenanceChoice,
    stems: Mapping[SourceName, QueryStem],
    at: Mapping[SourceName, ScanAt],
    costs: Costs | None,
    limits: Limits,
    timer: Timer | None,
    joined: Mapping[str, tuple[ModuleStatistics, ...]],
    waits_for: tuple[str, ...],
    graph: Explained,
    late: Mapping[SourceName, float],
    readers: Mapping[SourceName, int],
    preference: PlanPreference | None,
    found: Found,
    copies_of: CopiesOf,
    *,
    followed: bool,
) -> Plan:
    """The plan. streams: those it reads, tables too. standing: None for a query that is not registered.
    timer: to ANALYZE. joined: the modules of the join that it shares. waits_for: streams without a NOW.
    graph: the operators of its changes. late: the share of rows of each source that came too late.
    readers: how many queries read each. preference: of a query that has one; found: for it so far.
    followed: it emits them, or somebody follows it.
    """
    rows = list(estimated_rows(query, at))
    tables = {name: stream for name, stream in streams.items() if stream.is_table}
    key = result_key(query, streams)
    steps = [
        PlanStep(lines[0], lines[1:], pattern.name, estimated, _estimated_ns(place, rows, query, at, costs))
        for place, (lines, pattern, estimated) in enumerate(
            zip(_lines(query), update_patterns(query, tables), rows, strict=True)
        )
    ]
    asked = None if standing is None or standing.allotted is None else standing.asked
    precision = approximate_steps(
        query, lambda inner: list(estimated_rows(inner, at)), late, asked, copies_of
    )
    if precision is not None:
        places = range(len(steps)) if asked is None else _places(asked, query)
        steps = [
            replace(step, expected=one.expected)
            for step, one in zip(steps, (precision[place] for place in places), strict=True)
        ]
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
    return Plan(
        standing.query_id if standing is not None else None,
        query.sources,
        query.uses,
        choice.maintenance,
        choice.reason,
        standing is not None and standing.paused,
        tuple(_predicates(query, standing, stems)),
        tuple(steps),
        {f"query-stem/{name}": stems[name].statistics() for name in query.sources} | dict(joined),
        waits_for,
        operator_over(query, streams),
        operator_rule(query, streams),
        query.emit,
        None if key is None else tuple(query.columns[place][0] for place in key),
        followed,
        graph.tree,
        graph.strategy,
        tuple(_view(scan, at[scan.source], readers[scan.source]) for scan in query.scans()),
        _is_as_from_now(query, streams),
        (query if standing is None else standing).tolerance.named(),
        (query.weight or WEIGHT_DEFAULT) if standing is None else standing.weight,
        preference,
    )


def _places(asked: Query, less: Query) -> Iterator[int]:
    """For each step of a query that is given less, the step of the one that is asked: what it scales follows
    the aggregate that it scales.
    """
    yield 0
    place = 0
    left = len(less.stages) - len(asked.stages)
    for before, stage in zip((None, *less.stages), less.stages, strict=False):
        scales = left > 0 and isinstance(before, Aggregate) and isinstance(stage, Project)
        if scales:
            left -= 1
        else:
            place += 1
        yield place


def _is_as_from_now(query: Query, streams: Mapping[SourceName, Stream]) -> bool:
    """Whether [UNBOUNDED] of a stream is as good as [NOW] to tell the query's changes: ISTREAM of a selection
    (STREAM, section 2.2). Of a join it never is: what a stream is joined with may change.
    """
    scan = query.scan
    if operator_over(query, streams) != "istream" or streams[scan.source].is_table:
        return False
    selects = all(isinstance(stage, Filter | Project) for stage in query.stages)
    return selects and scan.window == UNBOUNDED and scan.assignment is None


def _lines(query: Query) -> Iterable[tuple[str, ...]]:
    yield (f"scan {query.source}", *render_scan(query.scan))
    for stage in query.stages:
        first, *inside = render_stage(stage)
        yield (first, *(line.removeprefix("  ") for line in inside))


def _predicates(
    query: Query, standing: StandingQuery | None, stems: Mapping[SourceName, QueryStem]
) -> Iterable[PlanPredicate]:
    for source, predicate in query.predicates():
        slot = None if standing is None else standing.slot_of(source, predicate)
        facts = {} if slot is None else stems[source].explain(slot)
        others = stems[source].holders_of(predicate) - (slot is not None)
        yield PlanPredicate(source, render_expression(predicate), facts, max(0, others))


def estimated_rows(query: Query, at: Mapping[SourceName, ScanAt]) -> Iterable[float]:
    """Of the scan, then of each stage."""
    rows = _scanned(query.scan, at[query.source])
    yield rows
    for stage in query.stages:
        rows = _left(stage, rows, at)
        yield rows


def _range(scan: Scan, at: ScanAt) -> tuple[int, int]:
    """The ordinals among which the rows of a scan are."""
    if is_range(scan):
        window = at.window(scan)
        return window.start, window.stop
    return at.rows.base, at.end


def _view(scan: Scan, at: ScanAt, queries: int) -> PlanView:
    begin, end = _range(scan, at)
    return PlanView(scan.source, begin, end, at.rows.base, at.rows.end, queries)


def _scanned(scan: Scan, at: ScanAt) -> float:
    predicate = scan.predicate
    start, stop = _range(scan, at)
    if predicate is None or at.slot_of(predicate) is not None:
        return at.count(predicate, start, stop)
    sampled = min(SAMPLED_ROWS, stop - start)
    return (stop - start) * at.count(predicate, stop - sampled, stop) / max(1, sampled)


def _left(stage: Stage, rows: float, at: Mapping[SourceName, ScanAt]) -> float:
    match stage:
        case Join(inner, kind, keys):
            *_, others = estimated_rows(inner, at)
            if kind in ("semi", "anti"):
                return rows * JOINED
            found = max(rows, others) if keys else rows * others * FILTERED
            return max(
                found, rows if kind in ("left", "full") else 0, others if kind in ("right", "full") else 0
            )
        case SetOperation("union", inner):
            *_, others = estimated_rows(inner, at)
            return rows + others
        case SetOperation(kind, inner):
            *_, others = estimated_rows(inner, at)
            return min(rows, others) * JOINED if kind == "intersect" else max(rows - others, rows * JOINED)
        case Aggregate(keys=()):
            return 1
        case Aggregate():
            return rows * GROUPED
        case Filter():
            return rows * FILTERED
        case Distinct():
            return rows * KEPT_ONCE
        case SemiJoin():
            return rows * JOINED
        case RowNumber(count=int()):
            return rows * TOPPED
        case Limit(count, offset):
            left = max(0.0, rows - offset)
            return left if count is None else min(left, count)
        case _:
            return rows


def _estimated_ns(
    place: int, rows: list[float], query: Query, at: Mapping[SourceName, ScanAt], costs: Costs | None
) -> float | None:
    """Of the scan: reading kept matches, or evaluating the predicate; of a stage: touching its rows once."""
    if costs is None:
        return None
    if place:
        return rows[place - 1] * costs.gather_ns
    predicate, scan_at = query.scan.predicate, at[query.source]
    if predicate is None:
        return costs.answer_ns
    start, stop = _range(query.scan, scan_at)
    kept = scan_at.slot_of(predicate) is not None
    return costs.answer_ns + (stop - start) * (costs.read_ns if kept else costs.evaluate_ns)


def _analyzed(
    query: Query,
    at: Mapping[SourceName, ScanAt],
    limits: Limits,
    timer: Timer,
    composites: CompositeSource | None,
) -> Iterable[tuple[int, int]]:
    """(rows, nanoseconds) of the scan and each stage: of ever more stages, and what each adds."""
    _evaluated(query, at, limits, composites)  # what is compiled at its first use is no part of a stage
    before = 0
    for count in range(len(query.stages) + 1):
        began = timer()
        relation = _evaluated(replace(query, stages=query.stages[:count]), at, limits, composites)
        spent = timer() - began
        yield len(relation), max(0, spent - before)
        before = spent


def _evaluated(
    query: Query, at: Mapping[SourceName, ScanAt], limits: Limits, composites: CompositeSource | None
) -> Relation:
    """A relation with all its columns, which are made when they are read."""
    relation = relation_of(query, at, limits, STREAMS, composites)
    for place in range(len(relation.columns)):
        relation.columns[place]
    return relation
