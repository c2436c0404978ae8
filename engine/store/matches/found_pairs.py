"""Pairs of a row and a name that kernels find, in room that grows by what they say they need."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from engine.model.batch import Int32Array, Int64Array


class FoundPairs:
    """Pairs that kernels write one after another, which say how much room they need."""

    def __init__(self, room: int) -> None:
        self._rows: Int64Array = np.empty(room, np.int64)
        self._names: Int32Array = np.empty(room, np.int32)
        self._count = 0

    def add(self, write: Callable[[Int64Array, Int32Array], int]) -> None:
        """What a kernel writes."""
        while True:
            count = self._count + write(self._rows[self._count :], self._names[self._count :])
            if count <= len(self._rows):
                self._count = count
                return
            rows, names = np.empty(2 * count, np.int64), np.empty(2 * count, np.int32)
            rows[: self._count], names[: self._count] = self._rows[: self._count], self._names[: self._count]
            self._rows, self._names = rows, names

    def all(self) -> tuple[Int64Array, Int32Array]:
        """(row, name) of each."""
        return self._rows[: self._count], self._names[: self._count]
