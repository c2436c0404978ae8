"""JSON records to columns and back.

A record is one JSON object in UTF-8. Its members are the columns by name, without regard to letter case where
that is unambiguous (:mod:`topics.members`); other members are passed over, missing ones are NULL. A column
with a PATH is what stands there (:mod:`engine.model.paths`), by exact names, and NULL where nothing does.
What is accepted, by type::

    BOOLEAN           true, false
    INTEGER, BIGINT   a number without fraction or exponent, in range
    DOUBLE            a number; too large to be finite is refused, as are NaN and Infinity
    DECIMAL(p, s)     a number or a string of one; exact or refused
    STRING            a string
    DATE              "YYYY-MM-DD"
    TIMESTAMP         ms since 1970, or "YYYY-MM-DD[T ]HH:MM:SS[.fff][Z|+HH:MM]"; no zone means UTC;
                      digits below the millisecond are cut
    JSON, ARRAY, ...  :mod:`engine.model.nested.canonical`

Records of tables have keys besides: :mod:`topics.keyed`.

A record that does not fit gives no row but a :class:`Bad` with the reason; it never stops the others.

Columns are read at once by Arrow's reader, strictly (:mod:`topics.arrow_reader`): whatever it refuses is cut
into smaller pieces, and the smallest are read by :mod:`topics.careful`, which defines the meaning and finds
the reason. Of small batches the records are read one by one (:mod:`topics.small_batches`). How a batch is cut
changes nothing: a record decodes the same alone and among others.

Cost: about 0.7 us a record of six columns, 3 us in a small batch; some 10 us for each record that shares a
piece with a bad one. Of large batches, records that spell their columns differently are read apart, a layout
at a time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from engine.model.batch import Batch, Column, Int64Array, concatenate, concatenate_columns
from engine.model.source import Stream
from engine.model.types import Kind, Type
from topics import small_batches
from topics.arrow_reader import columns_of
from topics.careful import BadRecord, row_of
from topics.event_times import implausible
from topics.members import Layout, Members, members_of
from topics.scan import FINE, NO_OBJECT, REASONS, ends_of, scan

RECORD_BYTES_MAX = 1024 * 1024
DEPTH_MAX = 64
CAREFUL_RECORDS = 128
"""Pieces of at most so many records are read one by one when they can't be read at once."""
LAYOUTS_MAX = 8
"""Ways to spell the columns that are read at once in a batch; records of other ways are read one by one."""
SCHEMA_ID_BYTES = 5
WIRE_FORMAT = (
    "looks like Avro, or another of a schema registry's wire formats (the value begins with byte 0 and a "
    "schema id), and JSON is read"
)

Piece = tuple[Int64Array, tuple[Column, ...]]
"""Places of records, ascending, and their columns."""


@dataclass(frozen=True, slots=True)
class Bad:
    """A record that gave no row: ``place`` in the values given, and why."""

    place: int
    reason: str


@dataclass(frozen=True, slots=True)
class Decoded:
    """The rows in the order given, and what is missing between them, by ascending place.

    heartbeats: place -> ms since 1970, of messages that are heartbeats and no rows (:mod:`topics.in_band`).
    unknown_schemas: ids of schemas that records named and the registry did not know. tombstones: places of
    null values in a stream of changes, which have a topic forget a key and are no change.
    """

    batch: Batch
    bad: tuple[Bad, ...]
    heartbeats: Mapping[int, int] = field(default_factory=dict)
    unknown_schemas: frozenset[int] = frozenset()
    tombstones: frozenset[int] = frozenset()


