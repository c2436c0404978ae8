"""What this process holds of the machine's memory, and how it gives back what it does not need."""

from __future__ import annotations

import ctypes
import gc
import os
from pathlib import Path

import pyarrow as pa

_STATUS = Path("/proc/self/status")
_HELD = ("RssAnon:", "RssShmem:", "VmSwap:")


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


def trim() -> None:
    """Give back to the system what allocators keep for later."""
    gc.collect()
    pa.default_memory_pool().release_unused()
    trim_heap()


def trim_heap() -> None:
    """Give back to the system what the C library keeps of freed arrays."""
    if os.name == "posix":
        try:
            ctypes.CDLL(None).malloc_trim(0)
        except (AttributeError, OSError):
            return
