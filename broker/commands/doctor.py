"""``tureen doctor``: is everything here that a broker needs; each line says what to do when it is not."""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from broker.runtime.ports import why_taken
from topics.private import private_directory
from tureen import command_options, console
from tureen.errors import DirectoryNotPrivate, StoreMismatch, TureenError

if TYPE_CHECKING:
    from broker.base.settings import Settings
    from topics.embedded import Running

DISK_WARN_BYTES = 2 << 30
DISK_FAIL_BYTES = 200 << 20
PACKAGES = (
    "tureen",
    "confluent-kafka",
    "faust-streaming",
    "rocksdict",
    "numpy",
    "numba",
    "pyarrow",
    "sqlglot",
)
MARKS = {"ok": "[green]ok  [/]", "warn": "[yellow]warn[/]", "fail": "[red]fail[/]"}


@dataclass(frozen=True, slots=True)
class Finding:
    """One line: what was looked at, how it is, what was seen, what to do."""

    what: str
    state: Literal["ok", "warn", "fail"]
    seen: str
    do: str | None = None


@click.command()
@click.option(
    "--data-dir", type=click.Path(path_type=Path, file_okay=False), help="The broker's data directory."
)
@command_options.json_option
def doctor(data_dir: Path | None, as_json: bool) -> None:
    """Check what a broker needs: Python, Java, jars, ports, disk, Kafka, topics.

    Changes nothing. Exit code 1 when something fails.
    """
    if data_dir is not None:
        os.environ["TUREEN_DATA_DIR"] = str(data_dir)
    findings = list(examine())
    if as_json:
        console.show_json([asdict(finding) for finding in findings])
    else:
        width = max(len(finding.what) for finding in findings)
        for finding in findings:
            console.out().print(f"{MARKS[finding.state]} {finding.what:<{width}}  ", end="")
            console.out().print(finding.seen, markup=False, soft_wrap=True)
            if finding.do:
                console.out().print(
                    f"     {'':<{width}}  -> {finding.do}", style="cyan", markup=False, soft_wrap=True
                )
    raise SystemExit(int(any(finding.state == "fail" for finding in findings)))


def examine() -> Iterator[Finding]:
    """Every check, in the order a start would need them."""
    yield _python()
    yield from _packages()
    try:
        from broker.base import environment, settings

        environment.check(os.environ)
        loaded = settings.load()
        kafka = loaded.kafka()
    except ModuleNotFoundError:
        return
    except TureenError as refused:
        yield Finding("settings", "fail", refused.message, refused.hint or "correct the environment")
        return
    yield Finding("settings", "ok", f"service {loaded.service_id}, {loaded.shards} shards, {loaded.url}")
    yield _disk(loaded.data_dir, loaded.service_id)
    if loaded.archive:
        yield _archive(loaded)
    running = _owner(loaded.data_dir)
    yield running[0]
    embedded: Running | None = None
    if "bootstrap.servers" in kafka:
        yield Finding("kafka settings", "ok", kafka["bootstrap.servers"])
    else:
        yield _checked("java", _java)
        yield _jars()
        from topics import embedded as node

        embedded = node.status(loaded.data_dir)
        if embedded is None:
            yield _port("kafka port", "127.0.0.1", node.PORT_DEFAULT, "tureen up --port ...")
        else:
            kafka["bootstrap.servers"] = embedded.bootstrap
    if not running[1]:
        do = "choose another: tureen serve --port ..., or TUREEN_HTTP_PORT"
        yield _port("http port", loaded.http_host, loaded.http_port, do)
    if "bootstrap.servers" in kafka:
        yield from _kafka(loaded, kafka)
    else:
        yield Finding(
            "kafka", "warn", "the embedded node is not running", "tureen up, or tureen serve starts it"
        )


def _python() -> Finding:
    version = ".".join(str(part) for part in sys.version_info[:3])
    if (3, 11) <= sys.version_info[:2] < (3, 14):
        return Finding("python", "ok", f"{version} at {sys.executable}")
    return Finding("python", "fail", version, "use Python 3.11, 3.12 or 3.13")


