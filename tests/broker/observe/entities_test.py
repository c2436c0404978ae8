"""Entities over HTTP: lists, attributes, edits and their refusals, events; and the commands on them."""

from __future__ import annotations

import contextlib
import json
import threading
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from click.testing import CliRunner, Result

from tests.broker.conftest import stream_sql
from tests.broker.running import Broker, broker
from tests.kafka import wait_until
from tureen.cli import main
from tureen.protocol import query_id

BASE_MS = 1_700_000_000_000


def rows(count: int, start: int = 0) -> list[dict[str, object]]:
    return [{"id": i, "v": i / 2, "ts": BASE_MS + i} for i in range(start, start + count)]


@pytest.fixture
def handles(shared: Broker, name: str) -> list[str]:
    """Two queries over a stream with rows; the second is followed."""
    shared.create(stream_sql(name))
    found = [
        shared.register(f"SELECT id FROM {name} WHERE v > 2"),
        shared.register(f"SELECT id % 3 AS k, COUNT(*) AS n FROM {name} GROUP BY id % 3 EMIT CHANGES"),
    ]
    shared.send(name, rows(50))
    shared.await_rows(found[0], 44)
    return found


def listed(one: Broker, **parameters: Any) -> list[dict[str, Any]]:
    reply = one.http.get("/entities", params=parameters)
    assert reply.status_code == 200, reply.text
    found: list[dict[str, Any]] = reply.json()["entities"]
    return found


def stem_of(one: Broker, name: str) -> str:
    (found,) = (e["id"] for e in listed(one, limit=10_000) if e["id"].endswith(f"/query-stem/{name}"))
    return str(found)


def test_what_a_query_shares_is_listed_and_read(shared: Broker, name: str, handles: list[str]) -> None:
    first, followed = handles
    own = {one["id"]: one for one in listed(shared, query=followed)}
    kinds = {one["kind"] for one in own.values()}
    assert {"query", "source", "synopsis", "operator", "queue", "sink", "engine"} <= kinds
    (source,) = (one for id_, one in own.items() if id_.endswith(f"/source/{name}"))
    assert source["statistics"]["rows_in"] == 50
    assert source["statistics"]["queries"] == 2
    assert not any(one["kind"] == "sink" for one in listed(shared, query=first))
    entity = shared.http.get(f"/entities/query/{followed}").json()
    assert entity["id"] == f"query/{query_id(followed)}"
    assert set(entity["reads"]) == own.keys() - {entity["id"]}
    for id_ in own:
        told = shared.http.get(f"/entities/{id_}").json()
        assert told["id"] == id_
        for attribute in told["attributes"]:
            assert attribute.keys() >= {
                "name",
                "value",
                "type",
                "unit",
                "range",
                "settable",
                "changes_answers",
            }


def test_shares_are_the_whole(shared: Broker, handles: list[str]) -> None:
    found = listed(shared, limit=10_000)
    queries = [one["statistics"]["cpu_share"] for one in found if one["kind"] == "query"]
    unread = [
        one["statistics"]["cpu_share"]
        for one in found
        if one["kind"] != "query" and not one["statistics"]["queries"]
    ]
    assert sum(queries) + sum(unread) == pytest.approx(1.0)


def test_answers_are_paid_by_who_is_asked(shared: Broker, handles: list[str]) -> None:
    def answers_ns(handle: str) -> int:
        told = shared.http.get(f"/entities/query/{handle}").json()["attributes"]
        return int(next(one["value"] for one in told if one["name"] == "answers_cpu_ns"))

    before = [answers_ns(handle) for handle in handles]
    for _ in range(5):
        shared.rows(handles[0])
    wait_until(lambda: answers_ns(handles[0]) > before[0])
    assert answers_ns(handles[1]) == before[1]


def test_pages_follow_each_other(shared: Broker, handles: list[str]) -> None:
    whole = [one["id"] for one in listed(shared, limit=10_000)]
    pages: list[str] = []
    after = ""
    while True:
        page = shared.http.get("/entities", params={"after": after, "limit": 3}).json()
        pages += [one["id"] for one in page["entities"]]
        after = page["next"]
        if after is None:
            break
    assert sorted(pages) == pages
    assert set(pages) >= set(whole)
    unknown = shared.http.get("/entities", params={"kind": "nothing"})
    assert (unknown.status_code, unknown.json()["code"]) == (400, "bad_request")


