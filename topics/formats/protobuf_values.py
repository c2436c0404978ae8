"""Values of Protobuf as JSON: numbers, texts, enums, and messages that are one value.

Cost: some 10 ns a value and 1 ns a byte.
"""

from __future__ import annotations

import numpy as np

from topics.compiled import borrowing, inlined
from topics.formats.binary import ENDS, FINE, NO_DATE, WORDS, read_bits, read_varint, unzigzag
from topics.formats.output import (
    ByteArray,
    Int64Array,
    Output,
    put_base64,
    put_byte,
    put_bytes,
    put_decimal,
    put_digits,
    put_double,
    put_integer,
    put_text,
)
from topics.formats.protobuf_program import (
    BOOL,
    BYTES,
    CLOSED_ENUM,
    COUNT,
    DECIMAL,
    DOUBLE,
    DURATION,
    ENUM,
    FIRST,
    FIXED32,
    FLOAT,
    INT32,
    NAME,
    NAME_END,
    NULL,
    NUMBER,
    SFIXED32,
    SFIXED64,
    SINT32,
    SINT64,
    STRING,
    TIMESTAMP,
    UINT32,
    UINT64,
    Program,
    place_of,
)
from topics.formats.protobuf_wire import INSTANT, SCALE, SPAN, Members, low, member, scan

_NUMBERS_WIRES, _DECIMAL_WIRES = 0xFFFF000F, 0xFFFF002F
_SECONDS_MIN, _SECONDS_MAX, _SPAN_MAX_S = -62_135_596_800, 253_402_300_799, 315_576_000_000


@inlined
def _symbol(program: Program, enum: int, value: int) -> int:
    """The place of a symbol; -1: it is none of the enum."""
    first, count = program.enums[enum, FIRST], program.enums[enum, COUNT]
    if 0 <= value < count and program.symbols[first + value, NUMBER] == value:
        return int(first + value)
    return place_of(program.symbols, first, count, value)


@inlined
def is_foreign(data: ByteArray, at: int, end: int, enum: int, program: Program) -> bool:
    """Whether a number is no symbol."""
    value, after = read_varint(data, at, end)
    return after >= 0 and _symbol(program, enum, low(value)) < 0


@inlined
def _put_enum(value: np.uint64, enum: int, program: Program, out: Output) -> None:
    place = _symbol(program, enum, low(value))
    if place >= 0:
        put_bytes(out, program.text, program.symbols[place, NAME], program.symbols[place, NAME_END])
    else:
        put_byte(out, 34)
        put_integer(out, low(value))
        put_byte(out, 34)


@inlined
def _put_varint(value: np.uint64, kind: int, to: int, program: Program, out: Output) -> None:
    if kind == BOOL:
        put_bytes(out, WORDS, 4 if value else 8, 8 if value else 13)
    elif kind in (ENUM, CLOSED_ENUM):
        _put_enum(value, to, program, out)
    elif kind == NULL:
        put_bytes(out, WORDS, 0, 4)
    elif kind == UINT64:
        put_digits(out, value, 1)
    elif kind == UINT32:
        put_digits(out, value & np.uint64(0xFFFFFFFF), 1)
    elif kind == INT32:
        put_integer(out, low(value))
    elif kind == SINT32:
        put_integer(out, unzigzag(value & np.uint64(0xFFFFFFFF)))
    else:
        put_integer(out, unzigzag(value) if kind == SINT64 else np.int64(value))  # type: ignore[arg-type]


@borrowing
def put_scalar(data: ByteArray, at: int, end: int, kind: int, to: int, program: Program, out: Output) -> int:
    """Write a number, or the text or the bytes data[at:end]; where the next begins."""
    if kind == STRING:
        put_text(out, data, at, end)
        return end
    if kind == BYTES:
        put_base64(out, data, at, end)
        return end
    if kind <= NULL:
        value, at = read_varint(data, at, end)
        if at >= 0:
            _put_varint(value, kind, to, program, out)
        return at
    size = 4 if kind in (FIXED32, SFIXED32, FLOAT) else 8
    if end - at < size:
        return -ENDS
    bits = read_bits(data, at, size)
    if kind in (FLOAT, DOUBLE):
        put_double(out, bits, kind == FLOAT)
    elif kind == SFIXED32:
        put_integer(out, bits - 2**32 if bits >= 2**31 else bits)
    elif kind == SFIXED64:
        put_integer(out, bits)
    else:
        put_digits(out, np.uint64(bits), 1)
    return at + size


@borrowing
def put_known(
    data: ByteArray, begin: int, stop: int, kind: int, members: Members, groups: Int64Array, out: Output
) -> int:
    """Write a message that is one value; FINE, or minus the reason."""
    wires = _DECIMAL_WIRES if kind == DECIMAL else _NUMBERS_WIRES
    at = scan(data, begin, stop, wires, members, groups)
    if at < 0:
        return at
    if kind in (TIMESTAMP, DURATION):
        seconds, nanos = member(data, 1, members), low(np.uint64(member(data, 2, members)))
        if kind == TIMESTAMP:
            if not (_SECONDS_MIN <= seconds <= _SECONDS_MAX and 0 <= nanos < 10**9):
                return -INSTANT
        elif not (-_SPAN_MAX_S <= seconds <= _SPAN_MAX_S and -(10**9) < nanos < 10**9) or (
            seconds * nanos < 0
        ):
            return -SPAN
        ms = nanos // 10**6 if nanos >= 0 else -(-nanos // 10**6)
        put_integer(out, seconds * 1_000 + ms)
        return FINE
    if kind == DECIMAL:
        scale = low(np.uint64(member(data, 3, members)))
        if scale < 0 or scale > 64:
            return -SCALE
        has = members[1, 0] > 0
        put_decimal(out, data, members[1, 1] if has else 0, members[1, 2] if has else 0, scale)
        return FINE
    year, month, day = member(data, 1, members), member(data, 2, members), member(data, 3, members)
    if not (1 <= year <= 9_999 and 1 <= month <= 12 and 1 <= day <= 31):
        return -NO_DATE
    put_byte(out, 34)
    put_digits(out, np.uint64(year), 4)
    put_byte(out, 45)
    put_digits(out, np.uint64(month), 2)
    put_byte(out, 45)
    put_digits(out, np.uint64(day), 2)
    put_byte(out, 34)
    return FINE
