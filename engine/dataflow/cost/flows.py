"""What passes the edges of a plan: estimates, from the scans up.

Where nothing better is known a filter lets a third through, and half of the rows have values of their own. A
join gives as many pairs as rows of equal values are expected to meet; a row is there for as long as the
number of rows over the rate at which they come says (Little).
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import exp, inf

from engine.algebra.operators import Stage
from engine.algebra.rules import asked_of
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

Origin = tuple[Scan, int]
"""A column of a scan."""


@dataclass(frozen=True, slots=True)
class Flow:
    """What passes an edge.

    rate: rows a second that enter. rows: that are there. edge: its update pattern. columns: where each column
    is from, None: it is computed. span_ms: at most so long from a row's entry to its known exit; inf: no
    exit is known. premature: the share of rows that leave before their known exit. steps_per_s: how
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


@asked_of("cost")
def flow_above(stage: Stage, edge: PatternEdge, below: Flow, inner: Flow | None, known: Statistics) -> Flow:
    """What a stage gives, but for its steps. edge: its update pattern; inner: what its second input gives, if
    it has one.
    """
    return replace(below, edge=edge)


@asked_of("cost")
def own_values(stage: Stage, below: Flow, inner: Flow | None, known: Statistics) -> float:
    """How many values the state of a stage goes by: those that it compares, or gives a row for."""
    mine = [one for one, _ in stage.compared]
    return values_of(below, origins_of(below, mine), known) if mine else 1.0


def above(stage: Stage, below: Flow, inner: Flow | None, known: Statistics) -> Flow:
    """What a stage gives. inner: what its second input gives; None: it has one input."""
    edge = edge_above(stage, below.edge, None if inner is None else inner.edge)
    steps = below.steps_per_s + (0.0 if inner is None else inner.steps_per_s)
    return replace(flow_above(stage, edge, below, inner, known), steps_per_s=steps)


def of_query(query: Query, tables: Container[SourceName], known: Statistics) -> Flow:
    """What some stages give over their scan."""
    *_, top = _edges(query, tables, known)
    return top


def most_rows(query: Query, tables: Container[SourceName], known: Statistics) -> float:
    """How many rows are there at most on an edge of it."""
    return max(flow.rows for flow in _edges(query, tables, known))


def _edges(query: Query, tables: Container[SourceName], known: Statistics) -> Iterator[Flow]:
    """What passes its edges, and those of inner queries; the last is its top one."""
    flow = of_scan(query.scan, tables, known)
    yield flow
    for stage in query.stages:
        inner = None
        if stage.right_input is not None:
            for inner in _edges(stage.right_input, tables, known):
                yield inner
        flow = above(stage, flow, inner, known)
        yield flow


# --- what several operators do --------------------------------------------------------------------


def pushed_out(edge: PatternEdge) -> float:
    """Returns the share of rows that leave before a known exit, because other rows push them out."""
    return 1.0 if edge.pattern is Pattern.STR else 0.0


def one_each(below: Flow, edge: PatternEdge, values: float) -> Flow:
    """A row for each value: it enters where none was there, or takes the place of one that goes."""
    if not values:
        return replace(below, rate=0.0, rows=0.0, edge=edge)
    each = below.rows / values
    new = below.rate * exp(-min(each, 50.0)) + below.leaving / max(1.0, each)
    rate = min(below.rate, new if below.leaving else below.rate / max(1.0, each))
    return replace(below, rate=rate, rows=values, edge=edge, is_plain=False)


def with_partner(stage: Stage, edge: PatternEdge, left: Flow, right: Flow, known: Statistics) -> Flow:
    """The left rows that have a partner; of a negation those that have none."""
    shared = shared_values(stage, left, right, known)
    if stage.negates:
        return replace(left.scaled(1 - shared, edge), premature=taken_early(left, right, shared))
    return replace(left.scaled(shared, edge), premature=max(left.premature, right.premature))


def taken_early(left: Flow, right: Flow, shared: float) -> float:
    """Returns which share of the rows that a negation gives leaves early. Right rows take some of them away,
    none where no value is shared; the left input's own share is the least.

    A row that the right side takes from the answer and one that the left side brings are as likely as their
    rates are high.
    """
    early = right.rate * shared
    found = early / (left.rate + early) if early else 0.0
    return max(found, left.premature)