def _packages() -> Iterator[Finding]:
    versions, missing = [], []
    for name in PACKAGES:
        try:
            versions.append(f"{name} {importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            missing.append(name)
    if missing:
        way_on = "in Tureen's folder: pip install '.[server]'"
        yield Finding("packages", "fail", f"missing: {', '.join(missing)}", way_on)
    else:
        yield Finding("packages", "ok", ", ".join(versions))


def _disk(data_dir: Path, service_id: str) -> Finding:
    from broker.runtime import service_note

    place = data_dir
    while not place.exists():
        place = place.parent
    free = shutil.disk_usage(place).free
    seen = f"{data_dir}: {free / 1e9:.1f} GB free"
    if not os.access(place, os.W_OK):
        return Finding("data directory", "fail", f"{place} cannot be written", "choose another --data-dir")
    if data_dir.exists():
        try:
            private_directory(data_dir)
            service_note.check_service(data_dir, service_id)
        except (DirectoryNotPrivate, StoreMismatch) as refused:
            return Finding("data directory", "fail", refused.message, refused.hint)
    if free < DISK_FAIL_BYTES:
        return Finding("data directory", "fail", seen, "make room, or choose another --data-dir")
    if free < DISK_WARN_BYTES:
        return Finding("data directory", "warn", seen, "make room before the store is full")
    return Finding("data directory", "ok", seen)


def _archive(loaded: Settings) -> Finding:
    from storage.archive.reader import Archive

    try:
        Archive(loaded.archive, loaded.archive_storage).stream("tureen-doctor")
    except TureenError as refused:
        cure = refused.hint or "the broker runs without it, and reports it"
        return Finding("archive", "warn", refused.message, cure)
    return Finding("archive", "ok", f"{loaded.archive_shown} can be read")


def _owner(data_dir: Path) -> tuple[Finding, bool]:
    from broker.runtime import lock

    owner = lock.owner(data_dir)
    if owner is None:
        return Finding("broker", "ok", "none runs on this data directory"), False
    return Finding("broker", "ok", f"process {owner.get('pid')} serves {owner.get('url')}"), True


def _java() -> str:
    from topics.java import find_java

    java = find_java()
    return f"Java {java.version} at {java.path}"


def _jars() -> Finding:
    from topics.jars import KAFKA_VERSION, cache_directory

    cache = cache_directory()
    if any(cache.rglob("kafka_*.jar")) or any(cache.rglob("*.jar")):
        return Finding("kafka jars", "ok", f"Kafka {KAFKA_VERSION} in {cache}")
    return Finding("kafka jars", "warn", "not fetched yet", "the first tureen up fetches about 100 MB")


def _port(what: str, host: str, port: int, do: str) -> Finding:
    reason = why_taken(host, port)
    if reason is not None:
        return Finding(what, "fail", f"{host}:{port}: {reason}", f"stop the program that uses it, or {do}")
    return Finding(what, "ok", f"{host}:{port} is free")


def _kafka(loaded: Settings, kafka: dict[str, str]) -> Iterator[Finding]:
    from broker.runtime.topic_admin import policies
    from topics.admin import Admin, service_topics

    admin = Admin(kafka, timeout_s=5.0)
    where = kafka["bootstrap.servers"]
    try:
        present = admin.topics()
    except TureenError as away:
        yield Finding("kafka", "fail", away.message, away.hint or f"is Kafka at {where} running?")
        return
    yield Finding("kafka", "ok", f"answers at {where}, {len(present):,} topics")
    wanted = service_topics(loaded.names, policies(loaded))
    missing = [policy.name for policy in wanted if policy.name not in present]
    try:
        admin.ensure([policy for policy in wanted if policy.name in present])
    except TureenError as wrong:
        yield Finding("topics", "fail", wrong.message, wrong.hint)
        return
    if missing:
        yield Finding("topics", "ok", f"{len(missing)} of {len(wanted)} will be created by tureen serve")
    else:
        yield Finding(
            "topics", "ok", f"all {len(wanted)} of service {loaded.service_id} have the right policies"
        )


def _checked(what: str, look: Callable[[], str]) -> Finding:
    try:
        return Finding(what, "ok", look())
    except TureenError as refused:
        return Finding(what, "fail", refused.message, refused.hint)
