"""Answers that are kept current: those of eager queries, brought up to date at the end of steps.

Aggregates without keys are none of these: trees of partial results are kept for them
(:mod:`engine.operators.maintained`).

A selection over a plain window gains the rows that came in at its end and loses those that fell out at its
beginning. Any other answer is evaluated again, and only where a row that matters came or went, or, of a
TUMBLE or HOP, where a window closed or lost rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from engine.language.query import Project
from engine.limits import Limits
from engine.model.batch import Int64Array
from engine.operators.assignment import Bracket, first_needed_ms
from engine.operators.gather import project
from engine.operators.pipeline import Evaluated, evaluate
from engine.operators.scan import ScanAt, is_range
from engine.operators.window_range import WindowRange
from engine.standing import StandingQuery
from engine.windows.assignment import Hop
from engine.windows.clauses import RowWindow
from tureen.errors import LimitExceeded

CHUNKS_MAX = 64
"""A kept table of more pieces than this is made one again."""
Closed = tuple[int, int | None, int]
"""The first ordinal looked at, the start of the first window asked for, the end of the last that closed."""


@dataclass(frozen=True, slots=True)
class Kept:
    """An answer as of a step. window: the ordinals it is of. ordinals: of its rows, for a plain selection.
    closed: of TUMBLE and HOP, what they cover.
    """

    evaluated: Evaluated | LimitExceeded
    window: WindowRange | None = None
    ordinals: Int64Array | None = None
    closed: Closed | None = None

    def answer(self, rows_max: int) -> Evaluated:
        """What is kept. Raises LimitExceeded, for what was too large to be kept too."""
        if isinstance(self.evaluated, LimitExceeded):
            raise self.evaluated
        if self.evaluated.table.num_rows > rows_max:
            raise LimitExceeded("snapshot_rows_max", rows_max, self.evaluated.table.num_rows)
        return self.evaluated


class KeptAnswers:
    """The answers of one source's eager queries."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._kept: dict[str, tuple[StandingQuery, Kept]] = {}

    def refresh(self, queries: Iterable[StandingQuery], at: ScanAt) -> Mapping[str, Kept]:
        """Bring the answers of exactly these queries up to date. ``at``: without slots, they are each
        query's own.
        """
        fresh = {}
        for query in queries:
            known = self._kept.get(query.query_id)
            before = known[1] if known is not None and known[0] is query else None
            fresh[query.query_id] = (query, self._bring(query, at.with_slots(query.slot_of), before))
        self._kept = fresh
        return {query_id: kept for query_id, (_, kept) in fresh.items()}

    def _bring(self, query: StandingQuery, at: ScanAt, before: Kept | None) -> Kept:
        try:
            if not _is_of_one_range(query):
                return self._by_windows(query, at, before)
            window = at.window(query.query.scan)
            if before is not None and self._untouched(query, at, before, window):
                assert isinstance(before.evaluated, Evaluated)
                evaluated = before.evaluated.with_completeness(window.complete_from_ms)
                return Kept(evaluated, window, before.ordinals)
            if _is_selection(query):
                return self._slide(query, at, before, window)
            return Kept(self._evaluate(query, at), window)
        except LimitExceeded as refused:
            return Kept(refused)

    def _evaluate(self, query: StandingQuery, at: ScanAt) -> Evaluated:
        limits = self._limits
        return evaluate(query.query, at, limits.snapshot_rows_max, limits.intermediate_rows_max)

    def _by_windows(self, query: StandingQuery, at: ScanAt, before: Kept | None) -> Kept:
        closed = _closed(query, at)
        if before is None or closed is None or before.closed != closed:
            return Kept(self._evaluate(query, at), closed=closed)
        if isinstance(before.evaluated, LimitExceeded):
            return before
        complete = at.is_complete(query.query.scan)
        evaluated = before.evaluated.with_completeness(None if complete else at.retained_from_ms)
        return Kept(evaluated, closed=closed)

    def _untouched(self, query: StandingQuery, at: ScanAt, before: Kept, window: WindowRange) -> bool:
        """Whether no matching row came in or went out since."""
        was = before.window
        if was is None or not isinstance(before.evaluated, Evaluated):
            return False
        if (was.start, was.stop) == (window.start, window.stop):
            return True
        if was.start < at.rows.base or not was.start <= window.start <= was.stop <= window.stop:
            return False
        predicate = query.query.scan.predicate
        return not (
            at.count(predicate, was.start, window.start) or at.count(predicate, was.stop, window.stop)
        )

    def _slide(self, query: StandingQuery, at: ScanAt, before: Kept | None, window: WindowRange) -> Kept:
        (stage,) = query.query.stages
        assert isinstance(stage, Project)
        start, table, ordinals = window.start, None, np.empty(0, np.int64)
        if before is not None and before.window is not None and before.ordinals is not None:
            was = before.window
            assert isinstance(before.evaluated, Evaluated)
            if not before.evaluated.errors and was.start <= window.start <= was.stop <= window.stop:
                gone = int(before.ordinals.searchsorted(window.start))
                table, ordinals = before.evaluated.table.slice(gone), before.ordinals[gone:]
                start = was.stop
        places = at.matching(query.query.scan.predicate, start, window.stop)
        found = [ordinals, *(part.first + where for part, where in places)]
        total = sum(len(each) for each in found)
        if total > self._limits.snapshot_rows_max:
            raise LimitExceeded("snapshot_rows_max", self._limits.snapshot_rows_max, total)
        came, errors = project(stage.outputs, at.rows.schema, places)
        if table is not None:
            came = pa.concat_tables([table, came])
            if came.num_columns and came.column(0).num_chunks > CHUNKS_MAX:
                came = came.combine_chunks()
        return Kept(Evaluated(came, errors, window.complete_from_ms), window, np.concatenate(found))


def _is_of_one_range(query: StandingQuery) -> bool:
    """Whether its answer depends on the rows of one range of ordinals alone."""
    return is_range(query.query.scan) and len(list(query.query.scans())) == 1


def _closed(query: StandingQuery, at: ScanAt) -> Closed | None:
    """What an answer over TUMBLE or HOP depends on besides rows; None for others."""
    scan = query.query.scan
    hop = scan.assignment
    if not isinstance(hop, Hop) or isinstance(scan.window, RowWindow) or at.now_ms is None:
        return None
    if len(list(query.query.scans())) > 1:
        return None
    bracket = Bracket.at(scan.window, at.now_ms)
    begin_ms = first_needed_ms(hop, bracket)
    return at.first_needed(hop, bracket), begin_ms, hop.last_end_at(bracket.last_ms)


def _is_selection(query: StandingQuery) -> bool:
    return len(query.query.stages) == 1 and isinstance(query.query.stages[0], Project)
