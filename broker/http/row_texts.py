"""Rows of an answer as JSON, written by one pass over all columns, without the interpreter's lock.

The text of every value is what :mod:`topics.json_rows` says. Numbers, instants and strings are written from
their arrays; DOUBLE from the shortest text that the JSON library finds for a whole column; of other types
each value's text is made before.

Cost: 20 to 40 us an answer, and 10 to 20 ns a value.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import orjson
import pyarrow as pa

from engine.kernels.compiled import kernel
from engine.model.batch import BoolArray, Column, Int64Array
from engine.model.json_texts import json_values
from engine.model.string_table import StringTable
from engine.model.types import STRING, Kind, Logical

Bytes = npt.NDArray[np.uint8]

_INTEGER, _BOOLEAN, _DATE, _TIMESTAMP, _DOUBLE, _STRING, _TEXT = range(7)
"""How a column is written. _TEXT: as it stands in the texts."""
_BYTES_MAX = {_INTEGER: 20, _BOOLEAN: 5, _DATE: 12, _TIMESTAMP: 26, _DOUBLE: 11, _STRING: 4, _TEXT: 4}
"""Most bytes that a value takes besides its text, by how its column is written. A NULL takes 4."""

_NO_BYTES = np.zeros(0, np.uint8)
_KINDS = {
    Kind.BOOLEAN: _BOOLEAN,
    Kind.INTEGER: _INTEGER,
    Kind.BIGINT: _INTEGER,
    Kind.DOUBLE: _DOUBLE,
    Kind.DATE: _DATE,
    Kind.TIMESTAMP: _TIMESTAMP,
}


class _Written(NamedTuple):
    """A column as the pass takes it. values: [n]; of a DOUBLE float64. texts: of a DOUBLE n numbers, behind
    each a comma or bracket, else the bytes that the offsets, int64[n + 1], cut.
    """

    kind: int
    values: npt.NDArray[Any] | None
    valid: BoolArray | None
    texts: Bytes = _NO_BYTES
    offsets: Int64Array | None = None


class _Columns(NamedTuple):
    """All columns as the pass takes them: k columns of n rows, how each is written, and their texts.

    kinds: int64[k]. cells: int64[k, n]. valid: bool[k, n]. texts: uint8, those of all columns. starts:
    int64[k], where each column's texts begin; those of a DOUBLE go on. offsets: int64[k, n + 1], from there.
    """

    kinds: Int64Array
    cells: Int64Array
    valid: npt.NDArray[np.bool_]
    texts: Bytes
    starts: Int64Array
    offsets: Int64Array


def rows_text(
    columns: Sequence[Column | pa.Array | pa.ChunkedArray], n: int, heads: tuple[bytes, ...], end: bytes
) -> bytes:
    """n rows: before each value its column's head, behind each row the end."""
    if not n:
        return b""
    written = [_of_column(one) if isinstance(one, Column) else _of_arrow(one) for one in columns]
    k = len(written)
    cells = np.empty((k, n), np.int64)
    valid = np.ones((k, n), np.bool_)
    offsets = np.zeros((k, n + 1), np.int64)
    starts = np.zeros(k + 1, np.int64)
    head, head_ends = _frame(heads, end)
    size = n * len(head)
    for place, one in enumerate(written):
        if one.values is not None:
            cells[place] = one.values.view(np.int64) if one.kind == _DOUBLE else one.values
        if one.valid is not None:
            valid[place] = one.valid
        if one.offsets is not None:
            offsets[place] = one.offsets
        starts[place + 1] = starts[place] + len(one.texts)
        size += n * _BYTES_MAX[one.kind] + len(one.texts)
    texts = np.concatenate([one.texts for one in written])
    kinds = [one.kind for one in written]
    if _STRING in kinds:
        size += 5 * int(_specials(texts))
    out = np.empty(size, np.uint8)
    written_columns = _Columns(np.array(kinds), cells, valid, texts, starts[:-1].copy(), offsets)
    length = _write(written_columns, head, head_ends, out)
    return out[:length].tobytes()


def prepare() -> None:
    """Have the pass compiled, or what was compiled before loaded, so that no request waits for it."""
    strings = StringTable()
    for one in (pa.array(["x"]), strings):
        codes = strings.number(pa.array(["x"]))
        rows_text([Column(STRING, codes, None, one)], 1, (b"[",), b"]")


@lru_cache(1_000)
def _frame(heads: tuple[bytes, ...], end: bytes) -> tuple[Bytes, Int64Array]:
    """What stands before each value and behind each row, one after another, and where each ends."""
    return np.frombuffer(b"".join([*heads, end]), np.uint8), np.cumsum([*map(len, heads), len(end)])


