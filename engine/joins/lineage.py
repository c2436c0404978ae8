"""The lineage of the rows of a join: which of its queries want each of them (CACQ, section 3.1).

A row has a mark for each input that it is a row of (:mod:`engine.joins.query_marks`): a bit for every query
whose predicate of that input accepts it. A row without a bit is put into no index and meets nothing; a
combination is kept where the marks of its parts have a bit in common. While every combination is wanted there
are no marks, and nothing is looked up.

Marks may say too much, never too little: bits of queries that went stay on the rows that are there; rows that
very many accept are marked with all bits, and so are all rows of a large batch where most combinations are
wanted (:mod:`engine.joins.mark_samples`), since to look at each costs more than it saves. What a query that
comes adds to old rows are its bits alone (:class:`AddedMarks`).

Readers hold marks as they were (:class:`MarksView`): marks of old rows are changed in copies. Cost: O(rows *
words + pairs), as of matching them, less where many slots accept a row.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from engine.eddy.statistics import ModuleStatistics
from engine.joins.mark_samples import MarkSamples
from engine.joins.query_marks import InputMarks, QueryMarks, Wants
from engine.kernels import join_lineage
from engine.kernels.bitmaps import Words
from engine.model.batch import BoolArray, Int64Array
from engine.model.capacities import USUAL, Capacities
from engine.stems.rows import Rows
from engine.store.matches.cohorts import SELECTIVE, Cohorts
from engine.store.matches.segment_bits import NamedPlaces

EVERY = np.uint64(join_lineage.EVERY)
ROWS_MIN = 8_192


@dataclass(frozen=True, slots=True)
class MarksView:
    """uint64[.]: of one input's rows from ordinal ``first`` on, their marks."""

    first: int
    marks: Words

    def of(self, start: int, stop: int) -> Words:
        """The marks of these rows."""
        return self.marks[start - self.first : stop - self.first]


class RowMarks:
    """The marks of the rows of one input. base <= ordinal < end have one; those from ``narrow_end`` on have
    every bit. ``bits``: those that some row has or had.
    """

    def __init__(self, base: int, capacities: Capacities) -> None:
        self.base = self.end = self.first = self.narrow_end = base
        self.bits = 0
        self._capacities = capacities
        self._marks: Words = np.empty(0, np.uint64)

    def append(self, marks: Words, base: int) -> None:
        """Those of the next rows; rows below base are gone."""
        self._room(len(marks), base)[:] = marks
        self.bits |= int(np.bitwise_or.reduce(marks, initial=np.uint64(0)))
        self.narrow_end = self.end

    def append_every(self, n: int, base: int) -> None:
        """As :meth:`append`, n rows with every bit."""
        self._room(n, base)[:] = EVERY
        self.bits = join_lineage.EVERY

    def _room(self, n: int, base: int) -> Words:
        """Where the next n marks are."""
        self.base = max(self.base, base)
        if self.end + n - self.first > len(self._marks):
            alive = self.alive()
            more = max(self._capacities.first(ROWS_MIN), 2 * (len(alive) + n)) - len(alive)
            self._marks = np.concatenate([alive, np.empty(more, np.uint64)])
            self.first = self.base
        self.end += n
        return self._marks[self.end - n - self.first : self.end - self.first]

    def alive(self) -> Words:
        """The marks of the rows that are there."""
        return self._marks[self.base - self.first : self.end - self.first]

    def put(self, marks: Words) -> None:
        """Other ones in place of all; readers keep what they have."""
        self._marks, self.first = marks, self.base
        self.narrow_end = self.end
        self.bits |= int(np.bitwise_or.reduce(marks, initial=np.uint64(0)))

    def view(self) -> MarksView:
        return MarksView(self.first, self._marks)

    @property
    def nbytes(self) -> int:
        return self._marks.nbytes


@dataclass(frozen=True, slots=True)
class AddedMarks:
    """What queries that came want of old rows, by input. before: the marks until now. came: the bits that
    they lacked, of the same ordinals. counts: how many rows lacked some. had: bits that rows may have had.
    end: int64[inputs], these rows are below it.
    """

    before: tuple[MarksView, ...]
    came: tuple[MarksView, ...]
    counts: tuple[int, ...]
    had: tuple[int, ...]
    end: Int64Array

    def drivers(self) -> tuple[list[int], bool]:
        """The inputs whose rows that lacked bits are in all combinations that are wanted now and were not,
        and whether each combination has such a row of the first of these.

        That is one input where no row had a bit that came, the one with the fewest rows; else all.
        """
        bits = 0
        for marks in self.came:
            bits |= int(np.bitwise_or.reduce(marks.marks, initial=np.uint64(0)))
        alone = [place for place, had in enumerate(self.had) if not had & bits]
        if alone:
            return [min(alone, key=self.counts.__getitem__)], True
        return [place for place, count in enumerate(self.counts) if count], False


