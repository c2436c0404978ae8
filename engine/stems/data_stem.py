"""The Data SteM of a stream: its retained visible rows, in (timestamp, partition, offset) order.

Rows enter in that order and get ordinals 0, 1, 2, ... for the life of the stream, so every window is a
range of ordinals, found by bisection. Matches stand beside the rows (:mod:`engine.stems.segment`).
``base <= ordinal < end`` are retained; segments wholly below base are let go.

History comes back below base: as many rows as had gone have their old ordinals again. Of more than that, all
rows move up by :data:`RAISED`, so that no ordinal is ever below 0; this happens once in the life of a stream.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from engine.model.attributes import Attribute
from engine.model.batch import MATCHED_ROWS_MAX, Batch
from engine.model.capacities import USUAL, Capacities
from engine.model.source import Schema
from engine.model.usage import Usage
from engine.stems.entering import EnteringRows
from engine.stems.owed_matches import OwedMatches, RowMatcher, Segments
from engine.stems.packing import Packing
from engine.stems.rows import Rows
from engine.stems.segment import SegmentView, Tail
from engine.stems.spilled_segments import SpilledSegments
from engine.stems.stream_strings import StreamStrings
from engine.store.matches.chunks import CHUNKS, ChunkPool

SEALED_MIN = 1_024
"""An open segment with fewer rows is not sealed to make matches of its rows in slices."""

SPILLED_MIN = 32_768
"""An open segment with fewer rows is not sealed to leave memory."""

RAISED = 1 << 40
"""A multiple of the blocks that partial results are kept of."""


class DataStem:
    """The writing side."""

    def __init__(
        self,
        schema: Schema,
        queries: RowMatcher,
        base: int = 0,
        chunks: ChunkPool = CHUNKS,
        capacities: Capacities = USUAL,
    ) -> None:
        self._capacities = capacities
        self.schema = schema
        self.origin = 0
        self.complete_from_ms: int | None = None
        self.usage = Usage()
        self._queries = queries
        self._chunks = chunks
        self.packing = Packing(chunks)
        self._strings = StreamStrings(schema, capacities)
        queries.revise(queries.cohorts.epoch)
        self._segments = Segments(self._empty_tail(base), base)
        self.owed = OwedMatches(schema, queries, self._segments)
        self.spilled = SpilledSegments(self._segments, self._strings, capacities.spill)

    def _new_tail(self, first: int) -> Tail:
        queries, sealed = self._queries, self._segments.sealed
        queries.revise(min((part.matches.cohorts.epoch for part in sealed), default=queries.cohorts.epoch))
        return self._empty_tail(first)

    def _empty_tail(self, first: int) -> Tail:
        return Tail(
            self.schema, first, self._queries.cohorts, self._chunks, self._strings.tables, self._capacities
        )

    def coded(self, rows: Batch) -> Batch:
        """Rows that are to enter, now or later, their strings by the stream's codes."""
        return self._strings.coded(rows)

    @property
    def base(self) -> int:
        """The ordinal of the first row that is retained."""
        return self._segments.base

    @property
    def end(self) -> int:
        return self._segments.end

    def __len__(self) -> int:
        return self.end - self.base

    def append(self, rows: Batch) -> None:
        """As :meth:`enter`, of a batch that is in order."""
        self.enter(EnteringRows.of(rows))

    def enter(self, rows: EnteringRows) -> None:
        """Rows enter and meet all queries. O(rows * words + candidates)."""
        self.usage.rows_in += len(rows)
        self._strings.make_room(rows.batches)
        if self._segments.tail.columns.strings is not self._strings.tables:
            self._seal()
        start = 0
        while start < len(rows):
            stop = self._fill(self._segments.tail, rows, start)
            if not self._segments.tail.room:
                self._seal()
            self.packing.pack(stop - start)
            start = stop
        self._segments.seen = None

    def _fill(self, tail: Tail, rows: EnteringRows, start: int) -> int:
        """Rows from ``start`` on, some of them, enter a segment; returns where to go on."""
        stop = min(len(rows), start + MATCHED_ROWS_MAX, start + tail.room)
        written = tail.write(rows, start, stop)
        first = tail.first + tail.count
        with self.owed.counting(self.owed.ahead.pieces, first, first + len(written)):
            later = self.owed.postponed.later()
            modules = [module for each in later for module in each.modules]
            pairs = self._queries.match(written, tail.bits, tail.count, modules)
            for each in later:
                self.owed.postponed.note(tail, len(written), each)
        tail.take(len(written), pairs)
        return stop

    def _sealed_of(self, tail: Tail) -> SegmentView:
        """The tail as a part, its blocks to be packed."""
        part = tail.seal()
        self.packing.add(part)
        return part

    def _seal(self) -> int:
        """The open segment is full; or no more may enter it, as its strings are of a former generation.
        Returns the bytes that left memory since it is short.
        """
        if self._segments.tail.count:
            self._segments.sealed.append(self._sealed_of(self._segments.tail))
        self._strings.let_go(len(self))
        self._segments.tail = self._new_tail(self.end)
        return self.spilled.make_room()

    def make_room(self) -> int:
        """While memory is short: sealed rows leave it, and where there are none, those of an open segment
        that is half full. Returns the bytes that left. O(segments + bytes).
        """
        freed = self.spilled.make_room()
        if freed or self._segments.tail.count < SPILLED_MIN or not self.spilled.is_due:
            return freed
        self._segments.seen = None
        return self._seal()

    # --- history ----------------------------------------------------------------------------------

    def lack(self, before_ms: int) -> None:
        """Rows of instants before this one may be missing, too."""
        known = self.complete_from_ms
        self.complete_from_ms = before_ms if known is None else max(known, before_ms)
        self._segments.seen = None

    def cut(self, ordinal: int) -> int:
        """Rows below this ordinal are gone, out of the segment that holds it too: its other rows meet all
        queries once more. Returns the first ordinal from which on segments are as they were.
        """
        self._segments.seen = None
        self.owed.ahead.lose()
        self._segments.base = ordinal
        tail, end = self._segments.tail, self.end
        across = [part for part in self._segments.sealed if part.first < ordinal < part.end]
        self._segments.sealed = [part for part in self._segments.sealed if part.first >= ordinal]
        for part in across:
            rows = part.batch(self.schema).slice(ordinal - part.first, part.n)
            self._segments.sealed[:0] = self._matched(ordinal, rows)
        if tail.first < ordinal:
            self._segments.tail = self._new_tail(ordinal)
            if ordinal < end:
                rows = tail.part().batch(self.schema)
                self.append(rows.slice(ordinal - tail.first, tail.count))
            return end
        return max((part.end for part in across), default=ordinal)

    def prepend(self, rows: Batch) -> None:
        """Rows come before the first, which no segment reaches below, and meet all queries.

        O(rows * words + candidates + segments).
        """
        first = self.base - len(rows)
        self._segments.sealed[:0] = self._matched(first, rows)
        self._segments.base = first
        self._segments.seen = None

    def _matched(self, first: int, rows: Batch) -> list[SegmentView]:
        """Sealed segments of rows from this ordinal on."""
        parts = []
        start = 0
        entering = EnteringRows.of(rows)
        self._strings.make_room(entering.batches)
        while start < len(rows):
            tail = self._empty_tail(first + start)
            while start < len(rows) and tail.room:
                start = self._fill(tail, entering, start)
            parts.append(self._sealed_of(tail))
        return parts

    def rise(self) -> None:
        """All rows get ordinals that are higher by :data:`RAISED`. O(segments)."""
        self.owed.ahead.lose()
        self._segments.sealed = [replace(part, first=part.first + RAISED) for part in self._segments.sealed]
        self._segments.tail.rise(RAISED)
        self._segments.base += RAISED
        self.origin += RAISED
        self._segments.seen = None

    # --- old rows ---------------------------------------------------------------------------------

    def come_ahead(self, slots: Sequence[int]) -> None:
        """As :meth:`engine.stems.owed_matches.OwedMatches.come_ahead`; an open segment with more than a few
        rows is sealed first.
        """
        if self._segments.tail.count >= SEALED_MIN:
            self._seal()
            self._segments.seen = None
        self.owed.come_ahead(slots)

    def drop_below(self, base: int) -> None:
        """Rows below this ordinal are gone. Never moves back."""
        if base <= self.base:
            return
        self._segments.base = base
        self.owed.postponed.drop_below(base)
        self._segments.sealed = [part for part in self._segments.sealed if part.end > base]
        self._segments.seen = None

    def clear(self) -> None:
        """All rows are gone, and their strings."""
        self._strings.clear()
        self.owed.ahead.lose()
        self.owed.postponed.clear()
        self._segments.base = self.end
        self._segments.sealed = []
        self._segments.tail = self._new_tail(self.base)
        self._segments.seen = None

    def rows(self) -> Rows:
        """What readers may see now; the same object until something changes."""
        segments = self._segments
        if segments.seen is None:
            segments.seen = Rows(
                self.schema,
                segments.parts(),
                self.base,
                self.end,
                origin=self.origin,
                complete_from_ms=self.complete_from_ms,
            )
        return segments.seen

    def sealed_from(self, ordinal: int) -> list[SegmentView]:
        """Sealed segments that hold rows at or after this ordinal."""
        return [part for part in self._segments.sealed if part.end > ordinal]

    def restore(self, first: int, rows: Batch) -> None:
        """Stored rows come back; the first call decides where the ordinals begin.

        No segment ends amid rows that are stored as one, so that it can take the place of stored ones.
        """
        if not self._segments.sealed and not self._segments.tail.count:
            self._segments.tail = self._new_tail(first)
        elif len(rows) > self._segments.tail.room:
            self._seal()
        self.append(rows)

    def nbytes(self) -> tuple[int, int]:
        """Bytes of (columns in memory, matches) of the sealed segments."""
        sealed = self._segments.sealed
        return sum(part.nbytes for part in sealed), sum(part.matches.nbytes for part in sealed)

    def attributes(self) -> tuple[Attribute, ...]:
        """What can be read of this module."""
        columns, matches = self.nbytes()
        spilled = sum(part.is_spilled for part in self._segments.sealed)
        return (
            Attribute("rows", len(self), "visible rows retained"),
            Attribute("segments", len(self._segments.sealed), "sealed segments"),
            Attribute("spilled", spilled, "of them segments whose columns are on disk"),
            Attribute("column_bytes", columns, "bytes of the columns of the others"),
            Attribute("match_bytes", matches, "bytes of their matches"),
        )

    def _check(self) -> None:
        ordinal: int | None = None
        before: int | None = None
        for part in self.rows().parts:
            assert ordinal is None or part.first == ordinal
            part.matches._check(part.n)
            stamps = part.timestamp[: part.n]
            assert before is None or before <= stamps[0]
            assert bool((np.diff(stamps) >= 0).all())
            ordinal, before = part.end, int(stamps[-1])
        assert self.base <= self.end
