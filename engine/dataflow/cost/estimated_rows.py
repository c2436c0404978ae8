"""How many rows leave each stage of a query, estimated from the rows that its sources hold.

Where matches of a predicate are kept they are counted, else it is looked at for the last thousands of rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from engine.algebra.operators import Stage
from engine.algebra.rules import asked_of
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
        others = 0.0
        if stage.right_input is not None:
            *_, others = estimated_rows(stage.right_input, at)
        rows = rows_above(stage, rows, others)
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


@asked_of("cost")
def rows_above(stage: Stage, rows: float, others: float) -> float:
    """How many rows are estimated to leave a stage. rows, others: those of its left and right input."""
    return rows
