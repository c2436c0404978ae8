"""What the queries over the links answer, worked out by numpy from the rows alone, by source.

An answer at unit t is over the rows of units t - window + 1 to t of each link: those that the engine sees at
the last millisecond of unit t. It is counted by source, int64[sources]: how many rows of the answer have it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from benchmarks.connections import Connections

Counts = npt.NDArray[np.int64]

LEFT_CAME, LEFT_WENT, RIGHT_CAME, RIGHT_WENT = range(4)


@dataclass(frozen=True, slots=True)
class Answers:
    """The answers of queries over windows of ``window`` units."""

    rows: Connections
    window: int
    sources_max: int
    """Sources have numbers below this."""

    @classmethod
    def of(cls, rows: Connections, window: int) -> Answers:
        """The answers over windows of ``window`` units."""
        return cls(rows, window, 1 + int(rows.src.max(initial=-1)))

    def rows_of(self, link: int, unit: int) -> Counts:
        """All rows of a link (from 0)."""
        return self._counts(link, unit)

    def pairs(self, unit: int, protocol: str) -> Counts:
        """Query 1: rows of a protocol of links 1 and 2, joined on their source."""
        return self._counts(0, unit, protocol) * self._counts(1, unit, protocol)

    def sources(self, unit: int) -> Counts:
        """Query 2: the distinct sources of link 1."""
        return (self._counts(0, unit) > 0).astype(np.int64)

    def ends(self, unit: int) -> Counts:
        """Query 2: the distinct pairs of source and destination of link 1."""
        inside = self._inside(unit)
        src, dst = (each[0, inside].astype(np.int64) for each in (self.rows.src, self.rows.dst))
        hosts = 1 + int(dst.max(initial=0))
        return self._by_source(np.unique(src * hosts + dst) // hosts)

    def negation(self, unit: int) -> Counts:
        """Query 3: link 1 minus link 2 on the source."""
        return np.maximum(self._counts(0, unit) - self._counts(1, unit), 0)

    def common_sources(self, unit: int) -> Counts:
        """Query 4: the distinct sources of link 1 joined with those of link 2."""
        return ((self._counts(0, unit) > 0) & (self._counts(1, unit) > 0)).astype(np.int64)

    def negation_joined(self, unit: int) -> Counts:
        """Query 5: query 3 joined with ftp of link 3 on the source."""
        return self.negation(unit) * self._counts(2, unit, "ftp")

    def absent_joined(self, unit: int) -> Counts:
        """Query 5 as sets: rows of link 1 with a source that link 2 has not, joined with ftp of link 3."""
        return self._counts(0, unit) * (self._counts(1, unit) == 0) * self._counts(2, unit, "ftp")

    def composites_left(self, unit: int) -> Counts:
        """What query 5 would give if composites were counted by the negation: more, see the manual."""
        composites = self._counts(0, unit) * self._counts(2, unit, "ftp")
        return np.maximum(composites - self._counts(1, unit), 0)

    def joined(self, unit: int) -> Counts:
        """The pairs of link 1 and ftp of link 3 that query 5 with its join first makes."""
        return self._counts(0, unit) * self._counts(2, unit, "ftp")

    def _inside(self, unit: int) -> slice:
        return slice(max(0, unit - self.window + 1), unit + 1)

    def _counts(self, link: int, unit: int, protocol: str | None = None) -> Counts:
        """Live rows of a link by source."""
        inside = self._inside(unit)
        src = self.rows.src[link, inside]
        if protocol is not None:
            src = src[self.rows.of(protocol)[link, inside]]
        return self._by_source(src)

    def _by_source(self, src: npt.NDArray[np.integer]) -> Counts:
        return np.bincount(src, minlength=self.sources_max)


Answer = Callable[[Answers, int], Counts]
"""One of the answers at a unit."""


@dataclass(frozen=True, slots=True)
class Exits:
    """How rows left the answer of query 3. negative: before their time. timed: when they left the window."""

    negative: int
    timed: int

    @property
    def premature(self) -> float:
        """The share of those that went before their time."""
        return self.negative / max(1, self.negative + self.timed)


def negation_exits(rows: Connections, window: int, since: int, until: int) -> Exits:
    """How rows left the answer of query 3 at units since to until - 1.

    At each unit a row comes and one goes on either link, together. The answer has the youngest rows of each
    source: of its rows in the order in which they came those from number `first` on.
    """
    units, expired = np.arange(until), np.arange(window, until)
    left, right = rows.src[0, :until], rows.src[1, :until]
    src = np.concatenate([left, left[: len(expired)], right, right[: len(expired)]])
    at = np.concatenate([units, expired, units, expired])
    kind = np.repeat([LEFT_CAME, LEFT_WENT, RIGHT_CAME, RIGHT_WENT], [until, len(expired)] * 2)
    order = np.lexsort((at, src))
    src, at, kind = src[order], at[order], kind[order]
    last = np.append((src[1:] != src[:-1]) | (at[1:] != at[:-1]), True)  # event of its source and unit
    begin = np.append(True, src[last][1:] != src[last][:-1])
    runs = np.diff(np.append(np.flatnonzero(begin), len(begin)))

    def so_far(of: int) -> Counts:
        """int64[n]: how many events of a kind the source has had, up to this unit."""
        total = np.cumsum(kind == of)[last]
        earlier = np.append(0, total[:-1])[begin]
        return total - np.repeat(earlier, runs)

    def before(values: Counts) -> Counts:
        """What they were at the source's unit before."""
        return np.where(begin, 0, np.append(0, values[:-1]))

    came, gone = so_far(LEFT_CAME), so_far(LEFT_WENT)
    first = came - np.maximum(came - gone - (so_far(RIGHT_CAME) - so_far(RIGHT_WENT)), 0)
    exits = np.maximum(np.minimum(first, before(came)) - before(first), 0)
    timed = (gone > before(gone)) & (before(first) == before(gone))
    inside = (at[last] >= since) & (at[last] < until)
    total, in_time = int(exits[inside].sum()), int(timed[inside].sum())
    return Exits(total - in_time, in_time)
