"""Pages that are open, as far as the broker can tell: what a browser asks for, by plain connections.

Each asks once for what the Overview asks for as it opens, then holds its two streams of events and reads
them. One more follows the answer of a query, as the view of a query does.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import httpx

STREAMS = ("/status/events?every_ms=1000", "/entities/events?queries=false&every_ms=1000")
ASKED = ("/me", "/history", "/entities?queries=false&limit=2000")
FRAMES_FIRST = 3
"""A page is open once each of its streams has had so many frames."""


class Pages:
    """So many pages. frames: that all of them had. cut: streams that broke off."""

    def __init__(self, url: str, count: int) -> None:
        self.frames = 0
        self.cut = 0
        self._url = url
        self._count = count
        self._per_stream: dict[tuple[int, str], int] = {}

    @property
    def are_open(self) -> bool:
        """Whether each stream of each page goes on."""
        there = len(self._per_stream) == self._count * len(STREAMS)
        return there and min(self._per_stream.values()) >= FRAMES_FIRST

    async def run(self) -> None:
        """Open them and read, until cancelled."""
        async with httpx.AsyncClient(base_url=self._url, timeout=120.0) as client:
            for _ in range(self._count):
                for path in ASKED:
                    (await client.get(path)).raise_for_status()
        await asyncio.gather(*(self._read(page, path) for page in range(self._count) for path in STREAMS))

    async def _read(self, page: int, path: str) -> None:
        try:
            async for _ in events(self._url, path):
                self.frames += 1
                self._per_stream[page, path] = self._per_stream.get((page, path), 0) + 1
        finally:
            self.cut += 1


async def events(url: str, path: str, handle: str | None = None) -> AsyncIterator[bytes]:
    """The data of server-sent events, as they come. Raises RuntimeError where they are refused."""
    address = urlsplit(url)
    reader, writer = await asyncio.open_connection(address.hostname, address.port)
    more = f"Tureen-Handle: {handle}\r\n" if handle else ""
    head = f"GET {path} HTTP/1.1\r\nHost: {address.netloc}\r\nAccept: text/event-stream\r\n{more}\r\n"
    writer.write(head.encode())
    try:
        answer = await reader.readuntil(b"\r\n\r\n")
        if not answer.startswith(b"HTTP/1.1 200"):
            raise RuntimeError(f"{path} was refused: {answer.decode()}")
        text = b""
        while size := int(await reader.readuntil(b"\r\n"), 16):
            text += (await reader.readexactly(size + 2))[:-2]
            *whole, text = text.split(b"\n\n")
            for one in whole:
                for line in one.splitlines():
                    if line.startswith(b"data:"):
                        yield line[5:]
    finally:
        writer.close()


@contextmanager
def opened(url: str, count: int) -> Iterator[Pages]:
    """Pages in a thread of their own; closed at the end."""
    pages, loop = Pages(url, count), asyncio.new_event_loop()
    task = loop.create_task(pages.run())

    def run() -> None:
        with contextlib.suppress(asyncio.CancelledError):
            loop.run_until_complete(task)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield pages
    finally:
        loop.call_soon_threadsafe(task.cancel)
        thread.join(10)


class Watched:
    """The changes of a query's answer, as a page that shows it gets them; ``await_value`` waits for one."""

    def __init__(self, url: str, query_id: str, handle: str) -> None:
        self._seen: set[int] = set()
        self._change = threading.Condition()
        self._thread = threading.Thread(
            target=lambda: asyncio.run(self._run(url, f"/queries/{query_id}/changes", handle)), daemon=True
        )
        self._thread.start()

    async def _run(self, url: str, path: str, handle: str) -> None:
        async for data in events(url, path, handle):
            told = json.loads(data)
            with self._change:
                self._seen.update(_integers(told))
                self._change.notify_all()

    def await_value(self, value: int, timeout_s: float) -> bool:
        """Whether a value came in time."""
        with self._change:
            return self._change.wait_for(lambda: value in self._seen, timeout_s)


def _integers(told: object) -> Iterator[int]:
    """All whole numbers within a JSON value."""
    if isinstance(told, dict):
        for one in told.values():
            yield from _integers(one)
    elif isinstance(told, list):
        for one in told:
            yield from _integers(one)
    elif isinstance(told, int):
        yield told
