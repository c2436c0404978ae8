"""How much time a function may lose for others: by calls that hang, and by processes that end amid calls.

A function that loses more than its allowance rests until it has some again, and its rows are errors
meanwhile. So whatever it does, it takes a small share of the time of those that wait behind it.
"""

from __future__ import annotations

from collections.abc import Callable

CALLS = 4
"""The allowance is the time of so many calls that hang. A row that hangs takes two."""

SHARE = 1 / 20
"""The share of the time that a function may lose in the long run."""


class LostTime:
    """The allowance of one function. O(1). Several threads may use it; then it may be a little off."""

    def __init__(self, call_s: float, now_s: Callable[[], float]) -> None:
        """call_s: the longest that one call may take."""
        self._call_s = call_s
        self._now_s = now_s
        self._left_s = self._most_s = CALLS * call_s
        self._at_s = now_s()
        self._rests = False

    def lose(self, seconds: float) -> None:
        """So much was lost."""
        self._gain()
        self._left_s -= seconds
        self._rests = self._rests or self._left_s <= 0

    @property
    def rests(self) -> bool:
        """Whether it is not to be called: from when nothing is left until there is the time of one call."""
        self._gain()
        self._rests = self._rests and self._left_s < self._call_s
        return self._rests

    def _gain(self) -> None:
        now_s = self._now_s()
        self._left_s = min(self._most_s, self._left_s + SHARE * (now_s - self._at_s))
        self._at_s = now_s
