"""Memory as it is told, and moved from one synopsis to another."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from tests.broker.conftest import stream_sql
from tests.broker.running import Broker
from tests.kafka import wait_until
from tureen.protocol import new_handle, query_id

BASE_MS = 1_700_000_000_000
MINUTE_MS = 60_000
ROWS = 3_000


@pytest.fixture
def two(shared: Broker, name: str) -> list[str]:
    """The handles of queries over two streams of which rows of the last minutes are kept for them alone."""
    found = []
    for stream in (name, f"{name}b"):
        shared.create(stream_sql(stream, options=", retain = '1 minute'"))
        handle = new_handle()
        sql = f"SELECT COUNT(*) AS n FROM {stream} [RANGE 50 MINUTES DOWN TO 1 MINUTE]"
        reply = shared.http.post("/queries", json={"sql": sql, "handle": handle, "options": {"max_error": 1}})
        assert reply.status_code in (200, 201), reply.text
        shared.send(stream, [{"id": i, "v": 1.5, "ts": BASE_MS + i * MINUTE_MS // 60} for i in range(ROWS)])
        wait_until(lambda handle=handle: shared.rows(handle)[0][0] == ROWS - 1, what="rows are in")  # type: ignore[misc]
        found.append(handle)
    return found


def window(one: Broker, handle: str) -> dict[str, Any]:
    """The window of a query as a side of a move: entity, attribute and version, with its value."""
    entity = one.http.get(f"/entities/query/{handle}").json()
    (found,) = (one for one in entity["attributes"] if one["name"].startswith("window_ms."))
    return {"entity": f"query/{handle}", "attribute": found["name"], "if_version": entity["version"]} | {
        "value": found["value"]
    }


def move(
    one: Broker, source: dict[str, Any], target: dict[str, Any], nbytes: Any, **params: Any
) -> httpx.Response:
    ends = [{name: of[name] for name in of if name != "value"} for of in (source, target)]
    body = {"from": ends[0], "to": ends[1], "bytes": nbytes}
    return one.http.post("/memory/moves", json=body, params=params)


def sizes(one: Broker, handles: list[str]) -> list[dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    ids = [f"query/{query_id(handle)}" for handle in handles]

    def listed() -> bool:  # what is told may be two seconds old
        found.update((size["entity"], size) for size in one.http.get("/memory").json()["sizes"])
        return all(id_ in found for id_ in ids)

    wait_until(listed, what="both windows are listed")
    return [found[id_] for id_ in ids]


def test_memory_is_moved_from_one_window_to_another(shared: Broker, name: str, two: list[str]) -> None:
    first, second = sizes(shared, two)
    told = shared.http.get("/memory").json()
    assert told["used_bytes"] > 0
    assert told["synopses_bytes"] >= sum(one["bytes"] for one in told["synopses"]) > 0
    stem = next(one for one in told["synopses"] if one["id"].endswith(f"/data-stem/{name}"))
    assert first["value"] == first["high"] == 50 * MINUTE_MS
    assert 0 < first["bytes"] <= stem["bytes"]
    assert first["bytes_low"] == 0

    full = move(shared, window(shared, two[0]), window(shared, two[1]), 1_000)
    assert (full.status_code, full.json()["code"]) == (409, "move_refused")  # it has all that it asks for
    attribute = second["attribute"]
    assert shared.http.patch(f"/entities/query/{two[1]}", json={attribute: 20 * MINUTE_MS}).status_code == 200

    nbytes = first["bytes"] // 4
    before = [window(shared, handle) for handle in two]
    dry = move(shared, *before, nbytes, dry_run="true")
    assert dry.status_code == 200, dry.text
    assert [window(shared, handle) for handle in two] == before
    codes = {(one["of"], one["code"]) for one in dry.json()["consequences"]}
    assert codes >= {("from", "answers_approximate"), ("from", "memory_freed"), ("to", "memory_taken")}

    moved = move(shared, *before, nbytes)
    assert moved.status_code == 200, moved.text
    facts = moved.json()
    assert facts == {name: dry.json()[name] for name in ("from", "to")}
    after = [window(shared, handle)["value"] for handle in two]
    assert after == [facts["from"]["to"], facts["to"]["to"]]
    assert after[0] < before[0]["value"]
    assert after[1] > before[1]["value"]
    assert -facts["from"]["bytes"] == pytest.approx(nbytes, rel=0.05)
    assert facts["to"]["bytes"] == pytest.approx(nbytes, rel=0.05)
    (tag,) = shared.snapshot(two[0])["approximation"]
    assert (tag["kind"], tag["amount"]) == ("window", after[0])

    shared.send(name, [{"id": 0, "v": 0.0, "ts": BASE_MS + ROWS * 1_000}])
    wait_until(lambda: shared.source(name)["rows"] < ROWS, what="rows beyond the window are let go of")
    kept = shared.source(name)["rows"]
    assert kept == pytest.approx(after[0] / 1_000, rel=0.02)

    late = move(shared, *before, nbytes)  # with the versions of before
    assert (late.status_code, late.json()["code"]) == (409, "edit_conflict")
    assert [window(shared, handle)["value"] for handle in two] == after


def test_what_cannot_be_moved_is_said(shared: Broker, name: str) -> None:
    shared.create(stream_sql(name))
    handle = shared.register(f"SELECT id FROM {name}")
    body = {
        "from": {"entity": f"query/{handle}", "attribute": f"window_ms.{name}"},
        "to": {"entity": f"query/{handle}", "attribute": f"percent.{name}"},
        "bytes": 1_000,
    }
    found: list[str] = []

    def is_read() -> bool:  # what a query shares may be told a moment later
        reads = shared.http.get(f"/entities/query/{handle}").json()["reads"]
        found.extend(one for one in reads if one.endswith(f"/source/{name}"))
        return bool(found)

    wait_until(is_read, what="the entity of the source")
    changes: list[tuple[dict[str, Any], int, str]] = [
        ({}, 409, "move_refused"),  # the query tolerates nothing less
        ({"bytes": 0}, 400, "bad_request"),
        ({"bytes": "many"}, 400, "bad_request"),
        ({"from": {"entity": found[0], "attribute": "late_rows"}}, 409, "move_refused"),
        ({"from": {"entity": "0/nothing", "attribute": "queries"}}, 404, "unknown_entity"),
        ({"from": {"entity": "query/nobody", "attribute": "window_ms.s"}}, 404, "unknown_query"),
        ({"from": "x"}, 400, "bad_request"),
    ]
    for change, status, code in changes:
        reply = shared.http.post("/memory/moves", json=body | change)
        assert (reply.status_code, reply.json()["code"]) == (status, code), (change, reply.text)
