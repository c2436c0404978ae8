"""A real broker in processes of its own, and what tests ask of it."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import httpx
import orjson
import psutil
from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

from tests.kafka import await_ended, free_ports, wait_until
from topics.admin import Admin
from topics.producer import BatchProducer
from tureen.protocol import TopicNames, query_id

READY_S = 180.0
FIRST_S = 180.0
"""Until an answer has its rows: kernels that were never used on a machine are compiled first, which takes
a minute where others have its cores.
"""
SHARDS = 4
JSON = {"Content-Type": "application/json"}


EVERY: list[Broker] = []
"""Those that may still run; a test's own are stopped after it."""


@contextlib.contextmanager
def cleaned_behind() -> Iterator[None]:
    """Brokers that are started within are gone after it, and so are streams on those that stay: the clocks of
    hundreds of streams cost the other tests a core.
    """
    before = {one: one.sources() for one in EVERY}
    yield
    for one in [*EVERY]:  # those that are closed leave it
        if one not in before:
            one.close()
        else:
            one.drop([name for name in one.sources() if name not in before[one]])


def unique_name() -> str:
    """A stream and topic name that no other test uses."""
    return f"s{uuid.uuid4().hex[:10]}"


COSTS = tempfile.TemporaryDirectory(prefix="tureen-costs-")
"""Where the brokers of a run find what the first of them has measured."""


