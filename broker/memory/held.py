"""What this process holds of the machine's memory, and how it gives back what it does not need."""

from __future__ import annotations

import ctypes
import gc
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa

_STATUS = Path("/proc/self/status")
_HELD = ("RssAnon:", "RssShmem:", "VmSwap:")
LOOK_S = 0.05
"""What is held is looked at as often at most."""


def held_bytes() -> int:
    """What this process holds by the kernel's word and cannot be taken back; 0 where that is not told."""
    found = 0
    try:
        for line in _STATUS.read_text().splitlines():
            if line.startswith(_HELD):
                found += int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        return 0
    return found


class HeldMemory:
    """What this process holds by the kernel's word, looked at by all together. Used from any thread."""

    def __init__(
        self, held: Callable[[], int] = held_bytes, now_s: Callable[[], float] = time.monotonic
    ) -> None:
        self.looks = 0
        """How often it was looked at."""
        self.now_s = now_s
        self._held = held
        self._lock = threading.Lock()
        self._looked_s = -LOOK_S
        self._bytes = 0

    def nbytes(self, *, again: bool = False) -> int:
        """Bytes, as of a look :data:`LOOK_S` ago at most. again: as of now."""
        with self._lock:
            now_s = self.now_s()
            if again or not self.looks or now_s - self._looked_s >= LOOK_S:
                self._looked_s, self._bytes = now_s, self._held()
                self.looks += 1
            return self._bytes


def trim() -> None:
    """Give back to the system what allocators keep for later."""
    gc.collect()
    release_arrow()
    trim_heap()


def release_arrow() -> None:
    """Give back what Arrow's allocator keeps of what this thread has made: it keeps that by thread, and
    another thread cannot have it given back.
    """
    pa.default_memory_pool().release_unused()


def trim_heap() -> None:
    """Give back to the system what the C library keeps of freed arrays."""
    if os.name == "posix":
        try:
            ctypes.CDLL(None).malloc_trim(0)
        except (AttributeError, OSError):
            return
