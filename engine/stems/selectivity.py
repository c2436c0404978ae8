"""Which predicates are selective, and through which attribute they are best reached.

The share of rows that a region lets through is counted on a sample of the rows that came; where none came,
or too few to tell, what its form suggests stands in. A predicate is selective if the best attribute of each
of its terms lets through little enough, in sum, that testing it on the rows that pass costs less than a bit
for every row.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from engine.domains.domain import KEY_MAX, KEY_MIN, Domain
from engine.model.batch import Batch, Column, Int64Array, concatenate_columns
from engine.model.types import Kind
from engine.stems.region_store import NULL_TOO, Intervals

SHARE_MAX = 1 / 256
"""A bit costs about 0.012 ns a row, a candidate 3 ns: measured on the kernels."""

SAMPLED_ROWS = 64
SAMPLED_BATCHES = 16
SAMPLE_EVERY = 64
PRIOR_ROWS = 4.0
"""What a region's form suggests weighs as much as so many rows."""

POINT_SHARE = 1 / 1_024
RANGE_SHARE = 1 / 8
OPEN_SHARE = 1 / 3

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class AccessChoice:
    """share: of rows that are candidates, one for each slot. ways_in: of each of their rows in the store."""

    share: FloatArray
    ways_in: npt.NDArray[np.bool_]

    def paths(self, counts: Int64Array, rows: Intervals) -> tuple[Int64Array, npt.NDArray[np.bool_]]:
        """For each slot the attribute by which its first term is reached, -1 for none, and whether it is
        reached by a point.

        counts, rows: as they were given to choose.
        """
        attribute, point = np.full(len(counts), -1, np.int64), np.zeros(len(counts), np.bool_)
        marked = np.flatnonzero(self.ways_in)
        owner, first = np.unique(np.repeat(np.arange(len(counts)), counts)[marked], return_index=True)
        first = marked[first]
        attribute[owner] = rows.attribute[first]
        point[owner] = rows.low[first] == rows.last[first]
        return attribute, point


def _on_its_own(column: Column) -> Column:
    """A column that does not hold the strings of its source."""
    return column.with_used() if column.type.kind is Kind.STRING else column


class BatchSample:
    """Some rows of the last batches, spread evenly, and estimates from them."""

    def __init__(self, domains: Mapping[int, Domain]) -> None:
        self._domains = domains
        self._taken: deque[Batch] = deque(maxlen=SAMPLED_BATCHES)
        self._batches = 0
        self._sorted: dict[int, tuple[Int64Array, int]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._taken))

    def observe(self, rows: Batch) -> None:
        """A batch came by. O(1) for most."""
        self._batches += 1
        if len(rows) and (len(self._taken) < SAMPLED_BATCHES or self._batches % SAMPLE_EVERY == 0):
            some = rows.take(np.arange(0, len(rows), max(1, len(rows) // SAMPLED_ROWS)))
            columns = tuple(map(_on_its_own, some.columns))
            self._taken.append(Batch(some.schema, columns, some.partition, some.offset, some.timestamp))
            self._sorted.clear()

    def keys_moved(self) -> None:
        """The keys of some domain are others now."""
        self._sorted.clear()

    def _keys(self, index: int) -> tuple[Int64Array, int]:
        """(keys ascending, without NULLs; rows)."""
        held = self._sorted.get(index)
        if held is None:
            domain = self._domains[index]
            column = concatenate_columns(domain.type, [rows.column(index) for rows in self._taken])
            keys = np.empty(len(column), np.int64)
            domain.keys(column, keys)
            if column.valid is not None:
                keys = keys[column.valid]
            held = self._sorted[index] = (np.sort(keys), len(column))
        return held

    def shares(self, rows: Intervals) -> FloatArray:
        """float64[n]: the share of rows in each interval."""
        shares = np.empty(len(rows), np.float64)
        indices = np.unique(rows.attribute).tolist()
        for index in indices:
            mine = slice(None) if len(indices) == 1 else rows.attribute == index
            low, last = rows.low[mine], rows.last[mine]
            boolean = self._domains[index].type.kind is Kind.BOOLEAN
            ends = (low > KEY_MIN).astype(np.int64) + (last < KEY_MAX)
            prior = np.array([1.0, OPEN_SHARE, RANGE_SHARE])[ends]
            prior[low == last] = 0.5 if boolean else POINT_SHARE
            if not self._taken:
                shares[mine] = prior
                continue
            keys, seen = self._keys(index)
            hits = np.searchsorted(keys, last, "right") - np.searchsorted(keys, low, "left")
            shares[mine] = (hits + PRIOR_ROWS * prior) / (seen + PRIOR_ROWS)
        shares[rows.low > rows.last] = 0.0
        return shares

    def choose(self, counts: Int64Array, terms: Int64Array, rows: Intervals) -> AccessChoice:
        """For slots with so many rows and terms each, rows one slot after another. O(rows log sample)."""
        slots = len(counts)
        share = np.zeros(slots, np.float64)
        ways_in = np.zeros(len(rows), np.bool_)
        held = np.zeros(slots, np.int64)
        if len(rows):
            owner = np.repeat(np.arange(slots), counts)
            new_term = np.r_[True, (owner[1:] != owner[:-1]) | (rows.term[1:] != rows.term[:-1])]
            new_group = new_term.copy()
            new_group[1:] |= rows.attribute[1:] != rows.attribute[:-1]
            groups, starts = np.flatnonzero(new_group), np.flatnonzero(new_term)
            of_group = np.add.reduceat(self.shares(rows), groups)
            null = np.maximum.reduceat(rows.flags & NULL_TOO, groups) > 0
            of_group[null] = 2.0  # never a way in
            term_of_group = np.cumsum(new_term[groups]) - 1
            order = np.lexsort((of_group, term_of_group))
            best = order[np.searchsorted(term_of_group[order], np.arange(len(starts)))]
            np.add.at(share, owner[starts], np.minimum(1.0, of_group[best]))
            np.add.at(held, owner[starts], 1)
            chosen = np.zeros(len(groups), np.bool_)
            chosen[best] = True
            ways_in = chosen[np.cumsum(new_group) - 1]
            np.maximum.at(share, owner[starts], np.where(null[best], 1.0, 0.0))
        share[held < terms] = 1.0  # a term without any region
        return AccessChoice(share, ways_in)
