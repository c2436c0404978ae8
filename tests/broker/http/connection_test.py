"""Connections by themselves, on the event loop that the broker has."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from functools import partial

import uvicorn
import uvloop
from starlette.types import Receive, Scope, Send

from broker.http.connection import Connection
from broker.runtime.in_flight import InFlight, Patience

KEPT_S = 1
REQUEST = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"


async def say_ok(scope: Scope, receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
    await send({"type": "http.response.body"})


def test_a_request_that_came_while_the_event_loop_was_busy_is_answered_on_an_idle_connection() -> None:
    patience = Patience(connections=10, bytes=1_000, head_s=10.0, wait_s=10.0, rate=1_000)
    busy, over = threading.Event(), threading.Event()

    def take_long(scope: Scope) -> None:
        if scope["path"] == "/long":
            busy.set()
            over.wait(10)

    connection = partial(Connection, in_flight=InFlight(patience), at_once=take_long)
    listening = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(
        uvicorn.Config(say_ok, http=connection, log_config=None, lifespan="off", timeout_keep_alive=KEPT_S)
    )

    def serve() -> None:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(server.serve([listening]))

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        address = listening.getsockname()
        with (
            socket.create_connection(address, timeout=10) as caller,
            socket.create_connection(address, timeout=10) as other,
        ):
            caller.sendall(REQUEST)
            assert caller.recv(1_000).startswith(b"HTTP/1.1 200")
            idle_s = time.monotonic()
            other.sendall(REQUEST.replace(b"/ ", b"/long "))
            busy.wait(10)
            caller.sendall(REQUEST)
            time.sleep(max(0.0, idle_s + KEPT_S + 0.2 - time.monotonic()))
            over.set()
            assert caller.recv(1_000).startswith(b"HTTP/1.1 200")
            assert caller.recv(1_000) == b""  # closed once it is idle
    finally:
        server.should_exit = True
        thread.join(10)
