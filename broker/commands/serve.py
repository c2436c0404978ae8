"""``tureen serve``: prepare, tell, and become the supervisor.

In order: settings and their relations, the lock on the data directory, Kafka (the embedded node unless
another is configured), topics, then the process image is replaced by :mod:`broker.supervisor`. Each failure
is one line with what to do, before anything was joined.
"""

from __future__ import annotations

import hashlib
import os
import socket
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console

from broker.runtime.ports import why_taken
from topics.private import UMASK, private_directory
from tureen.errors import MIB, SettingsError

if TYPE_CHECKING:
    from broker.base.settings import Settings


def _set(_: click.Context, option: click.Parameter, value: object) -> None:
    """Set what an option names for all processes of the broker; not given: what the environment says."""
    if value is not None:
        os.environ[f"TUREEN_{SETTINGS[option.name or '']}"] = str(value)


SETTINGS = {
    "data_dir": "DATA_DIR",
    "host": "HTTP_HOST",
    "port": "HTTP_PORT",
    "bootstrap": "KAFKA__BOOTSTRAP_SERVERS",
    "service_id": "SERVICE_ID",
    "archive": "ARCHIVE",
    "log_level": "LOG_LEVEL",
    "log_format": "LOG_FORMAT",
}
"""Which setting each option of ``tureen serve`` sets."""

_setting = partial(click.option, callback=_set, expose_value=False)


@click.command()
@_setting("--data-dir", type=click.Path(path_type=Path, file_okay=False), help="Stores, lock and socket.")
@_setting("--host", help="Address to listen on [127.0.0.1]; others need TLS and a token.")
@_setting("--port", type=int, help="Port of the HTTP API [8080]; 0: a free one.")
@_setting("--bootstrap", help="Kafka's bootstrap.servers; without it the embedded node is used.")
@_setting("--service-id", help="Prefix of the topics [tureen].")
@click.option("--kafka-port", type=int, help="Port of the embedded Kafka [19092].")
@_setting("--archive", help="Root of the archive, a directory or a URI, that history is read from.")
@_setting("--log-level", type=click.Choice(["debug", "info", "warning", "error"]))
@_setting("--log-format", type=click.Choice(["console", "json"]))
@click.option("--quiet", is_flag=True, help="Print nothing but errors and the log.")
def serve(kafka_port: int | None, quiet: bool) -> None:
    """Run the broker in the foreground; Ctrl-C or SIGTERM stops it."""
    console = Console(stderr=True, highlight=False, soft_wrap=True, quiet=quiet)
    arguments = prepare(console, kafka_port)
    sys.stdout.flush()
    sys.stderr.flush()
    # -P: a module of the directory that the user stands in is never taken for one of ours.
    os.execv(sys.executable, [sys.executable, "-P", "-m", "broker.supervisor", *arguments])


def prepare(console: Console, kafka_port: int | None) -> list[str]:
    """Everything before the supervisor; returns its arguments. Raises TureenError."""
    from broker.base import environment, settings
    from broker.runtime import lock, service_note

    os.umask(UMASK)
    environment.check(os.environ)
    loaded = settings.load()
    if loaded.function_modules:
        from broker.runtime.functions import load

        os.environ["TUREEN_FUNCTIONS_PATH"] = str(loaded.functions_path.absolute())
        # What cannot be loaded is refused here, and not by a worker that ends.
        load(loaded.function_modules, loaded.functions_path)
    if loaded.http_port == 0:
        os.environ["TUREEN_HTTP_PORT"] = str(_free_port(loaded.http_host))
        loaded = settings.load()
    data_dir = loaded.data_dir.absolute()
    os.environ["TUREEN_DATA_DIR"] = str(data_dir)
    held = lock.acquire(data_dir, {"url": loaded.url, "service_id": loaded.service_id}, console.print)
    os.set_inheritable(held, True)
    service_note.check_service(data_dir, loaded.service_id)
    _check_port(loaded.http_host, loaded.http_port)
    kafka = _kafka(console, loaded, kafka_port)
    from broker.runtime.topic_admin import ensure_topics, shards
    from topics.admin import Admin

    admin = Admin(kafka)
    os.environ["TUREEN_SHARDS"] = str(shards(admin, loaded))
    loaded = settings.load()
    service_note.check_kafka(data_dir, admin, loaded)
    ensure_topics(admin, loaded)
    service_note.write(data_dir, admin, loaded)
    socket_path = _socket_path(data_dir)
    os.environ["TUREEN_INTERNAL_SOCKET"] = str(socket_path)
    console.print(f"Data:  {data_dir}")
    _tell_memory(console, loaded)
    passed_over = environment.warning(os.environ)
    if passed_over is not None:
        console.print(f"Settings: {passed_over}", style="yellow", markup=False)
    _tell(console, loaded)
    return [
        str(socket_path),
        str(held),
        str(loaded.stop_timeout_ms / 1_000),
        loaded.url,
        str(data_dir),
        str(loaded.liveness_timeout_ms / 1_000),
    ]


