"""Which combinations that a probe finds are kept: those that some query wants as a whole.

Either all of them, or, for queries that came, those that nobody wanted before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from engine.joins.lineage import AddedMarks, MarksView
from engine.joins.steps import NO_TABLE, Ends
from engine.kernels import join_lineage, key_table
from engine.model.batch import Int32Array, Int64Array


class WantedParts:
    """Says which combinations of one driving input are kept. The marks are held as long as it is."""

    def __init__(
        self, driver: int, now: Sequence[MarksView], added: AddedMarks | None = None, others: int = 0
    ) -> None:
        """added: only combinations that nobody wanted before, of rows of the driving input that are wanted by
        more, and of none such of the inputs others .. driver-1.
        """
        self._driver = driver
        self._others = others
        self._driving = now[driver] if added is None else added.came[driver]
        self._came = -1 if added is None else driver
        before, came = (now, now) if added is None else (added.before, added.came)
        self._held = now, before, came  # the kernel has addresses: they are kept alive
        self._marks: Int64Array = np.array(list(map(_addresses, now, before, came)), np.int64)

    def keep(self, parts: Int32Array, begin: int, count: int, origin: Int64Array) -> int:
        """As :func:`engine.kernels.join_lineage.keep_wanted`."""
        return join_lineage.keep_wanted(parts, begin, count, origin, self._marks, self._came, self._others)

    def ends(self, end_of: Callable[[int, int], Ends], start: int, stop: int) -> Callable[[int, int], Ends]:
        """The ends of edges, of which those of the driving input have its rows start .. stop-1 as far as they
        are wanted.
        """

        def narrowed(number: int, place: int) -> Ends:
            ends = end_of(number, place)
            if place != self._driver:
                return ends
            first, last = start - ends.first, stop - ends.first
            wanted = self._driving.of(start, stop) != 0
            back = np.where(wanted, ends.back[first:last], np.int32(key_table.ABSENT))
            return Ends(ends.keys[first:last], back, NO_TABLE, start, 0)

        return narrowed


def _addresses(now: MarksView, before: MarksView, came: MarksView) -> tuple[int, int, int, int]:
    """A line of marks, as :mod:`engine.kernels.join_lineage` has them: all from one ordinal on."""
    first, last = came.first, _address(now, came.first)
    if now is came:
        return last, last, last, first
    return last, _address(before, first), _address(came, first), first


def _address(marks: MarksView, first: int) -> int:
    return marks.marks.ctypes.data + 8 * (first - marks.first)
