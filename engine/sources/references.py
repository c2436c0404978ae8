"""Whether rows of one stream find the row of another that they refer to, in time.

A row is checked by instants and by the order of the other stream's rows, not by what was read first: its
match is at an instant that is not after the row's, or among the next k rows of the other stream, or not more
than so much later. Of a match that is older than the other stream's RETAIN it is known that it was there
(:mod:`engine.sources.past_values`). So a row waits until the other stream has come so far; one whose match is
there on arrival does not.

Rows that lack theirs are in the stream already, and stay there. After a restart those that were not checked
are looked at again: both streams keep their rows for that.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import starmap

import numpy as np

from engine.model.batch import Batch, BoolArray, Column, Int64Array, concatenate
from engine.model.constraint import References, Unique
from engine.model.source import SourceName
from engine.model.step import Position, Violations
from engine.sources.constraint_values import UNKNOWN
from engine.sources.enforcement import Enforcement
from engine.sources.source import Source

WAITING_MAX = 1 << 20
"""The most rows that wait; of more the oldest are not checked, and counted."""


class ReferenceCheck:
    """Checks one REFERENCES constraint. ``waiting``: int64, ascending, the numbers of rows that are not
    checked.
    """

    def __init__(self, source: Source, number: int, constraint: References, target: Source) -> None:
        assert source.promises is not None
        assert target.promises is not None
        self.source = source
        self.target = target
        self._promises: Enforcement = source.promises
        self._others: Enforcement = target.promises
        self._number = number
        self._constraint = constraint
        pairs = dict(zip(constraint.target_columns, constraint.columns, strict=True))
        unique = _unique(self._others, constraint.target_columns)
        self._unique = unique
        places = [source.stream.schema.index(pairs[column]) for column in unique.columns]
        self._places = [place for place in places if place is not None]
        self._seen = self._promises.unchecked_from.setdefault(number, self._promises.rows)
        self.waiting: Int64Array = np.empty(0, np.int64)
        self._stamps: Int64Array = np.empty(0, np.int64)
        self._limit: Int64Array = np.empty(0, np.int64)
        """For each row that waits, the number of the target's row behind the last one that may be its match,
        or UNKNOWN.
        """
        self._others.referrers.append(self.waits_from_ms)
        self._take()

    def leave(self) -> None:
        """One of the two streams is gone."""
        self._others.referrers.remove(self.waits_from_ms)
        self._promises.unchecked_from.pop(self._number, None)

    def waits_from_ms(self) -> int | None:
        """Matches of rows from this instant on are still asked for; None: nobody can tell."""
        return int(self._stamps[0]) if len(self._stamps) else self.source.clock.now_ms

    def advance(self, position: Position) -> Iterator[Violations]:
        """One of the streams took a step. O(rows that came or are to be checked), and O(log segments) for
        each instant of those.
        """
        self._take()
        target_ms = self.target.clock.now_ms
        if not len(self.waiting) or target_ms is None:
            return
        is_due = self._is_due(target_ms)
        if not is_due.any():
            return
        rows = self._rows(self.waiting[is_due])
        first = int(is_due.sum()) - len(rows)
        limit = self._limit[is_due][first:]
        wrong = rows.take(np.flatnonzero(~self._matched(rows, limit)))
        self._keep(~is_due)
        if len(wrong):
            reasons = self._promises.violations.note([self._number] * len(wrong), position)
            self.source.outdate()
            yield Violations(self.source.stream.name, wrong, reasons, withheld=False)

    def _is_due(self, target_ms: int) -> BoolArray:
        """Which rows that wait can be checked at NOW of the target."""
        if self._constraint.within_ms is not None:
            passed: BoolArray = self._stamps + self._constraint.within_ms <= target_ms
            return passed
        reached = np.flatnonzero((self._limit == UNKNOWN) & (self._stamps <= target_ms))
        if len(reached):
            self._limit[reached] = self._limits(self._stamps[reached])
        is_due: BoolArray = (self._limit != UNKNOWN) & (self._limit <= self._others.rows)
        return is_due

    def _take(self) -> None:
        """The rows that entered since the last time wait, but for those whose match is there."""
        count = self._promises.rows
        if self._seen < count:
            numbers = np.arange(self._seen, count)
            rows = self._rows(numbers)
            numbers, stamps = numbers[len(numbers) - len(rows) :], rows.timestamp
            waits = ~self._matched(rows, None)
            unknown = np.full(int(waits.sum()), UNKNOWN, np.int64)
            missed = max(0, len(self.waiting) + len(unknown) - WAITING_MAX)
            self._promises.unchecked[self._number] += missed
            self.waiting = np.concatenate([self.waiting, numbers[waits]])[missed:]
            self._stamps = np.concatenate([self._stamps, stamps[waits]])[missed:]
            self._limit = np.concatenate([self._limit, unknown])[missed:]
            self._seen = count
        self._note()

    def _keep(self, these: BoolArray) -> None:
        self.waiting, self._stamps = self.waiting[these], self._stamps[these]
        self._limit = self._limit[these]
        self._note()

    def _note(self) -> None:
        self._promises.unchecked_from[self._number] = (
            int(self.waiting[0]) if len(self.waiting) else self._seen
        )

    def _rows(self, numbers: Int64Array) -> Batch:
        """The rows with these numbers, ascending, as far as they are retained."""
        held = self.source.rows.rows()
        ordinals = numbers + (held.end - self._promises.rows)
        ordinals = ordinals[ordinals >= held.base]
        breaks = np.flatnonzero(np.diff(ordinals) > 1) + 1
        runs = [(int(run[0]), int(run[-1]) + 1) for run in np.split(ordinals, breaks) if len(run)]
        parts = [batch for several in starmap(held.slices, runs) for _, batch in several]
        return concatenate(held.schema, parts)

    def _limits(self, stamps: Int64Array) -> Int64Array:
        """int64[n]: the number of the target's row behind the last that may be the match. stamps: at or
        before NOW of the target.
        """
        assert self._constraint.within_rows is not None
        instants, places = np.unique(stamps, return_inverse=True)
        held = self.target.rows.rows()
        shift = self._others.rows - held.end
        firsts = [held.first_at_or_after(instant + 1) + shift for instant in instants.tolist()]
        found: Int64Array = np.array(firsts, np.int64)[places] + self._constraint.within_rows
        return found

    def _matched(self, rows: Batch, limit: Int64Array | None) -> BoolArray:
        """Whether rows have their match, or refer to nothing. limit: that they have by count; None: one that
        is there at the row's instant, whatever follows.
        """
        columns: Sequence[Column] = [rows.columns[place] for place in self._places]
        refers = np.ones(len(rows), np.bool_)
        for column in columns:
            refers &= column.there()
        numbers, instants = self._others.found(self._unique, columns)
        stamps, within_ms = rows.timestamp, self._constraint.within_ms
        in_time = instants <= stamps
        if limit is not None:
            in_time |= numbers < limit if within_ms is None else instants <= stamps + within_ms
        matched = (numbers != UNKNOWN) & in_time
        self._note_wait(
            (instants - stamps)[matched], numbers[matched], None if limit is None else limit[matched]
        )
        found: BoolArray = matched | ~refers
        return found

    def _note_wait(self, waits_ms: Int64Array, numbers: Int64Array, limit: Int64Array | None) -> None:
        """How long rows waited whose matches are found, by their instants and numbers."""
        if not len(waits_ms):
            return
        most = int(waits_ms.max())
        rows = self._constraint.within_rows
        if rows is not None:
            waited = 0 if limit is None else int((numbers + 1 - limit + rows)[waits_ms > 0].max(initial=0))
            most = min(most, 0) if limit is None else waited
        known = self._promises.waited[self._number]
        self._promises.waited[self._number] = max(0, known or 0, most)


class ReferenceChecks:
    """All that can be made, as streams come and go: both have to be there."""

    def __init__(self, sources: Mapping[str, Source]) -> None:
        self._sources = sources
        self._checks: dict[tuple[SourceName, int], ReferenceCheck] = {}
        self._of: dict[SourceName, list[ReferenceCheck]] = {}

    def changed(self) -> None:
        """Streams came or went."""
        for key, check in list(self._checks.items()):
            there = self._sources.get(check.source.stream.name), self._sources.get(check.target.stream.name)
            if there != (check.source, check.target):
                check.leave()
                del self._checks[key]
        for name, source in self._sources.items():
            for number, one in enumerate(source.stream.constraints):
                if not isinstance(one, References) or (SourceName(name), number) in self._checks:
                    continue
                target = self._sources.get(one.target)
                if target is not None and _is_unique(target, one.target_columns):
                    self._checks[SourceName(name), number] = ReferenceCheck(source, number, one, target)
                elif source.promises is not None:
                    source.promises.unchecked_from.pop(number, None)
        self._of = {}
        for check in self._checks.values():
            for name in (check.source.stream.name, check.target.stream.name):
                self._of.setdefault(SourceName(name), []).append(check)

    def advance(self, name: SourceName, position: Position) -> tuple[Violations, ...]:
        """A stream took a step: rows that lack the row that they refer to, as is known now."""
        return tuple(found for check in self._of.get(name, ()) for found in check.advance(position))

    def touched(self, name: SourceName) -> set[SourceName]:
        """The streams that keep rows for what a step of one may have decided."""
        checks = self._of.get(name, ())
        return {one.stream.name for check in checks for one in (check.source, check.target)}


def _is_unique(target: Source, columns: tuple[str, ...]) -> bool:
    return target.promises is not None and any(
        isinstance(one, Unique) and frozenset(one.columns) == frozenset(columns)
        for one in target.stream.constraints
    )


def _unique(promises: Enforcement, columns: tuple[str, ...]) -> Unique:
    """The constraint by which the target's rows are found."""
    return next(
        one
        for one in promises.stream.constraints
        if isinstance(one, Unique) and frozenset(one.columns) == frozenset(columns)
    )
