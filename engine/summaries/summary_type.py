"""What a summarisation technique is to the engine: five functions over counters, and nothing else.

Summarize, Estimate, Confidence, Add and Subtract, as the paper has them (section 3.2). All counters are
integers, so Add and then Subtract of the same restores the counters to the bit, in any order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from engine.kernels.sketches import ZoneTally
from engine.model.batch import Int32Array, Int64Array

if TYPE_CHECKING:
    from engine.kernels.descents import CandidateRoom, Forest
    from engine.summaries.layouts import Layout

HashArray = npt.NDArray[np.uint64]
Float64Array = npt.NDArray[np.float64]


class ValueKeys(NamedTuple):
    """What a summary goes by of n values.

    hash: uint64[n], equal for equal values. bucket: int32[n], as rows that enter now have it;
    ``settings.buckets`` where the value is NULL or NaN. position: float64[n], in the order of the values, for
    a summary that learns a layout; float64[0] for others.
    """

    hash: HashArray
    bucket: Int32Array
    position: Float64Array

    def part(self, rows: slice) -> ValueKeys:
        """The keys of some of the values."""
        return ValueKeys(self.hash[rows], self.bucket[rows], self.position[rows])


class Places(NamedTuple):
    """Where n values are counted in the cells of one layout.

    counters: int32[n, t], see engine.kernels.sketches. bucket: int32[n]. share: int32[n], how many values are
    counted by the counters of value i.
    """

    counters: Int32Array
    bucket: Int32Array
    share: Int32Array


class ZoneCells(NamedTuple):
    """The cells of some zones. counters: int32[zones, buckets, size]; rows: int32[zones, buckets + 1], the
    last of rows without a value.
    """

    counters: Int32Array
    rows: Int32Array


class SummaryType(Protocol):
    """A technique of summarisation. Cells are those of one zone, or of an upper cell of a pyramid, but for
    Estimate.
    """

    @property
    def depth(self) -> int:
        """Counters that one value meets, t."""

    @property
    def size(self) -> int:
        """Counters of a cell."""

    def places(self, keys: ValueKeys, bucket: Int32Array, layout: Layout) -> Places:
        """Where values are counted, whose buckets in the layout are these."""

    def summarize_keys(
        self,
        cells: ZoneCells,
        tally: ZoneTally,
        keys: ValueKeys,
        layout: Layout,
        rows: slice,
        theta: float,
        rows_min: int,
    ) -> int:
        """As :meth:`summarize`, of values whose places nobody needs besides. The layout is that of their
        buckets.
        """

    def summarize(
        self, cells: ZoneCells, tally: ZoneTally, places: Places, rows: slice, theta: float, rows_min: int
    ) -> int:
        """Enter rows one by one into the cells of one zone until its confidence falls below theta.

        Returns the row after the one at which it fell, or -1: all rows are in. Raises OverflowError.
        """

    def estimate(self, cells: ZoneCells, places: Places, slots: Int64Array) -> Int32Array:
        """int32[n, zones]: of each value, the rows in its cell of the zones in these slots."""

    def search(self, cells: ZoneCells, places: Places, forest: Forest, out: CandidateRoom) -> int:
        """Estimate from upper cells down, where they say that a value is; returns how many were written."""

    def confidence(self, tally: ZoneTally, rows_min: int) -> float:
        """In [0, 1]: how alike the zone is to its own beginning; 1.0 below rows_min rows."""

    def add(self, one: ZoneCells, other: ZoneCells, shift: int = 0) -> None:
        """Merge the other's cells into one's; bucket b of the other is bucket b >> shift of the one.

        Raises OverflowError, one unchanged.
        """

    def subtract(self, one: ZoneCells, other: ZoneCells, shift: int = 0) -> None:
        """Take the other's cells out of one's, which they were added to."""
