"""From a statement to an answer, by HTTP and by topic, through a clean stop."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.broker.conftest import stream_sql
from tests.broker.running import READY_S, Broker, broker
from tests.kafka import wait_until
from tureen.protocol import new_handle, query_id

BASE_MS = 1_700_000_000_000


def rows(count: int, start: int = 0) -> list[dict[str, object]]:
    return [{"id": i, "v": i / 2, "ts": BASE_MS + i} for i in range(start, start + count)]


def test_http_registers_and_answers(shared: Broker, name: str) -> None:
    made = {"name": name, "kind": "stream", "topic": name, "state": "RUNNING", "error": None}
    assert made.items() <= shared.create(stream_sql(name)).items()
    reply = shared.http.post("/queries", json={"sql": f"SELECT id FROM {name} WHERE v >= 2"})
    facts = reply.json()
    assert (reply.status_code, facts["state"], facts["error"]) == (201, "RUNNING", None)
    assert facts["query_id"] == query_id(facts["handle"])
    shared.send(name, rows(10))
    answer = shared.await_rows(facts["handle"], 5)
    assert answer == [[4], [5], [6], [7], [8]]  # the watermark stays 1 ms behind the largest timestamp


def test_topic_alone_registers_and_removes(shared: Broker, name: str) -> None:
    shared.create(stream_sql(name))
    shared.send(name, rows(10))
    handle = new_handle()
    shared.publish(handle, {"sql": f"SELECT id FROM {name} WHERE id < 3", "options": {"team": "a"}})
    wait_until(lambda: shared.state(handle) == "RUNNING")
    assert shared.await_rows(handle, 3) == [[0], [1], [2]]
    wait_until(lambda: query_id(handle) in shared.status_topic())
    (status,) = shared.status_topic()[query_id(handle)]
    assert status is not None
    assert (status["state"], status["error"]) == ("RUNNING", None)
    shared.publish(handle, None)
    wait_until(lambda: shared.state(handle) is None)
    wait_until(lambda: shared.status_topic()[query_id(handle)][-1] is None)


def test_sources_topic_alone_creates_and_drops(shared: Broker, name: str) -> None:
    shared.producer.send(shared.names.sources, b'{"sql": "%s"}' % stream_sql(name).encode(), name.encode())
    shared.producer.flush()
    names = lambda: [source["name"] for source in shared.http.get("/sources").json()["sources"]]  # noqa: E731
    wait_until(lambda: name in names())
    shared.producer.send(shared.names.sources, None, name.encode())
    shared.producer.flush()
    wait_until(lambda: name not in names())


def test_a_query_waits_for_its_stream(shared: Broker, name: str) -> None:
    reply = shared.http.post("/queries", json={"sql": f"SELECT id FROM {name}"})
    assert reply.status_code == 202
    facts = reply.json()
    assert (facts["state"], facts["error"]["code"]) == ("PENDING", "unknown_source")
    refused = shared.http.get(f"/queries/{facts['handle']}/snapshot")
    assert (refused.status_code, refused.json()["code"]) == (409, "query_not_running")
    assert "it is checked again whenever a stream" in refused.json()["hint"]
    shared.create(stream_sql(name))
    wait_until(lambda: shared.state(facts["handle"]) == "RUNNING")
    wait_until(lambda: len(shared.status_topic().get(facts["query_id"], [])) == 2)
    states = [status and status["state"] for status in shared.status_topic()[facts["query_id"]]]
    assert states == ["PENDING", "RUNNING"]


def test_the_same_text_again_changes_nothing(shared: Broker, name: str) -> None:
    shared.create(stream_sql(name))
    assert shared.http.post("/sources", json={"sql": stream_sql(name)}).status_code == 200
    sql = f"SELECT id FROM {name}"
    handle = shared.register(sql)
    again = shared.http.post("/queries", json={"sql": sql, "handle": handle})
    assert (again.status_code, again.json()["state"]) == (200, "RUNNING")
    shared.publish(handle, {"sql": sql})
    other = new_handle()
    shared.publish(other, {"sql": sql})
    wait_until(lambda: shared.state(other) == "RUNNING")
    assert len(shared.status_topic()[query_id(handle)]) == 1


def test_by_topic_another_text_replaces_by_http_it_is_refused(shared: Broker, name: str) -> None:
    shared.create(stream_sql(name))
    shared.send(name, rows(10))
    handle = shared.register(f"SELECT id FROM {name} WHERE id < 2")
    reply = shared.http.post("/queries", json={"sql": f"SELECT v FROM {name}", "handle": handle})
    assert (reply.status_code, reply.json()["code"]) == (409, "handle_in_use")
    shared.publish(handle, {"sql": f"SELECT id FROM {name} WHERE id < 4"})
    wait_until(lambda: shared.rows(handle) == [[0], [1], [2], [3]])


def test_bulk_registration_answers_line_by_line(shared: Broker, name: str) -> None:
    shared.create(stream_sql(name))
    lines = [b'{"sql": "SELECT id FROM %s WHERE id = %d"}' % (name.encode(), i) for i in range(300)]
    lines[7] = b"{nonsense"
    lines[8] = b'{"sql": "SELECT nothing FROM %s"}' % name.encode()
    reply = shared.http.post(
        "/queries", content=b"\n".join(lines), headers={"Content-Type": "application/x-ndjson"}
    )
    answers = [__import__("json").loads(line) for line in reply.text.splitlines()]
    assert [answer["state"] for answer in answers].count("RUNNING") == 298
    assert answers[7]["error"]["code"] == "bad_request"
    assert answers[8]["error"]["code"] == "unknown_column"
    assert shared.source(name)["queries"] == 298


def test_unregister_and_drop(shared: Broker, name: str) -> None:
    shared.create(stream_sql(name))
    handle = shared.register(f"SELECT id FROM {name}")
    refused = shared.http.delete(f"/sources/{name}")
    assert (refused.status_code, refused.json()["code"]) == (409, "source_conflict")
    assert shared.http.delete(f"/queries/{handle}").status_code == 200
    assert shared.http.delete(f"/queries/{handle}").status_code == 404
    assert shared.http.get(f"/queries/{handle}/snapshot").json()["code"] == "unknown_query"
    assert shared.http.delete(f"/sources/{name}").status_code == 200
    assert shared.http.delete(f"/sources/{name}").json()["code"] == "unknown_source"


def test_late_and_bad_records_go_where_they_belong(shared: Broker, name: str) -> None:
    shared.create(stream_sql(name, options=", future_max = '1 hour'"))
    handle = shared.register(f"SELECT id FROM {name}")
    shared.send(
        name, [*rows(5), b"{broken", {"id": "x", "v": 1, "ts": BASE_MS}, {"id": 9, "v": 1, "ts": BASE_MS}]
    )
    shared.await_rows(handle, 4)
    shared.await_read(name)
    assert (shared.source(name)["dead_letters"], shared.source(name)["late"]) == (2, 1)
    shared.send(name, [{"id": 1, "v": 0, "ts": 99_999_999_999_999}])
    wait_until(lambda: shared.source(name)["dead_letters"] == 3)
    late = [
        r for r in shared.records(shared.names.late) if dict(r.headers())["tureen-topic"] == name.encode()
    ]
    assert [r.value() for r in late] == [b'{"id":9,"v":1,"ts":%d}' % BASE_MS]
    dead = [
        r
        for r in shared.records(shared.names.dead_letters)
        if dict(r.headers())["tureen-topic"] == name.encode()
    ]
    assert [int(dict(r.headers())["tureen-offset"]) for r in dead] == [5, 6, 8]
    assert dead[0].value() == b"{broken"


def test_no_handle_in_logs_lists_or_metrics(shared: Broker, name: str) -> None:
    shared.create(stream_sql(name))
    handle = shared.register(f"SELECT id FROM {name}")
    shared.snapshot(handle)
    shared.http.get(f"/queries/{handle}/snapshot", params={"at": "nonsense"})
    seen = [shared.http.get(path).text for path in ("/queries", "/status", "/metrics", "/sources")]
    assert not any(handle in text for text in [*seen, shared.log.read_text()])
    assert 'tureen_queries{state="RUNNING"}' in seen[2]
    assert f'tureen_records_total{{stream="{name}"}}' not in seen[2]  # nothing was read


def test_arrival_time_moves_with_the_clock(shared: Broker, name: str) -> None:
    shared.create(f"CREATE STREAM {name} (id BIGINT)")
    long, short = (shared.register(f"SELECT id FROM {name} [RANGE {s} SECONDS]") for s in (3_600, 1))
    shared.send(name, [{"id": i} for i in range(5)])
    assert shared.await_rows(long, 5) == [[i] for i in range(5)]
    wait_until(lambda: shared.rows(short) == [], what="the short window has moved past the rows")
    assert len(shared.rows(long)) == 5
    # At the instant at which the last of them came in, the short window held it.
    (came,) = (record.timestamp()[1] for record in shared.records(name)[-1:])
    assert [4] in shared.snapshot(short, at=came)["rows"]


def test_a_clock_that_rested_is_right_for_the_next_query(shared: Broker, name: str) -> None:
    shared.create(f"CREATE STREAM {name} (id BIGINT)")
    shared.send(name, [{"id": 1}])
    wait_until(lambda: shared.source(name)["rows"] == 1, what="the row has entered")
    came = shared.source(name)["now_ms"]
    wait_until(lambda: time.time() * 1_000 > came + 3_000, what="that was 3 seconds ago")
    assert shared.source(name)["now_ms"] < came + 2_000, "nobody reads the stream, so its clock rests"
    handle = shared.register(f"SELECT id FROM {name} [RANGE 1 SECONDS]")
    first = shared.snapshot(handle)
    assert first["rows"] == []
    assert first["now_ms"] > came + 2_000


def test_an_instant_past_a_clock_that_rests_is_answered(shared: Broker, name: str) -> None:
    shared.create(f"CREATE STREAM {name} (id BIGINT)")
    handle = shared.register(f"SELECT id FROM {name}")
    shared.send(name, [{"id": 1}])
    shared.await_rows(handle, 1)
    came = shared.snapshot(handle)["now_ms"]
    wait_until(lambda: time.time() * 1_000 > came + 3_000, what="that was 3 seconds ago")
    assert shared.snapshot(handle)["now_ms"] < came + 2_000, "no window moves, so the clock rests"
    answer = shared.snapshot(handle, at=came + 2_500)
    assert (answer["rows"], answer["now_ms"]) == ([[1]], came + 2_500)
    reply = shared.http.get(f"/queries/{handle}/snapshot", params={"at": came + 3_600_000})
    assert reply.json()["code"] == "instant_out_of_range"


def test_arrival_time_wants_log_append_time(shared: Broker, name: str) -> None:
    shared.admin.ensure_source_topic(name)
    reply = shared.http.post("/sources", json={"sql": f"CREATE STREAM {name} (id BIGINT)"})
    assert (reply.status_code, reply.json()["code"]) == (400, "topic_policy_mismatch")


def test_producers_need_not_begin_in_the_same_instant(shared: Broker, name: str) -> None:
    shared.create(stream_sql(name, options=", partitions = 2, idle_timeout = '10 minutes'"))
    handle = shared.register(f"SELECT id FROM {name}")
    shared.send(name, rows(50, 50), partition=0)
    wait_until(lambda: shared.source(name)["pending"] == 50, what="rows wait for the other partition")
    shared.send(name, rows(50), partition=1)
    assert shared.await_rows(handle, 49) == [[i] for i in range(49)]
    assert shared.source(name)["late"] == 0


def test_the_brokers_own_topics_are_no_streams(shared: Broker, name: str) -> None:
    for topic in (shared.names.dead_letters, shared.names.snapshot_requests):
        sql = f"CREATE STREAM {name} (ts TIMESTAMP) WITH (timestamp = 'ts', topic = '{topic}')"
        reply = shared.http.post("/sources", json={"sql": sql})
        assert (reply.status_code, reply.json()["code"]) == (400, "not_supported")


@pytest.fixture
def own(kafka: str, tmp_path: Path, service_id: str) -> Broker:
    return Broker(kafka, tmp_path / "data", service_id)


def test_a_stop_flushes_and_a_start_resumes(own: Broker, name: str) -> None:
    own.start()
    own.create(stream_sql(name))
    handle = own.register(f"SELECT id FROM {name}")
    pending = own.http.post("/queries", json={"sql": "SELECT id FROM missing"}).json()["handle"]
    own.send(name, rows(1_000))
    own.await_rows(handle, 999)
    before = own.snapshot(handle)
    assert own.stop() == 0
    own.start()
    after = own.snapshot(handle)
    places = ("position", "change_position")  # a start is a step
    assert [after.pop(place) > before.pop(place) for place in places] == [True, True]
    assert after == before
    assert own.state(pending) == "PENDING"
    recovered = [event for event in own.events() if event.get("event") == "shard_recovered"]
    assert [event["replayed"] for event in recovered] == [0]
    statuses = own.status_topic()
    assert [len(statuses[query_id(one)]) for one in (handle, pending)] == [1, 1]
    own.send(name, rows(10, 1_000))
    own.await_rows(handle, 1_009)


def test_a_second_broker_is_refused(shared: Broker, kafka: str, service_id: str) -> None:
    second = Broker(kafka, shared.data_dir, service_id)
    process = second.launch()
    assert process.wait(READY_S) == 1
    assert f"owns {shared.data_dir}" in second.log.read_text().split("Ready in")[-1]
    assert shared.readiness()[0] == 200


def test_an_older_owner_of_the_service_is_fenced(
    kafka: str, tmp_path: Path, service_id: str, name: str
) -> None:
    first = Broker(kafka, tmp_path / "first", service_id).start()
    first.create(stream_sql(name))
    handle = first.register(f"SELECT id FROM {name}")
    first.send(name, rows(10))
    before = first.await_rows(handle, 9)
    with broker(kafka, tmp_path / "second", service_id) as second:
        assert second.rows(handle) == before
        second.send(name, rows(10, 10))
        second.await_rows(handle, 19)
        assert first.process is not None
        assert first.process.wait(READY_S) == 78
        assert "node_fenced" in first.log.read_text()
