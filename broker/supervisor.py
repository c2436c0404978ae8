"""The parent of the broker's processes; tiny, so that it is the last to fail.

Starts the worker and the control process, starts again what dies (after 0.2 s, doubling to 10 s, anew after
30 s of health), passes SIGTERM and SIGINT on, and kills what does not stop in time. A child that exits with
:data:`FATAL` says that starting it again is of no use: all stop, and that code is the supervisor's.
The children hold the read end of a pipe: when the supervisor is gone, however it died, they stop too.
They share a secret of this one run, which every call on the worker's socket carries. It is handed to them in
the environment, which other users cannot read; the arguments of a process everybody can. They are started
with ``-P``, so that no module is taken from the directory that the broker was started in.

A child that is there and does nothing is replaced as well: its event loop and each of its shards leave signs
of life in a file (:mod:`broker.runtime.liveness`). One whose signs are missing for the time set is asked for
the stacks of its threads (SIGUSR2), killed and started again. How such lives ended is noted in
:mod:`broker.runtime.lives`, so that a worker that is killed again and again finds that out.

``tureen serve`` replaces itself by this module. Imports the standard library, and constants.
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
from pathlib import Path

from broker.base.internal import SECRET_HEADER
from broker.runtime import lives, lock
from broker.runtime.liveness import LOOP, Liveness, Silent

FATAL = 78
"""The exit code of a child that must not be started again (sysexits: a configuration error)."""

FROM_OUTSIDE = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
"""Signals that somebody else ends a child with."""

BACK_OFF_S = (0.2, 10.0)
HEALTHY_S = 30.0
READY_POLL_S = 0.1
WORKER = "broker.worker"
CHILDREN = (WORKER, "broker.control")
START_S = 300.0
"""A child that starts may be silent for so long: it loads libraries, measures, compiles."""
LIVENESS_POLLS = 4
"""Signs of life are looked at so often in the time that they may be missing, and once a second at least."""
STACKS_S = 0.5
"""A child that hangs has so long to print its stacks."""


@dataclass
class Child:
    """One child process: its module, its signs of life, its process while it runs, when to start it again.

    hung: what it was killed for, from then until its end is noticed. hung_at: what its thread was at.
    """

    module: str
    signs: Path
    liveness: Liveness
    process: subprocess.Popen[bytes] | None = None
    started_s: float = 0.0
    due_s: float = 0.0
    back_off_s: float = field(default=BACK_OFF_S[0])
    oom_kills: int = 0
    hung: str | None = None
    hung_at: str = ""

    def start(self, inherited: tuple[int, ...]) -> None:
        # A session of its own: Ctrl-C reaches the supervisor alone, which then stops the children in order.
        self.liveness.start(START_S)
        self.oom_kills, self.hung = lives.oom_kills(), None
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-m", self.module],
            pass_fds=inherited,
            start_new_session=True,
            env=os.environ | {"TUREEN_LIVENESS_FILE": str(self.signs)},
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

    def replace(self, silent: list[Silent], timeout_s: float) -> None:
        """It hangs: kill it; that it has died is noticed like any other death."""
        assert self.process is not None
        self.hung = cause(silent, self.liveness.silent(timeout_s / 2))
        self.hung_at = silent[0].at
        where = "its event loop" if self.hung == "worker" else f"the thread of {self.hung}"
        say(
            f"{self.module} hangs: {where} has given no sign of life for {silent[0].silent_s:.0f} s"
            + (f" ({self.hung_at})" if self.hung_at else "")
            + "; it is replaced, and its stacks are asked for first"
        )
        with contextlib.suppress(OSError):
            self.process.send_signal(signal.SIGUSR2)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(STACKS_S)
        self.process.kill()

    @property
    def kernel_kills(self) -> bool:
        """Whether the kernel has killed a process since it was started: memory ran out."""
        return lives.oom_kills() > self.oom_kills

    def told(self, code: int, end: lives.LifeEnd | None) -> str:
        """How it ended, for people."""
        return told_end(code, end, self.kernel_kills)

    def ended(self, code: int) -> lives.LifeEnd | None:
        """Its last life, where that ended against its will in a way that may come back."""
        if self.module != WORKER:
            return None
        memory = self.liveness.memory
        short = lives.was_short(memory) or self.kernel_kills
        if self.hung is not None:
            return lives.LifeEnd(time.time(), self.hung, memory[1], self.hung_at)
        if code == -signal.SIGKILL and short:
            return lives.LifeEnd(time.time(), "memory", memory[1])
        if code == FATAL or -code in FROM_OUTSIDE:
            return None
        return lives.LifeEnd(time.time(), "crash", memory[1])


def cause(silent: list[Silent], drowsy: list[Silent]) -> str:
    """What hangs, as :mod:`broker.runtime.lives` names it: a shard that is alone in it, at work, else the
    whole: a shard that keeps the interpreter to itself cannot be told from a process that is stopped.

    drowsy: those that have been silent for half the time: they will turn out to hang as well.
    """
    if len(silent) == 1 and silent[0].busy and all(one.slot != LOOP for one in drowsy):
        return f"shard-{silent[0].slot - 1}"
    return "worker"


def last_life(data_dir: Path, signs: Path) -> lives.LifeEnd | None:
    """How the worker ended that was there before this supervisor, where it was killed together with its own
    and memory was short.
    """
    if not signs.is_file():
        return None
    memory = Liveness(signs).memory
    return lives.LifeEnd(time.time(), "memory", memory[1]) if lives.was_short(memory) else None


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


def run(
    socket_path: str,
    lock_fd: int,
    stop_timeout_s: float,
    url: str,
    data_dir: Path,
    liveness_timeout_s: float,
) -> int:
    """Supervise until a signal or a fatal exit; returns the exit code."""
    pipe_read, pipe_write = os.pipe()
    os.environ["TUREEN_SUPERVISOR_FD"] = str(pipe_read)
    secret = secrets.token_urlsafe(32)
    os.environ["TUREEN_INTERNAL_SECRET"] = secret
    stop: list[int] = []
    woken = _signals(stop)
    inherited = (pipe_read, lock_fd)
    children = [_child(module, data_dir) for module in CHILDREN]
    poll_s = min(1.0, liveness_timeout_s / LIVENESS_POLLS)
    looked_s = excused_s = began_s = time.monotonic()
    announced = False
    for child in children:
        child.start(inherited)
    _note(children, lock_fd)
    while not stop:
        now_s = time.monotonic()
        waits = [max(0.0, child.due_s - now_s) for child in children if child.process is None]
        if not announced:
            waits.append(READY_POLL_S)
        select.select([woken], [], [], min([poll_s, *waits]))
        with contextlib.suppress(BlockingIOError):
            os.read(woken, 4_096)
        for child in children:
            code = child.died()
            if code is not None and not stop:
                end = child.ended(code)
                if end is not None:
                    lives.note(data_dir, end)
                if code == FATAL:
                    say(f"{child.module} cannot run; stopping (its last lines above say why)")
                    return _stop(children, stop_timeout_s) or FATAL
                say(f"{child.module} ended with {child.told(code, end)} and will be started again")
            if child.process is None and time.monotonic() >= child.due_s and not stop:
                child.start(inherited)
                _note(children, lock_fd)
        now_s = time.monotonic()
        if now_s - looked_s > 2 * poll_s + 1.0:
            excused_s = now_s  # this process was stopped or starved itself, and with it perhaps all
        looked_s = now_s
        for child in children:
            if child.process is not None and child.hung is None and not stop:
                silent = child.liveness.silent(liveness_timeout_s, excused_s)
                if silent:
                    child.replace(silent, liveness_timeout_s)
        if not announced and not stop and is_ready(socket_path, secret):
            announced = True
            say(f"Ready in {time.monotonic() - began_s:.1f} s: {url}")
            say(f"Next: tureen sql --url {url} or tureen status --url {url} (Ctrl-C stops the broker)")
    code = _stop(children, stop_timeout_s)
    os.close(pipe_write)
    return code


def _signals(stop: list[int]) -> int:
    """A descriptor that can be read whenever a signal came: a child ended, or ``stop`` has got one."""
    wake_read, wake_write = os.pipe()
    os.set_blocking(wake_read, False)
    os.set_blocking(wake_write, False)
    signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda got, _: stop.append(got))
    signal.signal(signal.SIGCHLD, lambda *_: None)
    return wake_read


def _child(module: str, data_dir: Path) -> Child:
    """A child that is to be started; of the worker before it, how it ended is noted."""
    signs = data_dir / f"{module.rpartition('.')[2]}.alive"
    before = last_life(data_dir, signs) if module == WORKER else None
    if before is not None:
        lives.note(data_dir, before)
    return Child(module, signs, Liveness(signs, fresh=True))


def _note(children: list[Child], lock_fd: int) -> None:
    """Have the lock's file name the processes that own the directory besides this one."""
    with contextlib.suppress(OSError):  # a full disk is no reason to stop
        lock.note(lock_fd, {"children": [child.process.pid for child in children if child.process]})


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
    for child in children:
        child.signs.unlink(missing_ok=True)
    return code


def told_end(code: int, end: lives.LifeEnd | None, kernel_kills: bool) -> str:
    """How a child ended. kernel_kills: the kernel has killed a process since it was started."""
    if code >= 0:
        return f"exit code {code}"
    why = ""
    if end is not None and end.cause == "memory":
        why = " (out of memory)" if kernel_kills else " (not by the kernel; memory was short)"
    return f"signal {signal.Signals(-code).name}{why}"


if __name__ == "__main__":
    socket_path, lock_fd, stop_timeout_s, url, data_dir, liveness_timeout_s = sys.argv[1:]
    sys.exit(
        run(
            socket_path,
            int(lock_fd),
            float(stop_timeout_s),
            url,
            Path(data_dir),
            float(liveness_timeout_s),
        )
    )
