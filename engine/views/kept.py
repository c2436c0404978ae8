"""Answers that are kept current: those of eager queries, brought up to date at the end of steps.

Aggregates without keys are none of these: trees of partial results are kept for them
(:mod:`engine.operators.maintained`).

A selection over a plain window gains the rows that came in at its end and loses those that fell out at its
beginning; over a table it loses those that were superseded. Any other answer is evaluated again, and only
where a row that matters came to one of its sources or went, or, of a TUMBLE or HOP, where a window closed or
lost rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from engine.algebra.project.stage import Project
from engine.dataflow.graph import STREAMS
from engine.language.query import Query, Scan
from engine.model.answer import AnswerColumns
from engine.model.batch import Int64Array
from engine.model.defects import Defects, internal
from engine.model.limits import Limits
from engine.model.source import SourceName
from engine.operators.assignment import Bracket, first_needed_ms
from engine.operators.chain import CompositeSource
from engine.operators.gather import project
from engine.operators.pipeline import Evaluated, evaluate
from engine.operators.scan import ScanAt, is_range
from engine.operators.table_scan import TableAt
from engine.operators.window_range import WindowRange
from engine.standing.query import StandingQuery
from engine.windows.assignment import Hop
from engine.windows.clauses import RowWindow
from tureen.errors import InternalError, LimitExceeded

CHUNKS_MAX = 64
"""A kept table of more pieces than this is made one again."""
Closed = tuple[int, int | None, int]
"""The first ordinal looked at, the start of the first window asked for, the end of the last that closed."""


@dataclass(frozen=True, slots=True)
class KeptAnswer:
    """An answer as of a step. windows: the ordinals it is of, a range for each scan. ordinals: of its rows,
    for a plain selection. closed: of TUMBLE and HOP, what they cover.
    """

    evaluated: Evaluated | LimitExceeded | InternalError
    windows: tuple[WindowRange, ...] = ()
    ordinals: Int64Array | None = None
    closed: Closed | None = None

    def answer(self, rows_max: int, first: int | None = None) -> Evaluated:
        """What is kept; first: so many rows of it at most, the first. Raises LimitExceeded, for what was too
        large to be kept too.
        """
        if isinstance(self.evaluated, LimitExceeded | InternalError):
            raise self.evaluated
        found = self.evaluated.first(first)
        if found.rows.n > rows_max:
            raise LimitExceeded("snapshot_rows_max", rows_max, found.rows.n)
        return found

    @property
    def is_too_large(self) -> bool:
        """Whether the answer is not kept, for it has too many rows."""
        return isinstance(self.evaluated, LimitExceeded)


class KeptAnswers:
    """The answers of the eager queries over one set of sources."""

    def __init__(self, limits: Limits, defects: Defects | None = None) -> None:
        """defects: the engine's."""
        self._limits = limits
        self._defects = Defects() if defects is None else defects
        self._kept: dict[str, tuple[StandingQuery, KeptAnswer]] = {}

    def refresh(
        self,
        queries: Iterable[StandingQuery],
        at: Mapping[SourceName, ScanAt],
        composites: CompositeSource | None,
    ) -> Mapping[str, KeptAnswer]:
        """Bring the answers of exactly these queries up to date. ``at``: without slots, they are each
        query's own.
        """
        fresh = {}
        for query in queries:
            known = self._kept.get(query.query_id)
            before = known[1] if known is not None and known[0] is query else None
            try:
                kept = self._bring(query, query.at(at), composites, before)
            except Exception as defect:  # noqa: BLE001  (the answer is one that cannot be given)
                failed = internal(defect)
                self._defects.note([query.query_id], failed)
                kept = KeptAnswer(failed)
            fresh[query.query_id] = (query, kept)
        self._kept = fresh
        return {query_id: kept for query_id, (_, kept) in fresh.items()}

    def bytes_of(self, query_id: str) -> int:
        """Bytes of what is kept for a query."""
        found = self._kept.get(query_id)
        if found is None or isinstance(found[1].evaluated, LimitExceeded | InternalError):
            return 0
        ordinals = found[1].ordinals
        return int(found[1].evaluated.rows.nbytes) + (0 if ordinals is None else int(ordinals.nbytes))

    def _bring(
        self,
        query: StandingQuery,
        at: Mapping[SourceName, ScanAt],
        composites: CompositeSource | None,
        before: KeptAnswer | None,
    ) -> KeptAnswer:
        def evaluated() -> Evaluated:
            limits = self._limits
            return evaluate(
                query.query,
                at,
                limits.snapshot_rows_max,
                limits,
                composites=composites,
                streams=STREAMS,
            )

        bound = query.query
        try:
            if bound.has_streams:  # what comes and goes is told by no window of a scan
                return KeptAnswer(evaluated())
            scans = list(bound.scans())
            if not all(is_range(scan) for scan in scans):
                return self._by_windows(bound, at[bound.source], evaluated, before)
            windows = tuple(at[scan.source].window(scan) for scan in scans)
            if before is not None and _untouched(scans, at, before, windows):
                assert isinstance(before.evaluated, Evaluated)
                complete_from_ms = max(
                    (w.complete_from_ms for w in windows if w.complete_from_ms is not None), default=None
                )
                return KeptAnswer(
                    before.evaluated.with_completeness(complete_from_ms), windows, before.ordinals
                )
            if len(bound.stages) == 1 and isinstance(bound.stages[0], Project):
                return self._slide(bound, bound.stages[0], at[bound.source], before, windows[0])
            return KeptAnswer(evaluated(), windows)
        except LimitExceeded as refused:
            return KeptAnswer(refused)

    def _by_windows(
        self, query: Query, at: ScanAt, evaluated: Callable[[], Evaluated], before: KeptAnswer | None
    ) -> KeptAnswer:
        closed = _closed(query, at)
        if before is None or closed is None or before.closed != closed:
            return KeptAnswer(evaluated(), closed=closed)
        if isinstance(before.evaluated, LimitExceeded | InternalError):
            return before
        complete_from_ms = None if at.is_complete(query.scan) else at.gone_before_ms
        return KeptAnswer(before.evaluated.with_completeness(complete_from_ms), closed=closed)

    def _slide(
        self, query: Query, stage: Project, at: ScanAt, before: KeptAnswer | None, window: WindowRange
    ) -> KeptAnswer:
        start, table, ordinals = window.start, None, np.empty(0, np.int64)
        if before is not None and before.windows and before.ordinals is not None:
            (was,) = before.windows
            assert isinstance(before.evaluated, Evaluated)
            if before.evaluated.errors:
                pass  # nobody knows which rows they were of
            elif isinstance(at, TableAt):
                if at.follows(was):
                    stays = ~np.isin(before.ordinals, at.gone_since(was.stop), assume_unique=True)
                    table, ordinals = before.evaluated.table.filter(pa.array(stays)), before.ordinals[stays]
                    start = was.stop
            elif was.start <= window.start <= was.stop <= window.stop:
                gone = int(before.ordinals.searchsorted(window.start))
                table, ordinals = before.evaluated.table.slice(gone), before.ordinals[gone:]
                start = was.stop
        places = at.matching(query.scan.predicate, start, window.stop)
        found = [ordinals, *(part.first + where for part, where in places)]
        total = sum(len(each) for each in found)
        if total > self._limits.snapshot_rows_max:
            raise LimitExceeded("snapshot_rows_max", self._limits.snapshot_rows_max, total)
        rows, errors = project(stage.outputs, at.rows.schema, places)
        came = rows.table
        if table is not None:
            came = pa.concat_tables([table, came])
            if came.num_columns and came.column(0).num_chunks > CHUNKS_MAX:
                came = came.combine_chunks()
        return KeptAnswer(
            Evaluated(AnswerColumns.of_table(came), errors, window.complete_from_ms),
            (window,),
            np.concatenate(found),
        )


