"""Tables of queries and materialized views: made, read, followed, dropped, and there after a restart."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.broker.conftest import stream_sql
from tests.broker.running import Broker, broker
from tests.kafka import wait_until
from tureen.protocol import new_handle

BASE_MS = 1_700_000_000_000


@pytest.fixture
def called() -> str:
    """A name of a view that no other test uses."""
    return f"x{uuid.uuid4().hex[:10]}"


def operators(graph: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The operators of a plan, that which gives the answer first."""
    yield graph
    for each in graph["inputs"]:
        yield from operators(each)


def some(one: Broker, name: str) -> None:
    """Nine rows of a new stream, of which the last is above NOW: ids 0 to 8, v 0, 1 and 2 in turn."""
    one.create(stream_sql(name))
    one.send(name, [{"id": i, "v": i % 3, "ts": BASE_MS + i} for i in range(9)])


def test_a_table_of_groups_is_read_as_one(shared: Broker, name: str, called: str) -> None:
    some(shared, name)
    made = shared.create(f"CREATE TABLE {called} AS SELECT v, COUNT(*) AS n FROM {name} GROUP BY v")
    assert (made["kind"], made["topic"]) == ("table", None)
    shown = shared.source(called)
    assert (shown["kind"], shown["key"], shown["reads"]) == ("table", ["v"], [name])
    _, tables = shared.run("SHOW TABLES")
    assert [row[tables["columns"].index("key")] for row in tables["rows"] if row[0] == called] == ["v"]
    handle = shared.register(f"SELECT n, v FROM {called} WHERE v > 0 ORDER BY v")
    wait_until(lambda: shared.rows(handle) == [[3, 1.0], [2, 2.0]], 120)
    joined = shared.register(
        f"SELECT s.id, t.n FROM {name} s JOIN {called} t ON s.v = t.v WHERE s.id < 2 ORDER BY s.id"
    )
    wait_until(lambda: shared.rows(joined) == [[0, 3], [1, 3]], 120)
    plan = shared.run(f"EXPLAIN SELECT n FROM {called}")[1]["plan"]
    assert plan["uses"] == [called]
    status, refused = shared.run(f"DROP VIEW {called}")
    assert (status, refused["hint"]) == (409, f"write DROP TABLE {called}")
    assert shared.run(f"DROP TABLE {called}")[1]["code"] == "source_conflict"
    assert shared.run(f"DROP TABLE {called} CASCADE")[0] == 200


def test_a_table_needs_a_key(shared: Broker, name: str, called: str) -> None:
    some(shared, name)
    for text in (f"SELECT id FROM {name}", f"SELECT COUNT(*) AS n FROM {name} GROUP BY v"):
        status, refused = shared.run(f"CREATE TABLE {called} AS\n{text}")
        assert (status, refused["code"], refused["line"], refused["column"]) == (400, "not_supported", 2, 1)
        assert "CREATE VIEW" in refused["hint"]
        shared.producer.send(
            shared.names.sources, b'{"sql": "CREATE TABLE %s AS %s"}' % (called.encode(), text.encode()),
            called.encode(),
        )  # fmt: skip
        shared.producer.flush()
    shared.create(f"CREATE TABLE {called} AS SELECT v, MAX(id) AS last FROM {name} GROUP BY v")
    changing = f"CREATE STREAM {called}_s AS SELECT v, COUNT(*) AS n FROM {name} GROUP BY v"
    status, refused = shared.run(changing)
    assert (status, "CREATE TABLE ... AS" in refused["hint"]) == (400, True)
    status, refused = shared.run(f"CREATE OR REPLACE VIEW {called} AS SELECT v FROM {called}")
    assert (status, refused["code"]) == (400, "syntax")  # it would read itself


