"""What requests ask for keeps no shard waiting, whatever it takes; it has an end, and ends with its caller.

Conditions call a function of the test's own, which stands still while a file is there: whoever evaluates it
waits, be it the shard, so what another query's answers do meanwhile shows who does.
"""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from broker.base.settings import Settings
from broker.node.request_work import CallerGone, RequestWork, TooMuchWork, caller
from engine.model.interruption import may_go_on
from tests.broker.conftest import stream_sql
from tests.broker.running import FIRST_S, Broker, broker, unique_name
from tests.kafka import wait_until
from tureen.errors import LimitExceeded

BASE_MS = 1_700_000_000_000

FUNCTIONS = """
import pathlib
import time

import tureen

HERE = pathlib.Path(__file__).parent

@tureen.function(arguments=["BIGINT"], returns="BOOLEAN", deterministic=True)
def slow(value):
    time.sleep(0.25)
    return True

@tureen.function(arguments=["BIGINT"], returns="BOOLEAN", deterministic=True)
def gate(value):
    end = time.monotonic() + 60
    while (HERE / "closed").exists() and time.monotonic() < end:
        (HERE / "reached").touch()
        time.sleep(0.01)
    return True
"""


class Gate:
    """Where the function stands still."""

    def __init__(self, directory: Path) -> None:
        self._closed, self._reached = directory / "closed", directory / "reached"

    def close(self) -> None:
        self._reached.unlink(missing_ok=True)
        self._closed.touch()

    def open(self) -> None:
        self._closed.unlink(missing_ok=True)

    def is_reached(self) -> bool:
        return self._reached.exists()


class Gated:
    """A broker of one shard: the stream ``name`` has some rows and a query whose condition is the function,
    another has a query that tells whether the shard goes on.
    """

    def __init__(self, one: Broker, gate: Gate) -> None:
        self.broker, self.gate = one, gate
        self.name, self._aside = unique_name(), unique_name()
        for name in (self.name, self._aside):
            one.create(stream_sql(name) + " RETAIN 1 DAY")
        self.handle = self._register(f"SELECT id, v FROM {self.name} WHERE gate(id)", maintenance="none")
        self.other = self._register(f"SELECT id FROM {self._aside}")
        self._sent = 0
        one.send(self.name, ({"id": i, "v": i / 2, "ts": BASE_MS + i} for i in range(50)))
        wait_until(lambda: one.source(self.name)["rows"] >= 49, FIRST_S, "rows")
        self.goes_on()

    def _register(self, sql: str, **options: Any) -> str:
        reply = self.broker.http.post("/queries", json={"sql": sql, "options": options})
        assert reply.status_code in (200, 201, 202), reply.text
        handle = str(reply.json()["handle"])
        wait_until(lambda: self.broker.state(handle) == "RUNNING", what="it stands")
        return handle

    def goes_on(self) -> None:
        """The shard takes up rows, and shows them."""
        self._sent += 2
        rows = [{"id": i, "ts": BASE_MS + i} for i in range(self._sent - 2, self._sent)]
        self.broker.send(self._aside, rows)
        self.broker.await_rows(self.other, self._sent - 1)

    def ended(self, how: str) -> float:
        """How many pieces of work ended so."""
        return self._metric(f'tureen_request_work_total{{ended="{how}"}} ')

    def running(self) -> float:
        """How many there are now."""
        return self._metric("tureen_request_work_running ")

    def _metric(self, line: str) -> float:
        text = self.broker.http.get("/metrics").text
        return sum(float(one.removeprefix(line)) for one in text.splitlines() if one.startswith(line))


@pytest.fixture(scope="module")
def gated(kafka: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gated]:
    directory = tmp_path_factory.mktemp("gated")
    (directory / "gates.py").write_text(FUNCTIONS)
    settings = {"FUNCTIONS": "gates", "FUNCTIONS_PATH": str(directory), "SHARDS": 1}
    with broker(kafka, directory / "data", f"t{uuid.uuid4().hex[:12]}", **settings) as one:
        yield Gated(one, Gate(directory))