def test_an_operator_is_edited_while_it_runs(shared: Broker, name: str, handles: list[str]) -> None:
    stem = stem_of(shared, name)
    before = shared.http.get(f"/entities/{stem}").json()
    reply = shared.http.patch(f"/entities/{stem}", json={"policy": "fixed", "if_version": before["version"]})
    assert reply.status_code == 200, reply.text
    told = {one["name"]: one["value"] for one in reply.json()["attributes"]}
    assert told["policy"] == "fixed"
    assert reply.json()["version"] != before["version"]
    shared.send(name, rows(50, 50))
    shared.await_rows(handles[0], 90)

    late = shared.http.patch(f"/entities/{stem}", json={"policy": "tickets", "if_version": before["version"]})
    assert (late.status_code, late.json()["code"]) == (409, "edit_conflict")
    assert str(reply.json()["version"]) in late.json()["message"]


@pytest.mark.parametrize(
    ("values", "code"),
    [
        ({"policy": "clairvoyant"}, "attribute_refused"),
        ({"policy": ["tickets"]}, "bad_request"),
        ({"slots": 3}, "attribute_refused"),
        ({"nothing": 3}, "attribute_refused"),
        ({"policy": "fixed", "slots": 3}, "attribute_refused"),
        ({}, "bad_request"),
        ({"policy": "fixed", "if_version": "1"}, "bad_request"),
    ],
)
def test_edits_are_refused_whole(
    shared: Broker, name: str, handles: list[str], values: dict[str, Any], code: str
) -> None:
    stem = stem_of(shared, name)
    before = shared.http.get(f"/entities/{stem}").json()["version"]
    reply = shared.http.patch(f"/entities/{stem}", json=values)
    assert (reply.status_code, reply.json()["code"]) == (400, code)
    assert reply.json()["hint"]
    assert shared.http.get(f"/entities/{stem}").json()["version"] == before


@pytest.mark.parametrize("given", ["0/source/nowhere", "nothing", "999/engine", "x/engine", "0/"])
def test_what_is_not_there_is_said(shared: Broker, handles: list[str], given: str) -> None:
    for reply in (
        shared.http.get(f"/entities/{given}"),
        shared.http.patch(f"/entities/{given}", json={"a": 1}),
    ):
        assert (reply.status_code, reply.json()["code"]) == (404, "unknown_entity")
    unknown = shared.http.get("/entities/query/nobody")
    assert (unknown.status_code, unknown.json()["code"]) == (404, "unknown_query")


def test_of_two_edits_at_once_one_is_made(shared: Broker, handles: list[str]) -> None:
    path = f"/entities/query/{handles[0]}"
    version = shared.http.get(path).json()["version"]

    def edit(weight: float) -> httpx.Response:
        return shared.http.patch(path, json={"weight": weight, "if_version": version})

    with ThreadPoolExecutor(2) as pool:
        replies = list(pool.map(edit, (2.0, 3.0)))
    assert sorted(reply.status_code for reply in replies) == [200, 409]
    (made,) = (reply.json() for reply in replies if reply.status_code == 200)
    weight = next(one["value"] for one in made["attributes"] if one["name"] == "weight")
    assert shared.http.get(f"/queries/{handles[0]}").json()["weight"] == weight


def test_a_query_is_paused_by_a_step(shared: Broker, handles: list[str]) -> None:
    path = f"/entities/query/{handles[0]}"
    (paused,) = (one for one in shared.http.get(path).json()["attributes"] if one["name"] == "paused")
    assert paused["changes_answers"]
    before = shared.snapshot(handles[1])["position"]
    assert shared.http.patch(path, json={"paused": True}).status_code == 200
    assert shared.state(handles[0]) == "PAUSED"
    assert shared.snapshot(handles[1])["position"] != before
    refused = shared.http.patch(path, json={"weight": -1})
    assert (refused.status_code, refused.json()["code"]) == (400, "option_refused")


