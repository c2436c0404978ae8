"""Queries by their names: over HTTP, by topic, after a restart, and whose names are whose."""

from __future__ import annotations

import json
import uuid
from pathlib import Path

import pytest

import tureen
from tests.broker.conftest import stream_sql
from tests.broker.running import Broker, broker
from tests.kafka import wait_until
from tureen.errors import HandleNeeded, NameInUse, UnknownQuery
from tureen.protocol import new_handle, query_id

BASE_MS = 1_700_000_000_000


@pytest.fixture
def called() -> str:
    """A name of a query that no other test uses."""
    return f"q-{uuid.uuid4().hex[:10]}"


def ids_of(one: Broker) -> dict[str, str | None]:
    """The ids of all queries, with their names."""
    return {each["query_id"]: each["name"] for each in one.http.get("/queries").json()["queries"]}


def test_a_query_is_made_and_ended_by_its_name(shared: Broker, name: str, called: str) -> None:
    shared.create(stream_sql(name))
    status, made = shared.run(f'CREATE QUERY "{called}" AS SELECT id FROM {name} WHERE id < 2')
    assert (status, made["state"], made["name"]) == (201, "RUNNING", called)
    handle, public = made["handle"], made["query_id"]
    assert public == query_id(handle)
    shared.send(name, [{"id": i, "v": i, "ts": BASE_MS + i} for i in range(4)])
    assert shared.await_rows(handle, 2) == [[0], [1]]
    told = shared.http.get(f"/queries/{called}").json()
    assert (told["query_id"], told["name"], told["options"]) == (public, called, {})
    assert ids_of(shared)[public] == called
    _, table = shared.run("SHOW QUERIES")
    assert [called in row for row in table["rows"] if row[0] == public] == [True]
    assert [each["query_id"] for each in shared.http.get(f"/queries?search={called}").json()["queries"]] == [
        public
    ]
    for text in (f'EXPLAIN QUERY "{called}"', f"EXPLAIN '{called}'"):
        assert shared.run(text)[1]["plan"]["query_id"] == public, text
    assert shared.run(f'PAUSE "{called}"')[1]["state"] == "PAUSED"
    assert shared.run(f"RESUME '{called}'")[1]["state"] == "RUNNING"
    assert shared.run(f'DROP QUERY "{called}"') == (200, {"query_id": public, "state": "GONE"})
    assert shared.http.get(f"/queries/{called}").status_code == 404
    assert shared.run(f'DROP QUERY "{called}"')[1]["code"] == "unknown_query"
    skipped = {"query_id": None, "name": called, "state": "GONE", "skipped": True}
    assert shared.run(f'DROP QUERY IF EXISTS "{called}"') == (200, skipped)


def test_an_unknown_query_is_told_with_where_to_look(shared: Broker, name: str, called: str) -> None:
    shared.create(stream_sql(name))
    assert shared.run(f'CREATE QUERY "{called}" AS SELECT id FROM {name}')[0] == 201
    for text in ("DROP QUERY", "PAUSE", "RESUME", "TERMINATE", "EXPLAIN QUERY"):
        status, refused = shared.run(f'{text} "{called}x"')
        assert (status, refused["code"]) == (404, "unknown_query"), text
        assert f"did you mean {called}?" in refused["hint"], text
        assert "SHOW QUERIES" in refused["hint"], text
    many = shared.http.post("/queries/unregister", json={"queries": [f"{called}x"]}).json()
    assert many["unknown"][0]["error"]["hint"] == "SHOW QUERIES lists the ids and the names of queries"
    assert shared.run(f'DROP QUERY "{called}"')[0] == 200


def test_no_name_is_a_handle(shared: Broker, name: str) -> None:
    """Lists show names, and DROP QUERY by a name ends the query that has it."""
    shared.create(stream_sql(name))
    secret, other, sql = f"secret-{uuid.uuid4().hex}", f"alerts-{uuid.uuid4().hex}", f"SELECT id FROM {name}"
    refused = shared.http.post("/queries", json={"sql": sql, "handle": secret, "name": secret})
    assert (refused.status_code, refused.json()["code"]) == (409, "name_in_use")
    assert secret not in refused.text
    made = shared.http.post("/queries", json={"sql": sql, "handle": secret, "name": other})
    assert made.status_code == 201, made.text
    for reply in (
        shared.http.patch(f"/queries/{query_id(secret)}", json={"name": secret}),
        shared.http.post("/statements", json={"sql": f'ALTER QUERY "{other}" RENAME TO "{secret}"'}),
        shared.http.post("/queries", json={"sql": f"{sql} WHERE id > 1", "name": secret}),
        shared.http.post("/queries", json={"sql": f"{sql} WHERE id > 1", "handle": other}),
    ):
        assert (reply.status_code, reply.json()["code"]) == (409, "name_in_use"), reply.text
        assert secret not in reply.text
    assert shared.run(f'DROP QUERY "{other}"') == (200, {"query_id": query_id(secret), "state": "GONE"})
    shared.register(f"{sql} WHERE id > 1", handle=other)
    assert ids_of(shared)[query_id(other)] is None