def _kafka(console: Console, loaded: Settings, kafka_port: int | None) -> dict[str, str]:
    """Kafka's settings, with the embedded node started where no other is configured. Raises TureenError."""
    kafka = loaded.kafka()
    if "bootstrap.servers" in kafka:
        console.print(f"Kafka: {kafka['bootstrap.servers']}")
        return kafka
    from topics import embedded

    console.print("Kafka: the embedded node ...", end="")
    running = embedded.up(loaded.data_dir.absolute(), kafka_port, console=console)
    os.environ["TUREEN_KAFKA__BOOTSTRAP_SERVERS"] = running.bootstrap
    os.environ["TUREEN_EMBEDDED_KAFKA"] = "true"
    console.print(f" {'found' if running.found else 'started'} at {running.bootstrap}")
    if loaded.http_token is not None:
        console.print(
            "Note:  the embedded Kafka asks for no token: every user of this machine can read and write "
            "its topics; where that matters, use a Kafka with authentication",
            style="yellow",
        )
    return kafka | {"bootstrap.servers": running.bootstrap}


def _tell_memory(console: Console, loaded: Settings) -> None:
    """How much of the memory the worker has, and whether that leaves enough for others."""
    from broker.memory.budget import budget, budget_warning, reserve_warning

    embedded_kafka = "TUREEN_EMBEDDED_KAFKA" in os.environ
    allowed = budget(loaded.memory_budget_bytes, embedded_kafka=embedded_kafka)
    console.print(
        f"Memory: {allowed.budget_bytes // MIB:,} MiB for the worker, of {allowed.limit_bytes // MIB:,} MiB "
        f"of {allowed.source}"
    )
    for warning in (reserve_warning(allowed, embedded_kafka=embedded_kafka), budget_warning(allowed)):
        if warning is not None:
            console.print(f"Memory: {warning}", style="yellow")


def _tell(console: Console, loaded: Settings) -> None:
    """What a person wants to know of the broker that starts, and where it is found."""
    from broker.runtime.compiling import FIRST_USE, is_first_use

    if is_first_use():
        console.print(f"Note:  {FIRST_USE}", style="yellow")
    if loaded.archive:
        console.print(f"Archive: {loaded.archive_shown}")
    console.print(f"HTTP:  {loaded.url} (docs at {loaded.url}/docs)")
    if loaded.postgres_port:
        console.print(f"PostgreSQL: {loaded.http_host}:{loaded.postgres_port}")
    if loaded.flight_port:
        console.print(f"Flight SQL: {loaded.http_host}:{loaded.flight_port}")
    if loaded.page != "off":
        console.print(
            f"Page:  {loaded.url}/ ({'to look at' if loaded.page == 'read-only' else 'in a browser'})"
        )


def _socket_path(data_dir: Path) -> Path:
    """In the data directory; elsewhere, in a directory of this user, when that path is too long."""
    from broker.base.settings import SOCKET_PATH_BYTES_MAX

    path = data_dir / "worker.sock"
    if len(os.fsencode(path)) <= SOCKET_PATH_BYTES_MAX:
        return path
    name = f"tureen-{os.getuid()}-{hashlib.sha256(os.fsencode(data_dir)).hexdigest()[:16]}"
    directory = Path(tempfile.gettempdir()) / name
    if directory.is_symlink():
        raise SettingsError(f"{directory} is a symbolic link", hint="choose a shorter --data-dir")
    private_directory(directory)
    return directory / "worker.sock"


def _free_port(host: str) -> int:
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.bind((host, 0))
        return int(probe.getsockname()[1])


def _check_port(host: str, port: int) -> None:
    reason = why_taken(host, port)
    if reason is not None:
        raise SettingsError(
            f"{host}:{port} cannot be used: {reason}",
            hint="choose another port with --port or TUREEN_HTTP_PORT, or stop the program that uses it",
        )
