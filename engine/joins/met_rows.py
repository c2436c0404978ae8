"""Which rows of some inputs are in combinations that a join found lately."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import numpy as np

from engine.model.batch import Int32Array, Int64Array

MARKED_MAX = 16
"""Rows are marked in an array of at most so many times as many places, or else sorted."""


class MetRows:
    """Collects rows of the inputs at ``places``."""

    def __init__(self, places: Collection[int]) -> None:
        self._found: dict[int, list[Int64Array]] = {place: [] for place in places}

    def note(self, parts: Int32Array, origin: Int64Array) -> None:
        """Combinations were found: int32[n, inputs], less origin, int64[inputs]. O(n)."""
        if len(parts):
            for place, found in self._found.items():
                found.append(_distinct(parts[:, place]) + origin[place])

    def rows(self) -> Iterator[tuple[int, Int64Array]]:
        """Yields (place, ordinals, ascending) of each input that has some."""
        for place, found in self._found.items():
            if found:
                yield place, found[0] if len(found) == 1 else np.unique(np.concatenate(found))


def _distinct(numbers: Int32Array) -> Int64Array:
    """Each once, ascending."""
    low, span = int(numbers.min()), int(numbers.max()) - int(numbers.min()) + 1
    if span > MARKED_MAX * len(numbers):
        return np.unique(numbers).astype(np.int64)
    marked = np.zeros(span, np.bool_)
    marked[numbers - low] = True
    return np.flatnonzero(marked) + low
