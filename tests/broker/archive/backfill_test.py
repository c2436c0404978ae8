"""Queries that reach back before what a stream keeps: a real broker, and an archive on disk beside it."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

import tureen
from broker.commands.status import status
from engine.language.query import CreateStream
from engine.language.statements import parse
from engine.model.limits import Limits
from engine.model.source import Stream
from tests.archived import Archived, Row
from tests.broker.running import Broker, broker
from tests.kafka import wait_until
from tureen.commands.snapshot import snapshot
from tureen.commands.sources import sources
from tureen.commands.sql import sql
from tureen.errors import InstantOutOfRange

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
NOON_MS = 1_700_049_600_000
"""2023-11-15 12:00 UTC."""


def stream_of(sql: str) -> Stream:
    statement = parse(sql, {}, Limits())
    assert isinstance(statement, CreateStream)
    return statement.stream


def sql_of(name: str, partitions: int = 1) -> str:
    return (
        f"CREATE STREAM {name} (id BIGINT, v DOUBLE, ts TIMESTAMP) WITH (timestamp = 'ts', "
        f"retain = '1 hour', idle_timeout = '1 hour', partitions = {partitions})"
    )


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("archive")


@pytest.fixture(scope="module")
def archiving(kafka: str, tmp_path_factory: pytest.TempPathFactory, root: Path) -> Iterator[Broker]:
    """One broker of all tests here that do not stop it; steps of few rows, so that there are several."""
    directory = tmp_path_factory.mktemp("archiving")
    settings = {"ARCHIVE": root, "ARCHIVE_CHECK_MS": 50, "BACKFILL_CHUNK_ROWS": 100, "RETRY_MS": 50}
    with broker(kafka, directory / "data", f"t{uuid.uuid4().hex[:12]}", **settings) as one:
        yield one


def rows_of(count: int, step_ms: int, *, end_ms: int = NOON_MS, partitions: int = 1) -> list[Row]:
    """Rows every so many ms, the last at the end, dealt out to the partitions in turn."""
    found: list[Row] = []
    for i in range(count):
        at_ms = end_ms - (count - 1 - i) * step_ms
        found.append((i % partitions, i // partitions, at_ms, {"id": i, "v": float(i), "ts": at_ms}))
    return found


def send(one: Broker, topic: str, rows: Iterable[Row]) -> None:
    by_partition: dict[int, list[Any]] = {}
    for partition, _, _, columns in rows:
        by_partition.setdefault(partition, []).append(columns)
    for partition, values in by_partition.items():
        one.send(topic, values, partition)


def await_complete(one: Broker, handle: str, what: Callable[[dict[str, Any]], bool] | None = None) -> Any:
    found: dict[str, Any] = {}

    def complete() -> bool:
        found.update(one.snapshot(handle))
        return what(found) if what else found["complete_from_ms"] is None

    wait_until(complete, what="the answer is complete")
    return found


def test_a_window_of_a_week_is_answered_on_a_stream_that_keeps_an_hour(
    archiving: Broker, root: Path, name: str
) -> None:
    stream = stream_of(sql_of(name, 2))
    rows = rows_of(1_000, 7 * DAY_MS // 1_000, partitions=2)
    archiving.create(sql_of(name, 2))
    send(archiving, name, rows)
    short = archiving.register(f"SELECT id FROM {name} [RANGE 1 HOUR]")
    archiving.await_read(name)
    wait_until(lambda: archiving.source(name)["rows"] < 10, what="retention")
    handle = archiving.register(f"SELECT id FROM {name} [RANGE 7 DAYS]")
    before = archiving.snapshot(handle)
    assert not before["complete"]
    assert before["complete_from_ms"] == archiving.source(name)["retained_from_ms"]
    assert [row[0] for row in before["rows"]] == [row[0] for row in archiving.rows(short)]

    archive = Archived(root, stream)
    archive.append(rows[:900])
    archive.append(rows[900:])
    after = await_complete(archiving, handle)
    now_ms = after["now_ms"]
    assert [row[0] for row in after["rows"]] == [
        row[3]["id"] for row in rows if now_ms - 7 * DAY_MS <= row[2] <= now_ms
    ]
    facts = archiving.source(name)["archive"]
    assert facts["backfill"]["state"] == "complete"
    assert facts["backfill"]["steps"] > 3
    assert facts["until_ms"] == rows[-1][2]


def test_what_kafka_had_deleted_before_the_stream_came_is_missed_and_comes_from_the_archive(
    archiving: Broker, root: Path, name: str
) -> None:
    """The first records of one partition were deleted, and all records of another."""
    rows = rows_of(90, 60_000, partitions=3)
    archiving.admin.ensure_source_topic(name, 3)
    send(archiving, name, rows)
    client = AdminClient({"bootstrap.servers": archiving.bootstrap})
    gone = [TopicPartition(name, 0, 25), TopicPartition(name, 1, 30)]
    for future in client.delete_records(gone).values():
        future.result()
    there = [row for row in rows if row[0] == 2 or (row[0] == 0 and row[1] >= 25)]
    archiving.create(sql_of(name, 3))
    handle = archiving.register(f"SELECT id FROM {name} [RANGE 1 HOUR]")
    everything = archiving.register(f"SELECT id FROM {name}")
    now_ms = NOON_MS - 120_001  # behind the last row of partition 0
    hour = [row[3]["id"] for row in there if now_ms - HOUR_MS <= row[2] <= now_ms]
    wait_until(lambda: len(archiving.rows(everything)) == len(hour), what="the rows that are left")
    before = archiving.snapshot(handle)
    assert (before["now_ms"], sorted(row[0] for row in before["rows"])) == (now_ms, hour)
    assert not before["complete"]
    refused = archiving.http.get(f"/queries/{everything}/snapshot", params={"at": now_ms})
    assert refused.json()["code"] == "instant_out_of_range"
    Archived(root, stream_of(sql_of(name, 3))).append(rows)
    whole = archiving.snapshot(everything, archive="true")
    assert sorted(row[0] for row in whole["rows"]) == [row[3]["id"] for row in rows if row[2] <= now_ms]
    assert (whole["complete_from_ms"], whole["archive"]["earliest_ms"]) == (None, None)
    assert whole["catching_up"][0]["waiting"] > 0  # the last rows are above NOW


def test_the_answer_waits_for_an_archive_that_lags_behind(archiving: Broker, root: Path, name: str) -> None:
    rows = rows_of(400, DAY_MS // 400, partitions=2)
    archiving.create(sql_of(name, 2))
    send(archiving, name, rows)
    archiving.await_rows(archiving.register(f"SELECT id FROM {name} [RANGE 1 HOUR]"), 10)
    archive = Archived(root, stream_of(sql_of(name, 2)))
    archive.append([row for row in rows if row[0] == 0] + [row for row in rows[:300] if row[0] == 1])
    handle = archiving.register(f"SELECT COUNT(*) AS n FROM {name} [RANGE 1 DAY]")

    def behind() -> bool:
        backfill = archiving.source(name)["archive"]["backfill"]
        return bool(backfill and backfill["state"] == "archive_behind" and backfill["behind"] == [1])

    wait_until(behind, what="the archive is known to be behind")
    refused = archiving.http.get(f"/queries/{handle}/snapshot", params={"archive": True})
    assert (refused.status_code, refused.json()["code"]) == (503, "history_unavailable")
    archive.append([row for row in rows[300:] if row[0] == 1])
    after = await_complete(archiving, handle)
    assert after["rows"] == [[sum(after["now_ms"] - DAY_MS <= row[2] <= after["now_ms"] for row in rows)]]


def test_changes_tell_the_history_and_add_up(archiving: Broker, root: Path, name: str) -> None:
    rows = rows_of(300, DAY_MS // 300)
    archiving.create(sql_of(name))
    send(archiving, name, rows)
    archiving.await_rows(archiving.register(f"SELECT id FROM {name} [RANGE 1 HOUR]"), 10)
    handle = archiving.register(
        f"SELECT id, v FROM {name} [RANGE 1 DAY] EMIT CHANGES INTO {name} WITH (format = 'diff')"
    )
    Archived(root, stream_of(sql_of(name))).append(rows)
    after = await_complete(archiving, handle)

    def told() -> bool:
        total: dict[int, int] = {}
        for record in archiving.records(archiving.names.results_into(name)):
            change = json.loads(record.value())
            total[change["row"]["id"]] = total.get(change["row"]["id"], 0) + change["weight"]
        return {one for one, weight in total.items() if weight == 1} == {row[0] for row in after["rows"]}

    wait_until(told, what="the changes add up to the answer")


def test_an_earlier_instant_is_answered_from_the_archive(archiving: Broker, root: Path, name: str) -> None:
    rows = rows_of(1_000, 7 * DAY_MS // 1_000, partitions=2)
    archiving.create(sql_of(name, 2))
    send(archiving, name, rows)
    handle = archiving.register(f"SELECT id FROM {name} [RANGE 6 HOURS]")
    archiving.await_rows(handle, 30)
    at_ms = NOON_MS - 3 * DAY_MS
    refused = archiving.http.get(f"/queries/{handle}/snapshot", params={"at": at_ms})
    assert (refused.status_code, refused.json()["code"]) == (400, "instant_out_of_range")

    archive = Archived(root, stream_of(sql_of(name, 2)))
    archive.append(rows)
    wait_until(lambda: archiving.snapshot(handle, at=at_ms)["complete"], what="all is read")
    found = archiving.snapshot(handle, at=at_ms)
    assert [row[0] for row in found["rows"]] == [
        row[3]["id"] for row in rows if at_ms - 6 * HOUR_MS <= row[2] <= at_ms
    ]
    assert (found["complete"], found["now_ms"], found["change_position"]) == (True, at_ms, None)
    assert found["archive"] == {"rows": len(found["rows"]), "earliest_ms": None}
    assert (
        archiving.http.get(
            f"/queries/{handle}/snapshot", params={"at": at_ms, "archive": "false"}
        ).status_code
        == 400
    )
    assert archiving.snapshot(handle)["archive"] is None

    archive.retain(at_ms, [row for row in rows if row[2] >= at_ms])
    refused = archiving.http.get(f"/queries/{handle}/snapshot", params={"at": at_ms})
    assert refused.json()["code"] == "instant_out_of_range"
    with tureen.connect(archiving.url) as client:
        with pytest.raises(InstantOutOfRange):
            client.snapshot(handle, at=at_ms + 6 * HOUR_MS - 1)
        answer = client.snapshot(handle, at=at_ms + 6 * HOUR_MS)
        assert (answer.archive_rows, answer.earliest_ms) == (len(answer), at_ms)


def test_an_unbounded_answer_is_completed_when_asked_to(archiving: Broker, root: Path, name: str) -> None:
    rows = rows_of(500, DAY_MS // 500)
    archiving.create(sql_of(name))
    send(archiving, name, rows)
    handle = archiving.register(f"SELECT COUNT(*) AS n, MIN(id) AS least FROM {name}")
    archiving.await_read(name)
    wait_until(lambda: not archiving.snapshot(handle)["complete"], what="retention")
    Archived(root, stream_of(sql_of(name))).append(rows)
    live = archiving.snapshot(handle)
    assert (live["complete"], live["archive"]) == (False, None)
    whole = archiving.snapshot(handle, archive="true")
    assert (whole["complete"], whole["rows"]) == (True, [[499, 0]])
    assert whole["archive"]["rows"] + live["rows"][0][0] == 499
    with tureen.connect(archiving.url) as client:
        answer = client.snapshot(handle, archive=True)
        assert answer.complete
        assert answer.rows() == [{"n": 499, "least": 0}]
        assert answer.archive_rows == whole["archive"]["rows"]
    told = CliRunner().invoke(snapshot, [handle, "--archive", "--json", "--url", archiving.url])
    assert json.loads(told.stdout)["rows"] == [[499, 0]]
    counting = f"SELECT COUNT(*) AS n FROM {name}"
    once = CliRunner().invoke(sql, [counting, "--once", "--archive", "--json", "--url", archiving.url])
    assert json.loads(once.stdout)["rows"] == [[499]]
    assert json.loads(once.stdout)["archive"]["rows"] == whole["archive"]["rows"]
    piped = CliRunner().invoke(sql, [counting, "--archive", "--url", archiving.url])
    assert piped.stdout.splitlines() == ["n", "499"]
    kafka = {"bootstrap.servers": archiving.bootstrap}
    with tureen.connect(archiving.url, kafka, archiving.names.service_id) as client:
        assert client.snapshot(handle, archive=True).rows() == [{"n": 499, "least": 0}]


def test_status_and_metrics_tell_of_the_archive(archiving: Broker, root: Path, name: str) -> None:
    archiving.create(sql_of(name))
    rows = rows_of(10, HOUR_MS // 10)
    Archived(root, stream_of(sql_of(name))).append(rows)
    wait_until(lambda: archiving.source(name)["archive"]["archived"], what="the table is seen")
    assert archiving.http.get("/status").json()["archive"] == {
        "root": str(root),
        "reachable": True,
        "error": None,
    }
    metrics = archiving.http.get("/metrics").text
    assert "tureen_archive_reachable 1.0" in metrics
    assert "tureen_backfills 0.0" in metrics
    for command in (status, sources):
        told = CliRunner().invoke(command, ["--url", archiving.url], env={"COLUMNS": "160"})
        assert "the beginning" in told.output, told.output


def given(root: Path) -> dict[str, object]:
    return {"ARCHIVE": root, "ARCHIVE_CHECK_MS": 50, "BACKFILL_CHUNK_ROWS": 20, "RETRY_MS": 50}


def under_way(one: Broker, root: Path, name: str) -> tuple[str, list[Row]]:
    """A query over a week, some of which was brought back."""
    rows = rows_of(2_000, 7 * DAY_MS // 2_000, partitions=2)
    archive = Archived(root, stream_of(sql_of(name, 2)))
    one.create(sql_of(name, 2))
    send(one, name, rows)
    one.await_rows(one.register(f"SELECT id FROM {name} [RANGE 1 HOUR]"), 8)
    handle = one.register(f"SELECT id FROM {name} [RANGE 7 DAYS]")
    archive.append(rows)
    wait_until(
        lambda: (one.source(name)["archive"]["backfill"] or {"steps": 0})["steps"] >= 2,
        what="a backfill under way",
    )
    return handle, rows


def test_a_broker_that_is_killed_in_mid_backfill_goes_on(
    kafka: str, tmp_path: Path, service_id: str, name: str
) -> None:
    root = tmp_path / "archive"
    one = Broker(kafka, tmp_path / "data", service_id, **given(root)).start()
    handle, rows = under_way(one, root, name)
    one.kill()
    one.start()
    after = await_complete(one, handle)
    expected = [row[3]["id"] for row in rows if after["now_ms"] - 7 * DAY_MS <= row[2] <= after["now_ms"]]
    assert [row[0] for row in after["rows"]] == expected


@pytest.mark.slow
def test_the_journal_alone_brings_history_back_or_goes_on_without(
    kafka: str, tmp_path: Path, service_id: str, name: str
) -> None:
    """Restarts processes; archive_seam_test.py tests this without processes."""
    root = tmp_path / "archive"
    one = Broker(kafka, tmp_path / "first", service_id, **given(root)).start()
    handle, _ = under_way(one, root, name)
    after = await_complete(one, handle)
    one.kill()
    one.data_dir = tmp_path / "second"
    one.start()
    again = one.snapshot(handle)
    assert (again["rows"], again["complete"]) == (after["rows"], True)

    # Where the archive has moved the broker starts all the same, says so, and gets the history later.
    one.kill()
    one.data_dir = tmp_path / "third"
    root.rename(tmp_path / "moved")
    one.start()
    short = one.snapshot(handle)
    assert not short["complete"]
    assert one.source(name)["archive"]["lost_history"] is not None
    assert [told["stream"] for told in one.readiness()[1]["degraded"]] == [name]
    (tmp_path / "moved").rename(root)
    assert await_complete(one, handle)["rows"] == after["rows"]
    wait_until(lambda: not one.readiness()[1]["degraded"], what="nothing is degraded")


def test_a_feed_that_resumes_from_before_the_history_is_told_to_fetch_anew(
    archiving: Broker, root: Path, name: str
) -> None:
    rows = rows_of(300, DAY_MS // 300)
    archiving.create(sql_of(name))
    send(archiving, name, rows)
    archiving.await_rows(archiving.register(f"SELECT id FROM {name} [RANGE 1 HOUR]"), 10)
    handle = archiving.register(f"SELECT id FROM {name} [RANGE 1 DAY]")
    before = archiving.snapshot(handle)["change_position"]
    Archived(root, stream_of(sql_of(name))).append(rows)
    after = await_complete(archiving, handle)["change_position"]
    path = f"/queries/{handle}/changes"
    refused = archiving.http.get(path, params={"since": before, "live": "false"})
    assert (refused.status_code, refused.json()["code"]) == (410, "must_refetch")
    assert archiving.http.get(path, params={"since": after, "live": "false"}).status_code == 200


def test_streams_that_are_joined_get_their_history_each(archiving: Broker, root: Path, name: str) -> None:
    """On the shard of the join, where at least one of them is a replica."""
    names = [f"{name}{letter}" for letter in "ab"]
    rows = rows_of(300, DAY_MS // 300)
    for one in names:
        archiving.create(sql_of(one))
        send(archiving, one, rows)
    on = f"{name}a.id = {name}b.id"
    near = archiving.register(
        f"SELECT {name}a.id FROM {name}a [RANGE 1 HOUR], {name}b [RANGE 1 HOUR] WHERE {on}"
    )
    archiving.await_rows(near, 10)
    far = archiving.register(
        f"SELECT {name}a.id FROM {name}a [RANGE 1 DAY], {name}b [RANGE 1 DAY] WHERE {on}"
    )
    for one in names:
        Archived(root, stream_of(sql_of(one))).append(rows)
    after = await_complete(archiving, far)
    expected = [row[3]["id"] for row in rows if after["now_ms"] - DAY_MS <= row[2] <= after["now_ms"]]
    assert sorted(row[0] for row in after["rows"]) == expected
