"""Changes of answers out to Kafka: how many a second, and how long after the record that caused them.

A whole broker and Kafka on the same cores, JSON in and JSON out.

How many. A stream of PSoup's workload is loaded while the worker is held still; the clock runs from the
moment it goes on until all rows have entered and none of their changes waits to be written. What is in the
result topic then is read and compared: selections with numpy, answers by key with the snapshot that a
fold of the topic must be. A delta is a record there; a row that takes the place of another with its key is
one. Three loads, each in a broker of its own:

* `rows`: selections without a window, each row that satisfies one goes out once (istream);
* `windows`: the same over the last second, each row comes and goes again, told apart by a hash of the row;
* `groups`: counts and sums by each of three columns over the last second, keyed by that column; the changes
  of all the instants of a step go out, not only how it ends.

How late. 50,000 records a second come; over them stand 10,000 queries, each for one of 10,000 keys, of which
1,000 emit. A reader that sees committed records alone notes when a change reaches it; the delay is counted
from when its record was made, which is just before it was given to the producer.

Figures: `deltas_per_s` (of `rows`), `deltas_per_s.windows`, `deltas_per_s.groups`; `records_per_s` and so on,
of what went in meanwhile; `delay_ms.p50`, `delay_ms.p99`, `delay_ms.max`; `feeding_late_ms`, by how much the
records themselves were late at most.
"""

import argparse
import json
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator

import httpx
import numpy as np
import numpy.typing as npt
from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

from benchmarks.feeding import Fed, Feeder
from benchmarks.psoup import COLUMNS, Bounds, condition, make_bounds, matches
from benchmarks.report import Figure, Plot, Report, Series
from benchmarks.served import (
    DEADLINE_S,
    await_entered,
    await_told,
    create_stream,
    load,
    register,
    serving,
    worker,
)
from tureen.protocol import TopicNames, query_id

KEYS = 10_000
WARM_UP = 20_000
COMPARED = 10
SETTLED_S = 3.0
LOADS = ("rows", "windows", "groups")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options besides those that every benchmark has."""
    parser.add_argument(
        "--records", type=int, default=150_000, help="of a load, more for rows (default: %(default)s)"
    )
    parser.add_argument("--emitting", type=int, default=90, help="of the first part (default: %(default)s)")
    parser.add_argument("--loads", nargs="*", choices=LOADS, default=LOADS, help="(default: all)")
    parser.add_argument("--rate", type=int, default=50_000, help="records a second (default: %(default)s)")
    parser.add_argument("--queries", type=int, default=10_000, help="of the second (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=15.0, help="of the second (default: %(default)s)")


def run(options: argparse.Namespace) -> Report:
    """How many, then how late."""
    rng = np.random.default_rng(options.seed)
    figures: dict[str, Figure] = {}
    for name in options.loads:
        suffix = "" if name == "rows" else f".{name}"
        deltas, records = how_many(rng, name, options.records, options.emitting)
        figures |= {f"deltas_per_s{suffix}": deltas, f"records_per_s{suffix}": records}
        print(f"{name}: {deltas:,.0f} deltas/s of {records:,.0f} records/s", file=sys.stderr)
    plot = None
    if options.seconds:
        delay_ms, late_ms = how_late(options.rate, options.queries, options.seconds)
        shares = np.linspace(0, 99.9, 500)
        plot = Plot(
            "share of the changes, %",
            "ms from record to change",
            [
                Series(
                    f"{options.rate:,} records/s", shares.tolist(), np.percentile(delay_ms, shares).tolist()
                )
            ],
        )
        figures |= {
            "delay_ms.p50": float(np.percentile(delay_ms, 50)),
            "delay_ms.p99": float(np.percentile(delay_ms, 99)),
            "delay_ms.max": float(delay_ms.max()),
            "feeding_late_ms": late_ms,
        }
    return Report(figures, plot)


def how_many(rng: np.random.Generator, name: str, records: int, emitting: int) -> tuple[float, float]:
    """Deltas and records a second of one load."""
    bounds = make_bounds(rng, emitting)
    texts = _texts(name, bounds)
    with serving() as (client, kafka):
        create_stream(client)
        handles = register(client, texts)
        warm, values = (rng.integers(0, 256, (len(COLUMNS), n)) for n in (WARM_UP, records))
        load(kafka, warm, 0)
        await_entered(client, WARM_UP)
        await_told(client)
        before = counted(client)
        process = worker(client)
        process.send_signal(signal.SIGSTOP)
        load(kafka, values, WARM_UP)
        began_s = time.perf_counter()
        process.send_signal(signal.SIGCONT)
        await_entered(client, WARM_UP + records)
        await_told(client)
        seconds = time.perf_counter() - began_s
        deltas = counted(client) - before
        topic = TopicNames().results + (".log" if name == "rows" else "")
        compare(client, kafka, topic, handles, bounds, np.hstack([warm, values]), name)
    return deltas / seconds, records / seconds


def _texts(name: str, bounds: Bounds) -> list[str]:
    """The queries of a load."""
    if name == "groups":
        answer = (
            "SELECT {0}, COUNT(*) AS n, SUM(d) AS total FROM psoup [RANGE 1 SECOND] GROUP BY {0} EMIT CHANGES"
        )
        return [answer.format(column) for column in COLUMNS[:3]]
    source = "psoup" if name == "rows" else "psoup [RANGE 1 SECOND]"
    wheres = [where and f" WHERE {where}" for where in map(condition, bounds)]
    return [f"SELECT id, a, b, c, d FROM {source}{where} EMIT CHANGES" for where in wheres]


def counted(client: httpx.Client) -> int:
    """Records with changes that went out so far, by the broker's own count."""
    lines = client.get("/metrics").text.splitlines()
    return int(sum(float(one.split()[-1]) for one in lines if one.startswith("tureen_result_records_total")))


