"""What a call asks is answered on the event loop, as all that is asked; the call's thread waits for it."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotYet
from typing import Any, TypeVar

import pyarrow.flight as flight

from broker.base import logs
from broker.flight.errors import CALLS, SUBSCRIPTIONS, TooManyCalls, raised
from broker.node.request_work import Caller, caller
from engine.model.defects import refusal_of
from tureen.errors import InternalError

LOOK_S = 0.05
"""How often a call that waits for its answer looks whether its client has gone."""

Found = TypeVar("Found")

log = logs.get()


class Places:
    """So many may be taken at the same time. setting: that says how many."""

    def __init__(self, setting: str, limit: int) -> None:
        self._setting = setting
        self._limit = limit
        self._lock = threading.Lock()
        self.taken = 0

    def enter(self) -> Callable[[], None]:
        """Take one; what gives it back, to be called once. Raises FlightUnavailableError."""
        with self._lock:
            if self.taken >= self._limit:
                raise raised(TooManyCalls(self._setting, self._limit))
            self.taken += 1
        return self._leave

    def _leave(self) -> None:
        with self._lock:
            self.taken -= 1


class Asking:
    """Shared by all calls, each of which has a thread of gRPC's."""

    def __init__(self, loop: asyncio.AbstractEventLoop, calls_max: int, subscriptions_max: int) -> None:
        self._loop = loop
        self.calls = Places(CALLS, calls_max)
        """Being answered."""
        self.followed = Places(SUBSCRIPTIONS, subscriptions_max)
        """SUBSCRIBEs, which are no such calls from when they were begun."""

    @contextlib.contextmanager
    def call(self) -> Iterator[None]:
        """A call that ends here; what it raises is told as Flight tells it."""
        leave = self.calls.enter()
        try:
            with self.told():
                yield
        finally:
            leave()

    @contextlib.contextmanager
    def told(self) -> Iterator[None]:
        """What is raised within is told as Flight tells it."""
        try:
            yield
        except flight.FlightError:
            raise
        except Exception as failed:  # noqa: BLE001
            error = refusal_of(failed)
            if isinstance(error, InternalError):
                log.error("flight_failed", incident=error.incident, trace=error.trace)
            raise raised(error) from None

    def wait(
        self, context: flight.ServerCallContext, work: Coroutine[Any, Any, Found], look_s: float = LOOK_S
    ) -> Found:
        """What the event loop makes of it. look_s: how often it is looked whether the client has gone.

        Raises what that raises, and FlightCancelledError once it has: nothing is worked out for it any more.
        """
        asker = Caller()

        async def asked() -> Found:
            before = caller.set(asker)
            try:
                return await work
            finally:
                caller.reset(before)

        future: Future[Found] = asyncio.run_coroutine_threadsafe(asked(), self._loop)
        while True:
            try:
                return future.result(look_s)
            except NotYet:
                if future.done():
                    raise
            if context.is_cancelled():
                self._loop.call_soon_threadsafe(asker.go)
                future.cancel()
                raise flight.FlightCancelledError("the client has gone")

    def later(self, work: Callable[[], None]) -> None:
        """Have it done on the event loop."""
        with contextlib.suppress(RuntimeError):  # the loop has ended, and all with it
            self._loop.call_soon_threadsafe(work)
