"""What requests ask for is worked out here, beside the shards: in a few threads, for so long at most.

A plan, a check, a comparison may take as long as a text and its rows allow. It reads views, so that a shard
waits for none of it; what is to be seen between two steps is asked of the shard in questions that take little
(:class:`broker.node.shards.Shards`). Work ends early, between two of its pieces
(:mod:`engine.model.interruption`), when its time is over, or when whoever asked has gone or given up.

``do`` is used on the event loop. Work that has not begun when its time is over is refused, as is what comes
while too much waits.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TypeVar

from broker.memory.held import release_arrow
from engine.model.interruption import RequireRoom, bounded, interruptible
from tureen.errors import LimitExceeded, TureenError

Found = TypeVar("Found")

DEAR_S = 0.05
"""After work that took so long, its thread gives back what Arrow's allocator keeps for it: up to 10 MB."""


class Caller:
    """Whoever waits for an answer. Used by the event loop alone."""

    def __init__(self) -> None:
        self.has_gone = False
        self._watching: list[Callable[[], None]] = []

    def watch(self, on_gone: Callable[[], None]) -> None:
        """Have it called, once, when the caller goes; at once where it has gone."""
        if self.has_gone:
            on_gone()
        else:
            self._watching.append(on_gone)

    def unwatch(self, on_gone: Callable[[], None]) -> None:
        """It is not to be called any more."""
        if on_gone in self._watching:
            self._watching.remove(on_gone)

    def go(self) -> None:
        """The caller has gone."""
        self.has_gone = True
        watching, self._watching = self._watching, []
        for on_gone in watching:
            on_gone()


caller: ContextVar[Caller | None] = ContextVar("caller", default=None)
"""Who sent the request that is being answered; None: nobody can be seen to go."""


class TooMuchWork(TureenError):
    """More is asked for than is worked out in time."""

    code = "too_busy"

    def __init__(self) -> None:
        super().__init__(
            "the broker is busy with what other requests ask for",
            hint="try again in a second; request_work_threads says how much is worked out at the same time",
        )


class CallerGone(TureenError):
    """Whoever asked has gone, so nobody hears of it."""

    code = "caller_gone"

    def __init__(self) -> None:
        super().__init__("the caller has gone")


@dataclass(slots=True)
class _Job:
    """A piece of work. end_s: by the monotonic clock."""

    limit: str
    limit_ms: int
    end_s: float
    begun: bool = False
    gone: bool = False

    def check(self) -> None:
        """Raise what ends it."""
        if self.gone:
            raise CallerGone
        if time.monotonic() > self.end_s:
            raise LimitExceeded(
                self.limit,
                self.limit_ms,
                hint="it took longer than so many ms: ask for less by a shorter condition, narrower windows "
                "or fewer stages, or try again when the broker has less to do",
            )


class RequestWork:
    """See the module. counts: pieces of work by how they ended: done, refused (by an error of their own),
    limit (their time was over), gone (their caller), busy (not begun in time). running: at this moment.
    """

    def __init__(
        self,
        name: str,
        threads: int,
        waiting_max: int,
        limit: str,
        limit_ms: int,
        require_room: RequireRoom | None = None,
    ) -> None:
        """limit: the setting that says in how many ms work has to be done, waiting included; limit_ms.
        require_room: asked before work takes much memory; None: nobody is.
        """
        self._require_room = require_room
        self.counts: Counter[str] = Counter()
        self.running = 0
        self._asked = 0
        self._asked_max = threads + waiting_max
        self._limit, self._limit_ms = limit, limit_ms
        self._pool = ThreadPoolExecutor(threads, name)

    async def do(self, work: Callable[[], Found], limit_ms: int | None = None) -> Found:
        """What ``work`` returns. limit_ms: where that is less than the setting.

        Raises TooMuchWork, LimitExceeded, CallerGone, and what the work raises.
        """
        if self._asked >= self._asked_max:
            self.counts["busy"] += 1
            raise TooMuchWork
        allowed_ms = self._limit_ms if limit_ms is None else min(limit_ms, self._limit_ms)
        job = _Job(self._limit, allowed_ms, time.monotonic() + allowed_ms / 1_000)
        loop, by = asyncio.get_running_loop(), caller.get()
        future = loop.run_in_executor(self._pool, self._worked, job, work)
        self._asked += 1
        future.add_done_callback(self._ended)

        def leave() -> None:
            job.gone = True
            future.cancel()

        late = loop.call_later(allowed_ms / 1_000, lambda: None if job.begun else future.cancel())
        if by is not None:
            by.watch(leave)
        try:
            return await future
        except asyncio.CancelledError:
            task = asyncio.current_task()
            given_up = task is not None and task.cancelling() > 0
            job.gone = job.gone or given_up
            self.counts["gone" if job.gone else "busy"] += 1
            if given_up:
                raise
            raise (CallerGone if job.gone else TooMuchWork)() from None
        finally:
            late.cancel()
            if by is not None:
                by.unwatch(leave)

    def _ended(self, _future: asyncio.Future[Found]) -> None:
        """It is not waited for any more. Its thread may take a little longer."""
        self._asked -= 1

    def _worked(self, job: _Job, work: Callable[[], Found]) -> Found:
        """In a thread of the pool."""
        job.begun = True
        began_s = time.monotonic()
        self.running += 1
        ended = "refused"
        try:
            job.check()
            with interruptible(job.check), bounded(self._require_room):
                found = work()
            ended = "done"
            return found
        except LimitExceeded as over:
            ended = "limit" if over.limit == self._limit else "refused"
            raise
        finally:
            self.running -= 1
            if time.monotonic() - began_s >= DEAR_S:
                release_arrow()
            if not job.gone:  # else it is counted
                self.counts[ended] += 1

    def close(self) -> None:
        """No more is worked out."""
        self._pool.shutdown(wait=False, cancel_futures=True)
