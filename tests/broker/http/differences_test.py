"""What came and went in an answer between two instants, against the two answers themselves."""

from __future__ import annotations

import asyncio
import itertools
import random
from collections import Counter
from typing import Any

import pytest

import tureen
from tests.broker.conftest import stream_sql
from tests.broker.running import Broker
from tests.kafka import wait_until
from tureen.errors import InstantOutOfRange

BASE_MS = 1_700_000_000_000
END_MS = 20_000

QUERIES = {
    "selection": "SELECT id, v FROM {0} [RANGE 3 SECONDS] WHERE id < 6",
    "all rows": "SELECT id, v FROM {0}",
    "groups": "SELECT id, COUNT(*) AS n, MAX(v) AS m FROM {0} [RANGE 5 SECONDS] GROUP BY id",
    "join": "SELECT a.id, b.v FROM {0} [RANGE 2 SECONDS] a JOIN {0} [RANGE 2 SECONDS] b ON a.id = b.id",
    "text and NULL": "SELECT s, v FROM {0} [ROWS 20]",
}


@pytest.fixture
def stream(shared: Broker, name: str) -> str:
    """Rows of few distinct values, so that many of them are the same, and of all that are no number."""
    chance = random.Random(19)
    shared.create(stream_sql(name, columns="id BIGINT, v DOUBLE, s STRING, ts TIMESTAMP"))
    rows: list[dict[str, Any]] = []
    for ms in range(0, END_MS, 40):
        row = {
            "id": chance.randrange(8),
            "v": chance.choice([0.5, None, -0.0, 0.0, 1e300]),
            "ts": BASE_MS + ms,
        }
        rows.append(row | {"s": chance.choice(["", None, 'a"b', "<b>"])})
    shared.send(name, [*rows, {"id": 9, "ts": BASE_MS + 60_000}])
    return name


def bag(rows: list[list[Any]]) -> Counter[str]:
    return Counter(map(repr, rows))


@pytest.mark.parametrize("kind", QUERIES)
def test_a_difference_is_that_of_both_answers(shared: Broker, stream: str, kind: str) -> None:
    handle = shared.register(QUERIES[kind].format(stream))
    wait_until(lambda: shared.snapshot(handle)["now_ms"] == BASE_MS + 59_999, what="the rows are there")
    instants = (0, 1_990, 2_000, 12_345, END_MS, 59_999)
    answers = {ms: shared.snapshot(handle, at=BASE_MS + ms) for ms in instants}
    for from_ms, to_ms in itertools.combinations_with_replacement(instants, 2):
        told = difference(shared, handle, BASE_MS + from_ms, BASE_MS + to_ms)
        before, after = bag(answers[from_ms]["rows"]), bag(answers[to_ms]["rows"])
        assert bag(told["added"]) == after - before, (from_ms, to_ms)
        assert bag(told["removed"]) == before - after, (from_ms, to_ms)
        assert (told["added_total"], told["removed_total"]) == (len(told["added"]), len(told["removed"]))
        assert (told["from_ms"], told["to_ms"]) == (BASE_MS + from_ms, BASE_MS + to_ms)
        assert told["columns"] == answers[to_ms]["columns"]
    assert difference(shared, handle, BASE_MS + 2_000, None) == difference(
        shared, handle, BASE_MS + 2_000, BASE_MS + 59_999
    )
    few = difference(shared, handle, BASE_MS + 2_000, BASE_MS + 12_345, limit=2)
    whole = difference(shared, handle, BASE_MS + 2_000, BASE_MS + 12_345)
    for part in ("added", "removed"):
        assert few[part] == whole[part][:2]
        assert few[f"{part}_total"] == whole[f"{part}_total"]


def difference(shared: Broker, handle: str, from_ms: int, to_ms: int | None, **more: int) -> dict[str, Any]:
    instants = {"from": from_ms} | ({} if to_ms is None else {"to": to_ms})
    reply = shared.http.get(f"/queries/{handle}/difference", params=instants | more)
    assert reply.status_code == 200, reply.text
    told: dict[str, Any] = reply.json()
    del told["position"]  # other streams of the shard go on
    return told


def test_the_clients_ask_for_a_difference(shared: Broker, stream: str) -> None:
    handle = shared.register(QUERIES["selection"].format(stream))
    wait_until(lambda: shared.snapshot(handle)["now_ms"] == BASE_MS + 59_999)
    expected = difference(shared, handle, BASE_MS + 2_000, BASE_MS + 12_345, limit=5)

    async def asked() -> dict[str, Any]:
        async with tureen.connect_async(shared.url) as client:
            return await client.query(handle).difference(BASE_MS + 2_000, BASE_MS + 12_345, limit=5)

    with tureen.connect(shared.url) as client:
        told = client.query(handle).difference("2023-11-14T22:13:22Z", BASE_MS + 12_345, limit=5)
        assert client.difference(handle, BASE_MS + 59_999)["added"] == []
        with pytest.raises(InstantOutOfRange) as refused:
            client.difference(handle, BASE_MS + 60_000)
    assert refused.value.latest_ms == BASE_MS + 59_999
    for one in (told, asyncio.run(asked())):
        assert one | {"position": None} == expected | {"position": None}


def test_what_a_difference_refuses(shared: Broker, stream: str) -> None:
    handle = shared.register(f"SELECT id FROM {stream}")
    wait_until(lambda: shared.snapshot(handle)["now_ms"] == BASE_MS + 59_999)
    for instants, code in (
        ({}, "bad_request"),
        ({"from": "tomorrow"}, "bad_request"),
        ({"from": BASE_MS + 2, "to": BASE_MS + 1}, "bad_request"),
        ({"from": BASE_MS + 60_000}, "instant_out_of_range"),
        ({"from": BASE_MS, "to": BASE_MS + 60_000}, "instant_out_of_range"),
        ({"from": BASE_MS // 1_000}, "instant_out_of_range"),
        ({"from": BASE_MS, "limit": -1}, "bad_request"),
    ):
        reply = shared.http.get(f"/queries/{handle}/difference", params=instants)
        assert (reply.status_code, reply.json()["code"]) == (400, code), instants
        if "tomorrow" in instants.values():
            assert reply.json()["message"].startswith("from='tomorrow'")
    queries = shared.http.get("/queries").json()["queries"]
    (id_,) = (one["query_id"] for one in queries if stream in (one["sql"] or ""))
    for other, code in ((id_, "handle_needed"), ("x" * 32, "unknown_query")):
        reply = shared.http.get(f"/queries/{other}/difference", params={"from": BASE_MS})
        assert (reply.status_code, reply.json()["code"]) == (404, code)