def decode(
    stream: Stream,
    values: Sequence[bytes | None],
    partition: npt.ArrayLike,
    offset: npt.ArrayLike,
    append_ms: npt.ArrayLike,
    *,
    exact: bool = False,
) -> Decoded:
    """Records to rows.

    partition int32[n], offset int64[n], append_ms int64[n]: of each record; ``append_ms`` becomes the
    timestamp of a stream in arrival time, the declared column of one in event time, where it is compared with
    ``append_ms`` (:mod:`topics.event_times`). exact: members are columns by exact names only and timestamps
    are not compared, as steps were decoded that older versions journalled. Never raises for data.
    """
    partitions = np.asarray(partition, np.int32)
    offsets = np.asarray(offset, np.int64)
    appended = np.asarray(append_ms, np.int64)
    pieces, bad = read(stream, values, exact=exact)
    batches = []
    for rows, columns in pieces:
        if stream.timestamp_column is None:
            timestamp = appended[rows]
        else:
            at = stream.schema.index(stream.timestamp_column)
            assert at is not None
            timestamp = columns[at].values.astype(np.int64, copy=False)
        batch = Batch(stream.schema, columns, partitions[rows], offsets[rows], timestamp)
        refused = [] if exact else implausible(stream, timestamp, appended[rows])
        if refused:
            bad += tuple(Bad(int(rows[row]), reason) for row, reason in refused)
            batch = batch.take(np.delete(np.arange(len(batch)), [row for row, _ in refused]))
        batches.append(batch)
    return Decoded(concatenate(stream.schema, batches), tuple(sorted(bad, key=lambda one: one.place)))


def read(
    stream: Stream,
    values: Sequence[bytes | None],
    aside: frozenset[str] = frozenset(),
    *,
    exact: bool = False,
) -> tuple[list[Piece], tuple[Bad, ...]]:
    """The columns of records in pieces, by ascending place; and the records that are in none.

    aside: columns that are read from elsewhere; members of their names are passed over. exact: as in
    :func:`decode`.
    """
    bad: list[Bad] = []
    records = list(values)
    for place, value in enumerate(records):
        if value is None:
            bad.append(Bad(place, "the value is null"))
        elif len(value) > RECORD_BYTES_MAX:
            bad.append(Bad(place, f"{len(value):,} bytes are more than the {RECORD_BYTES_MAX:,} allowed"))
        else:
            continue
        records[place] = b"{}"
    named = tuple(field.name for field in stream.schema if field.path is None)
    members = members_of(named, aside, exact=exact)
    reading = _Reading(stream, members, records, bad)
    unread = np.ones(len(records), np.bool_)
    unread[[one.place for one in bad]] = False
    if len(records) <= small_batches.RECORDS_MAX:
        reading.one_by_one(np.flatnonzero(unread))
    else:
        reading.together(unread)
    bad.sort(key=lambda one: one.place)
    return reading.in_order(), tuple(bad)


def _refusal(verdict: int, value: bytes) -> str:
    """Why a record is none, by what the scan says of it."""
    if verdict == NO_OBJECT and value[0] == 0 and len(value) > SCHEMA_ID_BYTES:
        return WIRE_FORMAT
    return REASONS[verdict]


def _scan(
    records: Sequence[bytes | None], members: Members, layout: Layout
) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.bool_]]:
    data = np.frombuffer(b"\n".join(records), np.uint8)  # type: ignore[arg-type]
    ends = ends_of(records)  # type: ignore[arg-type]
    return scan(data, ends, DEPTH_MAX, *layout.packed, *members.folds, members.beyond_ascii)


