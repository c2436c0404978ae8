"""History that comes back to a stream: rows from before what it retains.

It ends at the *history boundary*: what is retained, or the first row that is there while nothing says what
is, or just above NOW; or, if that is later, from where on the stream has all rows its topic had, once NOW is
there. The rows of its instants are then those that it says, whatever was kept of them for windows of the last
n rows; from its beginning on nothing is missing, and before that there may be more, unless it reaches back to
the beginning of time. A row that comes counts its errors, whether it was there before or not.

Rows keep their ordinals and history has those below, but none below 0: then all are higher by 2 ** 40.
"""

from __future__ import annotations

from engine.model.step import Backfill
from engine.model.types import TIMESTAMP_MS_MIN
from engine.reference.rows import Row, Source, python_rows
from tureen.errors import BackfillRefused

RAISED = 2**40


def prepend(source: Source, step: Backfill) -> list[Row]:
    """Returns the rows that came. Raises BackfillRefused."""
    name, boundary = step.source, boundary_of(source)
    if boundary is None:
        raise BackfillRefused(name, "it takes none", None)
    if step.batch.schema != source.stream.stored_schema:
        raise BackfillRefused(name, "another schema", boundary)
    rows = python_rows(step.batch)
    places = [(row.timestamp, row.partition, row.offset) for row in rows]
    if places != sorted(set(places)):
        raise BackfillRefused(name, "no order", boundary)
    if step.until_ms != boundary or step.complete_from_ms > boundary:
        raise BackfillRefused(name, "another history boundary", boundary)
    if any(not step.complete_from_ms <= row.timestamp < boundary for row in rows):
        raise BackfillRefused(name, "rows out of range", boundary)
    there = source.rows[source.base :]
    before = [row for row in there if row.timestamp < step.complete_from_ms]
    after = [row for row in there if row.timestamp >= boundary]
    something_gone = (
        source.lacks or source.complete_from is not None or source.first_at_or_after(boundary) > 0
    )
    source.first += len(source.rows) - len(after) - len(before) - len(rows)
    if source.first < 0:
        source.first += RAISED
    source.rows = before + rows + after
    source.base = 0
    source.lacks = step.complete_from_ms > TIMESTAMP_MS_MIN and (something_gone or bool(rows))
    source.retained_from = step.complete_from_ms
    if source.complete_from is not None and source.complete_from <= boundary:
        source.complete_from = None
    return rows


def boundary_of(source: Source) -> int | None:
    """Where history ends; None where none is taken."""
    if source.stream.is_table or source.now is None:
        return None
    there = source.rows[source.base :]
    first = there[0].timestamp if there else source.now + 1
    boundary = first if source.retained_from is None else source.retained_from
    if source.complete_from is not None and source.complete_from <= source.now + 1:
        boundary = max(boundary, source.complete_from)
    return boundary
