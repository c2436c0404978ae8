"""What other threads want of a shard: commands to carry out and questions to its engine, until it ends.

The shard's thread sleeps here while it has nothing to do, and whoever brings something wakes it. Commands
come out in the order in which they came, some at a time, so that data waits for no more than those; they are
*at work* until their outcomes are told. When the shard has ended whatever still comes is refused.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from broker.base.internal import Outcome
from broker.shard.questions import Found, Questions
from broker.shard.shard_command import ShardCommand
from engine.engine import Engine
from tureen.errors import BrokerUnavailable, TureenError

COMMANDS_AT_ONCE = 256
"""A shard carries out about so many before it looks at data again."""


@dataclass(slots=True)
class Job:
    """Commands that came together. outcomes: one each, once they are carried out."""

    commands: Sequence[ShardCommand]
    future: Future[list[Outcome]]
    outcomes: list[Outcome] | None = None

    def refuse(self, error: dict[str, Any]) -> None:
        """None of them is carried out."""
        refusal: Outcome = {"state": "ERROR", "error": error, "position": None}
        self.future.set_result([refusal] * len(self.commands))


class Inbox:
    """``submit``, ``ask`` and ``wake`` from any thread, the rest by the shard's alone."""

    def __init__(self, number: int) -> None:
        self._number = number
        self._wake = threading.Condition()
        self._jobs: deque[Job] = deque()
        self._at_work: list[Job] = []
        self._questions = Questions()
        self._called = False
        self._arrived = False
        self._refusal: dict[str, Any] | None = None

    def submit(self, commands: Sequence[ShardCommand]) -> Future[list[Outcome]]:
        """The future has one outcome each, once they are journalled."""
        job = Job(commands, Future())
        with self._wake:
            if self._refusal is not None:
                job.refuse(self._refusal)
            else:
                self._jobs.append(job)
                self._wake.notify()
        return job.future

    def ask(self, work: Callable[[Engine], Found]) -> Future[Found]:
        """The future has what ``work`` finds in the engine between two steps."""
        with self._wake:
            future = self._questions.put(work)
            if self._refusal is not None:
                self._questions.refuse(BrokerUnavailable(f"shard {self._number} has stopped"))
            self._wake.notify()
        return future

    def wake(self) -> None:
        """There is something to do."""
        with self._wake:
            self._called = True
            self._wake.notify()

    def arrived(self) -> None:
        """There are records; they are taken up with those that come while the shard lingers."""
        with self._wake:
            self._arrived = True
            self._wake.notify()

    def take(self, wait_s: float, linger_s: float = 0.0) -> Sequence[Job]:
        """The first jobs that came, of COMMANDS_AT_ONCE commands or one job, which are at work from now on.

        wait_s: for a command, a question, a call or records, if there is none. linger_s: records end no wait
        before this.
        """
        with self._wake:
            began_s = time.monotonic()
            while not (self._jobs or self._questions or self._called):
                left_s = began_s + (min(wait_s, linger_s) if self._arrived else wait_s) - time.monotonic()
                if left_s <= 0:
                    break
                self._wake.wait(left_s)
            self._called = self._arrived = False
            self._at_work, commands = [], 0
            while self._jobs and (not commands or commands + len(self._jobs[0].commands) <= COMMANDS_AT_ONCE):
                self._at_work.append(self._jobs.popleft())
                commands += len(self._at_work[-1].commands)
        return self._at_work

    def answer(self, engine: Engine) -> None:
        """Answer some of the questions."""
        self._questions.answer(engine)

    def turn_away(self, error: TureenError) -> None:
        """Nobody can answer questions at present."""
        with self._wake:
            self._questions.refuse(error)

    def done(self) -> None:
        """What is at work is journalled: tell the outcomes."""
        for job in self._at_work:
            assert job.outcomes is not None
            job.future.set_result(job.outcomes)
        self._at_work = []

    def close(self, error: TureenError, refusal: dict[str, Any]) -> Sequence[Job]:
        """The shard has ended; the jobs that were not carried out.

        error: raised to those who wait for an answer. refusal: of commands that come from now on.
        """
        with self._wake:
            self._refusal = refusal
            left = [*self._at_work, *self._jobs]
            self._jobs.clear()
            self._questions.refuse(error)
        return left
