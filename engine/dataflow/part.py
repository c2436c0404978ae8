"""Parts: some calls of a GROUP BY that keep state of their own, by cell.

A part folds the same events as the cells do, and gives for each version that these made the columns of its
calls.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np

from engine.dataflow.arrangements.cells import CellEvents, Versions
from engine.dataflow.delta import Delta
from engine.kernels import multisets as kernels
from engine.model.batch import Column, Int32Array


class Part(ABC):
    """Some calls over one argument. calls: their places among those of the stage."""

    def __init__(self, calls: Sequence[int]) -> None:
        self.calls = tuple(calls)

    @abstractmethod
    def enter(self, delta: Delta, cells: Int32Array, capacity: int) -> None:
        """Rows enter. cells: int32[pairs], of each pair of the delta. capacity: above all cells."""

    @abstractmethod
    def fold(self, delta: Delta, entering: CellEvents, versions: Versions, capacity: int) -> list[Column]:
        """Rows of a delta enter and leave; the values of the calls in each version."""

    @abstractmethod
    def standing(self, cells: Int32Array) -> list[Column]:
        """The values of the calls in cells as they stand."""

    @abstractmethod
    def release(self, cells: Int32Array, *, empty: bool) -> None:
        """These cells go. empty: no row has them."""

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Bytes of what is kept."""


def first_versions(versions: Versions, capacity: int) -> Int32Array:
    """int32[capacity]: the first version of each cell that has one."""
    cursor = np.full(capacity, -1, np.int32)
    kernels.first_versions(versions.cells, versions.before, cursor)
    return cursor
