"""What a statement gave: rows with their fields, and how they become messages, a part at a time."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from broker.postgres import types
from broker.postgres.array_texts import cells_of, text_of
from broker.postgres.messages import Field
from broker.postgres.plans import CopyOptions
from broker.postgres.row_messages import Cells, CopyForm, copy_lines, data_rows
from broker.postgres.types import normal

PART_ROWS = 32_768
"""Rows that are written at a time: a megabyte or two."""


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of an answer. warnings: what is to be told of it. digits: of a DOUBLE in text; None: the shortest
    that mean it.
    """

    fields: tuple[Field, ...]
    table: pa.Table
    warnings: tuple[str, ...] = ()
    tag: str = "SELECT"
    digits: int | None = None

    @property
    def n(self) -> int:
        return int(self.table.num_rows)

    def as_fields(self, wanted: tuple[Field, ...]) -> Rows:
        """With the types that a client was told before. Raises pyarrow's errors where they do not fit."""
        if wanted == self.fields or len(wanted) != len(self.fields):
            return self
        return replace(self, fields=wanted)

    def in_digits(self, digits: int | None) -> Rows:
        """With so many digits of a DOUBLE in text; None: as they are."""
        return self if digits is None else replace(self, digits=digits)


@dataclass(frozen=True, slots=True)
class Done:
    """A statement without rows: its tag, and what is told of it. changes: whether it changed anything."""

    tag: str
    notices: tuple[tuple[str, str | None], ...] = ()
    changes: bool = field(default=False)

    def in_digits(self, digits: int | None) -> Done:
        """It has none."""
        return self


Result = Rows | Done


def messages_of(rows: Rows, formats: Sequence[int], start: int, stop: int) -> bytes:
    """Rows start to stop as DataRow. formats: of each column. Any thread."""
    cells = _cells(rows, formats, start, stop)
    return data_rows(cells, stop - start)


def copied(rows: Rows, options: CopyOptions, start: int, stop: int) -> bytes:
    """Rows start to stop as CopyData. Any thread."""
    if options.form == "binary":
        return data_rows(_cells(rows, [1] * len(rows.fields), start, stop), stop - start, copied=True)
    cells = []
    for column, one in _columns(rows, start, stop, [0] * len(rows.fields)):
        valid = column.is_valid().to_numpy(zero_copy_only=False) if column.null_count else None
        texts = pc.cast(text_of(column, one.oid), pa.string())
        plain = _escaped(texts, options) if one.oid in _ESCAPED else texts
        cells.append(Cells(*cells_of(plain, types.TEXT, 0)[:2], valid))
    return copy_lines(cells, stop - start, CopyForm(ord(options.delimiter), options.null.encode()))


_ESCAPED = (types.TEXT, types.JSON, types.BYTEA, *types.ELEMENTS)
"""Types whose texts may hold what divides columns and lines."""


def _escaped(texts: pa.Array, options: CopyOptions) -> pa.Array:
    """As lines have it: text escapes with a backslash, CSV puts what needs it into quotes."""
    if options.form == "csv":
        special = rf'["\r\n{_in_class(options.delimiter)}]'
        quoted = pc.match_substring_regex(texts, special)
        quoted = pc.or_(quoted, pc.equal(texts, options.null))
        if not pc.any(quoted).as_py():
            return texts
        doubled = pc.replace_substring(texts, '"', '""')
        return pc.if_else(quoted, pc.binary_join_element_wise('"', doubled, '"', ""), texts)
    if not pc.any(
        pc.match_substring_regex(texts, rf"[\\\r\n\t\x08\x0b\x0c{_in_class(options.delimiter)}]")
    ).as_py():
        return texts
    texts = pc.replace_substring(texts, "\\", "\\\\")
    for sign, letter in (("\n", "n"), ("\r", "r"), ("\t", "t"), ("\b", "b"), ("\v", "v"), ("\f", "f")):
        texts = pc.replace_substring(texts, sign, "\\" + letter)
    if options.delimiter != "\t":
        texts = pc.replace_substring(texts, options.delimiter, "\\" + options.delimiter)
    return texts


def _in_class(sign: str) -> str:
    return f"\\x{ord(sign):02x}"