def test_null_is_the_default(shared: Broker, name: str, handles: list[str]) -> None:
    path = f"/queries/{handles[1]}"
    assert shared.http.patch(path, json={"strategy": "upa"}).json()["options"] == {"strategy": "upa"}
    assert shared.http.patch(path, json={"strategy": None}).json()["options"] == {}
    sql = f"SELECT id FROM {name} WHERE v > 3"
    reply = shared.http.post("/queries", json={"sql": sql, "options": {"strategy": None, "weight": None}})
    assert reply.status_code == 201, reply.text
    assert shared.http.get(f"/queries/{reply.json()['handle']}").json()["options"] == {}


def test_events_tell_what_moved(shared: Broker, name: str, handles: list[str]) -> None:
    parameters = {"query": handles[1], "every_ms": 100}
    found: list[dict[str, Any]] = []

    def told() -> Iterator[dict[str, Any]]:
        with httpx.stream("GET", f"{shared.url}/entities/events", params=parameters, timeout=60) as reply:
            assert reply.headers["content-type"].startswith("application/x-ndjson")
            for line in reply.iter_lines():
                yield json.loads(line)

    sent = threading.Event()
    for event in told():
        if not sent.is_set():
            shared.send(name, rows(30, 1_000))
            sent.set()
        found.append(event)
        moved = sum(
            one.get("rows_in", 0)
            for each in found
            for one in each["entities"]
            if one["id"].endswith(f"/source/{name}")
        )
        if moved == 30:
            break
        assert len(found) < 300
    ids = {one["id"] for each in found for one in each["entities"]}
    assert any("/operator/" in id_ for id_ in ids)

    headers = {"Accept": "text/event-stream"}
    with httpx.stream(
        "GET", f"{shared.url}/entities/events", params=parameters, headers=headers, timeout=60
    ) as reply:
        assert next(reply.iter_lines()) == "event: entities"
    path = "/entities/events"
    with httpx.stream("GET", f"{shared.url}{path}", params={**parameters, "rows": 4}, timeout=60) as reply:
        sample = json.loads(next(reply.iter_lines()))["sample"]
    answer = shared.snapshot(handles[1])
    assert (sample["of"], sample["columns"]) == (len(answer["rows"]), answer["columns"])
    assert 0 < len(sample["rows"]) == min(4, sample["of"])
    assert all(row in answer["rows"] for row in sample["rows"])
    by_id = shared.http.get(path, params={"query": query_id(handles[1]), "rows": 1})
    assert (by_id.status_code, by_id.json()["code"]) == (404, "handle_needed")
    for refused in ({"rows": 1}, {"query": handles[1], "rows": 1_000}, {"query": handles[1], "rows": -1}):
        assert shared.http.get(path, params=refused).status_code == 400
    wrong = shared.http.get("/entities/events", params={"every_ms": 1})
    assert (wrong.status_code, wrong.json()["code"]) == (400, "bad_request")


def test_events_end_when_the_broker_stops(kafka: str, tmp_path: Path) -> None:
    seen, ended = threading.Event(), threading.Event()

    def read() -> None:
        with (
            contextlib.suppress(httpx.HTTPError),
            httpx.stream("GET", f"{one.url}/entities/events?every_ms=100", timeout=60) as reply,
        ):
            for _ in reply.iter_lines():
                seen.set()
        ended.set()

    with broker(kafka, tmp_path / "data", f"t{uuid.uuid4().hex[:12]}") as one:
        threading.Thread(target=read, daemon=True).start()
        assert seen.wait(30)
        assert one.stop() == 0
        assert ended.wait(10)
        assert "CancelledError" not in one.log.read_text()


def command(shared: Broker, *args: str) -> Result:
    environment = {"TUREEN_URL": shared.url, "COLUMNS": "200"}
    return CliRunner().invoke(main, list(args), env=environment, catch_exceptions=False)


