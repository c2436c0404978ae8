"""Bodies of lines, taken up as they come: a part is worked off before more of the body is read."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.types import Receive

from broker.http.connection import Connection, connection_of
from tureen.errors import LimitExceeded

PART_LINES = 500
PART_BYTES = 1024 * 1024
LINES_MAX = 200_000
"""Lines of a body; empty ones do not count."""

Line = bytes | LimitExceeded
"""A line, or why it is refused unread."""


@dataclass(frozen=True, slots=True)
class Part:
    """Lines of a body. size: bytes that were read for them; they count as in memory until ``release``."""

    lines: list[Line]
    size: int
    connection: Connection

    def release(self) -> None:
        """The lines are worked off."""
        self.connection.release(self.size)


async def parts(request: Request, line_bytes_max: int) -> AsyncIterator[Part]:
    """The lines of a body, in order, without empty ones, at most PART_LINES or about PART_BYTES at a time.

    The client is read further when the next part is asked for. A line of more than ``line_bytes_max`` is
    refused without being kept. Of a body with more than LINES_MAX lines the others are read and dropped.

    Raises LimitExceeded where the body is too long, ClientDisconnect where it breaks off; what was given out
    before that stays given.
    """
    connection = connection_of(request.scope)
    cutter = _Cutter(line_bytes_max)
    taken, left = 0, LINES_MAX
    async for chunk in request.stream():
        if len(cutter.lines) > left:
            connection.release(len(chunk))
            continue
        taken += len(chunk)
        cutter.feed(chunk)
        while left and (len(cutter.lines) >= PART_LINES or (cutter.lines and taken >= PART_BYTES)):
            lines = cutter.take(min(PART_LINES, left))
            left -= len(lines)
            yield Part(lines, taken, connection)
            taken = 0
        if not cutter.lines:
            connection.release(taken - cutter.kept)
            taken = cutter.kept
    cutter.end()
    while left and cutter.lines:
        lines = cutter.take(min(PART_LINES, left))
        left -= len(lines)
        yield Part(lines, taken, connection)
        taken = 0
    if cutter.lines:
        raise LimitExceeded("registration_lines_max", LINES_MAX, hint="send them in several bodies")


class LineAnswers(StreamingResponse):
    """Lines that are given out while a body may still be read: whether the client has gone is heard from its
    connection, not from the body.
    """

    def __init__(self, lines: AsyncIterator[bytes], connection: Connection, media_type: str) -> None:
        super().__init__(lines, media_type=media_type)
        self._connection = connection

    async def listen_for_disconnect(self, receive: Receive) -> None:
        """Return when the client has gone."""
        gone = asyncio.Event()
        self._connection.caller.watch(gone.set)
        try:
            await gone.wait()
        finally:
            self._connection.caller.unwatch(gone.set)


class _Cutter:
    """Cuts chunks into lines."""

    def __init__(self, line_bytes_max: int) -> None:
        self.lines: list[Line] = []
        self._max = line_bytes_max
        self._rest = bytearray()
        self._passed_over = 0
        """Bytes of a line that is too long, which are not kept; 0: there is none."""

    def feed(self, chunk: bytes) -> None:
        first, *whole = chunk.split(b"\n")
        self._add(first)
        if not whole:
            return
        self._finish()
        rest = whole.pop()
        for piece in whole:
            if piece.strip() or len(piece) > self._max:  # there may be millions of empty ones
                self._add(piece)
                self._finish()
        self._add(rest)

    @property
    def kept(self) -> int:
        """Bytes of the line that is not whole yet."""
        return len(self._rest)

    def end(self) -> None:
        """The body is over; its last line may have no end."""
        self._finish()

    def take(self, count: int) -> list[Line]:
        taken, self.lines = self.lines[:count], self.lines[count:]
        return taken

    def _add(self, piece: bytes) -> None:
        if self._passed_over or len(self._rest) + len(piece) > self._max:
            self._passed_over += len(self._rest) + len(piece)
            self._rest.clear()
        else:
            self._rest += piece

    def _finish(self) -> None:
        if self._passed_over:
            self.lines.append(LimitExceeded("request_bytes_max", self._max, self._passed_over))
        elif self._rest.strip():
            self.lines.append(bytes(self._rest))
        self._rest.clear()
        self._passed_over = 0
