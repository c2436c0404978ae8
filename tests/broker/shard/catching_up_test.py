"""A source that has not yet what its topic held when its reading began: answers over it say so, and one that
says it is complete has all of it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import uuid
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.broker.running import Broker, broker, unique_name
from tests.kafka import wait_until
from tureen.client import connect

ROWS = 30_000
PARTITIONS = 3
RUNS = 8
BASE_MS = 1_700_000_000_000
COLUMNS = "id BIGINT, ts TIMESTAMP"
SOON = "timestamp = 'ts', idle_timeout = '1 second'"
NEVER = "timestamp = 'ts', idle_timeout = '1 hour'"


def fill(one: Broker, *, arrival: bool = False, table: bool = False) -> str:
    """A topic with ROWS records."""
    name = unique_name()
    one.admin.ensure_source_topic(name, PARTITIONS, arrival_time=arrival, table=table)
    ids = sorted(range(ROWS), key=lambda number: number % PARTITIONS)
    one.producer.send_many(
        name,
        [json.dumps({"id": number, "ts": BASE_MS + number}).encode() for number in ids],
        [str(number).encode() for number in ids] if table else None,
        [number % PARTITIONS for number in ids],
    )
    one.producer.flush()
    return name


@pytest.fixture(scope="module")
def topic(shared: Broker) -> str:
    return fill(shared)


def awaited(one: Broker, handle: str) -> list[dict[str, Any]]:
    """All answers until one is complete; what each says of itself is true."""
    found: list[dict[str, Any]] = []

    def is_complete() -> bool:
        found.append(one.snapshot(handle))
        return bool(found[-1]["complete"])

    wait_until(is_complete, what="the answer is complete")
    for answer in found:
        assert answer["complete"] == (not answer["catching_up"])
        for behind in answer["catching_up"]:
            assert behind["of"] is None or 0 <= behind["read"] <= behind["of"]
            assert (behind["of"], behind["read"]) != (ROWS, ROWS) or behind["waiting"]
    return found


@pytest.mark.parametrize(
    ("options", "kind"),
    [(f", {SOON}", "stream"), ("", "stream"), ("", "table"), (f", {SOON}", "table")],
    ids=["event time", "arrival time", "table", "table in event time"],
)
def test_an_answer_that_says_it_is_complete_has_all(shared: Broker, options: str, kind: str) -> None:
    topic = fill(shared, arrival=not options, table=kind == "table")
    columns = COLUMNS if kind == "stream" else "id BIGINT PRIMARY KEY, ts TIMESTAMP"
    names, handles = [unique_name() for _ in range(RUNS)], []
    for name in names:
        shared.create(f"CREATE {kind} {name} ({columns}) WITH (topic = '{topic}'{options})")
        handles.append(shared.register(f"SELECT COUNT(*) AS n FROM {name}"))
        first = shared.snapshot(handles[-1])
        assert first["rows"] == [[ROWS]] or not first["complete"]
    for name, handle in zip(names, handles, strict=True):
        assert awaited(shared, handle)[-1]["rows"] == [[ROWS]]
        assert shared.source(name)["catching_up"] is None


def test_views_and_guests_of_other_shards(shared: Broker, topic: str) -> None:
    handles = []
    for _ in range(RUNS // 2):
        one, other, view = unique_name(), unique_name(), unique_name()
        for name in (one, other):
            shared.create(f"CREATE STREAM {name} ({COLUMNS}) WITH (topic = '{topic}', {SOON})")
        shared.create(f"CREATE VIEW {view} AS SELECT id FROM {one} WHERE id < 1000")
        joined = f"SELECT COUNT(*) AS n FROM {view} JOIN {other} [UNBOUNDED] ON {view}.id = {other}.id"
        handles.append(shared.register(joined))
    for handle in handles:
        assert awaited(shared, handle)[-1]["rows"] == [[1000]]


def test_what_waits_for_now_is_told_everywhere(shared: Broker, topic: str, name: str) -> None:
    """The last rows stay above NOW, so that it does not matter how fast the rest is read."""
    shared.create(f"CREATE STREAM {name} ({COLUMNS}) WITH (topic = '{topic}', {NEVER})")
    text = f"SELECT COUNT(*) AS n FROM {name}"
    handle = shared.register(text)
    told = {"source": name, "read": ROWS, "of": ROWS, "lost": False}

    def behind() -> dict[str, Any]:
        found: dict[str, Any] = shared.snapshot(handle)["catching_up"][0]
        return found

    wait_until(lambda: behind()["read"] == ROWS)
    told["waiting"] = behind()["waiting"]
    assert 0 < told["waiting"] <= PARTITIONS
    answer = shared.snapshot(handle)
    assert (answer["complete"], answer["complete_from_ms"]) == (False, None)
    assert answer["rows"] == [[ROWS - told["waiting"]]]
    for form in ("json", "ndjson", "csv", "arrow"):
        reply = shared.http.get(f"/queries/{handle}/snapshot", params={"format": form})
        assert reply.headers["Tureen-Complete"] == "false"
        assert json.loads(reply.headers["Tureen-Catching-Up"]) == [told]
    metadata = pa.ipc.open_stream(reply.content).schema.metadata
    assert metadata[b"tureen.complete"] == b"false"
    assert json.loads(metadata[b"tureen.catching_up"]) == [told]
    assert shared.source(name)["catching_up"] == told
    assert shared.http.get(f"/queries/{handle}").json()["catching_up"] == [told]
    plan = shared.http.get(f"/queries/{handle}/plan", params={"analyze": True}).json()
    assert plan["catching_up"] == [told]
    explained = shared.http.post("/statements", json={"sql": f"EXPLAIN ANALYZE {text}"}).json()
    assert explained["plan"]["catching_up"] == [told]
    feed = shared.http.get(f"/queries/{handle}/changes", params={"live": "poll"}).json()
    assert feed["catching_up"] == [told]
    assert "errors" not in feed
    with connect(shared.url) as client:
        (source,) = client.snapshot(handle).catching_up
        assert (source.source, source.read, source.is_read) == (name, ROWS, True)
        assert not client.ask(text).complete
        assert client.status(handle).catching_up == (source,)


def test_records_behind_the_old_end_show_that_time_goes_on(shared: Broker, name: str) -> None:
    topic = fill(shared)
    shared.create(f"CREATE STREAM {name} ({COLUMNS}) WITH (topic = '{topic}', {NEVER})")
    handle = shared.register(f"SELECT COUNT(*) AS n FROM {name}")
    assert not shared.snapshot(handle)["complete"]
    for partition in range(PARTITIONS):
        shared.send(topic, [{"id": ROWS, "ts": BASE_MS + 2 * ROWS}], partition)
    assert awaited(shared, handle)[-1]["rows"] == [[ROWS]]


def test_an_empty_topic_is_no_reason_to_wait(shared: Broker, name: str) -> None:
    shared.create(f"CREATE STREAM {name} ({COLUMNS}) WITH ({NEVER})")
    assert shared.source(name)["catching_up"] is None
    handle = shared.register(f"SELECT COUNT(*) AS n FROM {name}")
    assert shared.snapshot(handle)["complete"]


def test_a_source_that_comes_back_behind_the_end_of_its_topic(kafka: str, tmp_path: Path) -> None:
    with broker(kafka, tmp_path / "data", f"t{uuid.uuid4().hex[:12]}") as one:
        topic, name = fill(one), unique_name()
        one.create(f"CREATE STREAM {name} ({COLUMNS}) WITH (topic = '{topic}', {SOON})")
        handle = one.register(f"SELECT COUNT(*) AS n FROM {name}")
        assert awaited(one, handle)[-1]["rows"] == [[ROWS]]
        one.kill()
        for partition in range(PARTITIONS):
            one.send(topic, [{"id": ROWS + k, "ts": BASE_MS + 2 * ROWS + k} for k in range(9)], partition)
        one.start()
        answers = awaited(one, handle)
        assert answers[-1]["rows"] == [[ROWS + 9 * PARTITIONS]]
        one.stop()
        one.start()
        assert one.snapshot(handle)["complete"]


def asked(one: Broker, text: str, *options: str, by: str = "sql") -> tuple[str, str]:
    """What ``tureen sql``, or another command, writes to stdout and to stderr, both of them pipes."""
    command = [sys.executable, "-m", "tureen", by, text, "--url", one.url, *options]
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, env=os.environ | {"NO_COLOR": "1"}
    )
    return done.stdout, done.stderr


def test_the_command_waits_unless_it_is_told_not_to(shared: Broker, topic: str, name: str) -> None:
    waits = "timestamp = 'ts', idle_timeout = '10 seconds'"
    shared.create(f"CREATE STREAM {name} ({COLUMNS}) WITH (topic = '{topic}', {waits})")
    text = f"SELECT COUNT(*) AS n FROM {name}"
    rows, said = asked(shared, text, "--no-wait")
    assert int(rows.split()[1]) < ROWS
    assert f"incomplete: {name} is catching up" in said
    rows, said = asked(shared, text)
    assert rows.split() == ["n", str(ROWS)]
    assert f"{name} is catching up" in said
    assert "--no-wait" in said
    assert "incomplete" not in said


def test_watching_once_waits_as_well(shared: Broker, topic: str, name: str) -> None:
    waits = "timestamp = 'ts', idle_timeout = '10 seconds'"
    shared.create(f"CREATE STREAM {name} ({COLUMNS}) WITH (topic = '{topic}', {waits})")
    text = f"SELECT COUNT(*) AS n FROM {name}"
    first, _ = asked(shared, text, "--once", "--no-wait", by="watch")
    assert int(first.split()[-1]) < ROWS
    rows, said = asked(shared, text, "--once", by="watch")
    assert rows.split()[-1] == str(ROWS)
    assert f"{name} is catching up" in said


def test_values_that_could_not_be_computed_are_told_in_a_pipe(shared: Broker, topic: str, name: str) -> None:
    shared.create(f"CREATE STREAM {name} ({COLUMNS}) WITH (topic = '{topic}', {SOON})")
    _, said = asked(shared, f"SELECT 1 / (id - 7) AS r FROM {name} WHERE id < 10")
    assert "1 value could not be computed and is NULL" in said
    for form in ("csv", "json", "table"):
        _, said = asked(shared, f"SELECT id FROM {name} WHERE id / 0 > 1", "--format", form)
        assert f"{ROWS:,} rows are not in the answer: their condition could not be computed" in said
