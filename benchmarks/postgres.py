"""The PostgreSQL door: small answers by psycopg on one connection, COPY of many rows, idle connections.

A registered query groups a stream into `--groups` rows, and its answer is kept ready (eager). `answers_per_s`
are its answers, one after another on one connection, prepared; `http_answers_per_s`, the baseline, are the
same answers over HTTP by httpx in the same run; `answer_cpu_us` and `http_answer_cpu_us` are what the worker
takes of a core for each. `ms.p50`, `ms.p99` and `ms.max` are how long they take while `--rate` records a
second are written to the stream by another process, `loaded_answers_per_s` how many there were, `http_ms.p99`
those of HTTP at that rate, and `records_per_s` what the broker read meanwhile.

`copy_rows_per_s` is COPY of `--rows` rows of four columns as text, to psql or where there is none to psycopg;
`copy_csv_rows_per_s` as CSV. `copied_mb` are the bytes.

`idle_mb` is what the worker grows by with `--connections` connections that were let in and do nothing,
`idle_cpu_percent` what it takes of a core meanwhile, `before_cpu_percent` what it took before.
"""

import argparse
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import httpx
import numpy as np
import psutil
import psycopg

from benchmarks.ports import free_ports
from benchmarks.report import Figure, Report
from benchmarks.served import serving, worker
from topics.producer import BatchProducer

MB = 1e6
DEADLINE_S = 180.0
IDLE_S = 10.0

