"""At which instants the rows of a scan may be others than a millisecond before.

More than need be, never fewer: for every row each instant at which it could come or go by its own timestamp.
Between two of these a scan gives the same rows, so that a difference is looked for at these alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from engine.language.query import Scan
from engine.reference.rows import Row
from engine.windows.assignment import Hop
from engine.windows.clauses import TimeWindow


def instants(scan: Scan, rows: Iterable[Row]) -> Iterator[int]:
    """The instants that rows of a stream give, seen through a scan's windows."""
    for row in rows:
        yield row.timestamp
        for instant in _of_row(scan, row.timestamp):
            yield instant
            if isinstance(scan.window, TimeWindow):
                yield from of_window(scan.window, instant)


def _of_row(scan: Scan, timestamp: int) -> Iterator[int]:
    """The instants that a row may have in the windows of a table function: each one's last."""
    match scan.assignment:
        case None:
            yield timestamp
        case Hop(size, slide, offset):
            start = offset + (timestamp - offset) // slide * slide
            while start + size > timestamp:
                yield start + size - 1
                start -= slide
        case session:
            yield timestamp + session.gap_ms - 1


def of_window(window: TimeWindow, instant: int) -> Iterator[int]:
    """When a row of this instant comes into a window of time, and when it is out of it."""
    turns = [instant]
    if window.end.relative:
        turns.append(instant - window.end.ms)
    if window.begin is not None and window.begin.relative:
        turns.append(instant - window.begin.ms + 1)
    for turn in turns:
        yield turn if window.slide_ms is None else -(-turn // window.slide_ms) * window.slide_ms
