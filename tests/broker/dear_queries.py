"""Queries whose functions take long, are fatal, or do not end, over a stream with rows."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson

from tests.broker.running import Broker
from tests.kafka import wait_until
from tureen.protocol import query_id

BASE_MS = 1_700_000_000_000
COUNT = 5_000

FUNCTIONS = f"""
import os
import pathlib
import time

import tureen

OPEN = pathlib.Path(__file__).parent / "open"

@tureen.function(arguments=["BIGINT"], returns="BIGINT")
def slow(value):
    if value < {COUNT} and not OPEN.exists():
        time.sleep(0.05)
    return value

@tureen.function(arguments=["BIGINT"], returns="BIGINT")
def endless(value):
    while value == 7:
        pass
    return value

@tureen.function(arguments=["BIGINT"], returns="BIGINT")
def fatal(value):
    if value == 7 and not OPEN.exists():
        os._exit(3)
    return value
"""


def until(condition: Callable[[], object], what: str = "") -> None:
    """However busy the machine is."""
    wait_until(condition, 240.0, what)


def rows(count: int, start: int = 0) -> list[dict[str, object]]:
    return [{"id": i, "v": i, "ts": BASE_MS + i} for i in range(start, start + count)]


class Gate:
    """While it is closed each of the first rows takes 50 ms."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "open"

    def open(self) -> None:
        self._file.touch()

    def close(self) -> None:
        self._file.unlink(missing_ok=True)


def dear(name: str, more: int = 0) -> str:
    return f"SELECT id FROM {name} WHERE slow(id) >= {COUNT - 5 - more} EMIT CHANGES"


def register(one: Broker, sql: str) -> dict[str, Any]:
    """The answer to a registration that is not there at once."""
    reply = one.http.post("/queries", json={"sql": sql})
    assert reply.status_code == 202, reply.text
    answer: dict[str, Any] = reply.json()
    assert answer["state"] == "PENDING"
    return answer


def error(one: Broker, handle: str) -> dict[str, Any]:
    """Why a query does not run, by the list."""
    listed = one.http.get("/queries").json()["queries"]
    found = [each["error"] for each in listed if each["query_id"] == query_id(handle)]
    return (found[0] if found else None) or {}


def is_under_way(one: Broker, handle: str) -> bool:
    told = error(one, handle)
    return told.get("code") == "being_prepared" and 0 < told["facts"]["progress"] < 1


def worker(one: Broker) -> Any:
    return one.children()["broker.worker"]


def kill_worker(one: Broker) -> None:
    before = worker(one)
    before.send_signal(signal.SIGKILL)
    until(lambda: one.children().get("broker.worker", before).pid != before.pid)
    one.await_ready()


def folded(one: Broker, handle: str) -> dict[bytes, dict[str, Any]]:
    """What its result topic says that the answer is."""
    key, found = query_id(handle).encode(), {}
    for record in one.records(one.names.results):
        if key in record.key():
            found[record.key()] = record.value()
    return {key: orjson.loads(value) for key, value in found.items() if value is not None}


def others_go_on(one: Broker, name: str, start: int) -> None:
    """Others come and are told; more rows come."""
    other = one.register(f"SELECT MAX(id) AS m FROM {name} [RANGE 1 DAY] EMIT CHANGES")
    one.send(name, rows(10, start))
    until(lambda: one.rows(other) == [[start + 8]])
    until(lambda: [row["m"] for row in folded(one, other).values()] == [start + 8])
