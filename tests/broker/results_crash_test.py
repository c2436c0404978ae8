"""kill -9 in mid-stream: result topics hold what an undisturbed run writes, no more, no less."""

from __future__ import annotations

import json
import random
import signal
import threading
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest

from tests.broker.conftest import stream_sql
from tests.broker.folding import at_ms, compare, of_query
from tests.broker.running import Broker
from tests.kafka import wait_until
from topics.producer import BatchProducer
from tureen.protocol import new_handle

BASE_MS = 1_700_000_000_000
PARTITIONS = 2
RECORDS = 600
PIECE = 50


def values(partition: int) -> list[bytes]:
    """Out of order by up to 40 ms, and one that closes the rest."""
    rng = random.Random(partition)
    found = [
        b'{"id":%d,"v":%d,"ts":%d}'
        % (i * PARTITIONS + partition, rng.randrange(64), BASE_MS + i // 4 - rng.randrange(40))
        for i in range(RECORDS)
    ]
    return [*found, b'{"id":-1,"v":-1,"ts":%d}' % (BASE_MS + 1_000_000)]


class Writer(threading.Thread):
    """Writes piece after piece, each when it is told how many may be out."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        super().__init__(daemon=True)
        self._servers = bootstrap
        self._topic = topic
        self.allowed = threading.Semaphore(0)

    def run(self) -> None:
        producer = BatchProducer({"bootstrap.servers": self._servers, "linger.ms": 1})
        parts = [values(partition) for partition in range(PARTITIONS)]
        for start in range(0, RECORDS + 1, PIECE):
            self.allowed.acquire()
            for partition, part in enumerate(parts):
                piece = part[start : start + PIECE]
                producer.send_many(self._topic, piece, partitions=[partition] * len(piece))
            producer.flush()


def queries(name: str) -> dict[str, tuple[str, bool]]:
    """Text -> format, and whether its changes fold to its answer."""
    return {
        f"SELECT v, COUNT(*) AS n, SUM(id) AS s FROM {name} GROUP BY v EMIT CHANGES": ("upsert", True),
        f"SELECT id, v FROM {name} [RANGE 100 ms] WHERE v < 20 EMIT CHANGES": ("upsert", True),
        f"SELECT COUNT(*) AS n FROM {name} [RANGE 50 ms] "
        f"EMIT CHANGES INTO {name}_b WITH (format = 'debezium')": ("debezium", True),
        f"SELECT a.id, b.id AS b FROM {name} [RANGE 20 ms] AS a JOIN {name} [RANGE 20 ms] AS b "
        f"ON a.v = b.v AND a.id < b.id EMIT CHANGES INTO {name}_c WITH (format = 'diff')": ("diff", True),
        f"SELECT id, v FROM {name} WHERE v > 50 EMIT CHANGES": ("upsert", False),
    }


def told(one: Broker, handle: str) -> Any:
    """What was written for a query: of rows by key each key's history, of others how often each was told."""
    output = one.http.get(f"/queries/{handle}").json()["output"]
    records = of_query(one.records(output["topic"]), handle)
    if output["operator"] != "changes" or output["format"] == "diff":
        if output["format"] != "diff":
            assert len({record.key() for record in records}) == len(records)
        return Counter((at_ms(record), record.value()) for record in records)
    found: dict[bytes, list[Any]] = defaultdict(list)
    for record in records:
        found[record.key()].append((at_ms(record), record.value()))
    return found


@pytest.mark.slow
def test_killed_in_mid_stream_topics_are_as_of_an_undisturbed_run(
    kafka: str, tmp_path: Path, service_id: str, name: str
) -> None:
    killed = Broker(kafka, tmp_path / "killed", f"{service_id}a", SAVE_INTERVAL_MS=200)
    quiet = Broker(kafka, tmp_path / "quiet", f"{service_id}b")
    sql = stream_sql(name, options=", lateness = '100 ms', partitions = 2")
    handles = {text: new_handle() for text in queries(name)}  # the same in both, and so their records' keys
    for one in (killed, quiet):
        one.start()
        one.create(sql)
        for text, handle in handles.items():
            one.register(text, handle)
    writer = Writer(kafka, name)
    writer.start()

    def progress(pieces: int) -> None:
        before = sum(killed.source(name)["next_offsets"].values())
        for _ in range(pieces):
            writer.allowed.release()
        wait_until(
            lambda: sum(killed.source(name)["next_offsets"].values()) > before, what="the broker reads on"
        )

    progress(4)
    killed.kill()
    killed.start()
    for module in ("broker.worker", "broker.control"):
        progress(4)
        before = killed.children()[module]
        before.send_signal(signal.SIGKILL)
        wait_until(lambda m=module, b=before: killed.children().get(m, b).pid != b.pid, what="its start")
        killed.await_ready()
    writer.allowed.release(RECORDS)
    writer.join()
    end = {str(number): RECORDS + 1 for number in range(PARTITIONS)}
    for one in (killed, quiet):
        wait_until(lambda one=one: one.source(name)["next_offsets"] == end, what="everything is read")
    for text, (form, folds) in queries(name).items():
        handle = handles[text]
        for one in (killed, quiet):
            if folds:
                topic = one.http.get(f"/queries/{handle}").json()["output"]["topic"]
                compare(one, handle, topic, form)
        assert told(killed, handle) == told(quiet, handle), text
    rows = [json.loads(value) for _, value in told(quiet, handles[list(handles)[-1]])]
    assert len(rows) > RECORDS * PARTITIONS * 0.1
