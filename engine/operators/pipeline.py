"""Evaluation of a query at an instant: its scan, then its stages, one after another.

Every scan, those of inner queries too, is evaluated as its own source stands at the instant. A stage takes a
relation and gives one. Values that cannot be computed are counted over all stages, those of inner queries
too. Two shapes are answered without a relation: columns of matching rows, copied straight into Arrow, and how
many rows match. Which rows of leading joins belong together may be kept (:mod:`engine.operators.chain`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from engine.algebra.aggregate.stage import Aggregate, AggregateCall
from engine.algebra.distinct.stage import Distinct
from engine.algebra.filter.stage import Filter
from engine.algebra.join.stage import Join
from engine.algebra.limit.stage import Limit
from engine.algebra.operators import Stage
from engine.algebra.project.stage import Output, Project
from engine.algebra.row_number.stage import RowNumber
from engine.algebra.semi_join.stage import SemiJoin
from engine.algebra.set_operation.stage import SetOperation
from engine.algebra.sort.stage import Sort
from engine.algebra.streamed.stage import Streamed
from engine.language.aggregates import Statistic
from engine.language.query import Query, Scan
from engine.model.answer import AnswerColumns
from engine.model.batch import Column
from engine.model.expressions import Column as ColumnOf
from engine.model.interruption import may_go_on
from engine.model.lazy_columns import LazyColumns
from engine.model.limits import DEFAULT_LIMITS, Limits
from engine.model.source import SourceName
from engine.model.types import BIGINT
from engine.operators.aggregate import aggregate
from engine.operators.chain import CompositeSource, combined, leading_joins
from engine.operators.distinct import distinct
from engine.operators.filter import keep
from engine.operators.gather import project, schema_of
from engine.operators.join import join
from engine.operators.limit import limit
from engine.operators.maintained.kept_aggregate import KeptAggregate
from engine.operators.places import first_of
from engine.operators.relation import Relation
from engine.operators.row_number import row_number
from engine.operators.scan import ScanAt, is_range
from engine.operators.semi_join import semi_join
from engine.operators.set_operations import set_operation
from engine.operators.sort import sort
from engine.operators.stream_source import StreamSource
from tureen.errors import LimitExceeded

Completion = Callable[[Aggregate, Relation, Relation], Relation]
"""Completes an aggregate: takes the stage, the rows that it is over and what it gives of them; returns the
same groups with other values.
"""


Reached = Callable[[Relation], None]


@dataclass(frozen=True, slots=True)
class Evaluated:
    """errors: values that could not be computed. complete_from_ms: None where nothing the windows reach back
    to is gone. visited: of an answer of one row whose aggregates were completed by estimates, those columns
    with what they are of the rows alone. condition_errors: rows of scans whose predicate was an error, where
    it was evaluated now.
    """

    rows: AnswerColumns
    errors: int
    complete_from_ms: int | None
    visited: tuple[tuple[str, float | None], ...] = ()
    condition_errors: int = 0

    @property
    def table(self) -> pa.Table:
        """The rows."""
        return self.rows.table

    def first(self, rows: int | None) -> Evaluated:
        """The answer with its first ``rows`` rows alone; None: with all of them."""
        return self if rows is None or rows >= self.rows.n else replace(self, rows=self.rows.first(rows))

    def with_completeness(self, complete_from_ms: int | None) -> Evaluated:
        """The answer with these rows, complete from another instant."""
        return replace(self, complete_from_ms=complete_from_ms)


def evaluate(
    query: Query,
    at: Mapping[SourceName, ScanAt],
    rows_max: int,
    limits: Limits = DEFAULT_LIMITS,
    kept: KeptAggregate | None = None,
    composites: CompositeSource | None = None,
    streams: StreamSource | None = None,
    completed: Completion | None = None,
    first: int | None = None,
) -> Evaluated:
    """The answer's table.

    at: how each of the query's sources stands at the instant. streams: gives the streams of subqueries; None
    for a query that has none.
    kept: what the query's first stage can be read from, composites: what its leading joins can; they change
    no answer. completed: makes of what its first stage, an aggregate, gives what later stages see.
    first: so many rows at most, the first; others are counted, and their columns not made where no stage
    reads them.
    Raises LimitExceeded for more than ``rows_max`` rows, or for more than the limits allow on the way to
    them.
    """
    if len(query.stages) == 1 and isinstance(query.stages[0], Project) and query.scan.assignment is None:
        scan_at = at[query.source]
        chosen = scan_at.places(query.scan)
        total = sum(len(where) for _, where in chosen.places)
        _bounded(total if first is None else min(first, total), rows_max)
        places = chosen.places if first is None else first_of(chosen.places, first)
        rows, errors = project(query.stages[0].outputs, scan_at.rows.schema, places)
        rows.total = total
        return Evaluated(rows, errors, chosen.complete_from_ms)
    run = _Run(at, limits, streams)
    if completed is None:
        relation = run.relation(query, kept, composites)
    else:
        relation = run.completed(query, completed)
    total = len(relation)
    if first is not None and first < total:
        relation = relation.slice(0, first)
    _bounded(len(relation), rows_max)
    rows = AnswerColumns(schema_of(query.columns), list(relation.columns), len(relation), total)
    return Evaluated(rows, run.errors, run.complete_from_ms)


def relation_of(
    query: Query,
    at: Mapping[SourceName, ScanAt],
    limits: Limits = DEFAULT_LIMITS,
    streams: StreamSource | None = None,
    composites: CompositeSource | None = None,
    reached: Reached | None = None,
) -> Relation:
    """What a query's stages give, which may be none, before it becomes a table. composites: as
    :func:`evaluate` has them. reached: is told what the scan gives, and each stage. Raises LimitExceeded.
    """
    return _Run(at, limits, streams).relation(query, None, composites, reached)


def complete_from_of(
    query: Query, at: Mapping[SourceName, ScanAt], limits: Limits, streams: StreamSource
) -> int | None:
    """The instant from which the answer is complete, as evaluating it tells. Raises LimitExceeded."""
    run = _Run(at, limits, streams)
    run.relation(query)
    return run.complete_from_ms


def _bounded(rows: int, rows_max: int) -> None:
    if rows > rows_max:
        hint = "narrow the window or the predicate, take a LIMIT, or count with SELECT COUNT(*)"
        raise LimitExceeded("snapshot_rows_max", rows_max, rows, hint=hint)


class _Run:
    """One evaluation: what it met on its way."""

    def __init__(self, at: Mapping[SourceName, ScanAt], limits: Limits, streams: StreamSource | None) -> None:
        self._at = at
        self._limits = limits
        self._streams = streams
        self._rows_max = limits.intermediate_rows_max
        self._candidates_max = limits.join_candidates_max
        self._inner: dict[int, Relation] = {}
        self.errors = 0
        self.complete_from_ms: int | None = None

    def relation(
        self,
        query: Query,
        kept: KeptAggregate | None = None,
        composites: CompositeSource | None = None,
        reached: Reached | None = None,
    ) -> Relation:
        """What the last stage gives. reached: as :func:`relation_of` has it, without composites."""
        stages: Sequence[Stage] = query.stages
        last = query.last_stream
        if last is not None:
            streamed = self._streamed(query, last, reached)
            if reached is not None:
                reached(streamed)
            return self._above(stages[last + 1 :], streamed, reached)
        relation = None if kept is None else self._kept(kept, query)
        if relation is None and reached is None:
            relation = self._counted(query)
        if relation is not None:
            stages = stages[1:]
        else:
            relation = self._scanned(query)
            if reached is not None:
                reached(relation)
            if composites is not None:
                relation, stages = self._leading(query, relation, composites)
        return self._above(stages, relation, reached)

    def completed(self, query: Query, completion: Completion) -> Relation:
        """What the last stage gives where the first one, an aggregate, is completed."""
        first = query.stages[0]
        assert isinstance(first, Aggregate)
        scanned = self._scanned(query)
        found = self._stage(first, scanned, None)
        return self._above(query.stages[1:], completion(first, scanned, found))

    def _above(self, stages: Sequence[Stage], relation: Relation, reached: Reached | None = None) -> Relation:
        for place, stage in enumerate(stages):
            may_go_on()
            alone = reached is not None or place + 1 == len(stages)
            following = None if alone else stages[place + 1]
            relation = self._stage(stage, relation, following)
            if reached is not None:
                reached(relation)
        return relation

    def _streamed(self, query: Query, place: int, reached: Reached | None = None) -> Relation:
        """What a stage gives that makes a stream of those below. Errors are those that they meet now."""
        below, stage = replace(query, stages=query.stages[:place]), query.stages[place]
        assert isinstance(stage, Streamed)
        assert self._streams is not None
        self.relation(below, reached=reached)
        elements = self._streams(below, stage, self._at, self._limits)
        self._complete_from(elements.complete_from_ms)
        return elements.relation

    def _scanned(self, query: Query) -> Relation:
        scanned = self._at[query.source].relation(query.scan)
        self._complete_from(scanned.complete_from_ms)
        if len(scanned.relation) > self._rows_max:
            hint = "narrow the window or the predicate"
            raise LimitExceeded("intermediate_rows_max", self._rows_max, len(scanned.relation), hint=hint)
        return scanned.relation

    def _leading(
        self, query: Query, relation: Relation, composites: CompositeSource
    ) -> tuple[Relation, Sequence[Stage]]:
        """What the leading joins give of which combinations are kept, and the stages that are left."""
        joins = leading_joins(query)
        if not joins:
            return relation, query.stages
        scanned = [relation, *(self._scanned(stage.inner) for stage in joins)]
        inputs = [relation]
        for stage, rows in zip(joins, scanned[1:], strict=True):
            inputs.append(self._stage(stage.inner.stages[0], rows, None))
            self._inner[id(stage)] = inputs[-1]
        places = composites.places(query, scanned)
        if places is None:
            return relation, query.stages
        joined, errors = combined(joins, inputs, places, self._rows_max, self._candidates_max)
        self.errors += errors
        return joined, query.stages[len(places) - 1 :]

    def _joined(self, stage: Join, relation: Relation) -> tuple[Relation, int]:
        inner = self._inner.get(id(stage))
        if inner is None:
            inner = self.relation(stage.inner)
        if stage.latest is not None and stage.inner.scan.history:
            gone_ms = self._at[stage.inner.source].gone_before_ms
            (outer,), _ = relation.values_of([stage.latest.outer])
            instants = outer.values if outer.valid is None else outer.values[outer.valid]
            if gone_ms is not None and len(instants) and int(instants.min()) < gone_ms:
                self._complete_from(gone_ms)
        return join(stage, relation, inner, self._rows_max, candidates_max=self._candidates_max)

    def _kept(self, kept: KeptAggregate, query: Query) -> Relation | None:
        """What a first stage gives of which partial results are kept."""
        if (found := kept.relation(query.scan, self._at[query.source])) is None:
            return None
        relation, errors, complete_from_ms = found
        self.errors += errors
        self._complete_from(complete_from_ms)
        return relation

    def _counted(self, query: Query) -> Relation | None:
        """What a first stage gives that does nothing but count the rows of a range of ordinals."""
        stage, scan = query.stages[0] if query.stages else None, query.scan
        if not (isinstance(stage, Aggregate) and counts_rows(stage, scan)):
            return None
        scan_at = self._at[scan.source]
        window = scan_at.window(scan)
        self._complete_from(window.complete_from_ms)
        counted = np.array([scan_at.count(scan.predicate, window.start, window.stop)])
        return Relation([Column(BIGINT, counted) for _ in stage.calls], 1)

    def _stage(self, stage: Stage, relation: Relation, following: Stage | None) -> Relation:
        errors = 0
        match stage:
            case Project(outputs):
                relation, errors = projected(outputs, relation)
            case Aggregate():
                relation, errors = aggregate(stage, relation)
            case Filter():
                relation, errors = keep(stage, relation)
            case Distinct():
                relation = distinct(relation)
            case Sort():
                wanted = None
                if isinstance(following, Limit) and following.count is not None:
                    wanted = following.offset + following.count
                relation, errors = sort(stage, relation, wanted)
            case Limit():
                relation = limit(stage, relation)
            case RowNumber():
                relation, errors = row_number(stage, relation)
            case SemiJoin():
                relation, errors = semi_join(stage, relation, self.relation(stage.inner))
            case Join():
                relation, errors = self._joined(stage, relation)
            case SetOperation():
                relation = set_operation(stage, relation, self.relation(stage.inner), self._rows_max)
            case Streamed():
                raise AssertionError("it needs more than the relation at the instant")
        self.errors += errors
        return relation

    def _complete_from(self, instant_ms: int | None) -> None:
        """The latest of all scans counts."""
        if instant_ms is not None:
            known = self.complete_from_ms
            self.complete_from_ms = instant_ms if known is None else max(known, instant_ms)


def counts_rows(stage: Aggregate, scan: Scan) -> bool:
    """Whether the stage does nothing but count the rows of a range of ordinals."""
    return not stage.keys and is_range(scan) and all(map(_counts_rows, stage.calls))


def _counts_rows(call: AggregateCall) -> bool:
    return call.aggregate.statistic is Statistic.COUNT and not call.arguments and call.filter is None


def projected(outputs: Sequence[Output], relation: Relation) -> tuple[Relation, int]:
    """Computed columns at once, for their errors are counted; plain ones when they are read."""
    computed: dict[int, Column] = {}
    errors = 0
    for place, output in enumerate(outputs):
        if not isinstance(output.expression, ColumnOf):
            (computed[place],), wrong = relation.values_of([output.expression])
            errors += wrong

    def make(place: int) -> Column:
        expression = outputs[place].expression
        return relation.columns[expression.index] if isinstance(expression, ColumnOf) else computed[place]

    return relation.with_columns(LazyColumns(len(outputs), make)), errors
