"""The last counts of queries that do nothing but count the rows of a window.

Two windows of one query have most rows in common, and a row that is stored keeps its ordinal and its matches.
So a count is the one before, less the rows that the window's begin has passed, more those that its end has: a
query that is asked again costs what moved since, not its window. The plan of such a query is bound with its
first count.

Shared by the views of one set of sources; readers write, and need no lock: an entry is immutable, is written
after the query's slots were found unchanged, and counts for the very object that it was made for.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from engine.language.query import Query, Scan
from engine.model.answer import AnswerColumns
from engine.model.batch import Column
from engine.model.types import BIGINT
from engine.operators.gather import schema_of
from engine.operators.pipeline import Evaluated, counts_rows
from engine.operators.scan import ScanAt
from engine.operators.window_range import WindowRange
from engine.standing.query import StandingQuery

COUNTS_MAX = 10_000
"""So many queries are known; then it begins anew."""


@dataclass(frozen=True, slots=True)
class RowCount:
    """How many rows of a window a query counted."""

    query: StandingQuery
    scan: Scan
    slot: int | None
    schema: pa.Schema
    window: WindowRange
    rows: int

    def evaluated(self) -> Evaluated:
        """As the answer of the query. O(1)."""
        counted = Column(BIGINT, np.array([self.rows]))
        rows = AnswerColumns(self.schema, [counted] * len(self.schema), 1)
        return Evaluated(rows, 0, self.window.complete_from_ms)


class RowCounts:
    """By query. Nothing of a stream's rows but their ordinals: who gives rows other ordinals begins anew."""

    def __init__(self) -> None:
        self._last: dict[str, RowCount] = {}

    def count(self, query: StandingQuery, at: ScanAt) -> RowCount | None:
        """The count of a query's rows now. None: the query is none that counts rows.

        O(segments + rows that came into its window or left it), at first of all rows of the window as
        :meth:`engine.operators.scan.ScanAt.count` says.
        """
        last = self._last.get(query.query_id)
        if last is None or last.query is not query:
            return self._first(query, at)
        scan, slot = last.scan, last.slot
        was, window = last.window, at.window(scan)
        oldest = at.rows.parts[0].first if at.rows.parts else at.rows.end
        if oldest <= was.start <= window.start <= was.stop <= window.stop:
            left = at.count_of(scan.predicate, slot, was.start, window.start)
            rows = last.rows - left + at.count_of(scan.predicate, slot, was.stop, window.stop)
        else:
            rows = at.count_of(scan.predicate, slot, window.start, window.stop)
        return RowCount(query, scan, slot, last.schema, window, rows)

    def _first(self, query: StandingQuery, at: ScanAt) -> RowCount | None:
        bound = query.query
        if not _is_count(bound):
            return None
        scan, slot = bound.scan, query.scan_slot
        window = at.window(scan)
        rows = at.count_of(scan.predicate, slot, window.start, window.stop)
        return RowCount(query, scan, slot, schema_of(bound.columns), window, rows)

    def keep(self, count: RowCount) -> None:
        """The query that it is of stood as long as it was counted."""
        if len(self._last) >= COUNTS_MAX:
            self._last.clear()
        self._last[count.query.query_id] = count

    def forget(self, query_id: str) -> None:
        """The query goes."""
        self._last.pop(query_id, None)


def _is_count(query: Query) -> bool:
    stage = query.stages[0].aggregate
    return len(query.stages) == 1 and stage is not None and counts_rows(stage, query.scan)
