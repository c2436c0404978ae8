"""Statements over one door, plans, views and streams derived from queries, on a running broker."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from broker.base.options import SETTABLE
from tests.broker.conftest import stream_sql
from tests.broker.running import Broker
from tests.kafka import wait_until
from tureen.protocol import new_handle, query_id

BASE_MS = 1_700_000_000_000


def rows(count: int, start: int = 0) -> list[dict[str, object]]:
    return [{"id": i, "v": i / 2, "ts": BASE_MS + i} for i in range(start, start + count)]


def run(broker: Broker, sql: str, status: int = 200) -> dict[str, Any]:
    reply = broker.http.post("/statements", json={"sql": sql})
    assert reply.status_code == status, reply.text
    facts: dict[str, Any] = reply.json()
    return facts


def table(broker: Broker, sql: str) -> list[dict[str, Any]]:
    facts = run(broker, sql)
    return [dict(zip(facts["columns"], row, strict=True)) for row in facts["rows"]]


def test_topic_of_the_name_of_a_missing_stream_is_told(shared: Broker, name: str) -> None:
    topic = f"{name}-in"
    told = shared.http.post("/queries", json={"sql": f'SELECT * FROM "{topic}"'}).json()
    assert (told["state"], told["error"]["code"]) == ("PENDING", "unknown_source")
    assert "there is a topic" not in told["error"]["hint"]
    shared.admin.ensure_source_topic(topic)
    told = shared.http.post("/queries", json={"sql": f'SELECT * FROM "{topic}"'}).json()
    assert (told["state"], told["error"]["hint"]) == (
        "PENDING",
        f"there is a topic {topic}: CREATE STREAM \"{topic}\" FROM TOPIC '{topic}' infers its columns",
    )
    own = shared.names.steps
    told = shared.http.post("/queries", json={"sql": f'SELECT * FROM "{own}"'}).json()
    assert "there is a topic" not in told["error"]["hint"]


def test_show_and_describe(shared: Broker, name: str) -> None:
    made = run(shared, stream_sql(name, columns="id BIGINT NOT NULL, v DOUBLE, ts TIMESTAMP"), 201)
    expected = {"name": name, "kind": "stream", "topic": name, "state": "RUNNING", "error": None}
    assert made | expected == made
    handle = shared.register(f"SELECT id\nFROM {name}")
    shared.http.patch(f"/queries/{handle}", json={"maintenance": "eager", "weight": 3})

    (query,) = (one for one in table(shared, "LIST QUERIES") if one["query"] == query_id(handle))
    assert query == {
        "query": query_id(handle),
        "name": None,
        "state": "RUNNING",
        "sources": name,
        "statement": f"SELECT id FROM {name}",
    }
    shown = run(shared, "SHOW QUERIES EXTENDED")
    assert handle not in str(shown)
    (extended,) = (row for row in shown["rows"] if row[0] == query_id(handle))
    assert dict(zip(shown["columns"], extended, strict=True)) == query | {
        "maintenance": "eager",
        "strategy": "auto",
        "weight": 3,
        "approximation": None,
        "output": None,
        "error": None,
    }
    (stream,) = (one for one in table(shared, "show streams;") if one["name"] == name)
    assert stream == {
        "name": name, "state": "RUNNING", "topic": name, "now": None, "now_ms": None, "rows": 0, "queries": 1,
    }  # fmt: skip
    assert table(shared, f"DESCRIBE {name}") == [
        {"column": "id", "type": "BIGINT", "nullable": False},
        {"column": "v", "type": "DOUBLE", "nullable": True},
        {"column": "ts", "type": "TIMESTAMP", "nullable": True},
    ]
    functions = {one["function"]: one for one in table(shared, "SHOW FUNCTIONS")}
    assert functions["COUNT"]["kind"] == "aggregate"
    assert functions["ABS"]["usage"] == "ABS(x)"


def test_where_changes_go(shared: Broker, name: str) -> None:
    run(shared, stream_sql(name, columns="id BIGINT NOT NULL, v DOUBLE, ts TIMESTAMP"), 201)
    sql = f"DSTREAM (SELECT id FROM {name} [ROWS 5]) EMIT CHANGES INTO {name}"
    planned = run(shared, f"EXPLAIN {sql}")
    handle = shared.register(sql)
    standing = run(shared, f"EXPLAIN '{handle}'")
    for explained in (planned, standing):
        assert [row[0] for row in explained["rows"]] == ["emit dstream", "└ project", f"  └ scan {name}"]
        assert explained["plan"]["emit"]["into"] == name
        assert explained["plan"]["key"] is None
    (row,) = (one for one in table(shared, "SHOW QUERIES EXTENDED") if one["query"] == query_id(handle))
    assert row["output"].endswith(f".results.{name}")
    run(shared, f"TERMINATE '{handle}'")
    refused = run(shared, sql.replace("DSTREAM (", "DSTREAM ").replace(")", ""), 400)
    assert (refused["code"], refused["column"]) == ("syntax", 9)


def test_pause_resume_terminate(shared: Broker, name: str) -> None:
    shared.create(stream_sql(name))
    handle = shared.register(f"SELECT id FROM {name}")
    assert run(shared, f"PAUSE '{handle}'")["state"] == "PAUSED"
    assert run(shared, f"RESUME '{handle}'")["state"] == "RUNNING"
    for verb in ("PAUSE", "RESUME", "TERMINATE"):
        assert run(shared, f"{verb} '{query_id(new_handle())}'", 404)["code"] == "unknown_query"
    assert run(shared, f"TERMINATE '{handle}'") == {"query_id": query_id(handle), "state": "GONE"}
    assert shared.state(handle) is None
    assert handle not in shared.log.read_text()


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        ("SELECT 1 FROM nowhere", "unknown_source"),
        ("SHOW EVERYTHING", "syntax"),
        ("DESCRIBE nowhere", "unknown_source"),
        ("EXPLAIN SELECT", "syntax"),
        ("DROP VIEW nowhere", "unknown_source"),
        ("INSERT INTO nowhere VALUES (1)", "unknown_source"),
        ("INSERT INTO nowhere SELECT 1 FROM nowhere", "unknown_source"),
    ],
)
def test_statements_that_are_refused(shared: Broker, sql: str, code: str) -> None:
    assert run(shared, sql, 400)["code"] == code


def test_a_select_is_no_statement(shared: Broker, name: str) -> None:
    shared.create(stream_sql(name))
    refused = run(shared, f"SELECT id FROM {name}", 400)
    assert refused["code"] == "not_supported"
    assert "EXPLAIN" in refused["hint"]


def test_plans(shared: Broker, name: str) -> None:
    shared.create(stream_sql(name))
    sql = f"SELECT id, v FROM {name} [RANGE 1 HOUR] WHERE v > 2"
    handles = [shared.register(sql), shared.register(sql)]
    shared.send(name, rows(20))
    shared.await_rows(handles[0], 14)

    plan = shared.http.get(f"/queries/{handles[0]}/plan").json()
    assert (plan["query_id"], plan["sources"], plan["paused"]) == (query_id(handles[0]), [name], False)
    assert [step["operator"] for step in plan["steps"]] == [f"scan {name}", "project"]
    assert plan["reason"]
    assert all(step["pattern"] in ("MON", "WKS", "WK", "STR") for step in plan["steps"])
    assert all(step["estimated_ns"] is not None for step in plan["steps"])  # times of this machine
    assert all(step["actual_rows"] is None for step in plan["steps"])
    (predicate,) = plan["predicates"]
    assert "v" in predicate["predicate"]
    analyzed = shared.http.get(f"/queries/{handles[0]}/plan", params={"analyze": "true"}).json()
    assert [step["actual_rows"] for step in analyzed["steps"]] == [14, 14]
    assert all(step["actual_ns"] >= 0 for step in analyzed["steps"])

    for subject in (f"'{handles[1]}'", f"'{query_id(handles[1])}'", sql):
        explained = run(shared, f"EXPLAIN ANALYZE {subject}")
        assert explained["columns"] == ["operator", "detail", "est. rows", "est. ms", "rows", "ms"]
        assert [row[0] for row in explained["rows"]] == ["project", f"└ scan {name}"]
        assert explained["plan"]["query_id"] == (None if subject == sql else query_id(handles[1]))
    assert shared.http.get(f"/queries/{new_handle()}/plan").json()["code"] == "unknown_query"
    pending = shared.http.post("/queries", json={"sql": "SELECT a FROM missing"}).json()["handle"]
    refused = shared.http.get(f"/queries/{pending}/plan")
    assert (refused.status_code, refused.json()["code"]) == (409, "query_not_running")


def test_views_and_derived_streams(shared: Broker, name: str) -> None:
    shared.create(stream_sql(name))
    shared.send(name, rows(20))
    big, twice, over = f"{name}_big", f"{name}_twice", f"{name}_over"
    made = run(shared, f"CREATE VIEW {big} AS SELECT id, v FROM {name} WHERE v > 5", 201)
    assert made == {"name": big, "kind": "view", "topic": None, "state": "RUNNING", "error": None}
    assert run(shared, f"CREATE VIEW {big} AS SELECT id, v FROM {name} WHERE v > 5", 200) == made
    conflict = run(shared, f"CREATE VIEW {big} AS SELECT id FROM {name}", 409)
    assert conflict["code"] == "source_conflict"
    assert run(shared, f"CREATE OR REPLACE VIEW {big} AS SELECT id, v FROM {name} WHERE v > 6", 201) == made
    shared.create(f"CREATE STREAM {twice} AS SELECT id, v * 2 AS w, ts FROM {name}")
    run(shared, f"CREATE VIEW {over} AS SELECT id FROM {big} WHERE id < 16", 201)

    handle = shared.register(f"SELECT id FROM {over}")
    doubled = shared.register(f"SELECT w FROM {twice} [RANGE 5 MILLISECONDS] WHERE w > 1")
    shared.await_read(name)
    assert shared.await_rows(handle, 3) == [[13], [14], [15]]
    assert shared.rows(doubled) == [[float(i)] for i in range(13, 19)]

    sources = {one["name"]: one for one in table(shared, "SHOW SOURCES")}
    assert [sources[one]["kind"] for one in (name, big, twice, over)] == ["stream", "view", "stream", "view"]
    assert sources[big]["queries"] == 1
    now_ms = sources[name]["now_ms"]
    assert sources[name]["now"] == f"{datetime.fromtimestamp(now_ms / 1_000, UTC):%Y-%m-%d %H:%M:%S.%f}"[:-3]
    listed = shared.source(over)
    assert (listed["reads"], listed["columns"]) == (
        [name], [{"name": "id", "type": "BIGINT", "nullable": True}],
    )  # fmt: skip
    assert {one["name"] for one in table(shared, "SHOW VIEWS")} >= {big, over}
    assert [one["column"] for one in table(shared, f"DESCRIBE {twice}")] == ["id", "w", "ts"]
    assert shared.http.get(f"/queries/{handle}").json()["sources"] == [name]

    replaced = run(shared, f"CREATE OR REPLACE VIEW {big} AS SELECT id FROM {name}", 409)
    assert replaced["message"] == f"1 query reads the view '{big}'"
    assert replaced["hint"].startswith(f"end them first, as DROP VIEW {big} CASCADE does")
    for used in (name, big, over, twice):
        refused = shared.http.delete(f"/sources/{used}")
        assert (refused.status_code, refused.json()["code"]) == (409, "source_conflict")
    assert run(shared, f"DROP STREAM {over}", 409)["hint"] == f"write DROP VIEW {over}"
    for one in (handle, doubled):
        run(shared, f"TERMINATE '{one}'")
    assert run(shared, f"DROP VIEW {big}", 409)["message"].startswith(over)
    for view in (over, big):
        assert run(shared, f"DROP VIEW {view}")["state"] == "GONE"
    assert run(shared, f"DROP STREAM {twice}")["state"] == "GONE"
    assert run(shared, f"DROP STREAM {name}")["state"] == "GONE"


def test_a_view_by_topic_waits_for_its_stream(shared: Broker, name: str) -> None:
    view, upon = f"{name}_a", f"{name}_b"
    for key, sql in (
        (upon, f"CREATE VIEW {upon} AS SELECT id FROM {view} WHERE id > 2"),
        (view, f"CREATE VIEW {view} AS SELECT id FROM {name}"),
    ):
        shared.producer.send(shared.names.sources, b'{"sql": "%s"}' % sql.encode(), key.encode())
    shared.producer.flush()
    names = lambda: [one["name"] for one in shared.http.get("/sources").json()["sources"]]  # noqa: E731
    wait_until(lambda: {view, upon} <= set(names()))
    assert shared.source(view)["state"] == "PENDING"
    assert shared.source(view)["error"]["code"] == "unknown_source"
    handle = shared.http.post("/queries", json={"sql": f"SELECT id FROM {upon}"}).json()["handle"]
    assert shared.state(handle) == "PENDING"
    shared.create(stream_sql(name))
    shared.send(name, rows(6))
    wait_until(lambda: shared.state(handle) == "RUNNING", what="the query over the view over the view stands")
    assert shared.await_rows(handle, 2) == [[3], [4]]
    assert shared.source(view)["state"] == "RUNNING"


def test_views_come_back(kafka: str, tmp_path: Path, service_id: str, name: str) -> None:
    own = Broker(kafka, tmp_path / "data", service_id).start()
    own.create(stream_sql(name))
    own.send(name, rows(10))
    first, second = f"a_{name}", f"0_{name}"
    own.create(f"CREATE VIEW {first} AS SELECT id FROM {name} WHERE id > 3")
    own.create(f'CREATE VIEW "{second}" AS SELECT id FROM {first} WHERE id < 7')
    handle = own.register(f'SELECT id FROM "{second}"')
    before = own.await_rows(handle, 3)
    for lost in (False, True):
        own.kill()
        if lost:
            (tmp_path / "data").rename(tmp_path / "gone")
        own.start()
        assert own.await_rows(handle, 3) == before == [[4], [5], [6]]
        assert [own.source(one)["state"] for one in (name, first, second)] == ["RUNNING"] * 3
        assert own.source(second)["queries"] == 1
        refused = own.http.delete(f"/sources/{first}")
        assert refused.status_code == 409


def check(broker: Broker, sql: str, status: int = 200) -> dict[str, Any]:
    reply = broker.http.post("/statements/check", json={"sql": sql})
    assert reply.status_code == status, reply.text
    facts: dict[str, Any] = reply.json()
    return facts


def test_a_check_says_what_a_text_means_and_does_nothing(shared: Broker, name: str) -> None:
    shared.create(stream_sql(name, columns="id BIGINT NOT NULL, v DOUBLE, word STRING, ts TIMESTAMP"))
    for _ in range(2):
        shared.register(f"SELECT id FROM {name} WHERE v > 5 AND word = 'a'")
    shared.register(f"SELECT id FROM {name} WHERE word LIKE '%b'")

    found = check(shared, f"SELECT v, id FROM {name} WHERE v > 5 AND word = 'a'")
    assert (found["kind"], found["sources"], found["plan_error"]) == ("query", [name], None)
    assert found["columns"] == [{"name": "v", "type": "DOUBLE"}, {"name": "id", "type": "BIGINT"}]
    assert [one["shared_with"] for one in found["plan"]["predicates"]] == [2]
    for condition, holders in (("word LIKE '%b'", 1), ("word = 'new'", 0), ("ts > '2025-01-01'", 0)):
        plan = check(shared, f"SELECT v FROM {name} WHERE {condition}")["plan"]
        assert [one["shared_with"] for one in plan["predicates"]] == [holders], condition
    template = {"template": f"SELECT id FROM {name} WHERE v > ?", "parameters": ["high"]}
    refused = shared.http.post("/statements/check", json=template).json()["error"]
    assert (refused["code"], refused["line"], refused["column"]) == ("type_mismatch", 1, 27 + len(name))

    before = shared.sources(), len(shared.http.get("/queries").json()["queries"])
    created = check(shared, stream_sql(f"{name}_new"))
    assert (created["kind"], created["name"]) == ("create", f"{name}_new")
    view = check(shared, f"CREATE VIEW {name}_view AS SELECT id AS key FROM {name}")
    assert [column["name"] for column in view["columns"]] == ["key"]
    assert view["plan"]["steps"][0]["operator"] == f"scan {name}"
    for sql, kind in (
        (f"DROP STREAM {name}", "drop"),
        ("TERMINATE 'nobody'", "control"),
        ("SHOW QUERIES", "show"),
        (f"EXPLAIN SELECT id FROM {name}", "explain"),
    ):
        assert check(shared, sql)["kind"] == kind
    assert (shared.sources(), len(shared.http.get("/queries").json()["queries"])) == before

    refused = check(shared, f"SELECT id\n\tFROM {name}\n\tWHERE '\U0001f600' = vv")["error"]
    assert (refused["code"], refused["line"], refused["column"]) == ("unknown_column", 3, 14)
    assert refused["hint"].startswith("did you mean v")
    assert check(shared, " ", 400)["code"] == "bad_request"


def test_the_language_has_the_options_of_a_registration(shared: Broker) -> None:
    found = shared.http.get("/language").json()
    assert {"SELECT", "EMIT", "ROWS"} <= set(found["keywords"])
    assert {one["name"] for one in found["registration"]} == set(SETTABLE) - {"active"}
    assert all(one["choices"] or one["accepts"] for one in found["registration"])


def test_what_is_dropped_and_not_there_is_called_what_it_was_taken_for(shared: Broker, name: str) -> None:
    shared.create(f"CREATE TABLE {name}_planes (tail STRING PRIMARY KEY, seats INTEGER)")
    shared.create(stream_sql(f"{name}_trades"))
    for sql, said, hint in (
        (f"DROP TABLE {name}_plane", "table", f"did you mean {name}_planes?"),
        (f"DROP STREAM {name}_trade", "stream", f"did you mean {name}_trades?"),
    ):
        for path in ("/sources", "/statements"):
            told = shared.http.post(path, json={"sql": sql}).json()
            missing = sql.split()[-1]
            assert told["code"] == "unknown_source"
            assert told["message"] == f"there is no {said} named {missing!r}"
            assert hint in told["hint"]
    told = shared.http.delete(f"/sources/{name}_plane").json()
    assert told["message"] == f"there is no stream, table or view named '{name}_plane'"
    assert f"{name}_planes" in told["hint"]
    assert "view named" in shared.http.post("/sources", json={"sql": "DROP VIEW nowhere"}).json()["message"]


def test_a_comparison_with_null_is_told_where_it_is_written(shared: Broker, name: str) -> None:
    shared.create(stream_sql(name))
    sql = f"SELECT id FROM {name} WHERE v = NULL"
    checked = shared.http.post("/statements/check", json={"sql": sql}).json()
    assert [one["hint"] for one in checked["warnings"]] == ["write IS NULL"]
    registered = shared.http.post("/queries", json={"sql": sql}).json()
    assert (registered["state"], registered["warnings"]) == ("RUNNING", checked["warnings"])
    plain = shared.http.post("/queries", json={"sql": f"SELECT id FROM {name}"}).json()
    assert "warnings" not in plain
