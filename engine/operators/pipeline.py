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
from engine.algebra.operator import Operator
from engine.algebra.operators import Stage
from engine.algebra.rules import asked_of
from engine.language.aggregates import Statistic
from engine.language.query import Query, Scan
from engine.model.answer import AnswerColumns
from engine.model.batch import Column
from engine.model.interruption import may_go_on
from engine.model.limits import DEFAULT_LIMITS, Limits
from engine.model.source import SourceName
from engine.model.types import BIGINT
from engine.operators.chain import CompositeSource, combined, leading_joins
from engine.operators.gather import project, schema_of
from engine.operators.maintained.kept_aggregate import KeptAggregate
from engine.operators.places import first_of
from engine.operators.relation import Relation
from engine.operators.scan import ScanAt, is_range
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
    first: int | None = None,
) -> Evaluated:
    """The answer's table.

    at: how each of the query's sources stands at the instant. streams: gives the streams of subqueries; None
    for a query that has none.
    kept: what the query's first stage can be read from, composites: what its leading joins can; they change
    no answer. first: so many rows at most, the first; others are counted, and their columns not made where no
    stage reads them.
    Raises LimitExceeded for more than ``rows_max`` rows, or for more than the limits allow on the way to
    them.
    """
    if query.outputs is not None and query.scan.assignment is None:
        scan_at = at[query.source]
        chosen = scan_at.places(query.scan)
        total = sum(len(where) for _, where in chosen.places)
        _bounded(total if first is None else min(first, total), rows_max)
        places = chosen.places if first is None else first_of(chosen.places, first)
        rows, errors = project(query.outputs, scan_at.rows.schema, places)
        rows.total = total
        return Evaluated(rows, errors, chosen.complete_from_ms)
    run = StageRun(at, limits, streams)
    return _evaluated_by(run, query, run.relation(query, kept, composites), rows_max, first)


def evaluate_completed(
    query: Query,
    at: Mapping[SourceName, ScanAt],
    rows_max: int,
    completion: Completion,
    limits: Limits = DEFAULT_LIMITS,
    streams: StreamSource | None = None,
) -> Evaluated:
    """As :func:`evaluate`, for a query whose first stage is an aggregate. completion: makes of what it gives
    what later stages see. Raises LimitExceeded.
    """
    run = StageRun(at, limits, streams)
    return _evaluated_by(run, query, run.completed(query, completion), rows_max)


def _evaluated_by(
    run: StageRun, query: Query, relation: Relation, rows_max: int, first: int | None = None
) -> Evaluated:
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
    return StageRun(at, limits, streams).relation(query, None, composites, reached)


def complete_from_of(
    query: Query, at: Mapping[SourceName, ScanAt], limits: Limits, streams: StreamSource
) -> int | None:
    """The instant from which the answer is complete, as evaluating it tells. Raises LimitExceeded."""
    run = StageRun(at, limits, streams)
    run.relation(query)
    return run.complete_from_ms


def _bounded(rows: int, rows_max: int) -> None:
    if rows > rows_max:
        hint = "narrow the window or the predicate, take a LIMIT, or count with SELECT COUNT(*)"
        raise LimitExceeded("snapshot_rows_max", rows_max, rows, hint=hint)


@asked_of("lazy", each=True)
def evaluated(
    stage: Stage, relation: Relation, run: StageRun, following: Operator | None
) -> tuple[Relation, int]:
    """What a stage gives of a relation, and how many values could not be computed. following: the stage that
    alone sees what this one gives; None: others may, too. Raises LimitExceeded.
    """
    raise AssertionError(stage)


class StageRun:
    """One evaluation: what it met on its way."""

    def __init__(self, at: Mapping[SourceName, ScanAt], limits: Limits, streams: StreamSource | None) -> None:
        self._at = at
        self._limits = limits
        self._streams = streams
        self.rows_max = limits.intermediate_rows_max
        self.candidates_max = limits.join_candidates_max
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
        first = query.stages[0].aggregate
        assert first is not None
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
        below, stage = replace(query, stages=query.stages[:place]), query.stages[place].stream
        assert stage is not None
        assert self._streams is not None
        self.relation(below, reached=reached)
        elements = self._streams(below, stage, self._at, self._limits)
        self._complete_from(elements.complete_from_ms)
        return elements.relation

    def _scanned(self, query: Query) -> Relation:
        scanned = self._at[query.source].relation(query.scan)
        self._complete_from(scanned.complete_from_ms)
        if len(scanned.relation) > self.rows_max:
            hint = "narrow the window or the predicate"
            raise LimitExceeded("intermediate_rows_max", self.rows_max, len(scanned.relation), hint=hint)
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
        joined, errors = combined(joins, inputs, places, self.rows_max, self.candidates_max)
        self.errors += errors
        return joined, query.stages[len(places) - 1 :]

    def inner(self, stage: Operator, query: Query) -> Relation:
        """What the second input of a stage gives: as it was found before, for leading joins."""
        found = self._inner.get(id(stage))
        return self.relation(query) if found is None else found

    def met_versions_at(self, table: SourceName, instant_ms: int) -> None:
        """Note that versions of a table were looked for as of this instant, and none before it."""
        gone_ms = self._at[table].gone_before_ms
        if gone_ms is not None and instant_ms < gone_ms:
            self._complete_from(gone_ms)

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
        stage, scan = query.stages[0].aggregate if query.stages else None, query.scan
        if stage is None or not counts_rows(stage, scan):
            return None
        scan_at = self._at[scan.source]
        window = scan_at.window(scan)
        self._complete_from(window.complete_from_ms)
        counted = np.array([scan_at.count(scan.predicate, window.start, window.stop)])
        return Relation([Column(BIGINT, counted) for _ in stage.calls], 1)

    def _stage(self, stage: Stage, relation: Relation, following: Stage | None) -> Relation:
        relation, errors = evaluated(stage, relation, self, following)
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
