"""Window clauses and the rows they hold at an instant.

Windows are closed at both ends, at ms precision (CQL). ``bounds_ms`` gives the first
and the last timestamp that are inside; a row window counts rows instead.

    [RANGE T]        NOW-T <= ts <= NOW
    [NOW]            ts = NOW
    [UNBOUNDED]      ts <= NOW
    BEGIN b END e    b <= ts <= e, each end a constant or relative to NOW
    [ROWS n]         the last n visible rows in (timestamp, partition, offset) order
"""

from __future__ import annotations

from dataclasses import dataclass


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

    def bounds_ms(self, now_ms: int) -> tuple[int | None, int]:
        """First (None: no bound) and last timestamp inside at this NOW; empty where first > last."""
        begin = None if self.begin is None else self.begin.at(now_ms)
        return begin, min(self.end.at(now_ms), now_ms)

    @property
    def reach_ms(self) -> int | None:
        """How far behind NOW the window reaches: what retention must keep. None: nothing to widen."""
        if self.begin is None or not self.begin.relative:
            return None
        return max(0, -self.begin.ms)


@dataclass(frozen=True, slots=True)
class RowWindow:
    """The last ``rows`` visible rows of the stream, before the predicate is applied."""

    rows: int


Window = TimeWindow | RowWindow

NOW = Instant(relative=True, ms=0)
UNBOUNDED = TimeWindow(None, NOW)


def range_window(width_ms: int) -> TimeWindow:
    """``[RANGE width]``; width 0 is ``[NOW]``."""
    return TimeWindow(Instant(relative=True, ms=-width_ms), NOW)