# --- values ---------------------------------------------------------------------------------------


def origins_of(below: Flow, expressions: Iterable[Expression]) -> tuple[Origin | None, ...]:
    """Where the columns that are computed so are from."""
    return tuple(_origin(below, expression) for expression in expressions)


def _origin(below: Flow, expression: Expression) -> Origin | None:
    if isinstance(expression, Column) and expression.index < len(below.columns):
        return below.columns[expression.index]
    return None


def sample_of(flow: Flow, origins: Sequence[Origin | None], known: Statistics) -> ValueSample | None:
    """Returns a sample of the values of these columns; None where they are not columns of one scan, or not
    known.
    """
    if flow.left is not None and flow.left[0] == tuple(origins):
        return flow.left[1]
    found = [origin for origin in origins if origin is not None]
    if not found or len(found) < len(origins) or any(scan != found[0][0] for scan, _ in found):
        return None
    return known.sample(found[0][0], tuple(place for _, place in found))


def values_of(flow: Flow, origins: Sequence[Origin | None], known: Statistics) -> float:
    """How many values of some columns there are at a time."""
    sample = sample_of(flow, origins, known)
    if sample is None:
        return max(1.0, flow.rows * OWN_VALUES)
    return max(1.0, sample.distinct(flow.rows))


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
            flow = above(each, flow, None, known)
            continue
        right = of_query(join.inner, tables, known)
        of_left, _ = compared_by(join, flow, right)
        one, other = compared_samples(join, flow, right, known)
        if one is not None and other is not None:
            more = one.unevenness(other)
            uneven = [old + more * _has(left, of_left) for old, left in zip(uneven, inputs, strict=True)]
        inputs.append(right)
        uneven.append(0.0 if one is None or other is None else other.unevenness(one))
        flow = above(join, flow, right, known)
    keys = origins_of(flow, [key.expression for key in stage.keys])
    summed = [
        origin
        for call in stage.calls
        if call.function == "SUM"
        for origin in origins_of(flow, call.arguments)
    ]
    found = []
    for at, one_input in enumerate(inputs):
        mine = [key for key in keys if key is None or key in one_input.columns]
        groups = values_of(one_input, mine, known) if mine else 1.0
        found.append(JoinedInput(one_input.rows / groups, bool(mine), _has(one_input, summed), uneven[at]))
    return tuple(found)


def _has(flow: Flow, origins: Sequence[Origin | None]) -> bool:
    """Whether one of these columns may be of this input: a computed one may be of any."""
    return any(origin is None or origin in flow.columns for origin in origins)


def compared_copies(stage: Stage, left: Flow, right: Flow, known: Statistics) -> tuple[float, float, float]:
    """Returns the copies of the values that a stage compares: the mean number of rows of a value on the left,
    that on the right, and the share of left rows whose value the right side has too.
    """
    of_left, of_right = compared_by(stage, left, right)
    mine, others = values_of(left, of_left, known), values_of(right, of_right, known)
    return left.rows / mine, right.rows / others, shared_values(stage, left, right, known)


def shared_values(stage: Stage, left: Flow, right: Flow, known: Statistics) -> float:
    """The share of left values that the right input has too."""
    mine, others = compared_samples(stage, left, right, known)
    return MATCHED if mine is None or others is None else mine.shared_with(others)


def compared_samples(
    stage: Stage, left: Flow, right: Flow, known: Statistics
) -> tuple[ValueSample | None, ValueSample | None]:
    """Samples of the values of the two inputs that a stage compares."""
    of_left, of_right = compared_by(stage, left, right)
    return sample_of(left, of_left, known), sample_of(right, of_right, known)


def compared_by(
    stage: Stage, left: Flow, right: Flow
) -> tuple[tuple[Origin | None, ...], tuple[Origin | None, ...]]:
    """The columns of the two inputs that a stage compares."""
    mine = origins_of(left, (one for one, _ in stage.compared))
    return mine, origins_of(right, (other for _, other in stage.compared))
