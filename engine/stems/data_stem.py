"""The Data SteM of a stream: its retained visible rows, in (timestamp, partition, offset) order.

Rows enter in that order and get ordinals 0, 1, 2, ... for the life of the stream, so every window is a
range of ordinals, found by bisection. Matches stand beside the rows (:mod:`engine.stems.segment`).
``base <= ordinal < end`` are retained; segments wholly below base are let go.

History comes back below base: as many rows as had gone have their old ordinals again. Of more than that, all
rows move up by :data:`RAISED`, so that no ordinal is ever below 0; this happens once in the life of a stream.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Collection, Iterator, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import islice
from operator import attrgetter
from typing import Protocol

import numpy as np

from engine.model.attributes import Attribute
from engine.model.batch import MATCHED_ROWS_MAX, Batch, Int64Array, concatenate
from engine.model.capacities import USUAL, Capacities
from engine.model.source import Schema
from engine.model.usage import Usage
from engine.stems.ahead import Ahead, MatchesInSlices
from engine.stems.entering import EnteringRows
from engine.stems.new_queries import NewMatches, NewQueries
from engine.stems.segment import SegmentView, Tail
from engine.stems.stream_strings import StreamStrings
from engine.store.matches.chunks import CHUNK_WORDS, CHUNKS, ChunkPool
from engine.store.matches.cohorts import Cohorts
from engine.store.matches.row_slots import RowSlots
from engine.store.matches.segment_bits import BitTarget

PACKING_PACE = 2
"""Words of sealed segments are packed so many times as fast as they come."""

CAUGHT_UP_MAX = 64
"""Slots whose matches over a segment are made at a time, where nobody waits for them."""

PIECE_ROWS = 4_096
"""Rows of a segment that meet dear conditions at a time."""

SEALED_MIN = 1_024
"""An open segment with fewer rows is not sealed to make matches of its rows in slices."""

RAISED = 1 << 40
"""A multiple of the blocks that partial results are kept of."""


_first = attrgetter("first")


class RowMatcher(Protocol):
    """The Query SteM, as rows meet it."""

    errors: Int64Array

    @property
    def cohorts(self) -> Cohorts: ...

    def match(self, rows: Batch, out: BitTarget, start: int) -> RowSlots: ...

    def revise(self, oldest_epoch: int) -> None: ...

    def probe(self, slots: Collection[int], cohorts: Cohorts) -> NewQueries: ...

    def may_err(self, slot: int) -> bool: ...


@dataclass(frozen=True, slots=True)
class Rows:
    """The visible rows as a reader sees them: immutable, with their matches.

    origin: rows below this ordinal never were; below base, where rows have gone or may have.
    whole_from_ms: of instants before this one rows may be missing, whatever is retained; None: of none.
    """

    schema: Schema
    parts: tuple[SegmentView, ...]
    base: int
    end: int
    origin: int = field(default=0, kw_only=True)
    whole_from_ms: int | None = field(default=None, kw_only=True)

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
        whole_ms = self.whole_from_ms
        if retained_from_ms is None or not self.lacks_before(retained_from_ms):
            return whole_ms
        return retained_from_ms if whole_ms is None else max(retained_from_ms, whole_ms)

    def boundary_ms(self, now_ms: int, retained_from_ms: int | None) -> int:
        """All rows at or after this instant are there, up to NOW; of those below perhaps some."""
        first_ms = retained_from_ms
        if first_ms is None:
            first_ms = self.timestamp_of(self.base) if self.base < self.end else now_ms + 1
        whole_ms = first_ms if self.whole_from_ms is None else min(self.whole_from_ms, now_ms + 1)
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
        self.base = base
        self.origin = 0
        self.whole_from_ms: int | None = None
        self.usage = Usage()
        self._queries = queries
        self._sealed: list[SegmentView] = []
        self._chunks = chunks
        self._strings = StreamStrings(schema, capacities)
        self._owes = False
        self.ahead = Ahead()
        """Slots whose queries are still to come."""
        self._in_slices: MatchesInSlices | None = None
        self._unpacked: deque[tuple[SegmentView, int]] = deque()
        self._tail = self._new_tail(base)
        self._rows: Rows | None = None

    def _new_tail(self, first: int) -> Tail:
        queries = self._queries
        queries.revise(min((p.matches.cohorts.epoch for p in self._sealed), default=queries.cohorts.epoch))
        return self._empty_tail(first)

    def _empty_tail(self, first: int) -> Tail:
        return Tail(
            self.schema, first, self._queries.cohorts, self._chunks, self._strings.tables, self._capacities
        )

    def coded(self, rows: Batch) -> Batch:
        """Rows that are to enter, now or later, their strings by the stream's codes."""
        return self._strings.coded(rows)

    @property
    def end(self) -> int:
        return self._tail.first + self._tail.count

    def __len__(self) -> int:
        return self.end - self.base

    def append(self, rows: Batch) -> None:
        """As :meth:`enter`, of a batch that is in order."""
        self.enter(EnteringRows.of(rows))

    def enter(self, rows: EnteringRows) -> None:
        """Rows enter and meet all queries. O(rows * words + candidates)."""
        self.usage.rows_in += len(rows)
        self._strings.make_room(rows.batches)
        if self._tail.strings is not self._strings.tables:
            self._seal()
        start = 0
        while start < len(rows):
            stop = self._fill(self._tail, rows, start)
            if not self._tail.room:
                self._seal()
            self.pack(stop - start)
            start = stop
        self._rows = None

    def _fill(self, tail: Tail, rows: EnteringRows, start: int) -> int:
        """Rows from ``start`` on, some of them, enter a segment; returns where to go on."""
        stop = min(len(rows), start + MATCHED_ROWS_MAX, start + tail.room)
        written = tail.write(rows, start, stop)
        first = tail.first + tail.count
        with self._counting(self.ahead.pieces, first, first + len(written)):
            pairs = self._queries.match(written, tail.bits, tail.count)
        tail.take(len(written), pairs)
        return stop

    @contextmanager
    def _counting(self, slots: Collection[int], first: int, stop: int) -> Iterator[None]:
        """Rows of these ordinals meet slots: note the errors of those that are ahead."""
        ahead = self.ahead.pieces.keys() & slots if self.ahead else ()
        before = self._queries.errors
        yield
        for slot in ahead:
            self.ahead.count(slot, first, stop, int(self._queries.errors[slot] - before[slot]))

    def _sealed_of(self, tail: Tail) -> SegmentView:
        """The tail as a part, its blocks to be packed by :meth:`pack`."""
        part = tail.seal()
        self._unpacked.extend((part, number) for number in range(len(part.matches.bits.blocks)))
        return part

    def pack(self, rows: int) -> None:
        """Pack words of sealed segments, as many as a segment has for as many rows as it has; but of those
        that become lists one or two, unless a whole segment waits.
        """
        self._chunks.tidy()
        if not self._unpacked:
            return
        last, _ = self._unpacked[-1]
        blocks = len(last.matches.bits.blocks)
        for _ in range(-(-PACKING_PACE * CHUNK_WORDS * blocks * rows // len(last.timestamp))):
            if not self._unpacked or not (self._pack_some() or len(self._unpacked) > blocks):
                break

    def _pack_some(self) -> bool:
        """A word of the next block; returns whether the block is done with."""
        part, number = self._unpacked[0]
        done = part.matches.bits.pack(number, part.n)
        if done:
            self._unpacked.popleft()
        return done

    def idle(self) -> bool:
        """Nothing else is to be done: pack a word, or get memory for rows to come. Returns whether there was
        anything to do.
        """
        if self._unpacked:
            self._pack_some()
            return True
        return self._chunks.prepare()

    def _seal(self) -> None:
        """The open segment is full; or no more may enter it, as its strings are of a former generation."""
        if self._tail.count:
            self._sealed.append(self._sealed_of(self._tail))
        self._strings.let_go(len(self))
        self._tail = self._new_tail(self.end)

    # --- history ----------------------------------------------------------------------------------

    def lack(self, before_ms: int) -> None:
        """Rows of instants before this one may be missing, too."""
        known = self.whole_from_ms
        self.whole_from_ms = before_ms if known is None else max(known, before_ms)
        self._rows = None

    def cut(self, ordinal: int) -> int:
        """Rows below this ordinal are gone, out of the segment that holds it too: its other rows meet all
        queries once more. Returns the first ordinal from which on segments are as they were.
        """
        self._rows = None
        self.ahead.lose()
        self.base = ordinal
        tail, end = self._tail, self.end
        across = [part for part in self._sealed if part.first < ordinal < part.end]
        self._sealed = [part for part in self._sealed if part.first >= ordinal]
        for part in across:
            rows = part.batch(self.schema).slice(ordinal - part.first, part.n)
            self._sealed[:0] = self._matched(ordinal, rows)
        if tail.first < ordinal:
            self._tail = self._new_tail(ordinal)
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
        self._sealed[:0] = self._matched(first, rows)
        self.base = first
        self._rows = None

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
        self.ahead.lose()
        self._sealed = [replace(part, first=part.first + RAISED) for part in self._sealed]
        self._tail.rise(RAISED)
        self.base += RAISED
        self.origin += RAISED
        self._rows = None

    # --- new queries ------------------------------------------------------------------------------

    def backfill(self, slots: Sequence[int]) -> None:
        """Queries just came: their matches among the rows of the open segment are made, those of sealed ones
        owed, unless their errors are to be counted.

        O(rows of the open segment * new words + segments * slots), and of those all retained rows.
        """
        erring = [slot for slot in slots if self._queries.may_err(slot)]
        others = set(slots).difference(erring)
        for number, part in enumerate(self._sealed):
            part.matches.owed.update(others)
            if erring:
                self._catch_up(number, erring, self._gone(part))
        self._owes |= bool(others and self._sealed)
        if self._tail.count:
            self._meet_tail(slots)

    def _meet_tail(self, slots: Collection[int]) -> None:
        """The matches of slots that just came among the rows of the open segment."""
        part = self._tail.part()
        gone = self._gone(part)
        queries = self._queries.probe(slots, self._tail.cohorts)
        with self._counting(slots, part.first + gone, part.end):
            found = self._found(part, queries, gone)
        self._tail.backfill(found, queries)
        self._rows = None

    def _found(self, part: SegmentView, queries: NewQueries, first: int) -> NewMatches:
        """The matches of new queries among the rows of a segment from ``first`` on. Of those that have
        conditions no index holds they are made in pieces, since these take long: a timer is read in between.
        """
        rows = self._values(part, queries)
        if not queries.has_residuals or not queries.may_match(part.zones):
            return queries.match(rows, first, part.zones)
        found = MatchesInSlices(part.first, part.n, first, queries)
        while found.at < part.n:
            found.take(queries, rows.slice(found.at, min(part.n, found.at + PIECE_ROWS)))
        return found.found()

    def come_ahead(self, slots: Sequence[int]) -> None:
        """Slots came ahead of their query: their matches among all rows are owed, whether they may err or
        not, and :meth:`catch_up_slice` makes them. O(segments * slots), and of an open segment with few rows
        as :meth:`backfill`.
        """
        for slot in slots:
            self.ahead.come(slot)
        if self._tail.count >= SEALED_MIN:
            self._seal()
            self._rows = None
        for part in self._sealed:
            part.matches.owed.update(slots)
        self._owes |= bool(self._sealed)
        if self._tail.count:
            self._meet_tail(slots)

    def catch_up_slice(self, slots: Collection[int], rows_max: int) -> int:
        """Make matches of slots that are ahead, of so many rows of a segment. Returns how many rows that
        were; 0: all matches are made.
        """
        for number, part in enumerate(self._sealed):
            owed = part.matches.owed.intersection(slots)
            if owed:
                return self._slice(number, owed, rows_max)
        return 0

    def _slice(self, number: int, slots: Collection[int], rows_max: int) -> int:
        part = self._sealed[number]
        queries = self._queries.probe(slots, part.matches.cohorts)
        begun = self._in_slices
        if begun is None or not begun.is_of(part.first, part.n, queries):
            begun = MatchesInSlices(part.first, part.n, self._gone(part), queries)
            self._in_slices = begun
        start = begun.at
        stop = min(part.n, start + rows_max) if queries.may_match(part.zones) else part.n
        if not queries.may_match(part.zones):
            begun.pass_over(stop)
        else:
            with self._counting(slots, part.first + start, part.first + stop):
                begun.take(queries, self._values(part, queries).slice(start, stop))
        if stop == part.n:
            self._in_slices = None
            self._put(number, slots, queries, begun.found())
        return max(1, stop - start)

    def forget_ahead(self, slot: int) -> None:
        """A slot goes; passed over where it was not ahead."""
        self.ahead.forget(slot)
        self._in_slices = None  # another predicate may get the slot

    def left_of(self, slots: Set[int]) -> int:
        """How many rows are left whose matches with some of these slots are owed. O(segments)."""
        owing = [part for part in self._sealed if not part.matches.owed.isdisjoint(slots)]
        left = sum(part.n - self._gone(part) for part in owing)
        begun = self._in_slices
        if begun is not None and owing and begun.first == owing[0].first and slots >= set(begun.slots):
            left -= begun.at - self._gone(owing[0])
        return max(0, left)

    def errors_ahead(self, slot: int) -> int:
        """The query of a slot comes: how many errors it met among the rows that are retained. Its matches are
        made. O(segments), and those rows where it is not known.
        """
        pieces = self.ahead.pieces.pop(slot)
        if pieces is None:
            return self._errors_among(slot, self.base, self.end)
        count = 0
        for piece in pieces:
            if piece.first >= self.base:
                count += piece.errors
            elif piece.stop > self.base:
                count += self._errors_among(slot, self.base, piece.stop)
        return count

    def _errors_among(self, slot: int, start: int, stop: int) -> int:
        """Errors among the rows of these ordinals, which are not counted again."""
        known = self._queries.errors
        for part, first, last in self.rows().ranges(start, stop):
            queries = self._queries.probe([slot], part.matches.cohorts)
            queries.meet(self._values(part, queries).slice(first, last), 0)
        errors = int(self._queries.errors[slot] - known[slot])
        self._queries.errors = known
        return errors

    def _values(self, part: SegmentView, queries: NewQueries) -> Batch:
        """The rows of a segment, with where they come from if one of the queries asks for that."""
        schema = self.schema
        return part.batch(schema) if queries.read_made(len(schema)) else part.values(schema)

    def catch_up_some(self) -> bool:
        """Make some of the matches that are owed: of the segment that owes most. Returns whether there were
        any. O(rows of a segment * new words).
        """
        if not self._owes:
            return False
        owed = [part.matches.owed for part in self._sealed]
        if self.ahead:  # those of slots that are ahead are made by whoever had them come
            self._owes = any(owed)
            owed = [each.difference(self.ahead.pieces) for each in owed]
        most, number = max(((len(each), number) for number, each in enumerate(owed)), default=(0, 0))
        if not most:
            self._owes &= bool(self.ahead)
            return False
        self._catch_up(number, list(islice(owed[number], CAUGHT_UP_MAX)))
        return True

    def catch_up(self, slots: Collection[int]) -> None:
        """Make all matches of these slots that are owed. O(retained rows * new words)."""
        if not self._owes:
            return
        for number, part in enumerate(self._sealed):
            owed = part.matches.owed.intersection(slots)
            if owed:
                self._catch_up(number, owed)

    def catch_up_all(self) -> None:
        """Make all matches that are owed, of all slots. O(retained rows * new words)."""
        for number, part in enumerate(self._sealed):
            if part.matches.owed:
                self._catch_up(number, part.matches.owed)
        self._owes = False

    def _catch_up(self, number: int, slots: Collection[int], first: int = 0) -> None:
        """Make these matches over a segment, of rows from ``first`` on.

        What is owed is made of rows that have gone since, too: an earlier count may hold them.
        """
        part = self._sealed[number]
        queries = self._queries.probe(slots, part.matches.cohorts)
        with self._counting(slots, part.first + first, part.end):
            found = self._found(part, queries, first)
        self._put(number, slots, queries, found)

    def _put(self, number: int, slots: Collection[int], queries: NewQueries, found: NewMatches) -> None:
        """What was found in a segment stands from now on."""
        part = self._sealed[number]
        matches = part.matches
        for place, word in enumerate(queries.words):
            matches.bits.merge(word, found.bits[place], int(queries.masks[place]), part.n)
        made = matches.made(slots, found.lists, queries.standing)
        if made is not matches:
            self._sealed[number] = replace(part, matches=made)
            self._rows = None

    def _gone(self, part: SegmentView) -> int:
        """How many rows of a part are below base: they match nothing."""
        return min(part.n, max(0, self.base - part.first))

    def drop_below(self, base: int) -> None:
        """Rows below this ordinal are gone. Never moves back."""
        if base <= self.base:
            return
        self.base = base
        self._sealed = [part for part in self._sealed if part.end > base]
        self._rows = None

    def clear(self) -> None:
        """All rows are gone, and their strings."""
        self._strings.clear()
        self.ahead.lose()
        self.base = self.end
        self._sealed = []
        self._tail = self._new_tail(self.base)
        self._rows = None

    def rows(self) -> Rows:
        """What readers may see now; the same object until something changes."""
        if self._rows is None:
            parts = tuple(self._sealed)
            if self._tail.count:
                parts += (self._tail.part(),)
            self._rows = Rows(
                self.schema, parts, self.base, self.end, origin=self.origin, whole_from_ms=self.whole_from_ms
            )
        return self._rows

    def sealed_from(self, ordinal: int) -> list[SegmentView]:
        """Sealed segments that hold rows at or after this ordinal."""
        return [part for part in self._sealed if part.end > ordinal]

    def restore(self, first: int, rows: Batch) -> None:
        """Stored rows come back; the first call decides where the ordinals begin.

        No segment ends amid rows that are stored as one, so that it can take the place of stored ones.
        """
        if not self._sealed and not self._tail.count:
            self._tail = self._new_tail(first)
        elif len(rows) > self._tail.room:
            self._seal()
        self.append(rows)

    def nbytes(self) -> tuple[int, int]:
        """Bytes of (columns, matches) of the sealed segments."""
        columns = matches = 0
        for part in self._sealed:
            columns += part.timestamp.nbytes + part.origins.nbytes
            for column in part.columns:
                columns += 0 if column.values is part.timestamp else column.values.nbytes
                columns += 0 if column.valid is None else column.valid.nbytes
            matches += part.matches.nbytes
        return columns, matches

    def attributes(self) -> tuple[Attribute, ...]:
        """What can be read of this module."""
        columns, matches = self.nbytes()
        return (
            Attribute("rows", len(self), "visible rows retained"),
            Attribute("segments", len(self._sealed), "sealed segments"),
            Attribute("column_bytes", columns, "bytes of their columns"),
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
