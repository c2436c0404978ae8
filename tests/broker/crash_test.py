"""kill -9 in mid-stream: the next start answers as if nothing had happened."""

from __future__ import annotations

import random
import signal
import threading
from pathlib import Path
from typing import Any

from tests.broker.conftest import stream_sql
from tests.broker.running import READY_S, Broker, lives
from tests.kafka import wait_until
from topics.producer import BatchProducer

BASE_MS = 1_700_000_000_000
PARTITIONS = 2
RECORDS = 15_000


def values(partition: int) -> list[bytes]:
    """Out of order by up to 40 ms, some bad, and one that closes the rest."""
    rng = random.Random(partition)
    found = []
    for i in range(RECORDS):
        if rng.random() < 0.003:
            found.append(b'{"id": nonsense')
            continue
        ts = BASE_MS + i // 10 - rng.randrange(40)
        found.append(b'{"id":%d,"v":%d,"ts":%d}' % (i * PARTITIONS + partition, rng.randrange(256), ts))
    found.append(b'{"id":-1,"v":-1,"ts":%d}' % (BASE_MS + 10_000_000))
    return found


def queries(name: str) -> list[str]:
    bounds = range(0, 256, 32)
    return [f"SELECT id, v FROM {name} WHERE v >= {lo} AND v < {lo + 32}" for lo in bounds] + [
        f"SELECT COUNT(*) AS n FROM {name}",
        f"SELECT id FROM {name} [ROWS 100] WHERE v > 128",
        f"SELECT id FROM {name} [RANGE 2 SECONDS] WHERE v < 16",
    ]


def answers(one: Broker, handles: list[str]) -> list[Any]:
    return [one.snapshot(handle)["rows"] for handle in handles]


class Writer(threading.Thread):
    """Writes all partitions side by side, as fast as Kafka takes it."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        super().__init__()
        self._servers = bootstrap
        self._topic = topic

    def run(self) -> None:
        producer = BatchProducer({"bootstrap.servers": self._servers, "linger.ms": 1})
        parts = [values(partition) for partition in range(PARTITIONS)]
        for start in range(0, RECORDS + 1, 1_000):
            for partition, part in enumerate(parts):
                piece = part[start : start + 1_000]
                producer.send_many(self._topic, piece, partitions=[partition] * len(piece))
            producer.flush()


def test_killed_in_mid_stream_answers_as_an_undisturbed_run(
    kafka: str, tmp_path: Path, service_id: str, name: str
) -> None:
    killed = Broker(kafka, tmp_path / "killed", f"{service_id}a", SAVE_INTERVAL_MS=200)
    quiet = Broker(kafka, tmp_path / "quiet", f"{service_id}b")
    sql = stream_sql(name, options=", lateness = '1 second', idle_timeout = '1 hour', partitions = 2")
    handles: dict[Broker, list[str]] = {}
    for one in (killed, quiet):
        one.start()
        one.create(sql)
        handles[one] = [one.register(text) for text in queries(name)]
    writer = Writer(kafka, name)
    writer.start()
    for already in (3_000, 15_000):
        wait_until(lambda already=already: sum(read(killed, name).values()) > already, what="progress")
        killed.kill()
        killed.start()
    writer.join()
    end = {str(number): RECORDS + 1 for number in range(PARTITIONS)}
    for one in (killed, quiet):
        wait_until(lambda one=one: read(one, name) == end, what="everything is read")
    facts = ("rows", "pending", "late", "rejected", "now_ms")
    assert [killed.source(name)[f] for f in facts] == [quiet.source(name)[f] for f in facts]
    assert answers(killed, handles[killed]) == answers(quiet, handles[quiet])
    (count,) = answers(quiet, handles[quiet])[8]
    assert count[0] > 0.99 * RECORDS * PARTITIONS
    # Each bad record is a dead letter once, whatever happened in between.
    for one in (killed, quiet):
        letters = one.records(one.names.dead_letters)
        places = [
            (dict(r.headers())["tureen-partition"], dict(r.headers())["tureen-offset"]) for r in letters
        ]
        assert len(places) == len(set(places)) > 50


def read(one: Broker, name: str) -> dict[str, int]:
    offsets: dict[str, int] = one.source(name)["next_offsets"]
    return offsets


def test_a_child_that_dies_is_started_again_and_ends_with_its_supervisor(
    kafka: str, tmp_path: Path, service_id: str, name: str
) -> None:
    one = Broker(kafka, tmp_path / "data", service_id).start()
    one.create(stream_sql(name))
    handle = one.register(f"SELECT id FROM {name}")
    one.send(name, [{"id": i, "v": 0, "ts": BASE_MS + i} for i in range(100)])
    one.await_rows(handle, 99)
    for module in ("broker.worker", "broker.control"):
        before = one.children()[module]
        before.send_signal(signal.SIGKILL)
        wait_until(lambda m=module, b=before: one.children().get(m, b).pid != b.pid)
        one.await_ready()
        assert len(one.rows(handle)) == 99
        other = one.register(f"SELECT id FROM {name} WHERE id >= 50")
        assert len(one.rows(other)) == 49

    # When the supervisor itself is killed, its children end, and leave the directory to the next.
    assert one.process is not None
    children = list(one.children().values())
    assert len(children) == 2
    one.process.kill()
    one.process.wait(READY_S)
    wait_until(lambda: not any(lives(child) for child in children), what="the children have ended")
    one.start()
    assert len(one.rows(handle)) == 99


def test_the_journal_alone_brings_everything_back(
    kafka: str, tmp_path: Path, service_id: str, name: str
) -> None:
    one = Broker(kafka, tmp_path / "first", service_id).start()
    one.create(stream_sql(name))
    handle = one.register(f"SELECT id FROM {name} WHERE id >= 100")
    one.send(name, [{"id": i, "v": 0, "ts": BASE_MS + i} for i in range(5_000)])
    one.await_rows(handle, 4_899)
    before = one.snapshot(handle)
    one.kill()
    one.data_dir = tmp_path / "second"
    one.start()
    after = one.snapshot(handle)
    assert (after["rows"], after["now_ms"]) == (before["rows"], before["now_ms"])
