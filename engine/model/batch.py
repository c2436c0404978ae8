"""Rows as columns.

A batch holds up to a few thousand rows of one source: numpy arrays by :mod:`engine.model.types`, strings as
codes into a dictionary of their own. Batches are immutable by convention: nothing writes into one after
it was made.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from engine.kernels import sampling
from engine.kernels import strings as string_kernels
from engine.kernels.strings import UNKNOWN, ByteArray
from engine.model.codes import used_codes
from engine.model.nested.arrow import from_arrow as nested_from_arrow
from engine.model.nested.arrow import to_arrow
from engine.model.shed import NOT_SHED
from engine.model.source import DELETED, MADE, SAMPLE_KEY, SHED_LEVEL, Schema, Stream
from engine.model.string_table import ARROW_BYTES_MAX, StringTable, buffers_of
from engine.model.types import Kind, Logical, Type

BATCH_ROWS_MAX = 8_192
MATCHED_ROWS_MAX = 2 * BATCH_ROWS_MAX
"""Rows that meet all queries at a time: those of a batch and some that waited."""

Int32Array = npt.NDArray[np.int32]
Int64Array = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Column:
    """One column of n rows.

    values: [n], dtype by type; what stands where ``valid`` is False is unspecified but in range.
    valid: bool[n], or None where no value is NULL.
    strings: for STRING what the codes index: the table that its source gives codes by, which is shared and
    grows, or a dictionary; None otherwise. No two strings are alike but for a column as it was decoded
    (:meth:`decoded`).
    """

    type: Type
    values: npt.NDArray[Any]
    valid: BoolArray | None = None
    strings: StringTable | pa.StringArray | None = None

    def __len__(self) -> int:
        return len(self.values)

    @property
    def dictionary(self) -> pa.StringArray | None:
        """``strings`` as an array, not copied; of a table those that it holds now."""
        return self.strings.array() if isinstance(self.strings, StringTable) else self.strings

    def there(self) -> BoolArray:
        """bool[n]: which values are not NULL."""
        if self.type.kind is Kind.NULL:
            return np.zeros(len(self), np.bool_)
        return np.ones(len(self), np.bool_) if self.valid is None else self.valid

    def take(self, rows: npt.NDArray[Any]) -> Column:
        """The rows at these places (an index array), in that order."""
        valid = None if self.valid is None else self.valid[rows]
        return Column(self.type, self.values[rows], valid, self.strings)

    def take_or_null(self, rows: Int64Array) -> Column:
        """The rows at these places, NULL where they are -1."""
        there = rows >= 0
        if there.all():
            return self.take(rows)
        if not len(self):
            nothing = np.zeros(len(rows), self.values.dtype)
            return Column(self.type, nothing, there, self.strings)
        taken = self.take(rows)  # -1 takes the last, which is in range
        valid = there if taken.valid is None else there & taken.valid
        return Column(self.type, taken.values, valid, self.strings)

    def slice(self, start: int, stop: int) -> Column:
        """Rows start to stop, without a copy."""
        valid = None if self.valid is None else self.valid[start:stop]
        return Column(self.type, self.values[start:stop], valid, self.strings)

    def codes_in(self, table: StringTable) -> Int32Array:
        """The table's codes of a STRING column's rows, any code where NULL; new strings are taken in.

        O(rows + bytes of distinct strings), but for strings of another table only those that are new to it.
        """
        if self.strings is table:
            return self.values
        if isinstance(self.strings, StringTable):
            return table.codes_of(self.strings, self.values)
        short = self.short()
        assert short.dictionary is not None
        if not len(short.dictionary):
            return np.zeros(len(self), np.int32)
        codes: Int32Array = table.number(short.dictionary)[short.values]
        return codes

    def coded(self, table: StringTable) -> Column:
        """This STRING column by the codes of a table."""
        return self if self.strings is table else Column(self.type, self.codes_in(table), self.valid, table)

    def short(self) -> Column:
        """This STRING column with a dictionary in proportion to its rows."""
        assert self.dictionary is not None
        if len(self.dictionary) <= 2 * len(self) + 16:
            return self
        return self.with_used()

    def with_used(self) -> Column:
        """This STRING column with a dictionary of only the strings that a row uses. O(rows)."""
        assert self.dictionary is not None
        if not len(self.dictionary):
            return self
        codes, used = used_codes(self.values)
        return Column(self.type, codes, self.valid, self.dictionary.take(pa.array(used)))

    @classmethod
    def no_rows(cls, type_: Type) -> Column:
        """A column without rows."""
        texts = pa.array([], pa.string()) if type_.kind is Kind.STRING else None
        return cls(type_, np.zeros(0, type_.dtype), None, texts)

    @classmethod
    def decoded(cls, type_: Type, array: pa.Array) -> Column:
        """As :meth:`from_arrow`, but of strings equal ones are not looked for: a source does that, or
        :meth:`codes_in`.
        """
        if type_.kind is not Kind.STRING or not pa.types.is_string(array.type):
            return cls.from_arrow(type_, array)
        valid: BoolArray | None = None
        if array.null_count:
            valid = array.is_valid().to_numpy(zero_copy_only=False)
            array = array.fill_null("")
        return cls(type_, np.arange(len(array), dtype=np.int32), valid, array)

    @classmethod
    def from_arrow(cls, type_: Type, array: pa.Array | pa.ChunkedArray) -> Column:
        """Build from an Arrow array of ``type_.arrow`` (STRING: utf8 or dictionary of utf8, and so are the
        canonical texts of logical types).
        """
        if isinstance(array, pa.ChunkedArray):
            array = array.combine_chunks()
            if isinstance(array, pa.ChunkedArray):  # no chunks at all
                return cls.no_rows(type_)
        if type_.logical is not None and not pa.types.is_dictionary(array.type):
            array = nested_from_arrow(type_, array)
        valid: BoolArray | None = None
        if array.null_count:
            valid = array.is_valid().to_numpy(zero_copy_only=False)
        kind = type_.kind
        if kind is Kind.STRING:
            encoded = array if pa.types.is_dictionary(array.type) else array.dictionary_encode()
            codes = encoded.indices.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int32, copy=False)
            return cls(type_, codes, valid, encoded.dictionary)
        if kind is Kind.DECIMAL:
            return cls(type_, decimal_to_scaled(array, type_), valid)
        if kind is Kind.BOOLEAN:
            return cls(type_, array.fill_null(False).to_numpy(zero_copy_only=False), valid)
        if kind in (Kind.DATE, Kind.TIMESTAMP):
            width = pa.int32() if kind is Kind.DATE else pa.int64()
            array = array.cast(type_.arrow).view(width)
        if valid is not None:
            array = array.fill_null(0)
        return cls(type_, array.to_numpy(zero_copy_only=False).astype(type_.dtype, copy=False), valid)

    def text_ends(self) -> Int64Array:
        """int64[n + 1]: where the text of each row of a STRING column ends when they stand one after another,
        the first at ends[0]; a NULL takes nothing. O(rows).
        """
        ends = np.zeros(len(self) + 1, np.int64)
        if self.strings is not None and len(self.strings):
            there = _EVERYWHERE if self.valid is None else self.valid
            string_kernels.lay_out(self._buffers()[0], self.values, there, ends)
        return ends

    def texts(self, ends: Int64Array) -> ByteArray:
        """The texts of all rows of a STRING column, one after another. ends: its text ends. O(bytes)."""
        out = np.empty(ends[-1], np.uint8)
        if len(out):
            string_kernels.put_together(*self._buffers(), self.values, ends, out)
        return out

    def _buffers(self) -> tuple[Int32Array, ByteArray]:
        held = self.strings
        return held.buffers() if isinstance(held, StringTable) else buffers_of(held)

    @property
    def nbytes(self) -> int:
        """Bytes of the rows: STRING counts the text of each row."""
        held = 0
        if self.type.kind is Kind.STRING:
            held = int(self.text_ends()[-1])
        return self.values.nbytes + held

    def to_arrow(self) -> pa.Array:
        """The column as Arrow, of ``type.arrow``. Raises OverflowError: more text than an array holds."""
        mask = None if self.valid is None else ~self.valid
        kind = self.type.kind
        if kind is Kind.NULL:
            return pa.nulls(len(self.values))
        if kind is Kind.STRING:
            return self.text_array() if self.type.logical is None else self._nested()
        if kind is Kind.DECIMAL:
            return scaled_to_decimal(self.values, mask, self.type)
        if kind is Kind.BOOLEAN:
            return pa.array(self.values, self.type.arrow, mask=mask)
        values = pa.py_buffer(np.ascontiguousarray(self.values, self.type.dtype))
        return pa.Array.from_buffers(self.type.arrow, len(self), [self._validity(), values])

    def _validity(self) -> pa.Buffer | None:
        """Which rows are there, a bit each."""
        return None if self.valid is None else pa.array(self.valid).buffers()[1]

    def _nested(self) -> pa.Array:
        if self.type.logical in (Logical.JSON, Logical.UUID):
            return to_arrow(self.type, self.text_array())
        mask = None if self.valid is None else ~self.valid
        short = self.with_used()
        if short.dictionary is None or not len(short.dictionary):
            return pa.nulls(len(self), self.type.arrow)
        return to_arrow(self.type, short.dictionary).take(pa.array(short.values, pa.int32(), mask=mask))

    def text_array(self) -> pa.StringArray:
        """The texts of a STRING column, whatever they mean. Raises OverflowError: they fit no array."""
        ends = self.text_ends()
        if ends[-1] > ARROW_BYTES_MAX:
            raise OverflowError(f"{ends[-1]:,} bytes of text do not fit into one array")
        data = self.texts(ends)
        offsets = pa.py_buffer(ends.astype(np.int32))
        return pa.StringArray.from_buffers(len(self), offsets, pa.py_buffer(data), self._validity())


_EVERYWHERE: BoolArray = np.zeros(0, np.bool_)


def decimal_to_scaled(array: pa.Array, type_: Type) -> Int64Array:
    """decimal128(p <= 18, s)[n] -> int64[n], the unscaled integers; 0 for NULL."""
    array = array.cast(pa.decimal128(type_.precision, type_.scale))
    words = np.frombuffer(array.buffers()[1], np.int64)[
        2 * array.offset : 2 * (array.offset + len(array)) : 2
    ]
    if array.null_count:
        return np.where(array.is_valid().to_numpy(zero_copy_only=False), words, 0)
    return words.copy()


def scaled_to_decimal(values: Int64Array, mask: BoolArray | None, type_: Type) -> pa.Array:
    """int64[n] unscaled integers -> decimal128(p, s)[n]."""
    words = np.empty((len(values), 2), np.int64)
    words[:, 0] = values
    words[:, 1] = values >> 63
    validity = None if mask is None else pa.array(~mask).buffers()[1]
    return pa.Array.from_buffers(type_.arrow, len(values), [validity, pa.py_buffer(words)])


@dataclass(frozen=True, slots=True)
class Batch:
    """Rows of one source with where they came from and when they are.

    columns: one per schema field, each of n rows.
    partition: int32[n]; offset: int64[n]: the Kafka record of each row.
    timestamp: int64[n], ms: event time, or the log's append time for a stream in arrival time.
    """

    schema: Schema
    columns: tuple[Column, ...]
    partition: Int32Array
    offset: Int64Array
    timestamp: Int64Array

    def __len__(self) -> int:
        return len(self.timestamp)

    def column(self, place: int) -> Column:
        """The column at a place; behind the last one stand those that are made."""
        if place < len(self.columns):
            return self.columns[place]
        return made_column(place, self.schema, self.partition, self.offset)

    def partitions(self) -> list[int]:
        """The partitions that rows come from, ascending."""
        if not len(self):
            return []
        first = int(self.partition[0])
        if bool((self.partition == first).all()):  # the usual case, much faster than sorting
            return [first]
        return [int(partition) for partition in np.unique(self.partition)]

    def take(self, rows: npt.NDArray[Any]) -> Batch:
        """The rows at these places, in that order."""
        columns = tuple(column.take(rows) for column in self.columns)
        return Batch(self.schema, columns, self.partition[rows], self.offset[rows], self.timestamp[rows])

    def slice(self, start: int, stop: int) -> Batch:
        """Rows start to stop, without a copy."""
        if start == 0 and stop == len(self):
            return self
        columns = tuple(column.slice(start, stop) for column in self.columns)
        return Batch(
            self.schema,
            columns,
            self.partition[start:stop],
            self.offset[start:stop],
            self.timestamp[start:stop],
        )

    @classmethod
    def from_arrow(
        cls,
        schema: Schema,
        columns: pa.RecordBatch | pa.Table,
        partition: npt.ArrayLike,
        offset: npt.ArrayLike,
        timestamp: npt.ArrayLike,
    ) -> Batch:
        """From Arrow columns named and typed as the schema says, and the three arrays beside them."""
        return cls(
            schema,
            tuple(Column.from_arrow(f.type, columns.column(f.name)) for f in schema),
            np.asarray(partition, np.int32),
            np.asarray(offset, np.int64),
            np.asarray(timestamp, np.int64),
        )

    @classmethod
    def empty(cls, schema: Schema) -> Batch:
        columns = tuple(Column.no_rows(field.type) for field in schema)
        return cls(schema, columns, np.zeros(0, np.int32), np.zeros(0, np.int64), np.zeros(0, np.int64))

    def to_arrow(self) -> pa.RecordBatch:
        """The declared columns alone."""
        return pa.RecordBatch.from_arrays([c.to_arrow() for c in self.columns], schema=self.schema.arrow)


def made_column(place: int, schema: Schema, partition: Int32Array, offset: Int64Array) -> Column:
    """One of the columns behind those that are stored, of rows that come from there. schema: what their
    source stores. O(rows) of sample keys, O(rows log runs) of shed levels.
    """
    assert not len(partition) or partition[0] >= 0, "it is not known where these rows come from"
    if MADE[place - len(schema)] is SHED_LEVEL:
        sheds = schema.sheds
        levels = np.full(len(offset), NOT_SHED) if sheds is None else sheds.levels(partition, offset)
        return Column(SHED_LEVEL.type, levels)
    keys = np.empty(len(offset), np.int64)
    sampling.sample_keys(np.uint64(schema.sample_seed), partition, offset, keys)
    return Column(SAMPLE_KEY.type, keys)


def versions(stream: Stream, rows: Batch, deleted: BoolArray | None = None) -> Batch:
    """Rows of a table's declared columns as a step brings them: with whether each takes its key away.

    deleted: bool[n]; None: none does. Such a row has an instant, which its timestamp column tells as those of
    others do.
    """
    marks = np.zeros(len(rows), np.bool_) if deleted is None else deleted
    columns = [*rows.columns, Column(DELETED.type, marks)]
    if stream.timestamp_column is not None and marks.any():
        place = stream.schema.index(stream.timestamp_column)
        assert place is not None
        written = columns[place]
        valid = None if written.valid is None else written.valid | marks
        columns[place] = Column(written.type, np.where(marks, rows.timestamp, written.values), valid)
    return Batch(stream.stored_schema, tuple(columns), rows.partition, rows.offset, rows.timestamp)


def concatenate(schema: Schema, batches: Sequence[Batch]) -> Batch:
    """One batch of all rows in the order given; dictionaries are united."""
    if len(batches) == 1:
        return batches[0]
    if not batches:
        return Batch.empty(schema)
    columns = tuple(
        concatenate_columns(f.type, [batch.columns[place] for batch in batches])
        for place, f in enumerate(schema)
    )
    return Batch(
        schema,
        columns,
        np.concatenate([batch.partition for batch in batches]),
        np.concatenate([batch.offset for batch in batches]),
        np.concatenate([batch.timestamp for batch in batches]),
    )


def concatenate_columns(type_: Type, columns: Sequence[Column]) -> Column:
    """The columns one after another as one; O(rows + distinct strings)."""
    if len(columns) == 1:
        return columns[0]
    valid: BoolArray | None = None
    if any(column.valid is not None for column in columns):
        valid = np.concatenate([np.ones(len(c), np.bool_) if c.valid is None else c.valid for c in columns])
    if type_.kind is not Kind.STRING:
        return Column(type_, np.concatenate([column.values for column in columns]), valid)
    if columns[0].strings is not None and all(one.strings is columns[0].strings for one in columns):
        return Column(type_, np.concatenate([one.values for one in columns]), valid, columns[0].strings)
    codes, united = _united(columns)
    return Column(type_, codes, valid, united)


def _united(columns: Sequence[Column]) -> tuple[Int32Array, pa.StringArray]:
    """The codes of all rows, and one dictionary: the longest one, behind it what only the others have.

    Rows that wait for NOW are a few with the dictionary of a whole batch, so it is cut to what they use, and
    the long dictionary is passed through once. O(rows + bytes of distinct strings).
    """
    columns = [column.short() for column in columns]
    dictionaries = [pa.array([], pa.string()) if c.dictionary is None else c.dictionary for c in columns]
    longest = int(np.argmax([len(strings) for strings in dictionaries]))
    base, table = dictionaries[longest], StringTable()
    places = [None if at == longest else table.number(one) for at, one in enumerate(dictionaries)]
    codes, _ = table.find(base)
    there = np.flatnonzero(codes != UNKNOWN)
    united_code = np.full(len(table), UNKNOWN, np.int32)
    united_code[codes[there]] = there
    new = np.flatnonzero(united_code == UNKNOWN)
    united_code[new] = np.arange(len(base), len(base) + len(new))
    rows = [
        column.values if own is None or not len(own) else united_code[own][column.values]
        for column, own in zip(columns, places, strict=True)
    ]
    united = pa.concat_arrays([base, table.array().take(pa.array(new))]) if len(new) else base
    return np.concatenate(rows).astype(np.int32, copy=False), united
