"""POST /match on a running broker: records in, the queries that they satisfy out."""

from __future__ import annotations

import orjson

from tests.broker.conftest import stream_sql
from tests.broker.running import JSON, Broker
from tureen.protocol import query_id

BASE_MS = 1_700_000_000_000
COLUMNS = "id BIGINT NOT NULL, price DECIMAL(18, 4), city STRING, ts TIMESTAMP"


def test_match(shared: Broker, name: str) -> None:
    shared.create(stream_sql(name, columns=COLUMNS))
    handles = {
        where: shared.register(f"SELECT id FROM {name} [RANGE 1 SECOND] {where}")
        for where in ("", "WHERE city = 'Bern'", "WHERE price > 12345678901234.5677", "WHERE id > 5")
    }
    ids = {where: query_id(handle) for where, handle in handles.items()}
    bern = {"id": 7, "price": "1.5", "city": "Bern", "ts": BASE_MS}

    reply = shared.http.post("/match", json={"source": name, "record": bern})
    assert reply.status_code == 200, reply.text
    (found,) = reply.json()["matches"]
    assert set(found["queries"]) == {ids[""], ids["WHERE city = 'Bern'"], ids["WHERE id > 5"]}
    assert (found["total"], found["error"]) == (3, None)
    assert not any(handle in reply.text for handle in handles.values())

    records = [bern | {"id": 1}, {"city": "Ulm", "ts": BASE_MS}, bern | {"city": None, "id": 2}]
    reply = shared.http.post("/match", json={"source": name, "records": records, "limit": 1})
    first, second, third = reply.json()["matches"]
    assert (len(first["queries"]), first["total"]) == (1, 2)
    assert (second["queries"], second["error"]["code"]) == ([], "bad_record")
    assert "id" in second["error"]["message"]
    assert third["total"] == 1

    # NDJSON is read to the byte, as the topic's records are: no double stands between.
    lines = b'{"id": 1, "price": 12345678901234.5678, "ts": 1}\n{nonsense\n\n{"id": 9, "ts": 1}'
    reply = shared.http.post(
        "/match", params={"source": name}, content=lines, headers={"Content-Type": "application/x-ndjson"}
    )
    exact, broken, blank, last = reply.json()["matches"]
    assert ids["WHERE price > 12345678901234.5677"] in exact["queries"]
    assert [one["error"]["code"] for one in (broken, blank)] == ["bad_record"] * 2
    assert set(last["queries"]) == {ids[""], ids["WHERE id > 5"]}

    shared.http.patch(f"/queries/{handles['WHERE id > 5']}", json={"paused": True})
    shared.http.delete(f"/queries/{handles['']}")
    later = shared.register(f"SELECT COUNT(*) FROM {name} WHERE id = 7")
    reply = shared.http.post("/match", json={"source": name, "record": bern})
    (found,) = reply.json()["matches"]
    assert set(found["queries"]) == {ids["WHERE city = 'Bern'"], query_id(later)}
    assert shared.source(name)["rows"] == 0  # nothing of it was kept


def test_what_is_refused(shared: Broker, name: str) -> None:
    shared.create(stream_sql(name))
    for body, code in (
        ({"source": name, "record": {"id": "x", "ts": 1}}, "bad_record"),
        ({"source": name, "record": 7}, "bad_record"),
        ({"source": f"{name}_missing", "record": {}}, "unknown_source"),
        ({"source": name}, "bad_request"),
        ({"source": name, "record": {}, "records": []}, "bad_request"),
        ({"source": name, "records": {}}, "bad_request"),
        ({"source": name, "record": {}, "limit": -1}, "bad_request"),
        ({"source": name, "record": {}, "format": "csv"}, "bad_request"),
        ([], "bad_request"),
    ):
        reply = shared.http.post("/match", content=orjson.dumps(body), headers=JSON)
        assert (reply.status_code, reply.json()["code"]) == (400, code), reply.text
        assert reply.json()["message"]
    lines = b'{"id": 1, "ts": 1}\n' * 8_193
    reply = shared.http.post(
        "/match", params={"source": name}, content=lines, headers={"Content-Type": "application/x-ndjson"}
    )
    assert (reply.status_code, reply.json()["code"]) == (413, "limit_exceeded")
