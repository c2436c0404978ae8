"""Readers of formats are compiled before they are used, by a process of their own.

A worker that compiles one itself stands still for half a minute: a client gives up meanwhile, and a shard
makes no step. So where one was not compiled on the machine yet, a process of lowest priority does it when the
worker starts, once for all brokers of it (:func:`broker.runtime.compiling.compile_once`). A statement that
needs one before that is done waits for it, within bounds; it is then compiled first, at full priority.

Cost: a few files are looked at at the start, and a process of some 200 MB for a minute where one is missing.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from broker.base import logs
from broker.runtime import orphan
from broker.runtime.compiling import compile_once, is_compiled
from topics.formats.kernels import KERNELS, read_one
from tureen.errors import BrokerUnavailable

LOOK_S = 0.1
NICE = 19

log = logs.get()


class ReaderBeingCompiled(BrokerUnavailable):
    """What reads a format is being compiled; nothing was done."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"what reads {name} is being compiled, once on this machine: nothing was done yet",
            hint="try again in half a minute",
        )


class ReaderCompilation:
    """Used on the event loop."""

    def __init__(
        self, kernels: Mapping[str, Any] = KERNELS, program: Sequence[str] = ("-P", "-m", __name__)
    ) -> None:
        """kernels: by the format that they read. program: what compiles those of the formats that follow."""
        self._kernels = kernels
        self._program = program
        self._process: subprocess.Popen[bytes] | None = None
        self._is_urgent = False

    @property
    def is_running(self) -> bool:
        """Whether there is still something being compiled."""
        return self._process is not None and self._process.poll() is None

    async def run(self) -> None:
        """Have what is not compiled yet compiled, until cancelled."""
        self.begin()
        try:
            await asyncio.Event().wait()
        finally:
            self.stop()

    def begin(self) -> None:
        """Have what is not compiled yet compiled in the background."""
        self._start(self._missing(self._kernels), is_urgent=False)

    async def ready(self, formats: Iterable[str], wait_s: float) -> None:
        """Return once what reads these formats is compiled, or nobody compiles it.

        Raises ReaderBeingCompiled after ``wait_s``.
        """
        wanted = [name for name in formats if name in self._kernels]
        until_s = time.monotonic() + wait_s
        while self.is_running and (missing := self._missing(wanted)):
            self.hurry(missing)
            if time.monotonic() > until_s:
                raise ReaderBeingCompiled(missing[0])
            await asyncio.sleep(LOOK_S)

    def hurry(self, first: Sequence[str] = ()) -> None:
        """Somebody waits for what is being compiled: these formats, or some of all."""
        if self.is_running and not self._is_urgent:
            self.stop()
            self._start(
                [*first, *(one for one in self._missing(self._kernels) if one not in first)], is_urgent=True
            )

    def stop(self) -> None:
        """Compile no more. What is whole is kept."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def _missing(self, formats: Iterable[str]) -> list[str]:
        return [name for name in formats if not is_compiled(self._kernels[name])]

    def _start(self, formats: Sequence[str], *, is_urgent: bool) -> None:
        self._is_urgent = is_urgent
        if not formats:
            return
        with contextlib.suppress(OSError):  # no process: whoever needs one compiles it
            self._process = subprocess.Popen(
                [sys.executable, *self._program, str(0 if is_urgent else NICE), *formats],
                stdin=subprocess.PIPE,  # closes with this process, however that ends
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            log.info("readers_compiled", formats=list(formats), urgent=is_urgent)


def compile_all(nice: int, formats: Iterable[str], compile_one: Callable[[str], object] = read_one) -> None:
    """Compile what reads some formats; end when the process that wants it has gone."""
    orphan.watch(sys.stdin.fileno(), lambda: os._exit(1))
    os.nice(nice)
    compile_once()
    for name in formats:
        compile_one(name)


if __name__ == "__main__":
    compile_all(int(sys.argv[1]), sys.argv[2:])
