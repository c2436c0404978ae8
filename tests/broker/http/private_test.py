"""What a broker keeps from the other users of its machine: its files, its socket, its secret."""

from __future__ import annotations

import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import httpx
import psutil
import pytest

from broker.commands.doctor import _disk
from broker.commands.serve import _socket_path
from broker.runtime.service_note import NAME
from tests.broker.conftest import stream_sql
from tests.broker.running import READY_S, Broker
from tests.kafka import wait_until
from tureen.errors import DirectoryNotPrivate, SettingsError

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


def test_a_socket_elsewhere_is_in_a_directory_of_this_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the data directory's path is too long for a socket's."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    data = Path("/", "long" * 40)
    made = _socket_path(data).parent
    assert made.parent == tmp_path
    assert stat.S_IMODE(made.stat().st_mode) == 0o700
    made.chmod(0o755)
    with pytest.raises(DirectoryNotPrivate):
        _socket_path(data)
    made.rmdir()
    made.symlink_to(tmp_path)
    with pytest.raises(SettingsError, match="symbolic link"):
        _socket_path(data)


def test_doctor_looks_at_the_directory(tmp_path: Path) -> None:
    assert _disk(tmp_path, "here").state == "ok"
    (tmp_path / NAME).write_text('{"service_id": "there", "cluster_id": "", "topics": {}}')
    assert _disk(tmp_path, "here").state == "ok", "no state is in it"
    (tmp_path / "shards" / "0").mkdir(parents=True)
    found = _disk(tmp_path, "here")
    assert (found.state, found.do) == (
        "fail",
        "choose another --data-dir, or start it with TUREEN_SERVICE_ID=there",
    )
    tmp_path.chmod(0o755)
    found = _disk(tmp_path, "there")
    assert (found.state, found.do) == ("fail", f"chmod 700 {tmp_path}")


def test_connections_leave_files_to_the_stores() -> None:
    code = (
        "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (600, 1_500))\n"
        "from broker.runtime.open_files import allow; print(allow(12_000), allow(400))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "750 400"
    assert "open_files_limited" in done.stdout + done.stderr
