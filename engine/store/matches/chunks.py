"""Memory for match bits: chunks of eight words by 8,192 rows, from one pool of the process.

The memory lies in slabs that the system maps when they are written. A chunk that small batches fill lies in
small pages, so that the rest of it takes no memory before; one that a large batch fills in huge pages, which
are made six times as fast. Chunks that come back are lent again first, since fresh memory is slower to get
than to fill; where too many wait, their memory goes back to the system.
"""

from __future__ import annotations

import mmap
from collections import deque
from collections.abc import Iterable

import numpy as np

from engine.kernels import chunks

CHUNK_ROWS = 8_192
CHUNK_WORDS = 8
SLAB_CHUNKS = 32
WAITING_MIN = 64
"""So many chunks may wait with their memory, or half as many as are lent."""
TIDIED_MAX = 8
"""Chunks whose memory goes back in one go: some hundredths of a millisecond each."""

MANY_ROWS = CHUNK_ROWS // 4

LENT_FOR_ONE = 16
PREPARED = 4
"""Memory is made ahead for one chunk for so many in use, for these together: a huge page."""


class ChunkPool:
    """Chunks of ``rows`` rows, by address. Any thread may take, and give back what it took."""

    def __init__(self, rows: int = CHUNK_ROWS) -> None:
        self.rows = rows
        self._bytes = 8 * CHUNK_WORDS * rows
        self._places: dict[int, tuple[mmap.mmap, int]] = {}
        """The slab of each chunk, and where in it the chunk begins, in bytes."""
        self._waiting: deque[int] = deque()
        self._ready: deque[int] = deque()
        """Prepared: huge pages that no small batch is to take."""
        self._empty: dict[bool, deque[int]] = {False: deque(), True: deque()}
        self._huge = 0

    @property
    def lent(self) -> int:
        """How many chunks are in use."""
        free = self._waiting, self._ready, *self._empty.values()
        return len(self._places) - sum(map(len, free))

    def take(self, rows: int = 0) -> int:
        """The address of a chunk with anything in it, a multiple of 64.

        rows: how many are about to be written at once.
        """
        many = rows >= MANY_ROWS
        for free in (self._waiting, self._ready) if many else (self._waiting,):
            try:
                return free.pop()
            except IndexError:
                continue
        return self._fresh(many)

    def _fresh(self, many: bool) -> int:
        """A chunk without memory yet. many: in huge pages."""
        try:
            return self._empty[many].pop()
        except IndexError:
            self._huge += SLAB_CHUNKS * many
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
        slab = mmap.mmap(-1, SLAB_CHUNKS * self._bytes, flags=flags)
        if hasattr(mmap, "MADV_HUGEPAGE"):
            slab.madvise(mmap.MADV_HUGEPAGE if many else mmap.MADV_NOHUGEPAGE)
        begin = int(np.frombuffer(slab, np.uint8).ctypes.data)
        places = {begin + at: (slab, at) for at in range(0, SLAB_CHUNKS * self._bytes, self._bytes)}
        self._places.update(places)
        self._empty[many].extendleft(chunk for chunk in places if chunk != begin)
        return begin

    def give_back(self, lent: Iterable[int]) -> None:
        """Nobody reads these any more."""
        self._waiting.extend(lent)

    def prepare(self) -> bool:
        """Get memory for some chunks ahead of large batches, where few wait beside those that such batches
        took. Returns whether any were made. O(1).
        """
        taken = self._huge - len(self._empty[True])
        if len(self._waiting) + len(self._ready) >= taken // LENT_FOR_ONE:
            return False
        for chunk in [self._fresh(many=True) for _ in range(PREPARED)]:
            chunks.touch(chunk, self._bytes >> 3)
            self._ready.append(chunk)
        return True

    def tidy(self) -> None:
        """Where many chunks wait, give the memory of some back. O(1)."""
        if self._bytes % mmap.PAGESIZE:
            return
        for _ in range(min(TIDIED_MAX, len(self._waiting) - max(WAITING_MIN, self.lent >> 1))):
            try:
                chunk = self._waiting.popleft()
            except IndexError:
                return
            slab, at = self._places[chunk]
            slab.madvise(mmap.MADV_DONTNEED, at, self._bytes)
            self._empty[False].append(chunk)


CHUNKS = ChunkPool()
"""That of the process."""
