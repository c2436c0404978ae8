"""Kernels that are compiled at their first use on a machine: that takes seconds, and is no hang.

numba says when a compilation begins and ends, in the thread that runs it; one may need others, within it.
"""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

from numba.core import event

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
    kept = os.environ.get("NUMBA_CACHE_DIR") or Path(engine.__file__).parent
    return next(Path(kept).rglob("*.nbi"), None) is None
