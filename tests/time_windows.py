"""Windows as tests write them."""

from __future__ import annotations

from engine.windows.clauses import NOW, Instant, TimeWindow


def range_window(width_ms: int) -> TimeWindow:
    """``[RANGE width]``; width 0 is ``[NOW]``."""
    return TimeWindow(Instant(relative=True, ms=-width_ms), NOW)
