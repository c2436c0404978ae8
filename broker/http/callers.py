"""Who may call: browsers on behalf of other sites may not.

A browser on the broker's machine, or near it, sends requests for any page that it shows. Three rules keep
such a page out, whether a token is set or not:

* *Known hosts*: a name that the page's owner makes to mean our address (DNS rebinding) comes as the header
  Host, so a Host that is none of ours is refused.
* *Own origin*: what a browser sends for a page of another origin says so, by Origin or Sec-Fetch-Site, and is
  refused. Following a link to us is not.
* *JSON*: the content types that a form, or a script without asking first, can send write nothing here.

No cookie is ever set or read, so nothing is done in the name of a person whose browser is misused.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Iterable
from urllib.parse import urlsplit

from starlette.types import Scope

from broker.http.errors import (
    BadRequest,
    ForeignOrigin,
    UnknownHost,
    UnsupportedEncoding,
    UnsupportedMediaType,
)
from tureen.errors import TureenError

JSON = "application/json"
NDJSON = "application/x-ndjson"
NDJSON_PATHS = ("/queries", "/match")

WRITING = ("POST", "PUT", "PATCH")
LOOPBACK = ("localhost", "127.0.0.1", "::1")
REMEMBERED_MAX = 1_000
"""Host headers that passed; a broker has a handful."""

_AUTHORITY = re.compile(r"(?:\[([0-9a-f:.]+)\]|([^\s:/?#@\[\]]+))(?::(\d{0,5}))?")
_PORTS = {"http": "80", "https": "443"}


def media_type(headers: dict[bytes, bytes]) -> str:
    """The type of a request's body, without its parameters; empty where none is given."""
    return headers.get(b"content-type", b"").split(b";")[0].strip().lower().decode("latin-1")


class Callers:
    """Says why a request is refused by what its headers tell of its caller."""

    def __init__(self, bound: str, names: Iterable[str]) -> None:
        """bound: the address that is listened on. names: others by which clients know it."""
        known = (*LOOPBACK, bound, socket.gethostname(), *names)
        self._known = {name.lower().rstrip(".") for name in known if name}
        self._passed: set[tuple[bytes, str]] = set()

    def refusal(self, scope: Scope, headers: dict[bytes, bytes]) -> TureenError | None:
        """None for a request that may pass. headers: of the scope, names in lower case."""
        given = [value for name, value in scope["headers"] if name == b"host"]
        if len(given) != 1 and not (not given and scope["http_version"] == "1.0"):
            return BadRequest(
                "a request has one Host header", hint="HTTP clients send it by themselves: leave it to yours"
            )
        host = given[0] if given else b""
        local = (scope.get("server") or ("", None))[0]
        if given and (host, local) not in self._passed:
            if not self._knows(host.decode("latin-1"), local):
                return UnknownHost(host.decode("latin-1", "replace")[:100])
            if len(self._passed) < REMEMBERED_MAX:
                self._passed.add((host, local))
        return _foreign(scope, headers, host) or _wrong_type(scope, headers)

    def _knows(self, host: str, local: str) -> bool:
        """local: the address of ours that the connection came to; where we listen on all, one of many."""
        parts = _AUTHORITY.fullmatch(host.lower())
        if parts is None:
            return False
        name = (parts[1] or parts[2]).rstrip(".")
        return name in self._known or name == local.lower()


def _foreign(scope: Scope, headers: dict[bytes, bytes], host: bytes) -> ForeignOrigin | None:
    origin = headers.get(b"origin")
    if origin is not None and not _is_own(origin.decode("latin-1"), host.decode("latin-1")):
        return ForeignOrigin(origin.decode("latin-1", "replace")[:100])
    site = headers.get(b"sec-fetch-site", b"none")
    if site not in (b"none", b"same-origin"):
        link = headers.get(b"sec-fetch-mode") == b"navigate" and scope["method"] == "GET"
        if not link:
            return ForeignOrigin(site.decode("latin-1", "replace")[:100])
    return None


def _is_own(origin: str, host: str) -> bool:
    """Whether a page of this origin came from the host that it now asks. ``null`` is nobody's.

    >>> _is_own("http://localhost:8080", "localhost:8080"), _is_own("http://localhost:3000", "localhost:8080")
    (True, False)
    """
    try:
        page = urlsplit(origin.lower())
    except ValueError:
        return False
    if page.scheme not in _PORTS:
        return False
    asked, own = _AUTHORITY.fullmatch(host.lower()), _AUTHORITY.fullmatch(page.netloc)
    if asked is None or own is None:
        return False
    port = _PORTS[page.scheme]
    return (asked[1] or asked[2], asked[3] or port) == (own[1] or own[2], own[3] or port)


def has_body(headers: dict[bytes, bytes]) -> bool:
    """Whether a request comes with one."""
    return headers.get(b"content-length", b"0") != b"0" or b"transfer-encoding" in headers


def _wrong_type(
    scope: Scope, headers: dict[bytes, bytes]
) -> UnsupportedMediaType | UnsupportedEncoding | None:
    if scope["method"] not in WRITING or not has_body(headers):
        return None
    encoding = headers.get(b"content-encoding", b"identity").strip().lower()
    if encoding != b"identity":
        return UnsupportedEncoding(encoding[:100].decode("latin-1"))
    given = media_type(headers)
    if given == JSON or (given == NDJSON and scope["path"] in NDJSON_PATHS):
        return None
    return UnsupportedMediaType(given[:100], ndjson=scope["path"] in NDJSON_PATHS)
