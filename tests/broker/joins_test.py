"""Queries over several sources: where they stand, what they wait for, and how they come back."""

from __future__ import annotations

import json
from itertools import count
from pathlib import Path
from typing import Any

from broker.base.placement import shard_of
from engine.model.step import BEGINNING
from tests.broker.conftest import stream_sql
from tests.broker.running import SHARDS, Broker
from tests.broker.tables import put
from tests.kafka import wait_until
from topics.journal import RecordsNamed
from topics.journal_reader import read_steps
from tureen.protocol import query_id

BASE_MS = 1_700_000_000_000


def rows(count: int, *, start: int = 0, every_ms: int = 1, keys: int = 10) -> list[dict[str, Any]]:
    return [{"id": i % keys, "v": i, "ts": BASE_MS + i * every_ms} for i in range(start, start + count)]


def pair(one: Broker, name: str) -> tuple[str, str]:
    """Two streams."""
    names = (f"{name}_a", f"{name}_b")
    for each in names:
        one.create(stream_sql(each))
    return names


def joined(a: str, b: str) -> str:
    return f"SELECT a.v AS av, b.v AS bv FROM {a} [RANGE 3 MILLISECONDS] a JOIN {b} b ON a.id = b.id"


def expected(now_ms: int, left: list[dict[str, Any]], right: list[dict[str, Any]]) -> list[list[Any]]:
    """What :func:`joined` answers, computed apart."""
    return sorted(
        [a["v"], b["v"]]
        for a in left
        for b in right
        if a["id"] == b["id"] and now_ms - 3 <= a["ts"] <= now_ms and b["ts"] <= now_ms
    )


def replicas(one: Broker) -> set[str]:
    return {name for shard in one.http.get("/status").json()["shards"] for name in shard["replicas"]}


def test_two_streams(shared: Broker, name: str) -> None:
    a, b = pair(shared, name)
    handle = shared.register(joined(a, b))
    left, right = rows(60), rows(45, every_ms=2)
    shared.send(a, left)
    shared.send(b, right[:20])
    slower = BASE_MS + 19 * 2 - 1
    wait_until(lambda: shared.snapshot(handle)["now_ms"] == slower, what="NOW is that of the slower one")
    assert sorted(shared.rows(handle)) == expected(slower, left, right) != []
    shared.send(b, right[20:])
    faster = BASE_MS + 58
    wait_until(lambda: shared.snapshot(handle)["now_ms"] == faster, what="NOW is that of the other one")
    assert sorted(shared.rows(handle)) == expected(faster, left, right) != []
    at_ms = BASE_MS + 30
    assert sorted(shared.snapshot(handle, at=at_ms)["rows"]) == expected(at_ms, left, right) != []

    told = shared.http.get(f"/queries/{handle}").json()
    assert told["sources"] == [a, b]
    listed = {one["query_id"]: one for one in shared.http.get("/queries").json()["queries"]}
    assert listed[query_id(handle)]["sources"] == [a, b]
    plan = shared.http.get(f"/queries/{handle}/plan").json()
    assert plan["sources"] == [a, b]
    assert any("join" in step["operator"] for step in plan["steps"])

    def facts() -> list[tuple[int, ...]]:  # of the shards of the streams, which read them by themselves
        found = map(shared.source, (a, b))
        return [(one["queries"], one["rows"], one["records"]) for one in found]

    wait_until(lambda: facts() == [(1, 59, 60), (1, 44, 45)], what="the streams' own shards have read them")


def test_a_query_that_comes_late_sees_what_was_before(shared: Broker, name: str) -> None:
    a, b = pair(shared, name)
    for each in (a, b):
        shared.send(each, rows(500))
        wait_until(lambda each=each: shared.source(each)["rows"] == 499)
    handle = shared.register(joined(a, b))
    assert sorted(shared.rows(handle)) == expected(BASE_MS + 498, rows(500), rows(500)) != []


