"""Arrays in files that are mapped into memory: the system reads what is looked at, and takes pages back.

Each call of :meth:`SpillFiles.write` makes one file without a name, so nothing is left of it once its last
array is gone, or the process. It has no descriptor either: files are many, and connections of clients need
those. So the C library maps it, not Python, whose maps keep one.
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
from typing import Any

import numpy as np

from engine.model.spill import Array
from tureen.errors import StoreFull

PAGE = mmap.PAGESIZE
FILES_MAX = 30_000
"""Files at a time: Linux lets a process have 65,530 mappings, and arrays of others are some."""
LOOKED_AT_BYTES = 1 << 32
"""The system is asked of so many bytes whether they are in memory."""
_PAGE_OUT = 21
"""MADV_PAGEOUT of Linux, which Python has no name for."""
_FAILED = ctypes.c_void_p(-1).value

_LIBC: Any = ctypes.CDLL(None, use_errno=True)
_SIZE = ctypes.c_size_t
_ADDRESS = ctypes.c_void_p
_LIBC.mmap.restype = _ADDRESS
_LIBC.mmap.argtypes = (_ADDRESS, _SIZE, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long)
_LIBC.munmap.argtypes = (_ADDRESS, _SIZE)
_LIBC.madvise.argtypes = (_ADDRESS, _SIZE, ctypes.c_int)
_LIBC.mincore.argtypes = (_ADDRESS, _SIZE, _ADDRESS)


class MappedFile:
    """The pages of a file, mapped as long as this object or an array over it is there."""

    def __init__(self, file: int, size: int) -> None:
        """file: a descriptor, which may be closed then. Raises OSError."""
        access, shared = mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_SHARED
        address = _LIBC.mmap(None, size, access, shared, file, 0)
        if address == _FAILED:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))
        self.size = size
        self._address: int = address

    def __del__(self) -> None:
        if hasattr(self, "_address"):
            _LIBC.munmap(self._address, self.size)

    @property
    def __array_interface__(self) -> dict[str, object]:
        """uint8[size], which keeps this object."""
        return {"data": (self._address, False), "shape": (self.size,), "typestr": "|u1", "version": 3}

    def resident(self) -> int:
        """Bytes that are in memory; 0 where the system does not tell."""
        told = np.zeros(self.size // PAGE, np.uint8)
        if _LIBC.mincore(self._address, self.size, told.ctypes.data):
            return 0
        return PAGE * int(np.count_nonzero(told & 1))

    def page_out(self) -> None:
        """Have the system take all pages back, where it may be asked for that."""
        _LIBC.madvise(self._address, self.size, _PAGE_OUT)


class SpillFiles:
    """Used from any thread."""

    def __init__(self, directory: Path) -> None:
        """directory: made when the first file is, for this user alone."""
        self.directory = directory
        self._lock = threading.Lock()
        self._files: weakref.WeakSet[MappedFile] = weakref.WeakSet()

    def write(self, arrays: Sequence[Array]) -> list[Array]:
        """Arrays of the same values in one file, to which nobody writes. Waits until the disk has it: before
        that the system can take back no page. O(bytes).

        Raises StoreFull where the file cannot be made or written; nothing is left of it then.
        """
        places, size = _places(arrays)
        if not size:
            return list(arrays)
        if len(self._files) >= FILES_MAX:
            raise StoreFull(
                f"rows are in {FILES_MAX:,} files, and no more can be mapped",
                hint="make windows or RETAIN shorter",
            )
        self._made()
        try:
            with tempfile.TemporaryFile(dir=self.directory, buffering=0) as file:
                for place, array in zip(places, arrays, strict=True):
                    _write_at(file.fileno(), place, np.ascontiguousarray(array).view(np.uint8).data)
                os.ftruncate(file.fileno(), size)
                os.fsync(file.fileno())
                pages = MappedFile(file.fileno(), size)
        except OSError as error:
            raise StoreFull(
                f"rows could not be written to {self.directory}: {error.strerror or error}",
                hint="see that its disk has space, and that this user may write there",
            ) from error
        with self._lock:
            self._files.add(pages)
        whole = np.asarray(pages)
        return [
            whole[place : place + array.nbytes].view(array.dtype).reshape(array.shape)
            for place, array in zip(places, arrays, strict=True)
        ]

    def free_bytes(self) -> int:
        """Bytes that the disk of the directory has left. Raises StoreFull where it cannot be made."""
        disk = self._made()
        return disk.f_bavail * disk.f_frsize

    def _made(self) -> os.statvfs_result:
        """Make the directory; its disk."""
        try:
            self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            return os.statvfs(self.directory)
        except OSError as error:
            raise StoreFull(
                f"rows cannot be written to {self.directory}: {error.strerror or error}",
                hint="let it be a directory that this user may write to",
            ) from None

    @property
    def nbytes(self) -> int:
        """Bytes of all files whose arrays are in use."""
        return sum(pages.size for pages in self._mapped())

    def resident(self) -> int:
        """Bytes of them that are in memory just now, by the system's word; 0 where it does not tell. Of many,
        estimated from some. O(:data:`LOOKED_AT_BYTES`), some 10 ms.
        """
        mapped = self._mapped()
        whole = sum(pages.size for pages in mapped)
        if not whole:
            return 0
        some = mapped[:: -(-whole // LOOKED_AT_BYTES)]
        return round(sum(pages.resident() for pages in some) * whole / sum(pages.size for pages in some))

    def page_out(self) -> None:
        """Have the system take all of it back from memory."""
        for pages in self._mapped():
            pages.page_out()

    def _mapped(self) -> list[MappedFile]:
        with self._lock:
            return list(self._files)


def _places(arrays: Sequence[Array]) -> tuple[list[int], int]:
    """(where each array begins: at a page of its own; the size of all, in whole pages)."""
    places, size = [], 0
    for array in arrays:
        places.append(size)
        size += -(-array.nbytes // PAGE) * PAGE
    return places, size


def _write_at(file: int, place: int, data: memoryview) -> None:
    """Raises OSError."""
    while data:
        written = os.pwrite(file, data, place)
        data, place = data[written:], place + written
