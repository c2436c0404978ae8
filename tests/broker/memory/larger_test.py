"""A window that is much larger than the memory for it: nobody is paused, nothing is lost, all is answered."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from broker.memory.budget import CONTROL_BYTES, SHARE
from tests.broker.conftest import stream_sql
from tests.broker.running import Broker
from tests.kafka import wait_until

ROWS = 10_000_000
BATCH = 100_000
BUDGET_BYTES = 900_000_000
BASE_MS = 1_700_000_000_000
PARTS = 1_000
COLUMNS = "id BIGINT, part INTEGER, price DOUBLE, note STRING, ts TIMESTAMP"
MEMORY_CGROUPS = Path("/sys/fs/cgroup/memory"), Path("/sys/fs/cgroup")


@contextlib.contextmanager
def limited(limit_bytes: int, name: str) -> Iterator[Callable[[], None] | None]:
    """Gives what puts a process into a cgroup with so much memory; None: none can be made here."""
    group = _made(limit_bytes, name)
    if group is None:
        yield None
        return
    processes = group / "cgroup.procs"

    def enter() -> None:
        processes.write_text(str(os.getpid()))

    try:
        yield enter
    finally:
        wait_until(lambda: not processes.read_text(), what="its processes are gone")
        group.rmdir()


def _made(limit_bytes: int, name: str) -> Path | None:
    """A cgroup of version 1 or 2 with this limit."""
    for root, limit in zip(MEMORY_CGROUPS, ("memory.limit_in_bytes", "memory.max"), strict=True):
        group = root / name
        with contextlib.suppress(OSError):
            group.mkdir()
            (group / limit).write_text(str(limit_bytes))
            return group
    return None


def lines(first: int, count: int) -> list[bytes]:
    """Rows of 230 bytes, no two notes alike."""
    note = "a note that tells nothing, but takes room in memory and on disk as others do " * 2
    return [
        b'{"id":%d,"part":%d,"price":%d.5,"note":"%09d %s","ts":%d}'
        % (i, i % PARTS, i % 977, i, note.encode(), BASE_MS + i)
        for i in range(first, first + count)
    ]


@pytest.mark.slow
def test_ten_million_rows_of_230_bytes_in_900_mb(
    kafka: str, tmp_path: Path, service_id: str, name: str
) -> None:
    assert 225 <= len(lines(5_000_000, 1)[0]) <= 235
    limit_bytes = int((BUDGET_BYTES + CONTROL_BYTES) / (1 - SHARE))
    with limited(limit_bytes, f"tureen-{name}") as enter:
        settings = {} if enter is not None else {"MEMORY_BUDGET_BYTES": BUDGET_BYTES}
        one = Broker(kafka, tmp_path / "data", service_id, **settings)
        try:
            one.start(preexec_fn=enter)
            handles = _registered(one, name)
            _feed(one, name)
            _ask(one, name, handles)
            _compare_memory(one)
            _refuse_what_does_not_fit(one, name)
            one.kill()
            one.start(preexec_fn=enter)
            _ask(one, name, handles)
            assert one.stop() == 0
        finally:
            one.close()


def _registered(one: Broker, name: str) -> list[str]:
    one.create(stream_sql(name, columns=COLUMNS, options=", partitions = 1"))
    assert one.http.get("/status").json()["memory"]["budget_bytes"] <= BUDGET_BYTES
    return [
        one.register(sql)
        for sql in (
            f"SELECT COUNT(*) AS n, SUM(part) AS total FROM {name} [RANGE 1 DAY]",
            f"SELECT id, note FROM {name} [RANGE 1 DAY] WHERE part = 7 AND price < 1",
            f"SELECT part, COUNT(*) AS n FROM {name} [RANGE 1 DAY] GROUP BY part HAVING part < 3",
        )
    ]


def _feed(one: Broker, name: str) -> None:
    """All rows, while memory is looked at; nothing is refused, paused or held."""
    for first in range(0, ROWS, BATCH):
        one.send(name, lines(first, BATCH))
        assert one.http.get("/status").json()["memory"]["level"] == "normal"
        wait_until(lambda first=first: one.source(name)["rows"] >= first - 10 * BATCH, 120.0, "it keeps up")


def _compare_memory(one: Broker) -> None:
    memory = one.http.get("/status").json()["memory"]
    assert memory["level"] == "normal"
    assert memory["paused"] == []
    assert memory["spilled_bytes"] > BUDGET_BYTES
    assert memory["spilled_refused"] is None


def _refuse_what_does_not_fit(one: Broker, name: str) -> None:
    """An answer that would take more memory than there is ends nobody but itself."""
    worker = one.children()["broker.worker"].pid
    for sql in (
        f"SELECT note, COUNT(*) AS n FROM {name} [RANGE 1 DAY] GROUP BY note ORDER BY n DESC LIMIT 3",
        f"SELECT COUNT(*) AS n FROM {name} [RANGE 1 DAY] a JOIN {name} [RANGE 1 DAY] b ON a.id = b.id",
    ):
        wait_until(
            lambda: one.http.get("/status").json()["memory"]["level"] == "normal", what="there is room"
        )
        handle = one.register(sql)
        reply = one.http.get(f"/queries/{handle}/snapshot")
        assert (reply.status_code, reply.json()["code"]) == (503, "memory_budget"), reply.text
        assert one.http.delete(f"/queries/{handle}").status_code == 200
    assert one.children()["broker.worker"].pid == worker


def _ask(one: Broker, name: str, handles: list[str]) -> None:
    """The answers over all rows but the last, which is above NOW."""
    count, rare, groups = handles
    seen = ROWS - 1
    one.await_read(name)
    wait_until(lambda: one.rows(count)[0][0] == seen, 120.0, "all rows are there")
    assert one.rows(count) == [[seen, sum(i % PARTS for i in range(seen))]]
    found = one.rows(rare)
    assert [row[0] for row in found] == [i for i in range(7, seen, PARTS) if i % 977 == 0]
    assert all(note.startswith(f"{i:09d} a note") for i, note in found)
    assert sorted(one.rows(groups)) == [[part, ROWS // PARTS] for part in range(3)]