def test_late_and_bad_records_are_written_once(shared: Broker, name: str) -> None:
    a, b = pair(shared, name)
    handle = shared.register(joined(a, b))
    for each in (a, b):
        shared.send(each, [*rows(10), {"id": 1, "v": -1, "ts": BASE_MS}, b"{broken"])
    wait_until(lambda: shared.snapshot(handle)["now_ms"] == BASE_MS + 8)
    wait_until(lambda: all(shared.source(each)["dead_letters"] == 1 for each in (a, b)))
    for topic in (shared.names.late, shared.names.dead_letters):
        found = [dict(record.headers())["tureen-topic"].decode() for record in shared.records(topic)]
        assert [found.count(each) for each in (a, b)] == [1, 1]


def test_it_waits_for_all_of_its_sources(shared: Broker, name: str) -> None:
    a, b = f"{name}_a", f"{name}_b"
    reply = shared.http.post("/queries", json={"sql": joined(a, b)})
    assert (reply.status_code, reply.json()["state"]) == (202, "PENDING")
    handle = reply.json()["handle"]
    shared.create(stream_sql(b))
    wait_until(lambda: a in json.dumps(shared.http.get(f"/queries/{handle}").json()["error"]))
    assert shared.state(handle) == "PENDING"
    shared.create(stream_sql(a))
    wait_until(lambda: shared.state(handle) == "RUNNING")
    for each in (a, b):
        shared.send(each, rows(20))
    wait_until(lambda: shared.snapshot(handle)["now_ms"] == BASE_MS + 18, what="all is read")
    assert sorted(shared.rows(handle)) == expected(BASE_MS + 18, rows(20), rows(20)) != []


def test_guests_come_and_go_with_what_needs_them(shared: Broker, name: str) -> None:
    a, b = pair(shared, name)
    view, over = f"{name}_v", f"{name}_w"
    shared.create(f"CREATE VIEW {view} AS SELECT id, v, ts FROM {a} WHERE v < 100")
    shared.create(
        f"CREATE VIEW {over} AS SELECT x.v AS xv, y.v AS yv FROM {view} x JOIN {b} y ON x.id = y.id"
    )
    assert len(replicas(shared) & {a, b, view}) >= 1
    handles = [shared.register(f"SELECT xv, yv FROM {over} WHERE xv = {number}") for number in range(3)] + [
        shared.register(joined(a, b))
    ]
    for each in (a, b):
        shared.send(each, rows(13))
    assert sorted(shared.await_rows(handles[1], 2)) == [[1, 1], [1, 11]]
    assert shared.source(over)["reads"] == [a, b]
    assert (shared.source(a)["queries"], shared.source(over)["queries"]) == (4, 3)
    for used in (a, b, view, over):
        refused = shared.http.delete(f"/sources/{used}")
        assert (refused.status_code, refused.json()["code"]) == (409, "source_conflict")
    for handle in handles:
        assert shared.http.delete(f"/queries/{handle}").status_code == 200
    assert shared.http.delete(f"/sources/{over}").status_code == 200
    assert not replicas(shared) & {a, b, view, over}
    for used in (view, a, b):
        assert shared.http.delete(f"/sources/{used}").status_code == 200


def test_a_plan_before_the_query_stands(shared: Broker, name: str) -> None:
    a, b = pair(shared, name)
    told = shared.http.post("/statements", json={"sql": f"EXPLAIN {joined(a, b)}"}).json()
    assert told["plan"]["sources"] == [a, b]
    assert not replicas(shared) & {a, b}


def test_a_stream_with_a_table(shared: Broker, name: str) -> None:
    stream, table = f"{name}_s", f"{name}_t"
    shared.create(stream_sql(stream))
    shared.create(f"CREATE TABLE {table} (id BIGINT PRIMARY KEY, label STRING)")
    inner = shared.register(f"SELECT v, label FROM {stream} s JOIN {table} t ON s.id = t.id")
    outer = shared.register(f"SELECT v, label FROM {stream} s LEFT JOIN {table} t ON s.id = t.id WHERE v < 3")
    shared.send(stream, rows(6, keys=6))
    wait_until(lambda: sorted(shared.rows(outer)) == [[0, None], [1, None], [2, None]])
    put(shared, table, {"1": {"label": "one"}, "4": {"label": "four"}})
    wait_until(lambda: sorted(shared.rows(inner)) == [[1, "one"], [4, "four"]])
    put(shared, table, {"1": {"label": "uno"}, "4": None, "0": {"label": "zero"}})
    wait_until(lambda: sorted(shared.rows(inner)) == [[0, "zero"], [1, "uno"]])
    wait_until(lambda: sorted(shared.rows(outer)) == [[0, "zero"], [1, "uno"], [2, None]])


