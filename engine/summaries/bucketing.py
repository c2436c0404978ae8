"""Which bucket a value is in, and where it is counted there: by the layouts of a summary, of which one may be
learned from its rows.
"""

from __future__ import annotations

import numpy as np

from engine.model.batch import Column, Int64Array
from engine.model.summary import SummaryDefinition
from engine.summaries.layouts import Layout, Learning
from engine.summaries.summary_type import Float64Array, Places, SummaryType, ValueKeys
from engine.summaries.value_keys import ValueHashes, without_value


class Bucketing:
    """Where one summary counts values. One writer; what it returns is not changed later."""

    def __init__(self, definition: SummaryDefinition, technique: SummaryType) -> None:
        settings = self._settings = definition.settings
        self._technique = technique
        self._hashes = ValueHashes()
        # By hash, then, where one is learned, that which rows have since: ``zones.layout`` are places among
        # them. Rows that enter now have the last one.
        self.layouts: tuple[Layout, ...] = (Layout(settings.buckets),)
        self._has_positions = settings.kind == "histogram" or settings.bucket_function == "range"
        # None: there is nothing to learn, or nothing any more.
        self.learning = Learning(definition.granularity_ms) if self._has_positions else None

    def keys(self, values: Column) -> ValueKeys:
        """The keys of values of the attribute, or of what is compared with it. O(n)."""
        hashes = self._hashes.hashes(values)
        positions = self._hashes.positions(values) if self._has_positions else np.empty(0)
        bucket = self.layouts[-1].bucket_of(hashes, positions)
        missing = without_value(values)
        if missing is not None:
            bucket[missing] = self._settings.buckets
        return ValueKeys(hashes, bucket, positions)

    def places(self, keys: ValueKeys, layout: int) -> Places:
        """layout: place of one; -1: the last, by which the keys' buckets are."""
        by = self.layouts[layout]
        if by is self.layouts[-1]:
            return self._technique.places(keys, keys.bucket, by)
        missing = keys.bucket == self._settings.buckets
        bucket = np.where(missing, keys.bucket, by.bucket_of(keys.hash, keys.position))
        return self._technique.places(keys, bucket, by)

    def cuts(self) -> Float64Array | None:
        """float64[buckets - 1], ascending: in zones whose ``layout`` is 1 a value is in bucket i where i of
        them are at or below its position. None: buckets are by hash.
        """
        return self.layouts[-1].cuts

    def learn(self, keys: ValueKeys) -> None:
        """Rows of the last layout come. O(n)."""
        if self.learning is not None:
            there = keys.bucket < self._settings.buckets
            self.learning.take(keys.position, keys.hash, there)

    def end_of_layout(self, timestamp: Int64Array, at: int) -> int:
        """The end of rows ``at`` and on that have the same layout; one is learned when its time is over."""
        learning, settings = self.learning, self._settings
        if learning is None:
            return len(timestamp)
        if learning.until_ms is not None and timestamp[at] >= learning.until_ms:
            if learning.seen:
                is_range = settings.bucket_function == "range"
                intervals = settings.sketch_width if settings.kind == "histogram" else 0
                self.layouts += (learning.learned(settings.buckets, is_range=is_range, intervals=intervals),)
                self.learning = None
                return len(timestamp)
            learning.until_ms = None
        if learning.until_ms is None:
            learning.until_ms = learning.end_of(int(timestamp[at]))
        return int(timestamp.searchsorted(learning.until_ms))
