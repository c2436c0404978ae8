"""Window clauses and the rows they hold at an instant.

Windows are closed at both ends, at ms precision (CQL). ``bounds_ms`` gives the first
and the last timestamp that are inside; a row window counts rows instead.

    [RANGE T]        NOW-T <= ts <= NOW
    [NOW]            ts = NOW
    [UNBOUNDED]      ts <= NOW
    BEGIN b END e    b <= ts <= e, each end a constant or relative to NOW
    [ROWS n]         the last n visible rows in (timestamp, partition, offset) order

``[RANGE T SLIDE S]`` follows NOW in steps: NOW rounded down to a multiple of S takes its place, with [NOW]
and [UNBOUNDED] as well. A row on the boundary is in both windows. ``[PARTITION BY k ROWS n]`` holds the last
n rows of each k, ``[ROWS n WHERE p]`` the last n that satisfy p.
"""

from __future__ import annotations

from dataclasses import dataclass

from engine.model.expressions import Expression


@dataclass(frozen=True, slots=True)
class Instant:
    """An end of a window: a constant instant, or NOW plus an offset (negative: back in time)."""

    relative: bool
    ms: int

    def at(self, now_ms: int) -> int:
        return now_ms + self.ms if self.relative else self.ms


@dataclass(frozen=True, slots=True)
class TimeWindow:
    """``begin <= ts <= end`` and never beyond NOW; ``begin`` None: from the first row on.

    A constant begin and end make a snapshot window, a constant begin with end NOW a landmark, two relative
    ends a sliding (end NOW) or lagging one.
    """

    begin: Instant | None
    end: Instant
    slide_ms: int | None = None

    def bounds_ms(self, now_ms: int) -> tuple[int | None, int]:
        """First (None: no bound) and last timestamp inside at this NOW; empty where first > last."""
        if self.slide_ms is not None:
            now_ms -= now_ms % self.slide_ms
        begin = None if self.begin is None else self.begin.at(now_ms)
        return begin, min(self.end.at(now_ms), now_ms)

    @property
    def follows_now(self) -> bool:
        """Whether rows come in or go out as NOW moves on, and no row enters the stream."""
        if self.slide_ms is not None or (self.begin is not None and self.begin.relative):
            return True
        return self.end.relative and self.end.ms < 0

    @property
    def reach_ms(self) -> int | None:
        """How far behind NOW the window reaches: what retention must keep. None: nothing to widen."""
        if self.begin is None or not self.begin.relative:
            return None
        return max(0, -self.begin.ms) + (0 if self.slide_ms is None else self.slide_ms - 1)


@dataclass(frozen=True, slots=True)
class RowWindow:
    """The last ``rows`` visible rows of the stream, before the query's predicate is applied.

    keys: the last rows of each value of these (NULL is a value, NaN too); filter: of those where it is TRUE.
    """

    rows: int
    keys: tuple[Expression, ...] = ()
    filter: Expression | None = None

    @property
    def follows_now(self) -> bool:
        """As :attr:`TimeWindow.follows_now`."""
        return False

    @property
    def plain(self) -> bool:
        """Whether it is a range of ordinals."""
        return not self.keys and self.filter is None


Window = TimeWindow | RowWindow

NOW = Instant(relative=True, ms=0)
UNBOUNDED = TimeWindow(None, NOW)
