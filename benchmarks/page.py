"""The page: what a hundred open pages cost beside 100,000 queries, and how soon they show what happens.

A broker has `--queries` selections over a stream into which `--rate` rows a second flow. `cpu_share` is what
the worker takes of one core over `--seconds` with `--pages` pages open, minus what it takes without, in
percent; `alone_cpu_share` is the latter, the mean of before and after. `mb` is by how much its memory (RSS)
is larger with the pages, once they have been open for a while, less what it grows by rows in as long a time
without them. A page is what its browser asks for: what it loads at first, and the streams `/status/events`
and `/entities/events?queries=false`; `frames_per_s` is how many frames all pages got.

`update_ms` is the time from sending a record that changes an answer until the change has come by the stream
of changes that a page shows; `browser_update_ms` the same until it is in the document of a real Chromium.
`first_paint_ms` is until it paints, `figures_ms` until the Overview has its figures. Where there is
no Chromium these are left out, and the reason is printed.

Targets, with the defaults: cpu_share < 5, mb < 100, update_ms.p99 < 500.
"""

import argparse
import statistics
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import httpx
import numpy as np
import psutil

from benchmarks.page_browser import NoBrowser, await_text, browser, first_paint_ms, watching
from benchmarks.page_clients import Watched, opened
from benchmarks.report import Figure, Report
from benchmarks.served import create_stream, register, serving, worker
from benchmarks.shares import shares
from topics.producer import BatchProducer
from tureen.protocol import query_id

