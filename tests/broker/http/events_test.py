"""Events of the status and of entities, and the history, over HTTP."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.broker.conftest import stream_sql
from tests.broker.running import Broker
from tests.kafka import wait_until

BASE_MS = 1_700_000_000_000


def events(shared: Broker, path: str, **parameters: Any) -> Iterator[dict[str, Any]]:
    with httpx.stream("GET", f"{shared.url}{path}", params=parameters, timeout=60) as reply:
        assert reply.status_code == 200, reply.read()
        for line in reply.iter_lines():
            yield json.loads(line)


@pytest.fixture
def handle(shared: Broker, name: str) -> str:
    shared.create(stream_sql(name))
    found = shared.register(f"SELECT id FROM {name} WHERE v > 2")
    shared.send(name, [{"id": i, "v": i / 2, "ts": BASE_MS + i} for i in range(50)])
    shared.await_rows(found, 44)
    return found


def test_the_status_is_told_at_once_and_follows_what_happens(shared: Broker, name: str, handle: str) -> None:
    began_s = time.monotonic()
    told = events(shared, "/status/events", every_ms=60_000)
    first = next(told)
    assert time.monotonic() - began_s < 30, "it does not wait for the interval"
    told.close()  # type: ignore[attr-defined]
    status = shared.http.get("/status").json()
    assert first["ready"] is True
    assert first["instance"] == status["instance"]
    assert first["queries"].keys() == status["queries"].keys()
    assert first["sources_total"] >= 1
    assert sum(one["queries"] for one in first["shards"]) >= 1
    assert first["memory"].keys() == {
        "level",
        "used_bytes",
        "budget_bytes",
        "limit_bytes",
        "uncounted_bytes",
        "counted_bytes",
    }

    running = first["queries"]["RUNNING"]
    sent = False
    for event in events(shared, "/status/events", every_ms=100):
        line = next(one for one in event["sources"] if one["name"] == name)
        if not sent:
            assert line["records_per_s"] is None or line["records_per_s"] == 0
            shared.register(f"SELECT id FROM {name} WHERE v > 3")
            records = [{"id": i, "v": 1.0, "ts": BASE_MS + 1_000 + i} for i in range(500)]
            shared.send(name, [*records, b"no record"])
            sent = True
        shares = event["cpu"]["by_kind"]
        moved = line["rows"] + line["pending"] >= 550 and line["dead_letters"] == 1
        if moved and event["queries"]["RUNNING"] == running + 1 and shares is not None:
            break
    assert line["queries"] == 2
    assert sum(shares.values()) == pytest.approx(event["cpu"]["share"], abs=0.05) or shares["other"] == 0
    assert {"source", "operator", "engine", "answers", "other"} <= shares.keys()
    wrong = shared.http.get("/status/events", params={"every_ms": 1})
    assert (wrong.status_code, wrong.json()["code"]) == (400, "bad_request")


def test_entities_are_told_without_queries(shared: Broker, name: str, handle: str) -> None:
    found = shared.http.get("/entities", params={"queries": False, "limit": 10_000}).json()["entities"]
    assert found
    assert not any(one["kind"] == "query" for one in found)
    (stem,) = (one for one in found if one["id"].endswith(f"/query-stem/{name}"))
    assert [one.partition("/")[2] for one in stem["reads"]] == [f"queue/pending/{name}"]
    (query,) = (
        one
        for one in shared.http.get("/entities", params={"query": handle, "limit": 10_000}).json()["entities"]
        if one["kind"] == "query"
    )
    assert stem["id"] in query["reads"]
    sent = False
    for event in events(shared, "/entities/events", every_ms=100, queries=False):
        moved = {one["id"] for one in event["entities"]}
        assert not any(id_.startswith("query/") for id_ in moved)
        if not sent:
            shared.send(name, [{"id": i, "v": 1.0, "ts": BASE_MS + 1_000 + i} for i in range(50)])
            sent = True
        if stem["id"] in moved:
            break


def test_events_of_a_query_that_goes_end(shared: Broker, handle: str) -> None:
    last: dict[str, Any] = {}
    dropped = False
    for event in events(shared, "/entities/events", every_ms=100, query=handle):
        last = event
        if not dropped:
            assert shared.http.delete(f"/queries/{handle}").status_code == 200
            dropped = True
    assert any(id_.startswith("query/") for id_ in last["gone"])


def test_the_last_hour_is_kept_of_the_broker_its_sources_and_entities(
    shared: Broker, name: str, handle: str
) -> None:
    def history(**parameters: Any) -> dict[str, Any]:
        reply = shared.http.get("/history", params=parameters)
        assert reply.status_code == 200, reply.text
        found: dict[str, Any] = reply.json()
        return found

    (stem,) = (
        one["id"]
        for one in shared.http.get("/entities", params={"queries": False, "limit": 10_000}).json()["entities"]
        if one["id"].endswith(f"/query-stem/{name}")
    )

    def last_lag() -> float | None:
        lags: list[float | None] = history(source=name).get("series", {}).get("lag_ms", {}).get("values", [])
        return lags[-1] if lags else None

    wait_until(lambda: bool(last_lag() and history(entity=stem)["at_ms"]))
    told = history()
    assert told["every_ms"] == 5_000
    assert told["series"]["queries.RUNNING"]["values"][-1] >= 1
    assert told["series"]["memory_bytes"]["unit"] == "bytes"
    for one in (told, history(source=name), history(entity=stem)):
        assert all(at % one["every_ms"] == 0 for at in one["at_ms"])
        assert all(len(each["values"]) == len(one["at_ms"]) for each in one["series"].values())
    assert (last_lag() or 0) > 0
    assert history(entity=stem)["series"]["memory_bytes"]["values"][-1] > 0
    assert not [at for at in history(since_ms=told["at_ms"][-1])["at_ms"] if at in told["at_ms"]]
    for parameters, code in (
        ({"source": "nowhere"}, "unknown_source"),
        ({"entity": "0/source/nowhere"}, "unknown_entity"),
        ({"entity": stem, "source": name}, "bad_request"),
    ):
        refused = shared.http.get("/history", params=parameters)
        assert (refused.status_code >= 400, refused.json()["code"]) == (True, code)
        assert refused.json()["hint"]
