"""Threads that make what takes long beside the steps of one shard: some at a time, each for so long at most.

Used by the shard's thread alone.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from broker.base import logs
from broker.base.settings import Settings
from broker.shard.endless_calls import EndlessCalls
from tureen.errors import PreparationTooLong

log = logs.get()


@dataclass(slots=True, eq=False)
class Run:
    """One thread's work. is_over: set before the shard is woken."""

    thread: threading.Thread
    began_s: float = field(default_factory=time.monotonic)
    is_over: bool = False


class Beside:
    """The threads of one shard."""

    def __init__(self, number: int, settings: Settings, wake: Callable[[], None]) -> None:
        """wake: the shard is to look at what is made."""
        self._number = number
        self._threads = settings.preparation_threads
        self._limit_ms = settings.preparation_ms_max
        self._wake = wake
        self._runs: list[Run] = []
        self._endless = EndlessCalls()

    @property
    def has_room(self) -> bool:
        """Whether one more may begin."""
        self._runs = [run for run in self._runs if not run.is_over]
        return len(self._runs) < self._threads

    def begin(self, work: Callable[[], None]) -> Run:
        """Have a thread do it; what fails of it is logged."""

        def do() -> None:
            try:
                work()
            except Exception as failed:  # it is made in the step then
                log.error("preparation_failed", shard=self._number, error=repr(failed), exc_info=failed)
            finally:
                run.is_over = True
                self._wake()

        run = Run(threading.Thread(target=do, name=f"shard-{self._number}-beside", daemon=True))
        self._runs.append(run)
        run.thread.start()
        return run

    def is_late(self, run: Run) -> bool:
        """Whether it takes longer than it may."""
        return not run.is_over and time.monotonic() - run.began_s > self._limit_ms / 1_000

    def refusal(self, query_id: str) -> PreparationTooLong:
        """Why what is made for a query is refused; it is told to the log."""
        log.warning("preparation_refused", shard=self._number, query=query_id, limit_ms=self._limit_ms)
        return PreparationTooLong(self._limit_ms)

    def give_up(self, run: Run) -> None:
        """Nobody waits for it any more: a call of a user's function that it is in is broken off."""
        if not run.is_over:
            run.is_over = True
            self._endless.add(run.thread)

    def break_off(self) -> None:
        """End calls of what was given up; to be called now and then."""
        self._endless.break_off()