BATCH_S = 0.02
MARK = 1_000_000
"""Rows with this `a` are in the answer that pages watch."""
FIRST_ID = 5_000_000_000
OPEN_S = 180.0
UPDATE_S = 30.0
SETTLE_S = 8.0
REGISTERED_TOGETHER = 20_000
MB = 1e6


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options besides those that every benchmark has."""
    parser.add_argument("--queries", type=int, default=100_000, help="(default: %(default)s)")
    parser.add_argument("--pages", type=int, default=100, help="(default: %(default)s)")
    parser.add_argument("--rate", type=int, default=500, help="rows a second (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=20.0, help="of each measurement of shares")
    parser.add_argument("--updates", type=int, default=100, help="(default: %(default)s)")
    parser.add_argument("--no-browser", action="store_true", help="leave Chromium out")


def run(options: argparse.Namespace) -> Report:
    """Register, measure without pages, with them, and what is seen in them."""
    figures: dict[str, Figure] = {}
    with serving() as (client, kafka):
        create_stream(client, retain="5 SECONDS")
        texts = [_text(place) for place in range(options.queries)]
        for first in range(0, len(texts), REGISTERED_TOGETHER):
            register(client, texts[first : first + REGISTERED_TOGETHER])
        watched_sql = f"SELECT id FROM psoup [RANGE 10 SECONDS] WHERE a = {MARK}"
        (handle,) = register(client, [watched_sql])
        url, process = str(client.base_url).rstrip("/"), worker(client)
        with _flowing(kafka, options.rate, options.seed) as flow:
            _await_flow(client)
            time.sleep(SETTLE_S)
            alone, grown_mb, alone_mb = _measured(process, options.seconds)
            began_s = time.monotonic()
            with opened(url, options.pages) as pages:
                _await(lambda: pages.are_open, "the pages are open")
                time.sleep(SETTLE_S)
                before = pages.frames
                share, _, mb = _measured(process, options.seconds)
                by_rows_mb = grown_mb / options.seconds * (time.monotonic() - began_s)
                figures["frames_per_s"] = (pages.frames - before) / options.seconds
                if pages.cut:
                    raise RuntimeError(f"{pages.cut} streams of pages broke off")
            time.sleep(SETTLE_S)
            alone_after, *_ = _measured(process, options.seconds)
            alone = (alone + alone_after) / 2
            figures |= {
                "cpu_share": share - alone,
                "alone_cpu_share": alone,
                "mb": mb - alone_mb - by_rows_mb,
            }
            with opened(url, options.pages) as pages:
                _await(lambda: pages.are_open, "the pages are open")
                figures |= _updates(url, handle, flow, options)
    return Report(figures)


def _text(place: int) -> str:
    low = place % 997
    return (
        f"SELECT id, b FROM psoup [RANGE 1 SECONDS] WHERE a > {low} AND a < {low + 3} AND b > {place % 1_000}"
    )


def _updates(url: str, handle: str, flow: "Flow", options: argparse.Namespace) -> dict[str, Figure]:
    name = query_id(handle)
    watched = Watched(url, name, handle)
    flow.mark(first := flow.next_mark())
    if not watched.await_value(first, OPEN_S):
        raise RuntimeError("no change came")
    found = []
    for _ in range(options.updates):
        began_s = time.perf_counter()
        flow.mark(mark := flow.next_mark())
        if not watched.await_value(mark, UPDATE_S):
            raise RuntimeError("a change did not come")
        found.append((time.perf_counter() - began_s) * 1e3)
    figures = _quantiles("update_ms", found)
    if options.no_browser:
        return figures
    try:
        with browser() as chromium:
            painted = [first_paint_ms(chromium, url) for _ in range(3)]
            figures["first_paint_ms"] = statistics.median(one for one, _ in painted)
            figures["figures_ms"] = statistics.median(one for _, one in painted)
            page, seen = watching(chromium, url, name, handle), []
            for _ in range(options.updates):
                began_s = time.perf_counter()
                flow.mark(mark := flow.next_mark())
                await_text(page, str(mark))
                seen.append((time.perf_counter() - began_s) * 1e3)
            figures |= _quantiles("browser_update_ms", seen)
    except NoBrowser as why:
        print(f"first_paint_ms is not measured: {why}", file=sys.stderr)
    return figures


def _quantiles(name: str, found: list[float]) -> dict[str, Figure]:
    return {f"{name}.p50": float(np.quantile(found, 0.5)), f"{name}.p99": float(np.quantile(found, 0.99))}


class Flow:
    """Rows that are sent as time passes, and marked ones among them."""

    def __init__(self, kafka: str, rate: int, seed: int) -> None:
        self._producer = BatchProducer({"bootstrap.servers": kafka, "linger.ms": 0})
        self._rate = rate
        self._random = np.random.default_rng(seed)
        self._sent = 0
        self._marks = FIRST_ID
        self.stopping = threading.Event()

    def next_mark(self) -> int:
        self._marks += 1
        return self._marks

    def mark(self, id_: int) -> None:
        """Send a row of this id that the watched query wants, at once."""
        self._producer.send_many("psoup", [_row(id_, MARK, 0)])
        self._producer.flush()

    def run(self) -> None:
        """Send rows until told to stop."""
        each = max(1, round(self._rate * BATCH_S))
        while not self.stopping.wait(BATCH_S):
            values = self._random.integers(0, 1_000, (2, each)).tolist()
            rows = [_row(self._sent + at, a, b) for at, (a, b) in enumerate(zip(*values, strict=True))]
            self._producer.send_many("psoup", rows)
            self._sent += each
        self._producer.close()


def _row(id_: int, a: int, b: int) -> bytes:
    return b'{"id":%d,"a":%d,"b":%d,"c":0,"d":0,"ts":%d}' % (id_, a, b, time.time_ns() // 1_000_000)


@contextmanager
def _flowing(kafka: str, rate: int, seed: int) -> Iterator[Flow]:
    flow = Flow(kafka, rate, seed)
    thread = threading.Thread(target=flow.run, daemon=True)
    thread.start()
    try:
        yield flow
    finally:
        flow.stopping.set()
        thread.join(10)


def _measured(process: psutil.Process, seconds: float) -> tuple[float, float, float]:
    """Percent of a core over so many seconds, by how much the memory grew in them, and the memory at their
    end, in MB.
    """
    before = process.memory_info().rss / MB
    share = shares({"worker": process}, seconds)["worker"]
    after = process.memory_info().rss / MB
    return share, after - before, after


def _await_flow(client: httpx.Client) -> None:
    _await(lambda: client.get("/sources").json()["sources"][0]["rows"] > 0, "rows enter")


def _await(condition: Callable[[], bool], what: str) -> None:
    deadline_s = time.monotonic() + OPEN_S
    while time.monotonic() < deadline_s:
        if condition():
            return
        time.sleep(0.1)
    raise RuntimeError(f"{what}: not in {OPEN_S:.0f} s")
