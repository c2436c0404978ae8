"""The predicates of a group's members, applied to stored rows that are visited.

What the predicates compare with constants stands in a grouped filter of the group's own
(:class:`engine.stems.query_stem.QueryStem`, over the columns that are read), which a visited row meets once
for all members; conditions beyond it are evaluated for the rows that are left, each distinct one once a row.
Nothing is learnt from one row for the next, so rows may come in any pieces. An error makes a row no match,
and counts where no other condition of the member's rules the row out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from engine.kernels import selections
from engine.kernels.selections import Sharers, VisitedRows
from engine.language.evaluate import truth
from engine.model.batch import BATCH_ROWS_MAX, Batch, Int32Array, Int64Array
from engine.model.expressions import Expression, columns_of
from engine.model.lazy_columns import LazyColumns
from engine.model.source import Schema
from engine.operators.gather import gather
from engine.operators.places import Places
from engine.stems.factors import Factors
from engine.stems.query_stem import QueryStem
from engine.stems.rows import Rows
from engine.store.matches.cohorts import SELECTIVE

Words = npt.NDArray[np.uint64]

EVERY_ROW = Factors([{}], ())


@dataclass(frozen=True, slots=True)
class Hits:
    """What members took of visited rows."""

    # int64[members + 1]: where the rows of each begin and end in ``ordinals``.
    starts: Int64Array
    # int64: those of a member ascending.
    ordinals: Int64Array
    # int32: the visited entries that they are of.
    entry: Int32Array
    # int64[members]: rows whose predicate ended as an error.
    errors: Int64Array
    # How often a condition beyond the grouped filter was evaluated for a row.
    evaluations: int

    def of(self, member: int) -> Int64Array:
        """int64, ascending: the ordinals that a member took."""
        return self.ordinals[self.starts[member] : self.starts[member + 1]]


class RowFilter:
    """See the module. predicates: by member, taken apart; None: every row. members: how many numbers there
    are for them. O(predicates).
    """

    def __init__(self, schema: Schema, predicates: Mapping[int, Factors | None], members: int) -> None:
        self._members = members
        taken = {member: EVERY_ROW if each is None else each for member, each in sorted(predicates.items())}
        self._columns = sorted({place for each in taken.values() for term in each.terms for place in term})
        self._schema = schema
        at = {place: number for number, place in enumerate(self._columns)}
        self._stem = QueryStem(Schema(tuple(schema.field(place) for place in self._columns)))
        narrow = [
            Factors([{at[place]: region for place, region in term.items()} for term in each.terms], ())
            for each in taken.values()
        ]
        slots = self._stem.add(narrow).slots
        self._filter = self._stem.probe(slots, self._stem.cohorts)
        place, places = self._places(np.array(slots, np.int64))
        order = np.argsort(place, kind="stable")
        self._starts = np.searchsorted(place[order], np.arange(places + 1)).astype(np.int32)
        self._sharers = np.array(list(taken), np.int32)[order]
        # Room for hits.
        self._member, self._row = np.empty(BATCH_ROWS_MAX, np.int32), np.empty(BATCH_ROWS_MAX, np.int32)
        self._residuals = {member: each.residuals for member, each in taken.items() if each.residuals}

    def _places(self, slots: Int64Array) -> tuple[Int64Array, int]:
        """Where the filter tells what each slot matches, and how many places there are: a bit of its words,
        or behind them one of its lists.
        """
        words = np.array(self._filter.places.words, np.int64)
        bit = self._stem.cohorts.place[slots].astype(np.int64)
        dense = np.searchsorted(words, bit >> 6) << 6 | bit & 63
        listed = 64 * len(words) + np.searchsorted(self._filter.places.selective, slots)
        places = 64 * len(words) + len(self._filter.places.selective)
        return np.where(bit == SELECTIVE, listed, dense), places

    @property
    def residuals(self) -> int:
        """How many distinct conditions a row may be evaluated for besides the grouped filter."""
        return len({one for each in self._residuals.values() for one in each})

    def apply(
        self, rows: Rows, ordinals: Int64Array, entry: Int32Array, wanted: Words, floor: Int64Array
    ) -> Hits:
        """What members take of rows.

        ordinals: int64[n], ascending. entry: int32[n], which visited entry each is of. wanted:
        uint64[entries, words], the members that look for the rows of an entry. floor: int64[members], the
        first ordinal in the window of each. O(words * rows + hits).
        """
        parts = [
            self._some(
                rows,
                ordinals[start : start + BATCH_ROWS_MAX],
                entry[start : start + BATCH_ROWS_MAX],
                wanted,
                floor,
            )
            for start in range(0, len(ordinals), BATCH_ROWS_MAX)
        ]
        return together(parts, self._members)

    def _some(
        self, rows: Rows, ordinals: Int64Array, entry: Int32Array, wanted: Words, floor: Int64Array
    ) -> Hits:
        places = places_of(rows, ordinals)
        n = len(ordinals)
        columns = tuple(gather(place, rows.schema, places, n) for place in self._columns)
        nowhere = np.broadcast_to(np.int32(-1), n), np.broadcast_to(np.int64(-1), n)
        batch = Batch(self._stem.schema, columns, *nowhere, ordinals)
        found = self._filter.match(batch, 0)
        row, slot = found.lists.pairs()
        listed = 64 * len(self._filter.places.words) + np.searchsorted(self._filter.places.selective, slot)
        visited = VisitedRows(found.bits, row.astype(np.int32), listed.astype(np.int32), entry, ordinals)
        sharers = Sharers(self._starts, self._sharers, floor)
        count = selections.hits_of(visited, sharers, wanted, self._member, self._row)
        if count > len(self._member):
            self._member, self._row = np.empty(2 * count, np.int32), np.empty(2 * count, np.int32)
            selections.hits_of(visited, sharers, wanted, self._member, self._row)
        starts, taken = np.zeros(self._members + 1, np.int64), np.empty(count, np.int64)
        selections.by_member(self._member[:count], self._row[:count], starts, taken)
        if not self._residuals:
            return Hits(starts, ordinals[taken], entry[taken], np.zeros(self._members, np.int64), 0)
        return self._without_refused(rows, places, ordinals, entry, starts, taken)

    def _without_refused(
        self,
        rows: Rows,
        places: Places,
        ordinals: Int64Array,
        entry: Int32Array,
        starts: Int64Array,
        taken: Int64Array,
    ) -> Hits:
        """The hits whose residuals are TRUE, too. Residuals are evaluated in the order in which each member
        has them, each for the rows that some member still looks at.
        """
        n = len(ordinals)
        columns = LazyColumns(len(rows.schema), lambda place: gather(place, rows.schema, places, n))
        alive = np.ones(len(taken), np.bool_)
        erring = np.zeros(len(taken), np.bool_)
        evaluations = 0
        for residual, members in self._in_turn():
            mine = [np.arange(starts[member], starts[member + 1]) for member in members]
            held = np.concatenate(mine)
            held = held[alive[held]]
            if not len(held):
                continue
            looked_at = np.unique(taken[held])
            evaluations += len(looked_at)
            true, error = _of_rows(residual, columns, looked_at)
            place = np.searchsorted(looked_at, taken[held])
            if error is not None:
                erring[held] |= error[place]
                true = true | error
            alive[held] = true[place]
        kept = alive & ~erring
        member = np.repeat(np.arange(self._members), np.diff(starts))
        counts = np.bincount(member[kept], minlength=self._members)
        errors = np.bincount(member[alive & erring], minlength=self._members)
        taken = taken[kept]
        return Hits(
            np.concatenate([[0], np.cumsum(counts)]), ordinals[taken], entry[taken], errors, evaluations
        )

    def _in_turn(self) -> list[tuple[Expression, list[int]]]:
        """Each distinct residual with the members that have it."""
        found: dict[Expression, list[int]] = {}
        for member, residuals in self._residuals.items():
            for residual in residuals:
                found.setdefault(residual, []).append(member)
        return list(found.items())


def _of_rows(
    residual: Expression, columns: LazyColumns, which: Int64Array
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_] | None]:
    read = {column.index for column in columns_of(residual)}
    taken = {place: columns[place].take(which) for place in read}
    return truth(residual, LazyColumns(len(columns), lambda place: taken[place]), len(which))


def places_of(rows: Rows, ordinals: Int64Array) -> Places:
    """Where rows with these ordinals, ascending and retained, stand. O(segments + rows)."""
    if not len(ordinals):
        return []
    found = []
    for part, first, last in rows.ranges(int(ordinals[0]), int(ordinals[-1]) + 1):
        low, high = ordinals.searchsorted([part.first + first, part.first + last])
        if low < high:
            found.append((part, ordinals[low:high] - part.first))
    return found


def together(parts: Sequence[Hits], members: int) -> Hits:
    """The hits of rows that follow each other, as one."""
    if len(parts) == 1:
        return parts[0]
    counts = sum((np.diff(part.starts) for part in parts), np.zeros(members, np.int64))
    starts = np.concatenate([[0], np.cumsum(counts)])
    member = np.concatenate(
        [np.empty(0, np.int64), *(np.repeat(np.arange(members), np.diff(part.starts)) for part in parts)]
    )
    order = np.argsort(member, kind="stable")
    return Hits(
        starts,
        np.concatenate([np.empty(0, np.int64), *(part.ordinals for part in parts)])[order],
        np.concatenate([np.empty(0, np.int32), *(part.entry for part in parts)])[order],
        sum((part.errors for part in parts), np.zeros(members, np.int64)),
        sum(part.evaluations for part in parts),
    )