class Broker:
    """``tureen serve`` on a Kafka and a directory; started, stopped and killed as the test likes."""

    def __init__(self, bootstrap: str, data_dir: Path, service_id: str, **settings: object) -> None:
        self.bootstrap = bootstrap
        self.data_dir = data_dir
        self.names = TopicNames(service_id)
        EVERY.append(self)
        self.settings = {name: str(value) for name, value in settings.items()}
        (self.port,) = free_ports(1)
        self.url = f"http://127.0.0.1:{self.port}"
        self.process: subprocess.Popen[bytes] | None = None
        self.log = data_dir.parent / f"{data_dir.name}.log"
        self.producer = BatchProducer({"bootstrap.servers": bootstrap})
        self.admin = Admin({"bootstrap.servers": bootstrap})

    # --- life -------------------------------------------------------------------------------------

    def environment(self) -> dict[str, str]:
        """Few shards, because every shard has its partitions and stores; modules are compiled for the first
        broker only, whatever the run was told to leave on disk."""
        clean = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith("TUREEN_") and name != "PYTHONDONTWRITEBYTECODE"
        }
        own = {
            "SHARDS": str(SHARDS),
            "DATA_DIR": str(self.data_dir),
            "SERVICE_ID": self.names.service_id,
            "HTTP_PORT": str(self.port),
            "KAFKA__BOOTSTRAP_SERVERS": self.bootstrap,
            "LOG_FORMAT": "json",
            "RETRY_MS": "100",
            "OUTCOME_WAIT_MS": "45000",  # however busy the machine is, a write is answered by its outcome
            "PUBLISH_TIMEOUT_MS": "30000",
            "COSTS_FILE": str(Path(COSTS.name) / "costs.json"),
        } | self.settings
        return clean | {f"TUREEN_{name}": value for name, value in own.items()}

    def launch(self, **popen: Any) -> subprocess.Popen[bytes]:
        """Start it, without waiting for anything."""
        with self.log.open("ab") as log:
            self.http = httpx.Client(base_url=self.url, timeout=60.0)
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-m", "tureen", "serve"],
                env=self.environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                **popen,
            )
        return self.process

    def start(self, **popen: Any) -> Broker:
        self.launch(**popen)
        self.await_ready()
        return self

    def await_ready(self) -> None:
        def ready() -> bool:
            assert self.process is not None
            assert self.process.poll() is None, self.tail()
            return self.readiness()[0] == 200

        wait_until(ready, READY_S, "the broker is ready")

    def readiness(self) -> tuple[int, dict[str, Any]]:
        try:
            reply = self.http.get("/readycheck")
        except httpx.HTTPError:
            return 0, {}
        return reply.status_code, reply.json()

    def stop(self) -> int:
        """SIGTERM; its exit code."""
        assert self.process is not None
        self.process.terminate()
        code = self.process.wait(READY_S)
        self.process = None
        return code

    def children(self) -> dict[str, psutil.Process]:
        """Process by module: broker.worker, broker.control."""
        assert self.process is not None
        found = {}
        with contextlib.suppress(psutil.NoSuchProcess):
            for child in psutil.Process(self.process.pid).children():
                if command := child.cmdline():  # a child that has just died has none
                    found[command[-1]] = child
        return found

    def kill(self) -> None:
        """kill -9 of all its processes at once; returns when they are gone."""
        assert self.process is not None
        processes = [psutil.Process(self.process.pid), *self.children().values()]
        for process in processes:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.send_signal(signal.SIGKILL)
        self.process.wait(READY_S)
        wait_until(lambda: not any(lives(process) for process in processes), what="all are gone")
        self.process = None

    def close(self) -> None:
        if self in EVERY:
            EVERY.remove(self)
        if self.process is not None and self.process.poll() is None:
            self.stop()
        self.http.close()

    def tail(self) -> str:
        return self.log.read_text(errors="replace")[-3_000:] if self.log.exists() else ""

    def events(self) -> list[dict[str, Any]]:
        """Log lines that are events."""
        found = []
        for line in self.log.read_text(errors="replace").splitlines():
            with contextlib.suppress(ValueError):
                found.append(json.loads(line))
        return found

    # --- what is asked of it ----------------------------------------------------------------------

    def run(self, sql: str) -> tuple[int, dict[str, Any]]:
        """What POST /statements answers."""
        reply = self.http.post("/statements", json={"sql": sql})
        return reply.status_code, reply.json()

    def create(self, sql: str) -> dict[str, Any]:
        reply = self.http.post("/sources", json={"sql": sql})
        assert reply.status_code in (200, 201), reply.text
        facts: dict[str, Any] = reply.json()
        return facts

    def register(self, sql: str, handle: str | None = None, **options: object) -> str:
        """The handle of a query that stands."""
        said = (
            {"sql": sql} | ({"handle": handle} if handle else {}) | ({"options": options} if options else {})
        )
        reply = self.http.post("/queries", json=said)
        assert reply.status_code in (200, 201, 202), reply.text
        known = str(reply.json()["handle"])
        if reply.status_code == 202:  # a child that was just started may take longer than a request waits
            wait_until(lambda: self.state(known) == "RUNNING", READY_S, f"{known} stands")
        return known

    def snapshot(self, handle: str, **parameters: Any) -> dict[str, Any]:
        reply = self.http.get(f"/queries/{handle}/snapshot", params=parameters)
        assert reply.status_code == 200, reply.text
        facts: dict[str, Any] = reply.json()
        return facts

    def rows(self, handle: str) -> list[list[Any]]:
        rows: list[list[Any]] = self.snapshot(handle)["rows"]
        return rows

    def await_rows(self, handle: str, count: int, deadline_s: float = FIRST_S) -> list[list[Any]]:
        wait_until(lambda: len(self.rows(handle)) >= count, deadline_s, f"{count} rows")
        return self.rows(handle)

    def await_read(self, *names: str) -> None:
        """Wait until these streams and tables have read all that their topics hold now."""
        for name in names:
            ends = self.admin.end_offsets(self.source(name)["topic"])

            def is_read(name: str = name, ends: dict[int, int] = ends) -> bool:
                read = self.source(name)["next_offsets"]
                return all(read.get(str(number), 0) >= end for number, end in ends.items())

            wait_until(is_read, FIRST_S, f"{name} has read all")

    def source(self, name: str) -> dict[str, Any]:
        sources = self.http.get("/sources").json()["sources"]
        return {source["name"]: source for source in sources}[name]

    def sources(self) -> list[str]:
        """Names of streams, tables and views; none where the broker does not answer."""
        with contextlib.suppress(httpx.HTTPError):
            reply = self.http.get("/sources")
            if reply.status_code == 200:
                return [source["name"] for source in reply.json()["sources"]]
        return []

    def drop(self, names: Iterable[str]) -> None:
        """Each with all that reads it, as far as that can be."""
        for name in names:
            with contextlib.suppress(httpx.HTTPError):
                self.http.delete(f"/sources/{name}", params={"cascade": True})

    def state(self, handle: str) -> str | None:
        reply = self.http.get(f"/queries/{handle}")
        return reply.json()["state"] if reply.status_code == 200 else None

    # --- Kafka ------------------------------------------------------------------------------------

    def send(self, topic: str, values: Iterable[Any], partition: int = 0) -> None:
        """Objects as JSON, bytes as they are."""
        data = [value if isinstance(value, bytes) else orjson.dumps(value) for value in values]
        self.producer.send_many(topic, data, partitions=[partition] * len(data))
        self.producer.flush()

    def publish(self, handle: str, value: Any) -> None:
        """A record on the queries topic; None removes."""
        data = value if value is None or isinstance(value, bytes) else orjson.dumps(value)
        self.producer.send(self.names.queries, data, query_id(handle).encode())
        self.producer.flush()

    def records(self, topic: str) -> list[Any]:
        """Everything that stands in a topic now, as :func:`read_all`."""
        return read_all(self.bootstrap, self.admin, topic)

    def status_topic(self) -> dict[str, list[dict[str, Any] | None]]:
        """query id -> every status written for it."""
        found: dict[str, list[dict[str, Any] | None]] = {}
        for record in self.records(self.names.status):
            value = record.value()
            found.setdefault(record.key().decode(), []).append(None if value is None else json.loads(value))
        return found


def read_all(bootstrap: str, admin: Admin, topic: str) -> list[Any]:
    """Committed records of a topic, from first to last; :func:`await_ended` comes first."""
    await_ended(bootstrap, topic)
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": uuid.uuid4().hex,
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "auto.offset.reset": "earliest",
        }
    )
    open_partitions = set(range(admin.partitions(topic)))
    consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in open_partitions])
    found = []

    def at_end() -> bool:
        for message in consumer.consume(1_000, 0.2):
            if message.error() is None:
                found.append(message)
            else:
                open_partitions.discard(message.partition())
        return not open_partitions

    try:
        wait_until(at_end, what=f"the end of {topic}")
    finally:
        consumer.close()
    return found


def lives(process: psutil.Process) -> bool:
    """Whether a process runs; one that nobody has waited for yet does not."""
    with contextlib.suppress(psutil.NoSuchProcess):
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    return False


@contextlib.contextmanager
def broker(bootstrap: str, data_dir: Path, service_id: str, **settings: object) -> Iterator[Broker]:
    """A started broker, stopped at the end."""
    one = Broker(bootstrap, data_dir, service_id, **settings)
    try:
        yield one.start()
    finally:
        one.close()
