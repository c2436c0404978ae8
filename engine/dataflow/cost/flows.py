"""What passes the edges of a plan: estimates, from the scans up.

Where nothing better is known a filter lets a third through, and half of the rows have values of their own. A
join gives as many pairs as rows of equal values are expected to meet; a row is there for as long as the
number of rows over the rate at which they come says (Little).
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass, replace
from math import erf, exp, inf, pi, sqrt

from engine.algebra.aggregate.stage import Aggregate
from engine.algebra.distinct.stage import Distinct
from engine.algebra.filter.stage import Filter
from engine.algebra.join.stage import Join
from engine.algebra.limit.stage import Limit
from engine.algebra.operators import Stage
from engine.algebra.project.stage import Output, Project
from engine.algebra.row_number.stage import RowNumber
from engine.algebra.semi_join.stage import SemiJoin
from engine.algebra.set_operation.stage import SetOperation
from engine.dataflow.cost.statistics import Statistics, ValueSample
from engine.language.query import Query, Scan
from engine.language.update_patterns import Pattern, PatternEdge, edge_above
from engine.model.expressions import Column, Expression
from engine.model.source import SourceName
from engine.windows.assignment import WINDOW_COLUMNS
from engine.windows.clauses import RowWindow, TimeWindow

FILTERED, OWN_VALUES, MATCHED, TOPPED = 1 / 3, 0.5, 0.5, 0.1
"""Shares: of rows that a filter lets through; of values among rows; of left rows that have an equal on the
right; of rows that are the first of a ROW_NUMBER."""

TwoInputs = Join | SemiJoin | SetOperation

Origin = tuple[Scan, int]
"""A column of a scan."""


@dataclass(frozen=True, slots=True)
class Flow:
    """What passes an edge.

    rate: rows a second that enter. rows: that are there. edge: its update pattern. columns: where each column
    is from, None: it is computed. span_ms: at most so long from a row's entry to its foretold exit; inf: no
    exit is foretold. premature: the share of rows that leave before their foretold exit. steps_per_s: how
    often something is looked at.
    """

    rate: float
    rows: float
    edge: PatternEdge
    columns: tuple[Origin | None, ...]
    span_ms: float
    premature: float
    steps_per_s: float
    is_plain: bool = False
    """Its rows are some of a scan's, of which each is as likely as another."""
    left: tuple[tuple[Origin | None, ...], ValueSample] | None = None
    """What a negation leaves: the columns that it compares, and a sample of their values; else None."""

    @property
    def pattern(self) -> Pattern:
        return self.edge.pattern

    @property
    def leaving(self) -> float:
        """Rows a second that leave, in the long run as many as enter."""
        return 0.0 if self.pattern is Pattern.MON else self.rate

    def scaled(self, share: float, edge: PatternEdge) -> Flow:
        """So large a share of the rows."""
        rate, rows = self.rate * share, self.rows * share
        return replace(self, rate=rate, rows=rows, edge=edge)


@dataclass(frozen=True, slots=True)
class JoinedInput:
    """What a group has of an input of the joins below it.

    rows: of the input, in the mean; all of them where no key is one of its columns. grouped: whether one is.
    summed: whether a value that is added is. unevenness: of :meth:`ValueSample.unevenness`, of its partners.
    """

    rows: float
    grouped: bool = False
    summed: bool = False
    unevenness: float = 0.0


def of_scan(scan: Scan, tables: Container[SourceName], known: Statistics) -> Flow:
    """What a leaf gives."""
    edge = PatternEdge.of_scan(scan, tables)
    rows, window = known.held(scan), known.window(scan)
    share = min(1.0, rows / window) if window else FILTERED if scan.predicate is not None else 1.0
    rate = known.rows_per_s.get(scan.source, 0.0) * share
    own = [(scan, place) for place in range(known.widths.get(scan.source, 0))]
    columns = *own, *[None] * (len(WINDOW_COLUMNS) if scan.assignment is not None else int(scan.history))
    premature = 1.0 if scan.source in tables else 0.0
    steps = known.steps_per_s.get(scan.source, 0.0)
    span = _span_ms(scan, edge, rows, rate)
    return Flow(rate, rows, edge, columns, span, premature, steps, is_plain=True)