def test_a_materialized_view_is_a_view_and_its_query(shared: Broker, name: str, called: str) -> None:
    some(shared, name)
    text = f"CREATE MATERIALIZED VIEW {called} AS SELECT v, COUNT(*) AS n FROM {name} GROUP BY v"
    status, made = shared.run(text)
    assert (status, made["kind"], made["name"]) == (201, "view", called)
    handle = made["handle"]
    wait_until(lambda: sorted(shared.rows(handle)) == [[0.0, 3], [1.0, 3], [2.0, 2]], 120)
    told = shared.http.get(f"/queries/{called}").json()
    assert (told["query_id"], told["maintenance"]) == (made["query_id"], "eager")
    assert shared.source(called)["materialized_by"] == made["query_id"]
    again = shared.run(text)
    assert (again[0], again[1]["query_id"], "handle" in again[1]) == (200, made["query_id"], False)
    other = shared.run(f"CREATE MATERIALIZED VIEW {called} AS SELECT id FROM {name}")
    assert (other[0], other[1]["code"]) == (409, "name_in_use")
    for asked, differs in ((text, False), (text.replace("v, COUNT(*) AS n", "COUNT(*) AS n"), True)):
        left = shared.run(asked.replace("VIEW", "VIEW IF NOT EXISTS", 1))
        assert (left[0], left[1]["skipped"], left[1]["differs"]) == (200, True, differs)
    reader = shared.register(f"SELECT n FROM {called} WHERE v = 2")
    wait_until(lambda: shared.rows(reader) == [[2]], 120)
    refused = shared.run(f"DROP MATERIALIZED VIEW {called}")
    assert (refused[0], refused[1]["code"]) == (409, "source_conflict")
    assert shared.state(handle) == "RUNNING"
    shared.http.delete(f"/queries/{reader}")
    status, gone = shared.run(f"DROP MATERIALIZED VIEW {called}")
    assert (status, gone["state"], gone["ended"]) == (200, "GONE", [made["query_id"]])
    assert shared.state(handle) is None
    assert called not in shared.sources()
    assert shared.run(f"DROP MATERIALIZED VIEW IF EXISTS {called}")[1]["skipped"]
    shared.create(f"CREATE VIEW {called} AS SELECT id FROM {name}")
    status, refused = shared.run(f"DROP MATERIALIZED VIEW {called}")
    assert (status, refused["hint"].startswith(f"write DROP VIEW {called}")) == (409, True)


def test_a_view_whose_query_is_gone_is_materialized_again(shared: Broker, name: str, called: str) -> None:
    some(shared, name)
    text = f"CREATE MATERIALIZED VIEW {called} AS SELECT v, COUNT(*) AS n FROM {name} GROUP BY v"
    first = shared.run(text)[1]
    assert shared.run(f"DROP QUERY {called}")[0] == 200
    status, refused = shared.run(f"DROP MATERIALIZED VIEW {called}")
    assert (status, "no query keeps its answer" in refused["message"]) == (409, True)
    assert "CREATE MATERIALIZED VIEW of the same SELECT makes it again" in refused["hint"]
    status, made = shared.run(text)
    assert (status, made["query_id"] != first["query_id"]) == (201, True)
    status, gone = shared.run(f"DROP MATERIALIZED VIEW {called}")
    assert (status, gone["ended"]) == (200, [made["query_id"]])


def test_neither_is_left_where_one_is_refused(shared: Broker, name: str, called: str) -> None:
    some(shared, name)
    shared.register(f"SELECT id FROM {name} EMIT CHANGES INTO {called}_t")
    status, refused = shared.run(
        f"CREATE MATERIALIZED VIEW {called} AS SELECT v, COUNT(*) AS n FROM {name} GROUP BY v "
        f"EMIT CHANGES INTO {called}_t WITH (format = 'debezium')",
    )
    assert status in (400, 409), refused
    wait_until(lambda: called not in shared.sources())
    handle = new_handle()
    shared.http.post("/queries", json={"sql": f"SELECT v FROM {name}", "name": called, "handle": handle})
    status, refused = shared.run(f"CREATE MATERIALIZED VIEW {called} AS SELECT id FROM {name}")
    assert (status, refused["code"], called in shared.sources()) == (409, "name_in_use", False)


