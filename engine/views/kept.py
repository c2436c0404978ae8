"""Answers that are kept current: those of eager queries, brought up to date at the end of steps.

Aggregates without keys are none of these: trees of partial results are kept for them
(:mod:`engine.operators.maintained`).

An answer stays as it is until a row that matters comes to one of its sources or goes
(:mod:`engine.changes.affected_queries`). Then a selection over a plain window of a stream gains the rows that
came in at its end and loses those that fell out at its beginning. Any other answer is evaluated again. What
there is to do is told with how many rows it looks at, before it is done.
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
from engine.model.batch import BoolArray, Int64Array
from engine.model.limits import Limits
from engine.model.source import SourceName
from engine.operators.chain import CompositeSource
from engine.operators.gather import rows_at, schema_of
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


def goes_by_rows(query: Query) -> bool:
    """Whether an answer is the same, whatever NOW and retention do, until a row comes or goes that one of the
    scans accepts; but for the instant from which it is complete (:func:`with_completeness`).
    """
    if query.has_streams:
        return False
    scan, *others = query.scans()
    if not others and isinstance(scan.assignment, Hop):
        return not isinstance(scan.window, RowWindow)
    return is_range(scan) and all(map(is_range, others))


def with_completeness(answer: Evaluated, query: Query, at: Mapping[SourceName, ScanAt]) -> Evaluated:
    """An answer that was kept before its sources came to stand so. O(scans * log rows)."""
    return answer.with_completeness(_complete_from(query, at)) if goes_by_rows(query) else answer


def _complete_from(query: Query, at: Mapping[SourceName, ScanAt]) -> int | None:
    """From when on an answer that goes by rows is complete; None: all of it is."""
    if query.scan.assignment is not None:
        source = at[query.source]
        return None if source.is_complete(query.scan) else source.gone_before_ms
    windows = (at[scan.source].window(scan) for scan in query.scans())
    known = (window.complete_from_ms for window in windows)
    return max((instant_ms for instant_ms in known if instant_ms is not None), default=None)


@dataclass(frozen=True, slots=True)
class KeptAnswer:
    """An answer as of a step. window: of a selection that goes on from it, of which rows it is. errors:
    int64[n], how many values of each of its rows could not be computed; None: all could.
    """

    evaluated: Evaluated | LimitExceeded | InternalError
    window: WindowRange | None = None
    errors: Int64Array | None = None

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
        return int(self.evaluated.rows.nbytes) if isinstance(self.evaluated, Evaluated) else 0


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
) -> RefreshWork:
    """What there is to do until the answer of an eager query is current.

    at: without slots. before: as it was kept after an earlier step; None: it was not.
    """
    bound = query.query
    return _Bringing(bound, query.at(at), composites, limits).brought(bound.outputs, before)


@dataclass(frozen=True, slots=True)
class _Bringing:
    """One query and its sources as it sees them."""

    query: Query
    at: Mapping[SourceName, ScanAt]
    composites: CompositeSource | None
    limits: Limits

    def brought(self, outputs: Sequence[Output] | None, before: KeptAnswer | None) -> RefreshWork:
        at = self.at[self.query.source]
        if outputs is not None and is_range(self.query.scan) and not isinstance(at, TableAt):
            return self._slide(outputs, at, before)
        return self._anew()

    def _anew(self) -> RefreshWork:
        """Evaluates all of it."""

        def make() -> KeptAnswer:
            rows_max = self.limits.snapshot_rows_max
            found = evaluate(
                self.query, self.at, rows_max, self.limits, composites=self.composites, streams=STREAMS
            )
            return KeptAnswer(found)

        return RefreshWork(self._rows(), _refusable(make))

    def _rows(self) -> float:
        """How many rows, or combinations of rows, are looked at where an answer is evaluated."""
        rows, scans = 1.0, list(self.query.scans())
        are_ranges = not self.query.has_streams and all(map(is_range, scans))
        for scan in scans:
            at = self.at[scan.source]
            if are_ranges:
                window = at.window(scan)
                rows *= 1.0 + at.count(scan.predicate, window.start, window.stop)
            else:
                rows *= (1.0 + at.rows.count) * overlapping(scan)
        return rows

    def _slide(self, outputs: Sequence[Output], at: ScanAt, before: KeptAnswer | None) -> RefreshWork:
        window, predicate = at.window(self.query.scan), self.query.scan.predicate
        start, stay = window.start, 0
        was = None if before is None else before.window
        if was is not None and was.start <= window.start < was.stop <= window.stop:
            start, stay = was.stop, at.count(predicate, window.start, was.stop)

        def make() -> KeptAnswer:
            places = at.matching(predicate, start, window.stop)
            total = stay + sum(len(where) for _, where in places)
            if total > self.limits.snapshot_rows_max:
                raise LimitExceeded("snapshot_rows_max", self.limits.snapshot_rows_max, total)
            relation = rows_at(at.rows.schema, places)
            results = [relation.evaluate(output.expression) for output in outputs]
            columns = [result.column for result in results]
            rows = AnswerColumns(schema_of(self.query.columns), columns, len(relation))
            errors = _errors_of([result.error for result in results], len(relation))
            if stay:
                assert before is not None
                assert isinstance(before.evaluated, Evaluated)
                errors = _one_behind_another(before.errors, stay, errors, rows.n)
                kept = before.evaluated.table
                table = pa.concat_tables([kept.slice(kept.num_rows - stay), rows.table])
                if table.num_columns and table.column(0).num_chunks > CHUNKS_MAX:
                    table = table.combine_chunks()
                rows = AnswerColumns.of_table(table)
            total = 0 if errors is None else int(errors.sum())
            return KeptAnswer(Evaluated(rows, total, window.complete_from_ms), window, errors)

        return RefreshWork(1.0 + at.count(predicate, start, window.stop), _refusable(make))


def _errors_of(errors: Sequence[BoolArray | None], n: int) -> Int64Array | None:
    """int64[n]: how many values of each row are errors; None: none is. errors: by column, bool[n]."""
    there = [error for error in errors if error is not None and error.any()]
    found = np.zeros(n, np.int64)
    for error in there:
        found += error
    return found if there else None


def _one_behind_another(
    before: Int64Array | None, stay: int, came: Int64Array | None, count: int
) -> Int64Array | None:
    """The errors of the last ``stay`` rows of those before, and of so many that came."""
    stays = None if before is None else before[len(before) - stay :]
    if came is None and (stays is None or not stays.any()):
        return None
    none = np.zeros(max(stay, count), np.int64)
    return np.concatenate([none[:stay] if stays is None else stays, none[:count] if came is None else came])


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