def _span_ms(scan: Scan, edge: PatternEdge, rows: float, rate: float) -> float:
    window = scan.window
    if isinstance(window, TimeWindow) and window.begin is not None and window.begin.relative:
        end = window.end.ms if window.end.relative else 0
        return float(max(1, end - window.begin.ms + 1 + (window.slide_ms or 0)))
    if isinstance(window, RowWindow) and edge.pattern is Pattern.STR and rate:
        return 1_000 * rows / rate
    return inf


def of_query(query: Query, tables: Container[SourceName], known: Statistics) -> Flow:
    """What some stages give over their scan."""
    flow = of_scan(query.scan, tables, known)
    for stage in query.stages:
        if isinstance(stage, TwoInputs):
            flow = of_two(stage, flow, of_query(stage.inner, tables, known), known)
        else:
            flow = above(stage, flow, known)
    return flow


def most_rows(query: Query, tables: Container[SourceName], known: Statistics) -> float:
    """How many rows are there at most on an edge of it."""
    flow = of_scan(query.scan, tables, known)
    most = flow.rows
    for stage in query.stages:
        if isinstance(stage, TwoInputs):
            most = max(most, most_rows(stage.inner, tables, known))
            flow = of_two(stage, flow, of_query(stage.inner, tables, known), known)
        else:
            flow = above(stage, flow, known)
        most = max(most, flow.rows)
    return most


def above(stage: Stage, below: Flow, known: Statistics) -> Flow:
    """What a stage of one input gives."""
    edge = edge_above(stage, below.edge, None)
    match stage:
        case Project(outputs):
            return replace(below, edge=edge, columns=_taken(below, [each.expression for each in outputs]))
        case Filter():
            return below.scaled(FILTERED, edge)
        case Distinct():
            return _values(below, edge, values_of(below, range(len(below.columns)), known))
        case Aggregate(keys, calls):
            return _groups(below, edge, keys, len(calls), known)
        case RowNumber(count=count):
            numbered = below if count is None else below.scaled(TOPPED, edge)
            return replace(numbered, edge=edge, columns=(*below.columns, None), premature=_early(edge))
        case Limit(count):
            share = 1.0 if count is None or not below.rows else min(1.0, count / below.rows)
            return replace(below.scaled(share, edge), premature=_early(edge))
    return replace(below, edge=edge)


def _early(edge: PatternEdge) -> float:
    """Returns the share of rows that leave before a foretold exit, because other rows push them out."""
    return 1.0 if edge.pattern is Pattern.STR else 0.0


def _taken(below: Flow, expressions: Sequence[Expression]) -> tuple[Origin | None, ...]:
    return tuple(_origin(below, expression) for expression in expressions)


def _origin(below: Flow, expression: Expression) -> Origin | None:
    if isinstance(expression, Column) and expression.index < len(below.columns):
        return below.columns[expression.index]
    return None


def _values(below: Flow, edge: PatternEdge, values: float) -> Flow:
    """A row for each value: it enters where none was there, or takes the place of one that goes."""
    if not values:
        return replace(below, rate=0.0, rows=0.0, edge=edge)
    each = below.rows / values
    new = below.rate * exp(-min(each, 50.0)) + below.leaving / max(1.0, each)
    rate = min(below.rate, new if below.leaving else below.rate / max(1.0, each))
    return replace(below, rate=rate, rows=values, edge=edge, is_plain=False)


def _groups(below: Flow, edge: PatternEdge, keys: Sequence[Output], calls: int, known: Statistics) -> Flow:
    """A row for each group, which another takes the place of with each row that comes or goes."""
    expressions = [key.expression for key in keys]
    columns = _taken(below, expressions)
    groups = _distinct(below, columns, known) if keys else 1.0
    if not calls:
        return replace(_values(below, edge, groups), columns=columns)
    rate = below.rate + below.leaving
    return Flow(rate, groups, edge, (*columns, *[None] * calls), inf, 0.0, below.steps_per_s)


