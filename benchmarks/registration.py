"""Registering queries: one over 1,000,000 retained rows, many at once, and how long data waits for them.

Alone: 10,000 queries of PSoup's workload stand over a full window; one more is registered, again and again,
each text new, its constants any of 0..256. Its matches over old rows are made between later steps, and an
answer that is asked for at once is worked out from the rows: `answered_ms` is registration and such a
count together. Stall: before a batch of rows such a
registration comes, and before the next none; the batch is delayed by what registration and batch take
together beyond the middle batch without. In bulk, in the engine: steps of 1,000 registrations over the same
window. In bulk, through the topic: a whole broker with Kafka on the same cores, a retained stream, and
100,000 texts written to the topic of queries; the clock runs from the first record until the topic of states
says of each that it runs. Over HTTP: single queries beside those, one request after another. Restart: the
broker is ended in good order and started, until it is ready with all of them. Answers are checked with numpy.

Figures: `alone_ms`, the median, and `alone_ms.p99`; `answered_ms`, the median; `stall_ms.p50`,
`stall_ms.p99`; `engine_bulk_per_s`;
`bulk_per_s`, through the topic, and `bulk_s`; `http_ms`, the median, and `http_ms.p99`;
`restart_s.q100000`. `--no-broker` leaves the topic out.
"""

import argparse
import json
import sys
import time
from collections.abc import Iterator
from itertools import count
from statistics import median

import httpx
import numpy as np
import numpy.typing as npt
from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

from benchmarks import psoup
from benchmarks.psoup import COLUMNS, ROWS_PER_MS, Bounds, Rows
from benchmarks.report import Figure, Report
from benchmarks.served import DEADLINE_S, await_entered, brokers, create_stream, load
from engine.engine import Engine
from engine.model.batch import BATCH_ROWS_MAX
from engine.model.step import Register, Registration
from topics.producer import BatchProducer
from tureen.protocol import TopicNames, new_handle, query_id

