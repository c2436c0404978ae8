"""The processes that users' functions run in, where they are declared ``isolated``.

The worker starts one parent of them, which imports what all need and forks at its word, so that a new process
is there in some milliseconds. Each loads the users' modules and answers questions
(:mod:`broker.runtime.function_frames`) until its socket is closed. The parent alone kills and buries them: no
number of a process is used after another process could have it.

Commands to the parent, over a socket pair: ``F`` with two files (a socket, the notes of calls): fork; the
answer is the process' number. ``K`` and a number: kill it and all it started; the answer is the number. When
the worker is gone the parent kills all of them and ends; when the parent is gone the system kills them, where
it can (Linux).

They have the worker's rights, but none of its settings, and of its files only standard error, where what they
print goes. Their memory is limited.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import resource
import signal
import socket
import struct
import sys
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path

import numpy as np
import pyarrow as pa

from broker.runtime.function_frames import READY, CallNotes, answer, answered, asked, exactly, question
from broker.runtime.functions import load
from engine.language.evaluation.user_calls import called
from engine.model.batch import Column
from engine.model.expressions import UserFunction
from engine.model.types import BIGINT, BOOLEAN, DATE, DOUBLE, INTEGER, STRING, TIMESTAMP, decimal

COMMAND = struct.Struct(">cq")
FORK, KILL = b"F", b"K"
PR_SET_PDEATHSIG = 1


def main(arguments: Sequence[str]) -> None:
    """The parent. arguments: its socket, bytes of memory, the directory of modules, their names."""
    control = socket.socket(fileno=int(arguments[0]))
    memory_bytes, directory, modules = int(arguments[1]), Path(arguments[2]), list(arguments[3:])
    warm_up()
    gc.freeze()  # what is there is shared with all of them
    children: set[int] = set()
    try:
        while True:
            _bury(children)
            message, files, _, _ = socket.recv_fds(control, COMMAND.size, 2)
            if len(message) < COMMAND.size:
                return
            kind, number = COMMAND.unpack(message)
            if kind == FORK:
                parent = os.getpid()
                number = os.fork()
                if number == 0:
                    control.close()
                    _run(parent, files[0], files[1], memory_bytes, directory, modules)
                for file in files:
                    os.close(file)
                with contextlib.suppress(OSError):  # it did so itself, or is gone
                    os.setpgid(number, number)
                children.add(number)
            elif number in children:
                _kill(number)
                children.discard(number)
            control.sendall(COMMAND.pack(kind, number))
    except (OSError, KeyboardInterrupt):
        return  # the worker is gone
    finally:
        for number in children:
            _kill(number)


def warm_up() -> None:
    """Have imported and compiled what first calls need: they would take longer than a call may."""
    types = (BIGINT, INTEGER, DOUBLE, BOOLEAN, STRING, DATE, TIMESTAMP, decimal(10, 2))
    for type_ in types:
        strings = pa.array(["a"]) if type_ is STRING else None
        column = Column(type_, np.zeros(1, type_.dtype), None, strings)
        for vectorised in (False, True):
            function = UserFunction("WARM", (type_,), type_, lambda values: values, vectorised)
            frame = question(function, [column], one_by_one=False)
            one, columns, one_by_one = asked(BytesIO(frame).read, {"WARM": function})
            frame = answer(called(one, columns, one_by_one=one_by_one))
            answered(BytesIO(frame).read, type_, 1)


def _bury(children: set[int]) -> None:
    """Those that ended by themselves; what they started is killed."""
    for number in list(children):
        if os.waitid(os.P_PID, number, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
            _kill(number)
            children.discard(number)


def _kill(number: int) -> None:
    for kill in (os.killpg, os.kill):
        with contextlib.suppress(OSError):
            kill(number, signal.SIGKILL)
    with contextlib.suppress(OSError):
        os.waitpid(number, 0)


def _run(
    parent: int, connection: int, notes: int, memory_bytes: int, directory: Path, modules: list[str]
) -> None:
    """A process from its fork to its end; never returns."""
    code = 1
    try:
        os.setpgid(0, 0)
        _end_with(parent)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        limit = _data_bytes() + memory_bytes
        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
        shared = CallNotes(notes)
        os.close(notes)
        serve(socket.socket(fileno=connection), shared, directory, modules)
        code = 0
    except EOFError:
        code = 0
    finally:
        os._exit(code)


def _data_bytes() -> int:
    """What of its limit the process has taken before any function is called."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[5]) * resource.getpagesize()
    except (OSError, IndexError):
        return 0


def _end_with(parent: int) -> None:
    """Have the system kill this process when its parent is gone, where it can."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


def serve(connection: socket.socket, notes: CallNotes, directory: Path, modules: Sequence[str]) -> None:
    """Load the modules and answer questions. Raises EOFError when the worker has gone."""
    functions = {one.name: one for one in load(modules, directory).users}
    connection.sendall(READY)
    while True:
        function, columns, one_by_one = asked(lambda size: exactly(connection, size), functions)
        outcome = called(function, columns, notes.begin, one_by_one=one_by_one)
        connection.sendall(answer(outcome))


if __name__ == "__main__":
    main(sys.argv[1:])
