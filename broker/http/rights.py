"""What the token of a request allows: one table, :data:`RIGHTS`, with every route.

| token               | allows                                                                             |
|---------------------|------------------------------------------------------------------------------------|
| ``http_token``      | everything                                                                         |
| ``http_read_token`` | what RIGHTS calls ``open``, ``look`` or ``handle``                                 |
| none                | what is ``open``; everything where no ``http_token`` is set                        |

Who reads is never the operator. So no request with the read token looks at rows, but for the answers of those
queries whose handles it has: what is computed from rows would tell their values, a count at a time.
"""

from __future__ import annotations

import hmac
import re
from typing import Final, Literal

from fastapi import FastAPI
from starlette.routing import Route
from starlette.types import Scope

from broker.base.settings import Settings
from broker.http.errors import Unauthorized
from tureen.errors import NotAllowed, TureenError

Right = Literal["open", "look", "handle", "operator", "write"]
"""open: needs no token, and has no data. look: what stands and what it costs, no rows. handle: the answer of
a query, for who has its handle. operator: rows of others, topics of Kafka. write: changes something.
"""

Allowed = Literal["all", "read"]
"""What a token allows: everything, or what only reads."""

RIGHTS: Final[dict[str, Right]] = {
    "GET /": "open",
    "GET /page/{path}": "open",
    "GET /healthcheck": "open",
    "GET /readycheck": "open",
    "GET /docs": "look",
    "GET /docs/{path}": "look",
    "GET /openapi.json": "look",
    "GET /me": "look",
    "GET /language": "look",
    "GET /status": "look",
    "GET /status/events": "look",
    "GET /history": "look",
    "GET /metrics": "look",
    "GET /sources": "look",
    "GET /sources/{path}/records": "operator",
    "GET /sources/{path}": "look",
    "GET /topics": "operator",
    "POST /sources/infer": "operator",
    "POST /sources": "write",
    "DELETE /sources/{path}": "write",
    "POST /sources/{path}/heartbeat": "write",
    "GET /summaries": "look",
    "GET /summaries/{path}": "look",
    "DELETE /summaries/{path}": "write",
    "GET /queries": "look",
    "GET /shapes": "look",
    "POST /queries": "write",
    "POST /queries/unregister": "write",
    "GET /queries/{name}": "handle",
    "PATCH /queries/{name}": "write",
    "DELETE /queries/{name}": "write",
    "GET /queries/{name}/snapshot": "handle",
    "GET /queries/{name}/changes": "handle",
    "GET /queries/{name}/difference": "handle",
    "GET /queries/{name}/plan": "handle",
    "GET /queries/{name}/proposals": "handle",
    "POST /match": "look",
    "GET /plans/schema": "look",
    "POST /plans/validate": "look",
    "GET /plans/{name}": "look",
    "PUT /plans/{name}": "write",
    "GET /memory": "look",
    "POST /memory/moves": "write",
    "GET /entities": "look",
    "GET /entities/events": "look",
    "GET /entities/queries": "look",
    "GET /entities/{path}": "look",
    "PATCH /entities/{path}": "write",
    "GET /trace": "operator",
    "POST /statements": "look",
    "POST /statements/check": "look",
    "POST /retry": "write",
}
"""By method and path, the first that fits; ``{name}`` has no slash, ``{path}`` may. HEAD is as GET.

Of POST /statements those that read: SHOW, DESCRIBE and EXPLAIN, which :mod:`broker.http.statements` tells
from the others. ``rows`` of GET /entities/events takes a handle.
"""

_KNOWN = [
    (method, re.compile(pattern.replace("{name}", "[^/]+").replace("{path}", ".*"), re.DOTALL), right)
    for (method, pattern), right in ((one.split(" "), right) for one, right in RIGHTS.items())
]


def right_of(method: str, path: str) -> Right | None:
    """What a request needs; None: there is no such route."""
    asked = "GET" if method == "HEAD" else method
    return next((right for one, form, right in _KNOWN if one == asked and form.fullmatch(path)), None)


def require_rights(app: FastAPI) -> None:
    """Raise LookupError where a route is not in the table: whoever adds one says who may take it."""
    routes = (one for one in app.routes if isinstance(one, Route))
    unknown = [
        f"{method} {route.path}"
        for route in routes
        for method in sorted(route.methods or ())
        if right_of(method, re.sub(r"\{\w+(:path)?\}", "x", route.path)) is None
    ]
    if unknown:
        raise LookupError(f"broker.http.rights.RIGHTS has no {', '.join(unknown)}")


class ReadToken(NotAllowed):
    """The token of the request only reads."""

    def __init__(self) -> None:
        TureenError.__init__(
            self,
            "this token only reads, and the request changes something",
            hint="give the broker's own token (TUREEN_HTTP_TOKEN), or ask whoever has it",
        )


class Tokens:
    """The tokens of the broker."""

    def __init__(self, settings: Settings) -> None:
        full, read = settings.http_token, settings.http_read_token
        self._full = None if full is None else _header(full.get_secret_value())
        self._read = None if read is None else _header(read.get_secret_value())

    def refusal(self, scope: Scope, headers: dict[bytes, bytes]) -> TureenError | None:
        """Why the token, or its absence, refuses a request. headers: of the scope."""
        allowed = self.allowed(headers.get(b"authorization"))
        if allowed == "all":
            return None
        right = right_of(scope["method"], scope["path"])
        if right == "open":
            return None
        if allowed is None:
            return Unauthorized()
        if right in ("look", "handle") or (right is None and scope["method"] in ("GET", "HEAD")):
            return None
        return NotAllowed("look at records, and at topics of Kafka") if right == "operator" else ReadToken()

    def allowed(self, given: bytes | None) -> Allowed | None:
        """What a header ``authorization``, or none, allows; None: nothing but what is open."""
        if self._full is None and self._read is None:
            return "all"
        if given is None:
            return "all" if self._full is None else None
        if self._full is not None and hmac.compare_digest(given, self._full):
            return "all"
        return "read" if self._read is not None and hmac.compare_digest(given, self._read) else None

    def reads(self, scope: Scope) -> bool:
        """Whether a request carries the token that only reads."""
        return self.allowed(dict(scope["headers"]).get(b"authorization")) == "read"


def _header(token: str) -> bytes:
    return f"Bearer {token}".encode()
