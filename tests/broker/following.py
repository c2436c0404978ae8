"""Readers of change feeds for tests: strict about the wire, and independent of the client library."""

from __future__ import annotations

import contextlib
import json
import socket
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import urlencode

from tests.broker.running import Broker

Line = dict[str, Any]


class Feed:
    """A feed over a socket of its own: HTTP/1.1 with chunks, as they come; NDJSON."""

    def __init__(self, one: Broker, handle: str, receive_bytes: int | None = None, **parameters: Any) -> None:
        self._socket = socket.socket()
        if receive_bytes is not None:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        self._socket.settimeout(30.0)
        self._socket.connect(("127.0.0.1", one.port))
        path = f"/queries/{handle}/changes?{urlencode(parameters)}"
        self._socket.sendall(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
        self._file = self._socket.makefile("rb")
        self.status = 0
        self.headers: dict[str, str] = {}
        self._text = b""

    def begin(self) -> Feed:
        """Read the head of the reply, which must be 200."""
        self.status = int(self._file.readline().split()[1])
        while line := self._file.readline().strip():
            name, _, value = line.decode().partition(":")
            self.headers[name.lower()] = value.strip()
        assert self.status == 200
        return self

    def line(self) -> Line | None:
        """The next line; None where the reply ends as HTTP ends one. Raises EOFError where it is cut."""
        if not self.status:
            self.begin()
        while b"\n" not in self._text:
            size = self._file.readline()
            if not size.endswith(b"\r\n"):
                raise EOFError
            chunk = self._file.read(int(size, 16) + 2)
            if not chunk.endswith(b"\r\n"):
                raise EOFError
            if chunk == b"\r\n":
                assert not self._text
                return None
            self._text += chunk[:-2]
        text, _, self._text = self._text.partition(b"\n")
        found: Line = json.loads(text)
        return found

    def event(self) -> Line:
        """The next line that tells more than progress; empty where the reply ends."""
        while (line := self.line() or {}).get("type") == "progress":
            pass
        return line

    def lines(self) -> list[Line]:
        """All that come until the reply ends."""
        return list(iter(self.line, None))

    def until(self, now_ms: int) -> list[Line]:
        """All until one that has come so far."""
        found: list[Line] = []
        while not found or found[-1]["more"] or (found[-1]["now_ms"] or 0) < now_ms:
            line = self.line()
            assert line is not None
            assert line["type"] != "end", line
            found.append(line | {"more": line.get("more", False)})
        return found

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._file.close()
        self._socket.close()

    def __enter__(self) -> Feed:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def once(one: Broker, handle: str, since: str) -> list[Line]:
    """What there is after a position, without the first and the last line."""
    with Feed(one, handle, live="false", since=since) as feed:
        first, *lines, last = feed.lines()
    assert (first["type"], first["position"]) == ("progress", since)
    assert (last["type"], last["reason"]) == ("end", "caught_up")
    return lines


def told(lines: Iterable[Line]) -> list[Any]:
    """The changes of some lines, one after another."""
    return [change for line in lines for change in line.get("changes", ())]


def row(values: list[Any]) -> str:
    """A row as a key."""
    return json.dumps(values)


def folded(lines: Iterable[Line]) -> Iterator[tuple[Line, Counter[str]]]:
    """Each line that has a position, with the answer as it is there."""
    answer: Counter[str] = Counter()
    for line in lines:
        answer.update(row(values) for values in line.get("rows", ()))
        for weight, _, values in line.get("changes", ()):
            answer[row(values)] += weight
        if "position" in line:
            assert min(answer.values(), default=1) >= 0
            yield line, +answer


def events(text: str) -> list[dict[str, str]]:
    """Server-sent events, read as the standard says: fields by line, an empty line ends an event."""
    found: list[dict[str, str]] = []
    event: dict[str, str] = {}
    lines = text.split("\n")
    assert lines.pop() == ""
    for line in lines:
        if line:
            name, colon, value = line.partition(":")
            assert colon
            assert name in ("id", "event", "data", "retry")
            assert name not in event
            event[name] = value.removeprefix(" ")
        else:
            found.append(event)
            event = {}
    assert not event
    return found
