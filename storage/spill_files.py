"""Arrays in files that are mapped into memory: the system reads what is looked at, and takes pages back.

Each call of :meth:`SpillFiles.write` makes one file without a name, so nothing is left of it once its last
array is gone, or the process. A file takes a descriptor and a mapping.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import tempfile
import threading
import weakref
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from engine.model.spill import Array
from tureen.errors import StoreFull

PAGE = mmap.PAGESIZE
PAGE_OUT = 21
"""MADV_PAGEOUT of Linux, which Python has no name for."""
LOOKED_AT_BYTES = 1 << 32
"""The system is asked of so many bytes whether they are in memory."""
_LIBC = ctypes.CDLL(None)


class SpillFiles:
    """Used from any thread."""

    def __init__(self, directory: Path) -> None:
        """directory: made when the first file is, for this user alone."""
        self.directory = directory
        self._lock = threading.Lock()
        self._files: weakref.WeakSet[mmap.mmap] = weakref.WeakSet()

    def write(self, arrays: Sequence[Array]) -> list[Array]:
        """Arrays of the same values in one file. They may be written to by nobody. O(bytes).

        Raises StoreFull where the file cannot be made or written; nothing is left of it then.
        """
        places, size = _places(arrays)
        if not size:
            return list(arrays)
        try:
            self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=self.directory, buffering=0) as file:
                for place, array in zip(places, arrays, strict=True):
                    _write_at(file.fileno(), place, np.ascontiguousarray(array).view(np.uint8).data)
                os.ftruncate(file.fileno(), size)
                pages = mmap.mmap(file.fileno(), size)
        except OSError as error:
            raise StoreFull(
                f"rows could not be written to {self.directory}: {error.strerror or error}",
                hint="see that its disk has space, and that the process may open more files",
            ) from error
        with self._lock:
            self._files.add(pages)
        return [
            np.frombuffer(pages, array.dtype, array.size, place).reshape(array.shape) if array.size else array
            for place, array in zip(places, arrays, strict=True)
        ]

    @property
    def nbytes(self) -> int:
        """Bytes of all files whose arrays are in use."""
        return sum(map(len, self._mapped()))

    def resident(self) -> int:
        """Bytes of them that are in memory just now, by the system's word; 0 where it does not tell. Of many,
        estimated from some. O(:data:`LOOKED_AT_BYTES`), some 10 ms.
        """
        mapped = self._mapped()
        whole = sum(map(len, mapped))
        if not whole:
            return 0
        some = mapped[:: -(-whole // LOOKED_AT_BYTES)]
        return round(sum(map(_resident, some)) * whole / sum(map(len, some)))

    def page_out(self) -> None:
        """Have the system take all of it back from memory; where it cannot be asked, nothing is done.

        Waits until the disk has it.
        """
        for pages in self._mapped():
            try:
                pages.flush()
                pages.madvise(PAGE_OUT)
            except (OSError, ValueError):
                return

    def _mapped(self) -> list[mmap.mmap]:
        with self._lock:
            return list(self._files)


def _places(arrays: Sequence[Array]) -> tuple[list[int], int]:
    """(where each array begins: at a page of its own; the size of all, in whole pages)."""
    places, size = [], 0
    for array in arrays:
        places.append(size)
        size += -(-array.nbytes // PAGE) * PAGE
    return places, size


def _resident(pages: mmap.mmap) -> int:
    """Bytes of a file that are in memory."""
    told = np.zeros(len(pages) // PAGE, np.uint8)
    address, size = np.frombuffer(pages, np.uint8).ctypes.data, len(pages)
    if _LIBC.mincore(ctypes.c_void_p(address), ctypes.c_size_t(size), ctypes.c_void_p(told.ctypes.data)):
        return 0
    return PAGE * int(np.count_nonzero(told & 1))


def _write_at(file: int, place: int, data: memoryview) -> None:
    """Raises OSError."""
    while data:
        written = os.pwrite(file, data, place)
        data, place = data[written:], place + written
