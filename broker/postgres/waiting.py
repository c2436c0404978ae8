"""For how long a client is waited for that sends a message, or reads an answer."""

from __future__ import annotations

import asyncio
from typing import Protocol

from broker.runtime.in_flight import InFlight, RequestTimeout, TooBusy
from tureen.errors import TureenError


class Waited(Protocol):
    """A connection."""

    @property
    def is_beginning(self) -> bool:
        """Whether its client is not let in yet."""

    def unread(self) -> int:
        """Bytes of an answer that the client has not taken."""

    def end(self, error: TureenError) -> None:
        """Tell why, where that can be told, and close."""

    def abort(self) -> None:
        """Close it, whatever is not written yet."""


class Waiting:
    """For how long a client is waited for; looked at by :class:`broker.runtime.in_flight.InFlight`."""

    def __init__(self, connection: Waited, in_flight: InFlight) -> None:
        self._connection = connection
        self._in_flight = in_flight
        self._part: str | None = None
        self._due_s = 0.0
        self._held = 0
        """Bytes of a message that is not whole."""
        self._unread = 0
        self._reader_due_s = 0.0

    def for_message(self, part: str, time_s: float) -> None:
        """The rest of something is to come in time."""
        self._part = part
        self._due_s = asyncio.get_running_loop().time() + time_s
        self._in_flight.waiting.add(self)

    def received(self, size: int) -> None:
        """Raises nothing; who sends more than there is room for is cut off."""
        self._held += size
        self._in_flight.bytes += size
        if self._part == "body":
            now_s = asyncio.get_running_loop().time()
            self._due_s = self._in_flight.patience.extended(self._due_s, now_s, size)
        if self._in_flight.bytes > self._in_flight.patience.bytes:
            self._in_flight.refused["bytes"] += 1
            self._connection.end(TooBusy(self._in_flight.patience.bytes))

    def waits_for(self, held: int) -> None:
        """So many bytes of a message that is not whole are there; 0: nothing is waited for."""
        self._in_flight.bytes += held - self._held
        self._held = held
        if self._connection.is_beginning and self._part == "head":
            return
        if not held:
            self._part = None
            if not self._unread:
                self._in_flight.waiting.discard(self)
        elif self._part is None:
            self.for_message("body", self._in_flight.patience.wait_s)

    def for_reader(self, unread: int) -> None:
        """An answer is to be taken in time."""
        self._unread = max(1, unread)
        self._reader_due_s = asyncio.get_running_loop().time() + self._in_flight.patience.wait_s
        self._in_flight.waiting.add(self)

    def reader_reads(self) -> None:
        """There is room again."""
        self._unread = 0
        if self._part is None:
            self._in_flight.waiting.discard(self)

    def stop(self) -> None:
        """It is over."""
        self._in_flight.bytes -= self._held
        self._held = self._unread = 0
        self._part = None
        self._in_flight.waiting.discard(self)

    def sweep(self, now_s: float, passed_s: float) -> None:
        """As :class:`broker.runtime.in_flight.Waiting` has it."""
        patience = self._in_flight.patience
        if self._unread:
            left = self._connection.unread()
            self._reader_due_s = patience.extended(self._reader_due_s, now_s, max(0, self._unread - left))
            self._unread = max(1, left)
            if now_s > self._reader_due_s:
                self._in_flight.refused["answer"] += 1
                self._connection.abort()
                return
        if self._part is not None and now_s > self._due_s:
            self._in_flight.refused[self._part] += 1
            self._connection.end(RequestTimeout(self._part))
