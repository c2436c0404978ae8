"""The handle as a header, beside the public id in the address: the same answers, and nobody else's."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from tests.broker.conftest import stream_sql
from tests.broker.running import Broker
from tureen.protocol import new_handle, query_id

BASE_MS = 1_700_000_000_000


@pytest.fixture
def handle(shared: Broker, name: str) -> str:
    """The handle of a query with three rows."""
    shared.create(stream_sql(name))
    opens = shared.register(f"SELECT id, v FROM {name}")
    shared.send(name, [{"id": i, "v": i, "ts": BASE_MS + i} for i in range(4)])
    shared.await_rows(opens, 3)
    return opens


def told(reply: httpx.Response) -> Any:
    """What moves on between two requests is left out."""
    if reply.headers["content-type"] != "application/json":
        return reply.text
    found = reply.json()
    moving = ("position", "change_position", "version", "statistics", "attributes", "entities")
    return {name: value for name, value in found.items() if name not in moving}


def test_an_id_with_its_header_is_as_the_handle(shared: Broker, handle: str) -> None:
    id_, header = query_id(handle), {"Tureen-Handle": handle}
    for path in (
        "/queries/{}",
        "/queries/{}/snapshot",
        "/queries/{}/snapshot?format=csv",
        "/queries/{}/snapshot?limit=2",
        f"/queries/{{}}/snapshot?at={BASE_MS + 1}",
        f"/queries/{{}}/difference?from={BASE_MS}",
        "/queries/{}/proposals",
        "/plans/{}",
        "/entities/query/{}",
        "/entities?query={}&limit=5",
    ):
        by_id = shared.http.get(path.format(id_), headers=header)
        by_handle = shared.http.get(path.format(handle))
        assert by_id.status_code == by_handle.status_code == 200, (path, by_id.text)
        assert told(by_id) == told(by_handle), path
        assert handle not in by_id.text, path
    position = shared.snapshot(handle)["change_position"]
    for parameters in ("live=false", f"live=false&since={position}"):
        fed = shared.http.get(f"/queries/{id_}/changes?{parameters}", headers=header)
        first = json.loads(fed.text.splitlines()[0])
        assert (fed.status_code, first["columns"][0]["name"]) == (200, "id"), fed.text
    with shared.http.stream(
        "GET", f"/entities/events?query={id_}&rows=2&every_ms=100", headers=header
    ) as events:
        assert len(json.loads(next(events.iter_lines()))["sample"]["rows"]) == 2
    paused = shared.http.patch(f"/queries/{id_}", json={"paused": True}, headers=header)
    assert (paused.status_code, paused.json()["state"]) == (200, "PAUSED")
    text = {"sql": shared.http.get(f"/queries/{handle}").json()["sql"] + " WHERE id > 0"}
    assert shared.http.patch(f"/queries/{id_}", json=text, headers=header).status_code == 200
    assert shared.http.delete(f"/queries/{id_}", headers=header).status_code == 200
    assert shared.state(handle) is None
    assert handle not in shared.log.read_text()


def test_a_handle_of_somebody_else_opens_nothing(shared: Broker, handle: str, name: str) -> None:
    """As a query that is not there; nor does the header open what the path's handle does not."""
    id_, other = query_id(handle), shared.register(f"SELECT v FROM {name}")
    paths = (
        "",
        "/snapshot",
        "/snapshot?limit=1",
        "/changes?live=false",
        "/plan",
        f"/difference?from={BASE_MS}",
    )
    for wrong in (other, new_handle(), "short", id_, ""):
        for path in paths:
            reply = shared.http.get(f"/queries/{id_}{path}", headers={"Tureen-Handle": wrong})
            assert (reply.status_code, reply.json()["code"]) == (404, "unknown_query"), (path, wrong)
        for path in (
            f"/entities/query/{id_}",
            f"/entities?query={id_}",
            f"/entities/events?query={id_}&rows=1",
        ):
            reply = shared.http.get(path, headers={"Tureen-Handle": wrong})
            assert (reply.status_code, reply.json()["code"]) == (404, "unknown_query"), (path, wrong)
    reply = shared.http.get(f"/queries/{handle}/snapshot", headers={"Tureen-Handle": other})
    assert reply.json()["code"] == "unknown_query"
    twice = [("Tureen-Handle", handle), ("Tureen-Handle", other)]
    assert shared.http.get(f"/queries/{id_}/snapshot", headers=twice).json()["code"] == "unknown_query"
    absent = new_handle()
    reply = shared.http.get(f"/queries/{query_id(absent)}/snapshot", headers={"Tureen-Handle": absent})
    assert (reply.status_code, reply.json()["code"]) == (404, "unknown_query")
    assert shared.http.get(f"/queries/{id_}/snapshot").json()["code"] == "handle_needed"
    listed = shared.http.get("/queries", headers={"Tureen-Handle": other})
    assert listed.status_code == 200, "a request that names no query needs none"


def test_no_answer_sends_to_an_address_with_the_handle(shared: Broker, handle: str) -> None:
    """As a redirect would to a path without the slash at its end."""
    for path in (f"/queries/{query_id(handle)}/", f"/queries/{query_id(handle)}/snapshot/"):
        reply = shared.http.get(path, headers={"Tureen-Handle": handle})
        assert (reply.status_code, reply.json()["code"]) == (404, "not_found")
        assert handle not in str(reply.headers)
