"""Matching apart from the data: which standing queries would a row satisfy.

A matcher is a Query SteM of its own over the predicates of one stream's queries, whatever their maintenance,
so that asking never waits for the engine nor delays it, and counts no errors there. It follows a view: only
what came and went since the last one is put in and taken out.

A query is satisfied where the predicate of its scan is TRUE, one of UNION where that of either side is;
windows, SAMPLE, and what it does above the scan, do not count. Paused queries are passed over, and those
that read another source too.

``match`` tells ids, a row at a time; ``pairs`` hands over all matches as two arrays.

Cost: O(queries that came and went), building their trees, a tenth of a millisecond each; then one pass of the
Query SteM, as for the same rows of the stream, and O(queries told). Memory: another index over the
predicates, and about 200 bytes a query.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

import numpy as np

from engine.kernels import pairs
from engine.language.query import Query, Scan
from engine.language.rules import rewrite
from engine.model.batch import Batch, Int32Array
from engine.model.expressions import And, Expression, Or, conjunction, reads_made
from engine.model.source import SourceName
from engine.model.step import Registration
from engine.standing.query import StandingQuery
from engine.stems.query_stem import QueryStem
from engine.store.matches.cohorts import SELECTIVE, Cohorts
from engine.store.matches.row_slots import NO_PAIRS
from engine.store.matches.segment_bits import Matrix


@dataclass(frozen=True, slots=True)
class Satisfied:
    """The queries that a row satisfies: how many, and the ids of some of them."""

    query_ids: tuple[str, ...]
    total: int


@dataclass(frozen=True, slots=True)
class Matches:
    """Each match once: the place of its row in the batch, and of its query in
    :attr:`RecordMatcher.query_ids`.

    rows, queries: int32, of one length, in no order to rely on.
    """

    rows: Int32Array
    queries: Int32Array

    def __len__(self) -> int:
        return len(self.rows)


def _asked_of_rows(query: Query, stored: int) -> Expression | None:
    """What satisfies a query; None: any row. stored: how many columns its stream stores."""
    sides = [_of_contents(query.scan, stored)]
    united = [stage.united for stage in query.stages if stage.united is not None]
    sides += [_asked_of_rows(inner, stored) for inner in united]
    asked = [side for side in sides if side is not None]
    if len(asked) < len(sides):
        return None
    return asked[0] if len(asked) == 1 else rewrite(Or(tuple(asked)))


def _of_contents(scan: Scan, stored: int) -> Expression | None:
    """What a scan asks of rows, but for its SAMPLE and for what was shed: a record that came from nowhere is
    in no sample, and in no run.
    """
    predicate = scan.predicate
    if predicate is None or not reads_made(predicate, stored):
        return predicate
    operands = predicate.operands if isinstance(predicate, And) else (predicate,)
    asked = [operand for operand in operands if not reads_made(operand, stored)]
    return conjunction(asked) if asked else None


class RecordMatcher:
    """Matches records against the queries over one stream. One caller at a time."""

    def __init__(self, source: SourceName, stem: QueryStem) -> None:
        """``stem``: empty, and this matcher's alone."""
        self._over = (source,)
        self._stem = stem
        self._seen: Mapping[str, StandingQuery] = {}
        self._known: dict[str, tuple[Registration, int | None]] = {}
        self._holders: dict[int, dict[str, None]] = {}
        self._everything: dict[str, None] = {}
        self._numbered: _Numbered | None = None
        self._room = 0  # for pairs: as many as came last, and an eighth

    def follow(self, queries: Mapping[str, StandingQuery]) -> None:
        """Match these from now on; a mapping never changes after it was given."""
        if queries is self._seen:
            return
        self._numbered = None
        wanted = {
            query_id: query
            for query_id, query in queries.items()
            if query.sources == self._over and not query.paused
        }
        gone = [
            query_id
            for query_id, (registration, _) in self._known.items()
            if query_id not in wanted or wanted[query_id].registration is not registration
        ]
        self._take_out(gone)
        self._put_in([query for query_id, query in wanted.items() if query_id not in self._known])
        self._seen = queries

    def _take_out(self, query_ids: list[str]) -> None:
        slots = []
        for query_id in query_ids:
            _, slot = self._known.pop(query_id)
            if slot is None:
                del self._everything[query_id]
                continue
            slots.append(slot)
            del self._holders[slot][query_id]
            if not self._holders[slot]:
                del self._holders[slot]
        self._stem.remove(slots)

    def _put_in(self, queries: list[StandingQuery]) -> None:
        predicates = [_asked_of_rows(query.query, len(self._stem.schema)) for query in queries]
        slots = iter(self._stem.add([one for one in predicates if one is not None]).slots)
        for query, predicate in zip(queries, predicates, strict=True):
            slot = None if predicate is None else next(slots)
            self._known[query.query_id] = (query.registration, slot)
            holders = self._everything if slot is None else self._holders.setdefault(slot, {})
            holders[query.query_id] = None

    def match(self, rows: Batch, ids_max: int) -> list[Satisfied]:
        """For each row, of at most BATCH_ROWS_MAX, what it satisfies; at most ``ids_max`` ids each."""
        if not len(rows):
            return []
        stem = self._stem
        out = np.zeros((stem.words, len(rows)), np.uint64)
        listed = stem.match(rows, Matrix(out), 0)
        bits = np.unpackbits(out.T.copy().view(np.uint8), axis=1, bitorder="little")
        slots = np.fromiter(self._holders, np.int64, len(self._holders))
        places = stem.cohorts.place[slots]
        dense, at = slots[places != SELECTIVE], places[places != SELECTIVE]
        ends = np.searchsorted(listed.rows, np.arange(len(rows) + 1))
        found = []
        for row in range(len(rows)):
            satisfied = dense[bits[row, at] != 0].tolist() + listed.slots[ends[row] : ends[row + 1]].tolist()
            total = len(self._everything) + sum(len(self._holders[slot]) for slot in satisfied)
            found.append(Satisfied(tuple(islice(self._ids(satisfied), ids_max)), total))
        stem.revise(stem.cohorts.epoch)  # records that are asked about say what is selective, as rows do
        return found

    @property
    def query_ids(self) -> tuple[str, ...]:
        """The queries that are matched, as ``pairs`` numbers them until a ``follow`` changes them."""
        return self._numbers().query_ids

    def pairs(self, rows: Batch) -> Matches:
        """Every match of at most BATCH_ROWS_MAX rows. O(rows * words + matches)."""
        stem, numbered, n = self._stem, self._numbers(), len(rows)
        words = np.empty((stem.words, n), np.uint64)
        selective = stem.match(rows, Matrix(words), 0) if n else NO_PAIRS
        starts, holders = numbered.by_place(stem.cohorts, stem.words)
        lengths = np.diff(numbered.starts)[selective.slots]
        few, all_ = int(lengths.sum()), n * len(numbered.everything)
        before = few + all_
        room = self._room
        while True:
            found = Matches(np.empty(before + room, np.int32), np.empty(before + room, np.int32))
            dense = pairs.spell_bits(words, starts, holders, found.rows[before:], found.queries[before:])
            if dense <= room:
                break
            room = dense
        self._room = dense + (dense >> 3)
        found.rows[:few] = np.repeat(selective.rows, lengths)
        found.queries[:few] = numbered.holders[_ranges(numbered.starts[selective.slots], lengths)]
        found.rows[few:before] = np.repeat(np.arange(n, dtype=np.int32), len(numbered.everything))
        found.queries[few:before] = np.tile(numbered.everything, n)
        stem.revise(stem.cohorts.epoch)
        return Matches(found.rows[: before + dense], found.queries[: before + dense])

    def _numbers(self) -> _Numbered:
        if self._numbered is None:
            self._numbered = _Numbered(tuple(self._known), self._holders, self._everything)
        return self._numbered

    def _ids(self, slots: list[int]) -> Iterator[str]:
        yield from self._everything
        for slot in slots:
            yield from self._holders[slot]

    def _check(self) -> None:
        self._stem._check()
        held = {query_id for holders in self._holders.values() for query_id in holders}
        assert held.isdisjoint(self._everything)
        assert held | self._everything.keys() == self._known.keys()
        assert all(self._holders.values())


