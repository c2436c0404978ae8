"""What a broker keeps from the other users of its machine: its files, its socket, its secret."""

from __future__ import annotations

import stat
from pathlib import Path

import httpx
import psutil
import pytest

from tests.broker.conftest import stream_sql
from tests.broker.running import READY_S, Broker
from tests.kafka import wait_until

CALLS = (
    ("GET", "/internal/ready"),
    ("GET", "/internal/hello"),
    ("POST", "/internal/commands"),
    ("POST", "/internal/snapshot"),
    ("POST", "/internal/reconcile"),
    ("POST", "/internal/reply-topic"),
    ("GET", "/docs"),
)


@pytest.mark.parametrize("secret", [None, "", "a guess"])
def test_the_socket_refuses_calls_without_the_secret(shared: Broker, secret: str | None) -> None:
    headers = {} if secret is None else {"Tureen-Internal-Secret": secret}
    transport = httpx.HTTPTransport(uds=str(shared.data_dir / "worker.sock"))
    with httpx.Client(transport=transport, base_url="http://worker", headers=headers) as client:
        for method, path in CALLS:
            reply = client.request(method, path, json={} if method == "POST" else None)
            assert (reply.status_code, reply.json()["code"]) == (401, "unauthorized"), path


def test_no_file_is_open_to_others(shared: Broker, name: str) -> None:
    shared.create(stream_sql(name))
    handle = shared.register(f"SELECT id FROM {name}")
    shared.send(name, [{"id": i, "v": i, "ts": 1_700_000_000_000 + i} for i in range(10)])
    shared.await_rows(handle, 9)

    def control_table() -> bool:
        return any(path.suffix == ".log" for path in (shared.data_dir / "control").rglob("*"))

    wait_until(control_table, what="the control process has a table")
    wide = []
    for path in [shared.data_dir, *shared.data_dir.rglob("*")]:
        try:
            mode = stat.S_IMODE(path.lstat().st_mode)
        except FileNotFoundError:  # compacted meanwhile
            continue
        if mode & 0o077:
            wide.append(f"{path} {mode:o}")
    assert wide == []
    assert stat.S_IMODE((shared.data_dir / "worker.sock").stat().st_mode) == 0o600


def test_the_secret_is_in_no_argument(shared: Broker) -> None:
    assert shared.process is not None
    processes = {"supervisor": psutil.Process(shared.process.pid)} | shared.children()
    secrets = {shared.children()[one].environ()["TUREEN_INTERNAL_SECRET"] for one in shared.children()}
    (secret,) = secrets
    assert len(secret) >= 32
    for name, process in processes.items():
        command = process.cmdline()
        assert not any(secret in argument for argument in command), name
        assert "-P" in command, name
    assert secret not in shared.log.read_text()


def test_a_start_on_an_open_directory_is_refused(kafka: str, tmp_path: Path, service_id: str) -> None:
    data = tmp_path / "data"
    data.mkdir()
    data.chmod(0o755)
    one = Broker(kafka, data, service_id)
    assert one.launch().wait(READY_S) == 1
    assert f"chmod 700 {data}" in one.log.read_text()