def test_a_name_gives_no_more_rights_than_an_id(shared: Broker, name: str, called: str) -> None:
    shared.create(stream_sql(name))
    handle = shared.register(f"SELECT id FROM {name}")
    public = query_id(handle)
    assert shared.http.patch(f"/queries/{public}", json={"name": called}).json()["name"] == called
    for path in ("/queries/{}/snapshot", "/queries/{}/changes", "/queries/{}/difference?from=0"):
        for given in (public, called):
            refused = shared.http.get(path.format(given))
            assert (refused.status_code, refused.json()["code"]) == (404, "handle_needed"), path
            opened = shared.http.get(
                path.format(given) + ("?live=false" if path.endswith("changes") else ""),
                headers={"Tureen-Handle": handle},
            )
            assert opened.status_code != 404, opened.text
        other = shared.http.get(path.format(called), headers={"Tureen-Handle": new_handle()})
        assert (other.status_code, other.json()["code"]) == (404, "unknown_query")
    altered = shared.run(f'ALTER QUERY "{called}" AS SELECT v FROM {name}')
    assert (altered[0], altered[1]["code"]) == (404, "handle_needed")
    assert handle not in shared.http.get(f"/queries/{called}").text
    assert shared.http.get(f"/plans/{called}").json() == shared.http.get(f"/plans/{public}").json()
    assert "options" not in shared.http.get(f"/plans/{called}").json()
    assert shared.http.get(f"/entities/query/{called}").json()["id"] == f"query/{public}"


def test_a_name_belongs_to_one_query_at_a_time(shared: Broker, name: str, called: str) -> None:
    shared.create(stream_sql(name))
    text = f"SELECT id FROM {name}"
    first = shared.http.post("/queries", json={"sql": text, "name": called}).json()
    second = shared.http.post("/queries", json={"sql": text, "name": called})
    refused = second.json()
    assert (second.status_code, refused["code"]) == (409, "name_in_use")
    assert f"DROP QUERY {called}" in refused["hint"]
    assert first["query_id"] in refused["message"]
    assert shared.run(f'CREATE QUERY "{called}" AS {text}')[1]["code"] == "name_in_use"
    status, there = shared.run(f'CREATE QUERY IF NOT EXISTS "{called}" AS SELECT v FROM {name}')
    assert (status, there["query_id"], "handle" in there) == (200, first["query_id"], False)
    assert (there["skipped"], there["differs"]) == (True, True)
    same = shared.run(f'CREATE QUERY IF NOT EXISTS "{called}" AS {text}')[1]
    assert (same["skipped"], same["differs"]) == (True, False)
    checked = shared.http.post("/statements/check", json={"sql": f'CREATE QUERY "{called}" AS {text}'}).json()
    assert (checked["kind"], checked["error"]["code"]) == ("create", "name_in_use")
    # The same registration said again is the same query.
    again = {"sql": text, "name": called, "handle": first["handle"]}
    assert shared.http.post("/queries", json=again).status_code == 200
    # Another name frees it.
    assert shared.run(f'ALTER QUERY "{called}" RENAME TO "{called}-2"')[1]["name"] == f"{called}-2"
    dry = shared.http.patch(f"/queries/{called}-2?dry_run=true", json={"name": f"{called}-3"}).json()
    assert dry["values"] == {"name": {"from": f"{called}-2", "to": f"{called}-3"}}
    third = shared.http.post("/queries", json={"sql": text, "name": called})
    assert third.status_code == 201
    clash = shared.http.patch(f"/queries/{called}-2?dry_run=true", json={"name": called})
    assert (clash.status_code, clash.json()["code"]) == (409, "name_in_use")
    taken = shared.run(f'ALTER QUERY "{called}-2" RENAME TO "{called}"')
    assert (taken[0], taken[1]["code"]) == (409, "name_in_use")
    lines = "\n".join(f'{{"sql": "{text}", "name": "{called}-{i}"}}' for i in (3, 4, 3))
    many = shared.http.post("/queries", content=lines, headers={"Content-Type": "application/x-ndjson"})
    codes = [(one["error"] or {}).get("code") for one in map(json.loads, many.text.splitlines())]
    assert codes == [None, None, "name_in_use"]


@pytest.mark.parametrize(
    "wrong", ["Alerts", "a b", "", "unregister", "a" * 101, "a.b", "wbpy4mk74giav5jp6e2f7uuvyk", 5]
)
def test_what_cannot_be_a_name_is_refused(shared: Broker, wrong: object) -> None:
    reply = shared.http.post("/queries", json={"sql": "SELECT 1 FROM nothing", "name": wrong})
    assert (reply.status_code, reply.json()["code"]) == (400, "bad_request")
    assert "small letters" in reply.json()["hint"]


