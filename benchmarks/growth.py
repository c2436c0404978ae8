"""What a step costs as the engine around it grows: nothing should grow with what a step does not touch.

One stream `s` has ten kept queries and one that is followed. A step brings `--rows` rows to it; then the view
is taken, as a shard does. Beside that one thing at a time grows, ten by ten: `streams` (each with a kept and
a followed query), `queries` kept over another stream (ten times as many), `followed` queries of as many
shapes over another stream, `joins` of another stream with as many others, `views` over another stream,
`retained` rows of `s` itself (a thousand times as many, all but the last behind its windows), `strings`
(a hundred times as many rows, each with a new one, in a column that no query reads), `paused` queries of `s`.

Calls are those of Python functions and of built-in ones in a step, which do not depend on the machine; time
is the median of `--steps` steps, of the processor.

Figures: `calls.<thing>.n<size>`, `ms.<thing>.n<size>`, and `exponent.<thing>`: by which power of the size the
calls of a step grow between the smallest and the largest, 0 where they do not; `time_exponent.<thing>` is the
same of the time. The baseline of each is its own smallest size.
"""

import argparse
import math
import sys
import time
from collections.abc import Callable
from statistics import median

import numpy as np
import pyarrow as pa

from benchmarks.report import Figure, Report
from engine.engine import Engine
from engine.model.batch import BATCH_ROWS_MAX, Batch
from engine.model.source import Schema, Stream
from engine.model.step import Position, Register, Registration, Step

CREATE = (
    "CREATE STREAM {} (id BIGINT, k STRING, v BIGINT, ts TIMESTAMP NOT NULL) "
    "WITH (topic = '{}', timestamp = 'ts', future_max = '10 days') RETAIN 10 DAYS"
)
OWN_QUERIES = 10
CLOCK_MS = 10**9
COUNTED_STEPS = 8


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options besides those that every benchmark has."""
    parser.add_argument("--sizes", type=int, nargs="+", default=[10, 100, 1_000], help="of each thing")
    parser.add_argument("--rows", type=int, default=8, help="of a step (default: %(default)s)")
    parser.add_argument("--steps", type=int, default=200, help="timed (default: %(default)s)")


def run(options: argparse.Namespace) -> Report:
    """Grow one thing after another, in an engine of its own for each size."""
    figures: dict[str, Figure] = {}
    for thing, grow in THINGS.items():
        calls, times = [], []
        for size in options.sizes:
            feed = Feed(options.rows)
            grow(feed, size)
            calls.append(feed.calls())
            times.append(feed.cpu_ms(options.steps))
            figures[f"calls.{thing}.n{size}"] = calls[-1]
            figures[f"ms.{thing}.n{size}"] = times[-1]
        figures[f"exponent.{thing}"] = exponent(options.sizes, calls)
        figures[f"time_exponent.{thing}"] = exponent(options.sizes, times)
    return Report(figures)


def exponent(sizes: list[int], costs: list[float]) -> float:
    """By which power of the size the cost grows from the first to the last."""
    return math.log(costs[-1] / costs[0]) / math.log(sizes[-1] / sizes[0])


class Feed:
    """An engine, and rows for its streams."""

    def __init__(self, rows: int) -> None:
        self.engine = Engine()
        self._rows = rows
        self._offsets: dict[str, int] = {}
        self._schemas: dict[str, Schema] = {}
        self.stream("s")
        for number in range(OWN_QUERIES):
            self.register(f"own{number}", f"SELECT id, v FROM s [RANGE 1 SECOND] WHERE v > {number * 9}")
        self.register("told", "SELECT id, v FROM s [RANGE 1 SECOND] WHERE v > 50")
        self.engine.follow("told")

    def stream(self, name: str) -> None:
        """Another stream."""
        self.engine.create(CREATE.format(name, name))
        self._offsets[name] = 0
        made = self.engine.catalogue[name]
        assert isinstance(made, Stream)
        self._schemas[name] = made.schema

    def register(self, name: str, sql: str, **options: str) -> None:
        """Another query."""
        body = Register((Registration(name, sql, options=options),))
        last = self.engine.position
        self.engine.enqueue(Step(Position(last.epoch, last.sequence + 1), CLOCK_MS, body))
        (result,) = self.engine.run()
        if result.failed:
            raise RuntimeError(f"{sql}: {result.failed}")

    def put(self, name: str, rows: int, *, strings: int = 8) -> None:
        """A step of some rows of a stream, one a millisecond."""
        first = self._offsets[name]
        self._offsets[name] = first + rows
        places = np.arange(first, first + rows)
        table = pa.table(
            {
                "id": places,
                "k": pa.array([f"value {place % strings}" for place in places.tolist()]),
                "v": places % 97,
                "ts": pa.array(places, pa.timestamp("ms")),
            }
        )
        batch = Batch.from_arrow(self._schemas[name], table, np.zeros(rows), places, places)
        self.engine.ingest(name, batch, CLOCK_MS)

    def _step(self) -> None:
        self.put("s", self._rows)
        self.engine.view()

    def calls(self) -> float:
        """Calls of a step, once everything is warm."""
        for _ in range(COUNTED_STEPS):
            self._step()
        counted = 0

        def count(frame: object, event: str, argument: object) -> None:
            nonlocal counted
            counted += event in ("call", "c_call")

        sys.setprofile(count)
        try:
            for _ in range(COUNTED_STEPS):
                self._step()
        finally:
            sys.setprofile(None)
        return counted / COUNTED_STEPS

    def cpu_ms(self, steps: int) -> float:
        """The processor's time of a step."""
        taken = []
        for _ in range(steps):
            began_s = time.thread_time()
            self._step()
            taken.append(time.thread_time() - began_s)
        return median(taken) * 1e3


