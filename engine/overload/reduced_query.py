"""The query that stands for another where it is given less than its text asks for (STREAM, section 5).

    SELECT COUNT(*) FROM s [RANGE 1 HOUR]        given 20 % of the rows of the last 10 minutes:
    SELECT COUNT(*) * 5 FROM s SAMPLE(20) [RANGE 10 MINUTES]

It has the same columns. What a text samples is what it asks for: only the share that is taken off that is
made good. COUNT and SUM are divided by the share of rows that are kept, what is of a whole type then
rounded; AVG is the ratio of two such. All other aggregates, those with DISTINCT, and all above a stage from
which the share cannot be told (DISTINCT, LIMIT, ROW_NUMBER, a set operation, a join that keeps rows without
a partner where partners are sampled) are what they are over the rows that are kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal

from engine.algebra.aggregate.stage import Aggregate, AggregateCall
from engine.algebra.operators import Stage
from engine.algebra.project.stage import Output, Project
from engine.algebra.rules import asked_of
from engine.language.query import Query, Scan
from engine.language.sampling import kept
from engine.model.allotment import Allotment, ScanAllotment
from engine.model.expressions import (
    And,
    Arithmetic,
    Cast,
    Column,
    Expression,
    Literal,
    conjunction,
    reads_place,
)
from engine.model.sample import PERCENT_MAX, Sample
from engine.model.source import SourceName, Stream
from engine.model.types import BIGINT, DOUBLE
from engine.overload.precision.of_query import SCALED
from engine.standing.query import SampledAggregates
from engine.windows.clauses import Instant, RowWindow, TimeWindow

Streams = Mapping[SourceName, Stream]


@dataclass(frozen=True, slots=True)
class ReducedQuery:
    """query: that stands. unscaled: columns of its aggregates over sampled rows that nothing was made good
    of, by the names that the aggregates have. measured: what tells the errors of the others; None: nothing
    does, as where several scans are sampled.
    """

    query: Query
    unscaled: tuple[str, ...] = ()
    measured: SampledAggregates | None = None


def reduced(query: Query, streams: Streams, allotment: Allotment) -> ReducedQuery:
    """What stands for a query that is given this. streams: that it reads. O(size of the query).

    The allotment must be one that fits (:func:`engine.overload.room.require_room`).
    """
    builder = _Builder(streams, iter(allotment.scans))
    less = builder.query(query)[0]
    return ReducedQuery(less, tuple(builder.unscaled), _measured(query, less, allotment))


def percent_asked(scan: Scan) -> Decimal:
    """Returns the percentage of the stream's rows that the text asks for."""
    return PERCENT_MAX if scan.sample is None else scan.sample.percent


def window_asked_ms(scan: Scan) -> int | None:
    """The length of its window; None: it has none that can be shorter."""
    window = scan.window
    if not isinstance(window, TimeWindow) or window.begin is None or not window.begin.relative:
        return None
    return -window.begin.ms if scan.assignment is None and window.begin.ms < 0 else None


def _measured(asked: Query, less: Query, allotment: Allotment) -> SampledAggregates | None:
    """Where the first scan alone is sampled, and not before a window of rows."""
    first, *others = allotment.scans
    if first.percent is None or any(one.percent is not None for one in others):
        return None
    return _sums_over(less, float(first.percent / percent_asked(asked.scan)))


def measured_as_declared(query: Query) -> SampledAggregates | None:
    """What tells how far aggregates over a sample that the text itself asks for are from those over all rows,
    once COUNT and SUM are divided by its share; None as of :class:`ReducedQuery`. O(size of the query).
    """
    first, *others = query.scans()
    if percent_asked(first) == PERCENT_MAX or any(percent_asked(one) != PERCENT_MAX for one in others):
        return None
    return _sums_over(query, float(percent_asked(first) / PERCENT_MAX))


def _sums_over(less: Query, share: float) -> SampledAggregates | None:
    if not less.aggregates or isinstance(less.scan.window, RowWindow):
        return None
    aggregate = less.aggregates[0]
    place = less.stages.index(aggregate)
    if any(map(_is_untold, less.stages[:place])):
        return None
    calls = [call for call in aggregate.calls if call.function in SCALED and not call.distinct]
    if not calls:
        return None
    sums = tuple(one for number, call in enumerate(calls) for one in _sums(number, call))
    counted = replace(less, stages=(*less.stages[:place], replace(aggregate, calls=sums)))
    return SampledAggregates(counted, share, tuple(call.function for call in calls))


