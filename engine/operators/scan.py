"""Scans at an instant: which rows of a stream a query sees, before its stages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from engine.language.evaluate import truth
from engine.language.expressions import Expression
from engine.language.query import Scan
from engine.model.batch import Int64Array
from engine.operators.window_range import WindowRange, locate
from engine.stems.data_stem import Rows
from engine.stems.segment import Part

Places = Sequence[tuple[Part, Int64Array]]
"""Per part the places of rows, ascending; parts without rows are left out."""


@dataclass(frozen=True, slots=True)
class ScanAt:
    """The rows of a stream as they stood at an instant.

    now_ms: NOW; None: nothing is visible yet. end: the ordinal after the last visible row. slot_of: where
    the matches of a predicate are kept, None where they are not.
    """

    rows: Rows
    now_ms: int | None
    retained_from_ms: int | None
    end: int
    slot_of: Callable[[Expression], int | None]

    @classmethod
    def now(cls, rows: Rows, now_ms: int | None, retained_from_ms: int | None) -> ScanAt:
        """All that is visible; no matches are kept."""
        end = rows.base if now_ms is None else rows.end
        return cls(rows, now_ms, retained_from_ms, end, lambda predicate: None)

    @classmethod
    def earlier(cls, rows: Rows, at_ms: int, retained_from_ms: int | None) -> ScanAt:
        """As of an instant before NOW, over the rows that are known now."""
        end = rows.first_at_or_after(at_ms + 1)
        return cls(rows, at_ms, retained_from_ms, end, lambda predicate: None)

    def with_slots(self, slot_of: Callable[[Expression], int | None]) -> ScanAt:
        """The same rows for another query."""
        return replace(self, slot_of=slot_of)

    def window(self, scan: Scan) -> WindowRange:
        """The ordinals that the scan's window holds."""
        if self.now_ms is None:
            return WindowRange(self.rows.base, self.rows.base)
        return locate(scan.window, self.rows, self.now_ms, self.retained_from_ms, self.end)

    def matching(self, predicate: Expression | None, start: int, stop: int) -> list[tuple[Part, Int64Array]]:
        """The rows start <= ordinal < stop that a predicate accepts."""
        slot = None if predicate is None else self.slot_of(predicate)
        found = []
        for part, first, last in self.rows.ranges(start, stop):
            if predicate is None:
                where = np.arange(first, last)
            elif slot is not None:
                where = part.rows_of(slot, first, last)
            else:
                batch = part.batch(self.rows.schema).slice(first, last)
                where = first + np.flatnonzero(truth(predicate, batch.columns, last - first)[0])
            if len(where):
                found.append((part, where))
        return found

    def count(self, predicate: Expression | None, start: int, stop: int) -> int:
        """How many they are."""
        slot = None if predicate is None else self.slot_of(predicate)
        ranges = self.rows.ranges(start, stop)
        if slot is not None:
            return sum(part.count_of(slot, first, last) for part, first, last in ranges)
        return sum(len(where) for _, where in self.matching(predicate, start, stop))
