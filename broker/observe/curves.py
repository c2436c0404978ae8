"""Values of the last hour, one an interval, in arrays of a fixed size.

A *tick* is a multiple of the interval since 1970, and has a place in every array; what was not noted at a
tick is NaN there, so that a pause of the process leaves a gap. Values are float32: seven digits, which is
what a curve shows.

    memory    4 bytes * ticks a series
    note      O(series), and O(series * gap) after a pause
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

CLOCK_BACK_TICKS = 2
"""A clock that is set back by so little overwrites the last value; by more, what was noted is forgotten."""

Floats = npt.NDArray[np.float32]


class Curves:
    """Series with a common axis of time. names: with the unit of each."""

    def __init__(self, every_ms: int, ticks: int) -> None:
        self.every_ms = every_ms
        self._ticks = ticks
        self._values: dict[str, Floats] = {}
        self._units: dict[str, str] = {}
        self._first: int | None = None
        self._last: int | None = None

    def note(self, at_ms: int, values: Mapping[str, tuple[float | None, str]]) -> None:
        """Values and units at an instant; None, and series that are left out, are not known then."""
        tick = at_ms // self.every_ms
        if self._last is not None and tick < self._last - CLOCK_BACK_TICKS:
            self._values.clear()
            self._units.clear()
            self._first = self._last = None
        if self._last is None or self._first is None:
            self._first = self._last = tick
        tick = max(tick, self._last)
        passed = range(max(self._last + 1, tick - self._ticks + 1), tick + 1)
        self._last = tick
        self._first = max(self._first, tick - self._ticks + 1)
        if passed:
            places = np.array(passed) % self._ticks
            for series in self._values.values():
                series[places] = math.nan
        place = tick % self._ticks
        for name, (value, unit) in values.items():
            if name not in self._values:
                self._values[name] = np.full(self._ticks, math.nan, np.float32)
            self._units[name] = unit
            self._values[name][place] = math.nan if value is None else value

    def told(self, since_ms: int | None = None) -> dict[str, Any]:
        """``{every_ms, at_ms, series}``: instants in order, and of each series its unit and a value, or null,
        for each of them. since_ms: only later instants.
        """
        first, last = self._first, self._last
        if since_ms is not None and first is not None:
            first = max(first, since_ms // self.every_ms + 1)
        ticks = np.arange(0) if first is None or last is None else np.arange(first, last + 1)
        return {
            "every_ms": self.every_ms,
            "at_ms": (ticks * self.every_ms).tolist(),
            "series": {
                name: {"unit": self._units[name], "values": _plain(series[ticks % self._ticks])}
                for name, series in self._values.items()
            },
        }

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        return sum(series.nbytes for series in self._values.values())

    def _check(self) -> None:
        assert (self._first is None) == (self._last is None)
        assert self._values.keys() == self._units.keys()
        if self._first is not None and self._last is not None:
            assert 0 <= self._last - self._first < self._ticks
            there = np.arange(self._first, self._last + 1) % self._ticks
            for series in self._values.values():
                assert np.isnan(np.delete(series, there)).all()


def _plain(values: Floats) -> list[float | None]:
    return [None if math.isnan(value) else value for value in values.astype(np.float64).round(6).tolist()]