def _streams(feed: Feed, size: int) -> None:
    for number in range(size):
        name = f"other{number}"
        feed.stream(name)
        feed.register(f"kept{number}", f"SELECT id FROM {name} [RANGE 1 SECOND] WHERE v > 9")
        feed.register(f"told{number}", f"SELECT id FROM {name} [RANGE 1 SECOND] WHERE v > 99")
        feed.engine.follow(f"told{number}")
        feed.put(name, 20)


def _queries(feed: Feed, size: int) -> None:
    feed.stream("other")
    for number in range(10 * size):
        feed.register(f"kept{number}", f"SELECT id FROM other [RANGE 1 SECOND] WHERE v = {number}")
    feed.put("other", 20)


def _followed(feed: Feed, size: int) -> None:
    feed.stream("other")
    for number in range(size):
        feed.register(
            f"told{number}", f"SELECT k, SUM(v + {number}) AS n FROM other [RANGE 1 SECOND] GROUP BY k"
        )
        feed.engine.follow(f"told{number}")
    feed.put("other", 20)


def _joins(feed: Feed, size: int) -> None:
    feed.stream("origin")
    for number in range(size):
        feed.stream(f"target{number}")
        window = "[RANGE 1 SECOND]"
        joined = f"origin {window} a JOIN target{number} {window} b ON a.id = b.id"
        feed.register(f"join{number}", f"SELECT a.id FROM {joined}")
        feed.engine.follow(f"join{number}")


def _views(feed: Feed, size: int) -> None:
    feed.stream("other")
    for number in range(size):
        feed.engine.create(f"CREATE VIEW view{number} AS SELECT id, v FROM other WHERE v > {number}")


def _retained(feed: Feed, size: int) -> None:
    left = 1_000 * size
    while left:
        rows = min(left, BATCH_ROWS_MAX)
        feed.put("s", rows)
        left -= rows


def _strings(feed: Feed, size: int) -> None:
    left = 100 * size
    while left:
        rows = min(left, BATCH_ROWS_MAX)
        feed.put("s", rows, strings=10**9)
        left -= rows


def _paused(feed: Feed, size: int) -> None:
    for number in range(size):
        feed.register(f"paused{number}", f"SELECT id FROM s WHERE v = {number}", paused="true")


THINGS: dict[str, Callable[[Feed, int], None]] = {
    "streams": _streams,
    "queries": _queries,
    "followed": _followed,
    "joins": _joins,
    "views": _views,
    "retained": _retained,
    "strings": _strings,
    "paused": _paused,
}
