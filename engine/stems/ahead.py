"""Matches that are made ahead of the query that wants them, some rows at a time.

A condition may take seconds for all retained rows. Its slot then comes before its query does (*ahead*): new
rows meet it, and old ones slice by slice between steps, so that the step that brings the query finds its
matches made. What that step counts are the errors among the rows that are retained then; so errors are noted
by ranges of ordinals, and those of rows that left meanwhile are not counted.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from engine.kernels import bitmaps
from engine.model.batch import Batch
from engine.stems.new_queries import NewMatches, NewQueries
from engine.store.matches.row_slots import RowSlots
from engine.store.matches.slot_lists import RowNumbers, lists_of


@dataclass(frozen=True, slots=True)
class ErrorsAmong:
    """How many errors there are among the rows of these ordinals."""

    first: int
    stop: int
    errors: int


@dataclass(slots=True)
class Ahead:
    """pieces: of each slot that is ahead, ascending in no order; None where ordinals have changed since."""

    pieces: dict[int, list[ErrorsAmong] | None] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.pieces)

    def come(self, slot: int) -> None:
        """A slot is ahead."""
        self.pieces.setdefault(slot, [])

    def forget(self, slot: int) -> None:
        """A slot is ahead no more; passed over where it was not."""
        self.pieces.pop(slot, None)

    def lose(self) -> None:
        """Rows have other ordinals, or came before the first."""
        self.pieces = dict.fromkeys(self.pieces)

    def count(self, slot: int, first: int, stop: int, errors: int) -> None:
        """Rows met a slot, whatever was known of them before."""
        known = self.pieces.get(slot)
        if known is not None:
            known[:] = [one for one in known if one.stop <= first or one.first >= stop]
            if errors:
                known.append(ErrorsAmong(first, stop, errors))


class MatchesInSlices:
    """The matches of new queries with one segment of n rows, as far as they are made. first: ordinal of the
    segment's first row. at: the row to go on at.
    """

    def __init__(self, first: int, n: int, gone: int, queries: NewQueries) -> None:
        """gone: so many of the rows match nothing."""
        self.at = gone
        self.first = first
        self.slots = queries.places.slots
        self._selective = queries.places.selective
        self._bits: bitmaps.Words = np.zeros((len(queries.places.words), n), np.uint64)
        self._pairs: list[RowSlots] = []

    def is_of(self, first: int, n: int, queries: NewQueries) -> bool:
        """Whether these are of a segment and of these queries."""
        return (
            self.first == first
            and self._bits.shape[1] == n
            and np.array_equal(self.slots, queries.places.slots)
        )

    def take(self, queries: NewQueries, rows: Batch) -> None:
        """The rows that follow."""
        stop = self.at + len(rows)
        bits, pairs = queries.meet(rows, 0)
        self._bits[:, self.at : stop] = bits
        numbers: RowNumbers = pairs.rows + np.uint16(self.at)
        self._pairs.append(RowSlots(numbers, pairs.slots))
        self.at = stop

    def pass_over(self, stop: int) -> None:
        """None of the rows up to there matches."""
        self.at = stop

    def found(self) -> NewMatches:
        """All matches, once every row was taken."""
        rows = np.concatenate([np.zeros(0, np.uint16), *(pairs.rows for pairs in self._pairs)])
        slots = np.concatenate([np.zeros(0, np.int32), *(pairs.slots for pairs in self._pairs)])
        return NewMatches(self._bits, lists_of(rows, slots, self._selective, self._bits.shape[1]))