WRITER = """
import sys, time
from topics.producer import BatchProducer
kafka, rate, groups = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
producer = BatchProducer({"bootstrap.servers": kafka})
number, begin = 0, time.monotonic()
while True:
    due = int((time.monotonic() - begin) * rate)
    lines = [b'{"host":"host-%d","v":%d,"ts":%d}' % (n % groups, n, time.time_ns() // 1000000)
             for n in range(number, due)]
    producer.send_many("readings", lines)
    number = due
    time.sleep(0.02)
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options besides those that every benchmark has."""
    parser.add_argument(
        "--groups", type=int, default=10, help="rows of a small answer (default: %(default)s)"
    )
    parser.add_argument("--rate", type=int, default=20_000, help="records a second (default: %(default)s)")
    parser.add_argument("--rows", type=int, default=1_000_000, help="rows of COPY (default: %(default)s)")
    parser.add_argument("--connections", type=int, default=1_000, help="(default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=10.0, help="of each measurement of answers")


def run(options: argparse.Namespace) -> Report:
    """Start, load, measure."""
    (port,) = free_ports(1)
    dsn = f"host=127.0.0.1 port={port} user=benchmark dbname=tureen"
    figures: dict[str, Figure] = {}
    with (
        serving(TUREEN_POSTGRES_PORT=str(port), TUREEN_SNAPSHOT_ROWS_MAX=str(2 * options.rows)) as (
            client,
            kafka,
        ),
        psycopg.connect(dsn, autocommit=True, prepare_threshold=0) as connection,
    ):
        handle = _prepare(client, connection, kafka, options)
        figures |= _idle(worker(client), dsn, options.connections)
        figures |= _answers(client, kafka, connection, handle, options)
        figures |= _copies(connection, dsn, options)
    return Report(figures)


def _prepare(
    client: httpx.Client, connection: psycopg.Connection, kafka: str, options: argparse.Namespace
) -> str:
    """Streams with their rows, and the handle of the query of small answers."""
    connection.execute(
        "CREATE STREAM readings (host STRING, v BIGINT, ts TIMESTAMP) WITH (timestamp = 'ts') RETAIN 1 MINUTE"
    )
    connection.execute("CREATE STREAM many (id BIGINT, host STRING, v DOUBLE, n BIGINT)")
    sql = "SELECT host, COUNT(*) AS n, SUM(v) AS total FROM readings [RANGE 30 SECONDS] GROUP BY host"
    asked = {"sql": sql, "name": "small", "options": {"maintenance": "eager"}}
    handle = str(client.post("/queries", json=asked).raise_for_status().json()["handle"])
    connection.execute("CREATE QUERY large AS SELECT id, host, v, n FROM many")
    producer = BatchProducer({"bootstrap.servers": kafka, "batch.size": 1 << 20})
    now_ms = time.time_ns() // 1_000_000
    producer.send_many(
        "readings",
        [b'{"host":"host-%d","v":%d,"ts":%d}' % (n % options.groups, n, now_ms) for n in range(1_000)],
    )
    producer.send_many(
        "many",
        [
            b'{"id":%d,"host":"host-%d","v":%d.5,"n":%d}' % (n, n % 1_000, n, n * 7)
            for n in range(options.rows)
        ],
    )
    producer.close(DEADLINE_S)

    def is_read() -> bool:
        counted = connection.execute("SELECT count(*) FROM large").fetchone()
        return counted == (options.rows,) and len(_small(connection)) == options.groups

    _until(is_read)
    return handle


def _until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        if time.monotonic() > deadline:
            raise SystemExit(f"not all records were read in {DEADLINE_S:.0f} s")
        time.sleep(0.2)


def _small(connection: psycopg.Connection) -> list[tuple[object, ...]]:
    return connection.execute("SELECT * FROM small").fetchall()


def _answers(
    client: httpx.Client,
    kafka: str,
    connection: psycopg.Connection,
    handle: str,
    options: argparse.Namespace,
) -> dict[str, Figure]:
    def by_http() -> object:
        return client.get(f"/queries/{handle}/snapshot").raise_for_status().json()

    def by_postgres() -> object:
        return _small(connection)

    _timed(by_postgres, 2.0)
    process = worker(client)
    spent = [_cpu_s(process)]
    quiet = _timed(by_postgres, options.seconds)
    spent.append(_cpu_s(process))
    http = _timed(by_http, options.seconds)
    spent.append(_cpu_s(process))
    with _written(kafka, options):
        before, began_s = _read(client), time.monotonic()
        loaded = _timed(by_postgres, options.seconds)
        loaded_http = _timed(by_http, options.seconds)
        read = (_read(client) - before) / (time.monotonic() - began_s)
    return {
        "answers_per_s": len(quiet) / quiet.sum(),
        "http_answers_per_s": len(http) / http.sum(),
        "answer_cpu_us": 1e6 * (spent[1] - spent[0]) / len(quiet),
        "http_answer_cpu_us": 1e6 * (spent[2] - spent[1]) / len(http),
        "loaded_answers_per_s": len(loaded) / loaded.sum(),
        "ms.p50": 1e3 * float(np.quantile(loaded, 0.5)),
        "ms.p99": 1e3 * float(np.quantile(loaded, 0.99)),
        "ms.max": 1e3 * float(loaded.max()),
        "http_ms.p99": 1e3 * float(np.quantile(loaded_http, 0.99)),
        "records_per_s": read,
    }


def _cpu_s(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


def _timed(ask: Callable[[], object], seconds: float) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Seconds of each call, one after another."""
    taken = []
    end_s = time.perf_counter() + seconds
    while (began_s := time.perf_counter()) < end_s:
        ask()
        taken.append(time.perf_counter() - began_s)
    return np.array(taken)


@contextmanager
def _written(kafka: str, options: argparse.Namespace) -> Iterator[None]:
    """Records are written meanwhile, at the rate."""
    words = [kafka, str(options.rate), str(options.groups)]
    process = subprocess.Popen([sys.executable, "-c", WRITER, *words])
    try:
        time.sleep(3.0)
        yield
    finally:
        process.kill()
        process.wait()


def _read(client: httpx.Client) -> int:
    """Records of the stream that were read so far."""
    sources = client.get("/sources").json()["sources"]
    offsets = next(one for one in sources if one["name"] == "readings")["next_offsets"]
    return sum(offsets.values())


def _copies(connection: psycopg.Connection, dsn: str, options: argparse.Namespace) -> dict[str, Figure]:
    figures: dict[str, Figure] = {}
    for name, form in (("copy_rows_per_s", "text"), ("copy_csv_rows_per_s", "csv")):
        sql = f"COPY large TO STDOUT (FORMAT {form})"
        seconds, size = min(_copied(connection, dsn, sql) for _ in range(3))
        figures[name] = options.rows / seconds
        figures["copied_mb"] = size / MB
    return figures


def _copied(connection: psycopg.Connection, dsn: str, sql: str) -> tuple[float, int]:
    """Seconds, and bytes."""
    began_s = time.perf_counter()
    if shutil.which("psql") is None:
        with connection.cursor().copy(sql) as copy:
            size = sum(len(part) for part in copy)
    else:
        size = len(
            subprocess.run(["psql", "-X", "-d", dsn, "-c", sql], stdout=subprocess.PIPE, check=True).stdout
        )
    return time.perf_counter() - began_s, size


def _idle(process: psutil.Process, dsn: str, connections: int) -> dict[str, Figure]:
    time.sleep(3.0)
    before_percent = process.cpu_percent(None) or process.cpu_percent(IDLE_S)
    before = process.memory_info().rss
    opened = [psycopg.connect(dsn) for _ in range(connections)]
    try:
        time.sleep(1.0)
        process.cpu_percent(None)
        percent = process.cpu_percent(IDLE_S)
        grown = process.memory_info().rss - before
    finally:
        for one in opened:
            one.close()
    return {
        "idle_connections": connections,
        "idle_mb": grown / MB,
        "idle_cpu_percent": percent,
        "before_cpu_percent": before_percent,
    }
