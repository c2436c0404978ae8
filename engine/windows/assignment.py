"""Table functions: TUMBLE, HOP and SESSION put rows into windows with a start and an end.

Windows are half-open, ``start <= ts < end``, aligned to 1970-01-01 UTC plus an offset. A window is *closed*
once NOW >= end - 1 ms, and a row is seen in the windows that are closed.
"""

from __future__ import annotations

from dataclasses import dataclass

from engine.language.expressions import Expression


@dataclass(frozen=True, slots=True)
class Hop:
    """A window of ``size_ms`` begins every ``slide_ms``; TUMBLE where they are equal. offset_ms <
    slide_ms.
    """

    size_ms: int
    slide_ms: int
    offset_ms: int = 0


@dataclass(frozen=True, slots=True)
class Session:
    """A window ends when no row with the same keys came for ``gap_ms``: end = last row's instant + gap_ms."""

    gap_ms: int
    keys: tuple[Expression, ...] = ()


Assignment = Hop | Session