def _of_column(column: Column) -> _Written:
    if column.type.logical not in (None, Logical.UUID):
        return _of_arrow(column.to_arrow())
    if column.type.kind is Kind.STRING:
        ends = column.text_ends()
        return _Written(_STRING, None, column.valid, column.texts(ends), ends)
    kind = _KINDS.get(column.type.kind)
    if kind is None:
        return _of_arrow(column.to_arrow())
    texts = _numbers(column.values) if kind == _DOUBLE else _NO_BYTES
    return _Written(kind, column.values, column.valid, texts)


def _of_arrow(array: pa.Array | pa.ChunkedArray) -> _Written:
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    type_ = array.type
    valid = array.is_valid().to_numpy(zero_copy_only=False) if array.null_count else None
    if pa.types.is_string(type_):
        return _Written(_STRING, None, valid, *_cut(array))
    if pa.types.is_timestamp(type_):
        kind, array = _TIMESTAMP, array.view(pa.int64())
    elif pa.types.is_date32(type_):
        kind, array = _DATE, array.view(pa.int32())
    elif pa.types.is_boolean(type_):
        kind = _BOOLEAN
    elif pa.types.is_integer(type_):
        kind = _INTEGER
    elif pa.types.is_floating(type_):
        kind = _DOUBLE
    else:
        return _Written(_TEXT, None, None, *_cut(json_values(array)))
    if valid is not None:
        array = array.fill_null(False if kind == _BOOLEAN else 0)
    values = array.to_numpy(zero_copy_only=False)
    return _Written(kind, values, valid, _numbers(values) if kind == _DOUBLE else _NO_BYTES)


def _cut(texts: pa.StringArray) -> tuple[Bytes, Int64Array]:
    """The bytes of all texts, and where each begins and ends in them."""
    _, offsets, data = texts.buffers()
    ends = np.frombuffer(offsets, np.int32)[texts.offset : texts.offset + len(texts) + 1].astype(np.int64)
    whole = _NO_BYTES if data is None else np.frombuffer(data, np.uint8)
    return whole[ends[0] : ends[-1]], ends - ends[0]


def _numbers(values: npt.NDArray[np.float64]) -> Bytes:
    text = orjson.dumps(np.ascontiguousarray(values), option=orjson.OPT_SERIALIZE_NUMPY)
    return np.frombuffer(text, np.uint8)[1:]


_NULL, _TRUE, _FALSE, _NAN, _INFINITY, _MINUS_INFINITY = (
    np.frombuffer(text, np.uint8)
    for text in (b"null", b"true", b"false", b'"NaN"', b'"Infinity"', b'"-Infinity"')
)
_SHORT = np.zeros(32, np.uint8)
"""How control characters are escaped that have a letter."""
for _code, _letter in ((8, "b"), (9, "t"), (10, "n"), (12, "f"), (13, "r")):
    _SHORT[_code] = ord(_letter)
_EXPONENT = 0x7FF
_MANTISSA = (1 << 52) - 1
_DAY_MS = 86_400_000
_NO_DAY = 1 << 40


@kernel
def _specials(texts: Bytes) -> int:
    """How many bytes have to be escaped."""
    count = 0
    for byte in texts:
        count += byte < 32 or byte == 34 or byte == 92
    return count


@kernel
def _put(text: Bytes, start: int, stop: int, out: Bytes, at: int) -> int:
    """Copy text[start:stop]; returns where it ends."""
    for place in range(start, stop):
        out[at] = text[place]
        at += 1
    return at


@kernel
def _escaped(text: Bytes, start: int, stop: int, out: Bytes, at: int) -> int:
    out[at] = 34
    at += 1
    for place in range(start, stop):
        byte = text[place]
        if byte >= 32 and byte != 34 and byte != 92:
            out[at] = byte
            at += 1
            continue
        out[at] = 92
        if byte >= 32:
            out[at + 1] = byte
            at += 2
        elif _SHORT[byte]:
            out[at + 1] = _SHORT[byte]
            at += 2
        else:
            out[at + 1] = 117
            out[at + 2] = 48
            out[at + 3] = 48
            out[at + 4] = 48 + (byte >> 4)
            low = byte & 15
            out[at + 5] = 48 + low if low < 10 else 87 + low
            at += 6
    out[at] = 34
    return at + 1


@kernel
def _two(value: int, out: Bytes, at: int) -> int:
    """0 <= value < 100."""
    tens = (value * 103) >> 10
    out[at] = 48 + tens
    out[at + 1] = 48 + value - 10 * tens
    return at + 2


@kernel
def _digits(value: int, out: Bytes, at: int) -> int:
    """A number that is not negative."""
    if value < 10:
        out[at] = 48 + value
        return at + 1
    size = 2
    bound = 100
    while size < 19 and value >= bound:
        bound *= 10
        size += 1
    place = at + size
    while value >= 100:
        rest = value // 100
        place -= 2
        _two(value - 100 * rest, out, place)
        value = rest
    if place - at == 2:
        _two(value, out, at)
    else:
        out[at] = 48 + value
    return at + size


