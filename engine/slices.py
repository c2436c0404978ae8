"""Work done in slices between steps: dear things are made without holding up the steps of others.

A slice takes about :data:`SLICE_NS`, as the time that slices before it took for their rows says; without a
timer it has :data:`SLICE_ROWS` rows. What is made changes no answer: a step that comes later finds it made.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from engine.eddy.eddy import Timer

SLICE_NS = 50_000_000
SLICE_ROWS = 32
"""The first slice has so many rows, before anything was measured."""
SLICE_ROWS_MIN = 1
SLICE_ROWS_MAX = 65_536
GROWTH = 4
"""A slice has at most so many times as many rows as the one before."""


class InSlices(Protocol):
    """Something that is made in slices, for a step to come."""

    def some(self) -> bool:
        """A slice. Returns whether there was anything to do."""

    @property
    def is_done(self) -> bool:
        """Whether the step can come."""

    @property
    def progress(self) -> float:
        """What share of it is made, 0 to 1."""

    def dismiss(self) -> None:
        """The step has come, or does not come. Once."""


class Pace:
    """How many rows a slice has."""

    def __init__(self, timer: Timer | None) -> None:
        self.rows = SLICE_ROWS
        self._timer = timer

    def run(self, slice_of: Callable[[int], int]) -> int:
        """Do a slice. slice_of: takes how many rows it may have at most, returns how many it had."""
        if self._timer is None:
            return slice_of(self.rows)
        began = self._timer()
        rows = slice_of(self.rows)
        row_ns = max(1.0, (self._timer() - began) / max(1, rows))
        most = min(GROWTH * self.rows, SLICE_ROWS_MAX)
        self.rows = max(SLICE_ROWS_MIN, min(most, int(SLICE_NS / row_ns)))
        return rows