# --- two inputs -----------------------------------------------------------------------------------


def of_two(stage: TwoInputs, left: Flow, right: Flow, known: Statistics) -> Flow:
    """What a stage of two inputs gives."""
    steps = left.steps_per_s + right.steps_per_s
    if isinstance(stage, SetOperation):
        return replace(_combined(stage, left, right, known), steps_per_s=steps)
    edge = edge_above(stage, left.edge, right.edge)
    if isinstance(stage, SemiJoin) or stage.kind in ("semi", "anti"):
        shared = shared_values(stage, left, right, known)
        negated = stage.negated if isinstance(stage, SemiJoin) else stage.kind == "anti"
        kept = left.scaled(1 - shared if negated else shared, edge)
        if negated and isinstance(stage, SemiJoin):
            of_left = _taken(left, stage.keys)
            mine, others = (
                _sample(left, of_left, known),
                _sample(right, right.columns[: len(stage.keys)], known),
            )
            if mine is not None and others is not None:
                kept = replace(kept, left=(of_left, mine.outside(others)))
        early = _premature(left, right, shared) if negated else max(left.premature, right.premature)
        return replace(kept, steps_per_s=steps, premature=early)
    columns = (*left.columns, *right.columns)
    if stage.latest is not None:
        early = _early(edge)
        return replace(left, edge=edge, columns=columns, steps_per_s=steps, premature=early, is_plain=False)
    one, other = _partners(stage, left, right, known)
    rate, rows = left.rate * one + right.rate * other, left.rows * one
    if stage.kind in ("left", "full"):
        rate, rows = max(rate, left.rate), max(rows, left.rows)
    if stage.kind in ("right", "full"):
        rate, rows = max(rate, right.rate), max(rows, right.rows)
    early = left.leaving * left.premature * one + right.leaving * right.premature * other
    share = _early(edge) if stage.kind != "inner" else min(1.0, early / rate) if rate else 0.0
    return Flow(rate, rows, edge, columns, min(left.span_ms, right.span_ms), share, steps)


def _partners(stage: Join, left: Flow, right: Flow, known: Statistics) -> tuple[float, float]:
    """How many partners a left row finds, and a right one."""
    share = 1.0 if stage.condition is None else FILTERED
    if stage.keys:
        one = _sample(left, _taken(left, [key for key, _ in stage.keys]), known)
        other = _sample(right, _taken(right, [key for _, key in stage.keys]), known)
        plain = left.is_plain and right.is_plain
        met = None if one is None or other is None or not plain else one.partners(other)
        share *= met if met is not None else 1 / join_values(stage, left, right, known)
    return share * right.rows, share * left.rows


def join_values(stage: Join, left: Flow, right: Flow, known: Statistics) -> float:
    """In how many values the rows of a join's inputs may differ: rows of one are equal to one in so many."""
    if not stage.keys:
        return 1.0
    one = _distinct(left, _taken(left, [key for key, _ in stage.keys]), known)
    other = _distinct(right, _taken(right, [key for _, key in stage.keys]), known)
    return max(1.0, one, other)


def _combined(stage: SetOperation, left: Flow, right: Flow, known: Statistics) -> Flow:
    edge = edge_above(stage, left.edge, right.edge)
    span, early = max(left.span_ms, right.span_ms), max(left.premature, right.premature)
    if stage.kind == "union":
        columns = tuple(
            one if one == other else None for one, other in zip(left.columns, right.columns, strict=False)
        )
        rate, rows = left.rate + right.rate, left.rows + right.rows
        return Flow(rate, rows, edge, columns, span, early, 0.0)
    shared, values = shared_values(stage, left, right, known), compared_values(stage, left, known)
    if not stage.all:
        share = shared if stage.kind == "intersect" else 1 - shared
        once = _values(left, edge, values).scaled(share, edge)
    else:
        rest = _rest(stage, left, right, known)
        rows = left.rows - rest if stage.kind == "intersect" else rest
        once = left.scaled(rows / left.rows if left.rows else 0.0, edge)
    if stage.kind == "intersect":
        return replace(once, span_ms=min(left.span_ms, right.span_ms), premature=early)
    of_left = _compared(stage, left, 0)
    one, other = _sample(left, of_left, known), _sample(right, _compared(stage, right, 1), known)
    if one is not None and other is not None and stage.all:
        once = replace(once, left=(tuple(of_left), one.without(other)))
    refilled = right.leaving * shared * (once.rows / left.rows if left.rows else 0.0)
    return replace(once, rate=once.rate + refilled, premature=_premature(left, right, shared))