class _Numbered:
    """Queries by number: those of each slot, and those without a predicate."""

    def __init__(
        self, query_ids: tuple[str, ...], by_slot: Mapping[int, dict[str, None]], everything: dict[str, None]
    ) -> None:
        self.query_ids = query_ids
        number = {query_id: place for place, query_id in enumerate(query_ids)}
        lengths = np.zeros(max(by_slot, default=-1) + 2, np.int32)
        for slot, ids in by_slot.items():
            lengths[slot + 1] = len(ids)
        self.starts: Int32Array = np.cumsum(lengths, dtype=np.int32)
        ordered = [number[query_id] for slot in sorted(by_slot) for query_id in by_slot[slot]]
        self.holders: Int32Array = np.array(ordered, np.int32)
        self._placed: tuple[Cohorts, Int32Array, Int32Array] | None = None
        self.everything: Int32Array = np.array([number[query_id] for query_id in everything], np.int32)

    def by_place(self, cohorts: Cohorts, words: int) -> tuple[Int32Array, Int32Array]:
        """(starts, holders) by place among the word columns. O(slots), once for the same cohorts."""
        if self._placed is None or self._placed[0] is not cohorts:
            self._placed = cohorts, *self._by_place(cohorts.place, words)
        return self._placed[1:]

    def _by_place(self, place: Int32Array, words: int) -> tuple[Int32Array, Int32Array]:
        slots = np.flatnonzero(np.diff(self.starts))
        slots = slots[place[slots] != SELECTIVE]
        slots = slots[np.argsort(place[slots])]
        lengths = np.diff(self.starts)[slots]
        starts = np.zeros((words << 6) + 1, np.int32)
        starts[place[slots] + 1] = lengths
        return np.cumsum(starts, dtype=np.int32), self.holders[_ranges(self.starts[slots], lengths)]


def _ranges(starts: Int32Array, lengths: Int32Array) -> Int32Array:
    """starts[0], starts[0] + 1, ... lengths[0] of them, then those of starts[1]; int32."""
    ends = np.cumsum(lengths, dtype=np.int32)
    return np.repeat(starts - ends + lengths, lengths) + np.arange(int(lengths.sum()), dtype=np.int32)
