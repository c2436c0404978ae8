"""A real Apache Kafka in one process, for one machine: KRaft, a single node, loopback only, durable.

The node runs in a session of its own and outlives whoever started it. Its directory::

    <data directory>/kafka/
        up.lock            held while a node is started or stopped: one at a time
        node.lock          held by the node itself, so by nobody once it is dead, however it died
        node.pid           written by the process that becomes the node
        node.json          address and version, written before the node starts
        server.properties  written at each start
        server.log         the node's log; node.out: what it printed
        log/               the topics

A lock that no process holds is no lock, so nothing here can be stale. ``log/`` is formatted under another
name and renamed, so it is whole or absent. A second :func:`up` finds the first.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import signal
import socket
import subprocess
import time
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from platformdirs import user_data_path
from rich.console import Console

from topics.jars import KAFKA_VERSION, kafka_jars
from topics.java import find_java
from topics.private import UMASK, private_directory
from tureen.errors import EmbeddedKafkaError

HOST = "127.0.0.1"
PORT_DEFAULT = 19092
READY_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 20.0
_JVM = (
    "-Xmx512m",
    "-Xms128m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-Xshare:auto",
    "-Djava.awt.headless=true",
    "-Dlog4j2.disableJmx=true",
)


@dataclass(frozen=True, slots=True)
class Running:
    """A node that answers. ``found``: it was running before it was asked for."""

    bootstrap: str
    pid: int
    data_dir: Path
    version: str = KAFKA_VERSION
    found: bool = False

    @property
    def port(self) -> int:
        """Port of the clients' listener."""
        return int(self.bootstrap.rpartition(":")[2])

    def as_dict(self) -> dict[str, object]:
        return {**asdict(self), "data_dir": str(self.data_dir)}


def data_directory() -> Path:
    """``TUREEN_DATA_DIR``, else the user's data directory."""
    return Path(os.environ.get("TUREEN_DATA_DIR") or user_data_path("tureen", appauthor=False))


def up(
    data_dir: Path | None = None,
    port: int | None = None,
    controller_port: int | None = None,
    *,
    console: Console | None = None,
    timeout_s: float = READY_TIMEOUT_S,
) -> Running:
    """Start the node of this data directory, or find it running, and wait until it answers.

    port: of the clients' listener, 19092 unless told; the controller's is the next one.
    Raises EmbeddedKafkaError: no Java, nothing to fetch the jars from, port taken, directory damaged or
    not writable, the node died while starting (with the end of its log). DirectoryNotPrivate: other users can
    enter the directory.
    """
    root = (data_dir or data_directory()).absolute() / "kafka"
    try:
        private_directory(root.parent)
        root.mkdir(mode=0o700, exist_ok=True)
        with _exclusive(root, timeout_s):
            if _alive(root):
                running = _await_ready(root, timeout_s, found=True)
                if port is not None and running.port != port:
                    raise EmbeddedKafkaError(
                        f"a Kafka is already running at {running.bootstrap}, with its data in {root.parent}",
                        hint="stop it first with `tureen down`, or start another with --data-dir",
                    )
                return running
            java = find_java()
            class_path = os.pathsep.join(str(jar) for jar in kafka_jars(console=console))
            port = PORT_DEFAULT if port is None else port
            controller_port = port + 1 if controller_port is None else controller_port
            for taken in (port, controller_port):
                _check_free(taken)
            command = [str(java.path), *_JVM, "-cp", class_path]
            _configure(root, port, controller_port)
            _format(root, command, timeout_s)
            _spawn(root, command, port)
            return _await_ready(root, timeout_s, found=False)
    except OSError as error:
        raise EmbeddedKafkaError(
            f"the directory {root} cannot be used: {error}",
            hint="give another one with --data-dir or TUREEN_DATA_DIR, or free some space",
        ) from error


def down(data_dir: Path | None = None, *, timeout_s: float = STOP_TIMEOUT_S) -> bool:
    """Stop the node and wait for its end; what it stored stays. False: none was running.

    A node that does not stop in time is killed. Raises EmbeddedKafkaError when it can't be.
    """
    root = (data_dir or data_directory()).absolute() / "kafka"
    if not root.is_dir():
        return False
    with _exclusive(root, timeout_s):
        if not _alive(root):
            return False
        pid = _pid(root)
        for number in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                pass
            except PermissionError as error:
                raise EmbeddedKafkaError(
                    f"process {pid} belongs to another user", hint="stop it as the user who started it"
                ) from error
            if _wait(lambda: not _alive(root), timeout_s):
                (root / "node.pid").unlink(missing_ok=True)
                return True
        raise EmbeddedKafkaError(f"process {pid} does not end", hint=f"look at {root / 'server.log'}")


