"""Scans at an instant: which rows of a stream a query sees, before its stages.

Most windows are a range of ordinals: ``window`` gives it, and ``matching`` and ``count`` impose the predicate
on it. Row windows with keys or a condition are places here and there (:mod:`engine.operators.row_windows`),
and a table function makes other rows of the stream's (:mod:`engine.operators.assignment`). ``relation``
serves them all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from engine.language.evaluate import truth
from engine.language.query import Scan
from engine.model.batch import BoolArray, Column, Int64Array
from engine.model.expressions import Expression, reads_made
from engine.model.interruption import may_go_on
from engine.model.lazy_columns import readable
from engine.operators.assignment import (
    Assigned,
    Bracket,
    assign,
    first_needed_ms,
    hops_whole,
    reaches_whole_sessions,
)
from engine.operators.gather import rows_at
from engine.operators.places import Places, moments_at, timestamps_at
from engine.operators.relation import Relation
from engine.operators.row_windows import last_rows
from engine.operators.window_range import WindowRange, locate
from engine.stems.rows import Rows
from engine.stems.segment import SegmentView
from engine.windows.assignment import Assignment, Hop
from engine.windows.clauses import RowWindow


@dataclass(frozen=True, slots=True)
class Chosen:
    """Rows of the stream. complete_from_ms: as in an Answer."""

    places: Places
    complete_from_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Scanned:
    """What a scan gives. complete_from_ms: as in an Answer."""

    relation: Relation
    complete_from_ms: int | None = None


def is_range(scan: Scan) -> bool:
    """Whether the rows of a scan's window are those of a range of ordinals."""
    if scan.assignment is not None or scan.history:
        return False
    return not isinstance(scan.window, RowWindow) or scan.window.plain


@dataclass(slots=True)
class ConditionErrors:
    """rows: of how many a predicate ended as an error, where it was evaluated for one answer: those whose
    matches are kept were counted when they came.
    """

    rows: int = 0


