"""Single sources, records of them, topics of Kafka, and inference over HTTP."""

from __future__ import annotations

import json
from typing import Any

import orjson
import pytest
from click.testing import CliRunner

from tests.broker.conftest import stream_sql
from tests.broker.running import Broker
from tests.kafka import await_ended, wait_until
from tureen.commands.infer import infer
from tureen.protocol import HEADER_HEARTBEAT

BASE_MS = 1_700_000_000_000


def put(one: Broker, name: str, partition: int, *after_ms: int) -> None:
    one.send(name, [{"id": ms, "v": 0.5, "ts": BASE_MS + ms} for ms in after_ms], partition)


def facts(one: Broker, name: str) -> dict[str, Any]:
    reply = one.http.get(f"/sources/{name}")
    assert reply.status_code == 200, reply.text
    found: dict[str, Any] = reply.json()
    return found


def records(one: Broker, name: str, which: str, limit: int = 20) -> dict[str, Any]:
    reply = one.http.get(f"/sources/{name}/records", params={"which": which, "limit": limit})
    assert reply.status_code == 200, reply.text
    found: dict[str, Any] = reply.json()
    return found


def test_one_source_with_the_partition_that_holds_now_back(shared: Broker, name: str) -> None:
    shared.create(stream_sql(name, options=", partitions = 3, lateness = '1 second'"))
    shared.create(f"CREATE VIEW {name}_v AS SELECT id FROM {name}")
    shared.register(f"SELECT id FROM {name}")
    put(shared, name, 0, 5_000, 9_000)
    put(shared, name, 1, 2_000)
    wait_until(lambda: facts(shared, name)["now_ms"] == BASE_MS + 999, what="both partitions were read")
    shared.await_read(name)
    wait_until(
        lambda: [each["end_offset"] for each in facts(shared, name)["partitions"]] == [2, 1, 0],
        what="offsets of Kafka are new",
    )
    one = facts(shared, name)
    of = ("watermark_ms", "holds_now", "holds_back_ms", "unread", "end_offset")
    assert [[each[fact] for fact in of] for each in one["partitions"]] == [
        [BASE_MS + 7_999, False, 0, 0, 2],
        [BASE_MS + 999, True, 7_000, 0, 1],
        [None, False, 0, 0, 0],
    ]
    assert [each["next_offset"] for each in one["partitions"][:2]] == [2, 1]
    assert one["read_by"] == {"queries": 1, "views": [f"{name}_v"], "summaries": [], "referring": []}
    assert one["time_rules"]["lateness_ms"] == 1_000
    assert one["kafka_error"] is None
    assert one.keys() >= shared.source(name).keys()
    view = facts(shared, f"{name}_v")
    assert (view["kind"], view["partitions"], view["time_rules"]) == ("view", [], None)
    page = shared.http.get("/sources", params={"search": name, "sort": "queries", "order": "desc"}).json()
    assert [(one["name"], one["queries"]) for one in page["sources"]] == [(name, 1), (f"{name}_v", 0)]
    page = shared.http.get("/sources", params={"search": name, "sort": "now_ms", "offset": 1}).json()
    assert (page["total"], len(page["sources"])) == (2, 1)
    assert shared.http.get("/history", params={"source": name}).status_code == 200
    assert shared.http.get("/history", params={"source": f"{name}_v"}).json()["code"] == "unknown_source"
    refused = shared.http.get(f"/sources/{name}_no")
    assert refused.json()["code"] == "unknown_source"


def test_records_newest_late_and_dead_with_reasons(shared: Broker, name: str) -> None:
    shared.create(stream_sql(name))
    put(shared, name, 0, 10_000)
    bad = b'{"id": "x' + b"y" * 5_000 + b'", "v": 1, "ts": 1700000010001}'
    shared.send(name, [bad, b"\xff\xfe", {"id": 1, "v": 1.0, "ts": BASE_MS + 1}])
    headers = [(HEADER_HEARTBEAT, str(BASE_MS + 10_500).encode())]
    shared.producer.send(name, b"", b"k", headers=headers, partition=0)
    shared.producer.flush()
    wait_until(
        lambda: (shared.source(name)["late"], shared.source(name)["dead_letters"]) == (1, 2),
        what="all was read",
    )
    for topic in (shared.names.late, shared.names.dead_letters):
        await_ended(shared.bootstrap, topic)
    newest = records(shared, name, "newest")
    assert [one["offset"] for one in newest["records"]] == [4, 3, 2, 1, 0]
    assert (newest["whole"], newest["scanned"]) == (True, 5)
    beat, late, binary, long, fine = newest["records"]
    assert (beat["heartbeat_ms"], beat["key"]["text"], beat["reason"]) == (BASE_MS + 10_500, "k", None)
    assert (late["reason"], fine["reason"]) == (None, None)
    assert (binary["value"]["hex"], binary["value"]["text"]) == (True, "fffe")
    assert (long["value"]["bytes"], long["value"]["cut"]) == (len(bad), True)
    assert "expected BIGINT" in long["reason"]
    letters = records(shared, name, "dead_letters")["records"]
    assert {(one["offset"], one["reason"]) for one in letters} == {
        (one["offset"], one["reason"]) for one in (binary, long)
    }
    (one,) = records(shared, name, "late")["records"]
    assert (one["partition"], one["offset"]) == (0, 3)
    assert json.loads(one["value"]["text"])["id"] == 1
    assert len(records(shared, name, "newest", 2)["records"]) == 2
    for path, code in (
        (f"/sources/{name}/records?which=all", "bad_request"),
        (f"/sources/{name}/records?limit=101", "bad_request"),
        (f"/sources/{name}_no/records", "unknown_source"),
    ):
        assert shared.http.get(path).json()["code"] == code


