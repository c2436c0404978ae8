"""The entries of a set over one stream as rows come and go: offered, grown, cut, lapsed, and all counted.

What was visited, is left, lapsed or was cut is all that was offered.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from engine.model.batch import Int32Array, Int64Array
from engine.promising.group import GroupCounts
from engine.promising.row_entries import RowEntries, gaps, stale
from engine.promising.selection_members import mask_of
from engine.summaries.summary import Summary

Words = npt.NDArray[np.uint64]


class RowSet:
    """See the module. summary: knows the rows of each bucket. words: of members' bits."""

    def __init__(self, summary: Summary, words: int) -> None:
        self._summary = summary
        self.entries = RowEntries.none(words)
        self.counts = GroupCounts()

    def __len__(self) -> int:
        return len(self.entries)

    @property
    def nbytes(self) -> int:
        """Bytes of the entries."""
        return self.entries.nbytes

    def widen(self, words: int) -> None:
        """Make room for the bits of more members."""
        self.entries = self.entries.widened(words)

    def refresh(self) -> None:
        """All priorities are to be told anew."""
        self.entries = replace(self.entries, standing=stale(self.entries.standing))

    # --- rows that go -----------------------------------------------------------------------------

    def keep(self, entries: RowEntries, floor: Int64Array | None = None) -> None:
        """Let go of the entries that nobody looks for, and of rows below these ordinals, one an entry."""
        held = np.asarray(entries.wanted.any(axis=1))
        lapsed, rows_lapsed = int(np.count_nonzero(~held)), int(entries.left[~held].sum())
        if not held.all():
            entries = entries.take(held)
            floor = None if floor is None else floor[held]
        if floor is not None and (across := np.flatnonzero(floor > entries.first)).size:
            some = entries.take(across)
            cursor = np.maximum(some.cursor, floor[across])
            listed = self._summary.rows_of_many(some.bucket, cursor, some.end)
            left = np.diff(listed.offsets)
            rows_lapsed += int((some.left - left).sum())
            there = left > 0
            cursor[there] = listed.rows[listed.offsets[:-1][there]]
            rows, cursors, firsts = entries.rows.copy(), entries.cursor.copy(), entries.first.copy()
            rows[across] = some.done + left
            cursors[across] = firsts[across] = cursor
            entries = replace(entries, rows=rows, cursor=cursors, first=firsts)
            empty = np.asarray(entries.rows == entries.done)
            lapsed += int(np.count_nonzero(empty))
            entries = entries.take(~empty) if empty.any() else entries
        self.entries = entries
        counts = self.counts
        self.counts = replace(
            counts, lapsed=counts.lapsed + lapsed, rows_lapsed=counts.rows_lapsed + rows_lapsed
        )

    def cut(self, gone: npt.NDArray[np.bool_]) -> RowEntries:
        """Entries are cut, bool[n]; returns them."""
        cut = self.entries.take(gone)
        self.entries = self.entries.take(~gone)
        counts = self.counts
        self.counts = replace(
            counts, cut=counts.cut + len(cut), rows_cut=counts.rows_cut + int(cut.left.sum())
        )
        return cut

    # --- rows that come ---------------------------------------------------------------------------

    def offer(self, bucket: int, first: int, end: int, bits: Words, now_ms: int) -> None:
        """Rows of a bucket are offered: those that entries have already to their entries' others, too."""
        entries = self.entries
        mine = np.flatnonzero(entries.bucket == bucket)
        mine = mine[np.argsort(entries.cursor[mine])]
        met = mine[(entries.end[mine] > first) & (entries.cursor[mine] < end)]
        if len(met):
            wanted, standing = entries.wanted.copy(), entries.standing.copy()
            wanted[met] |= bits
            standing[met] = stale(standing[met])
            self.entries = replace(entries, wanted=wanted, standing=standing)
        starts, ends = gaps(first, end, entries.cursor[mine], entries.end[mine])
        for one, other in zip(starts.tolist(), ends.tolist(), strict=True):
            buckets = np.array([bucket], np.int32)
            self.put(buckets, one, other, bits[None, :], now_ms)

    def put(self, buckets: Int32Array, first: int, end: int, bits: Words, now_ms: int) -> None:
        """Entries of the rows of buckets in a range, zone by zone, for the members of each bucket.

        An entry that ends where the range begins grows where it is of the same zone and members.
        """
        zones = self._summary.zones
        zone = np.flatnonzero((zones.end > first) & (zones.first < end))
        n = len(buckets)
        bucket = np.tile(buckets, len(zone))
        begins = np.repeat(np.maximum(zones.first[zone], first), n)
        ends = np.repeat(np.minimum(zones.end[zone], end), n)
        listed = self._summary.rows_of_many(bucket, begins, ends)
        rows = np.diff(listed.offsets)
        wanted = np.tile(bits, (len(zone), 1))
        taken = self._grown(bucket, begins, ends, rows, wanted, now_ms)
        some = np.flatnonzero((rows > 0) & ~taken)
        made = RowEntries.made(
            bucket[some], listed.rows[listed.offsets[some]], ends[some], rows[some], now_ms, wanted[some]
        )
        self.entries = RowEntries.together([self.entries, made]) if len(made) else self.entries
        counts = self.counts
        self.counts = replace(counts, entries=counts.entries + len(made), rows=counts.rows + int(rows.sum()))

    def _grown(
        self,
        bucket: Int32Array,
        begins: Int64Array,
        ends: Int64Array,
        rows: Int64Array,
        wanted: Words,
        now_ms: int,
    ) -> npt.NDArray[np.bool_]:
        """Let entries grow by ranges that follow them in their zones; returns which ranges they took in."""
        entries, taken = self.entries, np.zeros(len(bucket), np.bool_)
        open_ = np.flatnonzero(np.isin(entries.end, begins))
        if not len(open_):
            return taken
        zones = self._summary.zones
        at = {
            (int(b), int(begin)): place for place, (b, begin) in enumerate(zip(bucket, begins, strict=True))
        }
        end, count = entries.end.copy(), entries.rows.copy()
        queued, standing = entries.queued_ms.copy(), entries.standing.copy()
        zone_first = zones.first[zones.first.searchsorted(entries.end[open_], "right") - 1]
        for entry, first in zip(open_.tolist(), zone_first.tolist(), strict=True):
            place = at.get((int(entries.bucket[entry]), int(entries.end[entry])))
            if place is None or entries.first[entry] < first:
                continue
            if not np.array_equal(entries.wanted[entry], wanted[place]):
                continue
            taken[place] = True
            end[entry] = ends[place]
            if rows[place]:
                count[entry] += rows[place]
                queued[entry] = now_ms
                standing[entry : entry + 1] = stale(standing[entry : entry + 1])
        self.entries = replace(entries, end=end, rows=count, queued_ms=queued, standing=standing)
        return taken

    # --- rows that are visited --------------------------------------------------------------------

    def advance(self, places: Int64Array, rows: Int64Array, last: Int64Array) -> None:
        """Entries at these places had so many of their rows visited, up to the last one, an ordinal."""
        entries = self.entries
        cursor, done = entries.cursor.copy(), entries.done.copy()
        cursor[places] = last + 1
        done[places] += rows
        self.entries = replace(entries, cursor=cursor, done=done)
        finished = np.asarray(self.entries.left == 0)
        if finished.any():
            self.entries = self.entries.take(~finished)
        counts = self.counts
        self.counts = replace(
            counts,
            done=counts.done + int(np.count_nonzero(finished)),
            visited=counts.visited + int(rows.sum()),
        )

    def _check(self) -> None:
        self.entries._check()
        counts, entries = self.counts, self.entries
        left = int(entries.left.sum())
        assert counts.rows == counts.visited + left + counts.rows_cut + counts.rows_lapsed
        assert counts.entries == counts.done + len(entries) + counts.cut + counts.lapsed
        offsets = self._summary.rows_of_many(entries.bucket, entries.cursor, entries.end).offsets
        assert (np.diff(offsets) == entries.left).all()


def lost_below(entries: RowEntries, ends: Int64Array, wanted: Words, lost_end: Int64Array) -> None:
    """Rows of entries below these ordinals are let go unvisited, whatever window holds them.

    wanted: uint64[n, words], who loses them. lost_end: int64[members], raised.
    """
    gone = np.flatnonzero(ends > entries.cursor)
    if len(gone):
        below = np.where(mask_of(wanted[gone]), np.minimum(ends, entries.end)[gone, None], 0)
        np.maximum(lost_end, below.max(axis=0), out=lost_end)
