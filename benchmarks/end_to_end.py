"""JSON records in Kafka to results kept, a second: a whole broker, with Kafka on the same cores.

The embedded Kafka and a `tureen serve` run as processes of their own. A stream of PSoup's workload (an id,
four columns of values 0..255, a timestamp) has 1,000 standing queries as in the benchmark `selections`. Some
records warm it up; then the worker process is held still, the topic is loaded, and the clock runs from the
moment the worker goes on until `/sources` says that every row has entered: consumed, decoded, matched,
journalled in transactions, and saved as it goes. The count of one query is checked with numpy.

Figures: `records_per_s.q<queries>`, the median of the rounds; `megabytes_per_s.q<queries>` of JSON;
`registrations_per_s`, over HTTP in bulk, until they stand.
"""

import argparse
import json
import os
import signal
import statistics
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
from benchmarks.report import Figure, Report
from benchmarks.selections import COLUMNS, make_bounds, text
from topics import embedded
from topics.admin import Admin
from topics.producer import BatchProducer
from tureen.protocol import new_handle

BEGIN_MS = 1_700_000_000_000
WARM_UP = 20_000
DEADLINE_S = 180.0

Values = npt.NDArray[np.int64]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options besides those that every benchmark has."""
    parser.add_argument("--queries", type=int, default=1_000, help="how many stand (default: %(default)s)")
    parser.add_argument("--records", type=int, default=1_500_000, help="of a round (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="(default: %(default)s)")


def run(options: argparse.Namespace) -> Report:
    """Measure the rounds in one broker."""
    rng = np.random.default_rng(options.seed)
    bounds = make_bounds(rng, options.queries)
    rates, megabytes = [], []
    with serving() as (broker, kafka):
        _create(broker)
        began_s = time.perf_counter()
        handle = _register(broker, bounds)
        registrations = options.queries / (time.perf_counter() - began_s)
        worker = _worker(broker)
        total, matching = 0, 0
        for number in range(options.rounds + 1):
            count = options.records if number else WARM_UP
            values = rng.integers(0, 256, (len(COLUMNS), count))
            matching += int(_matches(bounds[0], values).sum())
            worker.send_signal(signal.SIGSTOP)
            size = _load(kafka, values, total)
            total += count
            began_s = time.perf_counter()
            worker.send_signal(signal.SIGCONT)
            _await_entered(broker, total)
            seconds = time.perf_counter() - began_s
            if number:
                rates.append(count / seconds)
                megabytes.append(size / seconds / 1e6)
                print(f"round {number}: {rates[-1]:,.0f} records/s", file=sys.stderr)
        _check(broker, handle, bounds[0], matching)
    figures: dict[str, Figure] = {
        f"records_per_s.q{options.queries}": statistics.median(rates),
        f"megabytes_per_s.q{options.queries}": statistics.median(megabytes),
        "registrations_per_s": registrations,
    }
    return Report(figures)


@contextmanager
def serving(**settings: str) -> Iterator[tuple[httpx.Client, str]]:
    """(client of a broker that is ready, Kafka's address); both in a directory that goes away with them."""
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
        log = (directory / "broker.log").open("wb")
        process = subprocess.Popen(
            [sys.executable, "-m", "tureen", "serve"], env=environment, stdout=log, stderr=log
        )
        try:
            with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=120.0) as client:
                client.headers["X-Process"] = str(process.pid)
                _await_ready(client, process, directory / "broker.log")
                yield client, kafka
        finally:
            process.terminate()
            process.wait(30)
            log.close()
            embedded.down(directory)


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


def _worker(client: httpx.Client) -> psutil.Process:
    supervisor = psutil.Process(int(client.headers["X-Process"]))
    return next(child for child in supervisor.children() if child.cmdline()[-1] == "broker.worker")


def _create(client: httpx.Client) -> None:
    columns = ", ".join(f"{name} INTEGER" for name in COLUMNS)
    sql = f"CREATE STREAM psoup (id BIGINT, {columns}, ts TIMESTAMP NOT NULL) WITH (timestamp = 'ts')"
    client.post("/sources", json={"sql": sql}).raise_for_status()


def _register(client: httpx.Client, bounds: npt.NDArray[np.int64]) -> str:
    """Register all; the handle of one that counts what the first one selects."""
    lines = [json.dumps({"sql": text(one)}) for one in bounds[1:]]
    handle = new_handle()
    counting = text(bounds[0]).replace("a, b, c, d", "COUNT(*) AS n")
    lines.append(json.dumps({"sql": counting, "handle": handle}))
    reply = client.post(
        "/queries", content="\n".join(lines), headers={"Content-Type": "application/x-ndjson"}
    )
    states = [json.loads(line)["state"] for line in reply.text.splitlines()]
    assert states == ["RUNNING"] * len(lines), set(states)
    return handle


def _load(kafka: str, values: Values, first_id: int) -> int:
    """Write the records; their bytes."""
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


def _await_entered(client: httpx.Client, total: int) -> None:
    """Until every row but those of the last millisecond (the watermark is 1 ms behind) has entered."""
    deadline = time.monotonic() + DEADLINE_S
    while time.monotonic() < deadline:
        (source,) = client.get("/sources").json()["sources"]
        if source["rows"] + source["pending"] == total and source["pending"] <= 10:
            return
        time.sleep(0.02)
    raise SystemExit(f"not all records entered in {DEADLINE_S:.0f} s: {source}")


def _matches(bounds: npt.NDArray[np.int64], values: Values) -> npt.NDArray[np.bool_]:
    return np.logical_and.reduce([(lo <= v) & (v < hi) for (lo, hi), v in zip(bounds, values, strict=True)])


def _check(client: httpx.Client, handle: str, bounds: npt.NDArray[np.int64], matching: int) -> None:
    answer = client.get(f"/queries/{handle}/snapshot").json()
    # At most the ten rows of the last millisecond are not visible yet.
    assert matching - 10 <= answer["rows"][0][0] <= matching, (answer["rows"], matching)
