"""Where arrays go that memory has no room for: the engine says what may leave, its owner when."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy.typing as npt

Array = npt.NDArray[Any]


class SpillSpace(Protocol):
    """Arrays on disk that are read like others. Used from any thread."""

    def wanted(self) -> int:
        """How many bytes memory is short of now; 0: nothing is to leave."""

    def write(self, arrays: Sequence[Array]) -> list[Array] | None:
        """Arrays of the same values, of which memory holds what was read lately; None: the disk has no room.

        Nobody writes to either from now on. O(bytes).
        """


def nbytes_of(arrays: Sequence[Array]) -> int:
    """Bytes of some arrays."""
    return sum(array.nbytes for array in arrays)
