"""Rows that break a promise, on a running broker: where they go, and who is told."""

from __future__ import annotations

import json
from itertools import count

from broker.base.placement import shard_of
from tests.broker.running import SHARDS, Broker
from tests.kafka import wait_until

BASE_MS = 1_700_000_000_000


def _stream(name: str) -> str:
    return (
        f"CREATE STREAM {name} (id BIGINT NOT NULL, word STRING, ts TIMESTAMP NOT NULL, "
        "CONSTRAINT UNIQUE (id), CONSTRAINT ORDERED (id) WITHIN 1 ROWS) "
        "WITH (timestamp = 'ts', idle_timeout = '1 hour')"
    )


def test_a_row_that_breaks_a_promise_is_a_late_record_and_tags_its_queries(shared: Broker, name: str) -> None:
    shared.create(_stream(name))
    query = shared.register(f"SELECT id FROM {name}")
    source = shared.source(name)
    assert [one["text"] for one in source["constraints"]] == [
        "CONSTRAINT UNIQUE (id)",
        "CONSTRAINT ORDERED (id) WITHIN 1 ROWS",
    ]
    ids = [1, 5, 4, 5, 6, 3, 7, 8]
    shared.send(name, [{"id": id_, "word": "ä", "ts": BASE_MS + at} for at, id_ in enumerate(ids)])
    assert sorted(row[0] for row in shared.await_rows(query, 5)) == [1, 4, 5, 6, 7]
    reply = shared.http.get(f"/queries/{query}/snapshot")
    (tag,) = reply.json()["approximation"]
    assert (tag["kind"], tag["where"], tag["origin"]) == ("constraint", name, "dynamic")
    assert (tag["amount"], tag["unit"]) == (2, "rows")
    assert reply.json()["late"] == 2
    source = shared.source(name)
    assert [one["violations"] for one in source["constraints"]] == [1, 1]
    letters = {}
    for record in shared.records(shared.names.late):
        headers = dict(record.headers())
        if headers["tureen-topic"] == name.encode():
            row = json.loads(record.value())
            letters[int(headers["tureen-offset"])] = (
                row["id"],
                row["word"],
                headers["tureen-reason"].decode(),
            )
    assert letters == {
        3: (5, "ä", "the row breaks CONSTRAINT UNIQUE (id)"),
        5: (3, "ä", "the row breaks CONSTRAINT ORDERED (id) WITHIN 1 ROWS"),
    }
    exposed = shared.http.get("/metrics").text
    assert f'tureen_constraint_violations_total{{stream="{name}"}} 2.0' in exposed
    table = shared.http.post("/statements", json={"sql": f"DESCRIBE {name}"}).json()
    assert len(table["source"]["constraints"]) == 2


def test_an_unknown_target_is_refused_where_it_stands(shared: Broker, name: str) -> None:
    sql = f"CREATE STREAM {name} (id BIGINT, CONSTRAINT MANY ONE (id) TO nothing_there (id))"
    reply = shared.http.post("/sources", json={"sql": sql})
    assert reply.status_code == 400
    assert (reply.json()["code"], reply.json()["column"]) == ("unknown_source", sql.index("nothing") + 1)


def test_a_row_that_lacks_the_row_it_refers_to_is_told_wherever_the_two_streams_live(
    shared: Broker, name: str
) -> None:
    home = shard_of([name], SHARDS)
    other = next(one for n in count() if shard_of([one := f"{name}_{n}"], SHARDS) != home)
    shared.create(_stream(name))
    shared.create(
        f"CREATE STREAM {other} (of BIGINT, ts TIMESTAMP NOT NULL, "
        f"CONSTRAINT REFERENCES (of) TO {name} (id)) "
        "WITH (timestamp = 'ts', idle_timeout = '1 hour')"
    )
    both = shared.register(f"SELECT of FROM {other} JOIN {name} ON of = id")
    shared.send(name, [{"id": at, "ts": BASE_MS + 10 * at} for at in range(6)])
    shared.send(other, [{"of": of, "ts": BASE_MS + 25} for of in (2, 1, 3, 2)])
    shared.send(other, [{"of": 4, "ts": BASE_MS + 60}])
    wait_until(lambda: shared.source(other)["constraints"][0]["violations"] == 1)
    kept = [row[0] for row in shared.await_rows(both, 3) if row[0] != 3]
    assert sorted(kept) == [1, 2, 2]
    wait_until(lambda: shared.snapshot(both)["approximate"], what="the join is told to lack a pair")
    (tag,) = shared.http.get(f"/queries/{both}/snapshot").json()["approximation"]
    assert (tag["where"], tag["amount"]) == (f"{other} REFERENCES {name}", 1)
    found = [
        (dict(one.headers())["tureen-offset"], json.loads(one.value())["of"])
        for one in shared.records(shared.names.late)
        if dict(one.headers())["tureen-topic"] == other.encode()
    ]
    assert found == [(b"2", 3)]

    shared.http.delete(f"/queries/{both}")
    reply = shared.http.delete(f"/sources/{name}")
    assert (reply.status_code, reply.json()["code"]) == (409, "source_conflict")
    assert other in reply.json()["message"]
    shared.drop([other])
    assert shared.http.delete(f"/sources/{name}").status_code == 200
