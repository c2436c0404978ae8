"""Readers that share consumers: each has every record of its partitions once, in order, whatever happens."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.kafka import Node, wait_until
from tests.topics.consumer import write
from topics.admin import Admin
from topics.channels import Route
from topics.consumer import BatchConsumer, OffsetLost
from topics.producer import BatchProducer
from topics.shared import SharedConsumers

BEGIN = -1


def settings(bootstrap: str) -> dict[str, str]:
    return {"bootstrap.servers": bootstrap}


@pytest.fixture
def pool(kafka: str) -> Iterator[SharedConsumers]:
    one = SharedConsumers(settings(kafka), quiet_after_s=0.3, own_max=2, channel_bytes=10_000)
    yield one
    one.close()


class Reader:
    """Reads topics by a channel and notes what came."""

    def __init__(self, pool: SharedConsumers, kafka: str, *topics: str, partitions: int = 1) -> None:
        self.woken = 0
        self.channel = pool.channel(self._wake)
        self.consumer = BatchConsumer(settings(kafka), channel=self.channel)
        self.values: dict[tuple[str, int], list[bytes | None]] = {}
        self.topics = topics
        for topic in topics:
            self.consumer.add(topic, dict.fromkeys(range(partitions), BEGIN))

    def _wake(self) -> None:
        self.woken += 1

    def poll(self, records_max: int = 1_000) -> int:
        count = 0
        for polled in self.consumer.poll(records_max, 0):
            count += len(polled)
            for value, partition in zip(polled.values, polled.partition.tolist(), strict=True):
                self.values.setdefault((polled.topic, partition), []).append(value)
        return count

    def is_read(self) -> bool:
        self.poll()
        return not any(self.consumer.lagging(topic) for topic in self.topics)


def made(kafka: str, service_id: str, count: int, partitions: int = 1) -> list[str]:
    admin = Admin(settings(kafka))
    names = [f"{service_id}-{number}" for number in range(count)]
    for name in names:
        admin.ensure_source_topic(name, partitions)
    return names


@given(
    sizes=st.lists(st.integers(0, 30), min_size=1, max_size=30),
    runs=st.lists(st.integers(1, 5), min_size=1),
    records_max=st.integers(1, 40),
    bytes_max=st.integers(1, 60),
)
def test_what_is_taken_at_once_has_so_many_bytes_or_is_one_record(
    sizes: list[int], runs: list[int], records_max: int, bytes_max: int
) -> None:
    pool = SharedConsumers({})
    channel = pool.channel(lambda: None, bytes_max)
    route, left = Route(channel, ("t", 0), 0), [b"." * size for size in sizes]
    for count in [*runs, len(sizes)]:
        run, left = left[:count], left[count:]
        if run:
            with pool.lock:
                channel.give(route, run, len(run))
    taken = []
    while not channel.is_empty:
        one = channel.consume(records_max, 0)
        assert len(one) == 1 or (0 < len(one) <= records_max and sum(map(len, one)) <= bytes_max)
        rest = sizes[len(taken) + len(one) :]
        assert len(one) == records_max or not rest or sum(map(len, one)) + rest[0] > bytes_max
        taken += one
    assert taken == [b"." * size for size in sizes]
    assert (channel.records, channel.bytes, pool.bytes) == (0, 0, 0)


def kinds_of(readers: list[Reader]) -> set[str]:
    return {one.channel.fetcher.kind for one in readers if one.channel.fetcher is not None}


def test_every_record_comes_once_in_order_while_channels_go_from_fetcher_to_fetcher(
    kafka: str, service_id: str, pool: SharedConsumers
) -> None:
    names = made(kafka, service_id, 6, partitions=2)
    readers = [Reader(pool, kafka, name, partitions=2) for name in names]
    readers += [Reader(pool, kafka, names[0], partitions=2)]  # a topic that two read
    producer = BatchProducer(settings(kafka))
    rng = random.Random(5)
    sent: dict[tuple[str, int], list[bytes]] = {}
    kinds = set()
    for burst in range(12):
        for name in names[: rng.randrange(7)]:
            for partition in range(2):
                values = [b"%d-%d" % (burst, n) + b"." * 50 for n in range(rng.choice([1, 3, 2_000]))]
                sent.setdefault((name, partition), []).extend(values)
                producer.send_many(name, values, partitions=[partition] * len(values))
        producer.flush()
        wait_s = rng.choice([0.0, 0.5])
        wait_until(lambda: not sum(reader.poll() for reader in readers))
        kinds |= kinds_of(readers)
        if wait_s:
            quiet = rng.choice(readers)
            with quiet.channel.changed:
                quiet.channel.changed.wait(wait_s)
    for reader in readers:
        (name,) = reader.topics
        wanted = {key: values for key, values in sent.items() if key[0] == name}
        wait_until(lambda: reader.is_read() and reader.values == wanted)  # noqa: B023
        assert reader.woken
    producer.close()
    assert "own" in kinds
    wait_until(lambda: [r.poll() for r in readers] and kinds_of(readers) == {"quiet"})
    wait_until(lambda: all(reader.is_read() for reader in readers) and pool.bytes == 0)


def test_records_that_come_often_are_gathered(kafka: str, service_id: str) -> None:
    pool = SharedConsumers(settings(kafka), quiet_after_s=1.5, gather_ms=100)
    names = made(kafka, service_id, 3)
    often, seldom = [Reader(pool, kafka, name) for name in names[:2]], Reader(pool, kafka, names[2])
    producer = BatchProducer({**settings(kafka), "linger.ms": 0})
    sent: list[bytes] = []

    def write_some() -> None:
        for _ in range(5):
            sent.append(b"%d" % len(sent))
            for name in names[:2]:
                producer.send(name, sent[-1])
            producer.flush()
            time.sleep(0.01)
        for reader in (*often, seldom):
            reader.poll()

    def wait_for(done: Callable[[], bool]) -> None:
        def written() -> bool:
            write_some()
            return done()

        wait_until(written)

    wait_for(lambda: kinds_of(often) == {"steady"})
    wait_for(lambda: all(reader.values.get((name, 0)) for reader, name in zip(often, names, strict=False)))
    before, began_s = often[0].woken, time.monotonic()
    wait_for(lambda: time.monotonic() > began_s + 1.0)
    passed_s = time.monotonic() - began_s
    assert kinds_of(often) == {"steady"}
    assert often[0].woken - before < 25 * passed_s  # 10 answers a second, in two parts at most
    pool.gathering.rest_s = 0.15  # what two fetches brought comes together
    often[1].channel.hurry(is_hurried=True)
    wait_for(lambda: kinds_of(often[1:]) == {"active"})
    began_s = time.monotonic()
    wait_for(lambda: time.monotonic() > began_s + 1.2)
    assert kinds_of(often[1:]) == {"active"}
    assert kinds_of(often[:1]) == {"steady"}
    write(kafka, names[2], [b"1"])
    wait_until(seldom.poll)
    assert "steady" not in kinds_of([seldom])
    for reader, name in zip(often, names, strict=False):
        wait_until(lambda: reader.is_read() and reader.values == {(name, 0): sent})  # noqa: B023
    wait_until(lambda: [reader.poll() for reader in often] and kinds_of(often) == {"quiet"})
    write(kafka, names[0], [b"last"])
    wait_until(lambda: often[0].is_read() and often[0].values == {(names[0], 0): [*sent, b"last"]})
    producer.close()
    pool.close()


def test_a_reader_that_takes_nothing_holds_back_no_other(
    kafka: str, service_id: str, pool: SharedConsumers
) -> None:
    names = made(kafka, service_id, 5)
    slow = [Reader(pool, kafka, name) for name in names[:4]]
    quick = Reader(pool, kafka, names[4])
    for name in names[:4]:
        write(kafka, name, [b"%07d" % n + b"." * 100 for n in range(20_000)])
    wait_until(lambda: all(reader.channel.is_behind() for reader in slow))
    wait_until(lambda: sum(reader.channel.parked for reader in slow) == 2)
    write(kafka, names[4], [b"1"])
    wait_until(quick.poll)
    assert quick.values == {(names[4], 0): [b"1"]}
    for reader in slow:
        assert reader.consumer.lagging(reader.topics[0])
    for reader in slow:
        wait_until(lambda: reader.poll() == 0 and reader.is_read())  # noqa: B023
        ((_, values),) = reader.values.items()
        assert [int(value[:7]) for value in values if value] == list(range(20_000))
    wait_until(lambda: [reader.poll() for reader in (*slow, quick)] and pool.bytes == 0)


def test_a_reader_that_goes_and_comes_again_begins_where_it_says(
    kafka: str, service_id: str, pool: SharedConsumers
) -> None:
    (name,) = made(kafka, service_id, 1)
    write(kafka, name, [b"%d" % n for n in range(100)])
    reader = Reader(pool, kafka, name)
    wait_until(reader.poll)
    for begin in (0, 50, 99, 0):
        reader.consumer.add(name, {0: begin})
        reader.values.clear()
        wait_until(reader.is_read)
        assert reader.values == {(name, 0): [b"%d" % n for n in range(begin, 100)]}
    reader.consumer.close()
    again = Reader(pool, kafka, name)
    wait_until(again.is_read)
    assert again.values == {(name, 0): [b"%d" % n for n in range(100)]}


def test_an_offset_that_is_not_there_is_told_to_its_reader_alone(
    kafka: str, service_id: str, pool: SharedConsumers
) -> None:
    names = made(kafka, service_id, 2)
    lost, other = (
        BatchConsumer(settings(kafka), channel=pool.channel(lambda: None)),
        Reader(pool, kafka, names[1]),
    )
    lost.add(names[0], {0: 77})

    def told() -> bool:
        try:
            assert lost.poll(10, 0.05) == []
        except OffsetLost as error:
            return (error.topic, error.partition, error.offset) == (names[0], 0, 77)
        return False

    wait_until(told)
    write(kafka, names[1], [b"1"])
    wait_until(other.poll)
    assert lost.lagging(names[0]) == {0}


def test_a_topic_that_is_gone_holds_back_no_other(kafka: str, service_id: str, pool: SharedConsumers) -> None:
    names = made(kafka, service_id, 2)
    readers = [Reader(pool, kafka, name) for name in names]
    for reader in readers:
        wait_until(reader.is_read)
    Admin(settings(kafka)).delete_topics([names[0]])
    for number in range(3):
        write(kafka, names[1], [b"%d" % number])
        wait_until(lambda: readers[0].poll() or readers[1].poll())
    assert readers[1].values == {(names[1], 0): [b"0", b"1", b"2"]}


def test_while_kafka_is_away_no_partition_counts_as_read(kafka_node: Node, service_id: str) -> None:
    own = kafka_node.bootstrap
    pool = SharedConsumers(settings(own))
    (name,) = made(own, service_id, 1)
    reader = Reader(pool, own, name)
    wait_until(reader.is_read)
    kafka_node.stop()
    wait_until(lambda: reader.poll() or pool.unavailable)
    assert not reader.is_read()
    kafka_node.start()
    write(own, name, [b"1"])

    def is_read_again() -> bool:
        pool.answered()  # as the lookout says it
        return reader.is_read()

    wait_until(is_read_again)
    assert reader.values == {(name, 0): [b"1"]}
    pool.close()


PAUSED = """
import sys, time
from topics.consumer import BatchConsumer
from topics.shared import SharedConsumers