def test_the_entity_command(shared: Broker, name: str, handles: list[str]) -> None:
    done = command(shared, "entity", "list", "--query", handles[1])
    assert done.exit_code == 0, done.output
    assert f"/source/{name}" in done.stdout
    stem = stem_of(shared, name)
    shown = json.loads(command(shared, "entity", "show", stem, "--json").stdout)
    assert shown["id"] == stem
    assert "policy" in command(shared, "entity", "show", stem).stdout
    changed = command(shared, "entity", "set", stem, "policy=random", "--if-version", str(shown["version"]))
    assert changed.exit_code == 0, changed.output
    again = command(shared, "entity", "set", stem, "policy=fixed", "--if-version", str(shown["version"]))
    assert again.exit_code == 1
    assert "changed meanwhile" in again.stderr
    weighed = command(shared, "entity", "set", f"query/{handles[0]}", "weight=2.5", "--json")
    assert {one["name"]: one["value"] for one in json.loads(weighed.stdout)["attributes"]}["weight"] == 2.5
    usual = command(shared, "entity", "set", f"query/{handles[0]}", "weight=NULL", "--json")
    assert {one["name"]: one["value"] for one in json.loads(usual.stdout)["attributes"]}["weight"] == 1


@pytest.mark.parametrize(
    ("values", "code"),
    [
        (("weight=nan",), "bad_request"),
        (("weight=1e400",), "bad_request"),
        (("weight=0",), "option_refused"),
        (("weight=true",), "bad_request"),
        (("paused=maybe",), "bad_request"),
        (("active=false", "paused=true"), "bad_request"),
        (("state=RUNNING",), "bad_request"),
        (("cpu_ns=0",), "bad_request"),
    ],
)
def test_values_that_a_query_cannot_have_are_refused_by_the_command(
    shared: Broker, handles: list[str], values: tuple[str, ...], code: str
) -> None:
    done = command(shared, "entity", "set", f"query/{handles[0]}", *values, "--json")
    assert done.exit_code == 1, done.output
    assert json.loads(done.stdout)["error"]["code"] == code


def test_the_command_names_what_is_wrong_with_its_arguments(shared: Broker, handles: list[str]) -> None:
    twice = command(shared, "entity", "set", f"query/{handles[0]}", "weight=2", "weight=3")
    assert (twice.exit_code, "weight is given twice" in twice.stderr) == (2, True)
    strange = command(shared, "entity", "list", "--kind", "querys")
    assert (strange.exit_code, "there is no kind 'querys'" in strange.stderr) == (1, True)
    unknown = shared.http.get("/entities", params={"kind": "querys"})
    assert (unknown.status_code, unknown.json()["code"]) == (400, "bad_request")
    assert "query, queue" in unknown.json()["hint"]
    assert shared.http.get("/entities/events", params={"kind": "querys"}).status_code == 400
    paused = command(shared, "entity", "set", f"query/{handles[0]}", "active=false", "release=true", "--json")
    read = {one["name"]: one["value"] for one in json.loads(paused.stdout)["attributes"]}
    assert (read["paused"], read["release"], read["state"]) == (True, True, "PAUSED")
    resumed = command(shared, "entity", "set", f"query/{handles[0]}", "active=true", "--json")
    read = {one["name"]: one["value"] for one in json.loads(resumed.stdout)["attributes"]}
    assert (read["paused"], read["release"], read["state"]) == (False, False, "RUNNING")


def test_top_shows_who_pays(shared: Broker, name: str, handles: list[str]) -> None:
    done = command(shared, "top", "--once", "--every", "0.3")
    assert done.exit_code == 0, done.output
    assert "queries" in done.stdout
    feeding = threading.Thread(target=lambda: shared.send(name, rows(20_000, 10_000)))
    feeding.start()
    told = json.loads(command(shared, "top", "--once", "--json", "--every", "2", "--limit", "10000").stdout)
    feeding.join()
    shares = {one["id"]: one["cpu_share"] for one in told["entities"] if one["kind"] == "query"}
    assert sum(shares.values()) + told["unread_share"] == pytest.approx(1.0, abs=0.01)
    mine = [f"query/{query_id(handle)}" for handle in handles]
    assert set(mine) <= shares.keys()
    wait_until(lambda: shared.source(name)["rows"] >= 20_000)
