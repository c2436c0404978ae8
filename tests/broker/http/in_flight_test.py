"""Requests that are half sent, answers that are not read: each ends in time, and all of them hold little."""

from __future__ import annotations

import contextlib
import json
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.base import settings
from broker.http.bodies import _Cutter
from tests.broker.conftest import stream_sql
from tests.broker.http.in_flight import BULK, MIB, NDJSON, connected, metric
from tests.broker.running import Broker, broker
from tests.kafka import wait_until
from tureen.errors import LimitExceeded, SettingsError
from tureen.protocol import new_handle, query_id

CONNECTIONS = 120


@pytest.fixture(scope="module")
def strict(kafka: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A broker that waits for nobody longer than a second."""
    with broker(
        kafka,
        tmp_path_factory.mktemp("strict") / "data",
        f"strict-{new_handle()[:8]}",
        HTTP_CONNECTIONS_MAX=CONNECTIONS,
        FEEDS_MAX=100,
        REQUEST_HEAD_TIMEOUT_MS=1_000,
        REQUEST_BODY_TIMEOUT_MS=1_000,
        REQUEST_RATE_BYTES_MIN=4_096,
        REQUEST_BULK_BYTES_MAX=2 * MIB,
        REQUESTS_BYTES_MAX=3 * MIB,
    ) as one:
        yield one


def reply_of(caller: socket.socket) -> tuple[int, dict[str, str], bytes]:
    """Status, headers and body of what the broker answered before it closed the connection, or status 0."""
    caller.settimeout(30)
    data = b""
    with contextlib.suppress(ConnectionError):  # it was closed while something of ours was not read
        while piece := caller.recv(65_536):
            data += piece
    if not data:
        return 0, {}, b""
    head, _, body = data.partition(b"\r\n\r\n")
    status, *lines = head.decode().split("\r\n")
    return int(status.split()[1]), dict(line.lower().split(": ", 1) for line in lines), body


def refused(one: Broker, reason: str) -> float:
    return metric(one, f'tureen_http_refused_total{{reason="{reason}"}}')


def test_half_sent_heads_end_in_time(strict: Broker) -> None:
    before = refused(strict, "head")
    with ExitStack() as stack:
        silent, callers = connected(strict, stack), []
        for _ in range(CONNECTIONS - 11):
            callers.append(connected(strict, stack))
            callers[-1].sendall(b"GET /status HTTP/1.1\r\nHost: localhost\r\nX-Slow: ")
        assert strict.readiness()[0] == 200
        for caller in callers:
            status, headers, body = reply_of(caller)
            assert (status, json.loads(body)["code"]) == (408, "request_timeout")
            assert headers["connection"] == "close"
        assert silent.recv(100) == b""  # one that asked nothing is told nothing
    assert refused(strict, "head") == before + CONNECTIONS - 10
    wait_until(lambda: metric(strict, "tureen_http_connections") == 1, what="all of them are gone")


def test_a_head_that_drips_ends_in_time(strict: Broker) -> None:
    with ExitStack() as stack:
        caller = connected(strict, stack)
        caller.sendall(b"GET /status HTTP/1.1\r\nHost: localhost\r\nX-Slow: ")
        caller.setblocking(False)
        answered = b""

        def ended() -> bool:
            nonlocal answered
            with contextlib.suppress(BlockingIOError):
                answered += caller.recv(4_096)
            with contextlib.suppress(ConnectionError):
                caller.send(b"x")
            return bool(answered)

        wait_until(ended, what="the head is given up")
        assert answered.startswith(b"HTTP/1.1 408")


@pytest.mark.parametrize("path", ["/queries", "/sources", "/match"])
def test_half_sent_bodies_end_in_time(strict: Broker, path: str) -> None:
    with ExitStack() as stack:
        callers = []
        head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        for _ in range(20):
            callers.append(connected(strict, stack))
            callers[-1].sendall(f"{head}Content-Length: 1000\r\n\r\n{{".encode())
        for caller in callers:
            status, _, body = reply_of(caller)
            assert (status, json.loads(body)["code"]) == (408, "request_timeout")
            assert "request_body_timeout_ms" in json.loads(body)["hint"]


def test_a_body_that_comes_steadily_may_take_long(strict: Broker, name: str) -> None:
    """Three times the time-out, at twice the rate that is asked for; anew where this waited for a core."""
    strict.create(stream_sql(name))
    text = json.dumps({"sql": f"SELECT id FROM {name}"}).encode()
    body = text + b" " * 30_000

    def status_of_steady() -> int:
        with ExitStack() as stack:
            caller = connected(strict, stack)
            head = "POST /queries HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            caller.sendall(f"{head}Connection: close\r\nContent-Length: {len(body)}\r\n\r\n".encode())
            began, sent = time.monotonic(), 0

            def all_sent() -> bool:
                nonlocal sent
                due = min(len(body), int((time.monotonic() - began) * 2 * 4_096) + 1_000)
                caller.sendall(body[sent:due])
                sent = due
                return sent == len(body)

            with contextlib.suppress(ConnectionError):
                wait_until(all_sent, what="the body is sent")
            return reply_of(caller)[0]

    wait_until(lambda: status_of_steady() == 201, what="one that came steadily is taken")


def test_connections_are_bounded(strict: Broker) -> None:
    def all_refused() -> bool:
        """Whether each connection too many was; not where others were given up before the last was made."""
        wait_until(lambda: metric(strict, "tureen_http_connections") == 1, what="nobody else is connected")
        before = refused(strict, "connections")
        with ExitStack() as stack:
            callers = [connected(strict, stack) for _ in range(CONNECTIONS + 20)]
            told = [reply_of(caller) for caller in callers[CONNECTIONS - 1 :]]  # the test itself has one
        for status, headers, body in told:
            assert status in (0, 503)
            assert not status or headers["retry-after"] == "1"
            assert not status or json.loads(body)["code"] == "too_many_connections"
        return all(status for status, *_ in told) and refused(strict, "connections") == before + 21

    wait_until(all_refused, what="as many are refused as there are too many")
    wait_until(lambda: metric(strict, "tureen_http_connections") == 1, what="all of them are gone")


def test_bytes_in_flight_are_bounded(strict: Broker, name: str) -> None:
    strict.create(stream_sql(name))
    line = json.dumps({"id": 1, "v": 1, "ts": 1}).encode().ljust(20_000) + b"\n"
    head = f"POST /match?source={name} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-ndjson\r\n"
    body = line * 95
    begin = f"{head}Connection: close\r\nContent-Length: {len(body)}\r\n\r\n".encode()

    def refused_at_once() -> bool:
        """Three bodies whose ends do not come: they are too many together, if they come in time."""
        with ExitStack() as stack:
            callers = [connected(strict, stack) for _ in range(3)]
            for caller in callers:
                with contextlib.suppress(ConnectionError):
                    caller.sendall(begin + body[:-1])
            replies = [reply_of(caller) for caller in callers]
        busy = [(headers, reply) for status, headers, reply in replies if status == 503]
        for headers, reply in busy:
            assert headers["retry-after"] == "1"
            assert json.loads(reply)["code"] == "too_busy"
        return bool(busy)

    wait_until(refused_at_once, what="one of three is refused")
    wait_until(lambda: metric(strict, "tureen_http_requests_bytes") == 0, what="all of it is let go")
    assert (
        strict.http.post("/match", params={"source": name}, content=body, headers=NDJSON).status_code == 200
    )


def test_an_answer_that_is_not_taken_is_cut_off(strict: Broker) -> None:
    before = refused(strict, "answer")
    with ExitStack() as stack:
        caller = stack.enter_context(socket.socket())
        caller.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        caller.connect(("127.0.0.1", strict.port))
        caller.sendall(b"GET /docs/swagger-ui-bundle.js HTTP/1.1\r\nHost: localhost\r\n\r\n" * 8)
        wait_until(lambda: refused(strict, "answer") == before + 1, what="it is cut off")


def test_half_sent_bulk_bodies_hold_little(shared: Broker) -> None:
    """20 bodies of 16 MiB each: what came of them was worked off, and is not kept."""
    worker = shared.children()["broker.worker"]
    line = b"no registration".ljust(30_000) + b"\n"
    with ExitStack() as stack:
        callers = [connected(shared, stack) for _ in range(20)]
        before = worker.memory_info().rss
        for caller in callers:
            caller.sendall(f"{BULK}Content-Length: {60 * MIB}\r\n\r\n".encode())
        for _ in range(16):
            for caller in callers:
                caller.sendall(line * 35)
        grown = worker.memory_info().rss - before
        print(f"{320} MiB sent; {grown / MIB:.1f} MiB grown")
        assert grown < 120 * MIB
        held_max = 20 * 2 * MIB
        wait_until(lambda: metric(shared, "tureen_http_requests_bytes") < held_max, what="it is worked off")
        assert shared.readiness()[0] == 200
    wait_until(lambda: metric(shared, "tureen_http_requests_bytes") == 0, what="all of it is let go")


def test_a_bulk_body_that_breaks_off_leaves_no_query_that_nobody_knows(shared: Broker, name: str) -> None:
    shared.create(stream_sql(name))
    own = new_handle()
    lines = [{"sql": f"SELECT v FROM {name}", "handle": own}]  # first: of the last some may not be taken up
    lines += [{"sql": f"SELECT id FROM {name} WHERE id = {i}"} for i in range(30)]
    body = b"".join(json.dumps(line).encode().ljust(40_000) + b"\n" for line in lines)
    assert len(body) > MIB
    with ExitStack() as stack:
        caller = connected(shared, stack)
        caller.sendall(f"{BULK}Content-Length: {2 * len(body)}\r\n\r\n".encode() + body)
        wait_until(lambda: shared.state(own) == "RUNNING", what="what came is registered")
        wait_until(lambda: shared.source(name)["queries"] > 1, what="more of it is registered")
    wait_until(lambda: shared.source(name)["queries"] == 1, what="the others are taken back")
    assert shared.state(own) == "RUNNING"
    assert any(event.get("event") == "registrations_broken_off" for event in shared.events())
    assert query_id(own) in [one["query_id"] for one in shared.http.get("/queries").json()["queries"]]


def test_lines_before_the_limit_of_a_body_stand_and_the_rest_is_told(strict: Broker, name: str) -> None:
    strict.create(stream_sql(name))

    def pieces() -> Iterator[bytes]:
        for i in range(60):
            yield json.dumps({"sql": f"SELECT id FROM {name} WHERE id = {i}"}).encode().ljust(50_000) + b"\n"

    reply = strict.http.post("/queries", content=pieces(), headers=NDJSON | {"Connection": "close"})
    assert reply.status_code == 200
    *answers, last = map(json.loads, reply.text.splitlines())
    assert {answer["state"] for answer in answers} == {"RUNNING"}
    assert last["state"] == "ERROR"
    assert last["error"]["code"] == "limit_exceeded"
    assert strict.source(name)["queries"] == len(answers) > 0
    known = strict.http.post("/queries", content=b"".join(pieces()), headers=NDJSON)
    assert (known.status_code, known.json()["code"]) == (413, "limit_exceeded")


def test_a_line_that_is_too_long_spoils_no_other(shared: Broker, name: str) -> None:
    shared.create(stream_sql(name))
    line = json.dumps({"sql": f"SELECT id FROM {name}"}).encode()
    body = b"\n".join([line, line.ljust(3 * MIB), b"", line])
    reply = shared.http.post("/queries", content=body, headers=NDJSON)
    first, second, third = map(json.loads, reply.text.splitlines())
    assert (first["state"], third["state"]) == ("RUNNING", "RUNNING")
    assert (second["state"], second["error"]["code"]) == ("ERROR", "limit_exceeded")


@given(st.lists(st.text("ab \n", max_size=12), max_size=12))
def test_chunks_are_cut_into_the_lines_of_the_whole(chunks: list[str]) -> None:
    cutter = _Cutter(8)
    for chunk in chunks:
        cutter.feed(chunk.encode())
    cutter.end()
    expected = [line for line in "".join(chunks).split("\n") if line.strip() or len(line) > 8]
    got = cutter.take(len(cutter.lines))
    assert [isinstance(line, LimitExceeded) for line in got] == [len(line) > 8 for line in expected]
    assert [line for line in got if isinstance(line, bytes)] == [
        line.encode() for line in expected if len(line) <= 8
    ]
    sizes = [line.got for line in got if isinstance(line, LimitExceeded)]
    assert sizes == [len(line) for line in expected if len(line) > 8]


def test_bounds_fit_together() -> None:
    for given_, said in (
        ({"requests_bytes_max": 1024 * 1024}, "request_bulk_bytes_max"),
        ({"http_connections_max": 100}, "feeds_max"),
    ):
        with pytest.raises(SettingsError, match=said):
            settings.load(**given_)