def copy_head(rows: Rows, options: CopyOptions) -> bytes:
    """What stands before the lines of a COPY, as CopyData; nothing where nothing does."""
    if options.form == "binary" or not options.header:
        return b""
    names = pa.array([one.name for one in rows.fields])
    texts = _escaped(names, options).to_pylist()
    return _copy_data((options.delimiter.join(texts) + "\n").encode())


_SIGNATURE = b"PGCOPY\n\xff\r\n\0" + bytes(8)
_END = b"\xff\xff"


def signed(data: bytes) -> bytes:
    """The first rows of a binary COPY, or its end: what says that it is one is in their first message."""
    size = int.from_bytes(data[1:5]) + 1
    return _copy_data(_SIGNATURE + data[5:size]) + data[size:]


def _copy_data(data: bytes) -> bytes:
    return b"d" + (len(data) + 4).to_bytes(4) + data


COPY_END = _copy_data(_END)
"""What stands behind the rows of a binary COPY."""


def _columns(rows: Rows, start: int, stop: int, formats: Sequence[int]) -> list[tuple[pa.Array, Field]]:
    """The columns of a part, each as one array of the type that its field is written by."""
    part = rows.table.slice(start, stop - start)
    found = []
    for place, (one, form) in enumerate(zip(rows.fields, formats, strict=True)):
        column = part.column(place)
        array = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
        if isinstance(array, pa.ChunkedArray):
            array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([], column.type)
        array = _as_field(array, one)
        if form == 0 and rows.digits is not None and one.oid == types.FLOAT8:
            array = _rounded(array, rows.digits)
        found.append((array, one))
    return found


def _rounded(array: pa.Array, digits: int) -> pa.Array:
    values = [None if one is None else float(f"{one:.{digits}g}") for one in array.to_pylist()]
    return pa.array(values, pa.float64())


def _as_field(array: pa.Array, one: Field) -> pa.Array:
    """An array of another type than its field's, as that: what a client was told holds."""
    if types.oid_of(array.type) != one.oid and one.oid not in _AS_TEXT:
        wanted = WRITTEN.get(one.oid)
        if wanted is None:
            return array
        come = types.oid_of(array.type)
        if wanted == pa.string() and (come == types.JSON or come in types.ELEMENTS):
            return text_of(array, come)
        return array.cast(wanted)
    wanted = normal(array.type)
    return array if wanted == array.type else array.cast(wanted)


_AS_TEXT = (types.UUID, types.ARRAYS[types.UUID])
"""Types whose values come as texts."""
WRITTEN = {
    types.BOOL: pa.bool_(),
    types.INT4: pa.int32(),
    types.INT8: pa.int64(),
    types.OID: pa.uint32(),
    types.FLOAT8: pa.float64(),
    types.TEXT: pa.string(),
    types.DATE: pa.date32(),
    types.TIMESTAMPTZ: pa.timestamp("us"),
    types.NUMERIC: pa.decimal128(38, 9),
}


def _cells(rows: Rows, formats: Sequence[int], start: int, stop: int) -> list[Cells]:
    return [
        cells_of(column, one.oid, form)
        for (column, one), form in zip(_columns(rows, start, stop, formats), formats, strict=True)
    ]


def listed(columns: Sequence[str], rows: Sequence[Sequence[Any]], tag: str) -> Rows:
    """A table of values as statements give it."""
    arrays = [_array([row[place] for row in rows]) for place in range(len(columns))]
    fields = tuple(types.field(name, one.type) for name, one in zip(columns, arrays, strict=True))
    return Rows(fields, pa.Table.from_arrays(arrays, names=list(columns)), tag=tag)


def _array(values: list[Any]) -> pa.Array:
    kinds = {type(one) for one in values if one is not None}
    if kinds == {bool}:
        return pa.array(values, pa.bool_())
    if kinds == {int} and all(one is None or -(1 << 63) <= one < 1 << 63 for one in values):
        return pa.array(values, pa.int64())
    if kinds and kinds <= {int, float}:
        return pa.array(values, pa.float64())
    texts = [one if one is None or isinstance(one, str) else json.dumps(one, default=str) for one in values]
    return pa.array(texts, pa.string())
