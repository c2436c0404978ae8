"""PATCH of a query: pause, resume, maintenance, weight, by HTTP and by topic, through a restart."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from broker.http.options import change_request
from tests.broker.conftest import stream_sql
from tests.broker.running import Broker, broker
from tests.kafka import wait_until
from tureen.errors import TureenError
from tureen.protocol import new_handle, query_id

BASE_MS = 1_700_000_000_000


def rows(count: int, start: int = 0) -> list[dict[str, object]]:
    return [{"id": i, "v": i / 2, "ts": BASE_MS + i} for i in range(start, start + count)]


def states(one: Broker, handle: str) -> list[str | None]:
    """Every state that the status topic told of a query."""
    return [told and told["state"] for told in one.status_topic().get(query_id(handle), [])]


def test_pause_and_resume(shared: Broker, name: str) -> None:
    shared.create(stream_sql(name))
    handle = shared.register(f"SELECT id FROM {name} WHERE id < 15")
    shared.send(name, rows(10))
    shared.await_rows(handle, 9)
    path = f"/queries/{handle}"
    others = shared.http.get("/status").json()["queries"].get("PAUSED", 0)

    reply = shared.http.patch(path, json={"paused": True})
    assert (reply.status_code, reply.json()["state"], reply.json()["paused"]) == (200, "PAUSED", True)
    assert reply.json() | {"position": None} == shared.http.get(path).json() | {"position": None}
    refused = shared.http.get(f"{path}/snapshot")
    assert (refused.status_code, refused.json()["code"]) == (409, "query_paused")
    assert shared.http.get("/status").json()["queries"]["PAUSED"] == others + 1
    assert f'tureen_queries{{state="PAUSED"}} {others + 1}.0' in shared.http.get("/metrics").text
    shared.send(name, rows(10, 10))
    wait_until(lambda: shared.source(name)["rows"] == 19, what="the rows are in")

    again = shared.register(f"SELECT id FROM {name} WHERE id < 15", handle)  # a repeated registration
    assert (again, shared.state(handle)) == (handle, "PAUSED")
    reply = shared.http.patch(path, json={"paused": False})
    assert (reply.status_code, reply.json()["state"], reply.json()["paused"]) == (200, "RUNNING", False)
    assert shared.rows(handle) == [[i] for i in range(15)]  # as if it had never been paused
    wait_until(lambda: len(states(shared, handle)) == 3)
    assert states(shared, handle) == ["RUNNING", "PAUSED", "RUNNING"]

    for sql, told in (
        (f"PAUSE '{handle}' RELEASE", (True, True)),
        (f"PAUSE QUERY '{handle}'", (True, False)),
        (f"RESUME '{handle}'", (False, False)),
    ):
        assert shared.http.post("/statements", json={"sql": sql}).json()["paused"] == told[0]
        attributes = shared.http.get(f"/entities/query/{handle}").json()["attributes"]
        read = {one["name"]: one["value"] for one in attributes}
        assert (read["paused"], read["release"]) == told, sql


@pytest.mark.parametrize(
    ("change", "message", "hint"),
    [
        ({"wieght": 2}, "'wieght' cannot be changed", "did you mean weight? paused, active, "),
        ({"colour": 2}, "'colour' cannot be changed", "paused, active, "),
        ({"weight": "heavy"}, "weight cannot be 'heavy'", "a number above 0 and up to 1,000"),
        ({"weight": 5_000}, "weight cannot be 5000", "a number above 0 and up to 1,000"),
        ({"weight": "2"}, "weight cannot be '2'", "JSON has a number here"),
        ({"paused": "maybe"}, "paused cannot be 'maybe'", "true or false"),
        ({"latency_ms_max": 1.5}, "latency_ms_max cannot be 1.5", "a number of ms from 1 to 3,600,000"),
        ({"max_fn": 3}, "max_fn cannot be '3'", "a share of missing rows from 0 to 1"),
        ({"strategy": 7}, "strategy cannot be 7", "one of auto, nt, direct, upa"),
    ],
)
def test_what_cannot_be_set_is_told_with_what_can(change: dict[str, object], message: str, hint: str) -> None:
    with pytest.raises(TureenError) as refused:
        change_request(json.dumps(change).encode(), 1_000)
    assert refused.value.message == message
    assert refused.value.hint is not None
    assert refused.value.hint.startswith(hint)


def test_formats_are_named_where_another_is_asked_for(shared: Broker, name: str) -> None:
    shared.create(stream_sql(name))
    handle = shared.register(f"SELECT id FROM {name}")
    for path, parameter, hint in (
        ("snapshot?format=xml", "query.format", "one of json, ndjson, csv or arrow"),
        ("changes?format=xml", "format", "one of ndjson or sse"),
        ("changes?live=maybe", "live", "one of true, false or poll"),
    ):
        reply = shared.http.get(f"/queries/{handle}/{path}")
        given = path.rpartition("=")[2]
        assert (reply.status_code, reply.json()["message"], reply.json()["hint"]) == (
            400,
            f"{parameter} cannot be '{given}'",
            hint,
        )


def test_every_maintenance_gives_the_same_answer(shared: Broker, name: str) -> None:
    shared.create(stream_sql(name))
    handle = shared.register(f"SELECT id, v FROM {name} WHERE v > 2 OR id = 1")
    shared.send(name, rows(20))
    before = shared.await_rows(handle, 15)
    for mode in ("eager", "none", "lazy", "auto"):
        changed = shared.http.patch(f"/queries/{handle}", json={"maintenance": mode, "weight": 2.5}).json()
        assert changed["options"] == {"maintenance": mode, "weight": 2.5}
        assert changed["weight"] == 2.5
        assert changed["maintenance"] in (("none", "lazy", "eager") if mode == "auto" else (mode,))
        assert shared.rows(handle) == before
        if mode != "auto":
            assert _maintained(shared, mode) >= 1
    listed = {one["query_id"]: one for one in shared.http.get("/queries").json()["queries"]}
    assert listed[query_id(handle)]["weight"] == 2.5
    assert listed[query_id(handle)]["paused"] is False


def test_latency_is_an_option_that_changes(shared: Broker, name: str) -> None:
    shared.create(stream_sql(name))
    handle = shared.register(f"SELECT id FROM {name} [RANGE 1 SECOND]")
    for ms in (40, None):
        changed = shared.http.patch(f"/queries/{handle}", json={"latency_ms_max": ms}).json()
        assert changed["options"] == ({} if ms is None else {"latency_ms_max": ms})
        told = shared.http.get(f"/entities/query/{handle}").json()["attributes"]
        assert {one["name"]: one["value"] for one in told}["latency_ms_max"] == ms
    for wrong in (0, 1.5, "soon", 3_600_001):
        reply = shared.http.patch(f"/queries/{handle}", json={"latency_ms_max": wrong})
        assert reply.status_code == 400, wrong


def _maintained(one: Broker, mode: str) -> float:
    """How many queries the metrics tell for a mode."""
    start = f'tureen_queries_maintained{{mode="{mode}"}} '
    lines = one.http.get("/metrics").text.splitlines()
    (value,) = (line.removeprefix(start) for line in lines if line.startswith(start))
    return float(value)


def test_maintenance_that_is_left_open_follows_the_load(
    kafka: str, tmp_path: Path, service_id: str, name: str
) -> None:
    with broker(kafka, tmp_path / "data", service_id, REVISE_INTERVAL_MS=100) as own:
        own.create(stream_sql(name))
        handles = [own.register(f"SELECT id FROM {name} WHERE v >= {i}") for i in range(3)]
        for start in range(0, 400, 20):
            own.send(name, rows(20, start))
            for i, handle in enumerate(handles):
                found = own.await_rows(handle, start + 18 - 2 * i)
                assert found == [[id_] for id_ in range(2 * i, 2 * i + len(found))]
        assert sum(_maintained(own, mode) for mode in ("none", "lazy", "eager")) == 3
        assert "tureen_maintenance_changes_total" in own.http.get("/metrics").text


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({}, "bad_request"),
        ({"sql": "SELEC 1"}, "syntax"),
        ({"sql": "SELECT 1", "paused": "yes"}, "bad_request"),
        ({"paused": "yes"}, "bad_request"),
        ({"weight": True}, "bad_request"),
        ({"weight": 0}, "option_refused"),
        ({"maintenance": "busy"}, "option_refused"),
        ({"strategy": "fast"}, "option_refused"),
        ({"strategy": "direct", "structure": "tree"}, "option_refused"),
        ({"partitions": 0}, "option_refused"),
        ({"partitions": 65_537}, "option_refused"),
        ({"partitions": 12, "strategy": "upa"}, "option_refused"),
        ({"partitions": 2.5}, "bad_request"),
        ({"partitions": True}, "bad_request"),
        ({"sql": "SELECT COUNT(*) FROM {name} [ROWS 2]", "strategy": "direct"}, "option_refused"),
    ],
)
def test_changes_that_are_refused_change_nothing(
    shared: Broker, name: str, body: dict[str, object], code: str
) -> None:
    shared.create(stream_sql(name))
    handle = shared.register(f"SELECT id FROM {name} [RANGE 10 MILLISECONDS]")
    if "sql" in body:
        body = body | {"sql": str(body["sql"]).format(name=name)}
    reply = shared.http.patch(f"/queries/{handle}", json=body)
    assert (reply.status_code, reply.json()["code"]) == (400, code)
    assert shared.http.get(f"/queries/{handle}").json()["options"] == {}


def test_direct_is_refused_where_exits_are_not_known(shared: Broker, name: str) -> None:
    shared.create(stream_sql(name))
    sql = f"SELECT id FROM {name} [ROWS 3]"
    reply = shared.http.post("/queries", json={"sql": sql, "options": {"strategy": "direct"}})
    assert (reply.status_code, reply.json()["code"]) == (400, "option_refused")
    assert "last 3 rows" in reply.json()["message"]
    handle = shared.register(sql)
    reply = shared.http.patch(f"/queries/{handle}", json={"strategy": "direct"})
    assert (reply.status_code, reply.json()["hint"]) == (400, "nt, upa or auto")
    told = shared.http.get(f"/queries/{handle}").json()
    assert (told["state"], told["options"], told["strategy"]) == ("RUNNING", {}, "auto")
    told = shared.http.patch(f"/queries/{handle}", json={"strategy": "upa", "structure": "indexed"}).json()
    assert (told["strategy"], told["state"]) == ("upa", "RUNNING")


def test_strategies_of_followed_queries_are_counted(shared: Broker, name: str) -> None:
    shared.create(stream_sql(name))
    counted = shared.http.get("/status").json()["strategies"]
    sql = f"SELECT DISTINCT id FROM {name} [RANGE 1 SECOND] EMIT CHANGES WITH (format = 'diff')"
    for strategy in ("nt", "direct", "upa"):
        options = {"strategy": strategy, "partitions": 5}
        reply = shared.http.post("/queries", json={"sql": sql, "options": options}).json()
        assert shared.http.get(f"/queries/{reply['handle']}").json()["strategy"] == strategy
    shared.send(name, rows(10))

    def all_counted() -> bool:
        now = shared.http.get("/status").json()["strategies"]
        return all(now[one]["queries"] == counted[one]["queries"] + 1 for one in counted)

    wait_until(all_counted, what="the three are counted")
    assert "tureen_followed_queries{strategy=" in shared.http.get("/metrics").text


def test_options_at_registration(shared: Broker, name: str) -> None:
    shared.create(stream_sql(name))
    sql = f"SELECT id FROM {name}"
    for options in ({"maintenance": "busy"}, {"weight": "heavy"}, {"paused": 3}):
        reply = shared.http.post("/queries", json={"sql": sql, "options": options})
        assert (reply.status_code, reply.json()["code"]) == (400, "option_refused")
    reply = shared.http.post("/queries", json={"sql": sql, "options": {"paused": True, "team": "a"}})
    assert (reply.status_code, reply.json()["state"]) == (201, "PAUSED")
    handle = reply.json()["handle"]
    assert shared.http.get(f"/queries/{handle}").json()["options"] == {"paused": True, "team": "a"}

    shared.publish(handle, {"sql": sql, "options": {"maintenance": "eager"}})  # the topic is the truth
    wait_until(lambda: shared.state(handle) == "RUNNING")
    assert shared.http.get(f"/queries/{handle}").json()["maintenance"] == "eager"
    shared.publish(handle, {"sql": sql, "options": {"weight": -1}})
    wait_until(lambda: shared.state(handle) == "ERROR")
    assert shared.http.get(f"/queries/{handle}").json()["error"]["code"] == "option_refused"
    refused = shared.http.patch(f"/queries/{handle}", json={"paused": True})
    assert (refused.status_code, refused.json()["code"]) == (409, "query_not_running")


def test_a_misspelt_option_is_refused(shared: Broker, name: str) -> None:
    shared.create(stream_sql(name))
    sql = f"SELECT id FROM {name}"
    slip = {"sql": sql, "options": {"team": "a", "weigth": 2}}
    reply = shared.http.post("/queries", json=slip)
    assert (reply.status_code, reply.json()["code"]) == (400, "option_refused")
    assert "'weigth'" in reply.json()["message"]
    assert "weight" in reply.json()["hint"]

    lines = "\n".join(json.dumps(one) for one in (slip, {"sql": sql, "options": {"weight": 2}}))
    headers = {"Content-Type": "application/x-ndjson"}
    replies = shared.http.post("/queries", content=lines, headers=headers).text.splitlines()
    first, second = (json.loads(line) for line in replies)
    assert first["error"]["code"] == "option_refused"
    assert second["state"] == "RUNNING"

    handle = new_handle()
    shared.publish(handle, slip)
    wait_until(lambda: shared.state(handle) == "ERROR")
    assert "weight" in shared.http.get(f"/queries/{handle}").json()["error"]["hint"]
    shared.publish(handle, {"sql": sql, "options": {"team": "a", "weight": 2}})
    wait_until(lambda: shared.state(handle) == "RUNNING")


def test_a_template_keeps_its_parameters(shared: Broker, name: str) -> None:
    shared.create(stream_sql(name))
    shared.send(name, rows(10))
    template = {"template": f"SELECT id FROM {name} WHERE id > :low", "parameters": {"low": 5}}
    handle = shared.http.post("/queries", json=template).json()["handle"]
    paused = shared.http.patch(f"/queries/{handle}", json={"paused": True}).json()
    assert (paused["state"], paused["parameters"]) == ("PAUSED", {"low": 5})
    shared.http.patch(f"/queries/{handle}", json={"paused": False})
    assert shared.await_rows(handle, 3) == [[6], [7], [8]]
    plan = shared.http.get(f"/queries/{handle}/plan").json()
    assert "5" in plan["predicates"][0]["predicate"]


def test_an_unknown_handle(shared: Broker) -> None:
    reply = shared.http.patch(f"/queries/{new_handle()}", json={"paused": True})
    assert (reply.status_code, reply.json()["code"]) == (404, "unknown_query")


def test_a_query_that_waits_for_its_stream_can_be_paused(shared: Broker, name: str) -> None:
    handle = shared.http.post("/queries", json={"sql": f"SELECT id FROM {name}"}).json()["handle"]
    reply = shared.http.patch(f"/queries/{handle}", json={"paused": True})
    assert (reply.status_code, reply.json()["state"], reply.json()["paused"]) == (200, "PENDING", True)
    shared.create(stream_sql(name))
    wait_until(lambda: shared.state(handle) == "PAUSED")


def test_changes_survive_a_restart(kafka: str, tmp_path: Path, service_id: str, name: str) -> None:
    own = Broker(kafka, tmp_path / "data", service_id).start()
    own.create(stream_sql(name))
    paused, eager = (own.register(f"SELECT id FROM {name} WHERE id > {i}") for i in range(2))
    own.send(name, rows(10))
    own.await_rows(eager, 7)
    own.http.patch(f"/queries/{paused}", json={"paused": True})
    own.http.patch(f"/queries/{eager}", json={"maintenance": "eager", "weight": 3, "strategy": "upa"})
    own.kill()
    own.start()
    # Commands that the killed process had not noted as done are carried out again, in their order.
    wait_until(lambda: own.state(paused) == "PAUSED")
    wait_until(lambda: own.http.get(f"/queries/{eager}").json().get("weight") == 3)
    assert own.http.get(f"/queries/{eager}").json()["maintenance"] == "eager"
    assert own.http.get(f"/queries/{eager}").json()["strategy"] == "upa"
    assert own.rows(eager) == [[i] for i in range(2, 9)]
    resumed = own.http.patch(f"/queries/{paused}", json={"paused": False}).json()
    assert resumed["state"] == "RUNNING"
    assert own.rows(paused) == [[i] for i in range(1, 9)]
    told = ["RUNNING", "PAUSED"]  # what the killed process had not noted as done is done, and told, again
    expected = [[*told, "RUNNING"], [*told, *told, "RUNNING"]]
    wait_until(lambda: states(own, paused) in expected, what="all of it is told")