def _rest(stage: SetOperation, left: Flow, right: Flow, known: Statistics) -> float:
    """How many left rows a bag difference leaves: exactly where all rows were looked at."""
    of_left = _sample(left, _compared(stage, left, 0), known)
    of_right = _sample(right, _compared(stage, right, 1), known)
    if of_left is not None and of_right is not None and left.is_plain and right.is_plain:
        whole = of_left.rows >= left.rows and of_right.rows >= right.rows
        if whole:
            return left.rows * of_left.surplus(of_right)
    shared = shared_values(stage, left, right, known)
    values = max(1.0, compared_values(stage, left, known) * shared)
    shared_rows = left.rows * shared
    return min(
        left.rows, _surplus(shared_rows, min(right.rows, shared_rows), values) + left.rows - shared_rows
    )


def _surplus(left: float, right: float, values: float) -> float:
    """By how much, over all values, there are more left rows than right ones, of so many of each spread over
    the values at random: the mean of a normal variable where it is positive.
    """
    mean, deviation = (left - right) / values, sqrt((left + right) / values)
    if not deviation:
        return 0.0
    at = mean / deviation
    below = (1 + erf(at / sqrt(2))) / 2
    return values * (mean * below + deviation * exp(-at * at / 2) / sqrt(2 * pi))


def _premature(left: Flow, right: Flow, shared: float) -> float:
    """Returns which share of the rows that a negation gives leaves early. Right rows take some of them away,
    none where no value is shared; the left input's own share is the least.

    A row that the right side takes from the answer and one that the left side brings are as likely as their
    rates are high.
    """
    early = right.rate * shared
    found = early / (left.rate + early) if early else 0.0
    return max(found, left.premature)


# --- values ---------------------------------------------------------------------------------------


def _sample(flow: Flow, origins: Sequence[Origin | None], known: Statistics) -> ValueSample | None:
    """Returns a sample of the values of these columns; None where they are not columns of one scan, or not
    known.
    """
    if flow.left is not None and flow.left[0] == tuple(origins):
        return flow.left[1]
    found = [origin for origin in origins if origin is not None]
    if not found or len(found) < len(origins) or any(scan != found[0][0] for scan, _ in found):
        return None
    return known.sample(found[0][0], tuple(place for _, place in found))


def _distinct(flow: Flow, origins: Sequence[Origin | None], known: Statistics) -> float:
    sample = _sample(flow, origins, known)
    if sample is None:
        return max(1.0, flow.rows * OWN_VALUES)
    return max(1.0, sample.distinct(flow.rows))


def values_of(flow: Flow, places: Sequence[int], known: Statistics) -> float:
    """How many values of some columns there are at a time."""
    return _distinct(flow, [flow.columns[at] if at < len(flow.columns) else None for at in places], known)


def compared_values(stage: SetOperation, left: Flow, known: Statistics) -> float:
    """How many values a set operation compares, of the left input."""
    return values_of(left, [place for place, _ in _on(stage)], known)


def own_values(stage: TwoInputs, left: Flow, right: Flow, known: Statistics) -> float:
    """How many values the state of a stage's inputs goes by."""
    if isinstance(stage, SetOperation):
        return compared_values(stage, left, known)
    if isinstance(stage, SemiJoin):
        return _distinct(left, _taken(left, stage.keys), known) if stage.keys else 1.0
    return join_values(stage, left, right, known)


