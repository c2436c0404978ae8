"""Bodies of very many lines: what is made of them is bounded, and ends when nobody waits for it."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack

import psutil

from broker.http.bodies import LINES_MAX
from broker.http.matching import RECORDS_MAX
from broker.http.writes import ANSWERS_BYTES_MAX
from tests.broker.conftest import stream_sql
from tests.broker.http.in_flight import BULK, MIB, NDJSON, connected, metric
from tests.broker.running import Broker
from tests.kafka import wait_until


@contextlib.contextmanager
def peak(process: psutil.Process) -> Iterator[list[int]]:
    """The most bytes that a process takes within, in a list of one."""
    most, ended = [process.memory_info().rss], threading.Event()

    def look() -> None:
        while not ended.wait(0.02):
            most[0] = max(most[0], process.memory_info().rss)

    looking = threading.Thread(target=look)
    looking.start()
    try:
        yield most
    finally:
        ended.set()
        looking.join()


def test_a_body_of_a_million_lines_takes_little_memory(shared: Broker) -> None:
    worker = shared.children()["broker.worker"]
    before = worker.memory_info().rss
    with peak(worker) as most:
        reply = shared.http.post("/queries", content=b"{\n" * 1_000_000, headers=NDJSON, timeout=300)
    print(f"{(most[0] - before) / MIB:.0f} MiB")
    assert most[0] - before < 200 * MIB
    *answers, last = reply.text.splitlines()
    assert len(answers) == LINES_MAX
    assert {json.loads(line)["error"]["code"] for line in answers} == {"bad_request"}
    assert "registration_lines_max" in json.loads(last)["error"]["message"]
    wait_until(lambda: metric(shared, "tureen_http_requests_bytes") == 0, what="all of it is let go")


def test_empty_lines_are_no_lines(shared: Broker, name: str) -> None:
    shared.create(stream_sql(name))
    line = json.dumps({"sql": f"SELECT id FROM {name}"}).encode()
    body = b"\n" * 3_000_000 + line + b"\n \n" * 500_000
    reply = shared.http.post("/queries", content=body, headers=NDJSON, timeout=300)
    (answer,) = map(json.loads, reply.text.splitlines())
    assert answer["state"] == "RUNNING"


def test_what_nobody_waits_for_is_not_begun(shared: Broker) -> None:
    """The client has sent all of its body, and goes."""
    body = b"{\n" * (LINES_MAX - 1)
    with ExitStack() as stack:
        caller = connected(shared, stack)
        caller.sendall(f"{BULK}Content-Length: {len(body)}\r\n\r\n".encode() + body)
    told = lambda: [one for one in shared.events() if one["event"] == "registrations_broken_off"]  # noqa: E731
    wait_until(told, 120.0, "the registrations end")
    assert told()[-1]["lines"] < LINES_MAX - 1


def test_answers_that_fill_their_room_are_given_out_while_the_body_comes(shared: Broker) -> None:
    line = b'{"%s": 1}\n' % (b"\x7f" * 300_000)  # answered by an error with five times its bytes
    with ExitStack() as stack:
        caller = connected(shared, stack)
        caller.sendall(f"{BULK}Transfer-Encoding: chunked\r\n\r\n".encode())
        got = bytearray()

        def read() -> None:
            with contextlib.suppress(OSError):
                while piece := caller.recv(1 << 20):
                    got.extend(piece)

        reading = threading.Thread(target=read)
        reading.start()
        count = 0
        while not got:
            assert count * len(line) < ANSWERS_BYTES_MAX, "answers wait until the body is whole"
            caller.sendall(b"%x\r\n%s\r\n" % (len(line), line))
            count += 1
        caller.sendall(b"0\r\n\r\n")
        wait_until(lambda: got.count(b'"bad_request"') == count, 120.0, "each line is answered")
        caller.shutdown(socket.SHUT_RDWR)
        reading.join()


def test_more_records_than_may_be_matched_are_not_cut_up(shared: Broker, name: str) -> None:
    shared.create(stream_sql(name))
    worker = shared.children()["broker.worker"]
    before = worker.memory_info().rss
    with peak(worker) as most:
        reply = shared.http.post(
            f"/match?source={name}", content=b"{\n" * (15 * MIB), headers=NDJSON, timeout=300
        )
    assert (reply.status_code, reply.json()["code"]) == (413, "limit_exceeded")
    assert most[0] - before < 300 * MIB
    for count in (RECORDS_MAX, RECORDS_MAX + 1):
        for end in (b"", b"\n"):
            body = b"\n".join([b"{}"] * count) + end
            reply = shared.http.post(f"/match?source={name}", content=body, headers=NDJSON)
            assert reply.status_code == (200 if count == RECORDS_MAX else 413)
