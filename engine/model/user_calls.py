"""What calls of users' functions came to: the results of one call, and what is counted of all.

A row that has no result is an error for the reason that is told with it. What a user's code says of itself
may hold values of rows, so of an exception its class and place alone are told.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from engine.model.batch import BoolArray, Column

Reason = Literal["raised", "mistyped", "late", "crashed", "resting"]
REASONS: dict[Reason, str] = {
    "raised": "the function raised",
    "mistyped": "what it gave is not of its type, or not as many values as rows",
    "late": "it took longer than a call may",
    "crashed": "its process ended",
    "resting": "it was not called, since it lost too much time with other rows",
}

FADING_ROWS = 4_096.0
"""After so many rows what was measured before counts half."""


@dataclass(slots=True)
class CallOutcome:
    """results: [n], anything where failed. failed: bool[n]. reasons: how many rows failed, by reason. told:
    what is known besides of the last that failed.
    """

    results: Column
    failed: BoolArray
    reasons: Counter[Reason] = field(default_factory=Counter)
    told: str | None = None


class FunctionMeter:
    """Counts of one function, whoever calls it. timer: nanoseconds from any beginning; without one no cost is
    known. lock: held for each change, where several threads call. spent: told what calls took, in the thread
    that made them.
    """

    def __init__(
        self,
        timer: Callable[[], int] | None = None,
        lock: AbstractContextManager[Any] | None = None,
        spent: Callable[[int], object] | None = None,
    ) -> None:
        self._timer = timer
        self._lock = nullcontext() if lock is None else lock
        self._tell_spent = spent
        self.rows = 0
        self.spent_ns = 0
        self.errors: Counter[Reason] = Counter()
        self.told: str | None = None
        """What is known of the last row that failed."""
        self._rows = self._ns = self._true = 0.0

    def now(self) -> int:
        """By the timer; 0 without one."""
        return 0 if self._timer is None else self._timer()

    def count(self, outcome: CallOutcome, spent_ns: int) -> None:
        """The function was called for so many rows. O(rows) where it gives truths."""
        if self._tell_spent is not None:
            self._tell_spent(spent_ns)
        rows = len(outcome.failed)
        true = outcome.results.values.sum() if outcome.results.values.dtype == bool else rows / 2
        with self._lock:
            self.rows += rows
            self.spent_ns += spent_ns
            if self._rows > FADING_ROWS:
                self._rows, self._ns, self._true = self._rows / 2, self._ns / 2, self._true / 2
            self._rows += rows
            self._ns += spent_ns
            self._true += float(true)
            if outcome.reasons:
                self.errors.update(outcome.reasons)
                self.told = outcome.told

    @property
    def cost_ns(self) -> float | None:
        """What a row takes, as measured lately; None where nothing was."""
        return self._ns / self._rows if self._rows and self._ns else None

    @property
    def true_share(self) -> float:
        """Which share of rows a function that gives truths holds for, lately; of another one a half."""
        return (self._true + 1) / (self._rows + 2)