def test_changes_of_a_materialized_view_go_to_its_topic(shared: Broker, name: str, called: str) -> None:
    some(shared, name)
    status, made = shared.run(
        f"CREATE MATERIALIZED VIEW {called} AS SELECT v, COUNT(*) AS n FROM {name} GROUP BY v "
        f"EMIT CHANGES INTO {called} WITH (encoding = 'json')",
    )
    assert status in (201, 202), made
    topic = shared.names.results_into(called)
    assert made["output"]["topic"] == topic
    wait_until(lambda: topic in shared.admin.topics() and len(shared.records(topic)) >= 3, 120)
    # A query over the view that is followed has its operators in common with the view's own.
    other = shared.register(f"SELECT v, n FROM {called} WHERE n > 2 EMIT CHANGES")
    wait_until(lambda: sorted(shared.rows(other)) == [[0.0, 3], [1.0, 3]], 120)
    plan = shared.http.get(f"/queries/{other}/plan").json()
    groups = [one for one in operators(plan["graph"]) if one["operator"] == "group"]
    assert (plan["uses"], [one["state"]["queries"] for one in groups]) == ([called], [2])
    assert "ended" in shared.run(f"DROP VIEW {called} CASCADE")[1]


def test_they_are_there_after_a_restart(kafka: str, tmp_path: Path, service_id: str, name: str) -> None:
    with broker(kafka, tmp_path / "data", service_id) as one:
        some(one, name)
        one.create(f"CREATE TABLE counts AS SELECT v, COUNT(*) AS n FROM {name} GROUP BY v")
        handle = one.run("CREATE MATERIALIZED VIEW most AS SELECT v, n FROM counts WHERE n > 2")[1]["handle"]
        wait_until(lambda: sorted(one.rows(handle)) == [[0.0, 3], [1.0, 3]], 120)
        one.stop()
        one.start()
        wait_until(lambda: sorted(one.rows(handle)) == [[0.0, 3], [1.0, 3]], 120)
        assert (one.source("counts")["kind"], one.source("counts")["key"]) == ("table", ["v"])
        assert one.http.get("/queries/most").json()["query_id"] == one.source("most")["materialized_by"]
        one.kill()
        one.start()
        wait_until(lambda: sorted(one.rows(handle)) == [[0.0, 3], [1.0, 3]], 120)
        assert one.source("counts")["kind"] == "table"
        assert one.run("DROP MATERIALIZED VIEW most")[0] == 200
        assert one.run("DROP TABLE counts")[0] == 200


def test_a_query_that_stands_is_taken_for_the_view_of_its_name(
    shared: Broker, name: str, called: str
) -> None:
    some(shared, name)
    select = f"SELECT v, COUNT(*) AS n FROM {name} GROUP BY v"
    query = shared.run(f"CREATE QUERY {called} AS {select}")[1]
    other = shared.run(f"CREATE MATERIALIZED VIEW {called} AS SELECT id FROM {name}")
    assert (other[0], other[1]["code"]) == (409, "name_in_use")
    status, made = shared.run(f"CREATE MATERIALIZED VIEW {called} AS {select}")
    assert (status, made["query_id"]) == (201, query["query_id"])
    assert shared.source(called)["materialized_by"] == query["query_id"]
    assert shared.run(f"CREATE MATERIALIZED VIEW {called} AS {select}")[0] == 200
    wait_until(lambda: sorted(shared.rows(query["handle"])) == [[0.0, 3], [1.0, 3], [2.0, 2]], 120)
    status, gone = shared.run(f"DROP MATERIALIZED VIEW {called}")
    assert (status, gone["ended"]) == (200, [query["query_id"]])
    assert called not in shared.sources()