@pytest.fixture
def closed(gated: Gated) -> Iterator[Gated]:
    """With the gate closed; it is open after the test, passed or failed."""
    gated.gate.close()
    try:
        yield gated
    finally:
        gated.gate.open()


def _said(sql: str, path: str = "/statements") -> Ask:
    return lambda http, given: http.post(path, json={"sql": sql.format(given.name)})


def _of_query(path: str, **parameters: Any) -> Ask:
    return lambda http, given: http.get(f"/queries/{given.handle}/{path}", params=parameters)


Ask = Callable[[httpx.Client, Gated], httpx.Response]
ASKED: dict[str, Ask] = {
    "EXPLAIN": _said("EXPLAIN SELECT id FROM {} WHERE gate(id)"),
    "EXPLAIN ANALYZE": _said("EXPLAIN ANALYZE SELECT id, COUNT(*) FROM {} GROUP BY id HAVING gate(id)"),
    "check": _said("SELECT v FROM {} WHERE gate(id) AND v > 1", "/statements/check"),
    "plan": _of_query("plan"),
    "plan, analyzed": _of_query("plan", analyze=True),
    "proposals": _of_query("proposals"),
    "difference": _of_query("difference", **{"from": BASE_MS + 10, "to": BASE_MS + 20}),
    "snapshot": _of_query("snapshot"),
    "match": lambda http, given: http.post(
        "/match", json={"source": given.name, "record": {"id": 1, "ts": BASE_MS}}
    ),
    "trace": lambda http, given: http.get(
        "/trace", params={"source": given.name, "partition": 0, "offset": 5}
    ),
}


@pytest.mark.parametrize("asked", ASKED)
def test_a_shard_goes_on_while_a_request_is_worked_out(closed: Gated, asked: str) -> None:
    one = closed.broker
    with ThreadPoolExecutor(1) as pool, httpx.Client(base_url=one.url, timeout=60.0) as http:
        reply = pool.submit(ASKED[asked], http, closed)
        wait_until(lambda: closed.gate.is_reached() or reply.done(), what="the condition is evaluated")
        assert not reply.done(), reply.result().text
        closed.goes_on()
        assert asked == "check" or not reply.done()
        closed.gate.open()
        assert reply.result().status_code == 200, reply.result().text


def test_work_ends_with_its_caller(closed: Gated) -> None:
    gone, done = closed.ended("gone"), closed.ended("done")
    sql = f"EXPLAIN ANALYZE SELECT id, COUNT(*) FROM {closed.name} GROUP BY id HAVING gate(id)"
    body = json.dumps({"sql": sql}).encode()
    head = f"POST /statements HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n"
    with socket.create_connection(("127.0.0.1", closed.broker.port), timeout=30) as impatient:
        impatient.sendall(f"{head}Content-Type: application/json\r\n\r\n".encode() + body)
        wait_until(closed.gate.is_reached, what="the condition is evaluated")
    wait_until(lambda: closed.ended("gone") == gone + 1, what="it is known that nobody waits")
    assert closed.running() == 1
    closed.gate.open()
    wait_until(lambda: not closed.running(), what="it is called off")
    assert closed.ended("done") == done


def test_a_statement_that_takes_too_long_is_refused(name: str, tmp_path: Path, kafka: str) -> None:
    """Nothing else of the broker is."""
    (tmp_path / "gates.py").write_text(FUNCTIONS)
    limits: dict[str, object] = {"REQUEST_WORK_MS_MAX": 3_000, "ANALYZE_ROWS_MAX": 15, "SHARDS": 1}
    limits |= {"FUNCTIONS": "gates", "FUNCTIONS_PATH": tmp_path}
    with broker(kafka, tmp_path / "data", f"t{uuid.uuid4().hex[:12]}", **limits) as one:
        one.create(stream_sql(name) + " RETAIN 1 DAY")
        one.send(name, ({"id": i, "ts": BASE_MS + i} for i in range(20)))
        wait_until(lambda: one.source(name)["rows"] >= 19, FIRST_S, "rows")
        sql = f"EXPLAIN SELECT id FROM {name} WHERE slow(id) AND v > 1"
        refused = one.http.post("/statements", json={"sql": sql})
        assert (refused.status_code, refused.json()["code"]) == (413, "limit_exceeded")
        assert "request_work_ms_max is 3,000" in refused.json()["message"]
        assert "narrower windows" in refused.json()["hint"]
        rows = one.http.post("/statements", json={"sql": f"EXPLAIN ANALYZE SELECT id FROM {name}"})
        assert (rows.status_code, rows.json()["code"]) == (413, "limit_exceeded")
        assert "analyze_rows_max is 15, asked for 1" in rows.json()["message"]
        few = {"sql": f"EXPLAIN ANALYZE SELECT id FROM {name} [ROWS 10]"}
        # Where others have the cores, even that may take too long.
        wait_until(
            lambda: one.http.post("/statements", json=few).status_code == 200, what="few rows are taken"
        )


