"""Arrays that grow without a pause."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

ITEMS_AHEAD = 8
"""Items of the next array that are made ready for each item of the last quarter of this one; then all of the
next array is ready when this one is full.
"""


class Growing:
    """An array, and the one with twice the room that it gives way to.

    Fresh memory costs many times what is then written into it. So when three quarters of the array are used,
    the next one is made, and with each item that comes some items of it are made ready. One writer; who has
    read ``array`` may keep it.
    """

    def __init__(self, array: Array, *, appended: bool, most: int = sys.maxsize) -> None:
        """appended: items are only added, and the next array begins with them; else it begins as all 0.
        most: items it has room for at last.
        """
        self.array = array
        self._most = most
        self._appended = appended
        self._next: Array | None = None
        self._ready = 0

    @property
    def ahead_bytes(self) -> int:
        """What the next array takes by now."""
        return 0 if self._next is None else self._ready * (self._next.nbytes // len(self._next))

    def prepare(self, used: int, more: int) -> None:
        """``used`` items are in use, ``more`` of them came just now. O(more)."""
        if not more or 4 * used < 3 * len(self.array) or len(self.array) == self._most:
            return
        if self._next is None:
            self._next = self._of(2 * len(self.array))
        self._make_ready(self._next, self._ready + ITEMS_AHEAD * more, used)

    def grow(self, used: int, room: int = 0) -> Array:
        """The next array takes the place of this one, which is returned. room: it has so much at least."""
        if self._next is None or len(self._next) < min(room, self._most):
            self._next, self._ready = self._of(max(2 * len(self.array), room)), 0
        before = self.array
        self._make_ready(self._next, len(self._next), used)
        self.array, self._next, self._ready = self._next, None, 0
        return before

    def replace(self, array: Array) -> None:
        """An array with the same items in use takes the place of this one, and of the next."""
        self.array, self._next, self._ready = array, None, 0

    def _of(self, items: int) -> Array:
        return np.empty((min(items, self._most), *self.array.shape[1:]), self.array.dtype)

    def _make_ready(self, following: Array, stop: int, used: int) -> None:
        stop = min(stop, used if self._appended else len(following))
        if stop > self._ready:
            here = slice(self._ready, stop)
            following[here] = self.array[here] if self._appended else 0
            self._ready = stop
