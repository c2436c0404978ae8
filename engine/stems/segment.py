"""Segments: the visible rows of a source, 65,536 at a time, with the matches of all queries beside them.

The *tail* is the one open segment: arrays of full capacity that fill from the front. Rows below its count
never change, so a reader who took the arrays and the count needs no lock. When it is full it is *sealed*:
its word columns are packed, and it changes no more but for word columns that replace others when queries
come.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import overload

import numpy as np
import numpy.typing as npt

from engine.kernels import bitmaps, streaming
from engine.model.batch import Batch, BoolArray, Column, Int32Array, Int64Array
from engine.model.source import Field, Schema
from engine.model.string_table import StringTable
from engine.model.types import Kind
from engine.results.part_matches import PairLog, PartMatches, sealed_lists, with_late
from engine.results.slot_lists import SlotLists
from engine.results.word_column import DenseWord, WordColumn, pack
from engine.stems.cohorts import Cohorts
from engine.stems.entering import Entering, Run
from engine.stems.new_queries import Found, NewQueries
from engine.stems.origins import Origins
from engine.stems.selective_index import Pairs
from engine.stems.stream_strings import Tables
from engine.stems.zone import Zone, zone_of

SEGMENT_ROWS = 65_536
POOLED_MAX = 4


@dataclass(frozen=True, slots=True)
class Part:
    """What a reader sees of a segment: n rows from ordinal ``first`` on.

    Columns are arrays of at least n rows.
    """

    first: int
    n: int
    columns: tuple[PartColumn, ...]
    origins: Origins
    timestamp: Int64Array
    matches: PartMatches
    zones: tuple[Zone | None, ...] = ()
    """Of a sealed segment: one a column; empty while the segment is open."""

    @property
    def end(self) -> int:
        return self.first + self.n

    def batch(self, schema: Schema) -> Batch:
        """All rows as a batch, without copying numbers but for where a sealed segment's rows come from."""
        return self._batch(schema, *self.origins.of(0, self.n))

    def values(self, schema: Schema) -> Batch:
        """The same without where they come from: partitions and offsets are -1."""
        nowhere = np.broadcast_to(np.int32(-1), self.n), np.broadcast_to(np.int64(-1), self.n)
        return self._batch(schema, *nowhere)

    def _batch(self, schema: Schema, partition: Int32Array, offset: Int64Array) -> Batch:
        columns = tuple(column.whole(self.n) for column in self.columns)
        return Batch(schema, columns, partition, offset, self.timestamp[: self.n])

    def rows_of(self, slot: int, first: int, last: int) -> Int64Array:
        """Places first <= r < last that the slot's predicate accepts, ascending."""
        return self.matches.rows_of(slot, first, last)

    def count_of(self, slot: int, first: int, last: int) -> int:
        """How many of them."""
        return self.matches.count_of(slot, first, last)

    def bits_of(self, word: int, mask: int, first: int, last: int) -> bitmaps.Words:
        """uint64[last - first]: bit b tells whether slot 64 * word + b of the mask accepts the row.

        Bits outside the mask mean nothing. Not to be written.
        """
        return self.matches.bits_of(word, mask, first, last)


@dataclass(frozen=True, slots=True)
class PartColumn:
    """One column: values and validity of full length, strings by the codes of a table."""

    field: Field
    values: npt.NDArray[np.generic]
    valid: BoolArray | None
    strings: StringTable | None

    def sealed(self, timestamp: Int64Array, n: int) -> PartColumn:
        """As it is kept: a column that tells the rows' instants is the array of those, not another."""
        values = self.values
        if self.field.type.kind is Kind.TIMESTAMP and np.array_equal(values[:n], timestamp[:n]):
            values = timestamp
        return replace(self, values=values)

    def whole(self, n: int) -> Column:
        valid = None if self.valid is None else self.valid[:n]
        return Column(self.field.type, self.values[:n], valid, self.strings)


class OpenWords(Sequence[WordColumn]):
    """The word columns of the tail, made when they are asked for."""

    def __init__(self, bits: bitmaps.Words, words: int) -> None:
        self._bits = bits
        self._words = words

    def __len__(self) -> int:
        return self._words

    @overload
    def __getitem__(self, word: int) -> WordColumn: ...

    @overload
    def __getitem__(self, word: slice) -> Sequence[WordColumn]: ...

    def __getitem__(self, word: int | slice) -> WordColumn | Sequence[WordColumn]:
        if isinstance(word, slice):
            return [DenseWord(self._bits[w]) for w in range(*word.indices(self._words))]
        if not 0 <= word < self._words:
            raise IndexError(word)
        return DenseWord(self._bits[word])


class BitPool:
    """Match arrays that no reader holds any more, to be written again.

    The system hands out fresh memory far slower than a pass fills it, and in the steady state
    each sealed segment is followed by one that falls out of retention. An array comes back when its last
    reference goes, so a reader is never written under. Arrays begin at a line of the cache.
    """

    def __init__(self, pooled_max: int = POOLED_MAX) -> None:
        """pooled_max: how many arrays wait here at most."""
        self._pooled_max = pooled_max
        self._free: list[bitmaps.Words] = []

    def take(self, words: int) -> bitmaps.Words:
        """uint64[words, SEGMENT_ROWS] with anything in it."""
        wanted = words * SEGMENT_ROWS
        while self._free:
            owner = self._free.pop()
            if wanted <= len(owner) - streaming.LINE_WORDS <= 4 * max(wanted, SEGMENT_ROWS):
                break
        else:
            owner = streaming.aligned_words(wanted)
        lent: bitmaps.Words = np.asarray(owner.data)  # slices of it keep it, not the owner, alive
        weakref.finalize(lent, self._back, owner).atexit = False
        first = streaming.first_aligned(lent)
        rows = (len(owner) - streaming.LINE_WORDS) // SEGMENT_ROWS
        return lent[first : first + rows * SEGMENT_ROWS].reshape(rows, SEGMENT_ROWS)

    def _back(self, owner: bitmaps.Words) -> None:
        if len(self._free) < self._pooled_max:
            self._free.append(owner)


