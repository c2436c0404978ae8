"""Many streams in one broker: what a thousand that are quiet cost, and what they cost one that is not.

`--streams` streams, half of them in event time and half in arrival time, with `--queries` queries each
(`WHERE id = k`), get a record each. When they are quiet: `threads`, `open_files` and `rss_mb` of the worker,
and the shares of one core that the worker and Kafka take over `--seconds`, in percent (`cpu_share`,
`kafka_cpu_share`).

Then one stream gets single records, `--records` of them 5 ms apart. `step_ms` is what a step takes of the
engine, `step_cpu_ms` what the worker takes of a core for each step above what it takes when nothing comes.
`few_step_ms` and `few_step_cpu_ms` are the same in a broker with `--few` streams and the same queries each;
`step_ratio` and `step_cpu_ratio` compare them.

`create_s` is how long the streams took to create, eight at a time, `register_s` the queries, `restart_s` from
the end of a worker that is killed until the broker is ready again with all of them.
"""

import argparse
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

import httpx

from benchmarks.report import Figure, Report
from benchmarks.served import of_broker, register, serving
from benchmarks.shares import cpu_s, of_kafka, shares
from topics.producer import BatchProducer

AT_ONCE = 8
SETTLE_S = 15.0
GAP_S = 0.005
MB = 1e6


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options besides those that every benchmark has."""
    parser.add_argument("--streams", type=int, default=1_000, help="(default: %(default)s)")
    parser.add_argument("--few", type=int, default=10, help="to compare with (default: %(default)s)")
    parser.add_argument("--queries", type=int, default=100, help="over each (default: %(default)s)")
    parser.add_argument("--records", type=int, default=1_000, help="for steps (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=15.0, help="of the measurement of shares")


def run(options: argparse.Namespace) -> Report:
    """A broker with few streams, then one with many."""
    few = _measured(options.few, options)
    many = _measured(options.streams, options)
    figures: dict[str, Figure] = many | {f"few_{name}": few[name] for name in ("step_ms", "step_cpu_ms")}
    figures["step_ratio"] = many["step_ms"] / few["step_ms"]
    figures["step_cpu_ratio"] = many["step_cpu_ms"] / few["step_cpu_ms"]
    return Report(figures)


def _measured(count: int, options: argparse.Namespace) -> dict[str, float]:
    with serving() as (client, kafka):
        names = [f"many{number}" for number in range(count)]
        began_s = time.perf_counter()
        with ThreadPoolExecutor(AT_ONCE) as pool:
            list(pool.map(lambda one: create(client, one[1], event_time=one[0] % 2 == 0), enumerate(names)))
        create_s = time.perf_counter() - began_s
        texts = [f"SELECT id FROM {name} WHERE id = {k}" for name in names for k in range(options.queries)]
        began_s = time.perf_counter()
        for first in range(0, len(texts), 10_000):
            register(client, texts[first : first + 10_000])
        register_s = time.perf_counter() - began_s
        producer = BatchProducer({"bootstrap.servers": kafka})
        now_ms = time.time_ns() // 1_000_000
        for name in names:
            producer.send_many(name, [b'{"id":1,"v":1,"ts":%d}' % now_ms])
        producer.flush()
        await_rows(client, names)
        time.sleep(SETTLE_S)
        worker = of_broker(client)["worker"]
        idle = shares({"worker": worker, "kafka": of_kafka(kafka)}, options.seconds)
        found = {
            "threads": worker.num_threads(),
            "open_files": worker.num_fds(),
            "rss_mb": worker.memory_info().rss / MB,
            "cpu_share": idle["worker"],
            "kafka_cpu_share": idle["kafka"],
            "create_s": create_s,
            "register_s": register_s,
        }
        before, cpu_before_s = _steps(client), cpu_s(worker)
        began_s = time.perf_counter()
        for number in range(options.records):
            ts = time.time_ns() // 1_000_000
            producer.send_many(names[0], [b'{"id":%d,"v":1,"ts":%d}' % (number % 1_000, ts)])
            producer.flush()
            time.sleep(GAP_S)
        time.sleep(1.0)
        after = _steps(client)
        cpu = cpu_s(worker) - cpu_before_s - (time.perf_counter() - began_s) * idle["worker"] / 100
        steps = max(1.0, after[0] - before[0])
        found |= {"step_ms": 1_000 * (after[1] - before[1]) / steps, "step_cpu_ms": 1_000 * cpu / steps}
        producer.close()
        return found | {"restart_s": _restarted_s(client)}


def _steps(client: httpx.Client) -> tuple[float, float]:
    """(commits so far, seconds that the engine took for their steps)."""
    lines = client.get("/metrics").text.splitlines()
    return tuple(
        sum(
            float(line.rpartition(" ")[2]) for line in lines if line.startswith(f"tureen_step_seconds_{what}")
        )
        for what in ("count", "sum")
    )  # type: ignore[return-value]


def _restarted_s(client: httpx.Client) -> float:
    """How long until the broker is ready again after its worker was killed."""
    worker = of_broker(client)["worker"]
    began_s = time.perf_counter()
    worker.kill()
    worker.wait(30)
    while time.perf_counter() - began_s < 180:
        try:
            if client.get("/readycheck").status_code == 200:
                break
        except httpx.HTTPError:
            pass
        time.sleep(0.05)
    return time.perf_counter() - began_s


def create(client: httpx.Client, name: str, *, event_time: bool) -> None:
    """A stream on a topic of its name."""
    options = "WITH (timestamp = 'ts')" if event_time else ""
    sql = f"CREATE STREAM {name} (id BIGINT, v DOUBLE, ts TIMESTAMP) {options}"
    client.post("/sources", json={"sql": sql}).raise_for_status()


def await_rows(client: httpx.Client, names: Iterable[str]) -> None:
    """Until each stream has a row, pending or not."""
    deadline_s = time.monotonic() + 120
    wanted = set(names)
    while time.monotonic() < deadline_s:
        sources = client.get("/sources").json()["sources"]
        if not wanted - {one["name"] for one in sources if one["rows"] + one["pending"]}:
            return
        time.sleep(0.2)
    raise SystemExit("not every stream got its row")
