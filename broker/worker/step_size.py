"""How many rows a step takes up: so many that what it tells fits a transaction, and no fewer.

A row that a hundred emitting queries want makes a hundred records. Kafka gives a transaction a time, so steps
grow smaller where they tell much, and large again where they do not. Cutting input into other steps changes
no answer and no change.
"""

from __future__ import annotations

ROWS_MIN = 64
"""Below this a step costs more than it takes up."""


class StepSize:
    """``rows``: of the next step, at most."""

    def __init__(self, rows_max: int, told_max: int) -> None:
        """told_max: records that one step should tell at most."""
        self._rows_max = rows_max
        self._rows_min = min(ROWS_MIN, rows_max)
        self._told_max = told_max
        self.rows = rows_max

    def stepped(self, rows: int, told: int) -> None:
        """A step of so many rows told so many records."""
        if told > self._told_max:
            self.rows = max(self._rows_min, min(self.rows, rows) * self._told_max // told)
        elif told * 4 <= self._told_max and rows >= self.rows:
            self.rows = min(self._rows_max, self.rows * 2)
