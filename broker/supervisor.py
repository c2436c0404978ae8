"""The parent of the broker's processes; tiny, so that it is the last to fail.

Starts the worker and the control process, starts again what dies (after 0.2 s, doubling to 10 s, anew after
30 s of health), passes SIGTERM and SIGINT on, and kills what does not stop in time. A child that exits with
:data:`FATAL` says that starting it again is of no use: all stop, and that code is the supervisor's.
The children hold the read end of a pipe: when the supervisor is gone, however it died, they stop too.
They share a secret of this one run, which every call on the worker's socket carries. It is handed to them in
the environment, which other users cannot read; the arguments of a process everybody can. They are started
with ``-P``, so that no module is taken from the directory that the broker was started in.

``tureen serve`` replaces itself by this module. Imports
the standard library and names alone.
"""

from __future__ import annotations

import contextlib
import http.client
import os
import secrets
import select
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass, field

from broker.internal import SECRET_HEADER

FATAL = 78
"""The exit code of a child that must not be started again (sysexits: a configuration error)."""

BACK_OFF_S = (0.2, 10.0)
HEALTHY_S = 30.0
READY_POLL_S = 0.1
CHILDREN = ("broker.worker", "broker.control")


@dataclass
class Child:
    """One child process: its module, its process while it runs, and when to start it again."""

    module: str
    process: subprocess.Popen[bytes] | None = None
    started_s: float = 0.0
    due_s: float = 0.0
    back_off_s: float = field(default=BACK_OFF_S[0])

    def start(self, inherited: tuple[int, ...]) -> None:
        # A session of its own: Ctrl-C reaches the supervisor alone, which then stops the children in order.
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-m", self.module], pass_fds=inherited, start_new_session=True
        )
        self.started_s = time.monotonic()

    def died(self) -> int | None:
        """Its exit code, once, if it has ended."""
        code = None if self.process is None else self.process.poll()
        if code is not None:
            self.process = None
            now_s = time.monotonic()
            if now_s - self.started_s > HEALTHY_S:
                self.back_off_s = BACK_OFF_S[0]
            self.due_s = now_s + self.back_off_s
            self.back_off_s = min(2 * self.back_off_s, BACK_OFF_S[1])
        return code


def say(text: str) -> None:
    """A line for the person at the terminal."""
    with contextlib.suppress(OSError):
        print(text, file=sys.stderr, flush=True)


def is_ready(socket_path: str, secret: str) -> bool:
    """Whether the worker answers that everything stands."""
    link = http.client.HTTPConnection("localhost", timeout=1.0)
    link.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    link.sock.settimeout(1.0)
    try:
        link.sock.connect(socket_path)
        link.request("GET", "/internal/ready", headers={SECRET_HEADER: secret})
        return link.getresponse().status == 200
    except OSError:
        return False
    except http.client.HTTPException:
        return False
    finally:
        link.close()


def run(socket_path: str, lock_fd: int, stop_timeout_s: float, url: str) -> int:
    """Supervise until a signal or a fatal exit; returns the exit code."""
    pipe_read, pipe_write = os.pipe()
    os.environ["TUREEN_SUPERVISOR_FD"] = str(pipe_read)
    secret = secrets.token_urlsafe(32)
    os.environ["TUREEN_INTERNAL_SECRET"] = secret
    wake_read, wake_write = os.pipe()
    os.set_blocking(wake_read, False)
    os.set_blocking(wake_write, False)
    signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
    stop: list[int] = []
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda got, _: stop.append(got))
    signal.signal(signal.SIGCHLD, lambda *_: None)

    inherited = (pipe_read, lock_fd)
    children = [Child(module) for module in CHILDREN]
    began_s = time.monotonic()
    announced = False
    for child in children:
        child.start(inherited)
    while not stop:
        now_s = time.monotonic()
        waits = [max(0.0, child.due_s - now_s) for child in children if child.process is None]
        if not announced:
            waits.append(READY_POLL_S)
        select.select([wake_read], [], [], min(waits, default=None))
        with contextlib.suppress(BlockingIOError):
            os.read(wake_read, 4_096)
        for child in children:
            code = child.died()
            if code is not None and not stop:
                if code == FATAL:
                    say(f"{child.module} cannot run; stopping (its last lines above say why)")
                    return _stop(children, stop_timeout_s) or FATAL
                say(f"{child.module} ended with {_told(code)} and will be started again")
            if child.process is None and time.monotonic() >= child.due_s and not stop:
                child.start(inherited)
        if not announced and not stop and is_ready(socket_path, secret):
            announced = True
            say(f"Ready in {time.monotonic() - began_s:.1f} s: {url}")
    code = _stop(children, stop_timeout_s)
    os.close(pipe_write)
    return code


def _stop(children: list[Child], timeout_s: float) -> int:
    """Stop all; 0 if each ended by itself, 1 if one had to be killed."""
    code = 0
    # The control first: what it has handed over is then finished by the worker.
    for child in reversed(children):
        if child.process is not None:
            child.process.terminate()
    deadline_s = time.monotonic() + timeout_s
    for child in children:
        if child.process is None:
            continue
        try:
            child.process.wait(max(0.1, deadline_s - time.monotonic()))
        except subprocess.TimeoutExpired:
            say(f"{child.module} did not stop in {timeout_s:.0f} s; killed")
            child.process.kill()
            child.process.wait()
            code = 1
    return code


def _told(code: int) -> str:
    return f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"


if __name__ == "__main__":
    sys.exit(run(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), sys.argv[4]))
