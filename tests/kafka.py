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
from pathlib import Path

from topics.embedded import Running, down, up

IMAGE = "confluentinc/cp-kafka:7.9.0"
DEADLINE_S = 30.0


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


class Node:
    """An embedded node that a test may stop, kill and start again; its address stays the same."""

    def __init__(self, data_dir: Path, ports: Sequence[int] = ()) -> None:
        self.data_dir = data_dir
        self.ports = tuple(ports or free_ports(2))

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.ports[0]}"

    def start(self) -> Running:
        return up(self.data_dir, *self.ports)

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
