"""What a unit of preference work takes on this machine, and how many units a second it may have at most.

Pure: clocks are passed in, in nanoseconds. O(1) a call.
"""

from __future__ import annotations

import math

FIRST_NS = 10_000.0
"""Time in ns that a unit takes before any was measured: more than most take, so that the first grants are
small.
"""
MEMORY = 0.8
"""What a measurement weighs after the next one."""
SPREAD = 0.1
"""Measurements whose units differ by a smaller share than this tell nothing of one unit."""
OUTLIER, MEMORY_OF_OTHERS = 4.0, 0.05
"""A measurement that is so many times what was expected, or that part of it, counts far more than those
before: times have changed.
"""
GROWTH = 2.0
"""Factor by which the units grow from one grant to the next, at most."""
BURST_S = 0.25
"""The work that a limit allows in this time may be done at once, and at least a unit."""

_S = 1_000_000_000
"""In ns."""


NS_MIN = 1.0
"""A unit that the clock does not show takes as long."""


class UnitCost:
    """What grants take: ``fixed_ns`` each, and ``ns`` a unit.

    Both are fitted to the last grants by least squares, older ones counting less. What a unit takes is held
    to be less by the standard error of the fit: on a busy machine grants differ in what they wait for, and
    that must not make them ever smaller. The units of a grant are besides bound to those of the last one that
    was used up: they double at most, and after one that took too long they fall as much as it did.
    """

    def __init__(self) -> None:
        self.ns = FIRST_NS
        self.fixed_ns = 0.0
        self._units = self._took = self._squares = self._products = self._weight = 0.0
        """Sums over the grants: of units, of times, of squares of units, of units times times, of weights."""
        self._took_squares = 0.0
        self._last: tuple[int, float] | None = None
        """Units of the last one that was used up, and what they took."""

    def measured(self, granted: int, units: int, took_ns: float) -> None:
        """Take in a measurement: of ``granted`` units ``units`` were used, which took ``took_ns``."""
        if not units:
            return
        expected_ns = self.fixed_ns + units * self.ns
        is_usual = expected_ns / OUTLIER <= took_ns <= expected_ns * OUTLIER
        memory = MEMORY if is_usual else MEMORY_OF_OTHERS
        self._weight = memory * self._weight + 1.0
        self._units = memory * self._units + units
        self._took = memory * self._took + took_ns
        self._squares = memory * self._squares + units * units
        self._products = memory * self._products + units * took_ns
        self._took_squares = memory * self._took_squares + took_ns * took_ns
        mean, took = self._units / self._weight, self._took / self._weight
        spread = self._squares / self._weight - mean * mean
        if spread > (SPREAD * mean) ** 2:
            slope = (self._products / self._weight - mean * took) / spread
            unexplained = max(0.0, self._took_squares / self._weight - took * took - slope * slope * spread)
            slope -= math.sqrt(unexplained / (spread * self._weight))
            self.ns = min(max(slope, NS_MIN), took / mean)
            self.fixed_ns = max(0.0, took - self.ns * mean)
        elif mean < 1 + SPREAD:  # fewer than one there are not: two of them tell
            self.ns, self.fixed_ns = min(self.ns, took), took
        else:  # units are held to be what differs; fewer of them next time tell
            self.fixed_ns = min(self.fixed_ns, took)
            self.ns = (took - self.fixed_ns) / mean
        self.ns = max(NS_MIN, self.ns)
        if units == granted or self._last is None:
            self._last = units, took_ns

    def span_ns(self, step_ns: float) -> float:
        """How long a grant may take that should take ``step_ns``: longer where most of that is fixed."""
        return max(step_ns, self.fixed_ns + step_ns / 2)

    def units_in(self, span_ns: float) -> int:
        """How many are done in a span of time; 0: it is too short for any."""
        if span_ns <= self.fixed_ns:
            return 0
        units = (span_ns - self.fixed_ns) / self.ns
        if self._last is not None:
            last, took_ns = self._last
            units = min(units, last * (GROWTH if took_ns <= span_ns else span_ns / took_ns))
        return max(1, int(units))


class WorkLimit:
    """``per_s_max``: units a second; None: no limit, 0: none at all."""

    def __init__(self, per_s_max: int | None, now_ns: int) -> None:
        self.per_s_max = per_s_max
        self._ns = now_ns
        self._units = 0.0

    def set(self, per_s_max: int | None, now_ns: int) -> None:
        """Set another limit from now on; what the last one left is forfeited."""
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
        """Note that ``units`` were done."""
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
