"""A ranked n-ary tree of partial aggregates for each eager query, all of one stream side by side.

What PSoup (section on aggregation) does with one tree a query is done here for 64 queries at a time: a block
of 4,096 rows is a leaf, 64 nodes make one above. Sums are exact
(:mod:`.doubles`), so what it gives is to the bit what going over the rows would.

Cost: a row that enters, O(words of slots) a measure; a closed block, O(slots). An answer over any window:
the rows at its two ends, fewer than 8,192, and O(64 + rows / 262,144) nodes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from engine.algebra.aggregate.stage import Aggregate
from engine.kernels import bitmaps
from engine.language.query import Query
from engine.model.attributes import Attribute
from engine.model.batch import Batch
from engine.model.expressions import Expression
from engine.operators.maintained.bank import BLOCK, Bank, Entered
from engine.operators.maintained.kept_aggregate import KeptAggregate
from engine.operators.maintained.match_columns import EVERY_ROW, MatchColumns
from engine.operators.maintained.measure import Measure, Operands, measures_of, operands
from engine.stems.rows import Rows

Kept = tuple[int, Measure]
"""A slot, and what is kept for it."""


class RankedAggregates:
    """The writing side, and where readers find theirs. One writer; readers need no lock."""

    def __init__(self, end: int = 0) -> None:
        """end: the ordinal of the next row to enter."""
        self._end = end
        self._base = end
        self._banks: dict[Measure, Bank] = {}
        self._holders: dict[Kept, int] = {}
        self._matches: MatchColumns | None = None
        self._queries: dict[str, tuple[tuple[Kept, ...], KeptAggregate]] = {}

    def __len__(self) -> int:
        """How many queries are kept."""
        return len(self._queries)

    # --- queries ----------------------------------------------------------------------------------

    def add(self, queries: Mapping[str, tuple[Query, int | None]], rows: Rows) -> None:
        """Keep these from now on, those of them that :func:`~.measure.measures_of` says can be kept.

        queries: by id, with the slot of the scan's predicate (None: it has none). rows: all that are
        retained, with the matches of these slots; what is new is computed over them, in one pass for all:
        O(rows * words).
        """
        self.advance(rows)
        self._base = max(self._base, rows.base)
        wanted: dict[str, tuple[Query, int, tuple[Kept, ...]]] = {}
        fresh: dict[Measure, list[int]] = {}
        for query_id, (query, place) in queries.items():
            measures = measures_of(query)
            if measures is None or query_id in self._queries:
                continue
            slot = EVERY_ROW if place is None else place
            kept = tuple((slot, measure) for measure in measures)
            wanted[query_id] = query, slot, kept
            for each in kept:
                if each not in self._holders:
                    fresh.setdefault(each[1], []).append(slot)
                self._holders[each] = self._holders.get(each, 0) + 1
        self._backfill(fresh, rows)
        for query_id, (query, slot, kept) in wanted.items():
            self._queries[query_id] = kept, KeptAggregate(_stage_of(query), slot, self._banks)

    def _backfill(self, fresh: Mapping[Measure, Sequence[int]], rows: Rows) -> None:
        made = {}
        for measure, slots in fresh.items():
            bank = made[measure] = Bank(measure, rows.base // BLOCK)
            bank.put(slots, rows.base)
        if made:
            banks = list(made.values())
            _follow(banks, MatchColumns(_words_of(banks)), rows, rows.base, rows.end)
            self._matches = None
        for measure, bank in made.items():
            known = self._banks.get(measure)
            if known is None:
                self._banks[measure] = bank
            else:
                known.take(bank)

    def take(self, other: RankedAggregates, query_id: str, query: Query) -> None:
        """Keep a query from now on that is the only one of another, which went over the same rows up to the
        same end. O(blocks).
        """
        kept, _ = other._queries[query_id]
        assert self._end == other._end or not self._banks
        self._end, self._matches = other._end, None
        for each in kept:
            if each not in self._holders:
                _, measure = each
                known, bank = self._banks.get(measure), other._banks[measure]
                if known is None:
                    self._banks[measure] = bank
                else:
                    known.take(bank)
            self._holders[each] = self._holders.get(each, 0) + 1
        self._queries[query_id] = kept, KeptAggregate(_stage_of(query), kept[0][0], self._banks)

    def entering(self, rows: Rows) -> int:
        """How many of these rows are new to it."""
        return max(0, rows.end - max(rows.base, self._end))

    def remove(self, query_ids: Iterable[str]) -> None:
        """Remove these queries, as far as they are kept. Call it before their slots are used again."""
        for query_id in query_ids:
            kept, _ = self._queries.pop(query_id, ((), None))
            for each in kept:
                self._holders[each] -= 1
                if not self._holders[each]:
                    self._let_go(each)

    def _let_go(self, kept: Kept) -> None:
        del self._holders[kept]
        self._matches = None
        slot, measure = kept
        bank = self._banks[measure]
        bank.remove(slot)
        if not len(bank):
            del self._banks[measure]

    # --- rows -------------------------------------------------------------------------------------

    def advance(self, rows: Rows) -> None:
        """Follow the rows that entered since. Where they do not follow, as after a restart, begin anew."""
        if rows.base > self._end:
            for bank in self._banks.values():
                bank.restart(rows.base // BLOCK, rows.base)
            self._end = rows.base
        if self._banks and rows.end > self._end:
            banks = list(self._banks.values())
            if self._matches is None:
                self._matches = MatchColumns(_words_of(banks))
            _follow(banks, self._matches, rows, self._end, rows.end)
        self._end = rows.end

    def drop_below(self, base: int) -> None:
        """Rows below this ordinal are gone."""
        if base > self._base:
            self._base = base
            for bank in self._banks.values():
                bank.drop_below(base)

    # --- readers ----------------------------------------------------------------------------------

    def reader(self, query_id: str) -> KeptAggregate | None:
        """What answers a query at any instant from any view, None where it is not kept."""
        found = self._queries.get(query_id)
        return None if found is None else found[1]

    @property
    def nbytes(self) -> int:
        """Bytes of all partials."""
        return sum(bank.nbytes for bank in self._banks.values())

    def __iter__(self) -> Iterator[str]:
        """The ids of the queries."""
        return iter(self._queries)

    def bytes_of(self, query_id: str) -> int:
        """A query's share of the partials of its measures."""
        kept, _ = self._queries.get(query_id, ((), None))
        banks = [self._banks[measure] for _, measure in kept]
        return sum(bank.nbytes // max(1, len(bank)) for bank in banks)

    def attributes(self) -> tuple[Attribute, ...]:
        """What can be read of this module."""
        return (
            Attribute("kept_aggregates", len(self._queries), "queries whose aggregates are kept"),
            Attribute("partial_bytes", self.nbytes, "bytes of their partials"),
        )

    def _check(self) -> None:
        counted = Counter(each for kept, _ in self._queries.values() for each in kept)
        assert counted == self._holders
        assert sum(len(bank) for bank in self._banks.values()) == len(counted)
        for slot, measure in counted:
            assert self._banks[measure].holds(slot)
        for bank in self._banks.values():
            assert bank.partials.stop == self._end // BLOCK
            bank._check()


def _follow(banks: Sequence[Bank], matches: MatchColumns, rows: Rows, start: int, stop: int) -> None:
    """Take rows start <= ordinal < stop into these banks, block by block."""
    for part, first, last in rows.ranges(start, stop):
        columns = matches.of(part, first, last)
        batch = part.values(rows.schema).slice(first, last)
        low, end = 0, last - first
        while low < end:
            room = BLOCK - (part.first + first + low) % BLOCK
            high = min(end, low + room)
            cut = {word: column[low:high] for word, column in columns.items()}
            _enter(banks, cut, batch.slice(low, high))
            if high - low == room:
                for bank in banks:
                    bank.close()
            low = high


def _words_of(banks: Iterable[Bank]) -> dict[int, int]:
    """All words that some bank keeps slots of, and which."""
    masks: dict[int, int] = {}
    for bank in banks:
        for word, mask in bank.words:
            masks[word] = masks.get(word, 0) | mask
    return masks


def _enter(banks: Sequence[Bank], columns: Mapping[int, bitmaps.Words], rows: Batch) -> None:
    entered = Entered(columns)
    known: dict[tuple[Expression | None, Expression | None], Operands] = {}
    for bank in banks:
        measure = bank.measure
        of = measure.argument, measure.filter
        if of not in known:
            known[of] = operands(*of, rows)
        bank.enter(entered, known[of])


def _stage_of(query: Query) -> Aggregate:
    """The aggregate that its answer is made by."""
    stage = query.stages[0].aggregate
    assert stage is not None
    return stage
