"""Answers from scratch: over history that nothing holds in memory, and the rows that are there.

What windows that keep nothing hold ([UNBOUNDED], constant ends) and what was the answer before rows went is
evaluated over both, as a standing query's answer is that keeps no matches: the same plan, the same operators,
nothing remembered. The rows in memory are not copied, and nobody who reads or writes them takes notice.

Cost: history is taken in once, O(rows), and the query evaluated over all rows that its windows hold. Memory:
the history, as long as it takes; at most ``archive_rows_max`` rows for all sources together.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from engine.dataflow.graph import STREAMS
from engine.language.query import Query
from engine.model.batch import Batch
from engine.model.limits import Limits
from engine.model.period import At, Period, instants_of
from engine.model.source import SourceName
from engine.model.types import TIMESTAMP_MS_MIN
from engine.operators.assignment import Bracket, first_needed_ms
from engine.operators.earlier import require_answer, require_versions
from engine.operators.pipeline import Evaluated, evaluate
from engine.operators.scan import ScanAt
from engine.sources.backfill import check_rows, origin_of
from engine.sources.source_view import SourceView, now_of, sources_at
from engine.standing.query import StandingQuery
from engine.stems.data_stem import RAISED, DataStem
from engine.stems.query_stem import QueryStem
from engine.stems.rows import Rows
from engine.stems.segment import SegmentColumn, SegmentView
from engine.stems.table_stem import TableStem
from engine.views.period import rows_until
from engine.windows.assignment import Hop
from engine.windows.clauses import RowWindow
from tureen.errors import BackfillRefused, LimitExceeded


@dataclass(frozen=True, slots=True)
class History:
    """Rows of a source from before its history boundary, in (timestamp, partition, offset) order over all
    batches: all it had from ``complete_from_ms`` on. None: all there ever were, as it must be of a table.
    """

    rows: Iterable[Batch]
    complete_from_ms: int | None


def boundary_ms(source: SourceView) -> int | None:
    """Where a source's history ends: rows before this instant come from it, others are there. None: nothing
    that it had is gone, or it has no NOW.

    Of a table versions that count no more at the instant from which it is retained may be gone.
    """
    if source.now_ms is None:
        return None
    if source.stream.is_table:
        return None if source.retained_from_ms is None else source.retained_from_ms + 1
    return source.rows.boundary_ms(source.now_ms, source.retained_from_ms)


def needed_from(query: Query, at_ms: int) -> dict[SourceName, int | None]:
    """For each source, the instant from which its rows decide the answer at an instant; None: from the first
    row on.
    """
    found: dict[SourceName, int | None] = {}
    for scan, behind_ms in query.scans_behind():
        name, window, begin_ms = scan.source, scan.window, None
        if behind_ms is None:
            pass
        elif isinstance(scan.assignment, Hop):
            begin_ms = first_needed_ms(scan.assignment, Bracket.at(window, at_ms - behind_ms))
        elif scan.assignment is None and not isinstance(window, RowWindow) and not scan.history:
            begin_ms, _ = window.bounds_ms(at_ms - behind_ms)
        known = found.get(name, begin_ms)
        found[name] = None if begin_ms is None or known is None else min(known, begin_ms)
    return found


def answer_afresh(
    standing: StandingQuery,
    sources: Mapping[SourceName, SourceView],
    histories: Mapping[SourceName, History],
    at: At,
    rows_max: int,
    limits: Limits,
) -> tuple[int | None, Evaluated]:
    """(NOW, the instant asked for or the last one of a period, the answer there), as a view gives it of a
    standing query.

    histories: of some of the query's sources; the others are taken as they stand.
    Raises LimitExceeded; BackfillRefused: a history does not go before what is there; InstantOutOfRange: the
    instant is after NOW, or what is given does not reach back as far as its windows do.
    """
    query = standing.query
    room = _Room(limits.archive_rows_max)
    joined: dict[SourceName, SourceView] = {}
    for name in query.sources:
        source = sources[name]
        if name in histories and boundary_ms(source) is not None:
            source = _with_history(source, histories[name], room)
        joined[name] = source
    now_ms = now_of(joined.values())
    if at is None:
        return now_ms, evaluate(query, sources_at(joined, now_ms), rows_max, limits, streams=STREAMS)

    def stand(instant_ms: int) -> Mapping[SourceName, ScanAt]:
        return sources_at(joined, instant_ms)

    lacking = "the known rows of its sources begin later than the windows"
    at_ms = at.from_ms if isinstance(at, Period) else at
    instants = instants_of(at, now_ms) if isinstance(at, Period) and now_ms is not None else None
    last_ms = None if instants is None else instants[1]
    require_answer(query, stand, at_ms, now_ms, lacking, limits, STREAMS, last_ms)
    result = evaluate(query, stand(at_ms), rows_max, limits, streams=STREAMS)
    require_versions(result.complete_from_ms, at_ms, now_ms)
    if last_ms is None:
        return at_ms, result
    rows = rows_until(standing, joined, result.rows.table, at_ms, last_ms, rows_max, limits)
    return last_ms, replace(result, rows=rows)


class _Room:
    """How many rows of history may come yet."""

    def __init__(self, rows_max: int) -> None:
        self._rows_max = rows_max
        self._taken = 0

    def take(self, rows: int) -> None:
        """Raises LimitExceeded."""
        self._taken += rows
        if self._taken > self._rows_max:
            hint = "narrow the windows, or ask for a later instant"
            raise LimitExceeded("archive_rows_max", self._rows_max, self._taken, hint=hint)


def _with_history(source: SourceView, history: History, room: _Room) -> SourceView:
    """The source as if the rows had been there from the beginning."""
    until_ms, stream = boundary_ms(source), source.stream
    assert until_ms is not None
    from_ms = TIMESTAMP_MS_MIN if history.complete_from_ms is None else history.complete_from_ms
    if stream.is_table:
        if history.complete_from_ms is not None:
            raise BackfillRefused(stream.name, "all versions of a table are needed", until_ms)
        table = TableStem(stream, QueryStem(stream.stored_schema))
        for rows in _checked(source, history.rows, from_ms, until_ms, room):
            table.append(rows)
        stored = source.rows
        for _, rows in stored.slices(stored.first_at_or_after(until_ms), stored.end):
            table.append(rows)
        return replace(source, rows=table.rows(), retained_from_ms=None)
    from_ms = min(from_ms, until_ms)
    stem = DataStem(stream.stored_schema, QueryStem(stream.stored_schema))
    stem.append(source.rows.rows_before(from_ms))
    before = len(stem)
    for rows in _checked(source, history.rows, from_ms, until_ms, room):
        stem.append(rows)
    joined = _joined(stem.rows(), source.rows, source.rows.first_at_or_after(until_ms))
    origin = origin_of(source.rows, until_ms, len(stem) - before, joined.base, from_ms)
    return replace(source, rows=replace(joined, origin=origin), retained_from_ms=from_ms)


def _checked(
    source: SourceView, batches: Iterable[Batch], from_ms: int, until_ms: int, room: _Room
) -> Iterator[Batch]:
    name, schema = source.stream.name, source.stream.stored_schema
    for rows in batches:
        room.take(len(rows))
        if rows.schema != schema:
            raise BackfillRefused(name, "the rows have another schema", until_ms)
        check_rows(name, rows, from_ms, until_ms)
        if len(rows):
            from_ms = int(rows.timestamp[-1])
            yield rows


def _joined(earlier: Rows, later: Rows, boundary: int) -> Rows:
    """Earlier rows, then those of the later ones from an ordinal on, which keep theirs if that can be."""
    n = earlier.end - earlier.base
    by = RAISED if boundary < n else 0
    first = boundary + by - n
    parts = [replace(part, first=part.first - earlier.base + first) for part in earlier.parts]
    for part, start, _ in later.ranges(boundary, later.end):
        part = part if not start else _from(part, start)
        parts.append(replace(part, first=part.first + by))
    return Rows(later.schema, tuple(parts), first, later.end + by)


def _from(part: SegmentView, start: int) -> SegmentView:
    """The rows of a part from one on, without a copy and without their matches."""

    def cut(column: SegmentColumn) -> SegmentColumn:
        valid = None if column.valid is None else column.valid[start:]
        return replace(column, values=column.values[start:], valid=valid)

    return replace(
        part,
        first=part.first + start,
        n=part.n - start,
        columns=tuple(cut(column) for column in part.columns),
        origins=part.origins.behind(start),
        timestamp=part.timestamp[start:],
        zones=(),
    )
