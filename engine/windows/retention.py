"""How far behind NOW the rows of a scan reach: what a stream keeps for it beyond its own retention.

A window that ends at NOW holds rows only while they are there, and a table function's window that is yet to
close must have all of its rows when it does. So a HOP keeps the windows that its bracket window reaches, and
at least the last one that closed. How long a session grows nobody knows: it keeps what is retained, and its
last row until it closes. [UNBOUNDED] keeps nothing, nor do constant ends; row windows count rows.
"""

from __future__ import annotations

from dataclasses import dataclass

from engine.windows.assignment import Assignment, Hop
from engine.windows.clauses import RowWindow, Window


def reach_ms(window: Window, assignment: Assignment | None) -> int | None:
    """Milliseconds behind NOW; None where no time is asked for."""
    bracket_ms = None if isinstance(window, RowWindow) else window.reach_ms
    if assignment is None:
        return bracket_ms
    if isinstance(assignment, Hop):
        return assignment.size_ms + max(assignment.slide_ms, bracket_ms or 0)
    return assignment.gap_ms + (bracket_ms or 0)


@dataclass(frozen=True, slots=True)
class Hold:
    """What queries need of a source at their NOW: rows of the last ``reach_ms``, and the last ``rows``.

    now_ms: None where they have no NOW yet, and so may need whatever is there. earlier_rows: (ms, n): the
    last n rows of each instant of the last ms before NOW, None: of each that is retained, for streams of
    subqueries.
    """

    now_ms: int | None
    reach_ms: int
    rows: int
    earlier_rows: tuple[tuple[int | None, int], ...] = ()
