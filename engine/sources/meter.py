"""How much comes of a source, as the planner weighs it."""

from __future__ import annotations

METER_PERIOD_MS = 10_000


class Meter:
    """Rows and steps a second of a stream, by the journalled clock: those of the last full period."""

    def __init__(self) -> None:
        self.known = False
        self.rows_per_s = 0.0
        self.steps_per_s = 0.0
        self._since_ms: int | None = None
        self._rows = 0
        self._steps = 0

    def count(self, rows: int, clock_ms: int) -> None:
        """A step brought so many rows."""
        if self._since_ms is None:
            self._since_ms = clock_ms
        passed_ms = clock_ms - self._since_ms
        if passed_ms >= METER_PERIOD_MS:
            self.known = True
            self.rows_per_s = 1_000 * self._rows / passed_ms
            self.steps_per_s = 1_000 * self._steps / passed_ms
            self._since_ms, self._rows, self._steps = clock_ms, 0, 0
        self._rows += rows
        self._steps += 1
