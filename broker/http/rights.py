"""What the token of a request allows.

| token               | allows                                                                             |
|---------------------|------------------------------------------------------------------------------------|
| ``http_token``      | everything                                                                         |
| ``http_read_token`` | what :func:`only_reads` names: to look, and to fetch answers by their handles      |
| none                | the open paths; everything where no ``http_token`` is set                          |

Who reads is never the operator, so the answer of a query opens by its handle alone, and records of a source
do not open at all.
"""

from __future__ import annotations

import hmac

from starlette.types import Scope

from broker.http.errors import Unauthorized
from broker.settings import Settings
from tureen.errors import NotAllowed, TureenError

OPEN_PATHS = ("/", "/healthcheck", "/readycheck")
OPEN_FILES = "/page/"
"""Paths that begin so are those of the page's files, which hold no data."""

READING_METHODS = ("GET", "HEAD")
READING_POSTS = ("/match", "/plans/validate", "/sources/infer", "/statements", "/statements/check")
"""Posts that change nothing; of statements SHOW, DESCRIBE and EXPLAIN, which :mod:`broker.http.statements`
tells from the others."""


class ReadToken(NotAllowed):
    """The token of the request only reads."""

    def __init__(self) -> None:
        TureenError.__init__(
            self,
            "this token only reads, and the request changes something",
            hint="give the broker's own token (TUREEN_HTTP_TOKEN), or ask whoever has it",
        )


def is_open(path: str) -> bool:
    """Whether a path needs no token."""
    return path in OPEN_PATHS or path.startswith(OPEN_FILES)


def only_reads(method: str, path: str) -> bool:
    """Whether a request of this method to this path changes nothing."""
    return method in READING_METHODS or (method == "POST" and path in READING_POSTS)


class Tokens:
    """The tokens of the broker."""

    def __init__(self, settings: Settings) -> None:
        full, read = settings.http_token, settings.http_read_token
        self._full = None if full is None else _header(full.get_secret_value())
        self._read = None if read is None else _header(read.get_secret_value())

    def refusal(self, scope: Scope, headers: dict[bytes, bytes]) -> TureenError | None:
        """Why the token, or its absence, refuses a request. headers: of the scope."""
        path: str = scope["path"]
        if (self._full is None and self._read is None) or is_open(path):
            return None
        given = headers.get(b"authorization")
        if given is None:
            return None if self._full is None else Unauthorized()
        if self._full is not None and hmac.compare_digest(given, self._full):
            return None
        if self._read is None or not hmac.compare_digest(given, self._read):
            return Unauthorized()
        return None if only_reads(scope["method"], path) else ReadToken()

    def reads(self, scope: Scope) -> bool:
        """Whether a request carries the token that only reads."""
        given: bytes = dict(scope["headers"]).get(b"authorization", b"")
        return self._read is not None and hmac.compare_digest(given, self._read)


def _header(token: str) -> bytes:
    return f"Bearer {token}".encode()
