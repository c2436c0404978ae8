"""What the rows that windows keep take, so that it can be said what a shorter or a longer window would.

A stream keeps rows as far back as RETAIN or its widest window reaches. A window that is not the widest
keeps nothing of its own: to make it shorter frees nothing. Rows are taken to come as densely, in the time of
their timestamps, as those that are there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from engine.queries.footprint import held_by
from engine.sources.source import Source


@dataclass(frozen=True, slots=True)
class KeptRows:
    """Tells how much memory the rows of one stream take. nbytes: bytes of its rows with their matches.
    ms_bytes: bytes of the rows of one ms; None: there are no rows to tell by. retain_ms: how long rows stay
    without any window. reaches_ms: how far back the two windows reach that reach furthest, in descending
    order; fewer where there are fewer windows.
    """

    nbytes: int
    ms_bytes: float | None
    retain_ms: int
    reaches_ms: tuple[int, ...]

    def others_ms(self, own_ms: int) -> int:
        """How far back rows are kept without a window that reaches ``own_ms``."""
        reaches = list(self.reaches_ms)
        if own_ms in reaches:
            reaches.remove(own_ms)
        return max(self.retain_ms, *reaches, 0)

    def bytes_of(self, own_ms: int, at_ms: int) -> int | None:
        """What the rows would take that are kept for a window alone, if it reached ``at_ms`` in the place of
        ``own_ms``; None: nothing tells.

        >>> kept = KeptRows(8_000, 2.0, 1_000, (3_000, 2_000))
        >>> kept.bytes_of(3_000, 3_000), kept.bytes_of(3_000, 2_500), kept.bytes_of(3_000, 500)
        (2000, 1000, 0)
        >>> kept.bytes_of(2_000, 1_500)
        0
        """
        if self.ms_bytes is None:
            return None
        return round(self.ms_bytes * max(0, at_ms - self.others_ms(own_ms)))

    def reach_of(self, own_ms: int, nbytes: float) -> int | None:
        """How far the window would have to reach to take so many bytes for itself alone; None: nothing tells.

        >>> KeptRows(8_000, 2.0, 1_000, (3_000, 2_000)).reach_of(3_000, 1_000)
        2500
        """
        if not self.ms_bytes:
            return None
        return self.others_ms(own_ms) + round(nbytes / self.ms_bytes)


def kept_rows(source: Source, reaches_ms: Sequence[int]) -> KeptRows:
    """reaches_ms: the two longest. O(segments * columns)."""
    held, rows, now_ms = held_by(source), source.rows.rows(), source.clock.now_ms
    nbytes = held.rows + held.matches
    ms_bytes = None
    if now_ms is not None and rows.end > rows.base:
        span_ms = max(1, now_ms - rows.timestamp_of(rows.base) + 1)
        ms_bytes = nbytes / span_ms
    return KeptRows(nbytes, ms_bytes, source.stream.retain_ms, tuple(reaches_ms))
