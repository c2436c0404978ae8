"""Dry runs: nothing is done, all is checked, and what is said comes true."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import httpx
import pytest

from broker.allotment.consequences import RULES
from tests.broker.conftest import stream_sql
from tests.broker.running import Broker
from tests.kafka import wait_until
from tureen.protocol import new_handle, query_id

BASE_MS = 1_700_000_000_000
DRY = {"dry_run": "true"}


def rows(count: int, start: int = 0) -> list[dict[str, object]]:
    return [{"id": i, "v": i / 2, "ts": BASE_MS + 10 * i} for i in range(start, start + count)]


def path(id_: str) -> str:
    """Ids hold whatever names and conditions hold."""
    return f"/entities/{quote(id_)}"


def entity(one: Broker, id_: str) -> dict[str, Any]:
    reply = one.http.get(path(id_))
    assert reply.status_code == 200, reply.text
    found: dict[str, Any] = reply.json()
    return found


def dry(one: Broker, id_: str, **values: Any) -> dict[str, Any]:
    reply = one.http.patch(path(id_), params=DRY, json=values)
    assert reply.status_code == 200, reply.text
    found: dict[str, Any] = reply.json()
    return found


def codes(told: dict[str, Any]) -> set[str]:
    return {one["code"] for one in told["consequences"]}


def registered(one: Broker, sql: str, **options: object) -> str:
    handle = new_handle()
    reply = one.http.post("/queries", json={"sql": sql, "handle": handle, "options": options})
    assert reply.status_code in (200, 201), reply.text
    return handle


def another(attribute: dict[str, Any]) -> Any:
    """A value that it accepts, and has not."""
    value = attribute["value"]
    if attribute["choices"]:
        return next(one for one in attribute["choices"] if one != value)
    if attribute["type"] == "boolean":
        return not value
    bounds = attribute["range"]
    if bounds is None:
        return "3" if attribute["name"] == "partitions" else None
    low, high = bounds["low"], bounds["high"]
    if attribute["type"] == "integer":
        return (low + high) // 2
    return (low + high) / 2 if value != (low + high) / 2 else (low + 2 * high) / 3


def test_of_every_attribute_it_is_said_what_setting_it_does_and_nothing_is_done(
    shared: Broker, name: str
) -> None:
    other = f"{name}b"
    shared.create(stream_sql(name))
    shared.create(stream_sql(other))
    shared.create(f"CREATE SUMMARY {name}_ids ON {name} (id) WITH GRANULARITY 1 SECOND AND COLLAPSE(2, 3)")
    joined = registered(
        shared,
        f"SELECT a.id FROM {name} a JOIN {other} b ON a.id = b.id AND "
        "b.ts BETWEEN a.ts - INTERVAL '1' MINUTE AND a.ts",
    )
    counted = registered(
        shared, f"SELECT COUNT(*) AS n FROM {name} [RANGE 1 HOUR DOWN TO 1 SECOND]", max_error=0.9
    )
    first = shared.register(
        f"SELECT v FROM {name} WITH PREFERENCE SUMMARY.Estimate.Count(id) FADE FACTOR 0.5"
    )
    shared.send(name, rows(50))
    shared.send(other, rows(50))
    wait_until(lambda: shared.rows(counted)[0][0] == 49, what="the rows are in")
    page = shared.http.get("/entities", params={"limit": 10_000}).json()["entities"]
    ids = [one["id"] for one in page if one["kind"] != "query"]
    ids += [f"query/{handle}" for handle in (joined, counted, first)]
    seen = set()
    for id_ in ids:
        before = entity(shared, id_)
        if name not in id_ and f"{before['kind']}" not in ("query", "scheduler", "settings", "shard"):
            continue
        for attribute in before["attributes"]:
            if not attribute["settable"]:
                continue
            wanted = another(attribute)
            reply = shared.http.patch(path(id_), params=DRY, json={attribute["name"]: wanted})
            if id_.endswith(first) and attribute["name"].startswith("max_"):
                assert reply.json()["code"] == "option_refused"  # as the edit itself would be
                continue
            assert reply.status_code == 200, (id_, attribute, reply.text)
            told = reply.json()
            assert told["values"][attribute["name"]] == {"from": attribute["value"], "to": wanted}
            assert told["consequences"]
            assert all(one["text"].endswith(".") for one in told["consequences"])
            assert codes(told) != {"nothing_changes"}
            if attribute["value"] is not None:
                same = dry(shared, id_, **{attribute["name"]: attribute["value"]})
                assert codes(same) == {"nothing_changes"}
            module = id_.split("/")[0 if "/" not in id_ or before["kind"] == "query" else 1]
            seen.add((module, attribute["name"].partition(".")[0]))
        assert entity(shared, id_)["version"] == before["version"]
    assert seen == RULES.keys()


def test_what_is_said_comes_true(shared: Broker, name: str) -> None:
    other = f"{name}b"
    shared.create(stream_sql(name))
    shared.create(stream_sql(other))
    counted = registered(
        shared, f"SELECT COUNT(*) AS n FROM {name} [RANGE 1 HOUR DOWN TO 1 SECOND]", max_error=0.9
    )
    joined = registered(
        shared, f"SELECT a.id FROM {name} [RANGE 1 MINUTE] a, {other} [RANGE 1 MINUTE] b WHERE a.id = b.id"
    )
    shared.send(name, rows(1_000))
    shared.send(other, rows(1_000))
    shared.await_rows(joined, 999)
    wait_until(lambda: shared.rows(counted)[0][0] == 999, what="the rows are in")

    window = {f"window_ms.{name}": 1_800_000}
    told = dry(shared, f"query/{counted}", **window)
    (less,) = (one for one in told["consequences"] if one["code"] == "answers_approximate")
    assert not shared.snapshot(counted)["approximation"]
    shared.http.patch(f"/entities/query/{counted}", json=window)
    (tag,) = shared.snapshot(counted)["approximation"]
    assert tag.get("expected", {}) == less.get("expected", {})
    assert codes(dry(shared, f"query/{counted}", **{f"window_ms.{name}": None})) >= {"answers_exact"}
    refused = shared.http.patch(f"/entities/query/{counted}", params=DRY, json={f"window_ms.{name}": 1})
    assert (refused.status_code, refused.json()["code"]) == (400, "attribute_refused")

    (join,) = (one for one in entity(shared, f"query/{joined}")["reads"] if "/join/" in one)
    facts = {one["name"]: one["value"] for one in entity(shared, join)["attributes"]}
    (freed,) = (
        one for one in dry(shared, join, composites_max=100)["consequences"] if one["code"] == "memory_freed"
    )
    assert -freed["bytes"] == facts["composites_bytes"] > 0
    assert shared.http.patch(path(join), json={"composites_max": 100}).status_code == 200
    shared.send(name, rows(2, 1_000))
    shared.send(other, rows(2, 1_000))
    shared.await_rows(joined, 1_001)

    def kept() -> dict[str, Any]:
        return {one["name"]: one["value"] for one in entity(shared, join)["attributes"]}

    wait_until(lambda: kept()["composites_kept"] == 0, what="they are let go of")
    assert kept()["composites_refused"] is True
    assert shared.http.patch(path(join), json={"composites_max": 1_000_000}).status_code == 200
    shared.send(name, rows(2, 1_002))
    shared.send(other, rows(2, 1_002))
    wait_until(lambda: kept()["composites_kept"] > 1_000, what="they are found anew")
    assert len(shared.await_rows(joined, 1_003)) == 1_003

    for sql, way, changes in (
        (f"SELECT COUNT(*) AS n FROM {name} WHERE v > 3", "feeds_get_difference", "continue"),
        (f"SELECT id, v FROM {name} WHERE v > 3", "feeds_must_refetch", "must_refetch"),
    ):
        reply = shared.http.patch(f"/queries/{counted}", params=DRY, json={"sql": sql})
        assert {"answers_change", way} <= codes(reply.json()), reply.text
        assert reply.json()["values"]["text"]["to"] == {"sql": sql}
        assert shared.http.patch(f"/queries/{counted}", json={"sql": sql}).json()["changes"] == changes
    unknown = shared.http.patch(f"/queries/{counted}", params=DRY, json={"sql": "SELECT x FROM nowhere"})
    assert (unknown.status_code, unknown.json()["code"]) == (400, "unknown_source")
    by_id = shared.http.patch(f"/queries/{query_id(counted)}", params=DRY, json={"sql": "SELECT 1"})
    assert (by_id.status_code, by_id.json()["code"]) == (404, "handle_needed")


def test_the_dry_run_of_a_plan_has_those_of_its_options_and_operators(shared: Broker, name: str) -> None:
    shared.create(stream_sql(name))
    handle = shared.register(f"SELECT id FROM {name} WHERE v > 2")
    plan = shared.http.get(f"/plans/{handle}").json()
    (stem,) = (one for one in entity(shared, f"query/{handle}")["reads"] if "/query-stem/" in one)

    def dry_plan(plan: dict[str, Any]) -> httpx.Response:
        return shared.http.put(f"/plans/{handle}", params=DRY, json={"plan": plan})

    same = dry_plan(plan)
    assert (same.status_code, same.json()) == (200, {"values": {}, "consequences": []})
    wanted = plan | {"options": {"weight": 3}, "operators": {stem: {"policy": "fixed"}}}
    told = dry_plan(wanted).json()
    assert told["values"] == {
        "options.weight": {"from": 1, "to": 3},
        f"operators.{stem}.policy": {"from": "tickets", "to": "fixed"},
    }
    assert {(one["of"], one["code"]) for one in told["consequences"]} >= {
        ("options", "cost_moves"),
        (f"operators.{stem}", "order_alone"),
    }
    assert shared.http.get(f"/plans/{handle}").json() == plan
    other = shared.http.post("/plans/validate", json={"plan": {"version": 1, "sql": f"SELECT v FROM {name}"}})
    refused = dry_plan(other.json()["plan"])
    assert (refused.status_code, refused.json()["code"]) == (409, "plan_is_another")
    wrong = dry_plan(wanted | {"operators": {stem: {"policy": "clairvoyant"}}})
    assert (wrong.status_code, wrong.json()["code"]) == (400, "attribute_refused")


@pytest.mark.parametrize(
    ("values", "status", "code"),
    [
        ({"weight": -1}, 400, "option_refused"),
        ({"weight": "much"}, 400, "bad_request"),
        ({"weight": 2, "if_version": 1}, 409, "edit_conflict"),
        ({"max_error": 0.1, "weight": 2, "nothing": 1}, 400, "bad_request"),
        ({}, 400, "bad_request"),
    ],
)
def test_a_dry_run_is_refused_as_the_edit_would_be(
    shared: Broker, name: str, values: dict[str, Any], status: int, code: str
) -> None:
    shared.create(stream_sql(name))
    handle = shared.register(f"SELECT id FROM {name}")
    for params in (DRY, {}):
        reply = shared.http.patch(f"/entities/query/{handle}", params=params, json=values)
        assert (reply.status_code, reply.json()["code"]) == (status, code)
