"""What every request passes first: who calls, the token, and the limit on its body. Plain ASGI.

A body is read to its end before anything is done for it, or refused: so one above its limit is 413 at every
address, whether it says its length or not, and the answer to one that is refused is not lost, since whoever
still sends when a connection is closed may hear of nothing but that. Registrations by the line alone are
worked off while they come.

No answer may be stored on its way, unless it says so itself: they have handles, rows and texts of queries.
"""

from __future__ import annotations

import asyncio

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from broker.http.callers import NDJSON, Callers, has_body, media_type
from broker.http.connection import connection_of
from broker.http.errors import answer
from broker.http.rights import Tokens
from tureen.errors import LimitExceeded, TureenError

DRAINED_BYTES_MAX = 1024**3
"""Bytes of a refused body that are read, and dropped, before the answer; who sends more is cut off."""
DRAIN_WAIT_S = 2.0
"""How long more of such a body is waited for; a length may be declared that never comes."""

NO_STORE = (b"cache-control", b"no-store")
STREAMED = "/queries"
"""Where lines are worked off as they come."""


class Guard:
    """Refuses requests for pages of other sites, those that their token does not allow, and bodies above
    their limit.
    """

    def __init__(self, app: ASGIApp, callers: Callers, tokens: Tokens, body_max: int, bulk_max: int) -> None:
        self._app = app
        self._callers = callers
        self._tokens = tokens
        self._body_max = body_max
        self._bulk_max = bulk_max

    def refusal(self, scope: Scope, headers: dict[bytes, bytes]) -> TureenError | None:
        """Why a request is refused before its body is looked at. headers: of the scope."""
        return self._callers.refusal(scope, headers) or self._tokens.refusal(scope, headers)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = dict(scope["headers"])
        body = _Body(scope, receive, self._limit(headers), b"expect" in headers)
        refused = body.too_long(headers.get(b"content-length", b"")) or self.refusal(scope, headers)
        if refused is None and has_body(headers):
            if media_type(headers) == NDJSON and scope["path"] == STREAMED:
                receive = body.receive
            else:
                refused = await body.read()
                receive = body.replay
        elif refused is not None:
            await body.drain()
        await (answer(refused) if refused is not None else self._app)(scope, receive, _unstored(send))

    def _limit(self, headers: dict[bytes, bytes]) -> tuple[str, int]:
        if media_type(headers) == NDJSON:
            return "request_bulk_bytes_max", self._bulk_max
        return "request_bytes_max", self._body_max


class _Body:
    """The body of a request, up to its limit."""

    def __init__(self, scope: Scope, receive: Receive, limit: tuple[str, int], asks_first: bool) -> None:
        """limit: the setting, and the bytes. asks_first: the client waits before it sends (100-continue)."""
        self._scope = scope
        self._receive = receive
        self._setting, self._max = limit
        self._asks_first = asks_first
        self._taken = 0
        self._parts: list[bytes] = []
        self._last: Message | None = None

    def too_long(self, length: bytes) -> LimitExceeded | None:
        """length: as it is declared."""
        if length.isdigit() and int(length) > self._max:
            return LimitExceeded(self._setting, self._max, int(length))
        return None

    async def receive(self) -> Message:
        """The next part. Raises LimitExceeded, with nothing left to be read."""
        message = await self._receive()
        if message["type"] == "http.request":
            self._taken += len(message.get("body", b""))
            self._asks_first = False
            if self._taken > self._max:
                if message.get("more_body", False):
                    await self.drain()
                raise LimitExceeded(self._setting, self._max, self._taken)
        return message

    async def read(self) -> LimitExceeded | None:
        """All of it, for :meth:`replay`."""
        try:
            while self._last is None:
                message = await self.receive()
                self._parts.append(message.get("body", b""))
                if not message.get("more_body", False):
                    self._last = message
        except LimitExceeded as refused:
            return refused
        return None

    async def replay(self) -> Message:
        """What was read, in one part; then what follows it, that the client has gone."""
        if self._last is None:
            return await self._receive()
        message, self._last = self._last, None
        if message["type"] == "http.request":
            message = {"type": "http.request", "body": b"".join(self._parts), "more_body": False}
            self._parts.clear()
        return message

    async def drain(self) -> None:
        """Read what is left of it, and drop it; nothing where the client waits to be asked for it."""
        left = 0 if self._asks_first else DRAINED_BYTES_MAX
        while left > 0:
            try:
                async with asyncio.timeout(DRAIN_WAIT_S):
                    message = await self._receive()
            except TimeoutError:
                break
            size = len(message.get("body", b""))
            connection_of(self._scope).release(size)
            left -= size
            if not message.get("more_body", False):
                break


def _unstored(send: Send) -> Send:
    async def marked(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = message["headers"] = [*message.get("headers", ())]
            if not any(name.lower() == NO_STORE[0] for name, _ in headers):
                headers.append(NO_STORE)
        await send(message)

    return marked
