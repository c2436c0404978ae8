"""The parent of the processes of users' functions, as the worker sees it: started, asked for processes, told
to kill them; started again where it is gone.
"""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from broker.base import logs
from broker.runtime.function_frames import READY, CallNotes, notes_file
from broker.runtime.function_process import COMMAND, FORK, KILL

log = logs.get()

COMMAND_S = 10.0
"""A parent that does not do what it is told in this time is replaced; its first word takes a second."""


class FunctionProcess:
    """One process, used by one thread at a time. connection: non-blocking."""

    def __init__(self, number: int, connection: socket.socket, notes: CallNotes) -> None:
        self.number = number
        self.connection = connection
        self.notes = notes
        self.began_s = time.monotonic()
        self._is_ready = False

    def is_ready(self) -> bool:
        """Whether its modules are loaded, as far as it has told. Raises EOFError where it is gone."""
        if not self._is_ready:
            with contextlib.suppress(BlockingIOError):
                if self.connection.recv(1) != READY:
                    raise EOFError
                self._is_ready = True
        return self._is_ready

    def close(self) -> None:
        """Let go of what is shared with it; it ends by that, if it looks."""
        self.connection.close()
        self.notes.close()


class FunctionParent:
    """May be used by several threads."""

    def __init__(self, modules: Sequence[str], directory: Path, memory_bytes: int) -> None:
        self._arguments = (str(memory_bytes), str(directory.absolute()), *modules)
        self._lock = threading.Lock()
        self._control: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None

    def fork(self) -> FunctionProcess:
        """A new process, which loads its modules meanwhile. Raises OSError."""
        with self._lock:
            try:
                return self._fork()
            except OSError:  # the parent is gone
                self._stop()
                return self._fork()

    def _fork(self) -> FunctionProcess:
        control = self._started()
        ours, theirs = socket.socketpair()
        with theirs, notes_file() as file:
            try:
                notes = CallNotes(file.fileno())
                socket.send_fds(control, [COMMAND.pack(FORK, 0)], [theirs.fileno(), file.fileno()])
                number = self._reply(control)
            except OSError:
                ours.close()
                raise
        ours.setblocking(False)
        return FunctionProcess(number, ours, notes)

    def kill(self, process: FunctionProcess) -> None:
        """End it, whatever it does, with what it started. Its socket and notes are closed."""
        process.close()
        with self._lock:
            if self._control is None:
                return
            try:
                self._control.sendall(COMMAND.pack(KILL, process.number))
                self._reply(self._control)
            except OSError:
                self._stop()

    def stop(self) -> None:
        """End it and all processes."""
        with self._lock:
            self._stop()

    def _reply(self, control: socket.socket) -> int:
        reply = control.recv(COMMAND.size, socket.MSG_WAITALL)
        if len(reply) < COMMAND.size:
            raise ConnectionError("the parent of users' functions is gone")
        number: int = COMMAND.unpack(reply)[1]
        return number

    def _started(self) -> socket.socket:
        if self._control is not None:
            return self._control
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [
                    sys.executable,
                    "-P",
                    "-m",
                    "broker.runtime.function_process",
                    str(theirs.fileno()),
                    *self._arguments,
                ],
                stdin=subprocess.DEVNULL,
                stdout=2,  # what functions print is beside the log
                pass_fds=[theirs.fileno()],
                env={name: value for name, value in os.environ.items() if not name.startswith("TUREEN_")},
                start_new_session=True,
            )
        ours.settimeout(COMMAND_S)
        self._control = ours
        log.info("function_parent_started", pid=self._process.pid)
        return ours

    def _stop(self) -> None:
        if self._control is not None:
            self._control.close()  # it kills them and ends
            self._control = None
        if self._process is not None:
            try:
                self._process.wait(1.0)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._process = None
