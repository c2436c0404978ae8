"""The open loop counts what requests wait for; records are fed at their rate."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from benchmarks.open_loop import Answered, Load, ask

REQUEST = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"


@contextmanager
def answering(stall_after: int, stall_s: float, status: bytes = b"200 OK") -> Iterator[int]:
    """A server that stands still once, after so many requests; its port."""
    loop = asyncio.new_event_loop()
    asked = 0
    stalled = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal asked
        while await reader.readline():
            while (await reader.readline()).strip():
                pass
            asked += 1
            if asked == stall_after:
                await asyncio.sleep(stall_s)
                stalled.set()
            elif asked > stall_after:
                await stalled.wait()
            writer.write(b"HTTP/1.1 " + status + b"\r\nContent-Length: 5\r\n\r\nhe")
            await asyncio.sleep(0)
            writer.write(b"llo")
        writer.close()

    server = loop.run_until_complete(asyncio.start_server(serve, "127.0.0.1", 0))
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        for task in asyncio.all_tasks(loop):
            task.cancel()
        server.close()
        loop.run_until_complete(asyncio.sleep(0))
        loop.close()


def test_a_stall_delays_every_request_that_was_due_meanwhile() -> None:
    load = Load([REQUEST] * 60, np.arange(60) * 0.005)
    with answering(stall_after=10, stall_s=0.2) as port:
        answered = ask(port, load, connections=2)
    assert (answered.unanswered, answered.refused, len(answered.delay_s)) == (0, 0, 60)
    assert answered.sizes.tolist() == [5] * 60
    # Due every 5 ms, those behind the stall waited 200 ms, 195 ms, ..., though only two could be sent.
    assert (answered.delay_s > 0.05).sum() >= 25
    assert answered.ms(100) >= 195


def test_a_request_on_a_connection_that_is_just_being_closed_is_made_again() -> None:
    asked = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal asked
        await reader.readuntil(b"\r\n\r\n")
        asked += 1
        if asked % 2 == 0:
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        writer.close()

    async def served() -> Answered:
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        load = Load([REQUEST] * 3, np.zeros(3))
        return await asyncio.to_thread(ask, port, load, 3)

    answered = asyncio.run(served())
    assert (answered.unanswered, len(answered.delay_s), asked) == (0, 3, 6)


def test_refusals_are_counted() -> None:
    with answering(1_000, 0.0, b"409 Conflict") as port:
        answered = ask(port, Load([REQUEST] * 3, np.zeros(3)), connections=1)
    assert answered.refused == 3


def test_arrivals_come_at_their_rate() -> None:
    load = Load.steady([REQUEST] * 20_000, 1_000.0, np.random.default_rng(1))
    assert 19 < load.due_s[-1] < 21
    assert (np.diff(load.due_s) >= 0).all()
