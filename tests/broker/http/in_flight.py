"""Data and helpers that ``in_flight_test.py`` shares with other tests."""

from __future__ import annotations

import re
import socket
from contextlib import ExitStack

from tests.broker.running import Broker

MIB = 1024 * 1024

NDJSON = {"Content-Type": "application/x-ndjson"}

BULK = "POST /queries HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-ndjson\r\n"


def connected(one: Broker, stack: ExitStack) -> socket.socket:
    return stack.enter_context(socket.create_connection(("127.0.0.1", one.port), timeout=30))


def metric(one: Broker, name: str) -> float:
    found = re.search(rf"^{re.escape(name)} (\S+)$", one.http.get("/metrics").text, re.MULTILINE)
    assert found is not None, name
    return float(found[1])
