"""Memory of an idle broker: supervisor, control process and one worker, Kafka not counted.

The broker is started on an empty data directory and Kafka, one stream is created, one query registered, some
records pass so that the kernels are loaded; then it has nothing to do. `idle_rss_mb` is the sum of the
resident sets (RSS) of its processes, which counts pages that they share as often as they are shared;
`idle_pss_mb` counts each once (Linux alone). `<process>_rss_mb` are the parts. `empty_rss_mb` is the sum
before the stream.
"""

import argparse
import sys
import time

import httpx
import psutil

from benchmarks.report import Figure, Report
from benchmarks.served import serving
from topics.producer import BatchProducer

SETTLE_S = 3.0
MB = 1e6


def run(options: argparse.Namespace) -> Report:
    """Start, settle, measure."""
    figures: dict[str, Figure] = {}
    with serving() as (client, kafka):
        supervisor = psutil.Process(int(client.headers["X-Process"]))
        processes = [supervisor, *supervisor.children()]
        time.sleep(SETTLE_S)
        figures["empty_rss_mb"] = sum(process.memory_info().rss for process in processes) / MB
        _use(client, kafka)
        time.sleep(SETTLE_S)
        figures["idle_rss_mb"] = sum(process.memory_info().rss for process in processes) / MB
        if sys.platform == "linux":
            figures["idle_pss_mb"] = sum(process.memory_full_info().pss for process in processes) / MB
        for process in processes:
            name = process.cmdline()[2].removeprefix("broker.")
            figures[f"{name}_rss_mb"] = process.memory_info().rss / MB
    return Report(figures)


def _use(client: httpx.Client, kafka: str) -> None:
    created = "CREATE STREAM idle (id BIGINT, v DOUBLE, ts TIMESTAMP) WITH (timestamp = 'ts')"
    client.post("/sources", json={"sql": created}).raise_for_status()
    sql = "SELECT id FROM idle WHERE v > 10 AND id < 500"
    handle = client.post("/queries", json={"sql": sql}).raise_for_status().json()["handle"]
    producer = BatchProducer({"bootstrap.servers": kafka})
    producer.send_many("idle", [b'{"id":%d,"v":%d,"ts":%d}' % (i, i, i) for i in range(1_000)])
    producer.close()
    deadline = time.monotonic() + 60
    while client.get(f"/queries/{handle}/snapshot").json()["rows"] == [] and time.monotonic() < deadline:
        time.sleep(0.1)
