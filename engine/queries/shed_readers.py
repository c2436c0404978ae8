"""Which standing queries let rows be shed, what they lack by what was shed, and when that is told anew.

Queries that let the same share of a source go and whose windows over it reach as far are one *class*: they
lack the same. What classes lack is looked at when a run of shed rows begins, with every TOLD_ROWS rows of
one, and when NOW has gone on by TOLD_MS while there are runs: O(classes * runs) then, else O(1) a step.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from engine.language.query import Scan
from engine.language.templates import FixedQuery
from engine.model.approximation import Approximation, Expected, Missing, few_intervals
from engine.model.shed import ShedWithin
from engine.model.source import SourceName
from engine.model.step import Position
from engine.overload.tolerated import level_of
from engine.queries.approximations import is_row_by_row
from engine.sources.source import Source
from engine.standing.query import StandingQuery
from engine.windows.clauses import RowWindow
from engine.windows.retention import reach_ms

TOLD_ROWS = 65_536
TOLD_MS = 1_000


@dataclass(frozen=True, slots=True)
class Sheddable:
    """What may be shed of a source. levels: that its queries allow, ascending, in parts per million. weight:
    of these queries together. is_seen: whether a query sees every row.
    """

    levels: tuple[int, ...]
    weight: float
    is_seen: bool

    def is_unseen(self, level: int) -> bool:
        """Whether nobody sees what is shed at a level, so that it need not be read."""
        return not self.is_seen and bool(self.levels) and level <= self.levels[0]


NOTHING_TO_SHED = Sheddable((), 0.0, True)


class _Class(NamedTuple):
    """level: parts per million. reach_ms: behind NOW, None: everything there is. rows: of a window of the
    last rows, else None.
    """

    level: int
    reach_ms: int | None
    rows: int | None


class _Lack(NamedTuple):
    """missing, due: records. within: the runs that the missing ones lie in."""

    missing: int
    due: int
    within: ShedWithin

    @property
    def share(self) -> float:
        return self.missing / self.due if self.due else 1.0

    @property
    def told(self) -> tuple[int, Position]:
        """What is told anew when it is another one."""
        return round(100 * self.share), self.within.since


class _Reader(NamedTuple):
    """A tolerant query. classes: those of its scans that let rows go. blind: the sources of which no other
    scan of the query sees every row. is_full: it is given less already, maybe as much as its bounds allow, so
    that nothing more is shed for it.
    """

    classes: tuple[tuple[SourceName, _Class], ...]
    blind: frozenset[SourceName]
    weight: float
    is_full: bool


class ShedReaders:
    """Tolerant queries by source and class. One owner, as the engine."""

    def __init__(self, sources: Mapping[str, Source]) -> None:
        self._sources = sources
        self._readers: dict[str, _Reader] = {}
        self._classes: dict[SourceName, dict[_Class, dict[str, None]]] = {}
        self._looked: dict[SourceName, tuple[int, int, int]] = {}
        self._lacks: dict[tuple[SourceName, _Class], _Lack | None] = {}
        """As told last."""

    def came(self, standing: StandingQuery) -> None:
        """A query stands, maybe in place of another one of its id. O(scans)."""
        self.gone(standing.query_id)
        if not isinstance(standing.template, FixedQuery):  # no condition is put into a template
            return
        classes, seeing = [], set()
        for scan in standing.query.scans():
            level = level_of(scan, self._sources[scan.source].stream)
            if level:
                classes.append((scan.source, _class_of(scan, level)))
            else:
                seeing.add(scan.source)
        if not classes:
            return
        blind = frozenset(name for name, _ in classes if name not in seeing)
        is_bounded = any(bound < 1.0 for bound in standing.tolerance.named().values())
        is_full = standing.allotted is not None and is_bounded
        self._readers[standing.query_id] = _Reader(tuple(classes), blind, standing.weight, is_full)
        for name, one in classes:
            self._classes.setdefault(name, {}).setdefault(one, {})[standing.query_id] = None

    def gone(self, query_id: str) -> None:
        """A query goes, if it is one of these."""
        reader = self._readers.pop(query_id, None)
        for name, one in dict.fromkeys(() if reader is None else reader.classes):
            classes = self._classes[name]
            del classes[one][query_id]
            if not classes[one]:
                del classes[one]
                self._lacks.pop((name, one), None)
            if not classes:
                del self._classes[name]

    def sheddable(self, name: SourceName, queries: int) -> Sheddable:
        """What may be shed of a source that so many queries read. O(its tolerant queries)."""
        classes = self._classes.get(name)
        if classes is None:
            return NOTHING_TO_SHED
        readers = [self._readers[one] for one in {one for held in classes.values() for one in held}]
        # Rows of a level are hidden from all whose level is as high: from none of those that are full.
        full = [
            each.level for one in readers if one.is_full for source, each in one.classes if source == name
        ]
        least = max(full, default=0)
        levels = tuple(sorted({one.level for one in classes if one.level > least}))
        if not levels:
            return NOTHING_TO_SHED
        blind = sum(name in one.blind for one in readers)
        weight = math.fsum(one.weight for one in readers)
        return Sheddable(levels, weight, bool(full) or queries > blind)

    def moved(self, name: SourceName) -> Iterator[str]:
        """Queries whose tags over a source are others after the step at hand."""
        source, classes = self._sources[name], self._classes.get(name)
        if classes is None or not source.sheds:
            return
        last, now_ms = source.sheds.runs[-1], source.clock.now_ms
        rows = (last.rows + last.unread) // TOLD_ROWS
        look = last.since.sequence, rows, -1 if now_ms is None else now_ms // TOLD_MS
        if self._looked.get(name) == look:
            return
        self._looked[name] = look
        for one, queries in classes.items():
            lack = self._lack(source, one)
            told = self._lacks.get((name, one))
            if (told and told.told) != (lack and lack.told):
                self._lacks[name, one] = lack
                yield from queries

    def shares(self, standing: StandingQuery) -> dict[SourceName, float]:
        """Returns the share of the rows due that was shed, by source, for each source of which the answer
        lacks rows that were shed.
        """
        reader, found = self._readers.get(standing.query_id), dict[SourceName, float]()
        for name, one in () if reader is None else reader.classes:
            lack = self._lack(self._sources[name], one)
            if lack is not None:
                found[name] = max(found.get(name, 0.0), lack.share)
        return found

    def tags(self, standing: StandingQuery) -> Iterator[Approximation]:
        """A tag for each source of which the answer lacks rows that were shed."""
        reader = self._readers.get(standing.query_id)
        for name, one in () if reader is None else reader.classes:
            lack = self._lack(self._sources[name], one)
            if lack is None:
                continue
            expected = Expected(0.0, lack.share) if is_row_by_row(standing.query) else Expected()
            missing = Missing(lack.missing, lack.due, few_intervals(lack.within.intervals))
            yield Approximation(
                "shed",
                name,
                "dynamic",
                round(100 * lack.share, 2),
                "percent",
                since=lack.within.since,
                expected=expected,
                contiguous=True,
                missing=missing,
            )

    def _lack(self, source: Source, one: _Class) -> _Lack | None:
        """What queries of a class lack of a source. O(runs)."""
        rows, now_ms = source.rows.rows(), source.clock.now_ms
        from_ms = None if one.reach_ms is None or now_ms is None else now_ms - one.reach_ms
        first = rows.base if from_ms is None else max(rows.base, rows.first_at_or_after(from_ms))
        if one.rows is not None and rows.base < rows.end:
            first = max(rows.base, rows.end - one.rows)
            from_ms = rows.timestamp_of(first)
        within = source.sheds.within(one.level, from_ms)
        if within is None:
            return None
        due = rows.end - first + within.unread
        missing = min(due, within.rows + within.unread)
        return _Lack(missing, due, within)


def _class_of(scan: Scan, level: int) -> _Class:
    window = scan.window
    if isinstance(window, RowWindow):
        return _Class(level, None, window.rows if window.plain else None)
    return _Class(level, reach_ms(window, scan.assignment), None)
