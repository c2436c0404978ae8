"""GET /trace on a running broker: the way of one record from its offset to the answers."""

from __future__ import annotations

from typing import Any

from click.testing import CliRunner
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from tests.broker.conftest import stream_sql
from tests.broker.running import Broker
from tests.kafka import wait_until
from tureen.commands.trace import trace
from tureen.protocol import query_id

BASE_MS = 1_700_000_000_000


def traced(broker: Broker, source: str, offset: int, partition: int = 0, **more: Any) -> dict[str, Any]:
    reply = broker.http.get(
        "/trace", params={"source": source, "partition": partition, "offset": offset} | more
    )
    assert reply.status_code == 200, reply.text
    facts: dict[str, Any] = reply.json()
    facts["by"] = {one["stage"]: one for one in facts["stages"]}
    assert all(one["known"] == (one["why"] is None) for one in facts["stages"])
    return facts


def operators_of(tree: dict[str, Any]) -> list[str]:
    return [tree["state"]["entity"], *(id_ for below in tree["inputs"] for id_ in operators_of(below))]


def test_the_way_of_a_record(shared: Broker, name: str) -> None:
    other = f"{name}_other"
    for each in (name, other):
        shared.create(stream_sql(each))
    low = shared.register(f"SELECT id FROM {name} [RANGE 1 HOUR] WHERE v < 5 EMIT CHANGES")
    shared.register(f"SELECT id FROM {name} [RANGE 1 HOUR] WHERE v > 50")
    both = shared.register(
        f"SELECT a.id FROM {name} [RANGE 1 HOUR] AS a JOIN {other} [RANGE 1 HOUR] AS b ON a.id = b.id "
        "WHERE a.v < 5"
    )
    shared.send(other, [{"id": 7, "v": i, "ts": BASE_MS + i} for i in range(4)])
    rows = [
        {"id": 7, "v": 1, "ts": BASE_MS},
        b"{nonsense",
        {"id": 8, "v": 99, "ts": BASE_MS + 10_000},
        {"id": 9007199254740993, "v": 2, "ts": BASE_MS - 60_000},
        {"id": 10, "v": 3, "ts": BASE_MS + 20_000},
    ]
    shared.send(name, rows[:3])
    shared.await_rows(low, 1)
    wait_until(lambda: shared.source(name)["dead_letters"] == 1, what="the dead letter")
    shared.send(name, rows[3:])
    shared.await_read(name)
    assert shared.source(name)["late"] == 1
    shared.send(other, [{"id": 7, "v": 0, "ts": BASE_MS + 30_000}, {"id": 1, "v": 0, "ts": BASE_MS + 40_000}])
    shared.await_rows(both, 4)

    one = traced(shared, name, 0)
    assert one["outcome"] == "held"
    assert one["by"]["log"]["value"]["text"] == '{"id":7,"v":1,"ts":1700000000000}'
    assert one["by"]["decoded"]["row"][0] == {"column": "id", "type": "BIGINT", "text": "7"}
    assert one["by"]["read"]["position"] is not None
    assert one["by"]["entered"]["now_ms"] == shared.source(name)["now_ms"]
    matched = one["by"]["matched"]
    assert (matched["queries"], matched["total"]) == ([query_id(low)], 1)
    assert (matched["joined_queries"], matched["joined_total"]) == ([query_id(both)], 1)
    (join,) = one["by"]["joined"]["joins"]
    assert (join["with"], join["partners"]) == (other, len(shared.rows(both)))
    known = {
        entity["id"] for entity in shared.http.get("/entities", params={"limit": 10_000}).json()["entities"]
    }
    of_low = shared.http.get("/entities", params={"query": low}).json()["entities"]
    operators = [each["id"] for each in of_low if each["id"].split("/")[1] == "operator"]
    plan = shared.http.get(f"/queries/{low}/plan").json()
    assert {id_.partition("/")[2] for id_ in operators} == set(operators_of(plan["graph"]))
    for each in [each for each in of_low if each["kind"] not in ("query", "engine")]:
        page = shared.http.get("/entities/queries", params={"entity": each["id"], "limit": 1}).json()
        total = each["statistics"]["queries"]
        assert (page["total"], len(page["queries"])) == (total, min(total, 1)), each["id"]
        assert (page["next"] is None) == (total < 2)
    behind = one["by"]["followed"]["entities"]
    assert all(f"/query-stem/{other}" not in id_ for id_ in behind)
    lit = [id_ for stage in one["stages"] for id_ in stage["entities"]]
    assert set(lit) <= known
    assert any("/sink/" in id_ for id_ in one["by"]["followed"]["entities"])

    dead = traced(shared, name, 1)
    assert dead["outcome"] == "dead_letter"
    assert dead["by"]["decoded"]["reason"]
    assert "matched" not in dead["by"]

    late = traced(shared, name, 3)
    assert late["outcome"] == "late"
    assert late["by"]["decoded"]["row"][0]["text"] == "9007199254740993"  # to the last digit
    assert not late["by"]["joined"]["known"]

    waiting = traced(shared, name, 4, limit=0)
    assert (waiting["outcome"], waiting["by"]["matched"]["queries"]) == ("waiting", [])
    assert waiting["by"]["matched"]["total"] == 1

    future = traced(shared, name, 1_000)
    assert (future["outcome"], future["by"]["read"]["is_read"]) == ("not_written", False)

    told = CliRunner().invoke(trace, [name, "0", "0", "--url", shared.url])
    assert told.exit_code == 0, told.output
    assert query_id(low) in told.output


