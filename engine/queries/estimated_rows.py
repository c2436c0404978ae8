"""How many rows leave each stage of a query, estimated from the rows that its sources hold.

Where matches of a predicate are kept they are counted, else it is looked at for the last thousands of rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from engine.algebra.aggregate.stage import Aggregate
from engine.algebra.distinct.stage import Distinct
from engine.algebra.filter.stage import Filter
from engine.algebra.join.stage import Join
from engine.algebra.limit.stage import Limit
from engine.algebra.operators import Stage
from engine.algebra.row_number.stage import RowNumber
from engine.algebra.semi_join.stage import SemiJoin
from engine.algebra.set_operation.stage import SetOperation
from engine.dataflow.cost.flows import FILTERED, TOPPED
from engine.language.query import Query, Scan
from engine.model.interruption import may_go_on
from engine.model.source import SourceName
from engine.operators.scan import ScanAt, is_range

GROUPED, KEPT_ONCE, JOINED = 0.1, 0.5, 0.5
"""Shares of rows that are taken to leave an aggregate with keys, DISTINCT, a semi-join; of pairs, by a join
without keys: as a filter."""

SAMPLED_ROWS = 4_096
"""So many of the last rows tell how many match where no matches are kept."""


def estimated_rows(query: Query, at: Mapping[SourceName, ScanAt]) -> Iterable[float]:
    """Yields how many rows are estimated to leave the scan, then each stage."""
    rows = _scanned(query.scan, at[query.source])
    yield rows
    for stage in query.stages:
        may_go_on()
        rows = _left(stage, rows, at)
        yield rows


def ordinals(scan: Scan, at: ScanAt) -> tuple[int, int]:
    """The ordinals among which the rows of a scan are."""
    if is_range(scan):
        window = at.window(scan)
        return window.start, window.stop
    return at.rows.base, at.end


def _scanned(scan: Scan, at: ScanAt) -> float:
    predicate = scan.predicate
    start, stop = ordinals(scan, at)
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
