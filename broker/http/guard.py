"""What every request passes first: who calls, the token, and the limit on its body. Plain ASGI."""

from __future__ import annotations

import hmac

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from broker.http.callers import NDJSON, Callers, media_type
from broker.http.errors import Unauthorized, answer
from tureen.errors import LimitExceeded, TureenError

OPEN_PATHS = ("/", "/healthcheck", "/readycheck")
OPEN_FILES = "/page/"
"""Paths that begin so are those of the page's files, which hold no data."""


def is_open(path: str) -> bool:
    """Whether a path needs no token."""
    return path in OPEN_PATHS or path.startswith(OPEN_FILES)


class Guard:
    """Refuses requests for pages of other sites, those without the token (health, readiness and files of
    the page are open), and bodies above their limit.
    """

    def __init__(
        self, app: ASGIApp, callers: Callers, token: str | None, body_max: int, bulk_max: int
    ) -> None:
        self._app = app
        self._callers = callers
        self._expected = None if token is None else f"Bearer {token}".encode()
        self._body_max = body_max
        self._bulk_max = bulk_max

    def refusal(self, scope: Scope, headers: dict[bytes, bytes]) -> TureenError | None:
        """Why a request is refused before its body is looked at. headers: of the scope."""
        refused = self._callers.refusal(scope, headers)
        if refused is None and self._expected is not None and not is_open(scope["path"]):
            given = headers.get(b"authorization", b"")
            if not hmac.compare_digest(given, self._expected):
                return Unauthorized()
        return refused

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = dict(scope["headers"])
        refused = self.refusal(scope, headers)
        if refused is not None:
            await answer(refused)(scope, receive, send)
            return
        bulk = media_type(headers) == NDJSON
        setting = "request_bulk_bytes_max" if bulk else "request_bytes_max"
        allowed = self._bulk_max if bulk else self._body_max
        length = headers.get(b"content-length", b"")
        if length.isdigit() and int(length) > allowed:
            await answer(LimitExceeded(setting, allowed, int(length)))(scope, receive, send)
            return
        taken = 0

        async def limited() -> Message:
            nonlocal taken
            message = await receive()
            if message["type"] == "http.request":
                taken += len(message.get("body", b""))
                if taken > allowed:
                    raise LimitExceeded(setting, allowed, taken)
            return message

        await self._app(scope, limited, send)
