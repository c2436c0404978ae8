"""Streams of events by themselves: frames made once, slow listeners, limits, ends; on real connections."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import pytest
import uvicorn
from starlette.types import Receive, Scope, Send

from broker.base.counts import EventCounts
from broker.http.connection import Connection
from broker.http.event_hub import CHANNELS_MAX, EventHub
from broker.runtime.in_flight import InFlight, Patience
from tests.kafka import wait_until
from tureen.errors import BrokerUnavailable, TooManyFeeds

EVERY_S = 0.02


class Ticks:
    """Frames with numbers, of a size; over after some, or broken."""

    def __init__(self, size: int = 0, last: int | None = None, fails: bool = False) -> None:
        self.is_over = False
        self.made = 0
        self._size = size
        self._last = last
        self._fails = fails

    async def frame(self) -> bytes | None:
        self.made += 1
        if self.made == 1:
            return None
        if self._fails:
            raise ValueError("a defect")
        self.is_over = self.made == self._last
        return json.dumps({"tick": self.made, "pad": "x" * self._size}).encode()


class Service:
    """A hub and what it makes frames from, served. frames: all that were begun."""

    def __init__(self, listeners_max: int = 100, write_timeout_s: float = 10.0) -> None:
        self.stopping = asyncio.Event()
        self.counts = EventCounts()
        self.hub = EventHub(self.stopping, listeners_max, write_timeout_s, self.counts)
        self.make: Callable[[], Ticks] = Ticks
        self.frames: list[Ticks] = []
        self.at_once = False

    def begin(self) -> Ticks:
        self.frames.append(self.make())
        return self.frames[-1]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        key, sse = scope["path"], scope["query_string"] == b"sse"
        stream = self.hub.stream(key, "tick", EVERY_S, sse, self.begin, at_once=self.at_once)
        await stream(scope, receive, send)

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[tuple[str, int]]:
        patience = Patience(connections=200, bytes=1_000, head_s=10.0, wait_s=10.0, rate=1_000)
        listening = socket.create_server(("127.0.0.1", 0))
        connection: Any = partial(Connection, in_flight=InFlight(patience))
        config = uvicorn.Config(self, http=connection, log_config=None, lifespan="off")
        server = uvicorn.Server(config)
        task = asyncio.ensure_future(server._serve([listening]))
        try:
            yield listening.getsockname()
        finally:
            self.stopping.set()
            server.should_exit = True
            await asyncio.wait_for(task, 20)


class Reader:
    """A client that reads events, or not."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def at(cls, address: tuple[str, int], path: str = "/a") -> Reader:
        reader, writer = await asyncio.open_connection(*address, limit=1 << 16)
        found = writer.get_extra_info("socket")
        found.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65_536)
        writer.write(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200")
        return cls(reader, writer)

    async def text(self) -> str:
        """The next chunk; empty at an end in order. Raises IncompleteReadError where it was cut off."""
        async with asyncio.timeout(20):
            size = int(await self._reader.readuntil(b"\r\n"), 16)
            data = await self._reader.readexactly(size + 2)
        return data[:-2].decode()

    async def event(self) -> dict[str, Any]:
        event: dict[str, Any] = json.loads(await self.text())
        return event

    def close(self) -> None:
        self._writer.close()


async def holds(condition: Callable[[], bool], what: str) -> None:
    await asyncio.to_thread(wait_until, condition, 20.0, what)


def test_frames_are_made_once_for_all_who_listen_and_no_more_after_the_last() -> None:
    async def run() -> None:
        service = Service()
        async with service.serving() as address:
            readers = [await Reader.at(address) for _ in range(5)]
            seen = [[(await one.event())["tick"] for _ in range(4)] for one in readers]
            assert len(service.frames) == 1
            assert all(ticks == list(range(ticks[0], ticks[0] + 4)) for ticks in seen)
            last = max(ticks[-1] for ticks in seen)
            for one, ticks in zip(
                readers, seen, strict=True
            ):  # a busy machine gives some their first one later
                while ticks[-1] < last:
                    ticks.append((await one.event())["tick"])
            assert {ticks[-1] for ticks in seen} == {last}
            as_sse = await Reader.at(address, "/a?sse")
            assert (await as_sse.text()).startswith('event: tick\ndata: {"tick"')
            assert len(service.frames) == 1
            for one in (*readers, as_sse):
                one.close()
            await holds(lambda: service.counts.listeners == 0, "all have left")
            made = service.frames[0].made
            again = await Reader.at(address)
            await again.event()
            assert len(service.frames) == 2
            assert service.frames[0].made == made
            again.close()

    asyncio.run(run())


def test_a_slow_listener_misses_frames_and_is_told_how_many() -> None:
    async def run() -> None:
        service = Service()
        service.make = lambda: Ticks(size=50_000)
        async with service.serving() as address:
            slow = await Reader.at(address)
            first = await slow.event()
            ticks = service.frames[0]
            await holds(lambda: ticks.made > first["tick"] + 60, "many frames were made")
            numbers, skipped = [first["tick"]], 0
            while not skipped:
                event = await slow.event()
                skipped = event.get("skipped", 0)
                assert event["tick"] == numbers[-1] + 1 + skipped
                numbers.append(event["tick"])
            assert service.counts.skipped >= skipped
            slow.close()

    asyncio.run(run())


def test_a_listener_that_takes_nothing_is_cut_off() -> None:
    async def run() -> None:
        service = Service(write_timeout_s=0.2)
        service.make = lambda: Ticks(size=400_000)
        async with service.serving() as address:
            stuck = await Reader.at(address)
            await holds(lambda: service.counts.cut == 1, "it was cut off")
            await holds(lambda: service.counts.listeners == 0, "nobody listens")
            stuck.close()

    asyncio.run(run())


def test_kinds_and_listeners_are_limited() -> None:
    async def run() -> None:
        service = Service(listeners_max=CHANNELS_MAX + 1)
        async with service.serving() as address:
            readers = [await Reader.at(address, f"/{number}") for number in range(CHANNELS_MAX)]
            await holds(lambda: service.counts.listeners == CHANNELS_MAX, "all listen")
            with pytest.raises(TooManyFeeds, match="kinds of streams") as refused:
                service.hub.admit("/another")
            assert refused.value.hint is not None
            service.hub.admit("/3")
            readers.append(await Reader.at(address, "/3"))
            await holds(lambda: service.counts.listeners == CHANNELS_MAX + 1, "one more listens")
            with pytest.raises(TooManyFeeds) as full:
                service.hub.admit("/3")
            assert "event_listeners_max" in str(full.value.hint)
            for one in readers:
                one.close()

    asyncio.run(run())


def test_streams_end_in_order_when_the_worker_stops_or_nothing_comes_any_more() -> None:
    async def run() -> None:
        service = Service()
        async with service.serving() as address:
            reader, over = await Reader.at(address), Ticks(last=3)
            await reader.event()
            service.make = lambda: over
            short = await Reader.at(address, "/short")
            assert [(await short.event())["tick"] for _ in range(2)] == [2, 3]
            assert await short.text() == ""
            service.stopping.set()
            while await reader.text():
                pass
            with pytest.raises(BrokerUnavailable):
                service.hub.admit("/a")

    asyncio.run(run())


def test_a_stream_whose_frames_fail_is_cut_off_and_begins_afresh() -> None:
    async def run() -> None:
        service = Service()
        service.make = partial(Ticks, fails=True)
        async with service.serving() as address:
            reader = await Reader.at(address)
            with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
                await reader.text()
            service.make = Ticks
            again = await Reader.at(address)
            assert (await again.event())["tick"] == 2
            again.close()

    asyncio.run(run())


def test_one_who_comes_later_gets_the_last_frame_at_once_where_frames_stand_for_themselves() -> None:
    async def run() -> None:
        service = Service()
        service.at_once = True
        service.make = lambda: Ticks(last=3)
        async with service.serving() as address:
            first = await Reader.at(address)
            assert (await first.event())["tick"] == 2
            second = await Reader.at(address)
            assert (await second.event())["tick"] >= 2
            first.close()
            second.close()

    asyncio.run(run())
