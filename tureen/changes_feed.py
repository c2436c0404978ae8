"""Iterators over the events of a query that is followed: one that blocks, one for asyncio.

What is asked, resumed and given up is :mod:`tureen.changes_resume`'s; here is only who sends and who waits.
An iterator holds one connection while it is used; it ends with an EndEvent, an error, or when it is closed.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import socket
import threading
import time
from collections.abc import AsyncGenerator, Generator
from types import TracebackType
from typing import Any, TypedDict

import httpx

from tureen.changes import Event
from tureen.changes_resume import Open, Read, Wishes, following
from tureen.exchange import Pause


class Options(TypedDict, total=False):
    """How a query is followed; what is left out is as in the brackets.

    live: go on when all there is has been told [True]. refetch: where a position cannot be resumed any more
    begin anew, by a SnapshotEvent with ``reset``; else raise MustRefetch [True]. poll: ask again and again
    instead of keeping one answer open, for proxies that do not let it through [False]. patience: seconds that
    a broker which was there may be away until BrokerUnavailable is raised; ``math.inf`` waits on [600].
    silence: seconds without a byte after which a connection is made again; longer than the broker's
    ``feed_progress_ms`` [30].
    """

    live: bool
    refetch: bool
    poll: bool
    patience: float
    silence: float


def wishes_of(since: str | None, options: Options) -> Wishes:
    """Options as the machine takes them. Raises TypeError for an unknown one, ValueError for bad seconds."""
    return _wishes(since, **options)


def _wishes(
    since: str | None,
    *,
    live: bool = True,
    refetch: bool = True,
    poll: bool = False,
    patience: float = 600.0,
    silence: float = 30.0,
) -> Wishes:
    if not patience >= 0 or not 0 < silence < 3_600:
        raise ValueError("patience is at least 0 s, silence more than 0 s and less than an hour")
    return Wishes(since, live, refetch, poll, patience, silence)


class ChangeFeed:
    """The events of a query, for ``for``; see :mod:`tureen.changes`.

    position: that of the last event handed over. One thread iterates; any may :meth:`close`.
    """

    def __init__(self, http: httpx.Client, address: str, handle: str, wishes: Wishes) -> None:
        self.position = wishes.since
        self._http = http
        self._doing = following(handle, wishes, address, time.monotonic, random.random)
        self._closed = threading.Event()
        self._response: httpx.Response | None = None
        self._bytes: Generator[bytes, None, None] | None = None
        self._events = self._iterate()

    def __iter__(self) -> ChangeFeed:
        return self

    def __next__(self) -> Event:
        event = next(self._events)
        self.position = event.position
        return event

    def _iterate(self) -> Generator[Event, None, None]:
        try:
            step = next(self._doing)
            while not self._closed.is_set():
                if isinstance(step, Open | Read | Pause):
                    try:
                        given = self._carry_out(step)
                    except (httpx.HTTPError, httpx.InvalidURL) as error:
                        step = self._doing.throw(error)
                        continue
                else:
                    given = None
                    yield step
                step = self._doing.send(given)
        except StopIteration:
            return
        finally:
            self._hang_up()

    def _carry_out(self, step: Open | Read | Pause) -> Any:
        if isinstance(step, Pause):
            self._hang_up()
            self._closed.wait(step.seconds)
            return None
        if isinstance(step, Read):
            assert self._bytes is not None
            return next(self._bytes, b"")
        self._hang_up()
        request = self._http.build_request("GET", step.path, **_arguments(step, self._http.timeout))
        response = self._response = self._http.send(request, stream=True)
        if response.status_code >= 400:
            response.read()
        self._bytes = _generated(response)
        return response

    def _hang_up(self) -> None:
        if self._response is not None:
            self._response.close()
            self._response = self._bytes = None

    def close(self) -> None:
        """End it, from any thread: whoever waits for an event gets StopIteration."""
        self._closed.set()
        if (response := self._response) is not None:
            _wake(response)
        with contextlib.suppress(ValueError):  # another thread is in it, and hangs up behind itself
            self._events.close()

    def __enter__(self) -> ChangeFeed:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class AsyncChangeFeed:
    """The events of a query, for ``async for``; as :class:`ChangeFeed`, within one event loop."""

    def __init__(self, http: httpx.AsyncClient, address: str, handle: str, wishes: Wishes) -> None:
        self.position = wishes.since
        self._http = http
        self._doing = following(handle, wishes, address, time.monotonic, random.random)
        self._response: httpx.Response | None = None
        self._bytes: AsyncGenerator[bytes, None] | None = None
        self._events = self._iterate()

    def __aiter__(self) -> AsyncChangeFeed:
        return self

    async def __anext__(self) -> Event:
        event = await anext(self._events)
        self.position = event.position
        return event

    async def _iterate(self) -> AsyncGenerator[Event, None]:
        try:
            step = next(self._doing)
            while True:
                if isinstance(step, Open | Read | Pause):
                    try:
                        given = await self._carry_out(step)
                    except (httpx.HTTPError, httpx.InvalidURL) as error:
                        step = self._doing.throw(error)
                        continue
                else:
                    given = None
                    yield step
                step = self._doing.send(given)
        except StopIteration:
            return
        finally:
            await self._hang_up()

    async def _carry_out(self, step: Open | Read | Pause) -> Any:
        if isinstance(step, Pause):
            await self._hang_up()
            await asyncio.sleep(step.seconds)
            return None
        if isinstance(step, Read):
            assert self._bytes is not None
            return await anext(self._bytes, b"")
        await self._hang_up()
        request = self._http.build_request("GET", step.path, **_arguments(step, self._http.timeout))
        response = self._response = await self._http.send(request, stream=True)
        if response.status_code >= 400:
            await response.aread()
        self._bytes = _agenerated(response)
        return response

    async def _hang_up(self) -> None:
        if self._response is not None:
            await self._response.aclose()
            self._response = self._bytes = None

    async def close(self) -> None:
        """End it. A task that waits for an event of it is cancelled instead."""
        await self._events.aclose()

    async def __aenter__(self) -> AsyncChangeFeed:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


def _arguments(step: Open, timeout: httpx.Timeout) -> dict[str, Any]:
    return {
        "params": step.params,
        "headers": {"Accept": "application/x-ndjson, application/json"},
        "timeout": httpx.Timeout(timeout.connect, read=step.read_s),
    }


def _generated(response: httpx.Response) -> Generator[bytes, None, None]:
    yield from response.iter_bytes()


async def _agenerated(response: httpx.Response) -> AsyncGenerator[bytes, None]:
    async for data in response.aiter_bytes():
        yield data


def _wake(response: httpx.Response) -> None:
    """End a read of another thread: it gets an end of the stream, which closing alone would not give it."""
    stream = response.extensions.get("network_stream")
    found = None if stream is None else stream.get_extra_info("socket")
    if isinstance(found, socket.socket):
        with contextlib.suppress(OSError):
            socket.socket.shutdown(found, socket.SHUT_RDWR)  # past TLS, which is not for two threads at once