def test_names_by_topic(shared: Broker, name: str, called: str) -> None:
    shared.create(stream_sql(name))
    first, second, third = new_handle(), new_handle(), new_handle()
    shared.publish(first, {"sql": f"SELECT id FROM {name}", "name": called})
    wait_until(lambda: shared.state(first) == "RUNNING")
    shared.publish(second, {"sql": f"SELECT v FROM {name}", "name": called, "options": {"weight": 2}})
    shared.publish(third, {"sql": f"SELECT v FROM {name}", "name": "Not A Name"})
    wait_until(lambda: shared.state(second) == shared.state(third) == "ERROR")
    assert shared.http.get(f"/queries/{second}").json()["error"]["code"] == "name_in_use"
    assert shared.http.get(f"/queries/{called}").json()["query_id"] == query_id(first)
    # One that runs and is to get the name of another keeps running under its own.
    shared.publish(second, {"sql": f"SELECT v FROM {name}", "name": f"{called}-2"})
    wait_until(lambda: shared.state(second) == "RUNNING")
    shared.publish(second, {"sql": f"SELECT v FROM {name}", "name": called})
    wait_until(lambda: (shared.http.get(f"/queries/{second}").json()["error"] or {}).get("code") is not None)
    told = shared.http.get(f"/queries/{second}").json()
    assert (told["state"], told["name"], told["error"]["code"]) == ("RUNNING", f"{called}-2", "name_in_use")
    # What goes and what comes with one name in one batch: the order of records decides.
    shared.publish(first, None)
    shared.publish(third, {"sql": f"SELECT v FROM {name}", "name": called})
    wait_until(lambda: shared.state(third) in ("RUNNING", "ERROR") and shared.state(first) is None)
    kafka = {"bootstrap.servers": shared.bootstrap}
    with tureen.connect(kafka=kafka, service_id=shared.names.service_id) as client:
        by_name = {one.name: one.query_id for one in client.queries() if one.state == "RUNNING"}
        if by_name.get(called) is not None:  # both are on partitions of their own, which have no order
            client.unregister(called)
            wait_until(lambda: shared.state(third) is None)


def test_the_client_takes_names(shared: Broker, name: str, called: str) -> None:
    shared.create(stream_sql(name))
    with tureen.connect(shared.url) as client:
        query = client.register(f"SELECT id FROM {name}", name=called)
        assert client.status(called).query_id == query.query_id
        assert client.status(called).name == called
        with pytest.raises(NameInUse) as taken:
            client.register(f"SELECT v FROM {name}", name=called)
        assert query.query_id in taken.value.message
        with pytest.raises(HandleNeeded):
            client.snapshot(called)
        assert client.plan(called)["query_id"] == query.query_id
        assert client.change(called, paused=True).state == "PAUSED"
        client.unregister(called)
        with pytest.raises(UnknownQuery):
            client.status(called)


def test_names_survive_a_restart(kafka: str, tmp_path: Path, service_id: str, name: str) -> None:
    with broker(kafka, tmp_path / "data", service_id) as one:
        one.create(stream_sql(name))
        text = f"SELECT id FROM {name}"
        first = one.http.post("/queries", json={"sql": text, "name": "alerts"}).json()
        one.http.post("/queries", json={"sql": text, "name": "others"})
        rivals = [new_handle() for _ in range(6)]
        for rival in rivals:
            one.publish(rival, {"sql": text, "name": "alerts"})
        waiting = new_handle()
        one.publish(waiting, {"sql": f"SELECT id FROM {name}_later", "name": "later"})
        wait_until(lambda: all(one.state(rival) == "ERROR" for rival in rivals))
        wait_until(lambda: one.state(waiting) == "PENDING")
        assert one.run("ALTER QUERY others RENAME TO renamed")[1]["name"] == "renamed"
        before = ids_of(one)
        one.kill()
        one.start()
        wait_until(lambda: ids_of(one) == before)
        assert one.http.get("/queries/alerts").json()["query_id"] == first["query_id"]
        assert one.http.get("/queries/others").status_code == 404
        assert one.http.get("/queries/later").json()["query_id"] == query_id(waiting)
        assert one.run(f"CREATE QUERY alerts AS {text}")[1]["code"] == "name_in_use"
        assert one.run(f"CREATE QUERY later AS {text}")[1]["code"] == "name_in_use"
        assert {one.state(rival) for rival in rivals} == {"ERROR"}
        assert one.run("DROP QUERY alerts")[0] == 200
        assert one.run(f"CREATE QUERY alerts AS {text}")[0] == 201


@pytest.mark.slow
def test_what_queries_max_refused_by_topic_comes_once_there_is_room(
    kafka: str, tmp_path: Path, service_id: str, name: str
) -> None:
    with broker(kafka, tmp_path / "data", service_id, QUERIES_MAX=1) as one:
        one.create(stream_sql(name))
        first, second = new_handle(), new_handle()
        one.publish(first, {"sql": f"SELECT id FROM {name}"})
        wait_until(lambda: one.state(first) == "RUNNING")
        one.publish(second, {"sql": f"SELECT id FROM {name}"})
        wait_until(lambda: one.state(second) == "ERROR")
        one.publish(first, None)
        wait_until(lambda: one.state(second) == "RUNNING", 90.0)
