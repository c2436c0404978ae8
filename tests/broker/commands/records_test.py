"""What is likely to be wrong is told where it is seen: by CREATE, by answers, by lists, by commands."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click import Command
from click.testing import CliRunner

from broker.commands.records import dead_letters, late, records
from broker.commands.topic import topic
from tests.broker.conftest import stream_sql
from tests.broker.running import Broker, broker
from tests.kafka import wait_until
from topics.newest import facts_of, newest
from tureen.errors import TopicMissing
from tureen.snapshot import Reply, Snapshot

BASE_MS = 1_700_000_000_000
COLUMNS = "deviceId STRING, temp DOUBLE, ts TIMESTAMP"


def shown(command: Command, shared: Broker, *args: str) -> list[Any]:
    """The JSON lines of a command."""
    done = CliRunner().invoke(command, [*args, "--json"], env=environment(shared), catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return [json.loads(line) for line in done.stdout.splitlines()]


def environment(shared: Broker) -> dict[str, str]:
    return {
        "TUREEN_SERVICE_ID": shared.names.service_id,
        "TUREEN_KAFKA__BOOTSTRAP_SERVERS": shared.bootstrap,
        "TUREEN_URL": shared.url,
    }


def refused(command: Command, shared: Broker, *args: str, **other: str) -> TopicMissing:
    """What a command ends with."""
    with pytest.raises(TopicMissing) as found:
        CliRunner().invoke(command, list(args), env=environment(shared) | other, catch_exceptions=False)
    return found.value


def test_camel_case_members_are_columns_and_match(shared: Broker, name: str) -> None:
    shared.create(stream_sql(name, columns=COLUMNS))
    handle = shared.register(f"SELECT deviceId, temp FROM {name} WHERE deviceid = 'a'")
    record = {"deviceId": "a", "Temp": 1.5, "ts": BASE_MS}
    shared.send(name, [record, {"deviceId": "b", "ts": BASE_MS + 1}, {"ts": BASE_MS + 2}])
    assert shared.await_rows(handle, 1) == [["a", 1.5]]
    matched = shared.http.post("/match", json={"source": name, "record": record}).json()
    assert matched["matches"][0]["total"] == 1


def test_create_tells_of_a_topic_that_was_there_and_of_its_members(shared: Broker, name: str) -> None:
    shared.admin.ensure_source_topic(name, 2)
    values = [{"DeviceId": "a", "temperature": i, "ts": BASE_MS + i} for i in range(30)]
    bad = [{"deviceid": "x", "ts": 1_700_000_000 + at} for at in range(2)]
    shared.send(name, [*values, *bad, {"deviceid": 7, "ts": BASE_MS}], partition=1)
    status, facts = shared.run(stream_sql(name, columns=COLUMNS))
    assert status == 201
    assert (facts["topic_existed"], facts["partitions"], facts["topic_records"]) == (True, 2, 33)
    seconds = "column ts: 1700000000 looks like seconds; TIMESTAMP is read from ms since 1970 or from text"
    expected = "column deviceid: expected STRING, got number 7"
    assert facts["sample"] == {
        "records": 33,
        "unreadable": 3,
        "reasons": [{"reason": seconds, "records": 2}, {"reason": expected, "records": 1}],
        "columns_without_member": ["temp"],
        "members_without_column": ["temperature"],
        "like_seconds": 0,
    }
    assert [one["code"] for one in facts["warnings"]] == ["columns_without_member", "records_unreadable"]
    message = facts["warnings"][1]["message"]
    assert message == f"3 of the newest 33 records give no row: {seconds} (2); {expected} (1)"
    wait_until(lambda: shared.source(name)["dead_letters"] == 3)
    source = shared.source(name)
    assert source["absent_columns"] == ["temp"]
    assert (source["late"], source["dead_letters"]) == (0, 3)
    again = shared.run(stream_sql(name, columns=COLUMNS))
    assert again[0] == 200


def test_create_tells_of_a_topic_that_was_made_and_of_one_named_alike(shared: Broker, name: str) -> None:
    shared.admin.ensure_source_topic(f"{name}-orders")
    sql = f"CREATE STREAM {name} (v BIGINT, ts TIMESTAMP) WITH (timestamp = 'ts', topic = '{name}-order'"
    status, refused = shared.run(f"{sql}, create_topic = false)")
    assert (status, refused["code"]) == (400, "topic_missing")
    assert f"{name}-orders" in refused["hint"]
    assert f"{name}-order" not in shared.admin.topics()
    status, facts = shared.run(f"{sql}, partitions = 4, idle_timeout = '1 second')")
    assert (status, facts["topic_existed"], facts["topic_records"]) == (201, False, 0)
    assert facts["partitions"] == 4
    assert [one["code"] for one in facts["warnings"]] == ["topic_created", "idle_timeout_short"]
    assert f"{name}-orders" in facts["warnings"][0]["message"]


def test_missing_topic_is_not_made_by_a_record_either(shared: Broker, name: str) -> None:
    """A statement on the sources topic goes past HTTP."""
    sql = f"CREATE STREAM {name} (v BIGINT) WITH (create_topic = false)"
    shared.producer.send(shared.names.sources, json.dumps({"sql": sql}).encode(), name.encode())
    after = f"{name}b"
    shared.producer.send(
        shared.names.sources, json.dumps({"sql": stream_sql(after)}).encode(), after.encode()
    )
    shared.producer.flush()

    def names() -> set[str]:
        return {one["name"] for one in shared.http.get("/sources").json()["sources"]}

    wait_until(lambda: after in names())
    assert name not in names()
    assert name not in shared.admin.topics()


def test_late_rows_and_dead_letters_are_told_with_answers_and_survive_a_kill(
    kafka: str, tmp_path: Path, service_id: str, name: str
) -> None:
    with broker(kafka, tmp_path / "data", service_id) as one:
        one.create(stream_sql(name))
        handle = one.register(f"SELECT id FROM {name}")
        one.send(name, [{"id": 1, "ts": BASE_MS}, {"id": 2, "ts": BASE_MS + 10}])
        one.await_rows(handle, 1)
        wire = b"\x00\x00\x00\x00\x07\x02hi"
        seconds = {"id": 4, "ts": 1_700_000_000}
        one.send(name, [{"id": 3, "ts": BASE_MS}, wire, seconds, {"id": 5, "ts": BASE_MS + 20}])
        one.await_rows(handle, 2)

        def told() -> tuple[Any, ...]:
            answer = one.snapshot(handle)
            return answer["late"], answer["dead_letters"], answer["counted_from_ms"]

        late_rows, broken, since_ms = told()
        assert (late_rows, broken) == (1, 2)
        assert since_ms > BASE_MS
        reply = one.http.get(f"/queries/{handle}/snapshot", params={"format": "arrow"})
        snapshot = Snapshot.of(Reply(reply.content, "arrow", dict(reply.headers)))
        assert (snapshot.late, snapshot.dead_letters, snapshot.counted_from_ms) == (1, 2, since_ms)
        described = one.http.get(f"/queries/{handle}").json()
        assert (described["late"], described["dead_letters"]) == (1, 2)

        one.kill()
        one.start()
        assert told() == (1, 2, since_ms)
        source = one.source(name)
        assert (source["late"], source["dead_letters"], source["counted_from_ms"]) == (1, 2, since_ms)

        (row,) = shown(late, one, name)
        assert (row["topic"], row["partition"], row["offset"], row["reason"]) == (name, 0, 2, "late")
        assert row["value"] == {"id": 3, "ts": BASE_MS}
        letters = shown(dead_letters, one)
        assert [one["offset"] for one in letters] == [3, 4]
        assert letters[0]["reason"].startswith("looks like Avro")
        assert letters[0]["value"] == wire.decode()
        assert "looks like seconds" in letters[1]["reason"]
        assert shown(dead_letters, one, name) == letters
        assert shown(dead_letters, one, one.names.sources) == []


def test_instant_in_another_unit_is_refused_with_the_unit(shared: Broker, name: str) -> None:
    shared.create(stream_sql(name))
    handle = shared.register(f"SELECT id FROM {name}")
    shared.send(name, [{"id": i, "ts": BASE_MS + i} for i in range(3)])
    shared.await_rows(handle, 2)
    path = f"/queries/{handle}/snapshot"
    for at, unit in ((BASE_MS // 1_000, "seconds"), (BASE_MS * 1_000, "microseconds")):
        reply = shared.http.get(path, params={"at": at})
        assert (reply.status_code, reply.json()["code"]) == (400, "instant_out_of_range")
        assert f"{at} looks like {unit}" in reply.json()["hint"]
    assert shared.http.get(path, params={"at": BASE_MS}).json()["rows"] == [[0]]


@pytest.mark.parametrize("partitions", [1, 3])
def test_topics_are_made_described_and_read_by_commands(shared: Broker, name: str, partitions: int) -> None:
    for existed in (False, True):
        (facts,) = shown(topic, shared, "create", name, "--partitions", str(partitions))
        assert facts == {"topic": name, "existed": existed, "partitions": partitions}
    (listed,) = shown(topic, shared, "list")
    assert {"topic": name, "partitions": partitions} in listed
    for number in range(partitions):
        shared.send(name, [{"at": at, "in": number} for at in range(40)], partition=number)
    (described,) = shown(topic, shared, "describe", name)
    assert described["records"] == 40 * partitions
    assert described["partitions"][0] == {"partition": 0, "begin": 0, "end": 40}
    found = shown(records, shared, name, "--limit", "7")
    assert len(found) == 7
    assert [one["timestamp_ms"] for one in found] == sorted(one["timestamp_ms"] for one in found)
    assert found[-1]["value"] == {"at": 39, "in": partitions - 1}


def test_names_of_sources_and_of_results_show_their_topics(shared: Broker, name: str) -> None:
    shared.create(
        f"CREATE STREAM {name} (id BIGINT, ts TIMESTAMP) WITH (timestamp = 'ts', topic = '{name}-in')"
    )
    shared.http.post("/statements", json={"sql": f"CREATE VIEW {name}_v AS SELECT id FROM {name}"})
    handle = shared.register(f"SELECT id FROM {name} EMIT CHANGES INTO {name}_out")
    shared.send(f"{name}-in", [{"id": 7, "ts": BASE_MS}, b"?", {"id": 8, "ts": BASE_MS + 1}])
    shared.await_rows(handle, 1)
    assert next(one["value"] for one in shown(records, shared, name)) == {"id": 7, "ts": BASE_MS}
    assert [one["value"] for one in shown(dead_letters, shared, name)] == ["?"]
    written = shared.names.results_into(f"{name}_out")
    wait_until(lambda: shown(records, shared, written))
    assert shown(records, shared, f"{name}_out") == shown(records, shared, written)
    assert refused(records, shared, f"{name}_v").hint == (
        f"{name}_v is a view, which reads none: SELECT shows its rows"
    )
    for command in (records, late, dead_letters):
        error = refused(command, shared, f"{name}-nowhere")
        assert error.topic == f"{name}-nowhere"
        assert error.hint == "`tureen topic list` lists topics, `tureen sources` those of sources"
    away = refused(records, shared, name, TUREEN_URL="http://127.0.0.1:9")
    assert away.hint is not None
    assert "whether a source is named so is not known" in away.hint


def test_rare_records_are_found_further_back(shared: Broker, name: str) -> None:
    shared.admin.ensure_source_topic(name)
    shared.send(name, [{"n": n} for n in range(2_000)])
    facts = facts_of(shared.admin, name)
    settings = {"bootstrap.servers": shared.bootstrap}
    found = newest(settings, name, facts, 3, wanted=lambda one: one.offset() % 900 == 0)
    assert [one.offset() for one in found] == [0, 900, 1_800]
    bounded = newest(settings, name, facts, 3, wanted=lambda one: one.offset() % 900 == 0, scanned_max=20)
    assert bounded == []
