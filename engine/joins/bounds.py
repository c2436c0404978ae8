"""Which rows may still meet: the windows of all queries of a shape, as far back as the widest reaches.

A row of an input is *in reach* at an instant if some query's window may hold it then or later. For windows
that move on with NOW that is from an ordinal on, which only grows: the greatest of those bounds over the
instants of all parts, hence the one at the instant of the latest part, decides whether a combination is ever
in an answer. Windows of constant ends hold rows as long as they are retained, so do [UNBOUNDED], row windows
with keys or a condition, and what is not windowed at all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from engine.kernels import joins
from engine.model.batch import Int64Array
from engine.stems.rows import Rows
from engine.windows.clauses import RowWindow, Window


@dataclass(frozen=True, slots=True)
class Reach:
    """How far back one input is needed. begin_ms: from this instant on; behind_ms: that far behind an
    instant; rows: the last so many at an instant; None each where no window says so. everything: all that is
    retained.
    """

    everything: bool = False
    begin_ms: int | None = None
    behind_ms: int | None = None
    rows: int | None = None

    @classmethod
    def of(cls, window: Window) -> Reach:
        """The reach of one window."""
        if isinstance(window, RowWindow):
            return cls(rows=window.rows) if window.plain else cls(everything=True)
        if window.begin is None:
            return cls(everything=True)
        if window.begin.relative:
            return cls(behind_ms=window.reach_ms)
        return cls(begin_ms=window.begin.ms)

    @classmethod
    def widest(cls, reaches: Iterable[Reach]) -> Reach:
        """What all of them need together."""
        every = list(reaches)
        begins = [each.begin_ms for each in every if each.begin_ms is not None]
        behind = [each.behind_ms for each in every if each.behind_ms is not None]
        rows = [each.rows for each in every if each.rows is not None]
        return cls(
            any(each.everything for each in every),
            min(begins, default=None),
            max(behind, default=None),
            max(rows, default=None),
        )

    def covers(self, other: Reach) -> bool:
        """Whether nothing that the other needs is beyond this one."""
        return self.everything or Reach.widest((self, other)) == self

    def floor(self, rows: Rows, end: int, now_ms: int) -> int:
        """The first ordinal in reach at an instant when ``end`` rows are visible. O(log rows)."""
        floor = end
        if self.begin_ms is not None:
            floor = min(floor, rows.first_at_or_after(self.begin_ms))
        if self.behind_ms is not None:
            floor = min(floor, rows.first_at_or_after(now_ms - self.behind_ms))
        if self.rows is not None:
            floor = min(floor, end - self.rows)
        return rows.base if self.everything else max(rows.base, floor)

    def floors(self, rows: Rows, instants: Int64Array, out: Int64Array) -> None:
        """Write the first ordinal in reach, as :meth:`floor` has it, at each of some ascending instants.

        out: int64[n], one an instant. O(n + rows between the bounds).
        """
        out[:] = rows.base if self.everything else joins.NEVER
        if self.everything:
            return
        if self.rows is not None:
            _bisect(rows, instants, 1, out)
            out -= self.rows
        if self.begin_ms is not None:
            np.minimum(out, rows.first_at_or_after(self.begin_ms), out=out)
        if self.behind_ms is not None:
            _bisect(rows, instants, -self.behind_ms, out)


class NeededReaches:
    """What all queries of a shape need of its inputs. timeless: inputs of which all that is retained is
    needed, whatever the windows.
    """

    def __init__(self, timeless: Sequence[bool]) -> None:
        self.timeless = timeless
        self._held: list[Counter[Reach]] = [Counter() for _ in timeless]
        self._widest: tuple[Reach, ...] | None = None

    def count(self, windows: Sequence[Window], by: int) -> None:
        """A query comes (1) or goes (-1). windows: of each input."""
        for held, window in zip(self._held, windows, strict=True):
            reach = Reach.of(window)
            held[reach] += by
            if not held[reach]:
                del held[reach]
        self._widest = None

    def widest(self) -> tuple[Reach, ...]:
        """What is needed of each input now."""
        if self._widest is None:
            self._widest = tuple(
                Reach(everything=True) if timeless else Reach.widest(held)
                for held, timeless in zip(self._held, self.timeless, strict=True)
            )
        return self._widest


def timestamps(rows: Rows, start: int, stop: int) -> Int64Array:
    """int64[stop - start]: the instants of these rows."""
    found = [part.timestamp[first:last] for part, first, last in rows.ranges(start, stop)]
    if len(found) == 1:
        return found[0]
    return np.concatenate(found) if found else np.empty(0, np.int64)


def _bisect(rows: Rows, instants: Int64Array, shift: int, out: Int64Array) -> None:
    """out[i] = min(out[i], the first ordinal at or after instants[i] + shift)."""
    if not len(instants):
        return
    start = rows.first_at_or_after(int(instants[0]) + shift)
    stop = rows.first_at_or_after(int(instants[-1]) + shift)
    joins.first_at_or_after(instants, shift, timestamps(rows, start, stop), start, out)
