"""The members of a group over one stream, as columns by number, and what is learnt of each.

A number is a bit of the entries' words; one that is free goes to the next member, the lowest first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from engine.language.query import Scan
from engine.model.batch import BoolArray, Int64Array
from engine.model.types import Type
from engine.promising.conditions import AttributeCondition, condition_on, taken_apart
from engine.promising.group import Member
from engine.stems.factors import Factors
from engine.windows.clauses import Window

Float64Array = npt.NDArray[np.float64]
Words = npt.NDArray[np.uint64]


LAYOUTS = 2
"""A summary has no more: one by hash, and one that is learned."""

PRIOR_ROWS = 4.0
"""Visited rows that weigh as much as what the cut points of ordered buckets say of a range."""


@dataclass(slots=True)
class Learnt:
    """Columns by member; all but the floor are a part of a group's state."""

    # int64: the first ordinal that its window holds.
    floor: Int64Array
    # int64: below this ordinal some row that it looks for was let go unvisited.
    lost_end: Int64Array
    # int64: rows whose predicate ended as an error.
    errors: Int64Array
    # int64[members, LAYOUTS * (buckets + 1)]: rows that were visited for it, and that it took, by the place
    # of their bucket (:mod:`engine.promising.named_values`).
    visits: Int64Array
    hits: Int64Array
    # float64: of the rows that were visited, how many were estimated to have one of its constants.
    seen: Float64Array
    # float64: how many rows it was estimated to take of those that were let go unvisited.
    lost: Float64Array

    @classmethod
    def none(cls, members: int, buckets: int) -> Learnt:
        """What is learnt of so many members before they saw anything."""

        def zeros(*shape: int) -> Int64Array:
            return np.zeros(shape, np.int64)

        rows, cells = (members,), (members, LAYOUTS * (buckets + 1))
        return cls(
            zeros(*rows),
            zeros(*rows),
            zeros(*rows),
            zeros(*cells),
            zeros(*cells),
            np.zeros(members),
            np.zeros(members),
        )

    @property
    def nbytes(self) -> int:
        """Bytes of the columns."""
        columns = self.floor, self.lost_end, self.errors, self.visits, self.hits, self.seen, self.lost
        return sum(column.nbytes for column in columns)

    def clear(self, member: int) -> None:
        """Forget what was learnt of a member: its number is another's now."""
        columns = self.floor, self.lost_end, self.errors, self.visits, self.hits, self.seen, self.lost
        for column in columns:
            column[member] = 0

    def widened(self, members: int) -> Learnt:
        """With room for so many members."""
        more = ((0, members - len(self.floor)),)
        of_cells = (*more, (0, 0))
        return Learnt(
            np.pad(self.floor, more),
            np.pad(self.lost_end, more),
            np.pad(self.errors, more),
            np.pad(self.visits, of_cells),
            np.pad(self.hits, of_cells),
            np.pad(self.seen, more),
            np.pad(self.lost, more),
        )


@dataclass(slots=True)
class SelectionMembers:
    """See the module."""

    # The place and the type of the summarised attribute.
    column: int
    type: Type
    buckets: int
    held: dict[str, Member] = field(default_factory=dict)
    number: dict[str, int] = field(default_factory=dict)
    # By number.
    taken: dict[int, Factors | None] = field(default_factory=dict)
    conditions: dict[int, AttributeCondition] = field(default_factory=dict)
    # Numbers of those that rows from before they came were not offered to yet.
    fresh: set[int] = field(default_factory=set)
    learnt: Learnt = field(init=False)
    _by_window: dict[Window, list[int]] | None = None

    def __post_init__(self) -> None:
        self.learnt = Learnt.none(64, self.buckets)

    @property
    def size(self) -> int:
        """How many numbers there is room for: a multiple of 64."""
        return len(self.learnt.floor)

    @property
    def words(self) -> int:
        """Words of bits."""
        return self.size >> 6

    def add(self, member: Member, number: int | None = None) -> int:
        """A query comes; returns its number."""
        if number is None:
            used = set(self.number.values())
            number = next(each for each in range(len(used) + 1) if each not in used)
        while number >= self.size:
            self.learnt = self.learnt.widened(2 * self.size)
        self._by_window = None
        self.held[member.query_id] = member
        self.number[member.query_id] = number
        predicate = member.query.scan.predicate
        self.taken[number] = taken_apart(predicate)
        self.conditions[number] = condition_on(self.taken[number], self.column, self.type)
        return number

    def remove(self, query_id: str) -> int:
        """A query goes; returns the number that is free now."""
        self._by_window = None
        number = self.number.pop(query_id)
        del self.held[query_id], self.taken[number], self.conditions[number]
        self.fresh.discard(number)
        self.learnt.clear(number)
        return number

    def weights(self) -> Float64Array:
        """float64[members]: 0 of numbers that are free."""
        weights = np.zeros(self.size)
        for query_id, number in self.number.items():
            weights[number] = self.held[query_id].weight
        return weights

    def scan_of(self, number: int) -> Scan:
        """The scan of the member with a number."""
        return next(self.held[query_id].query.scan for query_id, n in self.number.items() if n == number)

    def by_window(self) -> Mapping[Window, list[int]]:
        """The numbers of members with each window."""
        if self._by_window is None:
            self._by_window = {}
            for query_id, number in self.number.items():
                self._by_window.setdefault(self.held[query_id].query.scan.window, []).append(number)
        return self._by_window

    def bits(self, numbers: npt.ArrayLike) -> Words:
        """uint64[words]: these members."""
        mask = np.zeros(self.size, np.bool_)
        mask[np.asarray(numbers, np.int64)] = True
        return bits_of(mask)

    def rates(self, covered: Float64Array) -> Float64Array:
        """float64[members, places]: which share of the rows that may fit each took so far.

        Of a member that names values: of the rows estimated to have one of them, in all buckets; of the
        others: of the rows of each bucket, together with PRIOR_ROWS that say what its range covers of it, or
        one that says what it took in other buckets of the layout. 1 of what nothing is known of.
        covered: float64[members, places], NaN where it is not known. A place is of a bucket of a layout.
        """
        learnt, size = self.learnt, self.size
        by_layout = size, LAYOUTS, self.buckets + 1
        hits, visits = learnt.hits.reshape(by_layout), learnt.visits.reshape(by_layout)
        overall = (hits.sum(axis=2, keepdims=True) + 1) / (visits.sum(axis=2, keepdims=True) + 1)
        told = ~np.isnan(covered).reshape(by_layout)
        prior = np.where(told, covered.reshape(by_layout), overall)
        rows = np.where(told, PRIOR_ROWS, 1.0)
        rates = (hits + prior * rows) / (visits + rows)
        for number, condition in self.conditions.items():
            if condition.points is not None:
                took, seen = learnt.hits[number].sum(), learnt.seen[number]
                rates[number, :, :-1] = min(1.0, (took + 1) / (seen + 1)) if condition.narrower else 1.0
        least: Float64Array = np.minimum(rates, 1.0).reshape(size, -1)
        return least


def bits_of(mask: BoolArray) -> Words:
    """bool[..., 64 * words] -> uint64[..., words]."""
    return np.packbits(mask, axis=-1, bitorder="little").view(np.uint64)


def mask_of(bits: Words) -> BoolArray:
    """uint64[..., words] -> bool[..., 64 * words]."""
    return np.unpackbits(np.ascontiguousarray(bits).view(np.uint8), axis=-1, bitorder="little").view(np.bool_)
