"""SCRAM-SHA-256, the server's side: a client proves that it has a token without sending it.

As with HTTP the token decides, whatever the user's name is: both tokens are salted alike, and the client's
proof is that of one of them, or of none. The name in SCRAM itself is empty: clients leave it to the startup
message. Tokens are ASCII, so that their text needs no preparation (SASLprep).

Source: RFC 5802, RFC 7677; PostgreSQL's documentation, "SASL Authentication". Cost: a proof is some
microseconds; a token's keys are derived once, at the start.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
import secrets
from dataclasses import dataclass
from typing import Literal

from tureen.errors import TureenError

MECHANISM = "SCRAM-SHA-256"
ITERATIONS = 4_096
Right = Literal["full", "read"]


class AuthenticationFailed(TureenError):
    """The client has no token of the broker."""

    code = "authentication_failed"

    def __init__(self) -> None:
        super().__init__(
            "the password is no token of this broker",
            hint="give TUREEN_HTTP_TOKEN, or TUREEN_HTTP_READ_TOKEN to look alone, as the password",
        )


@dataclass(frozen=True, slots=True)
class _Keys:
    right: Right
    stored: bytes
    server: bytes


class Verifier:
    """What of the tokens is kept to verify proofs."""

    def __init__(self, full: str, read: str | None) -> None:
        self.salt = secrets.token_bytes(16)
        tokens: list[tuple[Right, str]] = [("full", full)]
        if read is not None:
            tokens.append(("read", read))
        self.keys = tuple(self._keys_of(right, token) for right, token in tokens)

    def _keys_of(self, right: Right, token: str) -> _Keys:
        salted = hashlib.pbkdf2_hmac("sha256", token.encode(), self.salt, ITERATIONS)
        client = hmac.digest(salted, b"Client Key", "sha256")
        return _Keys(right, hashlib.sha256(client).digest(), hmac.digest(salted, b"Server Key", "sha256"))


_FIRST = re.compile(rb"([ny]),[^,]*,(n=[^,]*,r=([\x21-\x2b\x2d-\x7e]{1,256})(?:,.*)?)", re.DOTALL)
_FINAL = re.compile(rb"(c=([A-Za-z0-9+/=]+),r=([^,]+)),p=([A-Za-z0-9+/=]+)")


class Exchange:
    """The exchange of one connection: ``first``, then ``final``."""

    def __init__(self, verifier: Verifier) -> None:
        self._verifier = verifier
        self._nonce = b""
        self._said = b""
        self._binding = b""

    def first(self, data: bytes) -> bytes:
        """The answer to the client's first message. Raises AuthenticationFailed."""
        found = _FIRST.fullmatch(data)
        if found is None:
            raise AuthenticationFailed
        self._nonce = found[3] + base64.b64encode(secrets.token_bytes(18))
        salt = base64.b64encode(self._verifier.salt)
        told = b"r=%b,s=%b,i=%d" % (self._nonce, salt, ITERATIONS)
        self._said = found[2] + b"," + told
        self._binding = data[: found.start(2)]
        return told

    def final(self, data: bytes) -> tuple[Right, bytes]:
        """What the token allows, and the answer by which the server proves that it has it as well.

        Raises AuthenticationFailed.
        """
        found = _FINAL.fullmatch(data)
        try:
            if found is None or found[3] != self._nonce:
                raise AuthenticationFailed
            proof = base64.b64decode(found[4], validate=True)
            bound = base64.b64decode(found[2], validate=True)
        except binascii.Error:
            raise AuthenticationFailed from None
        if bound != self._binding or len(proof) != hashlib.sha256().digest_size:
            raise AuthenticationFailed
        said = self._said + b"," + found[1]
        fitting = None
        for keys in self._verifier.keys:  # all of them, so that the time tells nothing
            signature = hmac.digest(keys.stored, said, "sha256")
            client = bytes(one ^ other for one, other in zip(proof, signature, strict=True))
            if hmac.compare_digest(hashlib.sha256(client).digest(), keys.stored):
                fitting = keys
        if fitting is None:
            raise AuthenticationFailed
        return fitting.right, b"v=" + base64.b64encode(hmac.digest(fitting.server, said, "sha256"))


def mechanism_and_data(body: bytes) -> tuple[str, bytes]:
    """The first message of a client: what it chose, and its data. Raises AuthenticationFailed."""
    name, zero, rest = body.partition(b"\0")
    if not zero or len(rest) < 4 or int.from_bytes(rest[:4]) != len(rest) - 4:
        raise AuthenticationFailed
    return name.decode("latin-1"), rest[4:]
