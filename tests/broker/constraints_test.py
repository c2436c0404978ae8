"""Rows that break a promise, on a running broker: where they go, and who is told."""

from __future__ import annotations

import json

from tests.broker.running import Broker

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


def test_a_stream_that_others_refer_to_stays(shared: Broker, name: str) -> None:
    shared.create(_stream(name))
    shared.create(
        f"CREATE STREAM {name}_of (id BIGINT, ts TIMESTAMP, "
        f"CONSTRAINT REFERENCES (id) TO {name} (id)) WITH (timestamp = 'ts')"
    )
    reply = shared.http.delete(f"/sources/{name}")
    assert reply.status_code == 409
    assert f"{name}_of" in reply.json()["message"]
    shared.drop([f"{name}_of"])
    assert shared.http.delete(f"/sources/{name}").status_code == 200
