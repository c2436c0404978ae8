"""A real broker on the run's Kafka, one for all tests of the client."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
from confluent_kafka import Producer

import tureen
from tests.kafka import free_ports, wait_until

READY_S = 180.0


@dataclass(frozen=True)
class Broker:
    """Where it is. ``environment``: for a `tureen` that is to find it."""

    url: str
    bootstrap: str
    service_id: str

    @property
    def environment(self) -> dict[str, str]:
        return {
            **os.environ,
            "TUREEN_URL": self.url,
            "TUREEN_SERVICE_ID": self.service_id,
            "TUREEN_KAFKA__BOOTSTRAP_SERVERS": self.bootstrap,
        }

    def produce(self, topic: str, records: Sequence[Mapping[str, object]]) -> None:
        producer = Producer({"bootstrap.servers": self.bootstrap, "linger.ms": 1})
        for record in records:
            producer.produce(topic, json.dumps(record))
        assert producer.flush(60) == 0


@pytest.fixture(scope="package")
def broker(kafka: str) -> Iterator[Broker]:
    with tempfile.TemporaryDirectory(prefix="tureen-client-") as directory:
        port = free_ports(1)[0]
        found = Broker(f"http://127.0.0.1:{port}", kafka, f"c{uuid.uuid4().hex[:12]}")
        log_path = Path(directory) / "broker.log"
        environment = {
            **found.environment,
            "TUREEN_DATA_DIR": directory,
            "TUREEN_HTTP_PORT": str(port),
            "TUREEN_OUTCOME_WAIT_MS": "25000",  # as long as the client waits, almost
            "TUREEN_PUBLISH_TIMEOUT_MS": "20000",
        }
        with log_path.open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "tureen", "serve"], env=environment, stdout=log, stderr=log
            )

        def ready() -> bool:
            assert process.poll() is None, log_path.read_text()
            try:
                return httpx.get(f"{found.url}/readycheck", trust_env=False).status_code == 200
            except httpx.HTTPError:
                return False

        try:
            try:
                wait_until(ready, READY_S, "the broker is ready")
            except AssertionError:
                print(log_path.read_text())
                raise
            yield found
        finally:
            process.terminate()
            process.wait(READY_S)


@pytest.fixture
def client(broker: Broker) -> Iterator[tureen.Client]:
    with tureen.connect(broker.url) as connected:
        yield connected


@pytest.fixture(autouse=True)
def _streams_dropped(request: pytest.FixtureRequest) -> Iterator[None]:
    """Streams that a test made on the broker are gone after it: their clocks cost the other tests time."""
    if "broker" not in request.fixturenames:
        yield
        return
    if "trades" in request.fixturenames:
        request.getfixturevalue("trades")  # is there for all
    with tureen.connect(request.getfixturevalue("broker").url) as connected:
        before = {one.name for one in connected.sources()}
        yield
        for name in [one.name for one in connected.sources() if one.name not in before]:
            with suppress(tureen.TureenError):  # it went with what it reads
                connected.drop(name, cascade=True)


@pytest.fixture(scope="package")
def trades(broker: Broker) -> str:
    """A stream with ten rows, all of them entered: prices 0 to 9, one of them NULL. Only to be read."""
    name = f"trades_{uuid.uuid4().hex[:8]}"
    rows = [
        {"symbol": "ab"[i % 2], "price": None if i == 3 else float(i), "at": 1_000_000 + 1_000 * i}
        for i in range(10)
    ]
    with tureen.connect(broker.url) as client:
        client.create(
            f"CREATE STREAM {name} (symbol STRING NOT NULL, price DOUBLE, at TIMESTAMP NOT NULL) "
            f"WITH (topic = '{name}', timestamp = 'at', idle_timeout = '100 milliseconds') RETAIN 1 DAY"
        )
        broker.produce(name, rows)
        wait_until(
            lambda: any(one.name == name and one.rows == 10 for one in client.sources()),
            what="the rows are in",
        )
    return name
