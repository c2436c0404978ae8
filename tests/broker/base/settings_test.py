"""Settings: defaults stand, contradictions and open doors are refused before anything starts."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from broker.base import settings
from broker.base.environment import REMOVED, check, warning
from broker.runtime import lock
from tureen.errors import SettingsError, StoreFull, StoreInUse

TLS = Path(__file__).parents[1] / "http" / "tls"


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TUREEN_DATA_DIR", "TUREEN_URL", "TUREEN_SERVICE_ID", "TUREEN_HTTP_PORT"):
        monkeypatch.delenv(name, raising=False)


def test_defaults_stand() -> None:
    loaded = settings.load()
    assert (loaded.url, loaded.service_id) == ("http://127.0.0.1:8080", "tureen")
    assert 2 <= loaded.shards <= 16
    assert loaded.transactional_id(3) == "tureen-shard-3"


def test_the_environment_is_read_and_options_win(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TUREEN_HTTP_PORT", "9000")
    monkeypatch.setenv("TUREEN_DATA_DIR", str(tmp_path))
    assert settings.load().http_port == 9000
    assert settings.load(http_port=9001, data_dir=None).url == "http://127.0.0.1:9001"
    assert settings.load().data_dir == tmp_path


def test_kafka_settings_pass_through(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    properties = tmp_path / "kafka.properties"
    properties.write_text("bootstrap.servers=a:1\nsecurity.protocol = SSL\n")
    monkeypatch.setenv("TUREEN_KAFKA__BOOTSTRAP_SERVERS", "b:2")
    found = settings.load(kafka_properties=properties).kafka()
    assert (found["bootstrap.servers"], found["security.protocol"]) == ("b:2", "SSL")


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"http_port": 70_000}, "HTTP_PORT"),
        ({"shards": 0}, "SHARDS"),
        ({"service_id": "a.b"}, "service_id"),
        ({"request_bytes_max": 2 << 20, "request_bulk_bytes_max": 1 << 20}, "request_bulk_bytes_max"),
        ({"flight_calls_max": 1_000, "flight_subscriptions_max": 25}, "flight_subscriptions_max"),
        ({"step_rows_max": 60_000, "transaction_rows_max": 10_000}, "transaction_rows_max"),
        ({"heartbeat_ms": 5_000, "transaction_timeout_ms": 10_000}, "transaction_timeout_ms"),
        ({"poll_ms": 500, "heartbeat_ms": 100}, "heartbeat_ms"),
        ({"linger_ms": 500}, "heartbeat_ms"),
        ({"allocation_end": 0.72}, "allocation_target"),
        ({"allocation_target": 0.78}, "allocation_begin"),
        ({"allocation_begin": 0.81}, "ALLOCATION_BEGIN"),
        ({"allocation_end": 0.0}, "ALLOCATION_END"),
        ({"allocation_begin": float("nan")}, "ALLOCATION_BEGIN"),
        ({"linger_ms": 2_000}, "LINGER_MS"),
        ({"preference_step_ms": 30, "linger_ms": 10, "heartbeat_ms": 25}, "preference_step_ms"),
        ({"preference_share": 0.6}, "PREFERENCE_SHARE"),
        ({"preference_work_per_s_max": -1}, "PREFERENCE_WORK_PER_S_MAX"),
        ({"http_host": "0.0.0.0"}, "can be reached from other machines"),
        ({"http_host": "0.0.0.0", "http_token": "x" * 32}, "can be reached from other machines"),
        ({"http_token": "short"}, "less than 16"),
        ({"http_read_token": "short"}, "http_read_token has less than 16"),
        ({"http_token": "é" * 16}, "http_token: a token has printable ASCII"),
        ({"http_read_token": "x" * 16 + "\n"}, "http_read_token: a token has printable ASCII"),
        ({"http_token": "x" * 16, "http_read_token": "x" * 16}, "choose another"),
        ({"archive_options": "{}"}, "set archive as well"),
        ({"archive": "/a", "archive_options": "secret"}, "a JSON object"),
        ({"archive": "/a", "archive_options": '{"key": 1}'}, "a JSON object"),
        ({"backfill_chunk_rows": 2_000, "backfill_rows_max": 1_000}, "backfill_rows_max"),
        ({"http_tls_key": Path("/etc/hostname")}, "come together"),
        ({"http_tls_certificate": Path("/not/there"), "http_tls_key": Path("/not/there")}, "not a file"),
    ],
)
def test_contradictions_are_refused(given: dict[str, object], told: str) -> None:
    with pytest.raises(SettingsError, match=told):
        settings.load(**given)


PASSWORD = b"what opens it"


def _key_files(folder: Path) -> dict[str, Path]:
    """Files that are no certificate with its key: of another one, encrypted, cut, empty, and in DER."""
    key = serialization.load_pem_private_key((TLS / "key.pem").read_bytes(), None)
    other = ec.generate_private_key(ec.SECP256R1())
    plain, form = serialization.NoEncryption(), serialization.PrivateFormat.PKCS8
    sealed = serialization.BestAvailableEncryption(PASSWORD)
    given = {
        "another": other.private_bytes(serialization.Encoding.PEM, form, plain),
        "encrypted": key.private_bytes(serialization.Encoding.PEM, form, sealed),
        "der": key.private_bytes(serialization.Encoding.DER, form, plain),
        "cut": (TLS / "key.pem").read_bytes()[:60],
        "empty": b"",
    }
    for name, data in given.items():
        (folder / name).write_bytes(data)
    return {name: folder / name for name in given} | {"swapped": TLS / "certificate.pem"}


@pytest.mark.parametrize("name", ["another", "encrypted", "der", "cut", "empty", "swapped"])
def test_a_key_that_tls_cannot_use_is_refused(tmp_path: Path, name: str) -> None:
    key = _key_files(tmp_path)[name]
    told = "is encrypted" if name == "encrypted" else "TLS cannot use"
    with pytest.raises(SettingsError, match=told) as refused:
        settings.load(http_tls_certificate=TLS / "certificate.pem", http_tls_key=key)
    assert str(key) in str(refused.value)
    with pytest.raises(SettingsError, match="TLS cannot use"):
        settings.load(http_tls_certificate=key if name != "swapped" else TLS / "key.pem", http_tls_key=key)


def test_a_certificate_with_its_key_passes() -> None:
    settings.load(http_tls_certificate=TLS / "certificate.pem", http_tls_key=TLS / "key.pem")


def test_loopback_addresses() -> None:
    assert all(settings.is_loopback(host) for host in ("127.0.0.1", "127.9.9.9", "::1", "localhost"))
    assert not any(settings.is_loopback(host) for host in ("0.0.0.0", "::", "10.0.0.1", "example.org"))


def test_a_directory_has_one_owner(tmp_path: Path) -> None:
    held = lock.acquire(tmp_path / "data", {"url": "http://here"}, print)
    assert (lock.owner(tmp_path / "data") or {})["url"] == "http://here"
    with pytest.raises(StoreInUse, match="http://here"):
        lock.acquire(tmp_path / "data", {}, print)
    os.close(held)
    assert lock.owner(tmp_path / "data") is None
    lock.acquire(tmp_path / "data", {}, print)


OWNER = """
import os, subprocess, sys
from pathlib import Path
from broker.runtime import lock
held = lock.acquire(Path(sys.argv[1]), {"url": "http://here"}, print)
child = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=0, pass_fds=[held])
lock.note(held, {"children": [child.pid]})
print(child.pid, flush=True)
os._exit(9)
"""


def test_children_of_a_dead_owner_are_waited_for_and_named(tmp_path: Path) -> None:
    command = [sys.executable, "-c", OWNER, str(tmp_path / "data")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        assert owner.stdin is not None
        child = owner.stdout.readline().strip()
        assert owner.wait() == 9
        said: list[str] = []
        with pytest.raises(StoreInUse, match=f"still own .*: {child}") as refused:
            lock.acquire(tmp_path / "data", {}, said.append, wait_s=0.2)
        assert str(owner.pid) not in str(refused.value)
        assert len(said) == 1
        assert "waiting" in said[0]
        owner.stdin.close()  # its child ends
        os.close(lock.acquire(tmp_path / "data", {}, said.append))


def test_a_directory_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreFull):
        lock.acquire(tmp_path / "file" / "data", {}, print)


def test_the_light_processes_stay_light() -> None:
    heavy = "numpy pyarrow numba engine.engine fastapi rocksdict.core"
    for module, also in (("broker.supervisor", " pydantic faust click rich"), ("broker.control.app", "")):
        code = f"import {module}, sys; print([m for m in '{heavy}{also}'.split() if m in sys.modules])"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert done.stdout.strip() == "[]", module


def test_credentials_of_the_archive_stay_hidden() -> None:
    loaded = settings.load(archive="s3://lake", archive_options='{"aws_secret_access_key": "hush"}')
    assert loaded.archive_storage == {"aws_secret_access_key": "hush"}
    assert "hush" not in repr(loaded)
    with pytest.raises(SettingsError) as refused:
        settings.load(archive="s3://lake", archive_options="hush")
    assert "hush" not in str(refused.value)
    assert settings.load(archive="s3://key:hush@lake/tureen").archive_shown == "s3://lake/tureen"


def test_settings_that_are_gone_are_named_and_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    assert warning({"TUREEN_HTTP_PORT": "1"}) is None
    monkeypatch.setenv("TUREEN_INITIAL_HASH_BUCKETS", "1024")
    check(os.environ)
    told = warning(os.environ)
    assert told is not None
    assert "TUREEN_INITIAL_HASH_BUCKETS" in told
    assert not hasattr(settings.load(), "initial_hash_buckets")
    assert not REMOVED.keys() & settings.Settings.model_fields.keys()


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("TUREEN_HTTP_TOKN", "did you mean TUREEN_HTTP_TOKEN?"),
        ("tureen_http_tokn", "did you mean TUREEN_HTTP_TOKEN?"),
        ("TUREEN_TOKEN", "no setting is like it. Correct it"),
        ("TUREEN_READ_TOKEN", "did you mean TUREEN_HTTP_READ_TOKEN?"),
        ("TUREEN_TLS_CERT", "no setting is like it. Correct it"),
        ("TUREEN_STEP_ROW_MAX", "did you mean TUREEN_STEP_ROWS_MAX?"),
        ("TUREEN_KAFKA_BOOTSTRAP_SERVERS", "did you mean TUREEN_KAFKA__BOOTSTRAP_SERVERS?"),
    ],
)
def test_a_misspelt_setting_is_refused(name: str, hint: str) -> None:
    with pytest.raises(SettingsError, match="is not a setting") as refused:
        check({name: "x"})
    assert hint in (refused.value.hint or "")


@pytest.mark.parametrize("name", ["SERVICE_ID", "HTTP_TOKEN", "HTTP_READ_TOKEN", "DATA_DIR"])
def test_what_is_empty_by_mistake_is_refused(name: str) -> None:
    with pytest.raises(SettingsError, match=f"TUREEN_{name} is empty"):
        check({f"TUREEN_{name}": ""})


def test_variables_of_others_pass() -> None:
    """Clients', Kafka's own, those that Kubernetes makes for a service of the name, and empty ones."""
    given = {
        "TUREEN_URL": "http://x",
        "TUREEN_KAFKA__SSL_KEY_PASSWORD": "x",
        "TUREEN_ARCHIVE": "",
        "PATH": "x",
    }
    check(given)
    assert warning(given) is None
    foreign = {"TUREEN_SERVICE_HOST": "x", "TUREEN_PORT_8080_TCP_ADDR": "x", "TUREEN_HOME": "x"}
    check(foreign)
    assert all(name in (warning(foreign) or "") for name in foreign)


def test_a_misspelt_token_keeps_the_broker_from_starting(tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("TUREEN_")}
    environment |= {"TUREEN_DATA_DIR": str(tmp_path / "data"), "TUREEN_HTTP_TOKN": "0123456789abcdef"}
    command = [sys.executable, "-P", "-m", "tureen", "serve"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert "did you mean TUREEN_HTTP_TOKEN?" in done.stderr
    assert not (tmp_path / "data").exists()