def _untouched(
    scans: Sequence[Scan], at: Mapping[SourceName, ScanAt], before: KeptAnswer, windows: Sequence[WindowRange]
) -> bool:
    """Whether no matching row of any scan came in or went out since."""
    if not before.windows or not isinstance(before.evaluated, Evaluated):
        return False
    return all(
        _same_rows(scan, at[scan.source], was, window)
        for scan, was, window in zip(scans, before.windows, windows, strict=True)
    )


def _same_rows(scan: Scan, at: ScanAt, was: WindowRange, window: WindowRange) -> bool:
    if (was.start, was.stop) == (window.start, window.stop):
        return True
    if isinstance(at, TableAt):
        return at.follows(was) and not at.changes(scan.predicate, was.stop)
    if was.start < at.rows.base or not was.start <= window.start <= was.stop <= window.stop:
        return False
    predicate = scan.predicate
    return not (at.count(predicate, was.start, window.start) or at.count(predicate, was.stop, window.stop))


def _closed(query: Query, at: ScanAt) -> Closed | None:
    """What an answer over TUMBLE or HOP depends on besides rows; None for others."""
    scan = query.scan
    hop = scan.assignment
    if not isinstance(hop, Hop) or isinstance(scan.window, RowWindow) or at.now_ms is None:
        return None
    if len(list(query.scans())) > 1:
        return None
    bracket = Bracket.at(scan.window, at.now_ms)
    begin_ms = first_needed_ms(hop, bracket)
    return at.first_needed(hop, bracket), begin_ms, hop.last_end_at(bracket.last_ms)