def reader(kafka: str, topic: str) -> Consumer:
    """Reads what is committed of all partitions of a topic, from its beginning."""
    consumer = Consumer(
        {
            "bootstrap.servers": kafka,
            "group.id": "benchmark",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "fetch.wait.max.ms": 5,
        }
    )
    partitions = consumer.list_topics(topic, DEADLINE_S).topics[topic].partitions
    consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in partitions])
    return consumer


def records_of(kafka: str, topic: str, count: int) -> Iterator[tuple[bytes, bytes | None]]:
    """Keys and values of the first records of a topic, so many. Raises RuntimeError where fewer come."""
    consumer = reader(kafka, topic)
    left, deadline_s = count, time.monotonic() + DEADLINE_S
    while left > 0:  # whoever commits counts its records a moment before they are seen
        if time.monotonic() > deadline_s:
            raise RuntimeError(f"{left:,} of {count:,} records that were counted are not in {topic}")
        for message in consumer.consume(100_000, 0.1):
            if message.error() is None:
                left -= 1
                yield message.key(), message.value()
    consumer.close()


def compare(
    client: httpx.Client,
    kafka: str,
    topic: str,
    handles: list[str],
    bounds: Bounds,
    values: npt.NDArray[np.int64],
    name: str,
) -> None:
    """What went out with numpy's rows, or with the snapshots. Raises RuntimeError."""
    found: Counter[str] = Counter()
    folded: dict[bytes, bytes] = {}
    for key, value in records_of(kafka, topic, counted(client)):
        owner = key[10 : 10 + len(query_id(""))].decode()
        found[owner] += 1
        if name == "rows":
            continue
        if value is None:
            folded.pop(key, None)
        else:
            folded[key] = value
    if name == "rows":
        for handle, one in zip(handles, bounds, strict=True):
            expected = int(matches(one, values).sum())
            if not expected - 10 <= found[query_id(handle)] <= expected:  # but for the last millisecond
                raise RuntimeError(
                    f"{found[query_id(handle)]} rows of a query went out, numpy has {expected}"
                )
        return
    for handle in handles[:: max(1, len(handles) // COMPARED)]:
        head = b'{"query":"%s"' % query_id(handle).encode()
        mine = [list(json.loads(v).values()) for k, v in folded.items() if k.startswith(head)]
        answer = client.get(f"/queries/{handle}/snapshot").json()["rows"]
        if sorted(mine) != sorted(answer):
            raise RuntimeError(f"a fold of the topic has {len(mine)} rows, the snapshot {len(answer)}")


def lines(first: int, count: int, now_ms: int) -> list[bytes]:
    """Records over all keys, each key as often as the others."""
    return [
        b'{"id":%d,"k":%d,"v":%d,"ts":%d}' % (i, i * 7_919 % KEYS, i * 31 % 1_000, now_ms)
        for i in range(first, first + count)
    ]


def how_late(rate: int, queries: int, seconds: float) -> tuple[npt.NDArray[np.float64], float]:
    """Milliseconds from a record to each of its changes; the longest that the records were late."""
    texts = [
        f"SELECT id, k, v, ts FROM feed WHERE k = {key} AND v < 900{' EMIT CHANGES' if key % 10 == 0 else ''}"
        for key in range(queries)
    ]
    topic = TopicNames().results + ".log"
    with serving() as (client, kafka):
        columns = "id BIGINT, k INTEGER, v INTEGER, ts TIMESTAMP NOT NULL"
        sql = f"CREATE STREAM feed ({columns}) WITH (timestamp = 'ts') RETAIN 10 SECONDS"
        client.post("/sources", json={"sql": sql}).raise_for_status()
        register(client, texts)
        seen: list[tuple[float, bytes]] = []
        over = threading.Event()
        watching = threading.Thread(target=_watch, args=(kafka, topic, seen, over))
        watching.start()
        feeder = Feeder(kafka, ["feed"], lines, rate)
        feeder.start()
        time.sleep(SETTLED_S + seconds)
        fed = feeder.stop()
        wanted = _wanted(fed, queries)
        deadline_s = time.monotonic() + DEADLINE_S
        while len(seen) < len(wanted) and time.monotonic() < deadline_s:
            time.sleep(0.05)
        over.set()
        watching.join()
    told = [(at_s, json.loads(value)) for at_s, value in seen]
    ids = [row["id"] for _, row in told]
    missing = set(wanted.tolist()) - set(ids)
    if len(ids) != len(set(ids)) or missing:
        raise RuntimeError(f"{len(missing)} changes are missing, {len(ids) - len(set(ids))} came twice")
    made_ms = np.array([fed.made_ms[one] for one in ids], np.float64)
    delay_ms = np.array([at_s for at_s, _ in told]) * 1e3 - made_ms
    settled = made_ms > fed.made_ms[0] + SETTLED_S * 1e3
    return delay_ms[settled], fed.late_s * 1e3


def _wanted(fed: Fed, queries: int) -> npt.NDArray[np.int64]:
    """Numbers of the records whose changes go out; those of the last millisecond wait for a later one."""
    every = np.arange(len(fed.made_ms))
    key, v = every * 7_919 % KEYS, every * 31 % 1_000
    return every[(key % 10 == 0) & (key < queries) & (v < 900) & (fed.made_ms < fed.made_ms[-1])]


def _watch(kafka: str, topic: str, seen: list[tuple[float, bytes]], over: threading.Event) -> None:
    consumer = reader(kafka, topic)
    while not over.is_set():
        messages = consumer.consume(1_000, 0.002)
        at_s = time.time()
        seen += [(at_s, one.value()) for one in messages if one.error() is None]
    consumer.close()
