"""HTTP connections that tell of themselves what a long answer has to know, and that end in time.

A feed lies still most of its life. So that it needs no second task to hear that its reader has gone, and no
unbounded buffer for one that does not read, it is given its connection, in ``scope["state"]``. What a
connection may hold, and for how long its caller is waited for, is in :mod:`broker.runtime.in_flight`.

What can be answered at once (:class:`broker.http.answers.AtOnce`) is written as soon as the head of a request
has come, in one piece and without a task.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Callable
from typing import Any, cast

from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from broker.http.errors import BadRequest, Stopping, answer
from broker.node.request_work import Caller, caller
from broker.runtime.in_flight import InFlight, RequestTimeout, TooBusy, TooManyConnections
from tureen.errors import TureenError

HEAD_BYTES_MAX = 64 * 1024
"""Most bytes that a request may have besides its body; the parser itself would take any number."""

READ_S = 0.05
"""Seconds in which the event loop has read what had come before."""

AtOnce = Callable[[Scope], Response | None]
"""An answer that needs no waiting; None where the application is to be asked."""

_STATE = "connection"


class Connection(HttpToolsProtocol):
    """One connection of a client. Used by the event loop alone."""

    def __init__(
        self,
        config: Any,
        server_state: Any,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
        *,
        in_flight: InFlight,
        at_once: AtOnce | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state | {_STATE: self}, _loop)
        self.caller = Caller()
        self._on_lost: Callable[[], None] | None = None
        self._head = 0
        self._in_flight = in_flight
        self._at_once = at_once
        self._is_first = False
        """Whether the request that starts next is the first of what has just come."""
        self._held = 0
        """Bytes of bodies that are not worked off, and of answers that wait for that."""
        self._part: str | None = "head"
        """What of a request is waited for; None: nothing is."""
        self._due_s = 0.0
        """Until when."""
        self._unread = 0
        """Bytes of an answer that the client had not taken at the last look; 0: it is not waited for."""
        self._answer_due_s = 0.0

    # --- what uvicorn calls -----------------------------------------------------------------------

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._in_flight.connections += 1
        if self._in_flight.connections > self._in_flight.patience.connections:
            self._in_flight.refused["connections"] += 1
            self._end(TooManyConnections(self._in_flight.patience.connections))
        else:
            self._await("head", self._in_flight.patience.head_s)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self.caller.go()
        self._in_flight.connections -= 1
        self._in_flight.waiting.discard(self)
        self.release(self._held)
        self.app_state.clear()  # it would hold on to itself
        if self._on_lost is not None:
            self._on_lost()

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        self._head += len(data)
        self._is_first = True
        super().data_received(data)
        self._is_first = False
        if self._head > HEAD_BYTES_MAX and not self.transport.is_closing():
            self.send_400_response(f"the head of the request has more than {HEAD_BYTES_MAX} bytes")

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._await("head", self._in_flight.patience.head_s)

    def on_headers_complete(self) -> None:
        super().on_headers_complete()
        self._await("body", self._in_flight.patience.wait_s)

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        # One of what comes together: other connections have their turn, and answers are not nested.
        is_first, self._is_first = self._is_first, False
        if self._at_once is not None and is_first and cycle.keep_alive and not self.flow.write_paused:
            response = self._at_once(cast("Scope", cycle.scope))
            if response is not None:
                self._write(response)
                cycle.response_started = cycle.response_complete = True
                cycle.more_body = False
                cycle.on_response()
                return
        super()._start_asgi_task(cycle, app)

    def _write(self, response: Response, *more: bytes) -> None:
        """The whole of it, in one piece; more: lines of its head."""
        head = [STATUS_LINE[response.status_code], *more]
        for name, value in [*self.server_state.default_headers, *response.raw_headers]:
            head += [name, b": ", value, b"\r\n"]
        self.transport.write(b"".join([*head, b"\r\n", bytes(response.body)]))

    def on_body(self, body: bytes) -> None:
        self._head = 0
        if self.cycle.response_complete:  # nobody reads what is left of it
            return
        super().on_body(body)
        self._due_s = self._in_flight.patience.extended(self._due_s, self.loop.time(), len(body))
        self._held += len(body)
        self._in_flight.bytes += len(body)
        if self._in_flight.bytes > self._in_flight.patience.bytes:
            self._in_flight.refused["bytes"] += 1
            self._end(TooBusy(self._in_flight.patience.bytes))

    def on_message_complete(self) -> None:
        super().on_message_complete()
        self._head = 0
        self._part = None
        if not self._unread:
            self._in_flight.waiting.discard(self)

    def on_response_complete(self) -> None:
        if self.cycle.response_complete:  # else another request came behind this one
            self.release(self._held)
            if self.cycle.more_body:  # refused before all of it came: the rest is of no use
                self.transport.close()
        super().on_response_complete()

    def timeout_keep_alive_handler(self) -> None:
        """Close it, unless a request has come meanwhile: a busy event loop sees that it is time before it
        reads what is there.
        """
        self.timeout_keep_alive_task = self.loop.call_later(READ_S, super().timeout_keep_alive_handler)

    def pause_writing(self) -> None:
        super().pause_writing()
        if self._on_lost is None:  # a feed looks after itself
            self._unread = max(1, self.transport.get_write_buffer_size())
            self._answer_due_s = self.loop.time() + self._in_flight.patience.wait_s
            self._in_flight.waiting.add(self)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._unread = 0
        if self._part is None:
            self._in_flight.waiting.discard(self)

    def send_400_response(self, msg: str) -> None:
        self._end(BadRequest(msg))

    # --- patience ---------------------------------------------------------------------------------

    def _await(self, part: str, time_s: float) -> None:
        self._part = part
        self._due_s = self.loop.time() + time_s
        self._in_flight.waiting.add(self)

    def release(self, size: int) -> None:
        """Note that ``size`` bytes of a body are worked off."""
        size = min(size, self._held)
        self._held -= size
        self._in_flight.bytes -= size

    def hold(self, size: int) -> None:
        """Note that ``size`` bytes more are kept for this request."""
        if not self.is_lost:
            self._held += size
            self._in_flight.bytes += size

    def sweep(self, now_s: float, passed_s: float) -> None:
        """Give up a request that does not come, an answer that is not taken."""
        if self._unread:
            patience = self._in_flight.patience
            left = self.transport.get_write_buffer_size()
            self._answer_due_s = patience.extended(self._answer_due_s, now_s, max(0, self._unread - left))
            self._unread = max(1, left)
            if now_s > self._answer_due_s:
                self._in_flight.refused["answer"] += 1
                self.abort()
                return
        if self._part is None:
            return
        if self.flow.read_paused:
            self._due_s += passed_s  # we are not reading
        if now_s > self._due_s:
            self._in_flight.refused[self._part] += 1
            if self._part == "head" and not self._head:
                self.transport.close()  # nothing was asked
            else:
                self._end(RequestTimeout(self._part))

    def _end(self, error: TureenError) -> None:
        """Answer with an error, where nothing of an answer is written yet, and close."""
        if self.flow.write_paused:  # it takes no answer, this one neither
            self.abort()
            return
        self._in_flight.waiting.discard(self)
        cycle = cast("RequestResponseCycle | None", self.cycle)  # None before the first request
        busy = cycle is not None and not cycle.response_complete
        if cycle is not None and busy:
            cycle.disconnected = True
            cycle.message_event.set()  # whoever reads the body hears that no more of it comes
        if cycle is None or not busy or not cycle.response_started:
            self._write(answer(error), b"connection: close\r\n")
        self.transport.close()

    # --- for answers ------------------------------------------------------------------------------

    def tell_loss(self, on_lost: Callable[[], None] | None) -> None:
        """Whom to call when the client has gone."""
        self._on_lost = on_lost

    @property
    def is_lost(self) -> bool:
        """Whether the client has gone."""
        return self.caller.has_gone

    def hold_less(self, size: int) -> None:
        """Have the system keep about so many bytes that the client has not read, not its megabytes."""
        found = self.transport.get_extra_info("socket")
        if found is not None and not self.transport.is_closing():
            with contextlib.suppress(OSError, ValueError):  # uvloop's socket has no number once it is closed
                found.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, size)

    async def room(self, timeout_s: float) -> None:
        """Return when there is room to write, or the client has gone. Raises TimeoutError."""
        if self.flow.write_paused and not self.is_lost:
            async with asyncio.timeout(timeout_s):
                await self.flow.drain()

    def abort(self) -> None:
        """Close it, whatever is not written yet."""
        if self.cycle is not None:
            self.cycle.disconnected = True  # so that an answer that stops short of its end is no surprise
        self.transport.abort()


def connection_of(scope: Scope) -> Connection:
    """The connection that a request came by."""
    return cast("Connection", scope["state"][_STATE])


class Called:
    """Lets the work of a request end when its caller goes. Plain ASGI."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            caller.set(connection_of(scope).caller)
        await self._app(scope, receive, send)


class CutOff:
    """Answers what is still worked off when the server ends, which then cancels it. Plain ASGI, outermost."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        has_begun = False

        async def noted(message: Message) -> None:
            nonlocal has_begun
            has_begun = True
            await send(message)

        try:
            await self._app(scope, receive, noted)
        except asyncio.CancelledError:
            if not has_begun:
                await answer(Stopping())(scope, receive, send)
            elif _STATE in scope["state"]:
                connection_of(scope).abort()
