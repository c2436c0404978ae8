"""Values of a column as PostgreSQL writes them, in text and in binary, a column at a time; but for arrays,
which :mod:`broker.postgres.array_texts` has.

:mod:`broker.postgres.types` has the forms. Cost: 20 to 100 ns a value; a microsecond for a DECIMAL in binary
and for a value of BYTES.
"""

from __future__ import annotations

import uuid
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from broker.postgres import types
from broker.postgres.row_messages import Bytes, Cells
from engine.model.batch import Int64Array
from engine.model.json_texts import json_values

_EPOCH_DAYS = 10_957
"""From 1970 to 2000."""
_EPOCH_US = _EPOCH_DAYS * 86_400_000_000
_NO_BYTES = np.zeros(0, np.uint8)


def scalar_cells(column: pa.Array, oid: int, form: int) -> Cells:
    """The values of a column that has the type ``oid``, which is no array. form: 0 text, 1 binary."""
    valid = column.is_valid().to_numpy(zero_copy_only=False) if column.null_count else None
    if form == 1 and oid in _BINARY:
        return Cells(*_BINARY[oid](column), valid)
    if oid in (types.INT4, types.INT8, types.OID):
        return Cells(*_digits(_numbers(column)), valid)
    if oid == types.BOOL:
        truths = np.where(_truths(column), np.uint8(ord("t")), np.uint8(ord("f")))
        return Cells(truths, np.arange(len(column) + 1), valid)
    return Cells(*cut(scalar_text(column, oid)), valid)


def scalar_text(column: pa.Array, oid: int) -> pa.Array:
    """string[n], or binary[n]: each value's text; NULL is NULL, or any text."""
    if oid == types.BOOL:
        return pc.if_else(column, "t", "f")
    if oid == types.FLOAT8:
        return double_texts(_numbers(column))
    if oid == types.TIMESTAMPTZ:
        return _instant_texts(column)
    if oid == types.BYTEA:
        return pa.array(
            [None if one is None else "\\x" + one.hex() for one in column.to_pylist()], pa.string()
        )
    if oid == types.JSON:
        return json_values(column)
    if pa.types.is_string(column.type):
        return column
    return pc.cast(column, pa.string())


_SECOND, _MICROSECONDS = 19, 26
"""Characters of an instant to the second, and with six digits of it."""


def _instant_texts(column: pa.Array) -> pa.Array:
    """In UTC, without zeros at the end of a fraction."""
    us = column.cast(pa.timestamp("us"), safe=False).view(pa.int64()).fill_null(0)
    written = pc.binary_join_element_wise(pc.cast(us.view(pa.timestamp("us")), pa.string()), "+00", "")
    data, ends = cut(written)
    width = _MICROSECONDS + len("+00")
    if len(data) != width * len(column):  # of another year than one of four digits
        fraction = pc.replace_substring_regex(written, r"(\.\d*[1-9])0+\+00$", r"\1+00")
        return pc.replace_substring_regex(fraction, r"\.0+\+00$", "+00")
    values = _numbers(us)
    kept = np.ones((len(values), width), np.bool_)
    for digits in range(1, _MICROSECONDS - _SECOND):
        kept[:, _MICROSECONDS - digits] = values % 10**digits != 0
    kept[:, _SECOND] = kept[:, _SECOND + 1]
    ends = np.concatenate([[0], np.cumsum(kept.sum(axis=1))])
    buffers = [None, pa.py_buffer(ends.astype(np.int32)), pa.py_buffer(data[kept.ravel()])]
    return pa.Array.from_buffers(pa.string(), len(values), buffers)


LEAST_PLAIN, MOST_PLAIN = 1e-4, 1e15
"""A DOUBLE from the one to below the other is written without an exponent."""


def double_texts(values: npt.NDArray[np.float64]) -> pa.Array:
    """string[n]: the shortest digits that mean each value, as PostgreSQL writes them.

    >>> double_texts(np.array([10.0, -0.0, 1e20, 1e-7, 1.5e15, float("nan")])).to_pylist()
    ['10', '-0', '1e+20', '1e-07', '1.5e+15', 'NaN']
    """
    sizes = np.abs(values)
    is_plain = ((sizes >= LEAST_PLAIN) & (sizes < MOST_PLAIN)) | (sizes == 0.0)
    data, ends = _without_point(*_digits(np.where(is_plain, values, 0.0)))
    offsets = pa.py_buffer(ends.astype(np.int32))
    texts = pa.Array.from_buffers(pa.string(), len(values), [None, offsets, pa.py_buffer(data)])
    if is_plain.all():
        return texts
    others = [_double_text(one) for one in values[~is_plain].tolist()]
    return pc.replace_with_mask(texts, pa.array(~is_plain), pa.array(others, pa.string()))


def _double_text(value: float) -> str:
    if value != value:
        return "NaN"
    if value in (np.inf, -np.inf):
        return "Infinity" if value > 0 else "-Infinity"
    text = repr(value)
    if "e" in text:
        return text
    sign, digits = "-" * (value < 0), text.lstrip("-").replace(".", "")
    exponent = text.lstrip("-").index(".") - 1
    part = digits[1:].rstrip("0")
    return f"{sign}{digits[0]}{'.' * bool(part)}{part}e+{exponent:02}"