@kernel
def _integer(value: int, out: Bytes, at: int) -> int:
    if value >= 0:
        return _digits(value, out, at)
    out[at] = 45
    at = _digits(-(value // 10 + (value % 10 != 0)), out, at + 1) if value <= -10 else at + 1
    out[at] = 48 + (10 - value % 10) % 10
    return at + 1


@kernel
def _date(day: int, out: Bytes, at: int) -> int:
    """Days since 1970, of the years 1 to 9999, as 2013-01-31."""
    # Years begin in March here, so that the day that comes and goes is the last one.
    shifted = day + 719_468
    era = shifted // 146_097
    of_era = shifted - era * 146_097
    year = (of_era - of_era // 1_460 + of_era // 36_524 - of_era // 146_096) // 365
    of_year = of_era - (365 * year + year // 4 - year // 100)
    month = (5 * of_year + 2) // 153
    of_month = of_year - (153 * month + 2) // 5 + 1
    month = month + 3 if month < 10 else month - 9
    year += era * 400 + (month <= 2)
    at = _two(year // 100, out, at)
    at = _two(year % 100, out, at)
    out[at] = 45
    at = _two(month, out, at + 1)
    out[at] = 45
    return _two(of_month, out, at + 1)


@kernel
def _time(ms: int, out: Bytes, at: int) -> int:
    """ms of a day as T09:15:00.000Z."""
    seconds = ms // 1_000
    minutes = seconds // 60
    hours = minutes // 60
    out[at] = 84
    at = _two(hours, out, at + 1)
    out[at] = 58
    at = _two(minutes - 60 * hours, out, at + 1)
    out[at] = 58
    at = _two(seconds - 60 * minutes, out, at + 1)
    ms -= 1_000 * seconds
    hundreds = ms // 100
    out[at] = 46
    out[at + 1] = 48 + hundreds
    at = _two(ms - 100 * hundreds, out, at + 2)
    out[at] = 90
    return at + 1


@kernel
def _double(bits: int, texts: Bytes, start: int, stop: int, out: Bytes, at: int) -> int:
    """A DOUBLE by its bits; its text is given, unless it is no number or infinite."""
    if (bits >> 52) & _EXPONENT != _EXPONENT:
        return _put(texts, start, stop, out, at)
    if bits & _MANTISSA:
        return _put(_NAN, 0, len(_NAN), out, at)
    if bits > 0:
        return _put(_INFINITY, 0, len(_INFINITY), out, at)
    return _put(_MINUS_INFINITY, 0, len(_MINUS_INFINITY), out, at)


@kernel
def _write(columns: _Columns, head: Bytes, head_ends: Int64Array, out: Bytes) -> int:
    """Write all rows; return how many bytes that are."""
    kinds, cells, valid, texts, starts, offsets = columns
    k, n = len(kinds), cells.shape[1]
    days = np.full(k, _NO_DAY, np.int64)  # whose date stands where; the next one is often the same
    dates = np.zeros(k, np.int64)
    at = 0
    for i in range(n):
        for j in range(k):
            at = _put(head, head_ends[j - 1] if j else 0, head_ends[j], out, at)
            kind = kinds[j]
            value = cells[j, i]
            start = starts[j]
            stop = start
            if kind == _DOUBLE:
                while texts[stop] != 44 and texts[stop] != 93:
                    stop += 1
                starts[j] = stop + 1
            if not valid[j, i]:
                at = _put(_NULL, 0, 4, out, at)
            elif kind == _INTEGER:
                at = _integer(value, out, at)
            elif kind == _DOUBLE:
                at = _double(value, texts, start, stop, out, at)
            elif kind == _STRING:
                at = _escaped(texts, start + offsets[j, i], start + offsets[j, i + 1], out, at)
            elif kind == _TEXT:
                at = _put(texts, start + offsets[j, i], start + offsets[j, i + 1], out, at)
            elif kind == _BOOLEAN:
                at = _put(_TRUE, 0, 4, out, at) if value else _put(_FALSE, 0, 5, out, at)
            else:
                day = value if kind == _DATE else value // _DAY_MS
                out[at] = 34
                if day == days[j]:
                    _put(out, dates[j], dates[j] + 10, out, at + 1)
                else:
                    _date(day, out, at + 1)
                days[j], dates[j] = day, at + 1
                at += 11
                if kind == _TIMESTAMP:
                    at = _time(value - day * _DAY_MS, out, at)
                out[at] = 34
                at += 1
        at = _put(head, head_ends[k - 1], head_ends[k], out, at)
    return at
