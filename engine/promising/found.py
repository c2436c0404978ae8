"""What groups found, as readers get it: immutable, and how the evaluation of answers asks for it.

Rows and pairs are ordinals of the sources' rows. They hold what some member's windows held when it was
found; rows that left since may be among them: whoever evaluates an answer has the rows of its windows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from engine.kernels import promising
from engine.language.query import Query
from engine.model.batch import Int64Array
from engine.operators.relation import Relation
from engine.promising.remaining_rows import RemainingRows

MERGED_BITS_MAX = 62
"""Bits that the ordinals of a pair may take together to be sorted as one number."""

NOTHING: Int64Array = np.empty(0, np.int64)


@dataclass(frozen=True, slots=True)
class FoundRows:
    """The rows of one stream that were found. rows: int64, ascending ordinals, each once. left: the rows that
    are estimated to be found yet; None: nobody asks for them, or there are none. errors: rows that were
    visited and whose predicate ended as an error.
    """

    rows: Int64Array
    left: RemainingRows | None = None
    errors: int = 0

    def __len__(self) -> int:
        return len(self.rows)


@dataclass(frozen=True, slots=True)
class PairRun:
    """Pairs in order of the left ordinal, then the right one, each once: int64[n] each."""

    left: Int64Array
    right: Int64Array

    def __len__(self) -> int:
        return len(self.left)

    @classmethod
    def sorted(cls, left: Int64Array, right: Int64Array) -> PairRun:
        """A run of distinct pairs, given in any order. O(n log n); each pair is sorted as one number where
        both ordinals fit into it.
        """
        if not len(left):
            return cls(left, right)
        first, second = int(left.min()), int(right.min())
        bits = (int(right.max()) - second).bit_length()
        if bits + (int(left.max()) - first).bit_length() > MERGED_BITS_MAX:
            order = np.lexsort((right, left))
            return cls(left[order], right[order])
        pairs = ((left - first) << bits) | (right - second)
        pairs.sort()
        return cls((pairs >> bits) + first, (pairs & ((1 << bits) - 1)) + second)

    @classmethod
    def merged(cls, runs: Sequence[PairRun]) -> PairRun:
        """All pairs of runs that have none in common."""
        if len(runs) == 1:
            return runs[0]
        if not runs:
            return cls(NOTHING, NOTHING)
        return cls.sorted(
            np.concatenate([run.left for run in runs]), np.concatenate([run.right for run in runs])
        )

    def copy(self) -> PairRun:
        """A copy in arrays of its own."""
        return PairRun(self.left.copy(), self.right.copy())

    def from_floors(self, left: int, right: int) -> PairRun:
        """The pairs whose parts are at or above these ordinals."""
        start = int(self.left.searchsorted(left))
        kept = self.right[start:] >= right
        if not start and kept.all():
            return self
        return PairRun(self.left[start:][kept], self.right[start:][kept])


@dataclass(frozen=True, slots=True)
class FoundPairs:
    """The pairs that were found for a join of two inputs; a :class:`engine.operators.chain.CompositeSource`
    for its queries.

    runs: no pair is in two of them.
    """

    runs: tuple[PairRun, ...]

    def __len__(self) -> int:
        return sum(map(len, self.runs))

    def pairs(self) -> PairRun:
        """All pairs in order."""
        return PairRun.merged(self.runs)

    def rows(self, place: int) -> Int64Array:
        """int64, ascending, each once: the ordinals of input ``place`` (0 or 1) that have a partner."""
        parts = [run.right if place else run.left for run in self.runs]
        return np.unique(np.concatenate(parts)) if parts else NOTHING

    def among(self, left: Int64Array, right: Int64Array) -> tuple[Int64Array, Int64Array]:
        """Places in both, in order of the left place, then the right one, of the pairs with both parts there.

        left, right: int64, ascending ordinals, each once. O(pairs log rows).
        """
        found: list[PairRun] = []
        if len(left) and len(right):
            for run in self.runs:
                places = np.empty((2, len(run)), np.int64)
                count = promising.places_of_pairs(run.left, run.right, left, right, places[0], places[1])
                found.append(PairRun(places[0, :count], places[1, :count]))
        pairs = PairRun.merged(found)
        return pairs.left, pairs.right

    def places(self, query: Query, relations: Sequence[Relation]) -> Sequence[Int64Array]:
        """As a CompositeSource: which rows of the first two relations are pairs that were found."""
        left, right = (relation.stored_ordinals() for relation in relations[:2])
        return self.among(left, right)
