"""Which rows a query lets be shed, and the condition by which it does not see them.

A query that tolerates missing rows says so by ``max_fn``, one with aggregates by ``max_error`` too (the less
counts), or at a scan by SAMPLE(p DOWN TO q), which lets the share 1 - q / p go. Where n scans may lose rows,
each may lose the share 1 - (1 - max_fn) ^ (1 / n): a join of all of them then misses the share max_fn. A scan
whose missing rows would let the answer grow may lose none
(:func:`engine.overload.precision.freedom.losable`).

The condition stands beside the scan's own, behind its window: a row that was shed has its place among the
last n of [ROWS n], so that no older row comes in its stead; windows of the last rows of each key, or of
those that satisfy a condition, lose none. No estimate is scaled by what was shed: rows next to each other are
no sample of the others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from engine.algebra.operators import Stage
from engine.language.query import Query, Scan
from engine.model.expressions import And, Column, Compare, Expression, Literal, conjunction
from engine.model.sample import Sample
from engine.model.shed import LEVEL_MAX
from engine.model.source import SHED_LEVEL, SourceName, Stream
from engine.model.tolerance import Tolerance
from engine.overload.precision.freedom import losable
from engine.windows.clauses import RowWindow

Streams = Mapping[SourceName, Stream]


def tolerated(query: Query, streams: Streams, tolerance: Tolerance) -> tuple[int, ...]:
    """Returns how much of each scan's rows may be shed, in parts per million, in the order of
    ``Query.scans()``; 0: nothing. streams: all that the query reads. O(stages).
    """
    scans, free = tuple(query.scans()), losable(query, streams)
    share = _share(query, tolerance)
    each = 0.0 if share is None else 1 - (1 - share) ** (1 / max(1, sum(free)))
    return tuple(
        int(LEVEL_MAX * _of_sample(scan.sample, each) + 1e-6) if may and not _is_chosen(scan) else 0
        for scan, may in zip(scans, free, strict=True)
    )


def _share(query: Query, tolerance: Tolerance) -> float | None:
    allowed = [tolerance.max_fn]
    if query.aggregates:
        allowed.append(tolerance.max_error)
    return min((min(1.0, one) for one in allowed if one is not None), default=None)


def _is_chosen(scan: Scan) -> bool:
    """Whether the window holds the last rows of each key, or of those that satisfy a condition."""
    return isinstance(scan.window, RowWindow) and not scan.window.plain


def _of_sample(sample: Sample | None, share: float) -> float:
    if sample is None or sample.down_to is None:
        return share
    return 1 - float(sample.down_to / sample.percent)


def unseen_if_shed(query: Query, streams: Streams, tolerance: Tolerance) -> Query:
    """The query that does not see what may be shed for it; itself where nothing may. O(stages)."""
    levels = tolerated(query, streams, tolerance)
    return _with(query, streams, iter(levels)) if any(levels) else query


def _with(query: Query, streams: Streams, levels: Iterator[int]) -> Query:
    scan = _conditioned(query.scan, streams[query.scan.source], next(levels))
    stages = tuple(_inside(stage, streams, levels) for stage in query.stages)
    return replace(query, scan=scan, stages=stages)


def _inside(stage: Stage, streams: Streams, levels: Iterator[int]) -> Stage:
    if stage.right_input is None:
        return stage
    return stage.with_right_input(_with(stage.right_input, streams, levels))


def _conditioned(scan: Scan, stream: Stream, level: int) -> Scan:
    if not level or level_of(scan, stream):
        return scan
    column = Column(stream.shed_place, SHED_LEVEL.name, SHED_LEVEL.type)
    seen = Compare(">", column, Literal(level, SHED_LEVEL.type))
    return replace(scan, predicate=conjunction((*_operands(scan.predicate), seen)))


def levels_of(query: Query, streams: Streams) -> tuple[int, ...]:
    """:func:`level_of` of each scan."""
    return tuple(level_of(scan, streams[scan.source]) for scan in query.scans())


def level_of(scan: Scan, stream: Stream) -> int:
    """How much a scan lets be shed, as its condition says; 0: nothing. O(conditions)."""
    for operand in _operands(scan.predicate):
        match operand:
            case Compare(">", Column(index=place), Literal(value=int(level))) if place == stream.shed_place:
                return level
    return 0


def _operands(predicate: Expression | None) -> tuple[Expression, ...]:
    if predicate is None:
        return ()
    return predicate.operands if isinstance(predicate, And) else (predicate,)
