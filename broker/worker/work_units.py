"""What a unit of preference work takes on this machine, and how many units a second it may have at most.

Pure: clocks are passed in, in nanoseconds. O(1) a call.
"""

from __future__ import annotations

import math

FIRST_NS = 10_000.0
"""Of a unit, before any was measured: more than most take, so that the first grants are small."""
FALL = 0.5
"""From one measurement to the next the estimate falls to this share at most: grants double at most."""
TOLD_UNITS_MIN, TOLD_NS_MIN = 16, 5_000_000.0
"""Fewer units that took less tell nothing of one: a step has costs of its own."""
BURST_S = 0.25
"""The work that a limit allows in this time may be done at once, and at least a unit."""

_S = 1_000_000_000
"""In ns."""


class UnitCost:
    """``ns``: of a unit of work. Rises at once to what was measured, so that a step that took too long is
    followed by a shorter one.
    """

    def __init__(self) -> None:
        self.ns = FIRST_NS

    def measured(self, units: int, took_ns: float) -> None:
        """So many units took so long."""
        if units >= TOLD_UNITS_MIN or (units and took_ns >= TOLD_NS_MIN):
            self.ns = max(took_ns / units, self.ns * FALL, 1.0)

    def units_in(self, span_ns: float) -> int:
        """How many are done in a span of time; one where there is any time."""
        return max(1, int(span_ns / self.ns)) if span_ns > 0 else 0


class WorkLimit:
    """``per_s_max``: units a second; None: no limit, 0: none at all."""

    def __init__(self, per_s_max: int | None, now_ns: int) -> None:
        self.per_s_max = per_s_max
        self._ns = now_ns
        self._units = 0.0

    def set(self, per_s_max: int | None, now_ns: int) -> None:
        """Another limit from now on; what the last one left is forfeited."""
        self.per_s_max = per_s_max
        self._ns, self._units = now_ns, 0.0

    def left(self, now_ns: int) -> float:
        """How many units may be done now."""
        if self.per_s_max is None:
            return math.inf
        passed_s = max(0, now_ns - self._ns) / _S
        self._units = min(self._burst, self._units + passed_s * self.per_s_max)
        self._ns = now_ns
        return self._units

    def spent(self, units: int) -> None:
        """So many were done."""
        self._units -= units

    def wait_s(self, units: int, now_ns: int) -> float:
        """How long until so many may be done at once, or as many as ever may."""
        if self.per_s_max is None:
            return 0.0
        if not self.per_s_max:
            return math.inf
        return max(0.0, min(units, self._burst) - self.left(now_ns)) / self.per_s_max

    @property
    def _burst(self) -> float:
        return 0.0 if not self.per_s_max else max(1.0, self.per_s_max * BURST_S)