@dataclass(frozen=True, slots=True)
class ScanAt:
    """The rows of a stream as they stood at an instant.

    now_ms: NOW; None: nothing is visible yet. end: the ordinal after the last visible row. slot_of: where
    the matches of a predicate are kept, None where they are not. errors: counts those of predicates whose
    matches are not kept; None: nobody asks.
    """

    rows: Rows
    now_ms: int | None
    retained_from_ms: int | None
    end: int
    slot_of: Callable[[Expression], int | None]
    errors: ConditionErrors | None = field(default=None, kw_only=True)

    @classmethod
    def now(cls, rows: Rows, now_ms: int | None, retained_from_ms: int | None) -> ScanAt:
        """All that is visible; no matches are kept."""
        end = rows.base if now_ms is None else rows.end
        return cls(rows, now_ms, retained_from_ms, end, lambda predicate: None)

    @classmethod
    def earlier(cls, rows: Rows, at_ms: int, retained_from_ms: int | None) -> ScanAt:
        """A scan as of an instant before NOW, over the rows that are known now."""
        end = rows.first_at_or_after(at_ms + 1)
        return cls(rows, at_ms, retained_from_ms, end, lambda predicate: None)

    def with_slots(
        self, slot_of: Callable[[Expression], int | None], errors: ConditionErrors | None = None
    ) -> ScanAt:
        """A scan over the same rows for another query."""
        return replace(self, slot_of=slot_of, errors=errors)

    # --- any scan ---------------------------------------------------------------------------------

    def relation(self, scan: Scan) -> Scanned:
        """The rows that a scan gives, in order. Columns are made when they are read.

        Raises LimitExceeded: too many rows in too many windows.
        """
        schema = self.rows.schema
        if scan.assignment is None:
            chosen = self.places(scan)
            rows = rows_at(schema, chosen.places)
            rows = Relation(rows.columns, len(rows), rows.stored_ordinals, lambda: moments_at(chosen.places))
            return Scanned(rows, chosen.complete_from_ms)
        if self.now_ms is None:
            empty = np.empty(0, np.int64)
            return Scanned(Assigned(rows_at(schema, []), empty, empty, empty, whole=True).relation())
        bracket = Bracket.at(scan.window, self.now_ms)
        places = self.matching(scan.predicate, self.first_needed(scan.assignment, bracket), self.end)
        assigned = assign(
            scan.assignment, bracket, rows_at(schema, places), timestamps_at(places), self.gone_before_ms
        )
        return Scanned(assigned.relation(), None if assigned.whole else self.gone_before_ms)

    def places(self, scan: Scan) -> Chosen:
        """The rows of the stream that a scan without a table function gives: of its window those that
        satisfy its predicate.
        """
        if is_range(scan):
            window = self.window(scan)
            return Chosen(self.matching(scan.predicate, window.start, window.stop), window.complete_from_ms)
        assert isinstance(scan.window, RowWindow)
        if self.now_ms is None:
            return Chosen([])
        places, found = last_rows(scan.window, self.rows.schema, self.first_retained, self.end, self.matching)
        whole_ms = self.rows.complete_from_ms
        if found and whole_ms is not None:
            found = int(timestamps_at(places[:1])[0]) >= whole_ms
        kept = places if scan.predicate is None else self.satisfying(scan.predicate, places)
        return Chosen(kept, None if found else self.gone_before_ms)

    def is_complete(self, scan: Scan, last_ms: int | None = None) -> bool:
        """Whether nothing that a scan reaches back to is gone. last_ms: nor will up to that instant: a window
        of a table function that is not over yet may begin before what is retained. Cheaper than the scan,
        mostly O(log rows).
        """
        if self.now_ms is None:
            return True
        if is_range(scan):
            return self.window(scan).complete
        window, assignment = scan.window, scan.assignment
        if assignment is None:
            return self.places(replace(scan, predicate=None)).complete_from_ms is None
        if not isinstance(window, RowWindow):
            bracket = Bracket.at(window, self.now_ms)
            if isinstance(assignment, Hop):
                if last_ms is not None:
                    bracket = replace(bracket, last_ms=Bracket.at(window, last_ms).last_ms)
                return hops_whole(assignment, bracket, self.gone_before_ms)
            if not reaches_whole_sessions(assignment, bracket, self.gone_before_ms):
                return False
        return self.relation(scan).complete_from_ms is None

    @property
    def gone_before_ms(self) -> int | None:
        """Rows before this instant are gone, or may never have come; None where none are."""
        return self.rows.gone_before_ms(self.retained_from_ms)

    @property
    def first_retained(self) -> int:
        """The first ordinal that is retained by time: rows below it are there for plain row windows alone."""
        retained_ms = self.retained_from_ms
        return self.rows.base if retained_ms is None else self.rows.first_at_or_after(retained_ms)

    def first_needed(self, assignment: Assignment, bracket: Bracket) -> int:
        """The first ordinal that a table function has to look at."""
        needed_ms = first_needed_ms(assignment, bracket) if isinstance(assignment, Hop) else None
        first = self.first_retained
        return first if needed_ms is None else max(first, self.rows.first_at_or_after(needed_ms))

    def satisfying(self, predicate: Expression, places: Places) -> Places:
        """The rows at these places that a predicate accepts."""
        slot = self.slot_of(predicate)
        found = []
        for part, where in places:
            may_go_on()
            if slot is not None and slot not in part.matches.owed:
                first, last = int(where[0]), int(where[-1]) + 1
                accepted = np.zeros(last - first, np.bool_)
                accepted[part.rows_of(slot, first, last) - first] = True
                kept = where[accepted[where - first]]
            else:
                columns = rows_at(self.rows.schema, [(part, where)]).columns
                kept = where[self._true(predicate, columns, len(where))]
            if len(kept):
                found.append((part, kept))
        return found

    # --- windows that are a range -----------------------------------------------------------------

    def window(self, scan: Scan) -> WindowRange:
        """The ordinals that the scan's window holds."""
        if self.now_ms is None:
            return WindowRange(self.rows.base, self.rows.base)
        return locate(scan.window, self.rows, self.now_ms, self.retained_from_ms, self.end)

    def matching(
        self, predicate: Expression | None, start: int, stop: int
    ) -> list[tuple[SegmentView, Int64Array]]:
        """The rows start <= ordinal < stop that a predicate accepts."""
        slot = None if predicate is None else self.slot_of(predicate)
        found = []
        for part, first, last in self.rows.ranges(start, stop):
            if predicate is None:
                where = np.arange(first, last)
            elif slot is not None and slot not in part.matches.owed:
                where = part.rows_of(slot, first, last)
            else:
                where = self._evaluated(predicate, part, first, last)
            if len(where):
                found.append((part, where))
        return found

    def count(self, predicate: Expression | None, start: int, stop: int) -> int:
        """How many rows start <= ordinal < stop a predicate accepts."""
        slot = None if predicate is None else self.slot_of(predicate)
        return self.count_of(predicate, slot, start, stop)

    def count_of(self, predicate: Expression | None, slot: int | None, start: int, stop: int) -> int:
        """How many rows start <= ordinal < stop a predicate accepts. slot: where the matches of the predicate
        are kept, None where they are not.
        """
        ranges = self.rows.ranges(start, stop)
        if predicate is None:
            return sum(last - first for _, first, last in ranges)
        if slot is None:
            return sum(len(where) for _, where in self.matching(predicate, start, stop))
        return sum(
            len(self._evaluated(predicate, part, first, last))
            if slot in part.matches.owed
            else part.count_of(slot, first, last)
            for part, first, last in ranges
        )

    def _evaluated(self, predicate: Expression, part: SegmentView, first: int, last: int) -> Int64Array:
        """Places of a part that a predicate accepts, worked out from the rows."""
        may_go_on()
        schema = self.rows.schema
        rows = part.batch(schema) if reads_made(predicate, len(schema)) else part.values(schema)
        return first + np.flatnonzero(self._true(predicate, readable(rows.slice(first, last)), last - first))

    def _true(self, predicate: Expression, columns: Sequence[Column], n: int) -> BoolArray:
        """Which of n rows a predicate accepts."""
        true, error = truth(predicate, columns, n)
        if self.errors is not None and error is not None and self.slot_of(predicate) is None:
            self.errors.rows += int(np.count_nonzero(error))
        return true
