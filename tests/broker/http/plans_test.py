"""Plans as files, over HTTP, by the queries' topic, and by the command."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tests.broker.conftest import stream_sql
from tests.broker.running import Broker, broker
from tests.kafka import wait_until
from tureen.cli import main
from tureen.protocol import new_handle, query_id

BASE_MS = 1_700_000_000_000


def rows(count: int) -> list[dict[str, object]]:
    return [{"id": i, "v": i / 2, "ts": BASE_MS + i} for i in range(count)]


def grouped(name: str) -> dict[str, Any]:
    return {
        "version": 1,
        "nodes": {
            "high": {"op": "scan", "source": name, "window": "RANGE 1 HOUR", "where": "v > 2"},
            "by_rest": {
                "op": "aggregate",
                "input": "high",
                "keys": {"rest": "id % 3"},
                "calls": {"n": "COUNT(*)", "most": "MAX(v)"},
            },
            "first": {"op": "sort", "input": "by_rest", "by": ["n DESC", "rest"]},
        },
        "output": "first",
        "options": {"weight": 2},
    }


SQL = (
    "SELECT id % 3 AS rest, COUNT(*) AS n, MAX(v) AS most FROM {} [RANGE 1 HOUR] WHERE v > 2 "
    "GROUP BY id % 3 ORDER BY n DESC, rest"
)


def test_a_plan_is_registered_as_its_text_is(shared: Broker, name: str) -> None:
    shared.create(stream_sql(name))
    reply = shared.http.post("/queries", json={"plan": grouped(name)})
    assert reply.status_code == 201, reply.text
    handle, twin = reply.json()["handle"], shared.register(SQL.format(name))
    shared.send(name, rows(40))
    found = shared.await_rows(handle, 3)
    wait_until(lambda: shared.rows(handle) == shared.rows(twin) and sum(r[1] for r in found))
    assert shared.http.get(f"/queries/{handle}").json()["weight"] == 2
    mine = shared.http.get(f"/plans/{handle}").json()
    theirs = shared.http.get(f"/plans/{query_id(twin)}").json()
    assert mine.pop("options") == {"weight": 2}
    assert mine == theirs
    again = shared.http.post("/queries", json={"plan": mine}).json()["handle"]
    assert shared.http.get(f"/plans/{again}").json() == mine


def test_a_plan_is_published_by_topic(shared: Broker, name: str) -> None:
    shared.create(stream_sql(name))
    handle = new_handle()
    shared.publish(handle, {"plan": grouped(name), "options": {"weight": 3}})
    wait_until(lambda: shared.state(handle) == "RUNNING")
    assert shared.http.get(f"/queries/{handle}").json()["weight"] == 3
    wrong = new_handle()
    shared.publish(wrong, {"plan": grouped(name) | {"output": "nowhere"}})
    wait_until(lambda: shared.state(wrong) == "ERROR")
    assert shared.http.get(f"/queries/{wrong}").json()["error"]["code"] == "plan_refused"


def test_what_has_no_operators_is_exported_as_its_text(shared: Broker, name: str) -> None:
    shared.create(stream_sql(name))
    sql = (
        f"SELECT COUNT(*) AS n FROM {name} WHERE v > 3 GROUP BY SESSION(ts, INTERVAL '5' MINUTE) EMIT CHANGES"
    )
    handle = shared.register(sql)
    found = shared.http.get(f"/plans/{handle}").json()
    assert found == {"version": 1, "sql": sql}
    assert shared.http.post("/queries", json={"plan": found}).status_code == 201


def test_an_operator_of_another_query_is_shared(shared: Broker, name: str) -> None:
    shared.create(stream_sql(name))
    other = shared.register(SQL.format(name))
    theirs = next(
        n
        for n, node in shared.http.get(f"/plans/{other}").json()["nodes"].items()
        if node["op"] == "aggregate"
    )
    plan = {
        "version": 1,
        "nodes": {
            "groups": {"op": "shared", "query": query_id(other), "node": theirs},
            "few": {"op": "filter", "input": "groups", "where": "n < 100"},
        },
        "output": "few",
    }
    reply = shared.http.post("/queries", json={"plan": plan})
    assert reply.status_code == 201, reply.text
    shared.send(name, rows(40))
    assert len(shared.await_rows(reply.json()["handle"], 3)) == 3
    for query, node, path in ((query_id(other), "nothing", "nodes.groups.node"), ("nobody", theirs, "nodes")):
        plan["nodes"]["groups"] = {"op": "shared", "query": query, "node": node}  # type: ignore[index]
        refused = shared.http.post("/queries", json={"plan": plan})
        assert (refused.status_code, refused.json()["code"]) == (400, "plan_refused")
        assert refused.json()["message"].startswith(path)


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"output": "nowhere"}, "output:"),
        ({"version": 7}, "version:"),
        ({"nodes": {"first": {"op": "sort", "input": "first", "by": ["1"]}}}, "nodes.first:"),
    ],
)
def test_what_is_no_plan_is_refused(shared: Broker, name: str, change: dict[str, Any], path: str) -> None:
    shared.create(stream_sql(name))
    for method, where in (("POST", "/queries"), ("POST", "/plans/validate")):
        reply = shared.http.request(method, where, json={"plan": grouped(name) | change})
        assert (reply.status_code, reply.json()["code"]) == (400, "plan_refused")
        assert reply.json()["message"].startswith(path)


def test_refused_expressions_are_named(shared: Broker, name: str) -> None:
    shared.create(stream_sql(name))
    plan = grouped(name)
    plan["nodes"]["by_rest"]["calls"]["most"] = "MAX(nothing)"
    for where in ("/queries", "/plans/validate"):
        told = shared.http.post(where, json={"plan": plan}).json()
        assert told["code"] == "plan_refused"
        assert told["message"].startswith("nodes.by_rest.calls.most:")
        assert (told["line"], told["column"]) == (1, 5)
    both = shared.http.post("/queries", json={"plan": grouped(name), "sql": "SELECT 1"})
    assert (both.status_code, both.json()["code"]) == (400, "bad_request")


def test_a_plan_is_applied_to_a_query_that_runs(shared: Broker, name: str) -> None:
    shared.create(stream_sql(name))
    handle = shared.register(SQL.format(name) + " EMIT CHANGES")
    shared.send(name, rows(40))
    shared.await_read(name)
    before = shared.await_rows(handle, 3)
    path = f"/plans/{handle}"
    plan = shared.http.get(path).json()
    (stem,) = (
        one["id"]
        for one in shared.http.get("/entities", params={"query": handle}).json()["entities"]
        if "/query-stem/" in one["id"]
    )
    wanted = plan | {"options": {"strategy": "upa", "weight": 4}, "operators": {stem: {"policy": "fixed"}}}
    reply = shared.http.put(path, json={"plan": wanted})
    assert reply.status_code == 200, reply.text
    assert reply.json()["options"] == {"strategy": "upa", "weight": 4}
    told = shared.http.get(f"/entities/{stem}").json()["attributes"]
    assert {one["name"]: one["value"] for one in told}["policy"] == "fixed"
    assert shared.rows(handle) == before
    assert shared.http.put(path, json={"plan": plan}).json()["options"] == {}

    same = dict(plan, nodes={f"{n}_": {**node} for n, node in plan["nodes"].items()})
    same["output"] += "_"
    for node in same["nodes"].values():
        node |= {"input": node["input"] + "_"} if "input" in node else {}
    assert shared.http.put(path, json={"plan": same}).status_code == 200

    plan["nodes"][name]["where"] = "v > 3"
    refused = shared.http.put(path, json={"plan": plan})
    assert (refused.status_code, refused.json()["code"]) == (409, "plan_is_another")
    assert refused.json()["message"].startswith(f"nodes.{name}.where")
    assert shared.http.put("/plans/nobody", json={"plan": plan}).status_code == 404


def mirrored(one: Broker) -> dict[str, list[Any]]:
    """Query id -> what was written of it to the topic of plans."""
    found: dict[str, list[Any]] = {}
    for record in one.records(one.names.plans):
        value = record.value()
        found.setdefault(record.key().decode(), []).append(None if value is None else json.loads(value))
    return found


def test_plans_are_mirrored_and_only_what_differs_is_written(kafka: str, tmp_path: Path) -> None:
    with broker(kafka, tmp_path / "data", f"t{uuid.uuid4().hex[:12]}") as one:
        one.create(stream_sql("s"))
        kept, gone = one.register(SQL.format("s")), one.register("SELECT id FROM s")
        name, other = query_id(kept), query_id(gone)
        wait_until(lambda: {name, other} <= mirrored(one).keys())
        (told,) = mirrored(one)[name]
        assert told["plan"] == one.http.get(f"/plans/{kept}").json()
        assert told["state"] == "RUNNING"
        assert told["running"]["maintenance"] in ("none", "lazy", "eager")
        one.http.patch(f"/queries/{kept}", json={"weight": 7})
        wait_until(lambda: mirrored(one)[name][-1]["plan"].get("options") == {"weight": 7})
        one.http.delete(f"/queries/{gone}")
        wait_until(lambda: mirrored(one)[other][-1] is None)
        before = mirrored(one)[name]
        one.stop()
        one.start()
        new = query_id(one.register("SELECT v FROM s"))
        wait_until(lambda: new in mirrored(one))
        assert mirrored(one)[name] == before


def command(shared: Broker, *args: str) -> Result:
    environment = {"TUREEN_URL": shared.url, "COLUMNS": "200"}
    return CliRunner().invoke(main, ["plan", *args], env=environment, catch_exceptions=False)


def test_the_plan_command(shared: Broker, name: str, tmp_path: Path) -> None:
    shared.create(stream_sql(name))
    file = tmp_path / "plan.yaml"
    handle = shared.register(SQL.format(name))
    assert command(shared, "export", handle, "-o", str(file)).exit_code == 0
    assert "op: aggregate" in file.read_text()
    assert "aggregate" in command(shared, "show", handle).stdout
    valid = command(shared, "validate", str(file))
    assert valid.exit_code == 0, valid.output
    assert valid.stdout.startswith("WITH")
    assert command(shared, "validate", str(file), "--offline").stdout == valid.stdout
    same = command(shared, "diff", str(file), handle)
    assert (same.exit_code, same.stdout) == (0, "")
    for missing in (str(file.with_name("missing")), "missing.json"):
        refused = command(shared, "diff", missing, handle)
        assert (refused.exit_code, "there is no file" in refused.stderr) == (2, True)
    tolerant = shared.register(SQL.format(name) + " WITH (max_fn = 0.5)")
    assert 'with: {"max_fn": 0.5}' in command(shared, "show", tolerant).stdout
    file.write_text(file.read_text() + "options:\n  weight: 5\n")
    differs = command(shared, "diff", handle, str(file), "--json")
    assert differs.exit_code == 1
    assert json.loads(differs.stdout)[0]["path"] == "options"
    assert command(shared, "apply", handle, str(file)).exit_code == 0
    assert shared.http.get(f"/queries/{handle}").json()["weight"] == 5
    made = command(shared, "register", str(file))
    assert made.exit_code == 0, made.output
    assert shared.state(made.stdout.split()[-1]) == "RUNNING"
    file.write_text("version: 1\nnodes: {}\noutput: a\n")
    wrong = command(shared, "validate", str(file))
    assert wrong.exit_code == 1
    assert "nodes" in wrong.stderr
