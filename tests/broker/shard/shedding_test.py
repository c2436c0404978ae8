"""More comes than the broker has read: tolerant queries lose rows and say so, exact ones lose none, kill or
not.
"""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest

from broker.base.placement import shard_of
from tests.broker.conftest import stream_sql
from tests.broker.running import READY_S, Broker
from tests.kafka import wait_until

BASE_MS = 1_700_000_000_000
BEFORE, BURST = 1_000, 60_000
MIB = 1024 * 1024
SHARDS = 2


def send(broker: Broker, name: str, first: int, count: int) -> None:
    broker.send(name, [{"id": n, "v": 0.5, "ts": BASE_MS + n} for n in range(first, first + count)])


def apart(name: str) -> tuple[str, ...]:
    """Names of streams of two shards: each sheds of its own."""
    names = [f"{name}_{number}" for number in range(20)]
    return tuple(next(one for one in names if shard_of([one], SHARDS) == shard) for shard in range(SHARDS))


def counted(broker: Broker, handle: str) -> int:
    rows = broker.snapshot(handle)["rows"]
    return int(rows[0][0]) if rows else 0


def metric(broker: Broker, metric: str, stream: str) -> float:
    lines = broker.http.get("/metrics").text.splitlines()
    prefix = f'{metric}{{stream="{stream}"}} '
    return sum(float(line.removeprefix(prefix)) for line in lines if line.startswith(prefix))


def told(broker: Broker, handle: str) -> tuple[Any, Any]:
    snapshot = broker.http.get(f"/queries/{handle}/snapshot").json()
    return snapshot["rows"], snapshot["approximation"]


def lacked(broker: Broker, handle: str) -> tuple[Any, list[Any]]:
    """The answer, and what of its tags does not depend, or but little, on when it was looked at last."""
    rows, tags = told(broker, handle)
    return rows, [(tag["kind"], tag["where"], tag["since"], tag["amount"]) for tag in tags]


def test_tolerant_queries_shed_what_exact_ones_see(
    kafka: str, tmp_path: Path, service_id: str, name: str
) -> None:
    broker = Broker(
        kafka, tmp_path / "data", service_id, SHED_QUEUE_BYTES=MIB, STEP_ROWS_MAX=1_024, SHARDS=SHARDS
    ).start()
    seen, unseen = apart(name)
    for stream in (seen, unseen):
        broker.create(stream_sql(stream, options=", idle_timeout = '1 second'"))
    exact = broker.register(f"SELECT COUNT(*) AS n FROM {seen}")
    tolerant = broker.register(f"SELECT COUNT(*) AS n FROM {seen} WITH (max_fn = 1, weight = 0.5)")
    blind = broker.register(f"SELECT COUNT(*) AS n FROM {unseen} WITH (max_fn = 1)")
    for stream in (seen, unseen):
        send(broker, stream, 0, BEFORE)
    for handle in (exact, tolerant, blind):
        wait_until(lambda handle=handle: counted(broker, handle) >= BEFORE - 1, what="the first rows")

    worker = broker.children()["broker.worker"]
    worker.suspend()
    for stream in (seen, unseen):
        send(broker, stream, BEFORE, BURST)
    worker.resume()
    wait_until(lambda: counted(broker, exact) == BEFORE + BURST, READY_S, "all rows of the exact query")
    wait_until(lambda: metric(broker, "tureen_records_total", unseen) == BEFORE + BURST, READY_S, "all rows")

    assert told(broker, exact)[1] == []
    for handle, stream in ((tolerant, seen), (blind, unseen)):
        (((count,),), (tag,)) = told(broker, handle)
        shed = metric(broker, "tureen_shed_records_total", stream)
        assert 0 < shed <= BURST
        lost = BEFORE + BURST - shed
        assert count <= lost + metric(broker, "tureen_unread_records_total", stream)
        assert count < BEFORE + BURST
        assert (tag["kind"], tag["where"], tag["contiguous"]) == ("shed", stream, True)
    assert metric(broker, "tureen_unread_records_total", seen) == 0
    facts = broker.source(unseen)
    assert facts["shed"] >= facts["unread"] > 0
    assert metric(broker, "tureen_unread_records_total", unseen) > 0
    later = broker.register(f"SELECT COUNT(*) AS n FROM {unseen}")
    assert broker.http.get(f"/queries/{later}/snapshot").json()["complete"] is False

    before = [
        (rows, [(*facts, pytest.approx(amount, abs=2)) for *facts, amount in tags])
        for rows, tags in (lacked(broker, handle) for handle in (exact, tolerant, blind))
    ]
    worker.send_signal(signal.SIGKILL)
    wait_until(lambda: broker.readiness()[0] != 200, what="the death of the worker")
    broker.await_ready()
    assert [lacked(broker, handle) for handle in (exact, tolerant, blind)] == before