def _is_untold(stage: Stage) -> bool:
    """Whether what comes out of a stage is no sample of what came out of it without one below."""
    return stage.goes_by_order or share_above(stage, 0.5, 1.0) is None


@asked_of("flow")
def share_above(stage: Stage, share: float, other: float) -> float | None:
    """Which share of the rows that a stage gives is kept; None: it is not known. share, other: the shares
    that are kept of its left and right input.
    """
    return None if stage.replaces_missing and share != 1.0 else share


def _sums(number: int, call: AggregateCall) -> Iterator[AggregateCall]:
    """How many values a call has, their sum and that of their squares; of COUNT how many alone."""
    yield replace(call, name=f"count{number}", function="COUNT", type=BIGINT)
    if call.function == "COUNT":
        return
    value = Cast(call.arguments[0], DOUBLE)
    for name, argument in (("sum", value), ("squares", Arithmetic("*", value, value, DOUBLE))):
        yield replace(call, name=f"{name}{number}", function="SUM", arguments=(argument,), type=DOUBLE)


class _Builder:
    """unscaled: found so far."""

    def __init__(self, streams: Streams, each: Iterator[ScanAllotment]) -> None:
        self._streams = streams
        self._each = each
        self.unscaled: list[str] = []

    def query(self, query: Query) -> tuple[Query, float | None]:
        """The query, and the share of rows that it gives of those due; None: that is not told by a number."""
        given = next(self._each)
        scan = _scan(query.scan, self._streams[query.source], given)
        share: float | None = 1.0
        if given.percent is not None:
            share = float(given.percent / percent_asked(query.scan))
        stages: list[Stage] = []
        for stage in query.stages:
            other: float | None = 1.0
            if stage.right_input is None:
                stages.append(stage)
            else:
                inner, other = self.query(stage.right_input)
                stages.append(stage.with_right_input(inner))
            if stage.aggregate is not None:
                stages += [] if share == 1.0 else self._scaled(stage.aggregate, share)
                share = 1.0
            else:
                share = None if share is None or other is None else share_above(stage, share, other)
        return replace(query, scan=scan, stages=tuple(stages)), share

    def _scaled(self, aggregate: Aggregate, share: float | None) -> list[Stage]:
        """What follows an aggregate over a share of its rows."""
        self.unscaled += [
            call.name
            for call in aggregate.calls
            if share is None or call.distinct or call.function not in SCALED
        ]
        if share is None or not any(_is_divided(call) for call in aggregate.calls):
            return []
        outputs = [
            Output(key.name, Column(place, key.name, key.type)) for place, key in enumerate(aggregate.keys)
        ]
        for place, call in enumerate(aggregate.calls, len(outputs)):
            column = Column(place, call.name, call.type)
            outputs.append(Output(call.name, _divided(column, share) if _is_divided(call) else column))
        return [Project(tuple(outputs))]


def _is_divided(call: AggregateCall) -> bool:
    return call.function in ("COUNT", "SUM") and not call.distinct


def _divided(column: Column, share: float) -> Expression:
    """A sum over all rows, from that over a share of them, in its own type."""
    value = column if column.type == DOUBLE else Cast(column, DOUBLE)
    divided = Arithmetic("*", value, Literal(1.0 / share, DOUBLE), DOUBLE)
    return divided if column.type == DOUBLE else Cast(divided, column.type)


def _scan(scan: Scan, stream: Stream, given: ScanAllotment) -> Scan:
    if given.window_ms is not None:
        window = scan.window
        assert isinstance(window, TimeWindow)
        scan = replace(scan, window=replace(window, begin=Instant(True, -given.window_ms)))
    return scan if given.percent is None else _sampled(scan, stream, given.percent)


def _sampled(scan: Scan, stream: Stream, percent: Decimal) -> Scan:
    """With another sample in the place of its own. Before a window of rows it counts for that window."""
    sample = Sample(percent) if scan.sample is None else replace(scan.sample, percent=percent)
    window = scan.window
    condition = kept(sample, stream)
    assert condition is not None
    if isinstance(window, RowWindow) and scan.assignment is None:
        window = replace(window, filter=_asking(window.filter, condition, stream))
        return replace(scan, window=window, sample=sample)
    return replace(scan, predicate=_asking(scan.predicate, condition, stream), sample=sample)


def _asking(condition: Expression | None, sampled: Expression, stream: Stream) -> Expression:
    """A condition with ``sampled`` in the place of what it asks of sample keys."""
    parts = condition.operands if isinstance(condition, And) else () if condition is None else (condition,)
    others = [part for part in parts if not reads_place(part, stream.sample_place)]
    return conjunction([*others, sampled])
