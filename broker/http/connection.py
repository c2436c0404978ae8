"""HTTP connections that tell of themselves what a long answer has to know: gone, full, stuck.

A feed lies still most of its life. So that it needs no second task to hear that its reader has gone, and no
unbounded buffer for one that does not read, it is given its connection, in ``scope["state"]``.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Callable
from typing import Any, cast

from starlette.types import Scope
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEAD_BYTES_MAX = 64 * 1024
"""Of a request, besides its body; the parser itself would take any."""

_STATE = "connection"


class Connection(HttpToolsProtocol):
    """One connection of a client. Used by the event loop alone."""

    def __init__(
        self,
        config: Any,
        server_state: Any,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state | {_STATE: self}, _loop)
        self.is_lost = False
        self._on_lost: Callable[[], None] | None = None
        self._head = 0

    def data_received(self, data: bytes) -> None:
        self._head += len(data)
        super().data_received(data)
        if self._head > HEAD_BYTES_MAX and not self.transport.is_closing():
            self.send_400_response(f"More than {HEAD_BYTES_MAX} bytes of headers.")

    def on_body(self, body: bytes) -> None:
        super().on_body(body)
        self._head = 0

    def on_message_complete(self) -> None:
        super().on_message_complete()
        self._head = 0

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self.is_lost = True
        self.app_state.clear()  # it would hold on to itself
        if self._on_lost is not None:
            self._on_lost()

    def tell_loss(self, on_lost: Callable[[], None] | None) -> None:
        """Whom to call when the client has gone."""
        self._on_lost = on_lost

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
