"""Time warp: when rows that happened at some time are written again, and on what time they are told.

A pace has a speed and a clock that is handed to it: a row's turn comes ``(at - first) / speed`` after the
first row's, in real time. Turns are counted from the first row, never from the last: a writer that falls
behind (Kafka was slow, a pause) catches up as fast as it can, and the whole run takes as long as it should.
A row that is older than the first one has its turn at once.

Nothing here sleeps. ``wait_s`` says how long to wait; the caller waits, and asks again.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from tureen.errors import SettingsError

SPEED_MIN, SPEED_MAX = 1e-3, 1e9
NOW = "now"
"""``--shift-to now``: when the run begins."""


@dataclass(frozen=True, slots=True)
class Warp:
    """How a replay runs. Checked when it is made: raises SettingsError.

    speed: event time by real time; None: as fast as it goes. shift_to_ms: the first row's timestamp is moved
    there and all others as far; None: rows keep theirs.
    """

    speed: float | None = None
    shift_to_ms: int | None = None

    def __post_init__(self) -> None:
        if self.speed is not None and not SPEED_MIN <= self.speed <= SPEED_MAX:
            raise SettingsError(
                f"a speed of {self.speed:g} is not within {SPEED_MIN:g} and {SPEED_MAX:g}",
                hint="1 is as fast as it happened, 60 an hour in a minute; without --speed it does not wait",
            )

    def shift_ms(self, first_ms: int | None) -> int:
        """What is added to every timestamp of rows of which the earliest is ``first_ms``."""
        if self.shift_to_ms is None or first_ms is None:
            return 0
        return self.shift_to_ms - first_ms


class Pace:
    """Turns of the rows of one replay. clock: seconds, from any zero, never going back."""

    def __init__(self, speed: float | None, clock: Callable[[], float]) -> None:
        self._speed = math.inf if speed is None else speed
        self._clock = clock
        self._began_s: float | None = None
        self._first_ms = 0

    def wait_s(self, at_ms: int) -> float:
        """How long until the turn of a row with this timestamp; 0 when it has come. O(1).

        The first call begins the run: its row's turn is now.
        """
        if self._began_s is None:
            self._began_s, self._first_ms = self._clock(), at_ms
        due_s = self._began_s + (at_ms - self._first_ms) / 1_000 / self._speed
        return max(0.0, due_s - self._clock())

    def behind_s(self, at_ms: int) -> float:
        """How long ago, in real time, the turn of a row with this timestamp was; 0 when it was not yet."""
        if self._began_s is None or self._speed == math.inf:
            return 0.0
        due_s = self._began_s + (at_ms - self._first_ms) / 1_000 / self._speed
        return max(0.0, self._clock() - due_s)
