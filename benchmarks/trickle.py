"""Many streams with few records each: what a broker takes for them, and how late their changes are.

A whole broker, Kafka, whoever writes the records and whoever reads the changes run on the same cores. 800
records a second (three columns, JSON) go to 16 topics in turn, 50 a second to each. Over each topic is a
stream, every other one in event time, and over each stream stand some selections over the last seconds, two
counts by group, and one query that emits each record. A reader that sees committed records alone notes when
a change reaches it; the delay is counted from when its record was made, which is just before it was given to
the producer. In event time a row enters when a later one has come, 20 ms later at this rate: that is part of
the delay. All changes are counted at the end.

Figures: `worker_cpu_share` and `kafka_cpu_share`, percent of one core over `--seconds`, and `cpu_share`, the
two together; `kafka_alone_cpu_share`, what Kafka takes for the same records where nobody reads them;
`steps_per_s`, `transactions_per_s`; `delay_ms.p50`, `delay_ms.p99`, `delay_ms.max`, and apart
`delay_ms.p99.event_time`, `delay_ms.p99.arrival_time`; `feeding_late_ms`, by how much the records
themselves were late at most; `threads` of the worker.
"""

import argparse
import json
import threading
import time

import httpx
import numpy as np
import numpy.typing as npt
from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from benchmarks.feeding import Feeder
from benchmarks.report import Figure, Report
from benchmarks.served import DEADLINE_S, register, serving, worker
from benchmarks.shares import of_kafka, shares
from tureen.protocol import TopicNames

SETTLED_S = 5.0
SHARED_RESULTS = TopicNames().results + ".log"
GROUPS = 10


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options besides those that every benchmark has."""
    parser.add_argument("--streams", type=int, default=16, help="(default: %(default)s)")
    parser.add_argument("--rate", type=int, default=50, help="a second, of each (default: %(default)s)")
    parser.add_argument("--queries", type=int, default=10, help="over each (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=15.0, help="of measuring (default: %(default)s)")


def run(options: argparse.Namespace) -> Report:
    """Feed, measure, compare."""
    names = [f"trickle{number}" for number in range(options.streams)]
    with serving() as (client, kafka):
        kafka_process, worker_process = of_kafka(kafka), worker(client)
        create(client, names)
        alone = _alone(kafka, len(names), options)
        register(client, [sql for name in names for sql in texts(name, options.queries)])
        seen: list[tuple[float, bytes]] = []
        over = threading.Event()
        watching = threading.Thread(target=watch, args=(kafka, seen, over))
        watching.start()
        feeder = Feeder(kafka, names, lines, options.rate * len(names))
        feeder.start()
        time.sleep(SETTLED_S)
        began_ms, before = time.time() * 1e3, counted(client)
        taken = shares({"worker": worker_process, "kafka": kafka_process}, options.seconds)
        passed_s, after = time.time() - began_ms / 1e3, counted(client)
        threads = worker_process.num_threads()
        time.sleep(1.0)  # what comes last waits in event time: it is no record whose delay counts
        fed = feeder.stop()
        # What came in event time last waits until its partitions are idle.
        deadline_s = time.monotonic() + DEADLINE_S
        while len(seen) < len(fed.made_ms) and time.monotonic() < deadline_s:
            time.sleep(0.05)
        over.set()
        watching.join()
    return Report(
        {
            "cpu_share": sum(taken.values()),
            **{f"{name}_cpu_share": percent for name, percent in taken.items()},
            "kafka_alone_cpu_share": alone,
            **{f"{name}_per_s": (after[name] - before[name]) / passed_s for name in after},
            **delays(seen, fed.made_ms, len(names), began_ms, passed_s * 1e3),
            "feeding_late_ms": fed.late_s * 1e3,
            "threads": threads,
        }
    )


def create(client: httpx.Client, names: list[str]) -> None:
    """Streams of one partition, every other one in event time."""
    for number, name in enumerate(names):
        time_of = "timestamp = 'ts', " if number % 2 == 0 else ""
        columns = "id BIGINT, v INTEGER, ts TIMESTAMP NOT NULL"
        sql = f"CREATE STREAM {name} ({columns}) WITH ({time_of}partitions = 1) RETAIN 10 SECONDS"
        client.post("/sources", json={"sql": sql}).raise_for_status()


def texts(name: str, count: int) -> list[str]:
    """The queries over a stream: the first emits."""
    recent = f"{name} [RANGE 5 SECONDS]"
    found = [f"SELECT id, ts FROM {name} EMIT CHANGES"]
    found += [f"SELECT v % {GROUPS} AS g, COUNT(*) AS n FROM {recent} GROUP BY v % {GROUPS}"] * 2
    found += [f"SELECT id, v FROM {recent} WHERE v > {1_000 * n // count}" for n in range(count)]
    return found[:count]


def lines(first: int, count: int, now_ms: int) -> list[bytes]:
    """The records as JSON."""
    return [b'{"id":%d,"v":%d,"ts":%d}' % (i, i * 31 % 1_000, now_ms) for i in range(first, first + count)]


def counted(client: httpx.Client) -> dict[str, float]:
    """Steps, transactions and records so far, by the broker's own count."""
    totals = {"steps": 0.0, "transactions": 0.0, "records": 0.0}
    for line in client.get("/metrics").text.splitlines():
        name = line.partition("{")[0].removeprefix("tureen_").removesuffix("_total")
        if name in totals:
            totals[name] += float(line.split()[-1])
    return totals