def status(data_dir: Path | None = None) -> Running | None:
    """The node if it runs; it may still be starting. Never raises for a node that is down."""
    root = (data_dir or data_directory()).absolute() / "kafka"
    if not root.is_dir() or not _alive(root):
        return None
    try:
        return _running(root, found=True)
    except (OSError, ValueError, KeyError, EmbeddedKafkaError):
        return None


# --- locks ----------------------------------------------------------------------------------------


@contextlib.contextmanager
def _exclusive(root: Path, timeout_s: float) -> Iterator[None]:
    with (root / "up.lock").open("a") as lock:
        if not _wait(lambda: _take(lock.fileno()), timeout_s):
            raise EmbeddedKafkaError(
                f"another process is starting or stopping the node of {root}", hint="try again in a moment"
            )
        yield


def _take(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _alive(root: Path) -> bool:
    """Whether a process holds the node's lock: the node itself, from before its program was loaded."""
    with (root / "node.lock").open("a") as lock:
        return not _take(lock.fileno())


def _wait(condition: Callable[[], bool], timeout_s: float) -> bool:
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def _pid(root: Path) -> int:
    try:
        return int((root / "node.pid").read_text(encoding="ascii"))
    except (OSError, ValueError) as error:
        raise EmbeddedKafkaError(
            f"an unknown process holds {root / 'node.lock'}",
            hint=f"find it with: fuser {root / 'node.lock'}",
        ) from error


def _running(root: Path, *, found: bool) -> Running:
    facts = json.loads((root / "node.json").read_text(encoding="utf-8"))
    return Running(facts["bootstrap"], _pid(root), root.parent, facts["version"], found)


# --- starting -------------------------------------------------------------------------------------


def _check_free(port: int) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except (OSError, OverflowError) as error:
            raise EmbeddedKafkaError(
                f"port {port} on {HOST} cannot be taken: {error}",
                hint="stop the program that uses it, or choose another port with --port; to use a Kafka that "
                f"is running there, set bootstrap.servers={HOST}:{port}",
            ) from error


def _configure(root: Path, port: int, controller_port: int) -> None:
    settings = {
        "process.roles": "broker,controller",
        "node.id": 1,
        "controller.quorum.voters": f"1@{HOST}:{controller_port}",
        "listeners": f"PLAINTEXT://{HOST}:{port},CONTROLLER://{HOST}:{controller_port}",
        "advertised.listeners": f"PLAINTEXT://{HOST}:{port}",
        "controller.listener.names": "CONTROLLER",
        "inter.broker.listener.name": "PLAINTEXT",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
        "log.dirs": root / "log",
        "auto.create.topics.enable": "false",
        "num.partitions": 1,
        "default.replication.factor": 1,
        "min.insync.replicas": 1,
        "offsets.topic.num.partitions": 1,
        "offsets.topic.replication.factor": 1,
        "transaction.state.log.num.partitions": 1,
        "transaction.state.log.replication.factor": 1,
        "transaction.state.log.min.isr": 1,
        "share.coordinator.state.topic.num.partitions": 1,
        "share.coordinator.state.topic.replication.factor": 1,
        "share.coordinator.state.topic.min.isr": 1,
        "group.initial.rebalance.delay.ms": 0,
        # A dead letter is a record of up to 1 MiB with headers around it.
        "message.max.bytes": 8 * 1024 * 1024,
        "replica.fetch.max.bytes": 8 * 1024 * 1024,
        # Sized for one user: the defaults take a quarter of the heap for the cleaner alone.
        "log.cleaner.dedupe.buffer.size": 16 * 1024 * 1024,
        "num.network.threads": 2,
        "num.io.threads": 4,
        "background.threads": 2,
        "broker.heartbeat.interval.ms": 500,
        # After a kill the next start waits for the dead one's session to end.
        "broker.session.timeout.ms": 2500,
    }
    text = "".join(f"{name}={value}\n" for name, value in settings.items())
    (root / "server.properties").write_text(text, encoding="utf-8")
    (root / "format.properties").write_text(
        text.replace(f"log.dirs={root / 'log'}\n", f"log.dirs={root / 'log.new'}\n"), encoding="utf-8"
    )
    (root / "log4j2.properties").write_text(_LOGGING.format(file=root / "server.log"), encoding="utf-8")


_LOGGING = """\
status = error
appender.file.type = RollingFile
appender.file.name = file
appender.file.fileName = {file}
appender.file.filePattern = {file}.%i
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d %p %c: %m%n
appender.file.policies.type = Policies
appender.file.policies.size.type = SizeBasedTriggeringPolicy
appender.file.policies.size.size = 5MB
appender.file.strategy.type = DefaultRolloverStrategy
appender.file.strategy.max = 2
rootLogger.level = warn
rootLogger.appenderRef.file.ref = file
"""


def _format(root: Path, command: list[str], timeout_s: float) -> None:
    """Make the directory of the topics where there is none yet."""
    log, fresh = root / "log", root / "log.new"
    if (log / "meta.properties").is_file() and (log / "meta.properties").stat().st_size:
        return
    if log.exists():
        if any(log.iterdir()):
            raise EmbeddedKafkaError(
                f"{log} holds topics but no readable meta.properties",
                hint=f"restore that file, or move {log} elsewhere to start with an empty Kafka",
            )
        log.rmdir()
    shutil.rmtree(fresh, ignore_errors=True)
    cluster = urlsafe_b64encode(uuid.uuid4().bytes).decode("ascii").rstrip("=")
    # Options are parsed from this list: an id that begins with a dash would be taken for one.
    arguments = ["format", f"--cluster-id={cluster}", f"--config={root / 'format.properties'}"]
    try:
        done = subprocess.run(
            [*command, _logging_option(root), "kafka.tools.StorageTool", *arguments],
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
            umask=UMASK,
        )
    except subprocess.TimeoutExpired as late:
        raise EmbeddedKafkaError(
            f"the directory {fresh} was not formatted in {timeout_s:g} s",
            hint="the machine may be busy: try again",
        ) from late
    if done.returncode:
        raise EmbeddedKafkaError(
            f"the directory {fresh} could not be formatted: {_last_line(done.stdout + done.stderr)}",
            hint="is the disk full, or the directory not writable?",
        )
    fresh.rename(log)


def _logging_option(root: Path) -> str:
    return f"-Dlog4j2.configurationFile={root / 'log4j2.properties'}"


def _spawn(root: Path, command: list[str], port: int) -> None:
    (root / "node.json").write_text(
        json.dumps({"bootstrap": f"{HOST}:{port}", "version": KAFKA_VERSION}), encoding="utf-8"
    )
    (root / "node.pid").unlink(missing_ok=True)
    with (root / "node.lock").open("a") as lock, (root / "node.out").open("wb") as out:
        if not _take(lock.fileno()):
            raise EmbeddedKafkaError(f"another node of {root} came up", hint="try again")
        # The shell notes the number of the process it then becomes, and hands the lock down to it.
        process = subprocess.Popen(
            [
                *("/bin/sh", "-c", 'echo $$ > "$0" && exec "$@"', str(root / "node.pid")),
                *(*command, _logging_option(root), "kafka.Kafka", str(root / "server.properties")),
            ],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            cwd=root,
            pass_fds=(lock.fileno(),),
            start_new_session=True,
            umask=UMASK,
        )
    process.returncode = 0  # it is nobody's child to wait for: it outlives us on purpose


def _await_ready(root: Path, timeout_s: float, *, found: bool) -> Running:
    dead = False

    def answers() -> bool:
        nonlocal dead
        dead = not _alive(root)
        return dead or _answers(json.loads((root / "node.json").read_text(encoding="utf-8"))["bootstrap"])

    if not _wait(answers, timeout_s):
        raise EmbeddedKafkaError(
            f"Kafka does not answer after {timeout_s:.0f} s: {_cause(root)}",
            hint=f"look at {root / 'server.log'}, then `tureen down` and `tureen up`",
        )
    if dead:
        raise EmbeddedKafkaError(
            f"Kafka ended while starting: {_cause(root)}", hint=f"look at {root / 'server.log'} and node.out"
        )
    return _running(root, found=found)


def _answers(bootstrap: str) -> bool:
    host, _, port = bootstrap.rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=1).close()
    except OSError:
        return False
    client = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0, "socket.timeout.ms": 2000})
    try:
        return bool(client.list_topics(timeout=1).brokers)
    except KafkaException:
        return False


def _cause(root: Path) -> str:
    """The line of the node's output that tells most."""
    for name in ("server.log", "node.out"):
        with contextlib.suppress(OSError):
            text = (root / name).read_bytes()[-65536:].decode("utf-8", "replace")
            lines = [line for line in text.splitlines() if " ERROR " in line or " FATAL " in line]
            if lines:
                return lines[-1][:300]
            if name == "node.out" and text.strip():
                return _last_line(text)
    return "it printed no message"


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:300] if lines else "no output"
