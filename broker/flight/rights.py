"""Who calls: the token of a call, as a bearer's or as a password, and what it allows, as everywhere."""

from __future__ import annotations

import base64
import binascii
from typing import Any

import pyarrow.flight as flight

from broker.base.settings import Settings, is_loopback
from broker.flight.peers import address_of
from broker.http.rights import Allowed, Tokens
from broker.postgres.answering import Identity

KEY = "caller"
USER = "tureen"
"""Who asks, to current_user: calls after the first show a token alone."""


class Caller(flight.ServerMiddleware):  # type: ignore[misc]
    """Who sent a call. header: what a client that proved itself by a password shows from then on."""

    def __init__(self, allowed: Allowed, header: str | None) -> None:
        self.allowed = allowed
        self._header = header

    def sending_headers(self) -> dict[str, str]:
        return {} if self._header is None else {"authorization": self._header}

    def identity(self, peer: str, has_tokens: bool) -> Identity:
        """Who asks. peer: as gRPC names it."""
        reads = self.allowed == "read"
        return Identity(not reads and (has_tokens or is_loopback(address_of(peer)[0])), reads, USER)


class Callers(flight.ServerMiddlewareFactory):  # type: ignore[misc]
    """Lets calls in."""

    def __init__(self, settings: Settings) -> None:
        super().__init__()
        self._tokens = Tokens(settings)

    def start_call(self, info: Any, headers: dict[str, list[str]]) -> Caller:
        """Raises FlightUnauthenticatedError."""
        given = next(iter(headers.get("authorization", ())), None)
        header = given
        if given is not None and given[:6].lower() == "basic ":
            header = f"Bearer {_password(given[6:])}"
        allowed = self._tokens.allowed(None if header is None else header.encode())
        if allowed is None:
            raise flight.FlightUnauthenticatedError(
                "a token is needed: 'authorization: Bearer TOKEN', or the token as the password of any user"
            )
        return Caller(allowed, header if header != given else None)


class Handshakes(flight.ServerAuthHandler):  # type: ignore[misc]
    """A handshake proves nothing: every call is let in by its own header."""

    def authenticate(self, outgoing: Any, incoming: Any) -> None:
        """The middleware has looked at the header, and gives back the one to show from then on."""

    def is_valid(self, token: bytes) -> bytes:
        return b""


def _password(coded: str) -> str:
    """That of any user; clients written in Go leave the padding out. Raises FlightUnauthenticatedError."""
    try:
        padded = coded.rstrip("=") + "=" * (-len(coded.rstrip("=")) % 4)
        return base64.b64decode(padded, validate=True).decode().partition(":")[2]
    except (binascii.Error, UnicodeDecodeError):
        raise flight.FlightUnauthenticatedError("the header 'authorization' cannot be read") from None
