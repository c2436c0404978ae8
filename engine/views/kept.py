"""Answers that are kept current: those of eager queries, brought up to date at the end of steps.

Aggregates without keys are none of these: trees of partial results are kept for them
(:mod:`engine.operators.maintained`).

A selection over a plain window gains the rows that came in at its end and loses those that fell out at its
beginning; over a table it loses those that were superseded. Any other answer is evaluated again, and only
where a row that matters came to one of its sources or went, or, of a TUMBLE or HOP, where a window closed or
lost rows. What there is to do is told with how many rows it looks at, before it is done.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from engine.algebra.project.stage import Output
from engine.dataflow.graph import STREAMS
from engine.language.query import Query, Scan
from engine.model.answer import AnswerColumns
from engine.model.batch import Int64Array
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

    @property
    def nbytes(self) -> int:
        """Bytes of its rows."""
        if isinstance(self.evaluated, LimitExceeded | InternalError):
            return 0
        return int(self.evaluated.rows.nbytes) + (0 if self.ordinals is None else int(self.ordinals.nbytes))


@dataclass(frozen=True, slots=True)
class RefreshWork:
    """What there is to do until an answer is current. rows: that have to be looked at for it, 1 at least."""

    rows: float
    make: Callable[[], KeptAnswer]


def brought(
    query: StandingQuery,
    at: Mapping[SourceName, ScanAt],
    composites: CompositeSource | None,
    limits: Limits,
    before: KeptAnswer | None,
) -> KeptAnswer | RefreshWork:
    """Return the answer of an eager query where it is current, else what there is to do.

    at: without slots. before: as it was kept after an earlier step; None: it was not.
    """
    return _Bringing(query.query, query.at(at), composites, limits).brought(before)


@dataclass(frozen=True, slots=True)
class _Bringing:
    """One query and its sources as it sees them."""

    query: Query
    at: Mapping[SourceName, ScanAt]
    composites: CompositeSource | None
    limits: Limits

    def brought(self, before: KeptAnswer | None) -> KeptAnswer | RefreshWork:
        query, at = self.query, self.at
        if query.has_streams:  # what comes and goes is told by no window of a scan
            return self._anew()
        scans = list(query.scans())
        if not all(is_range(scan) for scan in scans):
            return self._by_windows(at[query.source], before)
        windows = tuple(at[scan.source].window(scan) for scan in scans)
        if before is not None and _untouched(scans, at, before, windows):
            assert isinstance(before.evaluated, Evaluated)
            complete_from_ms = max(
                (w.complete_from_ms for w in windows if w.complete_from_ms is not None), default=None
            )
            return KeptAnswer(before.evaluated.with_completeness(complete_from_ms), windows, before.ordinals)
        if query.outputs is not None:
            return self._slide(query.outputs, at[query.source], before, windows[0])
        return self._anew(windows)

    def _anew(self, windows: tuple[WindowRange, ...] = (), closed: Closed | None = None) -> RefreshWork:
        """Evaluates all of it."""

        def make() -> KeptAnswer:
            rows_max = self.limits.snapshot_rows_max
            found = evaluate(
                self.query, self.at, rows_max, self.limits, composites=self.composites, streams=STREAMS
            )
            return KeptAnswer(found, windows, closed=closed)

        return RefreshWork(self._rows(windows), _refusable(make))

    def _rows(self, windows: Sequence[WindowRange]) -> float:
        """How many rows, or combinations of rows, are looked at where an answer is evaluated."""
        rows = 1.0
        for place, scan in enumerate(self.query.scans()):
            at = self.at[scan.source]
            if windows:
                rows *= 1.0 + at.count(scan.predicate, windows[place].start, windows[place].stop)
            else:
                rows *= (1.0 + at.rows.count) * overlapping(scan)
        return rows

    def _by_windows(self, at: ScanAt, before: KeptAnswer | None) -> KeptAnswer | RefreshWork:
        closed = _closed(self.query, at)
        if before is None or closed is None or before.closed != closed:
            return self._anew(closed=closed)
        if isinstance(before.evaluated, LimitExceeded | InternalError):
            return before
        complete_from_ms = None if at.is_complete(self.query.scan) else at.gone_before_ms
        return KeptAnswer(before.evaluated.with_completeness(complete_from_ms), closed=closed)

    def _slide(
        self, outputs: Sequence[Output], at: ScanAt, before: KeptAnswer | None, window: WindowRange
    ) -> RefreshWork:
        start, kept = window.start, _stays(at, before, window)
        if kept is not None:
            assert before is not None
            start = before.windows[0].stop
        predicate = self.query.scan.predicate

        def make() -> KeptAnswer:
            ordinals = np.empty(0, np.int64) if kept is None else kept[1]
            places = at.matching(predicate, start, window.stop)
            found = [ordinals, *(part.first + where for part, where in places)]
            total = sum(len(each) for each in found)
            if total > self.limits.snapshot_rows_max:
                raise LimitExceeded("snapshot_rows_max", self.limits.snapshot_rows_max, total)
            rows, errors = project(outputs, at.rows.schema, places)
            came = rows.table
            if kept is not None:
                came = pa.concat_tables([kept[0], came])
                if came.num_columns and came.column(0).num_chunks > CHUNKS_MAX:
                    came = came.combine_chunks()
            answer = Evaluated(AnswerColumns.of_table(came), errors, window.complete_from_ms)
            return KeptAnswer(answer, (window,), np.concatenate(found))

        return RefreshWork(1.0 + at.count(predicate, start, window.stop), _refusable(make))


def _refusable(make: Callable[[], KeptAnswer]) -> Callable[[], KeptAnswer]:
    """An answer that is too large is kept as that."""

    def made() -> KeptAnswer:
        try:
            return make()
        except LimitExceeded as refused:
            return KeptAnswer(refused)

    return made


def overlapping(scan: Scan) -> int:
    """In how many windows a row of a scan may be."""
    hop = scan.assignment
    return -(-hop.size_ms // hop.slide_ms) if isinstance(hop, Hop) else 1


def _stays(at: ScanAt, before: KeptAnswer | None, window: WindowRange) -> tuple[pa.Table, Int64Array] | None:
    """What stays of the rows of a selection, with their ordinals; None: all are to be made."""
    if before is None or not before.windows or before.ordinals is None:
        return None
    (was,) = before.windows
    assert isinstance(before.evaluated, Evaluated)
    if before.evaluated.errors:  # nobody knows which rows they were of
        return None
    if isinstance(at, TableAt):
        if not at.follows(was):
            return None
        stays = ~np.isin(before.ordinals, at.gone_since(was.stop), assume_unique=True)
        return before.evaluated.table.filter(pa.array(stays)), before.ordinals[stays]
    if was.start <= window.start <= was.stop <= window.stop:
        gone = int(before.ordinals.searchsorted(window.start))
        return before.evaluated.table.slice(gone), before.ordinals[gone:]
    return None


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
    if isinstance(at, TableAt):
        return at.follows(was) and not at.changes(scan.predicate, was.stop)
    if (was.start, was.stop) == (window.start, window.stop):
        return True
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
