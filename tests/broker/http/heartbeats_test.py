"""Heartbeats over HTTP and in topics: NOW does not wait for a quiet partition, also after a crash."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import orjson
import pytest
from click.testing import CliRunner

import tureen
from tests.broker.conftest import stream_sql
from tests.broker.running import Broker
from tests.kafka import wait_until
from tureen.commands.heartbeat import heartbeat
from tureen.protocol import HEADER_HEARTBEAT

BASE_MS = 1_700_000_000_000


def put(one: Broker, name: str, partition: int, *after_ms: int) -> None:
    values = [orjson.dumps({"id": ms, "v": 0.5, "ts": BASE_MS + ms}) for ms in after_ms]
    one.producer.send_many(name, values, partitions=[partition] * len(values))
    one.producer.flush()


def beat(one: Broker, name: str, ms: object, **fields: object) -> tuple[int, dict[str, Any]]:
    reply = one.http.post(f"/sources/{name}/heartbeat", json={"ms": ms, **fields})
    return reply.status_code, reply.json()


def beats(one: Broker, name: str, partition: int, *texts: object, value: bytes | None = None) -> None:
    """As records of the topic."""
    for text in texts:
        headers = [(HEADER_HEARTBEAT, str(text).encode())]
        one.producer.send(name, value, None, headers=headers, partition=partition)
    one.producer.flush()


def two_partitions(one: Broker, name: str) -> str:
    one.create(stream_sql(name, options=", partitions = 2"))
    return one.register(f"SELECT id FROM {name}")


def test_now_does_not_wait_for_a_quiet_partition_and_a_crash_keeps_it(
    kafka: str, tmp_path: Path, service_id: str, name: str
) -> None:
    one = Broker(kafka, tmp_path / "data", service_id, SAVE_INTERVAL_MS=200).start()
    handle = two_partitions(one, name)
    put(one, name, 1, 0)
    put(one, name, 0, 10, 20, 30, 40)
    wait_until(lambda: one.source(name)["pending"] == 5, what="rows wait for partition 1")
    code, told = beat(one, name, BASE_MS + 31, partition=1)
    assert (code, told["raised"], told["unchanged"], told["now_ms"]) == (200, [1], [], BASE_MS + 30)
    assert one.rows(handle) == [[0], [10], [20], [30]]
    one.kill()
    one.start()
    assert (one.source(name)["now_ms"], one.rows(handle)) == (BASE_MS + 30, [[0], [10], [20], [30]])
    put(one, name, 1, 30, 31)  # the first breaks the promise
    wait_until(lambda: one.source(name)["late"] == 1, what="the row is late")
    assert beat(one, name, BASE_MS + 40, partition=1)[1]["now_ms"] == BASE_MS + 39
    assert one.rows(handle) == [[0], [10], [20], [30], [31]]
    saved = one.source(name)
    assert one.stop() == 0  # from the store alone
    one.start()
    facts = ("now_ms", "late", "pending", "rows", "next_offsets")
    assert [one.source(name)[fact] for fact in facts] == [saved[fact] for fact in facts]
    assert beat(one, name, BASE_MS + 40, partition=1)[1]["unchanged"] == [1]


def test_what_was_there_before_a_heartbeat_is_not_late(shared: Broker, name: str) -> None:
    two_partitions(shared, name)
    for start in range(0, 4_000, 1_000):
        put(shared, name, 0, *range(start, start + 1_000))
        put(shared, name, 1, *range(start, start + 1_000))
        code, told = beat(shared, name, BASE_MS + start + 1_000)
        assert (code, told["raised"], told["now_ms"]) == (200, [0, 1], BASE_MS + start + 999)
    source = shared.source(name)
    assert (source["rows"], source["pending"], source["late"]) == (8_000, 0, 0)


def test_one_that_goes_back_has_no_effect(shared: Broker, name: str) -> None:
    two_partitions(shared, name)
    first = beat(shared, name, BASE_MS + 100)[1]
    assert (first["raised"], first["unchanged"], first["now_ms"]) == ([0, 1], [], BASE_MS + 99)
    for ms in (BASE_MS + 100, BASE_MS + 50, 0):
        code, told = beat(shared, name, ms, partition=None)
        assert (code, told["raised"], told["unchanged"]) == (200, [], [0, 1])
        assert (told["now_ms"], told["position"]) == (BASE_MS + 99, first["position"])
    assert beat(shared, name, BASE_MS + 101, partition=1)[1]["now_ms"] == BASE_MS + 99


@pytest.mark.parametrize(
    ("fields", "status", "code"),
    [
        ({"ms": BASE_MS, "partition": 2}, 404, "unknown_partition"),
        ({"ms": BASE_MS, "partition": -1}, 404, "unknown_partition"),
        ({"ms": BASE_MS, "partition": "0"}, 400, "bad_request"),
        ({"ms": BASE_MS, "partition": True}, 400, "bad_request"),
        ({"ms": str(BASE_MS)}, 400, "bad_request"),
        ({"ms": 1.5}, 400, "bad_request"),
        ({"ms": None}, 400, "bad_request"),
        ({"ms": -(2**60)}, 400, "bad_request"),
        ({"ms": BASE_MS, "partitions": 1}, 400, "bad_request"),
        ({"ms": int(time.time() * 1_000) + 10 * 365 * 86_400_000}, 400, "heartbeat_refused"),
    ],
)
def test_bad_ones_are_refused(
    shared: Broker, name: str, fields: dict[str, Any], status: int, code: str
) -> None:
    two_partitions(shared, name)
    reply = shared.http.post(f"/sources/{name}/heartbeat", json=fields)
    assert (reply.status_code, reply.json()["code"]) == (status, code)
    assert shared.source(name)["now_ms"] is None


def test_only_streams_in_event_time_that_exist_take_them(shared: Broker, name: str) -> None:
    code, refused = beat(shared, name, BASE_MS)
    assert (code, refused["code"]) == (400, "unknown_source")
    shared.create(f"CREATE STREAM {name} (id BIGINT)")
    code, refused = beat(shared, name, BASE_MS)
    assert (code, refused["code"]) == (400, "heartbeat_refused")


def test_client_and_command(shared: Broker, name: str) -> None:
    two_partitions(shared, name)
    with tureen.connect(shared.url) as client:
        done = client.heartbeat(name, BASE_MS)
    assert (done.raised, done.unchanged, done.now_ms) == ((0, 1), (), BASE_MS - 1)
    told = CliRunner().invoke(
        heartbeat, [name, str(BASE_MS + 5), "--partition", "1", "--url", shared.url, "--json"]
    )
    assert json.loads(told.stdout) == {"raised": [1], "unchanged": [], "now_ms": BASE_MS - 1}
    again = CliRunner().invoke(heartbeat, [name, str(BASE_MS), "--url", shared.url])
    assert again.exit_code == 0
    assert "no effect" in again.output


def test_heartbeats_in_the_topic_count_from_their_place_also_after_a_crash(
    kafka: str, tmp_path: Path, service_id: str, name: str
) -> None:
    one = Broker(kafka, tmp_path / "data", service_id, SAVE_INTERVAL_MS=600_000).start()
    handle = two_partitions(one, name)
    put(one, name, 1, 0)
    put(one, name, 0, 10, 20)
    beats(one, name, 1, BASE_MS + 16, value=b'{"id": 7, "v": 0.5, "ts": 1700000000000}')
    wait_until(lambda: one.source(name)["now_ms"] == BASE_MS + 15, what="NOW is where the heartbeat has it")
    beats(one, name, 0, BASE_MS + 31)
    beats(one, name, 1, BASE_MS + 10, BASE_MS + 45, BASE_MS + 42)  # two that go back
    wait_until(lambda: one.source(name)["now_ms"] == BASE_MS + 30, what="NOW goes on")
    alone = f"{name}_alone"
    one.create(stream_sql(alone))
    whose = one.register(f"SELECT id FROM {alone}")
    one.send(alone, [{"id": 10, "v": 0.5, "ts": BASE_MS + 10}])
    beats(one, alone, 0, BASE_MS + 40)
    one.send(
        alone, [{"id": at, "v": 0.5, "ts": BASE_MS + at} for at in (30, 40, 50)]
    )  # one breaks the promise
    wait_until(lambda: one.source(alone)["now_ms"] == BASE_MS + 49, what="rows count as well")
    one.await_read(name, alone)
    facts = ("now_ms", "late", "dead_letters", "pending", "rows", "next_offsets")
    saved = [[one.source(each)[fact] for fact in facts] for each in (name, alone)]
    assert [one_of[:5] for one_of in saved] == [[BASE_MS + 30, 0, 0, 0, 3], [BASE_MS + 49, 1, 0, 1, 2]]
    for crashes in (True, False):
        assert (one.rows(handle), one.rows(whose)) == ([[0], [10], [20]], [[10], [40]])
        assert [[one.source(each)[fact] for fact in facts] for each in (name, alone)] == saved
        if crashes:
            one.kill()
            one.start()


def test_heartbeats_in_the_topic_that_are_none_are_dead_letters(shared: Broker, name: str) -> None:
    two_partitions(shared, name)
    put(shared, name, 0, 10)
    far_ms = int(time.time() * 1_000) + 10 * 365 * 86_400_000
    beats(shared, name, 0, "soon", far_ms, BASE_MS + 21, value=b"")
    beats(shared, name, 1, BASE_MS + 31)
    wait_until(lambda: shared.source(name)["now_ms"] == BASE_MS + 20, what="the good ones count")
    assert (shared.source(name)["dead_letters"], shared.source(name)["rows"]) == (2, 1)
    reasons = [
        headers["tureen-reason"]
        for record in shared.records(shared.names.dead_letters)
        if (headers := dict(record.headers()))["tureen-topic"] == name.encode()
    ]
    assert [b"not a number of ms" in one for one in reasons] == [True, False]
    assert reasons[1].startswith(b"heartbeat_refused: ")
    counted = [line for line in shared.http.get("/metrics").text.splitlines() if f'stream="{name}"' in line]
    assert f'tureen_heartbeats_total{{stream="{name}"}} 2.0' in counted
