"""Data and helpers that ``shards_keyed_test.py`` shares with other tests."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

from engine.model.source import Derived, SourceName, Stream
from engine.model.step import (
    Body,
    CreateDerived,
    CreateSource,
    Heartbeat,
    Position,
    Records,
    Register,
    Registration,
    Step,
    Unregister,
)
from tests.capacities import small_engine
from tests.strategies import batch_of
from tests.worlds import table_batch

OPTIONS = "timestamp = 'ts', lateness = '20 milliseconds', idle_timeout = '200 milliseconds'"

DEFINITIONS = (
    (
        f"CREATE STREAM s (k DOUBLE, v INT, x STRING, ts TIMESTAMP NOT NULL) WITH (topic = 's', {OPTIONS}, "
        "idle_advances = true) RETAIN 70 MILLISECONDS"
    ),
    (
        f"CREATE STREAM t (k DOUBLE, w INT, x STRING, ts TIMESTAMP NOT NULL) WITH (topic = 't', {OPTIONS}, "
        "idle_advances = true)"
    ),
    (
        f"CREATE TABLE names (x STRING, name STRING, ts TIMESTAMP NOT NULL, PRIMARY KEY (x)) "
        f"WITH (topic = 'n', {OPTIONS})"
    ),
    (
        f"CREATE TABLE fares (k DOUBLE, fare INT, ts TIMESTAMP NOT NULL, PRIMARY KEY (k)) "
        f"WITH (topic = 'f', {OPTIONS}, idle_advances = true)"
    ),
)

KEYS = {"s": "k", "t": "k", "fares": "k"}

QUERIES = (
    "SELECT v, x FROM s [RANGE 50 MILLISECONDS]",
    "SELECT k, v FROM s [RANGE 30 MILLISECONDS] WHERE v > 1",
    "SELECT ISTREAM(k, x) FROM s [RANGE 50 MILLISECONDS]",
    "SELECT v FROM s WHERE x = 'a'",
    "SELECT ISTREAM(x, ts) FROM s [RANGE 50 MILLISECONDS]",
    "SELECT DSTREAM(k, x) FROM s",
    "SELECT k, COUNT(*) AS n, SUM(v) AS total FROM s [RANGE 60 MILLISECONDS] GROUP BY k",
    "SELECT k, x, MAX(v) AS m FROM s [RANGE 60 MILLISECONDS SLIDE 20 MILLISECONDS] GROUP BY k, x",
    "SELECT k, COUNT(*) AS n, window_end FROM TUMBLE(s, INTERVAL '20' MILLISECOND) GROUP BY k, window_end",
    (
        "SELECT k, COUNT(*) AS n, window_end FROM SESSION(s PARTITION BY k, INTERVAL '15' MILLISECOND) "
        "GROUP BY k, window_end"
    ),
    "SELECT DISTINCT k FROM s [RANGE 40 MILLISECONDS]",
    "SELECT k, v FROM s [PARTITION BY k ROWS 2]",
    "SELECT s.k, v, w FROM s [RANGE 30 MILLISECONDS] JOIN t [RANGE 30 MILLISECONDS] ON s.k = t.k",
    "SELECT s.v, w FROM s [RANGE 20 MILLISECONDS] FULL JOIN t [RANGE 20 MILLISECONDS] ON s.k = t.k",
    "SELECT k, v FROM s [RANGE 40 MILLISECONDS] ANTI JOIN t [RANGE 20 MILLISECONDS] ON s.k = t.k",
    "SELECT k, v FROM s [RANGE 40 MILLISECONDS] WHERE k IN (SELECT k FROM t [RANGE 20 MILLISECONDS])",
    "SELECT s.k, v, name FROM s [RANGE 40 MILLISECONDS] LEFT JOIN names ON s.x = names.x",
    "SELECT name, COUNT(*) AS n FROM names JOIN s [RANGE 9 MILLISECONDS] ON s.x = names.x GROUP BY k, name",
    "SELECT s.k, v, fare FROM s [RANGE 40 MILLISECONDS] FULL JOIN fares ON s.k = fares.k",
    "SELECT k, fare FROM fares WHERE fare > 2",
    "SELECT k, COUNT(*) AS n FROM many GROUP BY k",
)

FORMATS = ("", " WITH (format = 'diff')", " WITH (format = 'debezium')")

KEY_VALUES = (None, 0.0, -0.0, 1.0, 2.0, 3.0, float("nan"), 0.1)


class Feed:
    """Steps for these sources, from a seed."""

    def __init__(self, rng: random.Random, streams: dict[str, Stream]) -> None:
        self.rng = rng
        self.clock_ms = 10_000
        self.streams = streams
        self.offsets: Counter[tuple[str, int]] = Counter()
        self.sequence = 0

    def step(self, body: Body) -> Step:
        self.sequence += 1
        return Step(Position(1, self.sequence), self.clock_ms, body)

    def rows(self, name: str) -> Body:
        rng = self.rng
        stream, found = self.streams[name], []
        for _ in range(rng.choice([0, 1, 5, 12])):
            partition = rng.randrange(3)
            at_ms = self.clock_ms + rng.choice([-80, -30, -15, -5, 0, 0, 3, 8, 25])
            key, text = rng.choice(KEY_VALUES), rng.choice(["a", "b", "ab", None])
            values: dict[str, tuple[Any, ...]] = {
                "s": (key, rng.randrange(4), text),
                "t": (key, rng.randrange(4), text),
                "names": (text or "c", rng.choice(["A", "B"])),
                "fares": (key or 0.0, rng.randrange(5)),
            }
            found.append((partition, self.offsets[name, partition], at_ms, values[name]))
            self.offsets[name, partition] += 1
        if stream.is_table:
            batch = table_batch(stream, found, [rng.random() < 0.2 for _ in found])
        else:
            batch = batch_of(stream.schema, found)
        lagging = rng.choice([frozenset[int](), frozenset[int](), frozenset({1})])
        return Records(SourceName(name), batch, {}, lagging)


def history(rng: random.Random, queries: tuple[str, ...]) -> Iterator[Step]:
    """Definitions, then rows, time and queries as they come; at last time alone until all is closed."""
    known = small_engine()
    for sql in DEFINITIONS:
        known.create(sql)
    streams = {str(one.name): one for one in known.catalogue.values() if isinstance(one, Stream)}
    feed = Feed(rng, streams)
    for sql, stream in zip(DEFINITIONS, streams.values(), strict=True):
        yield feed.step(CreateSource(stream, sql))
    many = Derived(SourceName("many"), "SELECT k, v FROM s [RANGE 25 MILLISECONDS] WHERE v > 0")
    yield feed.step(CreateDerived(many))
    waiting = [
        Registration(f"q{n}", f"{sql} EMIT CHANGES{rng.choice(FORMATS)}") for n, sql in enumerate(queries)
    ]
    rng.shuffle(waiting)
    standing: list[str] = []
    for _ in range(22):
        feed.clock_ms += rng.choice([0, 3, 10, 10, 25, 250])
        yield feed.step(feed.rows(rng.choice([*streams, "s", "s", "t"])))
        if waiting and rng.random() < 0.6:
            coming = tuple(waiting.pop() for _ in range(min(len(waiting), rng.choice([1, 4, 9]))))
            standing += [one.query_id for one in coming]
            yield feed.step(Register(coming))
        elif standing and rng.random() < 0.3:
            yield feed.step(Unregister((standing.pop(rng.randrange(len(standing))), "never-there")))
    for _ in range(3):
        feed.clock_ms += 300
        for name in streams:
            yield feed.step(Heartbeat(SourceName(name)))