def delays(
    seen: list[tuple[float, bytes]],
    made_ms: npt.NDArray[np.int64],
    streams: int,
    began_ms: float,
    passed_ms: float,
) -> dict[str, Figure]:
    """Milliseconds from records to changes, of records made while shares were measured.

    Raises RuntimeError where a change is missing or came twice.
    """
    ids = np.array([json.loads(value)["id"] for _, value in seen], np.int64)
    missing = len(made_ms) - len(np.unique(ids))
    if missing or len(ids) != len(made_ms):
        raise RuntimeError(f"{missing} of {len(made_ms)} changes are missing, {len(ids)} came")
    made = made_ms[ids].astype(np.float64)
    delay_ms = np.array([at_s for at_s, _ in seen]) * 1e3 - made
    during = (made >= began_ms) & (made < began_ms + passed_ms)
    event_time = ids % streams % 2 == 0
    return {
        **{f"delay_ms.p{p}": float(np.percentile(delay_ms[during], p)) for p in (50, 99)},
        "delay_ms.max": float(delay_ms[during].max()),
        "delay_ms.p99.event_time": float(np.percentile(delay_ms[during & event_time], 99)),
        "delay_ms.p99.arrival_time": float(np.percentile(delay_ms[during & ~event_time], 99)),
    }


def _alone(kafka: str, topics: int, options: argparse.Namespace) -> float:
    """Percent of a core that Kafka takes for records that nobody reads."""
    names = [f"unread{number}" for number in range(topics)]
    admin = AdminClient({"bootstrap.servers": kafka})
    for made in admin.create_topics([NewTopic(name, 1) for name in names]).values():
        made.result(DEADLINE_S)
    feeder = Feeder(kafka, names, lines, options.rate * topics)
    feeder.start()
    time.sleep(SETTLED_S)
    share = shares({"kafka": of_kafka(kafka)}, min(SETTLED_S, options.seconds))["kafka"]
    feeder.stop()
    return share


def watch(
    kafka: str, seen: list[tuple[float, bytes]], over: threading.Event, topic: str = SHARED_RESULTS
) -> None:
    """Note what is committed of a result topic, and when it came."""
    consumer = Consumer(
        {
            "bootstrap.servers": kafka,
            "group.id": "benchmark",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
        }
    )
    partitions = consumer.list_topics(topic, DEADLINE_S).topics[topic].partitions
    consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in partitions])
    while not over.is_set():
        message = consumer.poll(0.1)
        if message is not None and message.error() is None:
            seen.append((time.time(), message.value() or b""))
    consumer.close()