def test_a_source_that_is_ahead_waits_for_its_partner(kafka: str, tmp_path: Path, service_id: str) -> None:
    """Both topics are full before anybody reads them; a record of one tells of ten times the time."""
    rows_max = 256
    limits = {"STEP_ROWS_MAX": rows_max, "TRANSACTION_ROWS_MAX": 2 * rows_max}
    own = Broker(kafka, tmp_path / "data", service_id, **limits)
    # Both are replicas where they are joined, so that neither is read there before the other.
    slow, fast = next(
        pair
        for pair in ((f"slow_{i}_{service_id}", f"fast_{i}_{service_id}") for i in count())
        if shard_of(pair, SHARDS) not in {shard_of([one], SHARDS) for one in pair}
    )
    every_ms = {slow: 1, fast: 10}
    records = {topic: rows(20_000 // each, every_ms=each) for topic, each in every_ms.items()}
    for topic in records:
        own.admin.ensure_source_topic(topic)
        own.send(topic, records[topic])
    own.start()
    handle = own.http.post("/queries", json={"sql": joined(slow, fast)}).json()["handle"]
    for topic in (fast, slow):
        own.create(stream_sql(topic))
    wait_until(lambda: own.state(handle) == "RUNNING")
    now_ms = BASE_MS + 19_989
    wait_until(lambda: own.snapshot(handle)["now_ms"] == now_ms, what="all is read")
    assert sorted(own.rows(handle)) == expected(now_ms, records[slow][-20:], records[fast])

    shard = own.http.get("/status").json()["shards"]
    (number,) = (one["shard"] for one in shard if one["replicas"])
    read_ms, ahead_ms = dict.fromkeys(records, 0), []
    for step in read_steps({"bootstrap.servers": kafka}, own.names.steps, number, BEGINNING):
        if isinstance(step.body, RecordsNamed):
            source = str(step.body.source)
            read_ms[source] = max(step.body.next_offsets.values()) * every_ms[source]
            ahead_ms.append(read_ms[fast] - read_ms[slow])
    assert min(read_ms.values()) == 20_000
    # One turn of the fast one, of two steps at most, and no further.
    assert 0 < max(ahead_ms) <= 2 * rows_max * every_ms[fast]


def test_joins_come_back(kafka: str, tmp_path: Path, service_id: str, name: str) -> None:
    own = Broker(kafka, tmp_path / "data", service_id).start()
    a, b = pair(own, name)
    own.create(f"CREATE VIEW {name}_v AS SELECT x.v AS xv, y.v AS yv FROM {a} x JOIN {b} y ON x.id = y.id")
    handles = [own.register(joined(a, b)), own.register(f"SELECT xv, yv FROM {name}_v WHERE xv = 3")]
    left, right = rows(40), rows(40)
    there = replicas(own)
    assert there
    for end, lost in ((20, False), (30, True), (40, None)):
        for each, all_ in ((a, left), (b, right)):
            own.send(each, all_[end - 20 if end == 20 else end - 10 : end])
        now_ms = BASE_MS + end - 2
        wait_until(lambda now_ms=now_ms: own.snapshot(handles[0])["now_ms"] == now_ms)
        before = [own.snapshot(handle)["rows"] for handle in handles]
        assert sorted(before[0]) == expected(now_ms, left, right) != []
        assert sorted(before[1]) == [[3, v] for v in range(3, end - 1, 10)]
        if lost is None:
            break
        own.kill()
        if lost:
            (tmp_path / "data").rename(tmp_path / "gone")
        own.start()
        assert [own.snapshot(handle)["rows"] for handle in handles] == before
        assert replicas(own) == there
    assert own.http.delete(f"/sources/{a}").status_code == 409
    for handle in handles:
        assert own.http.delete(f"/queries/{handle}").status_code == 200
    for each in (f"{name}_v", a, b):
        assert own.http.delete(f"/sources/{each}").status_code == 200
    assert not replicas(own)
    assert own.stop() == 0
