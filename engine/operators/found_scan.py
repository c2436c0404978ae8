"""Scans of a stream of which a query sees some rows only: those that were found for it.

What a query with a preference is answered from (:mod:`engine.promising`). Windows, table functions and every
later operator are those of any query; so its answer is one over some of the rows, whatever was found.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from engine.model.batch import Int64Array
from engine.model.expressions import Expression
from engine.operators.scan import ScanAt
from engine.stems.segment import SegmentView


@dataclass(frozen=True, slots=True)
class FoundAt(ScanAt):
    """The rows of a stream at an instant, without those that were not found.

    found: int64[n], ascending, ordinals that may lie outside what is there; such are passed over. satisfied:
    they all satisfy the predicate of the scan; else it is looked at, row by row of these.
    """

    found: Int64Array
    satisfied: bool

    @classmethod
    def of(cls, at: ScanAt, found: Int64Array, *, satisfied: bool) -> FoundAt:
        """The found rows of a stream as it stands."""
        return cls(at.rows, at.now_ms, at.retained_from_ms, at.end, at.slot_of, found, satisfied)

    def matching(
        self, predicate: Expression | None, start: int, stop: int
    ) -> list[tuple[SegmentView, Int64Array]]:
        """The found rows start <= ordinal < stop that a predicate accepts. O(found rows + segments)."""
        places = self._places(start, stop)
        if predicate is None or self.satisfied:
            return places
        return list(self.satisfying(predicate, places))

    def count_of(self, predicate: Expression | None, slot: int | None, start: int, stop: int) -> int:
        """How many found rows start <= ordinal < stop a predicate accepts."""
        return sum(len(where) for _, where in self.matching(predicate, start, stop))

    def _places(self, start: int, stop: int) -> list[tuple[SegmentView, Int64Array]]:
        first, last = np.searchsorted(self.found, [max(start, self.rows.base), min(stop, self.end)])
        found = self.found[first:last]
        if not len(found):
            return []
        places = []
        for part, _, _ in self.rows.ranges(int(found[0]), int(found[-1]) + 1):
            low, high = np.searchsorted(found, [part.first, part.end])
            if low < high:
                places.append((part, found[low:high] - part.first))
        return places
