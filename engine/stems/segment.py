"""Segments: the visible rows of a source, 65,536 at a time, with the matches of all queries beside them.

The *tail* is the one open segment: arrays of full capacity that fill from the front. Rows below its count
never change, so a reader who took the arrays and the count needs no lock. When it is full it is *sealed*:
it changes no more but for its matches: those of queries that come, and blocks of bits that become row lists.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from engine.model.batch import Batch, BoolArray, Column, Int32Array, Int64Array
from engine.model.capacities import USUAL, Capacities
from engine.model.source import Field, Schema
from engine.model.spill import Array, SpillSpace, nbytes_of
from engine.model.string_table import StringTable
from engine.model.types import Kind
from engine.stems.entering import EnteringRows, Run
from engine.stems.new_queries import NewMatches, NewQueries
from engine.stems.origins import Origins
from engine.stems.stream_strings import Tables
from engine.stems.zone import SegmentZone, zone_of
from engine.store.matches.chunks import ChunkPool
from engine.store.matches.cohorts import Cohorts
from engine.store.matches.part_matches import PairLog, PartMatches, sealed_lists, with_late
from engine.store.matches.row_slots import RowSlots
from engine.store.matches.segment_bits import SegmentBits
from engine.store.matches.slot_lists import SlotLists

SEGMENT_ROWS = 65_536


@dataclass(frozen=True, slots=True)
class SegmentView:
    """What a reader sees of a segment: n rows from ordinal ``first`` on.

    Columns are arrays of at least n rows.
    """

    first: int
    n: int
    columns: tuple[SegmentColumn, ...]
    origins: Origins
    timestamp: Int64Array
    matches: PartMatches
    zones: tuple[SegmentZone | None, ...] = ()
    """The zone of each column, once the segment is sealed; empty while it is open."""
    is_spilled: bool = False
    """Whether columns, instants and origins are on disk."""

    @property
    def end(self) -> int:
        return self.first + self.n

    def batch(self, schema: Schema) -> Batch:
        """All rows as a batch, without copying numbers but for where a sealed segment's rows come from."""
        return self._batch(schema, *self.origins.of(0, self.n))

    def values(self, schema: Schema) -> Batch:
        """The rows without their origins: partitions and offsets are -1, sample keys are not known."""
        nowhere = np.broadcast_to(np.int32(-1), self.n), np.broadcast_to(np.int64(-1), self.n)
        return self._batch(schema, *nowhere)

    def _batch(self, schema: Schema, partition: Int32Array, offset: Int64Array) -> Batch:
        columns = tuple(column.whole(self.n) for column in self.columns)
        return Batch(schema, columns, partition, offset, self.timestamp[: self.n])

    @property
    def nbytes(self) -> int:
        """Bytes in memory, without the matches."""
        return 0 if self.is_spilled else nbytes_of(self.arrays())

    def arrays(self) -> list[Array]:
        """What a sealed segment holds besides matches: instants, origins, values and validity, each once."""
        found: list[Array] = [self.timestamp[: self.n], *self.origins.arrays()]
        for column in self.columns:
            if column.values is not self.timestamp:
                found.append(column.values[: self.n])
            if column.valid is not None:
                found.append(column.valid[: self.n])
        return found

    def spilled(self, space: SpillSpace) -> SegmentView | None:
        """The segment with its arrays on disk; None: there is no room. O(bytes)."""
        written = space.write(self.arrays())
        if written is None:
            return None
        following = iter(written)
        timestamp = next(following)
        origins = self.origins.with_arrays(following)
        columns = tuple(
            replace(
                column,
                values=timestamp if column.values is self.timestamp else next(following),
                valid=None if column.valid is None else next(following),
            )
            for column in self.columns
        )
        return replace(self, timestamp=timestamp, origins=origins, columns=columns, is_spilled=True)

    def rows_of(self, slot: int, first: int, last: int) -> Int64Array:
        """Places first <= r < last that the slot's predicate accepts, ascending."""
        return self.matches.rows_of(slot, first, last)

    def count_of(self, slot: int, first: int, last: int) -> int:
        """How many of them."""
        return self.matches.count_of(slot, first, last)


@dataclass(frozen=True, slots=True)
class SegmentColumn:
    """One column: values and validity of full length, strings by the codes of a table."""

    field: Field
    values: npt.NDArray[np.generic]
    valid: BoolArray | None
    strings: StringTable | None

    def sealed(self, timestamp: Int64Array, n: int) -> SegmentColumn:
        """As it is kept: a column that tells the rows' instants is the array of those, not another."""
        values = self.values
        if self.field.type.kind is Kind.TIMESTAMP and np.array_equal(values[:n], timestamp[:n]):
            values = timestamp
        return replace(self, values=values)

    def whole(self, n: int) -> Column:
        valid = None if self.valid is None else self.valid[:n]
        return Column(self.field.type, self.values[:n], valid, self.strings)


