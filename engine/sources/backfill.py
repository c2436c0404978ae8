"""What of a stream's history fits before what it retains, and what of it queries would like.

History ends at the *history boundary*. All rows of the stream at or after it are there; below it lie only
rows that windows of the last n rows keep, which history replaces as far as it reaches, for it knows rows
among them that came too late for the stream. Whole instants come back, so that the next history ends where
this begins.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from engine.kernels.admission import in_order
from engine.model.batch import Batch
from engine.model.source import Stream
from engine.model.step import Backfill
from engine.model.types import TIMESTAMP_MS_MIN
from engine.stems.data_stem import RAISED, DataStem
from engine.stems.query_stem import QueryStem
from engine.stems.rows import Rows
from engine.windows.retention import Hold
from tureen.errors import BackfillRefused


@dataclass(frozen=True, slots=True)
class Wanted:
    """What standing queries would like of a stream's history at their NOW.

    until_ms: the history boundary. from_ms: the first instant that one of their windows of time holds; None:
    they hold nothing before the history boundary. rows: how many more rows windows of the last n rows would
    hold. gone: rows are known to have been there; otherwise the stream knows of nothing that it lacks.
    """

    until_ms: int
    from_ms: int | None
    rows: int
    gone: bool


def wanted(boundary_ms: int | None, rows: Rows, holds: Iterable[Hold]) -> Wanted | None:
    """None where the source takes no history. A query without NOW wants nothing yet."""
    if boundary_ms is None:
        return None
    known = [hold for hold in holds if hold.now_ms is not None]
    begins_ms = [hold.now_ms - hold.reach_ms for hold in known if hold.now_ms is not None and hold.reach_ms]
    begin_ms = min(begins_ms, default=boundary_ms)
    there = rows.count if rows.complete_from_ms is None else rows.end - rows.first_at_or_after(boundary_ms)
    lacking = max((hold.rows for hold in known), default=0) - there
    gone = rows.lacks_before(boundary_ms) or rows.complete_from_ms is not None
    return Wanted(boundary_ms, begin_ms if begin_ms < boundary_ms else None, max(0, lacking), gone)


def check(stream: Stream, step: Backfill, boundary_ms: int | None) -> None:
    """Raises BackfillRefused."""
    name, batch = stream.name, step.batch

    def refuse(reason: str) -> BackfillRefused:
        return BackfillRefused(name, reason, boundary_ms)

    if boundary_ms is None:
        raise refuse("it is a table" if stream.is_table else "it has no row yet, and therefore no NOW")
    if batch.schema != stream.stored_schema:
        raise refuse("the rows have another schema")
    if step.until_ms != boundary_ms:
        raise refuse(f"it ends before {step.until_ms}, and the stream retains all rows from {boundary_ms} on")
    if step.complete_from_ms > step.until_ms:
        raise refuse(f"it is complete from {step.complete_from_ms} on, after its end at {step.until_ms}")
    check_rows(stream.name, batch, step.complete_from_ms, step.until_ms)


def check_rows(source: str, rows: Batch, from_ms: int, until_ms: int) -> None:
    """Whether they are in order, and of these instants. Raises BackfillRefused."""
    stamps = rows.timestamp
    if not len(rows):
        return
    if not in_order(stamps, rows.partition, rows.offset) or _twice(rows):
        reason = "its rows are not in order of timestamp, partition and offset"
        raise BackfillRefused(source, reason, until_ms)
    if stamps[0] < from_ms or stamps[-1] >= until_ms:
        reason = (
            f"its rows are of {stamps[0]} to {stamps[-1]}, not all from {from_ms} on and before {until_ms}"
        )
        raise BackfillRefused(source, reason, until_ms)


def _twice(rows: Batch) -> bool:
    """Whether a record stands there twice, at one instant."""
    same = (np.diff(rows.timestamp) == 0) & (np.diff(rows.partition) == 0) & (np.diff(rows.offset) == 0)
    return bool(same.any())


def origin_of(rows: Rows, until_ms: int, came: int, base: int, from_ms: int) -> int:
    """The origin once so many rows came back of from_ms up to the history boundary, and ``base`` is the first
    ordinal.

    What comes back shows that the stream did not know all there was; unless it goes back to the beginning of
    time, nobody knows whether there is more.
    """
    lacked = rows.lacks_before(until_ms) or rows.complete_from_ms is not None or came > 0
    return base - 1 if lacked and from_ms > TIMESTAMP_MS_MIN else base


def bring_back(step: Backfill, stem: DataStem, queries: QueryStem) -> int:
    """History comes back to the rows of a stream. Returns the ordinal below which segments are others now.

    O(rows * words + candidates), and the same for the rows of one segment, which is cut.
    """
    stem.owed.catch_up_all()
    stem.owed.postponed.settle()
    rows = stem.rows()
    boundary = rows.first_at_or_after(step.until_ms)
    kept = rows.rows_before(step.complete_from_ms)
    if boundary < len(kept) + len(step.batch):
        stem.rise()
        boundary += RAISED
        changed = stem.end
    else:
        changed = boundary
    errors = queries.slots.errors.copy()
    changed = max(changed, stem.cut(boundary))
    queries.slots.errors[:] = errors  # theirs were counted when they came
    stem.prepend(step.batch)
    if len(kept):
        errors = queries.slots.errors.copy()
        stem.prepend(kept)
        queries.slots.errors[:] = errors
    stem.origin = origin_of(rows, step.until_ms, len(step.batch), stem.base, step.complete_from_ms)
    if rows.complete_from_ms is not None and rows.complete_from_ms <= step.until_ms:
        stem.complete_from_ms = None
    return changed
