"""What a source lets go of at the end of a step.

At its own NOW it keeps what RETAIN says. At NOW of each standing query over it, which may lag behind, it
keeps that as well, and what the query's windows reach beyond it; while a query has no NOW yet, all. Of the
rows that are kept for queries that lag, beyond what these would need if they did not, at most
``held_rows_max`` stay, the newest. Of a table, whose current rows stay all the same, that goes for the
versions after what is retained.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from engine.language.query import Scan
from engine.reference.rows import Source
from engine.reference.windows import reach_ms
from engine.windows.clauses import RowWindow


@dataclass(frozen=True, slots=True)
class Reader:
    """The scans of a standing query over a source, each with how long before NOW it is looked at (None: from
    the first row on), and at which instant the query sees that now.
    """

    instant: int | None
    scans: Sequence[tuple[Scan, int | None]]


def retain(source: Source, readers: Sequence[Reader], held_rows_max: int) -> None:
    """Move ``retained_from`` and ``base`` on."""
    if source.now is None:
        return
    if source.stream.is_table:
        source.retained_from = _of_versions(source, source.now, readers, held_rows_max)
        return
    retained_from, base = needed(source, readers)
    allowed = len(source.rows) - held_rows_max
    if base < allowed:
        prompt = [Reader(source.now, reader.scans) for reader in readers]
        base = max(base, min(allowed, needed(source, prompt)[1]))
        if base > source.base:
            first = source.rows[base - 1].timestamp + 1
            source.retained_from = first if retained_from is None else max(retained_from, first)
            retained_from, rest = needed(source, readers)
            base = max(base, rest)  # what is left of the instant in which the cut fell
    source.retained_from = retained_from
    source.base = max(source.base, base)


def needed(source: Source, readers: Sequence[Reader]) -> tuple[int | None, int]:
    """From which instant on, and from which ordinal on, rows are needed."""
    assert source.now is not None
    retain_ms = source.stream.retain_ms
    retained_from, base = source.now - retain_ms, len(source.rows)
    counts: list[int] = []
    """Sizes of the windows of rows that are looked at at each retained instant."""
    for reader in readers:
        if reader.instant is None:
            return source.retained_from, source.base
        for scan, behind_ms in reader.scans:
            behind = behind_ms or 0
            reach = (reach_ms(scan) or 0) + behind
            retained_from = min(retained_from, reader.instant - max(retain_ms, reach))
            if isinstance(scan.window, RowWindow) and scan.window.plain and scan.assignment is None:
                visible = sum(row.timestamp <= reader.instant - behind for row in source.rows)
                base = min(base, visible - scan.window.rows)
                if behind_ms is None:
                    counts.append(scan.window.rows)
    if source.retained_from is not None:
        retained_from = max(source.retained_from, retained_from)
    first = source.first_at_or_after(retained_from)
    return retained_from, min(base, first, *(first - count for count in counts))


def _of_versions(source: Source, now: int, readers: Sequence[Reader], held_rows_max: int) -> int | None:
    """From which instant on a table is known."""
    retained_from, _ = needed(source, readers)
    after = [row for row in source.rows if retained_from is None or row.timestamp > retained_from]
    if len(after) <= held_rows_max:
        return retained_from
    prompt, _ = needed(source, [Reader(now, reader.scans) for reader in readers])
    assert prompt is not None
    newest = source.rows[len(source.rows) - held_rows_max - 1].timestamp
    allowed = min(prompt, newest)
    return allowed if retained_from is None else max(retained_from, allowed)