class Tail:
    """The open segment."""

    def __init__(
        self, schema: Schema, first: int, cohorts: Cohorts, words: int, pool: BitPool, strings: Tables
    ) -> None:
        """strings: by whose codes rows will come."""
        self.strings = strings
        self._pool = pool
        self.schema = schema
        self.first = first
        self.cohorts = cohorts
        self.count = 0
        self.timestamp = np.empty(SEGMENT_ROWS, np.int64)
        self.offset = np.empty(SEGMENT_ROWS, np.int64)
        self.partition = np.empty(SEGMENT_ROWS, np.int32)
        self._values = [np.empty(SEGMENT_ROWS, f.type.dtype) for f in schema]
        self._valid: list[BoolArray | None] = [None] * len(schema)
        self.bits = pool.take(max(1, words))
        self._log = PairLog()
        self._late: tuple[SlotLists, ...] = ()
        self._columns: tuple[PartColumn, ...] | None = None
        self._part: Part | None = None

    @property
    def room(self) -> int:
        return SEGMENT_ROWS - self.count

    def rise(self, by: int) -> None:
        """The rows have ordinals that are higher by so much."""
        self.first += by
        self._part = None

    def widen(self, words: int) -> None:
        """Make room for more query slots; bits so far are kept, those of new words are unset."""
        self._part = None
        if words <= self.bits.shape[0]:
            return
        wider = self._pool.take(max(words, self.bits.shape[0] + (self.bits.shape[0] >> 2) + 1))
        wider[: self.bits.shape[0], : self.count] = self.bits[:, : self.count]
        wider[self.bits.shape[0] :, : self.count] = 0
        self.bits = wider

    def write(self, rows: Entering, first: int, last: int) -> Batch:
        """Put rows first to last (at most ``room``) behind those that are here; return them as a batch.

        Nobody sees them before :meth:`take`.
        """
        start, n = self.count, last - first
        stop = start + n
        runs = rows.runs(first, last)
        timestamp, offset = self.timestamp[start:stop], self.offset[start:stop]
        partition = self.partition[start:stop]
        for run in runs:
            timestamp[run.places] = run.batch.timestamp[run.rows]
            offset[run.places] = run.batch.offset[run.rows]
            partition[run.places] = run.batch.partition[run.rows]
        columns = tuple(self._write_column(place, runs, start, stop) for place in range(len(self.schema)))
        return Batch(self.schema, columns, partition, offset, timestamp)

    def _write_column(self, place: int, runs: Sequence[Run], start: int, stop: int) -> Column:
        parts = [run.column(place) for run in runs]
        if self._valid[place] is None and any(part.valid is not None for part in parts):
            self._valid[place] = np.ones(SEGMENT_ROWS, np.bool_)
            self._columns = None
        held = self._valid[place]
        valid = None if held is None else held[start:stop]
        values = self._values[place][start:stop]
        table = self.strings[place]
        for run, part in zip(runs, parts, strict=True):
            values[run.places] = part.values if table is None else part.codes_in(table)
            if valid is not None:
                valid[run.places] = True if part.valid is None else part.valid
        return Column(self.schema.fields[place].type, values, valid, table)

    def take(self, n: int, pairs: Pairs) -> None:
        """The next n rows that were written, whose bits stand in ``bits`` already, and their pairs."""
        if len(pairs):
            self._log.append(pairs.rows, pairs.slots, self.count)
        self.count += n
        self._part = None

    def part(self, words: int) -> Part:
        """What readers may see now: the rows so far, and this many words."""
        if self._part is None or len(self._part.matches.words) != words:
            bits = OpenWords(self.bits, words)
            self._part = self._as_part(PartMatches(self.cohorts, bits, self._late, self._log.so_far()))
        return self._part

    def backfill(self, found: Found, queries: NewQueries) -> None:
        """The matches of queries that just came among the rows so far."""
        for place, word in enumerate(queries.words):
            bitmaps.merge_bits(self.bits[word], found.bits[place], queries.masks[place], self.count)
        self._late = with_late(self._late, found.lists, queries.standing, self._log.so_far())
        self._part = None

    def seal(self, words: int) -> Part:
        """The segment as full as it is, its matches in their smaller form."""
        packed = pack(self.bits, words, self.count)
        if 4 * sum(not isinstance(word, DenseWord) for word in packed) > words:
            packed = [  # let go of the columns that became row lists
                DenseWord(word.column.copy()) if isinstance(word, DenseWord) else word for word in packed
            ]
        lists = sealed_lists(self._late, self._log, self.count)
        part = self._as_part(PartMatches(self.cohorts, packed, lists))
        columns = tuple(column.sealed(part.timestamp, part.n) for column in part.columns)
        zones = tuple(zone_of(column.whole(part.n)) for column in columns)
        return replace(part, columns=columns, zones=zones, origins=part.origins.packed(part.n))

    def _as_part(self, matches: PartMatches) -> Part:
        if self._columns is None:
            self._columns = tuple(
                PartColumn(f, self._values[place], self._valid[place], self.strings[place])
                for place, f in enumerate(self.schema)
            )
        origins = Origins(self.partition, self.offset)
        return Part(self.first, self.count, self._columns, origins, self.timestamp, matches)
