"""Streams of events whose frames are made once, however many listen.

A *channel* makes the frames of one kind: what, of which entities, how often. It begins with its first
listener, makes a frame an interval for all of them, and ends with the last. Intervals begin at multiples of
their length, so that channels of one interval look at the same reading of the engines.

A listener has no queue. One whose connection has no room misses frames, and is told how many with the next
that it gets (``skipped``); one that takes nothing for ``write_timeout_s`` is cut off. When the worker stops,
every stream ends in order.

Cost of a frame: making it once, and a write for each listener. Runs on the event loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import Callable, Hashable
from typing import Protocol

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from broker.base import logs
from broker.base.counts import EventCounts
from broker.http.connection import Connection, connection_of
from tureen.errors import BrokerUnavailable, TooManyFeeds, TureenError

CHANNELS_MAX = 16
"""Kinds of frames that are made at a time."""
SOCKET_BYTES = 128 * 1024
STOP_S = 1.5
"""Listeners that do not take the end are cut off so long after it."""
_HEADERS = {
    as_sse: [(b"content-type", kind), (b"cache-control", b"no-store"), (b"x-accel-buffering", b"no")]
    for as_sse, kind in ((True, b"text/event-stream"), (False, b"application/x-ndjson"))
}
_CLOSE = "close one of the streams of events, or poll"

log = logs.get()


class Frames(Protocol):
    """What a channel tells. is_over: nothing comes after the last frame."""

    is_over: bool

    async def frame(self) -> bytes | None:
        """A JSON object that is not empty; None: there is nothing to tell yet."""
        ...


class Channel:
    """One kind of frames, and who listens. number: of the last frame, from 1; 0: there is none yet."""

    def __init__(self, event: str, every_s: float, frames: Frames, *, at_once: bool) -> None:
        """event: its name in server-sent events. at_once: a listener that comes gets the last frame first."""
        self.number = 0
        self.has_ended = False
        self.is_broken = False
        self.at_once = at_once
        self.listeners: set[EventListener] = set()
        self._event = event.encode()
        self._every_s = every_s
        self._frames = frames
        self._frame = b""
        self._framed: dict[tuple[bool, int], bytes] = {}

    async def run(self) -> None:
        """Make frames until cancelled, or over."""
        loop = asyncio.get_running_loop()
        try:
            while not self._frames.is_over:
                frame = await self._frames.frame()
                if frame is not None:
                    self._tell(frame)
                if not self._frames.is_over:
                    await asyncio.sleep(until_next(loop.time(), self._every_s))
        except TureenError as refused:
            log.warning("events_broken_off", what=self._event.decode(), code=refused.code)
            self.is_broken = True
        except Exception as defect:
            log.error("events_failed", what=self._event.decode(), error=repr(defect), exc_info=defect)
            self.is_broken = True
        finally:
            self.end()

    def end(self) -> None:
        """No frame comes any more: have listeners end."""
        self.has_ended = True
        for one in list(self.listeners):
            one.wake()

    def _tell(self, frame: bytes) -> None:
        self.number += 1
        self._frame = frame
        self._framed.clear()
        for one in list(self.listeners):
            one.wake()

    def framed(self, as_sse: bool, skipped: int) -> bytes:
        """The last frame, in a form; made once for all who missed as many."""
        key = as_sse, skipped
        found = self._framed.get(key)
        if found is None:
            line = self._frame if not skipped else b'{"skipped":%d,' % skipped + self._frame[1:]
            found = b"event: %b\ndata: %b\n\n" % (self._event, line) if as_sse else line + b"\n"
            self._framed[key] = found
        return found


class EventListener:
    """One stream of events that is open."""

    def __init__(self, connection: Connection, seen: int) -> None:
        """seen: the number of the frame before the first that it is to get."""
        self.connection = connection
        self.seen = seen
        self._woken = False
        self._sleep: asyncio.Future[None] | None = None

    def wake(self) -> None:
        """There is a frame, or an end."""
        self._woken = True
        if self._sleep is not None and not self._sleep.done():
            self._sleep.set_result(None)

    async def sleep(self) -> None:
        """Until woken."""
        if not self._woken:
            self._sleep = asyncio.get_running_loop().create_future()
            try:
                await self._sleep
            finally:
                self._sleep = None
        self._woken = False


class EventHub:
    """All channels of the worker."""

    def __init__(
        self, stopping: asyncio.Event, listeners_max: int, write_timeout_s: float, counts: EventCounts
    ) -> None:
        """stopping: is set when the worker ends."""
        self._stopping = stopping
        self._listeners_max = listeners_max
        self._write_timeout_s = write_timeout_s
        self._counts = counts
        self._channels: dict[Hashable, Channel] = {}
        self._tasks: dict[Hashable, asyncio.Task[None]] = {}
        self._watch: asyncio.Task[None] | None = None

    def admit(self, key: Hashable) -> None:
        """Raise TooManyFeeds where no listener of a kind can come, BrokerUnavailable as the worker ends."""
        if self._stopping.is_set():
            raise BrokerUnavailable("the broker is stopping", hint="try again in a second")
        if self._counts.listeners >= self._listeners_max:
            hint = f"{_CLOSE}; the setting is event_listeners_max"
            raise TooManyFeeds(self._listeners_max, "streams of events", hint=hint)
        if key not in self._channels and len(self._channels) >= CHANNELS_MAX:
            raise TooManyFeeds(CHANNELS_MAX, "kinds of streams of events", hint=_CLOSE)

    def stream(
        self,
        key: Hashable,
        event: str,
        every_s: float,
        as_sse: bool,
        frames: Callable[[], Frames],
        *,
        at_once: bool = False,
    ) -> EventStream:
        """The response that tells the frames of a kind. frames: makes them, where nobody does yet.

        Raises TooManyFeeds, BrokerUnavailable.
        """
        self.admit(key)
        return EventStream(
            self, key, as_sse, lambda: self._channel(key, event, every_s, frames, at_once=at_once)
        )

    def _channel(
        self, key: Hashable, event: str, every_s: float, frames: Callable[[], Frames], *, at_once: bool
    ) -> Channel:
        channel = self._channels.get(key)
        if channel is None or channel.has_ended:
            channel = self._channels[key] = Channel(event, every_s, frames(), at_once=at_once)
            self._tasks[key] = asyncio.create_task(channel.run())
        if self._watch is None:
            self._watch = asyncio.create_task(self._end_all())
        return channel

    async def _end_all(self) -> None:
        await self._stopping.wait()
        for key, channel in list(self._channels.items()):
            self._tasks[key].cancel()
            channel.end()
        asyncio.get_running_loop().call_later(STOP_S, self._cut_all)

    def _cut_all(self) -> None:
        for channel in list(self._channels.values()):
            for one in list(channel.listeners):
                one.connection.abort()

    async def tell(
        self, key: Hashable, channel: Channel, connection: Connection, as_sse: bool, send: Send
    ) -> None:
        """Pass frames on until there is an end, or the listener has gone."""
        known = channel.at_once and channel.number > 0
        listener = EventListener(connection, channel.number - known)
        channel.listeners.add(listener)
        self._counts.listeners += 1
        connection.tell_loss(listener.wake)
        try:
            connection.hold_less(SOCKET_BYTES)
            await send({"type": "http.response.start", "status": 200, "headers": _HEADERS[as_sse]})
            while not connection.is_lost:
                if channel.number > listener.seen:
                    if not await self._write(channel, listener, as_sse, send):
                        break
                elif channel.is_broken:
                    connection.abort()  # a cut, not an end: the reader comes again
                    break
                elif channel.has_ended:
                    await send({"type": "http.response.body", "body": b"", "more_body": False})
                    break
                else:
                    await listener.sleep()
        finally:
            connection.tell_loss(None)
            self._counts.listeners -= 1
            self._leave(key, channel, listener)

    async def _write(self, channel: Channel, listener: EventListener, as_sse: bool, send: Send) -> bool:
        """Whether the listener has taken it, or will; else it has gone, or was cut off."""
        try:
            await listener.connection.room(self._write_timeout_s)
        except TimeoutError:
            self._counts.cut += 1
            log.info("events_cut", timeout_s=self._write_timeout_s)
            listener.connection.abort()
            return False
        if listener.connection.is_lost:
            return False
        skipped = channel.number - listener.seen - 1
        listener.seen = channel.number
        self._counts.frames += 1
        self._counts.skipped += skipped
        body = channel.framed(as_sse, skipped)
        await send({"type": "http.response.body", "body": body, "more_body": True})
        return True

    def _leave(self, key: Hashable, channel: Channel, listener: EventListener) -> None:
        channel.listeners.discard(listener)
        if not channel.listeners and self._channels.get(key) is channel:
            del self._channels[key]
            self._tasks.pop(key).cancel()


class EventStream(Response):
    """A response that tells frames as they come."""

    def __init__(self, hub: EventHub, key: Hashable, as_sse: bool, channel: Callable[[], Channel]) -> None:
        super().__init__()
        self._hub = hub
        self._key = key
        self._as_sse = as_sse
        self._channel = channel

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        channel = self._channel()
        with contextlib.suppress(ConnectionError):
            await self._hub.tell(self._key, channel, connection_of(scope), self._as_sse, send)


def wants_sse(scope: Scope) -> bool:
    """Whether a request asks for server-sent events; else it gets NDJSON."""
    return b"text/event-stream" in dict(scope["headers"]).get(b"accept", b"")


def until_next(now_s: float, every_s: float) -> float:
    """Seconds until the next multiple of an interval.

    >>> until_next(10.25, 1.0)
    0.75
    >>> until_next(10.0, 1.0)
    1.0
    """
    return (math.floor(now_s / every_s + 1e-6) + 1) * every_s - now_s
