"""Evaluation of a query at an instant: its scan, then its stages."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pyarrow as pa

from engine.language.query import Aggregate, Project, Query
from engine.operators.gather import project
from engine.operators.scan import ScanAt
from tureen.errors import LimitExceeded


@dataclass(frozen=True, slots=True)
class Evaluated:
    """errors: values that could not be computed. complete_from_ms: None where nothing the windows reach back
    to is gone.
    """

    table: pa.Table
    errors: int
    complete_from_ms: int | None

    def with_completeness(self, complete_from_ms: int | None) -> Evaluated:
        """The same rows, complete from another instant."""
        return replace(self, complete_from_ms=complete_from_ms)


def evaluate(query: Query, scan_at: ScanAt, rows_max: int) -> Evaluated:
    """The answer's table. Raises LimitExceeded for more than ``rows_max`` rows."""
    window = scan_at.window(query.scan)
    stage = query.stages[0]
    if isinstance(stage, Aggregate):
        count = scan_at.count(query.scan.predicate, window.start, window.stop)
        table = pa.table({stage.calls[0].name: pa.array([count], pa.int64())})
        return Evaluated(table, 0, window.complete_from_ms)
    assert isinstance(stage, Project)
    places = scan_at.matching(query.scan.predicate, window.start, window.stop)
    total = sum(len(where) for _, where in places)
    if total > rows_max:
        hint = "narrow the window or the predicate, or count with SELECT COUNT(*)"
        raise LimitExceeded("snapshot_rows_max", rows_max, total, hint=hint)
    table, errors = project(stage.outputs, scan_at.rows.schema, places)
    return Evaluated(table, errors, window.complete_from_ms)
