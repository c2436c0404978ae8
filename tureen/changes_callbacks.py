"""Callbacks for the changes of a query: in a thread of their own, or in a task of an event loop.

    with query.on_change(lambda event: print(len(event))) as subscription:
        ...
        keep(subscription.position)          # behind the last event that the callback has dealt with

The callback is called with every SnapshotEvent and ChangesEvent, one after another. One that raises ends the
subscription: its exception is logged, kept as ``error`` and raised by :meth:`~Subscription.wait` and at the
end of the ``with``. With ``on_error`` it is told there instead, and the next event follows.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import logging
import threading
from collections.abc import AsyncIterable, Awaitable, Callable, Iterable
from types import TracebackType
from typing import Any

from tureen.changes import AwayEvent, ChangesEvent, EndEvent, Event, SnapshotEvent
from tureen.errors import TureenError

Callback = Callable[[SnapshotEvent | ChangesEvent], Any]
OnError = Callable[[Exception, SnapshotEvent | ChangesEvent], Any]

STOP_S = 10.0

_log = logging.getLogger("tureen.changes")
_log.addHandler(logging.NullHandler())  # heard only where the application set logging up


class SubscriptionState:
    """How a subscription stands.

    position: behind the last event that was dealt with. error: what ended it, or None. ended: the EndEvent of
    a query that is gone. away: why no broker answers just now.
    """

    def __init__(self, position: str | None) -> None:
        self.position = position
        self.error: Exception | None = None
        self.ended: EndEvent | None = None
        self.away: TureenError | None = None

    def _note(self, event: Event) -> None:
        self.away = event.error if isinstance(event, AwayEvent) else None
        if isinstance(event, EndEvent):
            self.ended = event
        if event.position is not None:
            self.position = event.position

    def _failed(self, error: Exception) -> None:
        self.error = error
        known = isinstance(error, TureenError)
        _log.error("following a query ended: %s", error, exc_info=None if known else error)


class Subscription(SubscriptionState):
    """Events that are dealt with in a thread.

    events: of a :class:`tureen.changes_feed.ChangeFeed`, which is closed at the end. deal: called with each
    of them, whatever its kind; what it raises ends the subscription. The thread does not keep a program
    alive.
    """

    def __init__(
        self, events: Iterable[Event], deal: Callable[[Event], Any], since: str | None = None
    ) -> None:
        super().__init__(since)
        self._events = events
        self._deal = deal
        self._stopping = threading.Event()
        self._dealing = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="tureen-changes", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            for event in self._events:
                with self._dealing:
                    if self._stopping.is_set():
                        return
                    self._deal(event)
                    self._note(event)
        except Exception as error:  # noqa: BLE001 - told by error, wait() and the log
            if not self._stopping.is_set():
                self._failed(error)
        finally:
            self._over()

    def _over(self) -> None:
        """Nothing more is dealt with."""

    def stop(self) -> None:
        """End it: the callback is not called any more once this returns, unless it takes longer than 10 s."""
        self._stopping.set()
        if close := getattr(self._events, "close", None):
            close()
        if threading.current_thread() is not self._thread:
            self._thread.join(0.05)
            if self._dealing.acquire(timeout=STOP_S):
                self._dealing.release()

    def wait(self, timeout: float | None = None) -> bool:
        """Until it is over, so many seconds at most; whether it is. Raises what ended it."""
        self._thread.join(timeout)
        if self.error is not None:
            raise self.error
        return not self._thread.is_alive()

    def __enter__(self) -> Subscription:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        if error is None and self.error is not None:
            raise self.error


class AsyncSubscription(SubscriptionState):
    """A subscription in a task of asyncio; what ``deal`` gives is awaited where it can be."""

    def __init__(
        self, events: AsyncIterable[Event], deal: Callable[[Event], Any], since: str | None = None
    ) -> None:
        super().__init__(since)
        self._events = events
        self._deal = deal
        self._task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        try:
            async for event in self._events:
                done = self._deal(event)
                if inspect.isawaitable(done):
                    await done
                self._note(event)
        except Exception as error:  # noqa: BLE001 - told by error, wait() and the log
            self._failed(error)
        finally:
            self._over()

    def _over(self) -> None:
        """Nothing more is dealt with."""

    async def stop(self) -> None:
        """End it; a callback that is being awaited is cancelled."""
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task
        if close := getattr(self._events, "close", None):
            await close()

    async def wait(self, timeout: float | None = None) -> bool:
        """Until it is over, so many seconds at most; whether it is. Raises what ended it."""
        await asyncio.wait([self._task], timeout=timeout)
        if self.error is not None:
            raise self.error
        return self._task.done()

    async def __aenter__(self) -> AsyncSubscription:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()
        if error is None and self.error is not None:
            raise self.error


def calling(callback: Callback, on_error: OnError | None) -> Callable[[Event], Any]:
    """What deals with an event by a callback."""

    def deal(event: Event) -> None:
        if not isinstance(event, SnapshotEvent | ChangesEvent):
            return
        try:
            callback(event)
        except Exception as error:
            if on_error is None:
                raise
            on_error(error, event)

    return deal


def awaiting(callback: Callback, on_error: OnError | None) -> Callable[[Event], Awaitable[None]]:
    """What deals with an event by a callback that may be a coroutine function."""

    async def deal(event: Event) -> None:
        if not isinstance(event, SnapshotEvent | ChangesEvent):
            return
        try:
            done = callback(event)
            if inspect.isawaitable(done):
                await done
        except Exception as error:
            if on_error is None:
                raise
            done = on_error(error, event)
            if inspect.isawaitable(done):
                await done

    return deal