def test_what_is_not_known_is_said(shared: Broker, name: str) -> None:
    shared.create(stream_sql(name, options=", retain = '1 second'"))
    recent = shared.register(f"SELECT id FROM {name} [RANGE 1 SECOND]")
    after_ms = (0, 60_000, 120_000, 180_000, 180_500)
    shared.send(name, [{"id": i, "v": i, "ts": BASE_MS + ms} for i, ms in enumerate(after_ms)])
    shared.await_rows(recent, 1)
    out = ("left", "unknown")  # by how many letters other tests have written
    wait_until(lambda: traced(shared, name, 0)["outcome"] in out, what="the row leaves")
    left = traced(shared, name, 0)
    assert left["by"]["matched"]["total"] == 1
    assert not left["by"]["joined"]["known"]

    client = AdminClient({"bootstrap.servers": shared.bootstrap})
    for future in client.delete_records([TopicPartition(name, 0, 4)]).values():
        future.result()
    gone = traced(shared, name, 0)
    assert gone["outcome"] == "gone"
    assert (gone["by"]["log"]["known"], gone["by"]["log"]["begin"]) == (False, 4)
    assert [gone["by"][stage]["known"] for stage in ("read", "decoded", "entered")] == [True, False, False]
    held = traced(shared, name, 3)  # Kafka has it no more, the broker does
    assert (held["outcome"], held["by"]["log"]["known"]) == ("held", False)
    assert held["by"]["decoded"]["row"][0]["text"] == "3"

    for query, status, code in (
        ({"source": name, "partition": 99, "offset": 0}, 404, "unknown_partition"),
        ({"source": f"{name}_missing", "partition": 0, "offset": 0}, 400, "unknown_source"),
        ({"source": name, "partition": -1, "offset": 0}, 400, "bad_request"),
        ({"source": name, "partition": 2**31, "offset": 0}, 400, "bad_request"),
        ({"source": name, "partition": 0, "offset": 2**63}, 400, "bad_request"),
        ({"source": name, "partition": 0, "offset": 0, "limit": 100_000}, 400, "bad_request"),
    ):
        reply = shared.http.get("/trace", params=query)
        assert (reply.status_code, reply.json()["code"]) == (status, code), reply.text