def test_seconds_of_long_ago_are_told(shared: Broker, name: str) -> None:
    shared.admin.ensure_source_topic(name)
    shared.send(name, [{"id": at, "ts": 900_000_000 + at} for at in range(3)])
    made = shared.http.post("/statements", json={"sql": stream_sql(name)}).json()
    (told,) = (one for one in made["warnings"] if one["code"] == "timestamps_like_seconds")
    assert "ts of 3 of the newest 3 records" in told["message"]
    shared.send(name, [{"id": 3, "ts": BASE_MS}, {"id": 4, "ts": 900_000_004}, {"id": 5, "ts": BASE_MS - 1}])
    wait_until(lambda: shared.source(name)["late"] == 2, what="all was read")
    await_ended(shared.bootstrap, shared.names.late)
    seconds, late = sorted(records(shared, name, "late")["records"], key=lambda one: one["offset"])
    assert seconds["reason"].startswith("late; the timestamp looks like seconds")
    assert late["reason"] == "late"


def test_a_table_in_event_time_tells_when_its_deletions_are(shared: Broker, name: str) -> None:
    def codes(table: str, columns: str, options: str) -> list[str]:
        sql = f"CREATE TABLE {table} (id BIGINT PRIMARY KEY, {columns}) WITH (topic = '{table}'{options})"
        made = shared.http.post("/statements", json={"sql": sql})
        assert made.status_code == 201, made.text
        return [one["code"] for one in made.json()["warnings"]]

    in_event_time = ", timestamp = 'ts'"
    assert "deletions_by_kafka_time" in codes(f"{name}_a", "ts TIMESTAMP", in_event_time)
    of_kafka = codes(f"{name}_b", "ts TIMESTAMP PATH '$._timestamp'", in_event_time)
    assert "deletions_by_kafka_time" not in of_kafka
    assert "deletions_by_kafka_time" not in codes(f"{name}_c", "ts TIMESTAMP", "")


def test_topic_is_listed_inferred_created_and_read(shared: Broker, name: str) -> None:
    hostile = '"><img src=x onerror=alert(1)>'
    shared.admin.ensure_source_topic(name, 2)
    shared.send(name, [{"deviceId": at, hostile: "x", "ts": BASE_MS + at * 1_000} for at in range(30)])
    proposed = shared.http.post("/sources/infer", json={"topic": name, "name": f"{name}_read"}).json()
    assert (proposed["sample"]["records"], proposed["sample"]["read"], proposed["sample"]["late"]) == (
        30,
        30,
        0,
    )
    assert [one["name"] for one in proposed["columns"]] == ["deviceid", hostile, "ts"]
    assert proposed["read_by"] == []
    listed = shared.http.get("/topics", params={"search": name.upper()}).json()
    assert listed["topics"] == [{"topic": name, "partitions": 2, "records": 30, "sources": []}]
    told = CliRunner().invoke(infer, [name, "--name", f"{name}_read", "--url", shared.url])
    assert (told.exit_code, proposed["sql"] in told.output, "30 of 30" in told.output) == (0, True, True)
    shared.create(proposed["sql"])
    handle = shared.register(f"SELECT deviceid FROM {name}_read")
    assert len(shared.await_rows(handle, 29)) == 29
    listed = shared.http.get("/topics", params={"search": name}).json()
    assert listed["topics"][0]["sources"] == [f"{name}_read"]
    assert shared.http.post("/sources/infer", json={"topic": name}).json()["read_by"] == [f"{name}_read"]
    assert shared.http.get("/topics", params={"search": shared.names.steps}).json()["total"] == 0
    assert shared.http.get("/topics", params={"search": shared.names.steps, "own": True}).json()["total"] == 1


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"[]", "bad_request"),
        (b"{}", "bad_request"),
        (b'{"topic": "x", "kind": "table"}', "bad_request"),
        (b'{"topic": "x", "name": ""}', "bad_request"),
        (b'{"topic": "no-such-topic"}', "topic_missing"),
    ],
)
def test_inference_refuses_what_it_does_not_know(shared: Broker, body: bytes, code: str) -> None:
    reply = shared.http.post("/sources/infer", content=body, headers={"Content-Type": "application/json"})
    assert reply.status_code >= 400
    assert orjson.loads(reply.content)["code"] == code