# --- the pool itself --------------------------------------------------------------------------------


def of_pool(threads: int = 1, waiting: int = 1, limit_ms: int = 60_000) -> RequestWork:
    return RequestWork("test", threads, waiting, "work_ms_max", limit_ms)


class Somebody:
    """A caller who goes when told to."""

    def __init__(self) -> None:
        self.watching: list[Callable[[], None]] = []

    def watch(self, on_gone: Callable[[], None]) -> None:
        self.watching.append(on_gone)

    def unwatch(self, on_gone: Callable[[], None]) -> None:
        if on_gone in self.watching:
            self.watching.remove(on_gone)

    def go(self) -> None:
        for on_gone in [*self.watching]:
            on_gone()


def endless(began: threading.Event) -> None:
    """Goes on until it is called off."""
    began.set()
    while True:
        may_go_on()


def test_work_is_called_off_when_its_time_is_over() -> None:
    work = of_pool(limit_ms=50)
    with pytest.raises(LimitExceeded) as over:
        asyncio.run(work.do(lambda: endless(threading.Event())))
    assert (over.value.limit, over.value.allowed) == ("work_ms_max", 50)
    assert work.counts == {"limit": 1}
    work.close()


def test_a_caller_who_goes_ends_what_is_at_work_and_what_waits() -> None:
    async def run() -> None:
        work, somebody, began = of_pool(), Somebody(), threading.Event()
        caller.set(somebody)
        asked = [asyncio.create_task(work.do(lambda: endless(began))) for _ in range(2)]
        await asyncio.to_thread(began.wait, 30)
        somebody.go()
        ends = await asyncio.gather(*asked, return_exceptions=True)
        assert [type(one) for one in ends] == [CallerGone] * 2
        assert somebody.watching == []
        assert await work.do(lambda: 7) == 7
        assert work.counts == {"gone": 2, "done": 1}
        work.close()

    asyncio.run(run())


def test_more_than_may_wait_is_refused_and_what_waits_too_long_is_too() -> None:
    async def run() -> None:
        work, began, over = of_pool(), threading.Event(), threading.Event()

        def held() -> None:
            began.set()
            over.wait(30)

        first = asyncio.create_task(work.do(held))
        await asyncio.to_thread(began.wait, 30)
        second = asyncio.create_task(work.do(lambda: None, limit_ms=50))
        await asyncio.sleep(0)
        with pytest.raises(TooMuchWork):
            await work.do(lambda: None)
        with pytest.raises(TooMuchWork):
            await second
        over.set()
        await first
        assert work.counts == {"busy": 2, "done": 1}
        work.close()

    asyncio.run(run())


def test_a_task_that_is_cancelled_ends_its_work() -> None:
    async def run() -> None:
        work, began = of_pool(), threading.Event()
        asked = asyncio.create_task(work.do(lambda: endless(began)))
        await asyncio.to_thread(began.wait, 30)
        asked.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asked
        assert await work.do(lambda: 7) == 7
        assert work.counts == {"gone": 1, "done": 1}
        work.close()

    asyncio.run(run())


def test_the_limits_are_compared_at_the_start() -> None:
    with pytest.raises(ValueError, match="request_work_ms_max=70000 is above answer_ms_max=60000"):
        Settings(service_id="t", request_work_ms_max=70_000)
