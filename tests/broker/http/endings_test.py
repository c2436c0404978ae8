"""Queries end by their public ids, by the source they read, together with it, many at once."""

from __future__ import annotations

import json
import threading
from collections import Counter

import httpx
import pytest

from broker.http.endings import AT_ONCE
from tests.broker.conftest import stream_sql
from tests.broker.http.in_flight import NDJSON
from tests.broker.running import Broker
from tests.kafka import wait_until
from tureen.protocol import new_handle, query_id


def listed(one: Broker) -> set[str]:
    return {each["query_id"] for each in one.http.get("/queries?limit=10000").json()["queries"]}


def test_operator_ends_pauses_and_describes_by_public_id(shared: Broker, name: str) -> None:
    shared.create(stream_sql(name))
    lost, other = (query_id(shared.register(f"SELECT id FROM {name} WHERE v > {n}")) for n in (1, 2))
    assert shared.http.get(f"/queries/{lost}").json()["query_id"] == lost
    assert shared.http.patch(f"/queries/{lost}", json={"paused": True}).json()["state"] == "PAUSED"
    assert shared.http.delete(f"/queries/{lost}").json() == {"query_id": lost, "state": "GONE"}
    reply = shared.http.post("/statements", json={"sql": f"TERMINATE '{other}'"})
    assert reply.json() == {"query_id": other, "state": "GONE"}
    assert not {lost, other} & listed(shared)
    wait_until(lambda: shared.status_topic()[lost][-1] is None, what="its end is told")


@pytest.mark.parametrize("path", ["snapshot", "changes"])
def test_public_id_opens_no_answer_and_is_told_as_such(shared: Broker, name: str, path: str) -> None:
    shared.create(stream_sql(name))
    public = query_id(shared.register(f"SELECT id FROM {name}"))
    given = shared.http.get(f"/queries/{public}/{path}")
    assert (given.status_code, given.json()["code"]) == (404, "handle_needed")
    # An unknown handle and an id that nobody registered look the same.
    answers = [shared.http.get(f"/queries/{one}/{path}") for one in (new_handle(), query_id(new_handle()))]
    assert [one.status_code for one in answers] == [404, 404]
    assert answers[0].json() == answers[1].json()
    assert answers[0].json()["code"] == "unknown_query"
    altered = shared.http.patch(f"/queries/{public}", json={"sql": f"SELECT v FROM {name}"})
    assert altered.json()["code"] == "handle_needed"


def test_many_end_in_one_call_and_unknown_ones_are_named(shared: Broker, name: str) -> None:
    shared.create(stream_sql(name))
    handles = [shared.register(f"SELECT id FROM {name} WHERE v > {n}") for n in range(3)]
    given = [handles[0], new_handle(), query_id(handles[1])]
    reply = shared.http.post("/queries/unregister", json={"queries": given})
    assert reply.status_code == 200
    assert reply.json()["ended"] == [query_id(handles[0]), query_id(handles[1])]
    assert [(one["place"], one["error"]["code"]) for one in reply.json()["unknown"]] == [(1, "unknown_query")]
    reply = shared.http.post("/queries/unregister", json={"source": name})
    assert reply.json()["ended"] == [query_id(handles[2])]
    assert shared.http.post("/queries/unregister", json={"source": "nowhere"}).status_code == 400
    assert shared.http.post("/queries/unregister", json={"queries": "all"}).json()["code"] == "bad_request"


def test_more_end_in_one_call_than_end_together(shared: Broker, name: str) -> None:
    shared.create(stream_sql(name))
    lines = [json.dumps({"sql": f"SELECT id FROM {name} WHERE v > {n}"}) for n in range(AT_ONCE + 1)]
    made = shared.http.post("/queries", content="\n".join(lines), headers=NDJSON)
    handles = [json.loads(line)["handle"] for line in made.text.splitlines()]
    assert len(handles) == len(lines)
    ended = shared.http.post("/queries/unregister", json={"queries": handles}).json()
    told = ended["ended"] + ended["pending"]
    assert sorted(told) == sorted(map(query_id, handles))
    wait_until(lambda: not listed(shared) & set(told), what="all are gone")


