"""What every request passes first: who calls, the token, and the limit on its body. Plain ASGI."""

from __future__ import annotations

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from broker.http.callers import NDJSON, Callers, media_type
from broker.http.errors import answer
from broker.http.rights import Tokens
from tureen.errors import LimitExceeded, TureenError


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
