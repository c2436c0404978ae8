"""A real Kafka for the tests.

One node for the whole run: the one that ``TUREEN_TEST_BOOTSTRAP`` names, else a container where a Docker
engine answers (one for each process of the run), else the embedded node on free ports in a temporary
directory. Tests that stop, kill or restart Kafka take an embedded node of their own.
"""

from __future__ import annotations

import os
import random
import signal
import socket
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

from confluent_kafka import IsolationLevel, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from topics.embedded import Running, down, up

IMAGE = "confluentinc/cp-kafka:7.9.0"
DEADLINE_S = 90.0
"""Until what a test waits for is so: only who fails waits so long, and a machine may have other work."""
STARTED_S = 240.0
"""Until a node answers, as for :data:`DEADLINE_S`."""
ENDED_S = 10.0
"""Until transactions have ended; one of a process that was killed may stay open longer."""


PORTS = range(12_000, 32_000)
"""Below those that systems give to outgoing connections, one of which could take a stopped node's port."""


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens on; all are held until all are known, so they differ."""
    held: list[socket.socket] = []
    found: list[int] = []
    try:
        while len(found) < count:
            one, port = socket.socket(), random.SystemRandom().choice(PORTS)
            held.append(one)
            with suppress(OSError):
                one.bind(("127.0.0.1", port))
                found.append(port)
    finally:
        for one in held:
            one.close()
    return found


def wait_until(condition: Callable[[], object], deadline_s: float = DEADLINE_S, what: str = "") -> None:
    """Return as soon as the condition is true; fail when it does not become so in time."""
    end = time.monotonic() + deadline_s
    pause_s = 0.005
    while not condition():
        assert time.monotonic() < end, f"not within {deadline_s} s: {what or condition}"
        time.sleep(pause_s)
        pause_s = min(1.3 * pause_s, 0.2)  # who waits long leaves the machine to what it waits for


@cache
def _client(bootstrap: str) -> AdminClient:
    return AdminClient({"bootstrap.servers": bootstrap})


MADE_AGAIN = (
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError.LEADER_NOT_AVAILABLE,
)
"""What is answered of a topic that was deleted and made again a moment ago."""


def _ends(bootstrap: str, topic: str, level: IsolationLevel) -> dict[int, int]:
    """partition -> the offset behind what is seen at an isolation level."""
    client = _client(bootstrap)
    found: dict[int, int] = {}

    def is_told() -> bool:
        partitions = client.list_topics(topic, timeout=DEADLINE_S).topics[topic].partitions
        asked = {TopicPartition(topic, number): OffsetSpec.latest() for number in partitions}  # type: ignore[no-untyped-call]
        told = client.list_offsets(asked, isolation_level=level, request_timeout=DEADLINE_S)
        try:
            found.update({place.partition: future.result().offset for place, future in told.items()})
        except KafkaException as refused:
            if refused.args[0].code() not in MADE_AGAIN:
                raise
            return False
        return True

    wait_until(is_told, what=f"the ends of {topic}")
    return found


def await_ended(bootstrap: str, topic: str) -> None:
    """Return once the transactions that are open on a topic now have ended, or after ``ENDED_S``.

    Whoever commits is told so before the marker stands in the topic, and readers see its records.
    """
    ends = _ends(bootstrap, topic, IsolationLevel.READ_UNCOMMITTED)

    def ended() -> bool:
        seen = _ends(bootstrap, topic, IsolationLevel.READ_COMMITTED)
        return all(seen[number] >= end for number, end in ends.items())

    with suppress(AssertionError):
        wait_until(ended, ENDED_S)


def takes(bootstrap: str, topic: str, size: int) -> bool:
    """Whether a topic takes a record of so many bytes now, as a node does a moment after it was altered. The
    record's transaction is rolled back, so that nobody sees it.
    """
    failed: list[KafkaError] = []
    one = Producer(
        {
            "bootstrap.servers": bootstrap,
            "transactional.id": f"probe-{random.SystemRandom().getrandbits(64):x}",
            "message.max.bytes": 2 * size + 1_000_000,
            "log_level": 0,
        }
    )
    one.init_transactions(DEADLINE_S)
    one.begin_transaction()
    one.produce(
        topic,
        random.SystemRandom().randbytes(size),  # nothing makes it smaller
        b"probe",
        on_delivery=lambda error, _: error and failed.append(error),
    )
    with suppress(KafkaException):  # as flush raises where the transaction is broken by then
        one.flush(DEADLINE_S)
    one.abort_transaction(DEADLINE_S)
    assert all(error.code() == KafkaError.MSG_SIZE_TOO_LARGE for error in failed), failed
    return not failed


class Node:
    """An embedded node that a test may stop, kill and start again; its address stays the same."""

    def __init__(self, data_dir: Path, ports: Sequence[int] = ()) -> None:
        self.data_dir = data_dir
        self.ports = tuple(ports or free_ports(2))

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.ports[0]}"

    def start(self) -> Running:
        return up(self.data_dir, *self.ports, timeout_s=STARTED_S)

    def stop(self) -> None:
        down(self.data_dir)

    def kill(self) -> None:
        """As by kill -9; returns when the process is gone."""
        os.kill(self.start().pid, signal.SIGKILL)
        wait_until(lambda: not down(self.data_dir), what="the killed node is gone")


@contextmanager
def node(data_dir: Path | None = None) -> Iterator[Node]:
    """A started embedded node of one's own, stopped at the end."""
    with tempfile.TemporaryDirectory(prefix="tureen-kafka-", ignore_cleanup_errors=True) as temporary:
        private = Node(data_dir or Path(temporary))
        private.start()
        try:
            yield private
        finally:
            private.stop()


@contextmanager
def session(shared: Node | None) -> Iterator[str]:
    """The bootstrap address of the run's node. ``shared``: where several processes run the tests, theirs."""
    if given := os.environ.get("TUREEN_TEST_BOOTSTRAP"):
        yield given
    elif docker_answers():
        from testcontainers.kafka import KafkaContainer

        container = KafkaContainer(IMAGE).with_kraft()
        container.with_env("KAFKA_AUTO_CREATE_TOPICS_ENABLE", "false")
        container.with_env("KAFKA_TRANSACTION_STATE_LOG_REPLICATION_FACTOR", "1")
        container.with_env("KAFKA_TRANSACTION_STATE_LOG_MIN_ISR", "1")
        container.with_env("KAFKA_MESSAGE_MAX_BYTES", str(8 * 1024 * 1024))
        with container as running:
            yield running.get_bootstrap_server()
    elif shared is not None:
        shared.start()  # or find it running; it is stopped after the last process
        yield shared.bootstrap
    else:
        with node() as embedded:
            yield embedded.bootstrap


def docker_answers() -> bool:
    """Whether a Docker engine can run containers here."""
    try:
        import docker

        client = docker.from_env(timeout=3)
        try:
            return bool(client.ping())
        finally:
            client.close()
    except Exception:  # noqa: BLE001 - whatever is wrong with Docker, the embedded node does
        return False
