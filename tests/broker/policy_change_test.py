"""Scheduling policies changed on a running broker: the same answers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from engine.overload.policies.choices import SCHEDULING_POLICIES
from tests.broker.conftest import stream_sql
from tests.broker.running import Broker
from tests.kafka import wait_until

BASE_MS = 1_700_000_000_000
ROWS = 60


def rows(first: int, count: int) -> list[dict[str, object]]:
    return [{"id": i, "v": i / 2, "ts": BASE_MS + 10 * i} for i in range(first, first + count)]


def schedulers(one: Broker) -> list[str]:
    reply = one.http.get("/entities", params={"kind": "scheduler", "limit": 10_000})
    assert reply.status_code == 200, reply.text
    found = [entity["id"] for entity in reply.json()["entities"]]
    assert found
    return found


def set_policy(one: Broker, policy: str) -> None:
    for entity in schedulers(one):
        reply = one.http.patch(f"/entities/{entity}", json={"policy": policy})
        assert reply.status_code == 200, reply.text
        assert told(reply.json())["policy"] == policy


def told(entity: dict[str, Any]) -> dict[str, Any]:
    return {one["name"]: one["value"] for one in entity["attributes"]}


@pytest.fixture
def policy_restored(shared: Broker) -> Iterator[None]:
    yield
    set_policy(shared, "fifo")


@pytest.mark.usefixtures("policy_restored")
def test_answers_are_the_same_while_the_policy_is_changed(shared: Broker, name: str) -> None:
    other = f"{name}_other"
    shared.create(stream_sql(name))
    shared.create(stream_sql(other))
    sums = shared.register(f"SELECT id % 2 AS k, SUM(v) AS s FROM {name} GROUP BY id % 2 EMIT CHANGES")
    pairs = shared.register(
        f"SELECT x.id FROM {name} [RANGE 1 HOUR] AS x JOIN {other} [RANGE 1 HOUR] AS y ON x.id = y.id"
    )
    sent = 0
    for policy in (*SCHEDULING_POLICIES, "fifo"):
        set_policy(shared, policy)
        shared.send(name, rows(sent, ROWS))
        shared.send(other, rows(sent, ROWS))
        sent += ROWS
    last = [{"id": -1, "v": 0.0, "ts": BASE_MS + 10 * sent}]
    shared.send(name, last)
    shared.send(other, last)
    assert sorted(shared.await_rows(pairs, sent)) == [[number] for number in range(sent)]
    totals = [[k, sum(range(k, sent, 2)) / 2] for k in range(2)]
    wait_until(lambda: sorted(shared.rows(sums)) == totals, what="the shard that sums has read as much")

    def waiting() -> list[dict[str, Any]]:
        queues = shared.http.get("/entities", params={"kind": "queue", "limit": 10_000}).json()["entities"]
        return [
            told(shared.http.get(f"/entities/{one['id']}").json())
            for one in queues
            if one["id"].endswith(f"/queue/source/{name}")
        ]

    def is_empty(queue: dict[str, Any]) -> bool:
        return bool(queue["queued_rows"] == queue["queued_bytes"] == queue["oldest_ms"] == 0)

    wait_until(lambda: all(map(is_empty, waiting())), what="nothing waits")
    assert any(0 < each["time_share"] <= 1 for each in waiting())
