"""What comes before a client is let in: its first message, and the proof that it has a token."""

from __future__ import annotations

import ssl

from broker.base.settings import is_loopback
from broker.postgres import messages
from broker.postgres.messages import ProtocolViolation, Startup
from broker.postgres.scram import (
    MECHANISM,
    AuthenticationFailed,
    Exchange,
    Right,
    Verifier,
    mechanism_and_data,
)
from tureen.errors import NotAllowed


class Beginning:
    """What is known of a client before it is let in."""

    def __init__(self, verifier: Verifier | None, tls: ssl.SSLContext | None) -> None:
        self._verifier = verifier
        self._tls = tls
        self.is_started = False
        self.is_secure = False
        self.address = ""
        self.parameters: dict[str, str] = {}
        self._exchange: Exchange | None = None
        self._has_chosen = False

    def cut(self, buffer: bytearray) -> bytes | None:
        """The next message, out of what has come; None: it is not whole. Raises ProtocolViolation."""
        letters = 1 if self.is_started else 0
        if letters and buffer and buffer[:1] != b"p":
            raise ProtocolViolation("a password is waited for")
        if len(buffer) < 4 + letters:
            return None
        size = int.from_bytes(buffer[letters : letters + 4])
        size_max = messages.PASSWORD_BYTES_MAX if letters else messages.STARTUP_BYTES_MAX
        if not 8 - 4 * letters <= size <= size_max:
            raise ProtocolViolation(
                "this is not the beginning of a connection of PostgreSQL's protocol",
                hint="HTTP is spoken on http_port",
            )
        if len(buffer) < size + letters:
            return None
        body = bytes(buffer[4 + letters : size + letters])
        del buffer[: size + letters]
        return body

    def start(self, startup: Startup, address: str) -> bytes:
        """The answer to the first message. Raises NotAllowed: TLS is needed."""
        self.is_started = True
        self.parameters, self.address = startup.parameters, address
        if "replication" in self.parameters and self.parameters["replication"] not in ("false", "off", "0"):
            raise NotAllowed("replicate: changes of queries come over HTTP, or by their topics")
        if self._tls is not None and not self.is_secure and not is_loopback(address):
            raise NotAllowed("connect without TLS from another machine (sslmode=require)")
        unknown = [name for name in self.parameters if name.startswith("_pq_.")]
        told = messages.negotiated(unknown) if unknown or startup.code != messages.PROTOCOL else b""
        if self._verifier is not None:
            self._exchange = Exchange(self._verifier)
            told += messages.sasl([MECHANISM])
        return told

    def authenticated(self, body: bytes) -> tuple[bytes, Right | None]:
        """The answer to a step, and what the token allows once that is known. Raises AuthenticationFailed."""
        assert self._exchange is not None
        if not self._has_chosen:
            self._has_chosen = True
            mechanism, data = mechanism_and_data(body)
            if mechanism != MECHANISM:
                raise AuthenticationFailed
            return messages.sasl_continue(self._exchange.first(data)), None
        right, proof = self._exchange.final(body)
        return messages.sasl_final(proof), right

    def settings(self) -> list[tuple[str, str]]:
        """Settings of the startup message."""
        given = [
            (name, value)
            for name, value in self.parameters.items()
            if name not in ("user", "database", "replication", "options") and not name.startswith("_pq_.")
        ]
        words = self.parameters.get("options", "").replace("-c ", "-c").split()
        for word in words:
            name, equals, value = word.removeprefix("-c").removeprefix("--").partition("=")
            if equals:
                given.append((name, value))
        return given
