"""What windows of queries over a set of sources need: rows that are retained, and steps in which NOW
alone moves on.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from typing import Any

from sortedcontainers import SortedDict

from engine.language.query import Query
from engine.model.source import SourceName
from engine.model.state_tree import Tree
from engine.windows.clauses import RowWindow
from engine.windows.retention import Hold, reach_ms


@dataclass(frozen=True, slots=True)
class _OfSource:
    """What windows over one source need, and how many windows need it: reaches: milliseconds behind NOW.
    counts: last rows. earlier: pairs of milliseconds behind NOW, None at the beginning, and rows before that.
    """

    reaches: SortedDict = field(default_factory=SortedDict)
    counts: SortedDict = field(default_factory=SortedDict)
    earlier: dict[tuple[int | None, int], int] = field(default_factory=dict)

    def each(self) -> tuple[dict[Any, int], ...]:
        """The three."""
        return self.reaches, self.counts, self.earlier


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
            kept: list[tuple[dict[Any, int], Hashable]] = []
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
                _add(held, reach, change)

    def add(self, other: WindowNeeds) -> None:
        """The windows that another one counts come, over the same sources. O(distinct windows)."""
        self._following_now += other._following_now
        for name, of in other._of.items():
            for mine, held in zip(self._of[name].each(), of.each(), strict=True):
                for reach, count in held.items():
                    _add(mine, reach, count)

    def state(self) -> Tree:
        """What :meth:`restore` takes. O(distinct windows)."""
        of = [
            [
                name,
                [
                    [[list(k) if isinstance(k, tuple) else k, n] for k, n in held.items()]
                    for held in one.each()
                ],
            ]
            for name, one in self._of.items()
        ]
        return {"following_now": self._following_now, "of": of}

    def restore(self, tree: Tree) -> None:
        """Count what was counted when :meth:`state` was taken; nothing is counted yet."""
        self._following_now = tree["following_now"]
        for name, kinds in tree["of"]:
            for held, pairs in zip(self._of[SourceName(name)].each(), kinds, strict=True):
                held.update({tuple(k) if isinstance(k, list) else k: count for k, count in pairs})

    @property
    def follow_now(self) -> bool:
        """Whether an answer may change as NOW moves on, and no row enters a source."""
        return len(self._of) > 1 or self._following_now > 0

    def hold(self, name: SourceName, seen_ms: int | None) -> Hold:
        """What the queries need of one of the sources, which they see at this instant."""
        of = self._of[name]
        earlier = tuple(sorted(of.earlier, key=str))
        reach_ms, rows = (held.peekitem()[0] if held else 0 for held in (of.reaches, of.counts))
        return Hold(seen_ms, reach_ms, rows, earlier)

    def reaches_ms(self, name: SourceName) -> list[int]:
        """How far the two windows over a source reach that reach furthest."""
        reaches = self._of[name].reaches
        return [reach for reach in reaches.keys()[-2:] for _ in range(min(2, reaches[reach]))][-2:]


def _add(counts: dict[Any, int], key: Hashable, by: int) -> None:
    """What counts nothing is not kept."""
    count = counts.get(key, 0) + by
    if count:
        counts[key] = count
    else:
        del counts[key]
