"""Marks of the queries that share a join: which bit stands for which of them, and for which slots of the
Query SteMs.

A query wants of each input the rows that one slot accepts, or all. Queries that want the same have one bit
together, and so have several where there are more than 64; what is kept for a bit then is what one of them
wants, so never too little. A bit is given to as few as can be.

Cost: O(inputs) a query that comes or goes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from engine.kernels.bitmaps import Words
from engine.model.batch import Int64Array

BITS = 64

Wants = tuple[int | None, ...]
"""The slot, by input, of the predicate whose rows a query wants; None: it wants all."""


@dataclass(slots=True)
class InputMarks:
    """What is wanted of one input."""

    # int64[BITS]: how many unlike wants of each bit want all rows.
    all_rows: Int64Array = field(default_factory=lambda: np.zeros(BITS, np.int64))
    # How many of them want the rows of a slot, by (slot, bit).
    users: Counter[tuple[int, int]] = field(default_factory=Counter)
    # uint64[slots].
    by_slot: Words = field(default_factory=lambda: np.zeros(0, np.uint64))
    # The bits that every row has.
    of_all_rows: int = 0
    # The slots whose rows somebody wants, ascending; None: they are others by now.
    _slots: Int64Array | None = None

    def add(self, slot: int | None, bit: int) -> None:
        """Another one of a bit wants these rows."""
        if slot is None:
            self.all_rows[bit] += 1
            self.of_all_rows |= 1 << bit
            return
        self._slots = None
        self.users[slot, bit] += 1
        if slot >= len(self.by_slot):
            more = np.zeros(max(slot + 1, 2 * len(self.by_slot)) - len(self.by_slot), np.uint64)
            self.by_slot = np.concatenate([self.by_slot, more])
        self.by_slot[slot] |= np.uint64(1 << bit)

    def drop(self, slot: int | None, bit: int) -> None:
        """One of them wants nothing any more."""
        if slot is None:
            self.all_rows[bit] -= 1
            if not self.all_rows[bit]:
                self.of_all_rows &= ~(1 << bit)
            return
        self._slots = None
        self.users[slot, bit] -= 1
        if not self.users[slot, bit]:
            del self.users[slot, bit]
            self.by_slot[slot] &= np.uint64(~(1 << bit) & (1 << BITS) - 1)

    def slots(self) -> Int64Array:
        """Whose rows somebody wants, ascending."""
        if self._slots is None:
            self._slots = np.flatnonzero(self.by_slot)
        return self._slots


class QueryMarks:
    """One owner, as the join. ``version`` grows with each change."""

    def __init__(self, inputs: int) -> None:
        self.version = 0
        self.inputs = [InputMarks() for _ in range(inputs)]
        self._held: dict[Wants, tuple[int, int]] = {}
        """The bit of each, and how many queries want the same."""
        self._users = np.zeros(BITS, np.int64)
        self._alike: dict[tuple[bool, ...], Int64Array] = {}
        """How many of each bit want all rows of the same inputs: what one of them wants all of is marked."""

    def _bit_for(self, wants: Wants) -> int:
        """One that nobody has, else one of queries that want all rows of the same inputs, if there is one; of
        those the one with the fewest.
        """
        alike = self._alike_to(wants)
        return int((self._users + 2**32 * (alike < self._users)).argmin())

    def _alike_to(self, wants: Wants) -> Int64Array:
        return self._alike.setdefault(tuple(slot is None for slot in wants), np.zeros(BITS, np.int64))

    def hold(self, wants: Wants) -> bool:
        """A query comes. Returns whether nobody wanted the same before."""
        bit, count = self._held.get(wants) or (self._bit_for(wants), 0)
        self._held[wants] = bit, count + 1
        if count:
            return False
        self.version += 1
        self._users[bit] += 1
        self._alike_to(wants)[bit] += 1
        for marks, slot in zip(self.inputs, wants, strict=True):
            marks.add(slot, bit)
        return True

    def release(self, wants: Wants) -> bool:
        """A query goes. Returns whether nobody wants the same any more."""
        bit, count = self._held.pop(wants)
        if count > 1:
            self._held[wants] = bit, count - 1
            return False
        self.version += 1
        self._users[bit] -= 1
        self._alike_to(wants)[bit] -= 1
        for marks, slot in zip(self.inputs, wants, strict=True):
            marks.drop(slot, bit)
        return True

    @property
    def everything(self) -> bool:
        """Whether every combination is wanted. O(inputs)."""
        found = (1 << BITS) - 1
        for marks in self.inputs:
            found &= marks.of_all_rows
        return bool(found)

    def only(self, some: Iterator[Wants]) -> QueryMarks:
        """The marks of those of these that are held, by the same bits."""
        marks = QueryMarks(len(self.inputs))
        for wants in some:
            if wants in self._held:
                bit = self._held[wants][0]
                for mine, slot in zip(marks.inputs, wants, strict=True):
                    mine.add(slot, bit)
        return marks

    def __iter__(self) -> Iterator[Wants]:
        """What is wanted, each once."""
        return iter(self._held)