def _without_point(data: Bytes, ends: Int64Array) -> tuple[Bytes, Int64Array]:
    """Texts of numbers without ``.0`` at their end."""
    last = ends[1:] - 1
    is_whole = data[last] == ord("0")
    is_whole &= data[last - 1] == ord(".")  # the first digit of a text, if it is short, is before no point
    if not is_whole.any():
        return data, ends
    kept = np.ones(len(data), np.bool_)
    kept[last[is_whole]] = False
    kept[last[is_whole] - 1] = False
    gone = np.concatenate([[0], np.cumsum(2 * is_whole)])
    return data[kept], ends - gone


def cut(texts: pa.Array) -> tuple[Bytes, Int64Array]:
    """The bytes of all texts, and where each begins and ends in them."""
    _, offsets, data = texts.buffers()
    width = np.int64 if pa.types.is_large_string(texts.type) else np.int32
    ends = np.frombuffer(offsets, width)[texts.offset : texts.offset + len(texts) + 1].astype(np.int64)
    whole = _NO_BYTES if data is None else np.frombuffer(data, np.uint8)
    return whole[ends[0] : ends[-1]], ends - ends[0]


def _fixed(values: npt.NDArray[Any], dtype: str) -> tuple[Bytes, Int64Array]:
    """Numbers as big-endian bytes."""
    wide = np.ascontiguousarray(values).astype(dtype)
    return wide.view(np.uint8), np.arange(len(wide) + 1, dtype=np.int64) * wide.dtype.itemsize


def _numbers(column: pa.Array) -> npt.NDArray[Any]:
    filled = column.fill_null(0) if column.null_count else column
    return np.asarray(filled.to_numpy(zero_copy_only=False))


def _truths(column: pa.Array) -> npt.NDArray[Any]:
    filled = column.fill_null(False) if column.null_count else column
    return np.asarray(filled.to_numpy(zero_copy_only=False))


def _booleans(column: pa.Array) -> tuple[Bytes, Int64Array]:
    return _fixed(_truths(column), "u1")


def _digits(values: npt.NDArray[Any]) -> tuple[Bytes, Int64Array]:
    """Numbers as text, the shortest that means a DOUBLE. Holds the interpreter's lock: for few it is faster
    than to lend it.
    """
    if not len(values):
        return _NO_BYTES, np.zeros(1, np.int64)
    text = orjson.dumps(np.ascontiguousarray(values), option=orjson.OPT_SERIALIZE_NUMPY)
    listed = np.frombuffer(text, np.uint8)[1:-1]
    is_comma = listed == ord(",")
    ends = np.empty(len(values) + 1, np.int64)
    ends[0], ends[-1] = 0, len(listed) - len(values) + 1
    ends[1:-1] = np.flatnonzero(is_comma) - np.arange(len(values) - 1)
    return listed[~is_comma], ends


def _dates(column: pa.Array) -> tuple[Bytes, Int64Array]:
    return _fixed(_numbers(column.view(pa.int32())) - np.int32(_EPOCH_DAYS), ">i4")


def _instants(column: pa.Array) -> tuple[Bytes, Int64Array]:
    us = column.cast(pa.timestamp("us"), safe=False).view(pa.int64())
    return _fixed(_numbers(us) - np.int64(_EPOCH_US), ">i8")


def _each(texts: list[bytes]) -> tuple[Bytes, Int64Array]:
    ends = np.zeros(len(texts) + 1, np.int64)
    np.cumsum([len(one) for one in texts], out=ends[1:])
    return np.frombuffer(b"".join(texts), np.uint8), ends


def _decimals(column: pa.Array) -> tuple[Bytes, Int64Array]:
    return _each([b"" if one is None else numeric(one) for one in column.to_pylist()])


def numeric(value: Decimal) -> bytes:
    """A number in PostgreSQL's binary form: digits to the base 10,000.

    >>> numeric(Decimal("12345.6")).hex()
    '0003000100000001000109291770'
    """
    sign, digits, exponent = value.as_tuple()
    scale = max(0, -int(exponent))
    text = "".join(map(str, digits)) + "0" * max(0, int(exponent))
    whole, part = (text[:-scale], text[-scale:]) if scale else (text, "")
    whole = whole.rjust(-(-len(whole) // 4) * 4, "0")
    part = part.rjust(scale, "0")
    part = part.ljust(-(-len(part) // 4) * 4, "0")
    both = whole + part
    groups = [int(both[at : at + 4]) for at in range(0, len(both), 4)]
    weight = len(whole) // 4 - 1
    while groups and groups[0] == 0:
        groups.pop(0)
        weight -= 1
    while groups and groups[-1] == 0:
        groups.pop()
    head = (len(groups), weight if groups else 0, 0x4000 if sign and groups else 0, scale)
    return b"".join(one.to_bytes(2, signed=one < 0) for one in (*head, *groups))


def _uuids(column: pa.Array) -> tuple[Bytes, Int64Array]:
    return _each([b"" if one is None else uuid.UUID(one).bytes for one in column.to_pylist()])


def _bytes(column: pa.Array) -> tuple[Bytes, Int64Array]:
    return cut(column)


_BINARY = {
    types.BOOL: _booleans,
    types.INT4: lambda column: _fixed(_numbers(column), ">i4"),
    types.INT8: lambda column: _fixed(_numbers(column), ">i8"),
    types.OID: lambda column: _fixed(_numbers(column), ">u4"),
    types.FLOAT8: lambda column: _fixed(_numbers(column), ">f8"),
    types.NUMERIC: _decimals,
    types.DATE: _dates,
    types.TIMESTAMPTZ: _instants,
    types.UUID: _uuids,
    types.BYTEA: _bytes,
}
"""Types whose binary form is another than their text."""
