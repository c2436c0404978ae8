"""Reading a body of many registrations ahead of those that are carried out."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from starlette.requests import ClientDisconnect

from broker.base import logs
from broker.http.bodies import Part
from tureen.errors import LimitExceeded

READ_AHEAD_BYTES = 1024 * 1024
READ_AHEAD_LINES = 4_000
"""About how much of a body of many registrations waits, besides the parts that are worked off."""

log = logs.get()


class ReadAhead:
    """Parts of a body that were read and wait; last comes why it ended early, or None."""

    def __init__(self) -> None:
        self._queue: asyncio.Queue[Part | Exception | None] = asyncio.Queue()
        self._bytes = 0
        self._lines = 0
        self._room = asyncio.Event()
        self.is_whole = False
        """Nothing of the body is to come."""

    async def read(self, parts: AsyncIterator[Part]) -> None:
        """A body to its end, while there is room. Of one that breaks off what was not begun is dropped."""
        why: Exception | None = None
        try:
            async for part in parts:
                self._bytes += part.size
                self._lines += len(part.lines)
                self._queue.put_nowait(part)
                while self._bytes >= READ_AHEAD_BYTES or self._lines >= READ_AHEAD_LINES:
                    self._room.clear()
                    await self._room.wait()
            self.is_whole = True
        except LimitExceeded as broken:
            why = broken
        except (ClientDisconnect, asyncio.CancelledError) as gone:
            self.drop()
            why = ClientDisconnect() if isinstance(gone, asyncio.CancelledError) else gone
        except Exception as failed:
            log.error("registrations_unread", error=repr(failed), exc_info=failed)
            why = failed
        self._queue.put_nowait(why)

    def drop(self) -> None:
        """What was read and not begun is not wanted any more."""
        waiting = [self._queue.get_nowait() for _ in range(self._queue.qsize())]
        for one in waiting:
            if isinstance(one, Part):
                one.release()
            else:
                self._queue.put_nowait(one)

    async def get(self) -> Part | Exception | None:
        """The next part, or why there is none any more."""
        part = await self._queue.get()
        if isinstance(part, Part):
            self._bytes -= part.size
            self._lines -= len(part.lines)
            self._room.set()
        return part
