"""What a broker has lost, or finds damaged: it answers as before, or says what is wrong; never otherwise."""

from __future__ import annotations

import shutil
import signal
from pathlib import Path

import pytest

from broker.base import settings
from broker.runtime.service_note import NAME
from broker.runtime.topic_admin import ensure_topics
from tests.broker.conftest import stream_sql
from tests.broker.running import SHARDS, Broker
from tests.kafka import Node, wait_until
from tureen.protocol import new_handle


@pytest.fixture
def own(kafka: str, tmp_path: Path, service_id: str) -> Broker:
    return Broker(kafka, tmp_path / "data", service_id).start()


def rows(first: int, count: int) -> list[dict[str, object]]:
    return [{"id": number, "v": 1.0, "ts": 1_000 + number} for number in range(first, first + count)]


def test_positions_of_a_lost_journal_are_to_be_fetched_anew(own: Broker, name: str) -> None:
    """Before the new journal has come as far as the old one, and after."""
    handle = new_handle()

    def begin(first: int) -> None:
        own.create(stream_sql(name))
        own.register(f"SELECT id FROM {name}", handle)
        for part in range(first, first + 60, 20):
            own.send(name, rows(part, 20))
            own.await_rows(handle, part + 19)

    begin(0)
    since = own.snapshot(handle)["change_position"]
    assert own.http.get(f"/queries/{handle}/changes", params={"since": since, "live": "false"}).is_success
    assert own.stop() == 0
    shutil.rmtree(own.data_dir)
    own.admin.delete_topics([topic for topic in own.admin.topics() if topic.startswith(own.names.service_id)])
    own.start()
    for first in (60, 120):
        begin(first)
        for live in ("true", "false", "poll"):
            reply = own.http.get(f"/queries/{handle}/changes", params={"since": since, "live": live})
            assert (reply.status_code, reply.json()["code"]) == (410, "must_refetch"), reply.text
    own.stop()


def refusal(broker: Broker) -> str:
    """What a start says that is refused."""
    before = len(broker.log.read_bytes()) if broker.log.exists() else 0
    assert broker.launch().wait(60) == 1
    broker.process = None
    return broker.log.read_bytes()[before:].decode()


def test_a_data_directory_is_of_one_service(own: Broker, name: str) -> None:
    """Another one would mix its registry with this one's."""
    own.create(stream_sql(name))
    handle = own.register(f"SELECT id FROM {name}")
    own.send(name, rows(0, 20))
    before = own.await_rows(handle, 19)
    assert own.stop() == 0
    other = Broker(own.bootstrap, own.data_dir, f"{own.names.service_id}o")
    told = refusal(other)
    assert f"belongs to the service {own.names.service_id}, not to {own.names.service_id}o" in told
    assert f"TUREEN_SERVICE_ID={own.names.service_id}" in told
    assert other.names.steps not in other.admin.topics()
    (own.data_dir / NAME).unlink()  # as a release before left it
    own.start()
    assert own.rows(handle) == before
    assert own.stop() == 0
    assert "belongs to the service" in refusal(other)


def test_state_of_topics_that_are_gone_is_refused(own: Broker, kafka_node: Node, name: str) -> None:
    """Whether Kafka is another, has lost them, or has others by their names."""
    own.create(stream_sql(name))
    assert own.stop() == 0
    told = refusal(Broker(kafka_node.bootstrap, own.data_dir, own.names.service_id))
    assert "was used with another Kafka" in told
    topics = [topic for topic in own.admin.topics() if topic.startswith(own.names.service_id)]
    own.admin.delete_topics(topics)
    for note in (NAME, None):
        told = refusal(own)
        assert "topics that Kafka does not have any more" in told
        if note:
            noted = (own.data_dir / NAME).read_bytes()
            (own.data_dir / NAME).unlink()
    (own.data_dir / NAME).write_bytes(noted)
    ensure_topics(own.admin, settings.load(service_id=own.names.service_id, shards=SHARDS))
    assert "were deleted and made anew" in (told := refusal(own))
    for state in ("control", "shards"):
        assert str(own.data_dir / state) in told
        shutil.move(own.data_dir / state, own.data_dir / f"{state} moved away")
    own.start()
    own.create(stream_sql(name))
    assert own.stop() == 0
    own.start()
    assert own.sources() == [name]
    assert own.stop() == 0


def test_a_start_after_the_supervisor_was_killed_waits_for_its_children(own: Broker, name: str) -> None:
    own.create(stream_sql(name))
    handle = own.register(f"SELECT id FROM {name}")
    own.send(name, rows(0, 20))
    before = own.await_rows(handle, 19)
    assert own.process is not None
    worker = own.children()["broker.worker"]
    worker.send_signal(signal.SIGSTOP)  # so that the new start finds it there
    own.process.kill()
    own.launch()
    wait_until(lambda: "waiting for its processes to end" in own.tail(), what="the start waits")
    worker.send_signal(signal.SIGCONT)
    wait_until(lambda: own.log.read_text().count("Ready in") == 2, what="the new one is ready")
    assert own.rows(handle) == before
    assert own.stop() == 0


@pytest.mark.slow
def test_a_damaged_store_fails_its_shard_and_says_what_to_move_away(own: Broker, name: str) -> None:
    """The other shards go on; without the store the answers are those from before."""
    streams = [f"{name}{number}" for number in range(6)]
    handles = {}
    for stream in streams:
        own.create(stream_sql(stream))
        handles[stream] = own.register(f"SELECT id FROM {stream}")
        own.send(stream, rows(0, 20))
    before = {stream: own.await_rows(handles[stream], 19) for stream in streams}
    home = {stream: own.source(stream)["shard"] for stream in streams}
    assert own.stop() == 0
    broken = home[streams[0]]
    directory = own.data_dir / "shards" / str(broken)
    tables = sorted(directory.glob("*.sst"))
    assert tables
    for path in tables:
        data = bytearray(path.read_bytes())
        data[len(data) // 2 :] = bytes(len(data) - len(data) // 2)
        path.write_bytes(data)
    own.launch()
    wait_until(lambda: own.readiness()[1].get("reasons", [{}])[0].get("code") == "store_corrupt")
    (reason,) = own.readiness()[1]["reasons"]
    assert reason["shards"] == [broken]
    assert str(directory) in reason["message"] + reason["hint"]
    for stream in streams:
        if home[stream] != broken:
            assert own.rows(handles[stream]) == before[stream]
            own.send(stream, rows(20, 1))
            own.await_rows(handles[stream], 20)
        else:
            reply = own.http.get(f"/queries/{handles[stream]}/snapshot")
            assert reply.status_code == 409, reply.text
            assert str(directory) in reply.json()["message"]
    assert own.stop() == 0
    directory.rename(own.data_dir / "moved away")
    own.start()
    for stream in streams:
        assert own.rows(handles[stream])[:19] == before[stream]
        own.send(stream, rows(21, 1))
        own.await_rows(handles[stream], 20)
    assert own.stop() == 0