STEP = 1_000
COUNTED = 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options besides those that every benchmark has."""
    parser.add_argument("--rows", type=int, default=1_000_000, help="retained (default: %(default)s)")
    parser.add_argument("--standing", type=int, default=10_000, help="queries before (default: %(default)s)")
    parser.add_argument("--times", type=int, default=200, help="queries alone (default: %(default)s)")
    parser.add_argument("--bulk", type=int, default=100_000, help="queries at once (default: %(default)s)")
    parser.add_argument(
        "--topic-rows", type=int, default=100_000, help="retained by the broker (default: %(default)s)"
    )
    parser.add_argument(
        "--broker", action=argparse.BooleanOptionalAction, default=True, help="through the topic too"
    )


def run(options: argparse.Namespace) -> Report:
    """In the engine, then through a broker."""
    rng = np.random.default_rng(options.seed)
    figures = in_engine(rng, options)
    print(f"alone {figures['alone_ms']:.2f} ms", file=sys.stderr)
    if options.broker:
        figures |= through_topic(rng, options.bulk, options.topic_rows, options.times)
    return Report(figures)


def in_engine(rng: np.random.Generator, options: argparse.Namespace) -> dict[str, Figure]:
    """Alone, stall and bulk over one window."""
    rows = psoup.make_rows(rng, options.rows)
    engine = psoup.create(options.rows // ROWS_PER_MS)
    psoup.register(engine, map(psoup.text, psoup.make_bounds(rng, options.standing)))
    psoup.fill(engine, rows)
    names = count(options.standing)
    bounds = psoup.make_bounds(rng, 2 * options.times, grid=1)
    alone, answered = [], []
    for one in bounds[: options.times]:
        sql, name = psoup.text(one, "COUNT(*)"), f"q{next(names)}"
        began = time.perf_counter()
        engine.register(name, sql)
        alone.append((time.perf_counter() - began) * 1e3)
        engine.view().snapshot(name)
        answered.append((time.perf_counter() - began) * 1e3)
    check(engine, bounds[: options.times], options.standing, rows)
    while engine.idle():  # as a broker does while nothing comes
        pass
    delays = stalls(engine, rng, bounds[options.times :], rows, names)
    texts = [psoup.text(one) for one in psoup.make_bounds(rng, min(options.bulk, 10 * STEP))]
    began = time.perf_counter()
    for first in range(0, len(texts), STEP):
        step = texts[first : first + STEP]
        psoup.apply(engine, Register(tuple(Registration(f"q{next(names)}", sql) for sql in step)))
    bulk = len(texts) / (time.perf_counter() - began)
    return {
        "alone_ms": median(alone),
        "alone_ms.p99": float(np.percentile(alone, 99)),
        "answered_ms": median(answered),
        "stall_ms.p50": float(np.percentile(delays, 50)),
        "stall_ms.p99": float(np.percentile(delays, 99)),
        "engine_bulk_per_s": bulk,
    }


def stalls(
    engine: Engine, rng: np.random.Generator, bounds: Bounds, rows: Rows, names: Iterator[int]
) -> list[float]:
    """Milliseconds by which each registration delayed the batch behind it."""
    texts = [psoup.text(one) for one in bounds]
    begin_ms = int(rows.timestamp[-1]) + 2
    more = psoup.make_rows(rng, 2 * len(texts) * BATCH_ROWS_MAX)
    later = Rows(more.values, more.timestamp + begin_ms)
    clock_ms = int(later.timestamp[-1])
    quiet, delayed = [], []
    for place, sql in enumerate(texts):
        for seconds in (quiet, delayed):
            first = (2 * place + (seconds is delayed)) * BATCH_ROWS_MAX
            batch = later.batch(first, first + BATCH_ROWS_MAX, len(rows) + 1 + first)
            began = time.perf_counter()
            if seconds is delayed:
                engine.register(f"q{next(names)}", sql)
            engine.ingest("psoup", batch, clock_ms)
            seconds.append(time.perf_counter() - began)
    middle = median(quiet)
    return [max(0.0, one - middle) * 1e3 for one in delayed]


def check(engine: Engine, bounds: Bounds, first: int, rows: Rows) -> None:
    """Compare some counts with numpy. Raises RuntimeError."""
    view = engine.view()
    for place in range(0, len(bounds), max(1, len(bounds) // COUNTED)):
        counted = view.snapshot(f"q{first + place}").table.column(0)[0].as_py()
        expected = int(psoup.matches(bounds[place], rows.values).sum())
        if counted != expected:
            raise RuntimeError(f"q{first + place} counts {counted} rows, numpy {expected}")


def through_topic(rng: np.random.Generator, bulk: int, rows: int, times: int) -> dict[str, Figure]:
    """Write texts to the topic of queries until the broker says of each that it runs; then some over HTTP,
    and a restart with all.
    """
    values = rng.integers(0, 256, (len(COLUMNS), rows))
    bounds = psoup.make_bounds(rng, bulk)
    handles = [new_handle() for _ in bounds]
    keys: list[bytes | None] = [query_id(handle).encode() for handle in handles]
    counted = {
        place: psoup.text(bounds[place], "COUNT(*) AS n") for place in range(0, bulk, -(-bulk // COUNTED))
    }
    records: list[bytes | None] = [
        json.dumps({"sql": counted.get(place) or psoup.text(one)}).encode()
        for place, one in enumerate(bounds)
    ]
    topics = TopicNames()
    with brokers() as broker:
        client, kafka = broker.client, broker.kafka
        create_stream(client)
        load(kafka, values, 0)
        await_entered(client, rows)
        reader = states_reader(kafka, topics.status)
        producer = BatchProducer({"bootstrap.servers": kafka, "batch.size": 1 << 20})
        began = time.perf_counter()
        producer.send_many(topics.queries, records, keys)
        producer.flush(DEADLINE_S)
        await_running(reader, {key for key in keys if key is not None})
        seconds = time.perf_counter() - began
        reader.close()
        producer.close()
        check_counts(client, counted, handles, bounds, values)
        print(f"{bulk:,} through the topic in {seconds:.1f} s", file=sys.stderr)
        figures: dict[str, Figure] = {"bulk_per_s": bulk / seconds, "bulk_s": seconds}
        figures |= over_http(client, rng, times)
        broker.stop()
        began = time.perf_counter()
        broker.start()
        figures[f"restart_s.q{bulk}"] = time.perf_counter() - began
        check_counts(client, counted, handles, bounds, values)
    return figures


def check_counts(
    client: httpx.Client,
    counted: dict[int, str],
    handles: list[str],
    bounds: Bounds,
    values: npt.NDArray[np.integer],
) -> None:
    """Compare some answers with numpy. Raises RuntimeError."""
    for place, text in counted.items():
        answer = client.get(f"/queries/{handles[place]}/snapshot").raise_for_status().json()["rows"][0][0]
        expected = int(psoup.matches(bounds[place], values).sum())
        if not expected - ROWS_PER_MS <= answer <= expected:  # the last millisecond is not visible yet
            raise RuntimeError(f"{text} gives {answer}, numpy {expected}")


def over_http(client: httpx.Client, rng: np.random.Generator, times: int) -> dict[str, Figure]:
    """One query after another, each by a request of its own."""
    took = []
    for one in psoup.make_bounds(rng, times, grid=1):
        body = {"sql": psoup.text(one)}
        began = time.perf_counter()
        reply = client.post("/queries", json=body)
        took.append((time.perf_counter() - began) * 1e3)
        if reply.status_code != 201:
            raise RuntimeError(f"a query was refused: {reply.text}")
    return {"http_ms": median(took), "http_ms.p99": float(np.percentile(took, 99))}


def states_reader(kafka: str, topic: str) -> Consumer:
    """A reader of all the topic of states, from its beginning."""
    reader = Consumer({"bootstrap.servers": kafka, "group.id": "benchmark", "enable.auto.commit": False})
    partitions = reader.list_topics(topic, 30).topics[topic].partitions
    reader.assign([TopicPartition(topic, partition, OFFSET_BEGINNING) for partition in partitions])
    return reader


def await_running(reader: Consumer, keys: set[bytes]) -> None:
    """Until each of these queries runs. Raises RuntimeError where one fails or the time is over."""
    deadline = time.monotonic() + DEADLINE_S
    while keys and time.monotonic() < deadline:
        for message in reader.consume(10_000, 0.05):
            if message.error() is None and message.key() in keys and message.value() is not None:
                facts = json.loads(message.value())
                if facts["state"] == "ERROR":
                    raise RuntimeError(f"a query was refused: {facts}")
                if facts["state"] == "RUNNING":
                    keys.discard(message.key())
    if keys:
        raise RuntimeError(f"{len(keys)} queries do not run after {DEADLINE_S:.0f} s")
