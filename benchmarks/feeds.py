"""Open change feeds: what ten thousand that lie still cost, and how soon one that does not hears of a change.

A whole broker, with Kafka on the same cores: a stream, 10,000 queries of one selection each, and a feed for
each query, all over sockets of this process. First it is measured how much the worker process grows (RSS)
by the feeds and by following their queries, then how much of a core it takes while nothing happens, while
records come that change no answer, and then records that change one answer each: the time from the record
handed to Kafka to the line at the feed, through decoding, matching, the transaction and HTTP.

Figures: `mb_per_10000`, of 1e6 bytes, the growth of the worker for 10,000 feeds; `opened_per_s`;
`idle_cpu`, the share of a core that the worker takes with the feeds above what it takes without them (their
progress lines, one each in ten seconds); `passing_cpu`, the same while 1,000 records a second pass that
concern no feed; `line_ms.p50`, `line_ms.p99`.
"""

import argparse
import json
import resource
import select
import socket
import statistics
import sys
import time
from collections.abc import Callable

import httpx
import numpy as np
import psutil

from benchmarks.report import Figure, Report
from benchmarks.served import BEGIN_MS, serving, worker
from topics.producer import BatchProducer

AT_ONCE = 100
QUIET_S = 2.0
SPARE_FILES = 200
DEADLINE_S = 120.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options besides those that every benchmark has."""
    parser.add_argument("--feeds", type=int, default=10_000, help="how many are open (default: %(default)s)")
    parser.add_argument("--lines", type=int, default=200, help="that are timed (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=20.0, help="of rest (default: %(default)s)")


class Readers:
    """Sockets with a feed each. What comes is read and thrown away, but for lines with changes."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._poll = select.epoll()
        self._sockets: dict[int, socket.socket] = {}
        self.came: list[bytes] = []

    def open(self, handles: list[str]) -> None:
        """Open feeds, and wait until each has told its answer."""
        opened = []
        for handle in handles:
            one = socket.create_connection(("127.0.0.1", self._port))
            one.sendall(f"GET /queries/{handle}/changes HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
            opened.append(one)
        for one in opened:
            text = b""
            while b'"more":false}\n' not in text:
                text += (part := one.recv(65_536))
                if not part or b"200 OK" not in text[:20]:
                    raise SystemExit(f"a feed was refused: {text[:300]!r}")
            one.setblocking(False)
            self._sockets[one.fileno()] = one
            self._poll.register(one, select.EPOLLIN)

    def read(self, until: Callable[[], bool]) -> None:
        """Read whatever comes until it is enough."""
        while not until():
            for number, _ in self._poll.poll(0.01):
                part = self._sockets[number].recv(65_536)
                if not part:
                    raise SystemExit("a feed was cut")
                if b'"type":"changes"' in part:
                    self.came.append(part)

    def close(self) -> None:
        for one in self._sockets.values():
            one.close()
        self._poll.close()


def run(options: argparse.Namespace) -> Report:
    """Open, rest, measure."""
    _allow_files(options.feeds)
    settings = {"TUREEN_FEEDS_MAX": str(options.feeds), "TUREEN_SHARDS": "4"}
    with serving(**settings) as (client, kafka):
        readers = Readers(client.base_url.port or 0)
        producer = BatchProducer({"bootstrap.servers": kafka, "linger.ms": "0"})
        try:
            return _measured(client, producer, readers, options)
        finally:
            readers.close()
            producer.close()


def _measured(
    client: httpx.Client, producer: BatchProducer, readers: Readers, options: argparse.Namespace
) -> Report:
    sql = "CREATE STREAM alerts (user_id BIGINT, amount DOUBLE, ts TIMESTAMP) WITH (timestamp = 'ts')"
    client.post("/sources", json={"sql": sql}).raise_for_status()
    handles = _register(client, options.feeds)
    process, sent = worker(client), Sent(producer)
    for _ in range(200):  # kernels are loaded, and what grows with the first steps has grown
        sent.send(-1)
        time.sleep(0.005)
    _ask(client, handles[0])

    def pass_by() -> None:
        sent.send(-1, 20)

    alone = _cpu(process, readers, options.seconds / 2)
    passing_alone = _cpu(process, readers, options.seconds / 2, pass_by)
    before = process.memory_info().rss
    began_s = time.perf_counter()
    for first in range(0, len(handles), AT_ONCE):
        readers.open(handles[first : first + AT_ONCE])
    opened = len(handles) / (time.perf_counter() - began_s)
    idle = _cpu(process, readers, options.seconds)
    grown = process.memory_info().rss - before
    passing = _cpu(process, readers, options.seconds / 2, pass_by)
    rng = np.random.default_rng(options.seed)
    waits_ms = [_line_ms(readers, sent, int(user)) for user in rng.integers(0, options.feeds, options.lines)]
    print(f"the worker grew from {before / 1e6:,.0f} MB by {grown / 1e6:,.0f} MB", file=sys.stderr)
    figures: dict[str, Figure] = {
        "mb_per_10000": grown / 1e6 * 10_000 / options.feeds,
        "opened_per_s": opened,
        "idle_cpu": idle - alone,
        "passing_cpu": passing - passing_alone,
        "line_ms.p50": statistics.median(waits_ms),
        "line_ms.p99": float(np.percentile(waits_ms, 99)),
    }
    return Report(figures)


class Sent:
    """Records of users, a millisecond after another."""

    def __init__(self, producer: BatchProducer) -> None:
        self._producer = producer
        self._number = 0

    def send(self, user: int, count: int = 1) -> None:
        lines = [
            b'{"user_id":%d,"amount":5,"ts":%d}' % (user, BEGIN_MS + self._number + i) for i in range(count)
        ]
        self._number += count
        self._producer.send_many("alerts", lines)
        self._producer.flush()


def _register(client: httpx.Client, count: int) -> list[str]:
    sql = "SELECT user_id, amount, ts FROM alerts [RANGE 1 HOUR] WHERE amount > 1 AND user_id = "
    body = "\n".join(json.dumps({"sql": f"{sql}{user}"}) for user in range(count))
    reply = client.post("/queries", content=body, headers={"Content-Type": "application/x-ndjson"})
    found = [json.loads(line) for line in reply.text.splitlines()]
    deadline_s = time.monotonic() + DEADLINE_S
    while (standing := client.get("/status").json()["queries"]["RUNNING"]) != count:
        if time.monotonic() > deadline_s:
            raise SystemExit(f"only {standing:,} of {count:,} queries stand after {DEADLINE_S:.0f} s")
        time.sleep(0.1)
    return [one["handle"] for one in found]


def _ask(client: httpx.Client, handle: str) -> None:
    """One feed before the rest, so that what it loads is loaded."""
    client.get(f"/queries/{handle}/changes", params={"live": "false"}).raise_for_status()


def _cpu(
    process: psutil.Process, readers: Readers, seconds: float, work: Callable[[], None] | None = None
) -> float:
    """The share of a core that a process takes in so many seconds. work: done fifty times a second."""
    deadline_s = time.monotonic() + QUIET_S
    readers.read(lambda: time.monotonic() > deadline_s)
    began, began_s = sum(process.cpu_times()[:2]), time.monotonic()
    turns = 0
    while (passed_s := time.monotonic() - began_s) < seconds:
        if work is not None and passed_s * 50 > turns:
            work()
            turns += 1
        until_s = time.monotonic() + 0.01
        readers.read(lambda until_s=until_s: time.monotonic() > until_s)  # type: ignore[misc]
    return (sum(process.cpu_times()[:2]) - began) / (time.monotonic() - began_s)


def _line_ms(readers: Readers, sent: Sent, user: int) -> float:
    """From a record handed to Kafka to the line at its feed. The one behind it moves the watermark."""
    readers.came.clear()
    began_s = time.perf_counter()
    sent.send(user)
    sent.send(-1)
    deadline_s = time.monotonic() + DEADLINE_S
    readers.read(lambda: bool(readers.came) or time.monotonic() > deadline_s)
    assert b"[%d," % user in readers.came[0]
    return (time.perf_counter() - began_s) * 1_000


def _allow_files(feeds: int) -> None:
    """A socket for each feed, here and in the broker, which begins with the limits of this process."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < feeds + SPARE_FILES:
        raise SystemExit(f"only {hard} files may be open: raise the hard limit (ulimit -Hn) or take --feeds")
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
