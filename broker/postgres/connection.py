"""A connection of PostgreSQL's protocol: its bytes, its beginning, its limits, its end.

It begins with a plain text, or a request for TLS; then the client says who it is, and proves that it has a
token (SCRAM). An idle connection has no task, no timer and no buffer: a thousand cost some megabytes. What
comes is read a message at a time; while one is answered the next ones wait in the socket, but for a little.

Whom the broker waits for, and for how long, is as with HTTP (:mod:`broker.runtime.in_flight`): the beginning
has the time of a request's head; a message that has begun, and an answer that is not read, that of a body.
A client that reads nothing keeps its own answer waiting, and is cut off in time.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import secrets
import ssl
from collections.abc import Coroutine
from typing import Any, Protocol

from broker.base import logs
from broker.base.settings import is_loopback
from broker.node.request_work import Caller, caller
from broker.postgres import messages
from broker.postgres.answering import Answering, Identity, Services
from broker.postgres.beginning import Beginning
from broker.postgres.errors import fields_of
from broker.postgres.messages import NotUnicode, ProtocolViolation, Startup
from broker.postgres.scram import Verifier
from broker.postgres.session import Session
from broker.postgres.settings import TOLD, SessionSettings
from broker.postgres.waiting import Waiting
from broker.runtime.in_flight import InFlight, TooManyConnections
from tureen.errors import TureenError

BUFFER_BYTES = 64 * 1024
"""What is read ahead of a message that is being answered; more waits in the socket."""
WRITE_BYTES = 64 * 1024
"""What is gathered of an answer before it is sent."""

log = logs.get()


class Door(Protocol):
    """What connections share."""

    services: Services
    in_flight: InFlight
    verifier: Verifier | None
    tls: ssl.SSLContext | None

    def enter(self, connection: Connection) -> int:
        """The number by which a connection that was let in may be cancelled."""

    def leave(self, connection: Connection) -> None:
        """It has gone."""

    def cancel(self, key: bytes) -> None:
        """Cancel what the connection with this number and secret does, if there is one."""


class Connection(asyncio.Protocol):
    """One connection. Used by the event loop alone."""

    def __init__(self, door: Door) -> None:
        self._door = door
        self._transport: asyncio.Transport | None = None
        self._buffer = bytearray()
        self._out: list[bytes] = []
        self._out_size = 0
        self._beginning: Beginning | None = Beginning(door.verifier, door.tls)
        self.session: Session | None = None
        self.key = 0, secrets.token_bytes(4)
        """The number and the secret by which it may be cancelled."""
        self._task: asyncio.Task[None] | None = None
        self._may_write: asyncio.Event | None = None
        """Set when there is room again; None: there is room."""
        self._caller = Caller()
        self._patience = Waiting(self, door.in_flight)

    # --- what asyncio calls -----------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport) or hasattr(transport, "write")
        self._transport = transport  # type: ignore[assignment]
        in_flight = self._door.in_flight
        in_flight.connections += 1
        if in_flight.connections > in_flight.patience.connections:
            in_flight.refused["connections"] += 1
            self.end(TooManyConnections(in_flight.patience.connections))
        else:
            self._patience.for_message("head", in_flight.patience.head_s)

    def connection_lost(self, exc: Exception | None) -> None:
        self._door.in_flight.connections -= 1
        self._patience.stop()
        self._door.leave(self)
        if self.session is not None:
            self.session.close()
        self._transport = None
        self._buffer.clear()
        self._out.clear()
        if self._may_write is not None:
            self._may_write.set()
        if self._task is not None:
            self._task.cancel()
        self._caller.go()

    def data_received(self, data: bytes) -> None:
        if self._transport is None or self._transport.is_closing():
            return
        self._buffer += data
        self._patience.received(len(data))
        if self._task is None:
            self._process()
        elif len(self._buffer) > BUFFER_BYTES:
            self._transport.pause_reading()

    def eof_received(self) -> bool:
        return False

    def pause_writing(self) -> None:
        self._may_write = asyncio.Event()
        if self._transport is not None:
            self._patience.for_reader(self._transport.get_write_buffer_size())

    def resume_writing(self) -> None:
        if self._may_write is not None:
            self._may_write.set()
        self._may_write = None
        self._patience.reader_reads()

    # --- messages ---------------------------------------------------------------------------------

    def _process(self) -> None:
        """Handle what has come whole, until something is to be waited for."""
        try:
            while self._task is None and self._transport is not None and not self._transport.is_closing():
                if self._beginning is not None:
                    if not self._begin(self._beginning):
                        break
                elif not self._next():
                    break
        except TureenError as refused:
            self.end(refused)
        except Exception as failed:
            log.error("postgres_connection_failed", error=repr(failed), exc_info=failed)
            self.abort()
        else:
            self.flush()
            self._patience.waits_for(len(self._buffer))

    def _next(self) -> bool:
        """Handle a message, if one is whole. Raises ProtocolViolation, LimitExceeded."""
        buffer = self._buffer
        if len(buffer) < 5:
            if buffer:
                messages.require_known(bytes(buffer[:1]))
            return False
        letter, size = bytes(buffer[:1]), int.from_bytes(buffer[1:5])
        messages.require_known(letter)
        size_max = self._door.services.settings.request_bytes_max
        if not 4 <= size <= size_max:
            raise ProtocolViolation(
                f"a message of {size:,} bytes", hint=f"it has 4 to {size_max:,} (request_bytes_max)"
            )
        if len(buffer) < size + 1:
            return False
        body = bytes(buffer[5 : size + 1])
        del buffer[: size + 1]
        if letter == b"X":
            self._close()
            return False
        assert self.session is not None
        try:
            message = messages.read(letter, body)
        except NotUnicode as refused:
            self.session.refuse(refused, letter)
            return True
        work = self.session.handle(message)
        if work is not None:
            self._start(work)
        return True

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        """Wait for something; what comes meanwhile is handled after it."""
        self._patience.waits_for(0)
        before = caller.set(self._caller)
        self._task = asyncio.ensure_future(work)
        caller.reset(before)
        self._task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._task = None
        if self.session is not None:
            self.session.canceled = False
        failed = None if task.cancelled() else task.exception()
        if self._transport is None:
            return
        if isinstance(failed, TureenError):
            self.end(failed)
            return
        if failed is not None or task.cancelled():
            if failed is not None and not isinstance(failed, ConnectionError):
                log.error("postgres_connection_failed", error=repr(failed), exc_info=failed)
            self.abort()
            return
        with contextlib.suppress(RuntimeError):  # it is reading, or closing
            self._transport.resume_reading()
        self._process()

    # --- the beginning ----------------------------------------------------------------------------

    def _begin(self, beginning: Beginning) -> bool:
        """Handle a message before the client is let in; False: more is to come."""
        body = beginning.cut(self._buffer)
        if body is None:
            return False
        if not beginning.is_started:
            return self._started(beginning, messages.read_startup(body))
        reply, right = beginning.authenticated(body)
        self.write(reply)
        if right is not None:
            self._let_in(beginning, reads=right == "read")
        return True

    def _started(self, beginning: Beginning, startup: Startup) -> bool:
        assert self._transport is not None
        match startup.code:
            case messages.CANCEL_REQUEST:
                self._door.cancel(startup.key)
                self._close()
                return False
            case messages.GSS_REQUEST:
                self._transport.write(b"N")
                return True
            case messages.SSL_REQUEST:
                return self._asked_tls(beginning)
        client = self._transport.get_extra_info("peername")
        self.write(beginning.start(startup, client[0] if client else "127.0.0.1"))
        if self._door.verifier is None:
            self._let_in(beginning, reads=False)
        return True

    def _asked_tls(self, beginning: Beginning) -> bool:
        assert self._transport is not None
        if self._door.tls is None or beginning.is_secure or self._buffer:
            # What came behind the request was not protected, so that it may be another's.
            if self._buffer:
                raise ProtocolViolation("something came behind the request for TLS")
            self._transport.write(b"N")
            return True
        self._transport.write(b"S")
        beginning.is_secure = True
        self._start(self._secured(self._door.tls))
        return False

    async def _secured(self, tls: ssl.SSLContext) -> None:
        assert self._transport is not None
        loop = asyncio.get_running_loop()
        made = await loop.start_tls(
            self._transport,
            self,
            tls,
            server_side=True,
            ssl_handshake_timeout=self._door.in_flight.patience.head_s,
        )
        if made is not None:
            self._transport = made

    def _let_in(self, beginning: Beginning, *, reads: bool) -> None:
        self._beginning = None
        self.key = self._door.enter(self), self.key[1]
        operator = not reads and (self._door.verifier is not None or is_loopback(beginning.address))
        user = beginning.parameters.get("user", "tureen")
        services = self._door.services
        settings = SessionSettings()
        for name, value in beginning.settings():
            settings.set(name, value)
        self.session = Session(services, Answering(services, Identity(operator, reads, user)), self, settings)
        self.write(messages.AUTHENTICATED)
        told = {"session_authorization": user}
        for name in TOLD:
            self.write(messages.parameter_status(name, told.get(name) or settings.get(name)))
        self.write(messages.key_data(*self.key))
        self.write(messages.ready("I"))

    # --- for sessions -----------------------------------------------------------------------------

    def write(self, data: bytes) -> None:
        """Gather what is to be sent."""
        if not data:
            return
        self._out.append(data)
        self._out_size += len(data)
        if self._out_size > WRITE_BYTES:
            self.flush()

    def flush(self) -> None:
        """Send what was gathered."""
        if self._out and self._transport is not None:
            data = self._out[0] if len(self._out) == 1 else b"".join(self._out)
            self._out.clear()
            self._out_size = 0
            self._transport.write(data)

    async def room(self) -> None:
        """Return when there is room to write. Raises ConnectionError: the client has gone."""
        if self._may_write is not None:
            await self._may_write.wait()
        if self._transport is None or self._transport.is_closing():
            raise ConnectionResetError

    def cancel(self, secret: bytes) -> None:
        """Cancel what is being answered, for who has the secret; the client goes on."""
        if not hmac.compare_digest(secret, self.key[1]):
            return
        if self._task is not None and self.session is not None:
            self.session.canceled = True
            self._task.cancel()

    # --- the end ----------------------------------------------------------------------------------

    def end(self, error: TureenError) -> None:
        """Tell why, where that can be told, and close."""
        if self._transport is None:
            return
        if self._may_write is not None:
            self.abort()
            return
        self.write(fields_of(error, severity="FATAL"))
        self._close()

    @property
    def is_beginning(self) -> bool:
        """Whether its client is not let in yet."""
        return self._beginning is not None

    def unread(self) -> int:
        """Bytes of an answer that the client has not taken."""
        return 0 if self._transport is None else self._transport.get_write_buffer_size()

    def _close(self) -> None:
        self.flush()
        self._patience.stop()
        self._buffer.clear()
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        """Close it, whatever is not written yet."""
        if self._transport is not None:
            self._transport.abort()