def values_above(stage: Aggregate | Distinct, below: Flow, known: Statistics) -> float:
    """How many values a stage of one input gives a row for."""
    if isinstance(stage, Distinct):
        return values_of(below, range(len(below.columns)), known)
    return (
        _distinct(below, _taken(below, [key.expression for key in stage.keys]), known) if stage.keys else 1.0
    )


def joined_inputs(
    query: Query, place: int, tables: Container[SourceName], known: Statistics
) -> tuple[JoinedInput, ...]:
    """What a group of the aggregate at a place has of the query's scan and of the inner query of each join,
    in the order of the text; empty where other than joins that give pairs, and projections, is below it.
    """
    stage, before = query.stages[place].aggregate, query.stages[:place]
    if stage is None or not any(each.pairs for each in before):
        return ()
    if any(each.pairs is None and each.outputs_of_rows is None for each in before):
        return ()
    flow = of_scan(query.scan, tables, known)
    inputs, uneven = [flow], [0.0]
    for each in before:
        join = each.pairs
        if join is None:
            flow = above(each, flow, known)
            continue
        right = of_query(join.inner, tables, known)
        of_left, of_right = _compared_by(join, flow, right)
        one, other = _sample(flow, of_left, known), _sample(right, of_right, known)
        if one is not None and other is not None:
            more = one.unevenness(other)
            uneven = [old + more * _has(left, of_left) for old, left in zip(uneven, inputs, strict=True)]
        inputs.append(right)
        uneven.append(0.0 if one is None or other is None else other.unevenness(one))
        flow = of_two(join, flow, right, known)
    keys = _taken(flow, [key.expression for key in stage.keys])
    summed = [
        origin for call in stage.calls if call.function == "SUM" for origin in _taken(flow, call.arguments)
    ]
    found = []
    for at, one_input in enumerate(inputs):
        mine = [key for key in keys if key is None or key in one_input.columns]
        groups = _distinct(one_input, mine, known) if mine else 1.0
        found.append(JoinedInput(one_input.rows / groups, bool(mine), _has(one_input, summed), uneven[at]))
    return tuple(found)


def _has(flow: Flow, origins: Sequence[Origin | None]) -> bool:
    """Whether one of these columns may be of this input: a computed one may be of any."""
    return any(origin is None or origin in flow.columns for origin in origins)


def compared_copies(
    stage: TwoInputs, left: Flow, right: Flow, known: Statistics
) -> tuple[float, float, float]:
    """Returns the copies of the values that a stage compares: the mean number of rows of a value on the left,
    that on the right, and the share of left rows whose value the right side has too.
    """
    of_left, of_right = _compared_by(stage, left, right)
    mine, others = _distinct(left, of_left, known), _distinct(right, of_right, known)
    return left.rows / mine, right.rows / others, shared_values(stage, left, right, known)


def shared_values(stage: TwoInputs, left: Flow, right: Flow, known: Statistics) -> float:
    """The share of left values that the right input has too."""
    of_left, of_right = _compared_by(stage, left, right)
    one, other = _sample(left, of_left, known), _sample(right, of_right, known)
    return MATCHED if one is None or other is None else one.shared_with(other)


def _compared_by(
    stage: TwoInputs, left: Flow, right: Flow
) -> tuple[Sequence[Origin | None], Sequence[Origin | None]]:
    """The columns of the two inputs that a stage compares."""
    if isinstance(stage, SetOperation):
        return _compared(stage, left, 0), _compared(stage, right, 1)
    if isinstance(stage, SemiJoin):
        return _taken(left, stage.keys), right.columns[: len(stage.keys)]
    return _taken(left, [key for key, _ in stage.keys]), _taken(right, [key for _, key in stage.keys])


def _compared(stage: SetOperation, flow: Flow, side: int) -> list[Origin | None]:
    """The columns of an input that a set operation compares. side: 0, the left one, or 1."""
    places = [pair[side] for pair in _on(stage)]
    return [flow.columns[at] if at < len(flow.columns) else None for at in places]


def _on(stage: SetOperation) -> Sequence[tuple[int, int]]:
    if stage.on is not None:
        return stage.on
    return [(place, place) for place in range(len(stage.inner.columns))]