settings = {"bootstrap.servers": sys.argv[1]}
reader = BatchConsumer(settings, channel=SharedConsumers(settings).channel(lambda: None))
reader.add(sys.argv[2], {0: -1})
seen = 0
while seen < 2:
    began_s = time.monotonic()
    lags = bool(reader.lagging(sys.argv[2]))
    stood_still = time.monotonic() - last_s > 1.5 if seen else False
    seen += sum(map(len, reader.poll(10, 0)))
    last_s = time.monotonic()
    if seen == 1 and not reader.lagging(sys.argv[2]) and not stood_still:
        print("read", flush=True)
        time.sleep(0.01)
    if stood_still:
        print("lags" if lags else "does not lag", flush=True)
print("done", flush=True)
"""


def test_a_process_that_stood_still_takes_no_partition_for_read(kafka: str, service_id: str) -> None:
    (name,) = made(kafka, service_id, 1)
    write(kafka, name, [b"1"])
    process = subprocess.Popen([sys.executable, "-c", PAUSED, kafka, name], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "read\n"
    process.send_signal(signal.SIGSTOP)
    stopped = os.times().elapsed
    write(kafka, name, [b"2"])
    wait_until(lambda: os.times().elapsed - stopped > 2.0)
    process.send_signal(signal.SIGCONT)
    told = process.communicate(timeout=30)[0].splitlines()
    assert "does not lag" not in told
    assert told[-1] == "done"
