"""The visible rows of a source as a reader sees them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from operator import attrgetter

from engine.model.batch import Batch, concatenate
from engine.model.source import Schema
from engine.stems.segment import SegmentView

_first = attrgetter("first")


@dataclass(frozen=True, slots=True)
class Rows:
    """The visible rows as a reader sees them: immutable, with their matches.

    origin: rows below this ordinal never were; below base, where rows have gone or may have.
    complete_from_ms: of instants before this one rows may be missing, whatever is retained; None: of none.
    """

    schema: Schema
    parts: tuple[SegmentView, ...]
    base: int
    end: int
    origin: int = field(default=0, kw_only=True)
    complete_from_ms: int | None = field(default=None, kw_only=True)

    @property
    def count(self) -> int:
        """How many rows the source has."""
        return self.end - self.base

    def first_at_or_after(self, timestamp_ms: int) -> int:
        """The first ordinal >= base whose timestamp is >= the instant; ``end`` if none. O(log rows)."""
        low, high = 0, len(self.parts)
        while low < high:
            middle = (low + high) >> 1
            part = self.parts[middle]
            if part.timestamp[part.n - 1] < timestamp_ms:
                low = middle + 1
            else:
                high = middle
        if low == len(self.parts):
            return self.end
        part = self.parts[low]
        place = int(part.timestamp[: part.n].searchsorted(timestamp_ms))
        return max(self.base, part.first + place)

    def lacks_before(self, timestamp_ms: int) -> bool:
        """Whether some row was ever below the first one at or after an instant, or may have been. O(1)."""
        if self.base > self.origin:
            return True
        if self.base == self.end:
            return self.end > self.origin
        first = self.parts[0]
        return bool(first.timestamp[self.base - first.first] < timestamp_ms)

    def gone_before_ms(self, retained_from_ms: int | None) -> int | None:
        """The instant before which rows are gone, or were never there; None: all rows are there."""
        whole_ms = self.complete_from_ms
        if retained_from_ms is None or not self.lacks_before(retained_from_ms):
            return whole_ms
        return retained_from_ms if whole_ms is None else max(retained_from_ms, whole_ms)

    def boundary_ms(self, now_ms: int, retained_from_ms: int | None) -> int:
        """All rows at or after this instant are there, up to NOW; of those below perhaps some."""
        first_ms = retained_from_ms
        if first_ms is None:
            first_ms = self.timestamp_of(self.base) if self.base < self.end else now_ms + 1
        whole_ms = first_ms if self.complete_from_ms is None else min(self.complete_from_ms, now_ms + 1)
        return max(first_ms, whole_ms)

    def rows_before(self, instant_ms: int) -> Batch:
        """The rows that lie before an instant."""
        stop = self.first_at_or_after(instant_ms)
        return concatenate(self.schema, [batch for _, batch in self.slices(self.base, stop)])

    def timestamp_of(self, ordinal: int) -> int:
        """The instant of a retained row."""
        for part, first, _ in self.ranges(ordinal, ordinal + 1):
            return int(part.timestamp[first])
        raise IndexError(ordinal)

    def ranges(self, start: int, stop: int) -> Iterator[tuple[SegmentView, int, int]]:
        """(part, first, last): the places of these ordinals in each part that has any, ascending.

        O(log parts + parts that have any).
        """
        for number in range(max(0, bisect_right(self.parts, start, key=_first) - 1), len(self.parts)):
            part = self.parts[number]
            first, last = max(0, start - part.first), min(part.n, stop - part.first)
            if first < last:
                yield part, first, last
            elif stop <= part.first:
                break

    def slices(self, start: int, stop: int) -> Iterator[tuple[int, Batch]]:
        """(ordinal of the first row, rows) of these ordinals."""
        for part, first, last in self.ranges(start, stop):
            yield part.first + first, part.batch(self.schema).slice(first, last)
