"""A Kafka and a broker for the demo alone, in a directory of their own, begun afresh each time.

The directory is ``demo`` under the data directory. Its ``demo.lock`` is held while a demo runs, so what else
still runs there when nobody holds it was left by one that was killed: it is stopped, and its state removed.
A run that ends well leaves nothing there but the broker's log.
Default ports are taken where they are free, others where not; the user's own Kafka and broker stay untouched.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import httpx
from rich.console import Console

from broker.runtime import lock
from broker.runtime.compiling import FIRST_USE, is_first_use
from topics import embedded
from topics.private import UMASK, private_directory
from tureen.errors import BrokerUnavailable, TureenError

HTTP_PORT_DEFAULT = 8080
READY_TIMEOUT_S = 300.0
"""A process that lives is waited for so long: a busy machine takes minutes."""
STOP_TIMEOUT_S = 20.0


class DemoRunning(TureenError):
    """Another demo of this user is running."""

    code = "demo_running"


class Services:
    """A running Kafka and broker: ``bootstrap`` and ``url`` say where."""

    def __init__(self, root: Path, bootstrap: str, url: str, broker: subprocess.Popen[bytes]) -> None:
        self.root = root
        self.bootstrap = bootstrap
        self.url = url
        self._broker = broker

    def check(self) -> None:
        """Raises BrokerUnavailable when the broker has ended."""
        code = self._broker.poll()
        if code is not None:
            raise BrokerUnavailable(
                f"the broker ended with code {code}: {_last_line(self.root / 'broker.log')}",
                hint=f"its log is {self.root / 'broker.log'}",
            )

    def memory(self) -> dict[str, Any]:
        """What the broker says of its memory."""
        with httpx.Client(trust_env=False, timeout=10.0) as http:
            facts: dict[str, Any] = http.get(f"{self.url}/status").json()["memory"]
        return facts

    def wait_ready(self) -> None:
        """Until it serves. Raises BrokerUnavailable."""
        deadline = time.monotonic() + READY_TIMEOUT_S
        with httpx.Client(trust_env=False, timeout=2.0) as http:
            while time.monotonic() < deadline:
                self.check()
                with contextlib.suppress(httpx.HTTPError):
                    if http.get(f"{self.url}/readycheck").status_code == 200:
                        return
                time.sleep(0.05)
        raise BrokerUnavailable(
            f"the broker runs, and is not ready after {READY_TIMEOUT_S:.0f} s",
            hint=f"try again when the machine is less busy; its log is {self.root / 'broker.log'}",
        )


@contextlib.contextmanager
def services(console: Console, *, archive: str = "", memory_bytes: int = 0) -> Iterator[Services]:
    """Start both, stop both. Progress of downloads goes to ``console``. archive: the broker's, below the
    directory. memory_bytes: the worker's; 0: as much as the machine has.

    Raises DemoRunning, EmbeddedKafkaError, BrokerUnavailable, DirectoryNotPrivate.
    """
    root = embedded.data_directory() / "demo"
    private_directory(root.parent)
    root.mkdir(mode=0o700, exist_ok=True)
    with _only_one(root):
        _clear(root)
        if is_first_use():
            console.print(FIRST_USE, style="yellow")
        try:
            kafka = _start_kafka(root, console)
            running = _start_broker(root, kafka, archive, memory_bytes)
            try:
                running.wait_ready()
                yield running
            finally:
                _stop(running._broker)
        except TureenError:
            _down(root)  # what it stored stays, to be looked at
            raise
        except BaseException:
            _down(root)
            _remove(root, {"demo.lock", "broker.log"})
            raise
        _down(root)
        _remove(root, {"demo.lock", "broker.log"})


@contextlib.contextmanager
def _only_one(root: Path) -> Iterator[None]:
    with (root / "demo.lock").open("a+") as held:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            held.seek(0)
            pid = held.read().strip() or "?"
            raise DemoRunning(
                f"a demo is running already (process {pid})",
                hint="use it: `tureen queries`; or give this one another TUREEN_DATA_DIR",
            ) from None
        held.truncate(0)
        held.write(str(os.getpid()))
        held.flush()
        yield


def _clear(root: Path) -> None:
    """Stop what a killed demo left running, then remove what it stored."""
    owner = lock.owner(root)
    pid = None if owner is None else owner.get("pid")
    if isinstance(pid, int):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + STOP_TIMEOUT_S
    while lock.owner(root) is not None and time.monotonic() < deadline:
        time.sleep(0.05)
    embedded.down(root)
    _remove(root, {"demo.lock"})


def _down(root: Path) -> None:
    with contextlib.suppress(TureenError):
        embedded.down(root)


def _remove(root: Path, kept: set[str]) -> None:
    for path in root.iterdir():
        if path.name in kept:
            continue
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def _start_kafka(root: Path, console: Console) -> str:
    port, controller = embedded.PORT_DEFAULT, embedded.PORT_DEFAULT + 1
    if not (_free(port) and _free(controller)):
        port, controller = _free_ports(2)
    return embedded.up(root, port, controller, console=console).bootstrap


def _start_broker(root: Path, bootstrap: str, archive: str, memory_bytes: int) -> Services:
    port = HTTP_PORT_DEFAULT if _free(HTTP_PORT_DEFAULT) else _free_ports(1)[0]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("TUREEN_")}
    environment |= {
        "TUREEN_DATA_DIR": str(root),
        "TUREEN_HTTP_PORT": str(port),
        "TUREEN_KAFKA__BOOTSTRAP_SERVERS": bootstrap,
        "TUREEN_LOG_FORMAT": "json",
        "TUREEN_MEMORY_BUDGET_BYTES": str(memory_bytes),
    }
    if archive:
        environment["TUREEN_ARCHIVE"] = str(root / archive)
    log: IO[bytes]
    with (root / "broker.log").open("wb") as log:
        # A session of its own, so that Ctrl-C reaches the demo alone and all stops in order.
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "tureen", "serve"],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env=environment,
            start_new_session=True,
            umask=UMASK,
        )
    return Services(root, bootstrap, f"http://127.0.0.1:{port}", process)


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(STOP_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        process.kill()  # its children notice, and end
        process.wait()


def _free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def _free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as held:
        probes = [held.enter_context(socket.socket()) for _ in range(count)]
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [probe.getsockname()[1] for probe in probes]


def _last_line(path: Path) -> str:
    with contextlib.suppress(OSError):
        lines = path.read_bytes()[-8_192:].decode("utf-8", "replace").strip().splitlines()
        if lines:
            return lines[-1][:300]
    return "it printed no message"
