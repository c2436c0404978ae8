"""How many rows a step takes up: so many that what it changes fits a transaction, and how many fit that.

A row that a hundred emitting queries want makes a hundred records. Kafka gives a transaction a time, so steps
grow smaller where they tell much, and large again where they do not. Cutting input into other steps changes
no answer and no change.
"""

from __future__ import annotations

ROWS_MIN = 64
"""Below this a step costs more than it takes up."""


CALLS_S = 0.25
"""Calls of users' functions may take so much of a step."""

RECORDS_MIN = 500
"""A transaction may always write so many records."""
RECORDS_FIRST = 10_000
"""Records that a transaction may write before it is known how long writing takes."""


class TransactionSize:
    """``records``: how many records (changes, letters) the next transaction should write, at most.

    So many as are written in the time that others may wait: fewer after one that took longer, more after a
    full one that did not.
    """

    def __init__(self, records_max: int, write_s: float) -> None:
        self._records_max = records_max
        self._write_s = write_s
        self.records = min(records_max, RECORDS_FIRST)

    def wrote(self, records: int, seconds: float) -> None:
        """A transaction of so many records took so long, encoding them included."""
        if seconds > self._write_s:
            if records >= RECORDS_MIN:  # else it was not these
                fewer = int(min(records, self.records) * self._write_s / seconds)
                self.records = max(RECORDS_MIN, fewer)
        elif records * 2 >= self.records and seconds * 2 <= self._write_s:
            self.records = min(self._records_max, self.records * 2)


class StepSize:
    """``rows``: of the next step, at most."""

    def __init__(self, rows_max: int) -> None:
        self._rows_max = rows_max
        self._rows_min = min(ROWS_MIN, rows_max)
        self.rows = rows_max

    @property
    def is_whole(self) -> bool:
        """Whether steps cause so little that they may have as many rows as is set."""
        return self.rows == self._rows_max

    def stepped(self, rows: int, told: int, told_max: int) -> None:
        """A step of so many rows caused so many records; told_max: more should not be."""
        if told > told_max:
            self.rows = max(self._rows_min, min(self.rows, rows) * told_max // told)
        elif told * 4 <= told_max and rows >= self.rows:
            self.rows = min(self._rows_max, self.rows * 2)


class CallSize:
    """``rows``: of the next step of one stream at most, by what calls of users' functions took before."""

    def __init__(self, rows_max: int) -> None:
        self.rows = self._rows_max = rows_max

    @property
    def is_whole(self) -> bool:
        """Whether calls take so little that steps may have as many rows as is set."""
        return self.rows == self._rows_max

    def stepped(self, rows: int, calls_s: float) -> None:
        """A step of so many rows had calls that took so long. One row is always taken up."""
        if calls_s > CALLS_S:
            self.rows = max(1, int(min(self.rows, rows) * CALLS_S / calls_s))
        elif calls_s * 4 <= CALLS_S and rows >= self.rows:
            self.rows = min(self._rows_max, self.rows * 2)
