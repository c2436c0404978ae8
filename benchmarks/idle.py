"""An idle broker: the memory of its processes, and the share of a core that they take with many streams.

A broker is started on an empty data directory and Kafka, one stream is created, one query registered, some
records pass so that the kernels are loaded; then it has nothing to do. `idle_rss_mb` is the sum of the
resident sets (RSS) of its processes (supervisor, control, one worker; Kafka not counted), which counts pages
that they share as often as they are shared; `idle_pss_mb` counts each once (Linux alone). `<process>_rss_mb`
are the parts. `empty_rss_mb` is the sum before the stream.

Then as many streams are created as `--streams` says, half of them in event time and half in arrival time, and
each gets a record. `cpu_share` is what the worker takes of one core over `--seconds` in which nothing comes,
in percent; `control_cpu_share`, `supervisor_cpu_share` and `kafka_cpu_share` are the others' shares.
`queried_cpu_share` is the worker's after one query over each stream was registered. `threads` and
`open_files` are the worker's, `create_s` is how long the streams took to create.
"""

import argparse
import sys
import time
from collections.abc import Iterable

import httpx
import psutil

from benchmarks.report import Figure, Report
from benchmarks.served import of_broker, serving
from benchmarks.shares import of_kafka, shares
from benchmarks.streams import await_rows, create
from topics.producer import BatchProducer

SETTLE_S = 3.0
QUIET_S = 15.0
"""Until streams without records count as quiet."""
MB = 1e6


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options besides those that every benchmark has."""
    parser.add_argument("--streams", type=int, default=100, help="(default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=20.0, help="of each measurement of shares")


def run(options: argparse.Namespace) -> Report:
    """Start, settle, measure."""
    figures: dict[str, Figure] = {}
    with serving() as (client, kafka):
        processes = of_broker(client)
        time.sleep(SETTLE_S)
        figures["empty_rss_mb"] = _resident_mb(processes.values())
        _use(client, kafka)
        time.sleep(SETTLE_S)
        figures["idle_rss_mb"] = _resident_mb(processes.values())
        if sys.platform == "linux":
            figures["idle_pss_mb"] = sum(p.memory_full_info().pss for p in processes.values()) / MB
        for name, process in processes.items():
            figures[f"{name}_rss_mb"] = process.memory_info().rss / MB
        figures |= _many(client, kafka, processes, options)
    return Report(figures)


def _resident_mb(processes: Iterable[psutil.Process]) -> float:
    return sum(process.memory_info().rss for process in processes) / MB


def _many(
    client: httpx.Client, kafka: str, processes: dict[str, psutil.Process], options: argparse.Namespace
) -> dict[str, Figure]:
    """Shares of a core with many streams."""
    names = [f"many{number}" for number in range(options.streams)]
    began_s = time.perf_counter()
    for number, name in enumerate(names):
        create(client, name, event_time=number % 2 == 0)
    create_s = time.perf_counter() - began_s
    producer = BatchProducer({"bootstrap.servers": kafka})
    now_ms = time.time_ns() // 1_000_000
    for name in names:
        producer.send_many(name, [b'{"id":1,"v":1,"ts":%d}' % now_ms])
    producer.close()
    await_rows(client, names)
    time.sleep(QUIET_S)
    everything = processes | {"kafka": of_kafka(kafka)}
    idle = shares(everything, options.seconds)
    for name in names:
        sql = f"SELECT id FROM {name} WHERE v > 10"
        client.post("/queries", json={"sql": sql}).raise_for_status()
    time.sleep(SETTLE_S)
    queried = shares(everything, options.seconds)
    return {
        "cpu_share": idle.pop("worker"),
        **{f"{name}_cpu_share": share for name, share in idle.items()},
        "queried_cpu_share": queried["worker"],
        "threads": processes["worker"].num_threads(),
        "open_files": processes["worker"].num_fds(),
        "create_s": create_s,
    }


def _use(client: httpx.Client, kafka: str) -> None:
    create(client, "idle", event_time=True)
    sql = "SELECT id FROM idle WHERE v > 10 AND id < 500"
    handle = client.post("/queries", json={"sql": sql}).raise_for_status().json()["handle"]
    producer = BatchProducer({"bootstrap.servers": kafka})
    producer.send_many("idle", [b'{"id":%d,"v":%d,"ts":%d}' % (i, i, i) for i in range(1_000)])
    producer.close()
    deadline = time.monotonic() + 60
    while client.get(f"/queries/{handle}/snapshot").json()["rows"] == [] and time.monotonic() < deadline:
        time.sleep(0.1)
