"""The matches of queries that came among the rows that were there: of sealed segments they are owed, and made
later, as far as nobody needs them at once.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterator, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Protocol

from engine.kernels.bitmaps import Words
from engine.model.batch import Batch, Int32Array, Int64Array
from engine.model.source import Schema
from engine.stems.ahead import Ahead, MatchesInSlices
from engine.stems.new_queries import NewMatches, NewQueries
from engine.stems.postponed import PostponedMatches
from engine.stems.postponing import Postponing
from engine.stems.predicate_slots import PredicateSlots
from engine.stems.residual import ResidualPredicate
from engine.stems.rows import Rows
from engine.stems.segment import SegmentView, Tail
from engine.store.matches.cohorts import Cohorts
from engine.store.matches.row_slots import RowSlots
from engine.store.matches.segment_bits import BitTarget

CAUGHT_UP_MAX = 64
"""Slots whose matches over a segment are made at a time, where nobody waits for them."""

PIECE_ROWS = 4_096
"""Rows of a segment that meet dear conditions at a time."""


class RowMatcher(Protocol):
    """The Query SteM, as rows meet it."""

    @property
    def slots(self) -> PredicateSlots: ...

    @property
    def cohorts(self) -> Cohorts: ...

    @property
    def postponing(self) -> Postponing: ...

    def match(
        self, rows: Batch, out: BitTarget, start: int, later: Collection[ResidualPredicate] = ()
    ) -> RowSlots: ...

    def meet_later(
        self,
        rows: Batch,
        wanted: Words,
        places: Int32Array,
        words: Int64Array,
        modules: Sequence[ResidualPredicate],
    ) -> tuple[Words, Collection[int]]: ...

    def revise(self, oldest_epoch: int) -> None: ...

    def probe(self, slots: Collection[int], cohorts: Cohorts) -> NewQueries: ...

    def may_err(self, slot: int) -> bool: ...


@dataclass(slots=True)
class Segments:
    """The segments of a source. seen: as readers see them; None: that is another by now."""

    # The open one, behind the others.
    tail: Tail
    # The ordinal of the first row that is retained.
    base: int
    sealed: list[SegmentView] = field(default_factory=list)
    seen: Rows | None = None

    @property
    def end(self) -> int:
        return self.tail.first + self.tail.count

    def parts(self) -> tuple[SegmentView, ...]:
        """All, as they stand."""
        return (*self.sealed, self.tail.part()) if self.tail.count else tuple(self.sealed)

    def part_of(self, first: int) -> SegmentView | None:
        """The segment whose first row has this ordinal; None: it went. O(log segments)."""
        if first == self.tail.first:
            return self.tail.part()
        number = bisect_left(self.sealed, first, key=_first_of)
        found = self.sealed[number] if number < len(self.sealed) else None
        return found if found is not None and found.first == first else None

    def gone(self, part: SegmentView) -> int:
        """How many rows of a part are below base: they match nothing."""
        return min(part.n, max(0, self.base - part.first))


def _first_of(part: SegmentView) -> int:
    return part.first


class OwedMatches:
    """One owner, as the engine. postponed: those that rows are owed until they have a partner in a join."""

    def __init__(self, schema: Schema, queries: RowMatcher, segments: Segments) -> None:
        self._schema = schema
        self._queries = queries
        self._segments = segments
        self._owes = False
        self.ahead = Ahead()
        """Slots whose queries are still to come."""
        self._in_slices: MatchesInSlices | None = None
        self.postponed = PostponedMatches(
            schema,
            queries.postponing,
            queries.meet_later,
            lambda first: (segments.part_of(first), segments.base),
        )

    @contextmanager
    def counting(self, slots: Collection[int], first: int, stop: int) -> Iterator[None]:
        """Rows of these ordinals meet slots: note the errors of those that are ahead."""
        ahead = self.ahead.pieces.keys() & slots if self.ahead else ()
        before = self._queries.slots.errors
        yield
        for slot in ahead:
            self.ahead.count(slot, first, stop, int(self._queries.slots.errors[slot] - before[slot]))

    def backfill(self, slots: Sequence[int]) -> None:
        """Queries just came: their matches among the rows of the open segment are made, those of sealed ones
        owed, unless their errors are to be counted.

        O(rows of the open segment * new words + segments * slots), and of those all retained rows.
        """
        erring = [slot for slot in slots if self._queries.may_err(slot)]
        others = set(slots).difference(erring)
        for number, part in enumerate(self._segments.sealed):
            part.matches.owed.update(others)
            if erring:
                self._catch_up(number, erring, self._segments.gone(part))
        self._owes |= bool(others and self._segments.sealed)
        if self._segments.tail.count:
            self._meet_tail(slots)

    def _meet_tail(self, slots: Collection[int]) -> None:
        """The matches of slots that just came among the rows of the open segment."""
        part = self._segments.tail.part()
        gone = self._segments.gone(part)
        queries = self._queries.probe(slots, self._segments.tail.cohorts)
        with self.counting(slots, part.first + gone, part.end):
            found = self._found(part, queries, gone)
        self._segments.tail.backfill(found, queries)
        self._segments.seen = None

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
        """Slots came ahead of their query: their matches among the rows of sealed segments are owed, whether
        they may err or not, and :meth:`catch_up_slice` makes them; those among the others are made.
        O(segments * slots), and of the open segment as :meth:`backfill`.
        """
        for slot in slots:
            self.ahead.come(slot)
        for part in self._segments.sealed:
            part.matches.owed.update(slots)
        self._owes |= bool(self._segments.sealed)
        if self._segments.tail.count:
            self._meet_tail(slots)

    def catch_up_slice(self, slots: Collection[int], rows_max: int) -> int:
        """Make matches of slots that are ahead, of so many rows of a segment. Returns how many rows that
        were; 0: all matches are made.
        """
        for number, part in enumerate(self._segments.sealed):
            owed = part.matches.owed.intersection(slots)
            if owed:
                return self._slice(number, owed, rows_max)
        return 0

    def _slice(self, number: int, slots: Collection[int], rows_max: int) -> int:
        part = self._segments.sealed[number]
        queries = self._queries.probe(slots, part.matches.cohorts)
        begun = self._in_slices
        if begun is None or not begun.is_of(part.first, part.n, queries):
            begun = MatchesInSlices(part.first, part.n, self._segments.gone(part), queries)
            self._in_slices = begun
        start = begun.at
        stop = min(part.n, start + rows_max) if queries.may_match(part.zones) else part.n
        if not queries.may_match(part.zones):
            begun.pass_over(stop)
        else:
            with self.counting(slots, part.first + start, part.first + stop):
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
        owing = [part for part in self._segments.sealed if not part.matches.owed.isdisjoint(slots)]
        left = sum(part.n - self._segments.gone(part) for part in owing)
        begun = self._in_slices
        if begun is not None and owing and begun.first == owing[0].first and slots >= set(begun.slots):
            left -= begun.at - self._segments.gone(owing[0])
        return max(0, left)

    def errors_ahead(self, slot: int) -> int:
        """The query of a slot comes: how many errors it met among the rows that are retained. Its matches are
        made. O(segments), and those rows where it is not known.
        """
        pieces = self.ahead.pieces.pop(slot)
        if pieces is None:
            return self._errors_among(slot, self._segments.base, self._segments.end)
        count = 0
        for piece in pieces:
            if piece.first >= self._segments.base:
                count += piece.errors
            elif piece.stop > self._segments.base:
                count += self._errors_among(slot, self._segments.base, piece.stop)
        return count

    def _errors_among(self, slot: int, start: int, stop: int) -> int:
        """Errors among the rows of these ordinals, which are not counted again."""
        known, segments = self._queries.slots.errors, self._segments
        rows = Rows(self._schema, segments.parts(), segments.base, segments.end)
        for part, first, last in rows.ranges(start, stop):
            queries = self._queries.probe([slot], part.matches.cohorts)
            queries.meet(self._values(part, queries).slice(first, last), 0)
        errors = int(self._queries.slots.errors[slot] - known[slot])
        self._queries.slots.errors = known
        return errors

    def _values(self, part: SegmentView, queries: NewQueries) -> Batch:
        """The rows of a segment, with where they come from if one of the queries asks for that."""
        schema = self._schema
        return part.batch(schema) if queries.read_made(len(schema)) else part.values(schema)

    def catch_up_some(self) -> bool:
        """Make some of the matches that are owed: of the segment that owes most. Returns whether there were
        any. O(rows of a segment * new words).
        """
        if not self._owes:
            return False
        owed = [part.matches.owed for part in self._segments.sealed]
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
        for number, part in enumerate(self._segments.sealed):
            owed = part.matches.owed.intersection(slots)
            if owed:
                self._catch_up(number, owed)

    def catch_up_all(self) -> None:
        """Make all matches that are owed, of all slots. O(retained rows * new words)."""
        for number, part in enumerate(self._segments.sealed):
            if part.matches.owed:
                self._catch_up(number, part.matches.owed)
        self._owes = False

    def _catch_up(self, number: int, slots: Collection[int], first: int = 0) -> None:
        """Make these matches over a segment, of rows from ``first`` on.

        What is owed is made of rows that have gone since, too: an earlier count may hold them.
        """
        part = self._segments.sealed[number]
        queries = self._queries.probe(slots, part.matches.cohorts)
        with self.counting(slots, part.first + first, part.end):
            found = self._found(part, queries, first)
        self._put(number, slots, queries, found)

    def _put(self, number: int, slots: Collection[int], queries: NewQueries, found: NewMatches) -> None:
        """What was found in a segment stands from now on."""
        part = self._segments.sealed[number]
        matches = part.matches
        for place, word in enumerate(queries.places.words):
            matches.bits.merge(word, found.bits[place], int(queries.places.masks[place]), part.n)
        made = matches.made(slots, found.lists, queries.places.standing)
        if made is not matches:
            self._segments.sealed[number] = replace(part, matches=made)
            self._segments.seen = None
