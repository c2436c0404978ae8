"""Jobs on executors in other processes, one of them killed in the middle: nothing is lost or doubled."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.kafka import wait_until
from tests.spark.archive.cases import places
from tests.spark.archive.job import Kafka
from tests.spark.cluster_nodes import Cluster, cluster
from tests.spark.job import messages_of
from topics.admin import Policies, service_topics
from tureen.protocol import query_id

JOB_S = 1_200
RECORDS = 800
AT_ONCE = 200
QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
PARTITIONS = 2
COLUMNS = "id BIGINT, city STRING, at TIMESTAMP"


@pytest.fixture(scope="module")
def nodes(packages_fetched: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with cluster(tmp_path_factory.mktemp("cluster")) as running:
        yield running


def _command(job: str, service: Kafka, master: str, checkpoint: Path) -> list[str]:
    return [
        *(sys.executable, "-m", f"spark_jobs.{job}", "--checkpoint", str(checkpoint), "--json"),
        *("--kafka", f"bootstrap.servers={service.settings['bootstrap.servers']}"),
        *("--service-id", service.service_id, "--master", master, "--memory", "512m"),
        *("--conf", "spark.executor.memory=1g", "--conf", "spark.executor.cores=1"),
        *("--conf", f"spark.pyspark.python={sys.executable}", "--conf", "spark.driver.host=127.0.0.1"),
        *("--conf", "spark.sql.shuffle.partitions=2"),
        *("--conf", f"spark.driver.extraJavaOptions={QUICK}"),
        *("--conf", f"spark.executor.extraJavaOptions={QUICK}"),
    ]


def _run_with_a_kill(command: list[str], nodes: Cluster, begun: Callable[[], int], whole: int) -> str:
    """Run a stream until it has done all; an executor is killed when it has done some. What it said."""
    job = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def done(enough: int) -> bool:
        if job.poll() is not None:
            pytest.fail(f"it ended: {job.communicate()}")
        return begun() >= enough

    try:
        wait_until(lambda: done(1), JOB_S, "the first micro-batch")
        assert begun() < whole, "all was done before anything could be killed"
        victim = nodes.executors()[0]
        victim.send_signal(signal.SIGKILL)
        victim.wait(30)
        wait_until(lambda: done(whole), JOB_S, "all records")
        job.send_signal(signal.SIGTERM)
        out, err = job.communicate(timeout=JOB_S)
    finally:
        job.kill()
        job.wait()
    assert job.returncode == 0, err
    assert "Traceback" not in err
    return out


@pytest.fixture
def service(kafka: str, service_id: str) -> Kafka:
    """With a stream ``orders`` that has all records."""
    service = Kafka(kafka, service_id)
    wanted = service_topics(service.names, Policies())
    service.admin.ensure(one for one in wanted if one.name != service.names.steps)
    stream = service.declare("orders", COLUMNS, f"timestamp = 'at', partitions = {PARTITIONS}")
    topic = service.make(stream.topic, PARTITIONS)
    service.send(
        (topic, n % PARTITIONS, None, {"id": n, "city": f"c{n % 5}", "at": 1_000 * (n + 1)})
        for n in range(RECORDS)
    )
    return service


@pytest.mark.slow
@pytest.mark.timeout(3 * JOB_S)
def test_an_executor_of_the_archive_is_killed(nodes: Cluster, service: Kafka, tmp_path: Path) -> None:
    root = tmp_path / "archive"
    log = root / "streams" / "orders" / "_delta_log"
    out = _run_with_a_kill(
        [
            *_command("archive", service, nodes.master, tmp_path / "checkpoint"),
            *("--archive", str(root), "--stream", "orders", "--every", "0"),
            *("--records-at-once", str(AT_ONCE)),
        ],
        nodes,
        lambda: max(0, len(list(log.glob("*.json"))) - 1),  # the first makes the table
        RECORDS // AT_ONCE,
    )
    assert json.loads(out)["rows"] == RECORDS
    assert places(root) == [(p, n) for p in range(PARTITIONS) for n in range(RECORDS // PARTITIONS)]


@pytest.mark.slow
@pytest.mark.timeout(3 * JOB_S)
def test_an_executor_of_a_scale_out_is_killed(nodes: Cluster, service: Kafka, tmp_path: Path) -> None:
    names, kafka = service.names, service.settings["bootstrap.servers"]
    queries = {
        "some": "SELECT id FROM orders WHERE id % 3 = 0 AND id >= 0 EMIT CHANGES WITH (snapshot = false)",
        "counted": "SELECT city, count(*) AS n FROM orders GROUP BY city EMIT CHANGES",
    }
    service.send((names.queries, 0, query_id(name).encode(), {"sql": sql}) for name, sql in queries.items())
    # The last of each partition moves NOW behind all the others.
    last = {"id": -1, "city": "end", "at": 10**7}
    service.send((f"{service.service_id}-orders", p, None, last) for p in range(PARTITIONS))

    def told() -> int:
        there = service.admin.topics()
        return len(messages_of(kafka, names.results_log)) if names.results_log in there else 0

    _run_with_a_kill(
        [
            *_command("scale_out", service, nodes.master, tmp_path / "checkpoint"),
            *("--name", "one", "--shards", "2", "--key", "orders=city"),
            *("--every", "0", "--rows-max", str(AT_ONCE)),
        ],
        nodes,
        told,
        len(range(0, RECORDS, 3)),
    )
    some = [json.loads(one.value() or b"")["id"] for one in messages_of(kafka, names.results_log)]
    assert sorted(some) == list(range(0, RECORDS, 3))
    counted: dict[str, int] = {}
    for one in messages_of(kafka, names.results):
        row = json.loads(one.value() or b"null")
        if row is not None and row["city"] != "end":
            counted[row["city"]] = row["n"]
    assert counted == Counter(f"c{n % 5}" for n in range(RECORDS))


@pytest.mark.slow
@pytest.mark.timeout(2 * JOB_S)
def test_a_python_without_tureen_is_told(nodes: Cluster, kafka: str, service_id: str, tmp_path: Path) -> None:
    service = Kafka(kafka, service_id)
    stream = service.declare("orders", COLUMNS)
    service.make(stream.topic)
    bare = tmp_path / "bare"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(bare)], check=True)
    done = subprocess.run(
        [
            *_command("archive", service, nodes.master, tmp_path / "checkpoint"),
            *("--conf", f"spark.pyspark.python={bare}/bin/python"),
            *("--archive", str(tmp_path / "archive"), "--stream", "orders", "--once"),
        ],
        capture_output=True,
        text=True,
        timeout=JOB_S,
        check=False,
    )
    error = json.loads(done.stdout)["error"]
    assert error["code"] == "executors_unsuitable"
    assert "spark_jobs" in error["message"]
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
