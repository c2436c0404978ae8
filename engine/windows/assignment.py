"""Table functions: TUMBLE, HOP and SESSION put rows into windows with a start and an end.

Windows are half-open, ``start <= ts < end``; those of TUMBLE and HOP are aligned to 1970-01-01 UTC plus an
offset, also before 1970. A window is *closed* once NOW >= end - 1 ms, and a row is seen once in each closed
window it is in, with the columns ``window_start`` and ``window_end`` after its own. Rows are then ordered by
(window_end, window_start, their order in the stream), and a row's instant is the last one of its window,
end - 1.

A session begins with a row and holds those of the same keys that follow within less than the gap: a row
exactly ``gap_ms`` after the last one stands at the session's end, outside it, and begins another. NULL is a
key like others, so is NaN, -0.0 is 0.0, and a key that is an error counts as NULL.
"""

from __future__ import annotations

from dataclasses import dataclass

from engine.model.expressions import Expression

WINDOW_COLUMNS = ("window_start", "window_end")
WINDOWS_A_ROW_MAX = 1_000
"""The most windows of a HOP that one row may be in."""


@dataclass(frozen=True, slots=True)
class Hop:
    """A window of ``size_ms`` begins every ``slide_ms``; TUMBLE where they are equal. offset_ms <
    slide_ms.

    A row is in size / slide windows, rounded either way; where the slide is longer than the size, perhaps
    in none.
    """

    size_ms: int
    slide_ms: int
    offset_ms: int = 0

    def first_end_after(self, instant_ms: int) -> int:
        """The end of the first window that ends after an instant, that is: whose last instant is at or
        after it.
        """
        anchor = self.offset_ms + self.size_ms
        return instant_ms + self.slide_ms - (instant_ms - anchor) % self.slide_ms

    def last_end_at(self, now_ms: int) -> int:
        """The end of the last window that is closed at NOW."""
        return self.first_end_after(now_ms + 1) - self.slide_ms


@dataclass(frozen=True, slots=True)
class Session:
    """A window ends when no row with the same keys came for ``gap_ms``: end = last row's instant + gap_ms."""

    gap_ms: int
    keys: tuple[Expression, ...] = ()


Assignment = Hop | Session
