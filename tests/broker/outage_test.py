"""What the broker stands on goes away and comes back: Kafka, a topic, the disk."""

from __future__ import annotations

import re
import resource
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.broker.conftest import stream_sql
from tests.broker.running import SHARDS, Broker
from tests.kafka import Node, wait_until
from tureen import connect
from tureen.errors import UNCONFIRMED, KafkaUnavailable

BASE_MS = 1_700_000_000_000


def rows(count: int, start: int = 0) -> list[dict[str, object]]:
    return [{"id": i, "v": 0, "ts": BASE_MS + i} for i in range(start, start + count)]


def outage(kafka_node: Node, data_dir: Path, service_id: str, name: str, away_s: float) -> None:
    one = Broker(kafka_node.bootstrap, data_dir, service_id, PUBLISH_TIMEOUT_MS=1_000).start()
    for number in range(SHARDS):  # so that there are several shards
        one.create(stream_sql(f"{name}_{number}"))
    one.create(stream_sql(name))
    handle = one.register(f"SELECT id FROM {name}")
    one.send(name, rows(1_000))
    before = one.await_rows(handle, 999)

    kafka_node.stop()
    back_s = time.monotonic() + away_s
    wait_until(lambda: one.readiness()[0] == 503, what="the outage is told")
    assert "kafka_unavailable" in {reason["code"] for reason in one.readiness()[1]["reasons"]}
    refused = one.http.post("/queries", json={"sql": f"SELECT v FROM {name}"})
    assert (refused.status_code, refused.json()["code"]) == (503, "kafka_unavailable")
    unconfirmed = refused.json()["handle"]
    assert refused.json()["message"] == UNCONFIRMED
    one.http.get("/language").raise_for_status()
    said = {"sql": f"SELECT v FROM {name}"}
    checked = one.http.post("/statements/check", json=said, timeout=30).json()  # no shard is waited for
    assert [column["name"] for column in checked["columns"]] == ["v"]
    assert (checked["plan"] is None) == (checked["plan_error"] is not None)
    refused = one.http.post("/sources", json={"sql": stream_sql(f"{name}_later")})
    assert (refused.status_code, refused.json()["code"]) == (503, "kafka_unavailable")
    with connect(one.url) as client, pytest.raises(KafkaUnavailable, match=UNCONFIRMED) as raised:
        client.register(f"SELECT id, v FROM {name}")
    assert raised.value.handle is not None
    wait_until(lambda: len(kafka_reasons(one)) == 1 and len(kafka_reasons(one)[0]["shards"]) > 1)
    while time.monotonic() < back_s:  # answers are served all the while
        assert one.rows(handle) == before

    kafka_node.start()
    wait_until(lambda: one.readiness()[0] == 200, what="ready again")
    one.send(name, rows(1_000, 1_000))
    assert one.await_rows(handle, 1_999) == [[i] for i in range(1_999)]
    other = one.register(f"SELECT id FROM {name} WHERE id < 10")
    assert len(one.rows(other)) == 10
    for sql, again in (
        (f"SELECT v FROM {name}", unconfirmed),
        (f"SELECT id, v FROM {name}", raised.value.handle),
    ):
        assert len(one.rows(one.register(sql, again))) == 1_999
    assert one.stop() == 0
    assert not re.findall(r"^%\d\|.*", one.log.read_text(), re.MULTILINE)


def kafka_reasons(one: Broker) -> list[dict[str, Any]]:
    return [reason for reason in one.readiness()[1]["reasons"] if "shards" in reason]


def test_kafka_stopped_and_back(kafka_node: Node, tmp_path: Path, service_id: str, name: str) -> None:
    outage(kafka_node, tmp_path / "data", service_id, name, 3.0)


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_kafka_stopped_for_a_minute(kafka_node: Node, tmp_path: Path, service_id: str, name: str) -> None:
    outage(kafka_node, tmp_path / "data", service_id, name, 60.0)


def test_a_broker_stops_while_kafka_is_away(
    kafka_node: Node, tmp_path: Path, service_id: str, name: str
) -> None:
    one = Broker(kafka_node.bootstrap, tmp_path / "data", service_id).start()
    one.create(stream_sql(name))
    handle = one.register(f"SELECT id FROM {name}")
    one.send(name, rows(100))
    one.await_rows(handle, 99)
    kafka_node.stop()
    wait_until(lambda: one.readiness()[0] == 503)
    assert one.stop() == 0
    kafka_node.start()
    one.start()
    assert len(one.rows(handle)) == 99


