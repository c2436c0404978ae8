"""What windows of queries over a set of sources need: rows that are retained, and steps in which NOW
alone moves on.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from sortedcontainers import SortedList

from engine.language.query import Query
from engine.model.source import SourceName
from engine.windows.clauses import RowWindow
from engine.windows.retention import Hold, reach_ms


@dataclass(frozen=True, slots=True)
class _OfSource:
    """What windows over one source need, an entry for each window: reaches: milliseconds behind NOW. counts:
    last rows. earlier: pairs of milliseconds behind NOW, None at the beginning, and rows before that.
    """

    reaches: SortedList = field(default_factory=SortedList)
    counts: SortedList = field(default_factory=SortedList)
    earlier: SortedList = field(default_factory=lambda: SortedList(key=str))


class WindowNeeds:
    """One owner, as the engine."""

    def __init__(self, sources: Iterable[SourceName]) -> None:
        self._of = {name: _OfSource() for name in sources}
        self._following_now = 0
        """Scans with windows that move with NOW, and queries with streams of subqueries."""

    def count(self, query: Query, change: int) -> None:
        """The windows of a query come, 1, or go, -1."""
        self._following_now += change * query.has_streams
        for scan, behind_ms in query.scans_behind():
            if scan.assignment is not None or scan.window.follows_now:
                self._following_now += change
            kept: list[tuple[SortedList, object]] = []
            of = self._of[scan.source]
            width_ms = reach_ms(scan.window, scan.assignment)
            if width_ms is not None or behind_ms:
                kept.append((of.reaches, (width_ms or 0) + (behind_ms or 0)))
            if isinstance(scan.window, RowWindow) and scan.window.plain and scan.assignment is None:
                if behind_ms != 0:
                    kept.append((of.earlier, (behind_ms, scan.window.rows)))
                else:
                    kept.append((of.counts, scan.window.rows))
            for held, reach in kept:
                if change > 0:
                    held.add(reach)
                else:
                    held.remove(reach)

    @property
    def follow_now(self) -> bool:
        """Whether an answer may change as NOW moves on, and no row enters a source."""
        return len(self._of) > 1 or self._following_now > 0

    def hold(self, name: SourceName, seen_ms: int | None) -> Hold:
        """What the queries need of one of the sources, which they see at this instant."""
        of = self._of[name]
        earlier = tuple(sorted(set(of.earlier), key=str))
        reach_ms, rows = (held[-1] if held else 0 for held in (of.reaches, of.counts))
        return Hold(seen_ms, reach_ms, rows, earlier)

    def reaches_ms(self, name: SourceName) -> list[int]:
        """How far the two windows over a source reach that reach furthest."""
        return list(self._of[name].reaches[-2:])
