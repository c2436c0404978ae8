"""An answer that is to be kept, or the partial results that it is read from, made beside the shard.

What is put off as it may take too long is tried so: over rows as they stood after some step, which are
immutable, and thus in any thread. What comes of it is taken over where it is current, or where bringing it up
to date is affordable by then; else it has told what that takes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from engine.eddy.eddy import Timer
from engine.model.interruption import CalledOff, interruptible

ATTEMPT_NS = 10_000_000_000
"""What is not made in so long is not kept."""

Made = TypeVar("Made")


class Attempt(Generic[Made]):
    """One try. :meth:`run` is called once, in any thread; everything else by the engine's owner."""

    def __init__(self, make: Callable[[], Made], rows: float, timer: Timer) -> None:
        """rows: that are looked at for it."""
        self.rows = rows
        self.took_ns = 0.0
        self.made: Made | None = None
        """What came of it; None: nothing, it was not made in time, or failed."""
        self.defect: Exception | None = None
        self.is_over = False
        """Whether :meth:`run` is."""
        self._make = make
        self._timer = timer
        self._given_up = False

    def give_up(self) -> None:
        """Nobody wants it any more."""
        self._given_up = True

    def run(self) -> None:
        """Try. Raises nothing."""
        began_ns = self._timer()

        def check() -> None:
            if self._given_up or self._timer() - began_ns > ATTEMPT_NS:
                raise CalledOff

        try:
            check()
            with interruptible(check):
                self.made = self._make()
        except CalledOff:
            pass
        except Exception as defect:  # noqa: BLE001  (the engine's owner is told)
            self.defect = defect
        finally:
            self.took_ns = self._timer() - began_ns
            self.is_over = True
