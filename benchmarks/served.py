"""A whole broker for benchmarks: an embedded Kafka and `tureen serve`, processes of their own.

What they write lies in a directory that goes away with them.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import numpy as np
import numpy.typing as npt
import psutil

from benchmarks.ports import free_ports
from benchmarks.psoup import COLUMNS
from topics import embedded
from topics.admin import Admin
from topics.producer import BatchProducer
from tureen.protocol import new_handle

BEGIN_MS = 1_700_000_000_000
DEADLINE_S = 180.0


class Broker:
    """A broker that is ready. client: of its HTTP interface. kafka: the address."""

    def __init__(self, client: httpx.Client, kafka: str, environment: dict[str, str], log: Path) -> None:
        self.client = client
        self.kafka = kafka
        self._environment = environment
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Returns once it is ready."""
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tureen", "serve"], env=self._environment, stdout=log, stderr=log
            )
        self.client.headers["X-Process"] = str(self._process.pid)
        _await_ready(self.client, self._process, self._log)

    def stop(self) -> None:
        """End it in good order. Harmless when done twice."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait(30)
            self._process = None


@contextmanager
def brokers(**settings: str) -> Iterator[Broker]:
    """A broker that can be stopped and started again; settings: its environment."""
    port, kafka_port, controller_port = free_ports(3)
    with tempfile.TemporaryDirectory(prefix="tureen-bench-", ignore_cleanup_errors=True) as temporary:
        directory = Path(temporary)
        kafka = embedded.up(directory, kafka_port, controller_port).bootstrap
        environment = os.environ | {
            "TUREEN_DATA_DIR": temporary,
            "TUREEN_HTTP_PORT": str(port),
            "TUREEN_KAFKA__BOOTSTRAP_SERVERS": kafka,
            **settings,
        }
        try:
            with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=120.0) as client:
                broker = Broker(client, kafka, environment, directory / "broker.log")
                try:
                    broker.start()
                    yield broker
                finally:
                    broker.stop()
        finally:
            embedded.down(directory)


@contextmanager
def serving(**settings: str) -> Iterator[tuple[httpx.Client, str]]:
    """(client of a broker that is ready, Kafka's address); settings: environment of the broker."""
    with brokers(**settings) as broker:
        yield broker.client, broker.kafka


def _await_ready(client: httpx.Client, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while time.monotonic() < deadline and process.poll() is None:
        try:
            if client.get("/readycheck").status_code == 200:
                return
        except httpx.HTTPError:
            pass
        time.sleep(0.05)
    raise SystemExit(f"the broker did not start:\n{log.read_text(errors='replace')[-2_000:]}")


def of_broker(client: httpx.Client) -> dict[str, psutil.Process]:
    """supervisor, control, worker."""
    supervisor = psutil.Process(int(client.headers["X-Process"]))
    return {"supervisor": supervisor} | {
        process.cmdline()[-1].removeprefix("broker."): process for process in supervisor.children()
    }


def worker(client: httpx.Client) -> psutil.Process:
    """The process that holds the engine."""
    return of_broker(client)["worker"]


def create_stream(client: httpx.Client, retain: str = "") -> None:
    """PSoup's columns, with an id, in event time. retain: how long rows stay, as SQL has it; empty: a day."""
    columns = ", ".join(f"{name} INTEGER" for name in COLUMNS)
    sql = f"CREATE STREAM psoup (id BIGINT, {columns}, ts TIMESTAMP NOT NULL) WITH (timestamp = 'ts')"
    if retain:
        sql += f" RETAIN {retain}"
    client.post("/sources", json={"sql": sql}).raise_for_status()


def load(kafka: str, values: npt.NDArray[np.integer], first_id: int) -> int:
    """Write rows, int[4, rows], as JSON, ten a millisecond; their bytes."""
    lines = [
        b'{"id":%d,"a":%d,"b":%d,"c":%d,"d":%d,"ts":%d}' % (i, a, b, c, d, BEGIN_MS + i // 10)
        for i, (a, b, c, d) in enumerate(zip(*values.tolist(), strict=True), first_id)
    ]
    producer = BatchProducer({"bootstrap.servers": kafka, "batch.size": 1 << 20})
    producer.send_many("psoup", lines)
    producer.close(DEADLINE_S)
    ends = Admin({"bootstrap.servers": kafka}).end_offsets("psoup")
    assert sum(ends.values()) == first_id + len(lines)
    return sum(map(len, lines))


def await_entered(client: httpx.Client, total: int) -> None:
    """Until every row but those of the last millisecond (the watermark is 1 ms behind) has entered."""
    deadline = time.monotonic() + DEADLINE_S
    while time.monotonic() < deadline:
        (source,) = client.get("/sources").json()["sources"]
        if source["rows"] + source["pending"] == total and source["pending"] <= 10:
            return
        time.sleep(0.02)
    raise SystemExit(f"not all records entered in {DEADLINE_S:.0f} s: {source}")


def await_told(client: httpx.Client) -> None:
    """Until all changes of what has entered are in their topics: some wait where a step made many."""
    deadline = time.monotonic() + DEADLINE_S
    while time.monotonic() < deadline:
        if not any(shard["changes_waiting"] for shard in client.get("/status").json()["shards"]):
            return
        time.sleep(0.02)
    raise SystemExit(f"changes still wait after {DEADLINE_S:.0f} s")


def register(client: httpx.Client, texts: list[str]) -> list[str]:
    """All of them in one request, until they stand; their handles. Raises RuntimeError where one does not."""
    handles = [str(new_handle()) for _ in texts]
    body = "\n".join(json.dumps({"sql": s, "handle": h}) for s, h in zip(texts, handles, strict=True))
    reply = client.post("/queries", content=body, headers={"Content-Type": "application/x-ndjson"})
    deadline_s = time.monotonic() + DEADLINE_S
    for line, handle in zip(reply.raise_for_status().text.splitlines(), handles, strict=True):
        told = json.loads(line)
        while told.get("state") == "PENDING" and time.monotonic() < deadline_s:
            time.sleep(0.05)
            told = client.get(f"/queries/{handle}").json()
        if told.get("state") != "RUNNING":
            raise RuntimeError(f"a query was refused: {told}")
    return handles