def test_a_deleted_topic_stops_its_stream_alone(
    kafka: str, tmp_path: Path, service_id: str, name: str
) -> None:
    one = Broker(kafka, tmp_path / "data", service_id, TOPIC_CHECK_MS=300, RETRY_MS=100).start()
    other = f"{name}_other"
    handles = {}
    for stream in (name, other):
        one.create(stream_sql(stream))
        handles[stream] = one.register(f"SELECT id FROM {stream}")
        one.send(stream, rows(100))
        one.await_rows(handles[stream], 99)

    one.admin.delete_topics([name])
    wait_until(lambda: one.source(name)["state"] == "ERROR", what="the loss is told")
    assert one.source(name)["error"]["code"] == "topic_missing"
    status, facts = one.readiness()
    assert (status, [stream["stream"] for stream in facts["degraded"]]) == (200, [name])
    assert "stream_lost" in {event.get("event") for event in one.events()}
    assert len(one.rows(handles[name])) == 99
    one.send(other, rows(100, 100))
    one.await_rows(handles[other], 199)

    one.admin.ensure_source_topic(name)

    def is_recreated() -> bool:
        return (one.source(name)["error"] or {}).get("code") == "topic_recreated"

    wait_until(is_recreated, what="that it is another topic is told")
    assert "DROP STREAM" in one.source(name)["error"]["hint"]
    one.kill()
    one.start()
    wait_until(is_recreated, what="it is told after a start")
    assert len(one.rows(handles[name])) == 99
    assert one.http.delete(f"/queries/{handles[name]}").status_code == 200
    assert one.http.post("/sources", json={"sql": f"DROP STREAM {name}"}).status_code == 200
    one.create(stream_sql(name))
    again = one.register(f"SELECT id FROM {name}")
    one.send(name, rows(10))
    one.await_rows(again, 9)


def test_a_full_disk_stops_progress_and_loses_nothing(
    kafka: str, tmp_path: Path, service_id: str, name: str
) -> None:
    one = Broker(kafka, tmp_path / "data", service_id, RETRY_MS=200)
    one.start()
    one.create(stream_sql(name, columns="id BIGINT, v DOUBLE, ts TIMESTAMP, pad STRING"))
    handle = one.register(f"SELECT id FROM {name}")
    one.send(name, rows(100))
    one.await_rows(handle, 99)
    worker = one.children()["broker.worker"].pid
    resource.prlimit(worker, resource.RLIMIT_FSIZE, (64 * 1024, resource.RLIM_INFINITY))
    padded = [row | {"pad": f"{i * 2654435761 % 2**32:x}" * 40} for i, row in enumerate(rows(5_000, 100))]
    one.send(name, padded)
    wait_until(lambda: one.readiness()[0] == 503, what="the full disk is told")
    assert {reason["code"] for reason in one.readiness()[1]["reasons"]} == {"store_full"}
    assert len(one.rows(handle)) >= 99
    resource.prlimit(worker, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    wait_until(lambda: one.readiness()[0] == 200, what="it goes on")
    one.await_rows(handle, 5_099)
    one.kill()
    one.start()
    assert one.await_rows(handle, 5_099) == [[i] for i in range(5_099)]


def test_what_hangs_is_told_by_readiness(
    kafka_node: Node, tmp_path: Path, service_id: str, name: str
) -> None:
    """Nothing is written meanwhile, so no call to Kafka fails: readiness has to ask."""
    one = Broker(kafka_node.bootstrap, tmp_path / "data", service_id, LIVENESS_TIMEOUT_MS=120_000).start()
    one.create(stream_sql(name))
    handle = one.register(f"SELECT id FROM {name}")
    kafka = psutil.Process(kafka_node.start().pid)
    control = one.children()["broker.control"]
    for hanging, code in ((kafka, "kafka_unavailable"), (control, "control")):
        hanging.suspend()
        try:
            wait_until(lambda code=code: code in told(one), what=f"{code} is told")
            assert one.rows(handle) == []
        finally:
            hanging.resume()
        wait_until(lambda: one.readiness()[0] == 200, what="ready again")
    control.kill()
    wait_until(lambda: "control" in told(one), what="the control process is missed")
    one.await_ready()
    assert one.rows(one.register(f"SELECT v FROM {name}")) == []


def told(one: Broker) -> set[str]:
    return {reason["code"] for reason in one.readiness()[1]["reasons"]}