def test_drop_with_cascade_takes_what_reads_it_and_says_which(shared: Broker, name: str) -> None:
    shared.create(stream_sql(name))
    shared.create(f"CREATE VIEW {name}_a AS SELECT id, v FROM {name} WHERE v > 1")
    shared.create(f"CREATE VIEW {name}_b AS SELECT id FROM {name}_a WHERE id > 2")
    ids = sorted(
        query_id(shared.register(f"SELECT id FROM {read}")) for read in (name, f"{name}_a", f"{name}_b")
    )
    refused = shared.http.post("/statements", json={"sql": f"DROP STREAM {name}"})
    assert refused.status_code == 409
    assert f"DROP STREAM {name} CASCADE" in refused.json()["hint"]
    reply = shared.http.post("/statements", json={"sql": f"DROP VIEW {name}_b CASCADE"}).json()
    assert (len(reply["ended"]), reply["dropped"]) == (1, [])
    reply = shared.http.delete(f"/sources/{name}", params={"cascade": "true"})
    assert reply.status_code == 200
    assert reply.json()["state"] == "GONE"
    assert reply.json()["dropped"] == [f"{name}_a"]
    assert len(reply.json()["ended"]) == 2
    assert not set(ids) & listed(shared)
    names = {one["name"] for one in shared.http.get("/sources").json()["sources"]}
    assert not {name, f"{name}_a", f"{name}_b"} & names
    assert (
        shared.http.post("/statements", json={"sql": f"DROP STREAM IF EXISTS {name} CASCADE"}).status_code
        == 200
    )


def test_drop_with_cascade_while_selects_are_asked_once_ends_them_and_drops(
    shared: Broker, name: str
) -> None:
    shared.create(stream_sql(name))
    is_dropped = threading.Event()
    answers: Counter[int] = Counter()

    def ask() -> None:
        with httpx.Client(base_url=shared.url, timeout=60.0) as client:
            while not is_dropped.is_set():
                made = client.post("/queries", json={"sql": f"SELECT id FROM {name}"})
                answers[made.status_code] += 1
                if made.status_code in (200, 201):
                    client.delete(f"/queries/{made.json()['handle']}")

    asking = [threading.Thread(target=ask) for _ in range(6)]
    for each in asking:
        each.start()
    wait_until(lambda: answers[201] > 10, what="some were asked")
    dropped = shared.http.post("/statements", json={"sql": f"DROP STREAM {name} CASCADE"})
    is_dropped.set()
    for each in asking:
        each.join()
    assert (dropped.status_code, dropped.json()["state"]) == (200, "GONE"), dropped.text
    assert name not in shared.sources()


def test_drop_with_cascade_of_what_a_constraint_refers_to_is_refused_and_ends_nothing(
    shared: Broker, name: str
) -> None:
    columns = "id BIGINT NOT NULL, at TIMESTAMP NOT NULL"
    shared.create(f"CREATE STREAM {name} ({columns}, CONSTRAINT UNIQUE (id)) WITH (timestamp = 'at')")
    promise = f"CONSTRAINT MANY ONE (id) TO {name} (id)"
    shared.create(f"CREATE STREAM {name}_b ({columns}, {promise}) WITH (timestamp = 'at')")
    shared.create(f"CREATE VIEW {name}_v AS SELECT id FROM {name}")
    ids = {query_id(shared.register(f"SELECT id FROM {read}")) for read in (name, f"{name}_v")}
    refused = shared.http.delete(f"/sources/{name}", params={"cascade": "true"})
    assert (refused.status_code, refused.json()["hint"]) == (409, f"drop {name}_b first")
    assert ids <= listed(shared)
    assert f"{name}_v" in {one["name"] for one in shared.http.get("/sources").json()["sources"]}
    for dropped in (f"{name}_b", name):
        assert shared.http.delete(f"/sources/{dropped}", params={"cascade": "true"}).status_code == 200
    assert not ids & listed(shared)