class _Reading:
    """Reads records, those that spell their columns alike together."""

    def __init__(self, stream: Stream, members: Members, records: list[bytes | None], bad: list[Bad]) -> None:
        """bad: what gives no row is added."""
        self._stream = stream
        self._members = members
        self._records = records
        self._bad = bad
        self._pieces: list[Piece] = []
        self._layouts = 0

    def one_by_one(self, places: Int64Array) -> None:
        """Read few records."""
        rows, kept, left = [], [], []
        is_nested = any(field.is_apart for field in self._stream.schema)
        for place in places.tolist():
            try:
                row = small_batches.plain_row(
                    self._stream, self._members, self._at(place), DEPTH_MAX, is_nested=is_nested
                )
            except small_batches.NotPlain:
                left.append(place)
            else:
                rows.append(row)
                kept.append(place)
        if rows:
            self._layouts += 1
            self._add_rows(kept, rows)
        if left:
            records = [self._at(place) for place in left]
            verdicts, _ = _scan(records, self._members, self._members.exact)
            self._refuse(verdicts, left)
            self._carefully(np.array(left)[verdicts == FINE])

    def together(self, unread: npt.NDArray[np.bool_]) -> None:
        """Read the records that are marked, a layout at a time."""
        layout = self._members.layout_of(self._at(0)) or self._members.exact
        verdicts, odd = _scan(self._records, self._members, layout)
        self._refuse(verdicts, range(len(verdicts)))
        unread = unread & (verdicts == FINE)
        self.alike(layout, np.flatnonzero(unread & ~odd))
        self.others(np.flatnonzero(unread & odd))

    def _refuse(self, verdicts: npt.NDArray[np.uint8], places: Sequence[int]) -> None:
        """Note what is no object. verdicts: of the records at these places."""
        for at in np.flatnonzero(verdicts != FINE).tolist():
            self._bad.append(Bad(places[at], _refusal(int(verdicts[at]), self._at(places[at]))))

    def others(self, places: Int64Array) -> None:
        """Read records whose layouts are not known: one after another is taken as a model of the rest."""
        for _ in range(LAYOUTS_MAX):
            if not len(places):
                return
            first = int(places[0])
            layout = self._members.layout_of(self._at(first))
            apart = places[:1]
            if layout is not None:
                _, odd = _scan([self._at(place) for place in places.tolist()], self._members, layout)
                self.alike(layout, places[~odd])
                apart = apart[odd[:1]]
                places = places[odd]
            if len(apart):
                self._carefully(apart)
                places = places[1:]
        self._carefully(places)

    def alike(self, layout: Layout, places: Int64Array) -> None:
        """Read records of one layout."""
        if len(places):
            self._layouts += 1
            whole = len(places) == len(self._records)
            records = self._records if whole else [self._records[place] for place in places.tolist()]
            self._by_halves(layout, records, places)  # type: ignore[arg-type]

    def in_order(self) -> list[Piece]:
        """What was read, by ascending place."""
        if self._layouts <= 1 or len(self._pieces) <= 1:
            return self._pieces
        places = np.concatenate([piece[0] for piece in self._pieces])
        order = np.argsort(places)
        columns = tuple(
            concatenate_columns(field.type, [piece[1][at] for piece in self._pieces]).take(order)
            for at, field in enumerate(self._stream.schema)
        )
        return [(places[order], columns)]

    def _at(self, place: int) -> bytes:
        record = self._records[place]
        assert record is not None
        return record

    def _by_halves(self, layout: Layout, records: list[bytes], places: Int64Array) -> None:
        """At once, or in smaller pieces where that can't be."""
        columns = columns_of(self._stream, layout, records)
        if columns is not None:
            self._pieces.append((places, columns))
        elif len(records) <= CAREFUL_RECORDS:
            self._each(records, places)
        else:
            quarter = -(-len(records) // 4)
            for start in range(0, len(records), quarter):
                end = start + quarter
                self._by_halves(layout, records[start:end], places[start:end])

    def _carefully(self, places: Int64Array) -> None:
        if len(places):
            self._layouts += 1
            self._each([self._at(place) for place in places.tolist()], places)

    def _each(self, records: list[bytes], places: Int64Array) -> None:
        """One record after another."""
        rows, kept = [], []
        for place, record in zip(places.tolist(), records, strict=True):
            try:
                rows.append(row_of(self._stream, self._members, record))
                kept.append(place)
            except BadRecord as error:
                self._bad.append(Bad(place, str(error)))
        self._add_rows(kept, rows)

    def _add_rows(self, places: list[int], rows: list[list[Any]]) -> None:
        if rows:
            fields = zip(self._stream.schema, zip(*rows, strict=True), strict=True)
            columns = tuple(_column(field.type, values) for field, values in fields)
            self._pieces.append((np.array(places, np.int64), columns))


def _column(type_: Type, values: tuple[Any, ...]) -> Column:
    if type_.kind is Kind.DECIMAL:
        return Column.from_arrow(type_, pa.array(values, type_.arrow))
    valid = np.array([value is not None for value in values]) if None in values else None
    if type_.kind is Kind.STRING:
        texts: dict[str, int] = {}
        codes = [0 if text is None else texts.setdefault(text, len(texts)) for text in values]
        return Column(type_, np.array(codes, type_.dtype), valid, pa.array(list(texts), pa.string()))
    given = values if valid is None else [0 if value is None else value for value in values]
    return Column(type_, np.array(given, type_.dtype), valid)