class OpenColumns:
    """The columns of the open segment, written from the front. ``strings``: by whose codes rows come."""

    def __init__(self, schema: Schema, strings: Tables) -> None:
        self.schema = schema
        self.strings = strings
        self._values = [np.empty(SEGMENT_ROWS, f.type.dtype) for f in schema]
        self._valid: list[BoolArray | None] = [None] * len(schema)
        self._seen: tuple[SegmentColumn, ...] | None = None

    def write(self, place: int, runs: Sequence[Run], start: int, stop: int) -> Column:
        """The rows of runs into start .. stop of the column at ``place``."""
        parts = [run.column(place) for run in runs]
        if self._valid[place] is None and any(part.valid is not None for part in parts):
            self._valid[place] = np.ones(SEGMENT_ROWS, np.bool_)
            self._seen = None
        held = self._valid[place]
        valid = None if held is None else held[start:stop]
        values = self._values[place][start:stop]
        table = self.strings[place]
        for run, part in zip(runs, parts, strict=True):
            values[run.places] = part.values if table is None else part.codes_in(table)
            if valid is not None:
                valid[run.places] = True if part.valid is None else part.valid
        return Column(self.schema.fields[place].type, values, valid, table)

    def seen(self) -> tuple[SegmentColumn, ...]:
        """As readers have them; the same arrays, which rows are still written to."""
        if self._seen is None:
            self._seen = tuple(
                SegmentColumn(f, self._values[place], self._valid[place], self.strings[place])
                for place, f in enumerate(self.schema)
            )
        return self._seen


class Tail:
    """The open segment."""

    def __init__(
        self,
        schema: Schema,
        first: int,
        cohorts: Cohorts,
        chunks: ChunkPool,
        strings: Tables,
        capacities: Capacities = USUAL,
    ) -> None:
        """strings: by whose codes rows will come."""
        self.columns = OpenColumns(schema, strings)
        self.first = first
        self.cohorts = cohorts
        self.count = 0
        self.timestamp = np.empty(SEGMENT_ROWS, np.int64)
        self._origins = Origins(np.empty(SEGMENT_ROWS, np.int32), np.empty(SEGMENT_ROWS, np.int64))
        self.bits = SegmentBits(chunks, SEGMENT_ROWS)
        self._log = PairLog(capacities)
        self._late: tuple[SlotLists, ...] = ()
        self._part: SegmentView | None = None

    @property
    def room(self) -> int:
        return SEGMENT_ROWS - self.count

    def rise(self, by: int) -> None:
        """The rows have ordinals that are higher by so much."""
        self.first += by
        self._part = None

    def write(self, rows: EnteringRows, first: int, last: int) -> Batch:
        """Put rows first to last (at most ``room``) behind those that are here; return them as a batch.

        Nobody sees them before :meth:`take`.
        """
        start, n = self.count, last - first
        stop = start + n
        runs = rows.runs(first, last)
        timestamp, (partition, offset) = self.timestamp[start:stop], self._origins.of(start, stop)
        for run in runs:
            timestamp[run.places] = run.batch.timestamp[run.rows]
            offset[run.places] = run.batch.offset[run.rows]
            partition[run.places] = run.batch.partition[run.rows]
        schema = self.columns.schema
        columns = tuple(self.columns.write(place, runs, start, stop) for place in range(len(schema)))
        return Batch(schema, columns, partition, offset, timestamp)

    def take(self, n: int, pairs: RowSlots) -> None:
        """The next n rows that were written, whose bits stand in ``bits`` already, and their pairs."""
        if len(pairs):
            self._log.append(pairs.rows, pairs.slots, self.count)
        self.count += n
        self._part = None

    def part(self) -> SegmentView:
        """What readers may see now: the rows so far."""
        if self._part is None:
            self._part = self._as_part(PartMatches(self.cohorts, self.bits, self._late, self._log))
        return self._part

    def backfill(self, found: NewMatches, queries: NewQueries) -> None:
        """The matches of queries that just came among the rows so far."""
        for place, word in enumerate(queries.places.words):
            self.bits.merge_dense(word, found.bits[place], int(queries.places.masks[place]), self.count)
        self._late = with_late(self._late, found.lists, queries.places.standing, self._log.so_far())
        self._part = None

    def seal(self) -> SegmentView:
        """The segment as full as it is, its lists by slot; bits are to be packed."""
        lists = sealed_lists(self._late, self._log, self.count)
        part = self._as_part(PartMatches(self.cohorts, self.bits, lists))
        columns = tuple(column.sealed(part.timestamp, part.n) for column in part.columns)
        zones = tuple(zone_of(column.whole(part.n)) for column in columns)
        return replace(part, columns=columns, zones=zones, origins=part.origins.packed(part.n))

    def _as_part(self, matches: PartMatches) -> SegmentView:
        columns = self.columns.seen()
        return SegmentView(self.first, self.count, columns, self._origins, self.timestamp, matches)
