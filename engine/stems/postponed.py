"""Rows that are still to meet some conditions: those that have no partner yet in a join.

Conditions that :mod:`engine.stems.postponing` names are left out when rows come, so that a row has the bits
of all queries that may want it. It goes into the indexes of joins with these. Once a join finds a combination
that it is part of, in the same step, the row meets what it did not meet, and loses the bits of queries that
refuse it, before any reader sees the combination.

So a bit of a row that is still *waiting* says that a query may want the row, and nobody goes by it: all who
hold the slot ask for an inner join, in which a row without a partner is in no answer. Who needs the matches
of a slot for anything else settles them first, and so does whoever is about to give the rows other ordinals.

Errors are counted where a condition is evaluated. The first error of a condition has it evaluated for all
rows that wait, and before the join from then on.

Cost: a byte for each row since the first that waits; O(rows that meet conditions * conditions) a step.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from engine.kernels.bitmaps import Words
from engine.model.batch import BATCH_ROWS_MAX, Batch, BoolArray, Int32Array, Int64Array
from engine.model.expressions import reads_made
from engine.model.source import Schema
from engine.stems.postponing import PostponedConditions, Postponing, PostponingJoin
from engine.stems.residual import ResidualPredicate
from engine.stems.routing import words_of
from engine.stems.segment import SegmentView, Tail
from engine.store.matches.cohorts import SELECTIVE, Cohorts


@dataclass(slots=True, eq=False)
class WaitingRows:
    """Rows of one segment, the first of which has ordinal ``segment``, that wait for the same conditions.
    waiting: bool[n], of the rows from ordinal ``first`` on.
    """

    segment: int
    first: int
    waiting: BoolArray
    conditions: PostponedConditions

    @property
    def modules(self) -> tuple[ResidualPredicate, ...]:
        return self.conditions.modules

    @property
    def end(self) -> int:
        return self.first + len(self.waiting)


MeetLater = Callable[
    [Batch, Words, Int32Array, Int64Array, Sequence[ResidualPredicate]], tuple[Words, Collection[int]]
]
"""As :meth:`engine.stems.query_stem.QueryStem.meet_later`."""


class PostponedMatches:
    """One owner, as the engine. is_open: whether conditions may be postponed for rows that enter now."""

    def __init__(
        self,
        schema: Schema,
        postponing: Postponing,
        meet_later: MeetLater,
        segment_of: Callable[[int], tuple[SegmentView | None, int]],
    ) -> None:
        """segment_of: by the ordinal of a segment's first row the segment, None where it went, and the first
        ordinal that is retained.
        """
        self._schema = schema
        self._postponing = postponing
        self._meet_later = meet_later
        self._segment_of = segment_of
        self._records: list[WaitingRows] = []
        self._is_open = False

    def __bool__(self) -> bool:
        """Whether rows wait."""
        return bool(self._records)

    def __len__(self) -> int:
        """How many wait. O(rows since the first that does)."""
        return len(self._waiting())

    # --- rows come --------------------------------------------------------------------------------

    @contextmanager
    def open(self) -> Iterator[None]:
        """Rows that enter meanwhile are new: joins are told of them next."""
        self._is_open = True
        try:
            yield
        finally:
            self._is_open = False

    def later(self) -> tuple[PostponedConditions, ...]:
        """The conditions that rows which enter now are to meet later."""
        return self._postponing.later() if self._is_open else ()

    def note(self, tail: Tail, n: int, conditions: PostponedConditions) -> None:
        """The next n rows of the open segment, which has their bits, did not meet these conditions."""
        places, modules = tail.cohorts.place, conditions.modules
        words = words_of(modules, places)
        masks = np.zeros(len(words), np.uint64)
        for module in modules:
            of, bits = module.bits(places)
            masks[words.searchsorted(of)] |= bits
        found = tail.bits.words_at(words, tail.count, n)
        waiting: BoolArray = ((found & masks[:, None]) != 0).any(axis=0)
        count = int(np.count_nonzero(waiting))
        for module in modules:
            self._postponing.came(module, count)
        if count:
            self._append(WaitingRows(tail.first, tail.first + tail.count, waiting, conditions))

    def _append(self, rows: WaitingRows) -> None:
        alike = (each for each in reversed(self._records) if each.conditions == rows.conditions)
        last = next(alike, None)
        if last is not None and last.segment == rows.segment and rows.end - last.first <= BATCH_ROWS_MAX:
            between = np.zeros(rows.first - last.end, np.bool_)
            last.waiting = np.concatenate([last.waiting, between, rows.waiting])
        else:
            self._records.append(rows)

    # --- rows have partners -----------------------------------------------------------------------

    def meet(self, ordinals: Int64Array, join: PostponingJoin) -> None:
        """These rows, ascending, have a partner in a join. O(records + rows * conditions)."""
        for record in list(self._records):
            if join not in record.conditions.joins:
                continue
            low, high = ordinals.searchsorted([record.first, record.end])
            mine = ordinals[low:high] - record.first
            mine = mine[record.waiting[mine]]
            if len(mine):
                for module in record.modules:
                    self._postponing.met(module, len(mine))
                self._evaluate(record, mine)

    def settle(self, slots: Collection[int] | None = None) -> None:
        """All rows that wait for conditions of these slots meet them; None: of all slots."""
        for record in list(self._records):
            if slots is None or any(not module.dense.isdisjoint(slots) for module in record.modules):
                self._evaluate(record, np.flatnonzero(record.waiting))

    def pin(self, slots: Collection[int]) -> None:
        """Somebody goes by the matches of these slots from now on."""
        self._postponing.pin(slots)
        self.settle(slots)

    def drop_below(self, base: int) -> None:
        """Rows below this ordinal are gone."""
        if self._records and self._records[0].end <= base:
            self._records = [record for record in self._records if record.end > base]

    def clear(self) -> None:
        """All rows are gone."""
        self._records = []

    def _evaluate(self, record: WaitingRows, rows: Int64Array) -> None:
        """Some rows of a record, counted from its first, meet what they wait for."""
        record.waiting[rows] = False
        if not record.waiting.any() and record in self._records:
            self._records.remove(record)
        part, base = self._segment_of(record.segment)
        at = rows + record.first
        at = at[at >= base]
        if part is None or not len(at):
            return
        modules = _those_of(part.matches.cohorts, record.modules)
        if not modules:
            return
        at -= part.first
        places, bits = part.matches.cohorts.place, part.matches.bits
        words = words_of(modules, places)
        first, last = int(at[0]), int(at[-1]) + 1
        before = bits.words_at(words, first, last - first)[:, at - first]
        made = any(reads_made(module.predicate, len(self._schema)) for module in modules)
        batch = (part.batch(self._schema) if made else part.values(self._schema)).take(at)
        left, erring = self._meet_later(batch, before.copy(), places, words, modules)
        for word, were, are in zip(words.tolist(), before, left, strict=True):
            bits.end(word, at, were & ~are)
        if erring:
            self.pin(erring)

    def _waiting(self, join: PostponingJoin | None = None) -> Int64Array:
        """Ordinals of all that wait, for a join or for any, ascending."""
        found = [
            record.first + np.flatnonzero(record.waiting)
            for record in self._records
            if join is None or join in record.conditions.joins
        ]
        return np.unique(np.concatenate([np.zeros(0, np.int64), *found]))

    def _check(self) -> None:
        for record in self._records:
            assert record.first >= record.segment
            assert record.waiting.any()
            assert record.conditions.joins


def _those_of(cohorts: Cohorts, modules: Sequence[ResidualPredicate]) -> list[ResidualPredicate]:
    """Those of the conditions that stand, for the sharers that have a bit in a segment."""
    place, found = cohorts.place, list[ResidualPredicate]()
    for module in modules:
        sharers = module.dense | module.selective
        mine = {slot for slot in sharers if slot < len(place) and place[slot] != SELECTIVE}
        if mine:
            found.append(ResidualPredicate(module.name, module.predicate, mine))
    return found
