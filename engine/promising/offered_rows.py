"""Rows that come before a group over one stream, and that leave it: what its members are offered.

A row is offered once to each member that may take it, as part of an entry of its cell: those that just came
to all, those that were there to members that come.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from engine.model.batch import Int64Array
from engine.operators.scan import ScanAt
from engine.promising.left_estimates import LeftEstimates
from engine.promising.named_values import NamedValues
from engine.promising.row_entries import RowEntries
from engine.promising.row_set import RowSet, lost_below
from engine.promising.selection_members import SelectionMembers, bits_of
from engine.summaries.summary import Summary
from engine.windows.clauses import TimeWindow

Words = npt.NDArray[np.uint64]


class OfferedRows:
    """See the module. members: come and go by :meth:`changed`."""

    def __init__(self, members: SelectionMembers, summary: Summary) -> None:
        self.members = members
        self._summary = summary
        self.begin_anew()

    def begin_anew(self) -> None:
        """Nothing is offered yet."""
        self.set = RowSet(self._summary, self.members.words)
        # The ordinal after the last row that was offered; None: none was yet.
        self.mark: int | None = None
        self.changed()

    def changed(self) -> None:
        """Members came or went."""
        self._named: NamedValues | None = None
        self.set.widen(self.members.words)

    @property
    def named(self) -> NamedValues:
        """The values that members name."""
        layouts = len(self._summary.bucketing.layouts)
        if self._named is None or self._named.wanted.shape[1] != layouts:
            self._named = NamedValues.of(self.members, self._summary)
        return self._named

    def withdraw(self, number: int) -> None:
        """A member goes, and entries that it alone looked for."""
        entries = self.set.entries
        self.set.keep(replace(entries, wanted=entries.wanted & ~self.members.bits([number])))

    def arrive(self, scan_at: ScanAt, now_ms: int) -> None:
        """Move the windows, and offer the rows that became visible since."""
        self._let_go(scan_at, now_ms)
        zones = self._summary.zones
        reach = int(zones.first[0]) if len(zones.first) else scan_at.end
        end = min(scan_at.end, int(zones.end[-1])) if len(zones.end) else scan_at.end
        base = max(reach, scan_at.rows.base)
        mark = base if self.mark is None else min(max(base, self.mark), end)
        if self.mark is None or self.mark < base:
            self._pass_over(list(self.members.number.values()), base)
        self._offer_former(now_ms, base, mark)
        if mark < end:
            self._offer_new(mark, end, now_ms)
        self.mark = end

    def _pass_over(self, numbers: list[int], base: int) -> None:
        """Rows below this ordinal are beyond the reach of the summary, and are not offered to these."""
        learnt = self.members.learnt
        for number in numbers:
            if learnt.floor[number] < base:
                learnt.lost_end[number] = max(int(learnt.lost_end[number]), base)

    def drop_below(self, ordinal: int) -> None:
        """Rows below this ordinal are gone."""
        entries = self.set.entries
        floor = np.full(len(entries), ordinal)
        gone = entries.end <= ordinal
        wanted = np.where(gone[:, None], np.uint64(0), entries.wanted)
        self.set.keep(replace(entries, wanted=wanted), floor)
        self.mark = None if self.mark is None else max(self.mark, ordinal)

    def left_in_windows(self) -> Iterator[tuple[Words, Int64Array]]:
        """The members with each window, and int64[entries], the rows that are left in it."""
        entries, members = self.set.entries, self.members
        for numbers in members.by_window().values():
            floor = members.learnt.floor[numbers[0]]
            left = entries.left.copy()
            across = np.flatnonzero(entries.cursor < floor)
            if len(across):
                some = entries.take(across)
                first = np.full(len(some), floor)
                left[across] = np.diff(self._summary.rows_of_many(some.bucket, first, some.end).offsets)
            yield members.bits(numbers), left

    def _let_go(self, scan_at: ScanAt, now_ms: int) -> None:
        """Move the windows; entries, or the beginnings of some, leave them."""
        members, entries = self.members, self.set.entries
        zones = self._summary.zones
        reach = int(zones.first[0]) if len(zones.first) else scan_at.end
        lapsed = now_ms - entries.queued_ms >= self._summary.definition.granularity_ms
        floor = np.full(len(entries), np.iinfo(np.int64).max)
        wanted = entries.wanted.copy()
        for window, numbers in members.by_window().items():
            start = scan_at.window(members.scan_of(numbers[0])).start
            members.learnt.floor[numbers] = start
            mask = members.bits(numbers)
            ends = np.full(len(entries), max(start, reach))
            if not isinstance(window, TimeWindow) or window.reach_ms is None:
                ends = np.where(lapsed, entries.end, ends)
            if (ends > start).any():
                self.lose(entries, ends, wanted & mask)
            wanted[entries.end <= ends] &= ~mask
            looking = (wanted & mask).any(axis=1)
            floor[looking] = np.minimum(floor, ends)[looking]
        self.set.keep(replace(entries, wanted=wanted), floor)
        learnt = members.learnt
        learnt.lost[learnt.lost_end <= learnt.floor] = 0.0

    def lose(self, entries: RowEntries, ends: Int64Array, wanted: Words) -> None:
        """Rows of entries below these ordinals are let go unvisited, whatever window holds them. wanted: who
        loses them.
        """
        learnt = self.members.learnt
        gone = np.flatnonzero((ends > entries.cursor) & wanted.any(axis=1))
        if not len(gone):
            return
        lost_below(entries, ends, wanted, learnt.lost_end)
        some = replace(entries.take(gone), wanted=wanted[gone])
        last = np.minimum(ends[gone], some.end)
        rows = np.diff(self._summary.rows_of_many(some.bucket, some.cursor, last).offsets)
        every = self.members.bits(list(self.members.number.values()))
        learnt.lost += LeftEstimates.of(some, [(every, rows)], self.members, self.named, self._summary).total

    def _offer_former(self, now_ms: int, base: int, mark: int) -> None:
        """Rows that are there already are offered to members that just came."""
        members = self.members
        fresh, members.fresh = sorted(members.fresh), set()
        if not fresh:
            return
        floor = members.learnt.floor
        self._pass_over(fresh, base)
        coming = np.zeros(members.size, np.bool_)
        coming[fresh] = True
        for layout, first, end in self._stretches(base, mark):
            wanted = self.named.wanted[:, layout] & coming[:, None]
            for bucket in np.flatnonzero(wanted.any(axis=0)).tolist():
                start = max(first, int(floor[wanted[:, bucket]].min()))
                if start < end:
                    self.set.offer(bucket, start, end, bits_of(wanted[:, bucket]), now_ms)

    def _offer_new(self, mark: int, end: int, now_ms: int) -> None:
        """Rows that just came, and that some window holds, are offered to all."""
        floor = self.members.learnt.floor[list(self.members.number.values())]
        mark = max(mark, int(floor.min(initial=end)))
        for layout, first, stop in self._stretches(mark, end):
            wanted = self.named.wanted[:, layout]
            buckets = np.flatnonzero(wanted.any(axis=0)).astype(np.int32)
            if len(buckets):
                bits = bits_of(np.ascontiguousarray(wanted[:, buckets].T))
                self.set.put(buckets, first, stop, bits, now_ms)

    def _stretches(self, first: int, end: int) -> Iterator[tuple[int, int, int]]:
        """(layout, first, end): the parts of first .. end whose zones have one layout, in order."""
        zones = self._summary.zones
        met = np.flatnonzero((zones.end > first) & (zones.first < end))
        for run in np.split(met, np.flatnonzero(np.diff(zones.layout[met])) + 1):
            if len(run):
                low, high = int(zones.first[run[0]]), int(zones.end[run[-1]])
                yield int(zones.layout[run[0]]), max(first, low), min(end, high)
