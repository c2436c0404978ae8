"""The protocol by hand: what no driver would send."""

from __future__ import annotations

import base64
import hashlib
import hmac
import socket
import struct


def message(letter: bytes, *parts: bytes) -> bytes:
    body = b"".join(parts)
    return letter + struct.pack("!i", len(body) + 4) + body


def startup(**parameters: str) -> bytes:
    body = b"".join(f"{name}\0{value}\0".encode() for name, value in parameters.items()) + b"\0"
    return struct.pack("!ii", len(body) + 8, 3 << 16) + body


class Wire:
    """A connection."""

    def __init__(self, port: int, *, buffer: int | None = None) -> None:
        self.socket = socket.socket()
        if buffer is not None:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        self.socket.settimeout(60)
        self.socket.connect(("127.0.0.1", port))
        self._buffer = b""

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def receive(self) -> tuple[bytes, bytes]:
        """The next message: its letter and its body."""
        while len(self._buffer) < 5 or len(self._buffer) < struct.unpack("!i", self._buffer[1:5])[0] + 1:
            part = self.socket.recv(65_536)
            if not part:
                raise ConnectionError(self._buffer)
            self._buffer += part
        size = struct.unpack("!i", self._buffer[1:5])[0] + 1
        found, self._buffer = self._buffer[:size], self._buffer[size:]
        return found[:1], found[5:]

    def until_ready(self) -> list[tuple[bytes, bytes]]:
        found = [self.receive()]
        while found[-1][0] != b"Z":
            found.append(self.receive())
        return found

    def log_in(self, token: str) -> None:
        """As RFC 5802 has it."""
        self.send(startup(user="me", database="tureen"))
        assert self.receive() == (b"R", struct.pack("!i", 10) + b"SCRAM-SHA-256\0\0")
        bare = b"n=,r=abcdefghij"
        first = b"n,," + bare
        self.send(message(b"p", b"SCRAM-SHA-256\0", struct.pack("!i", len(first)), first))
        said = self.receive()[1][4:]
        facts = dict(part.split(b"=", 1) for part in said.split(b","))
        salted = hashlib.pbkdf2_hmac(
            "sha256", token.encode(), base64.b64decode(facts[b"s"]), int(facts[b"i"])
        )
        key = hmac.digest(salted, b"Client Key", "sha256")
        final = b"c=biws,r=" + facts[b"r"]
        signature = hmac.digest(hashlib.sha256(key).digest(), b",".join((bare, said, final)), "sha256")
        proof = bytes(one ^ other for one, other in zip(key, signature, strict=True))
        self.send(message(b"p", final + b",p=" + base64.b64encode(proof)))
        server = hmac.digest(salted, b"Server Key", "sha256")
        proven = hmac.digest(server, b",".join((bare, said, final)), "sha256")
        assert self.receive() == (b"R", struct.pack("!i", 12) + b"v=" + base64.b64encode(proven))
        self.until_ready()

    def close(self) -> None:
        self.socket.close()
