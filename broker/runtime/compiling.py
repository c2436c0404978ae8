"""Kernels that are compiled at their first use on a machine: that takes seconds, and is no hang.

numba says when a compilation begins and ends, in the thread that runs it; one may need others, within it.
Of processes that need one kernel at once, one compiles it; the others wait and read what that kept.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import os
import threading
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from numba.core import event
from numba.core.caching import NullCache
from numba.core.compiler_lock import global_compiler_lock
from numba.core.dispatcher import Dispatcher

import engine
from broker.runtime.liveness import Pulse


class Compilations(event.Listener):
    """Gives signs of life while a thread that is watched compiles."""

    def __init__(self) -> None:
        self._of_thread = threading.local()
        event.register("numba:compile", self)  # type: ignore[no-untyped-call]

    def watch(self, pulse: Pulse) -> None:
        """The calling thread is alive while it compiles."""
        self._of_thread.pulse, self._of_thread.depth = pulse, 0

    def on_start(self, event: Any) -> None:
        self._changed(1)

    def on_end(self, event: Any) -> None:
        self._changed(-1)

    def _changed(self, by: int) -> None:
        pulse: Pulse | None = getattr(self._of_thread, "pulse", None)
        if pulse is None:
            return
        self._of_thread.depth += by
        if self._of_thread.depth:
            pulse.toil()
        else:
            pulse.beat()


COMPILATIONS = Compilations()
"""The process's: numba tells all listeners of all threads."""

FIRST_USE = "kernels are compiled at their first use on this machine: for a minute or two all takes longer"


def is_first_use() -> bool:
    """Whether no kernel was compiled on this machine yet, where compiled ones are kept. O(files)."""
    return next(_kept().rglob("*.nbi"), None) is None


def _kept() -> Path:
    """Where compiled kernels are kept, or below it."""
    return Path(os.environ.get("NUMBA_CACHE_DIR") or Path(engine.__file__).parent)


def is_compiled(kernel: Any) -> bool:
    """Whether a kernel is compiled, here or where compiled ones are kept. True also where none can be kept:
    then nobody but who calls it can compile it. Reads a file of a kernel that is not compiled here.
    """
    if kernel.signatures or isinstance(kernel._cache, NullCache):
        return True
    return bool(kernel._cache._cache_file._load_index())


def compile_once() -> None:
    """Each kernel is compiled by one of the machine's processes that call this; the others wait for it, and
    give signs of life. Where nothing can be written beside the kernels, each compiles for itself.
    """
    compile_here = Dispatcher.compile
    if hasattr(compile_here, "__wrapped__"):
        return
    try:
        place = _kept() / "__pycache__" / "compiling.lock"
        place.parent.mkdir(parents=True, exist_ok=True)
        file = place.open("wb")
    except OSError:
        return

    @functools.wraps(compile_here)
    def compile_or_wait(kernel: Any, signature: Any) -> Any:
        if isinstance(kernel._cache, NullCache):
            return compile_here(kernel, signature)
        # The process's own lock comes first, so that one of its threads has locks of kernels: these are taken
        # in the order in which kernels need each other, never round in a circle.
        with global_compiler_lock, _alone(file, kernel):
            return compile_here(kernel, signature)

    Dispatcher.compile = compile_or_wait  # type: ignore[method-assign,assignment]


@contextlib.contextmanager
def _alone(file: IO[bytes], kernel: Any) -> Iterator[None]:
    """No other process compiles the kernel meanwhile: the byte of the file at its number is locked."""
    function = kernel.py_func
    at = zlib.crc32(f"{function.__module__}.{function.__qualname__}".encode())
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, at)
    except OSError:
        with event.trigger_event("numba:compile", data={"dispatcher": kernel}):
            fcntl.lockf(file, fcntl.LOCK_EX, 1, at)
    try:
        yield
    finally:
        fcntl.lockf(file, fcntl.LOCK_UN, 1, at)