@dataclass(frozen=True, slots=True)
class Advanced:
    """What a step did. starts: of each input the first row that may be missing in the indexes. anew: whether
    combinations are to be found anew. added: what is wanted of old rows besides; None: nothing.
    """

    starts: list[int]
    anew: bool = False
    added: AddedMarks | None = None


class JoinLineage:
    """One owner, as the join. ``seen``: how many rows came; ``wanted``: how many of them somebody wanted."""

    def __init__(self, inputs: int, capacities: Capacities = USUAL) -> None:
        self.queries = QueryMarks(inputs)
        self.seen = self.wanted = 0
        self._steps = 0
        self._capacities = capacities
        self._rows: list[RowMarks] | None = None
        """By input. None: every combination is wanted."""
        self._end: Int64Array | None = None
        """int64[inputs], rows below have their marks; None: all are to be marked."""
        self._pending: set[Wants] = set()
        self._samples = MarkSamples(inputs)
        self._places: dict[tuple[int, int], NamedPlaces] = {}
        self._version = -1

    # --- queries ----------------------------------------------------------------------------------

    def hold(self, wants: Wants) -> None:
        """A query comes; old rows are marked at the next step."""
        if self.queries.hold(wants):
            self._pending.add(wants)
            self._samples.forget()

    def release(self, wants: Wants) -> None:
        """A query goes. What only it wanted stays until its rows go."""
        if self.queries.release(wants):
            self._pending.discard(wants)
            self._samples.forget()

    def awaited(self, place: int) -> set[int]:
        """The slots whose matches with old rows the next step needs."""
        if self.queries.everything or (self._end is not None and self._rows is None):
            return set()
        needed = self.queries if self._end is None else self._pending
        return {slot for wants in needed if (slot := wants[place]) is not None}

    # --- rows -------------------------------------------------------------------------------------

    def forget(self) -> None:
        """The rows of an input begin elsewhere."""
        self._rows = self._end = None

    def advance(self, inputs: Sequence[Rows], end: Int64Array) -> Advanced:
        """Mark the rows below ``end`` that are not, and old ones for queries that came."""
        bases = np.array([each.base for each in inputs], np.int64)
        begins = self._end is None
        known = bases if self._end is None else np.maximum(self._end, bases)
        marked = self._rows
        pending, self._pending = self._pending, set()
        self._end = end
        self._steps += 1
        self.seen += int((end - known).sum())
        if self.queries.everything:
            self._rows = None
            self.wanted += int((end - known).sum())
            fully = begins or marked is not None
            return Advanced((bases if fully else known).tolist(), anew=fully)
        added = None
        if marked is None:
            self._rows = [RowMarks(int(base), self._capacities) for base in bases]
            if not begins:  # what is there was wanted by a query that went
                for marks, base, stop in zip(self._rows, bases.tolist(), known.tolist(), strict=True):
                    marks.append_every(stop - base, base)
        elif pending:
            added = self._add(inputs, pending, bases, known)
        self._append(inputs, known, end)
        if added is None:
            return Advanced(known.tolist(), anew=begins)
        starts = [
            base if count else stop
            for count, base, stop in zip(added.counts, bases.tolist(), known.tolist(), strict=True)
        ]
        return Advanced(starts, added=added)

    def _append(self, inputs: Sequence[Rows], known: Int64Array, end: Int64Array) -> None:
        assert self._rows is not None
        for place, (marks, rows) in enumerate(zip(self._rows, inputs, strict=True)):
            start, stop = int(known[place]), int(end[place])
            if marks.end < start:  # all that was marked is gone
                marks = self._rows[place] = RowMarks(start, self._capacities)
            if start == stop:
                continue
            marks_of = partial(self._marks_of, self.queries.inputs[place], place, rows)
            coming = marks_of(start, stop) if self._samples.pays(place, start, stop, marks_of) else None
            wanted = 0 if coming is None else int(np.count_nonzero(coming))
            if coming is not None and self._samples.paid(place, coming, wanted):
                marks.append(coming, rows.base)
                self.wanted += wanted
            else:
                marks.append_every(stop - start, rows.base)
                self.wanted += stop - start

    def _add(
        self, inputs: Sequence[Rows], pending: set[Wants], bases: Int64Array, known: Int64Array
    ) -> AddedMarks | None:
        """The marks of old rows take the bits of queries that came."""
        assert self._rows is not None
        coming = self.queries.only(iter(pending))
        before, came, counts, had = list[MarksView](), list[MarksView](), list[int](), list[int]()
        for place, (marks, rows) in enumerate(zip(self._rows, inputs, strict=True)):
            start, stop = int(bases[place]), int(known[place])
            if marks.end < start:
                marks = self._rows[place] = RowMarks(start, self._capacities)
            marks.base = max(marks.base, start)
            old = marks.alive()
            new = self._marks_of(coming.inputs[place], -1, rows, start, stop) & ~old
            before.append(MarksView(start, old))
            came.append(MarksView(start, new))
            counts.append(int(np.count_nonzero(new)))
            had.append(marks.bits)
            if counts[-1]:
                marks.put(old | new)
        if not any(counts):
            return None
        return AddedMarks(tuple(before), tuple(came), tuple(counts), tuple(had), known)

    def _marks_of(self, wanted: InputMarks, place: int, rows: Rows, start: int, stop: int) -> Words:
        """uint64[stop - start], of an input's rows. place: the input, -1: of marks that are not kept."""
        out = np.full(stop - start, wanted.of_all_rows, np.uint64)
        slots = wanted.slots()
        if not len(slots) or wanted.of_all_rows == join_lineage.EVERY:
            return out
        for part, first, last in rows.ranges(start, stop):
            at = part.first + first - start
            named = self._named(place, slots, part.matches.cohorts)
            part.matches.mark(named, wanted.by_slot, first, out[at : at + last - first])
        return out

    def _named(self, place: int, slots: Int64Array, cohorts: Cohorts) -> NamedPlaces:
        """Where the bits of some slots are."""
        if place < 0:
            return _places(slots, cohorts)
        if self._version != self.queries.version:
            self._places, self._version = {}, self.queries.version
        found = self._places.get((place, cohorts.epoch))
        if found is None:
            found = self._places[place, cohorts.epoch] = _places(slots, cohorts)
        return found

    # --- what is wanted ---------------------------------------------------------------------------

    def wanted_of(self, place: int, start: int, stop: int) -> BoolArray | None:
        """bool[stop - start]: which of an input's rows somebody wants; None: all."""
        if self._rows is None or start >= min(stop, self._rows[place].narrow_end):
            return None
        wanted: BoolArray = self._rows[place].view().of(start, stop) != 0
        return None if wanted.all() else wanted

    def wants_some(self, place: int, start: int, stop: int) -> bool:
        """Whether somebody wants some of an input's rows."""
        return self._rows is None or bool(self._rows[place].view().of(start, stop).any())

    def is_narrow(self, floor: Int64Array) -> bool:
        """Whether some combination of rows from ``floor`` on may be wanted by nobody."""
        return self._rows is not None and any(
            marks.narrow_end > first for marks, first in zip(self._rows, floor.tolist(), strict=True)
        )

    def view(self) -> tuple[MarksView, ...] | None:
        """The marks as they stand; None: every combination is wanted."""
        return None if self._rows is None else tuple(marks.view() for marks in self._rows)

    def statistics(self, queries: int) -> ModuleStatistics:
        """What it kept from the indexes. queries: how many share the join. Its cost is the rows marked."""
        seen, gone = self.seen, self.seen - self.wanted
        return ModuleStatistics("lineage", queries, None, self._steps, seen, gone, float(seen))

    @property
    def nbytes(self) -> int:
        return 0 if self._rows is None else sum(marks.nbytes for marks in self._rows)

    def _check(self, inputs: Sequence[Rows]) -> None:
        """inputs: as at the last step. Marks are compared with who wants the rows, found slot by slot."""
        if self._rows is None or self._end is None:
            return
        for place, (marks, rows) in enumerate(zip(self._rows, inputs, strict=True)):
            base, end = max(marks.base, rows.base), int(self._end[place])
            assert marks.end == max(end, marks.base)
            held = marks.view().of(base, end)
            for ordinal, wanted in enumerate(self._afresh(place, rows, base, end), base):
                assert int(held[ordinal - base]) & wanted == wanted

    def _afresh(self, place: int, rows: Rows, start: int, stop: int) -> Iterator[int]:
        wanted = self.queries.inputs[place]
        found = dict.fromkeys(range(start, stop), wanted.of_all_rows)
        for slot in wanted.slots().tolist():
            for part, first, last in rows.ranges(start, stop):
                assert slot not in part.matches.owed
                for row in part.rows_of(slot, first, last).tolist():
                    found[part.first + row] |= int(wanted.by_slot[slot])
        yield from found.values()


def _places(slots: Int64Array, cohorts: Cohorts) -> NamedPlaces:
    place = cohorts.place
    inside = slots[slots < len(place)]
    dense = inside[place[inside] != SELECTIVE]
    return NamedPlaces(place[dense].astype(np.int32), dense.astype(np.int32))
