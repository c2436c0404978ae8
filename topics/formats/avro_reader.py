"""The compiled reader of Avro's binary encoding: records to JSON, by a schema's program.

Nothing in a record is trusted: lengths are compared with the bytes that are left, levels are limited, and a
record does no more work than its length allows, since items of an array may take no bytes at all.

Cost: some 10 ns a value and 1 ns a byte.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from topics.compiled import borrowing, inlined
from topics.formats.avro_program import (
    ARRAY,
    BOOLEAN,
    BYTES,
    DATE,
    DECIMAL,
    DOUBLE,
    ENUM,
    FIXED,
    FIXED_DECIMAL,
    FLOAT,
    INSTANT,
    INTEGER,
    MAP,
    NULL,
    RECORD,
    REFUSED,
    STRING,
    TEXT_BYTES,
    UNION,
    UUID,
    Program,
)
from topics.formats.binary import (
    DEEP,
    ENDS,
    FINE,
    LENGTH,
    LEVELS_MAX,
    NO_DATE,
    OWN,
    TOO_LONG,
    WORDS,
    read_bits,
    read_varint,
    unzigzag,
)
from topics.formats.binary import REASONS as COMMON_REASONS
from topics.formats.output import (
    AT,
    LIMIT,
    ByteArray,
    Int64Array,
    Output,
    begin_text,
    end_text,
    put_base64,
    put_byte,
    put_bytes,
    put_date,
    put_decimal,
    put_double,
    put_integer,
    put_text,
    put_uuid,
)

WORK_LEAST, WORK_PER_BYTE = 4_096, 8
BRANCH, SYMBOL, LEFT_OVER, FLAG, WORK, FOREIGN, RANGE = range(OWN, OWN + 7)

REASONS = {
    **COMMON_REASONS,
    BRANCH: "a union has no such branch",
    SYMBOL: "an enum has no such symbol, or the reader's schema has not",
    LEFT_OVER: "bytes are left behind the record",
    FLAG: "a boolean is neither 0 nor 1",
    WORK: "it has more values than its length allows",
    FOREIGN: "the reader's schema has not the type that a union has here",
    RANGE: "an int has more than 32 bits",
}


class Frames(NamedTuple):
    """The values that are open, outermost first, int64[LEVELS_MAX + 1] each.

    node: its node. next: the next edge of a RECORD. left: items left in the block of an ARRAY or a MAP.
    wrote: whether something stands in it that needs a comma behind. silent: whether it is passed over.
    """

    node: Int64Array
    next: Int64Array
    left: Int64Array
    wrote: Int64Array
    silent: Int64Array


def frames() -> Frames:
    """For one batch."""
    return Frames(*(np.zeros(LEVELS_MAX + 1, np.int64) for _ in range(5)))


@inlined
def _read_long(data: ByteArray, at: int, end: int) -> tuple[int, int]:
    """(value, where the next begins) of a number in zigzag."""
    value, at = read_varint(data, at, end)
    return unzigzag(value), at


@inlined
def _number(data: ByteArray, at: int, end: int, kind: int, param: int, out: Output, silent: int) -> int:
    value, at = _read_long(data, at, end)
    if at < 0:
        return at
    if (kind in (INTEGER, DATE)) and (value < -(2**31) or value >= 2**31):
        return -RANGE
    if silent:
        return at
    if kind == DATE:
        return at if put_date(out, value) else -NO_DATE
    put_integer(out, value // param if kind == INSTANT else value)
    return at


@inlined
def _bytes(data: ByteArray, begin: int, at: int, kind: int, param: int, out: Output) -> None:
    """Write a value that is the bytes data[begin:at]."""
    if kind in (STRING, TEXT_BYTES):
        put_text(out, data, begin, at)
    elif kind == DECIMAL:
        put_decimal(out, data, begin, at, param)
    elif kind == FIXED_DECIMAL:
        put_decimal(out, data, begin, at, param & 255)
    elif kind == UUID:
        put_uuid(out, data, begin)
    else:
        put_base64(out, data, begin, at)


@inlined
def _scalar(data: ByteArray, at: int, end: int, node: int, program: Program, out: Output, silent: int) -> int:
    """Read a value that is no RECORD, ARRAY or MAP; where the next begins, or minus the reason."""
    kind, param = program.kind[node], program.param[node]
    if kind == NULL:
        if not silent:
            put_bytes(out, WORDS, 0, 4)
        return at
    if kind == BOOLEAN:
        if at >= end:
            return -ENDS
        if data[at] > 1:
            return -FLAG
        if not silent:
            put_bytes(out, WORDS, 4 if data[at] else 8, 8 if data[at] else 13)
        return at + 1
    if kind in (FLOAT, DOUBLE):
        size = 4 if kind == FLOAT else 8
        if end - at < size:
            return -ENDS
        if not silent:
            put_double(out, read_bits(data, at, size), kind == FLOAT)
        return at + size
    if kind in (FIXED, FIXED_DECIMAL, UUID):
        size = 16 if kind == UUID else param >> 8 if kind == FIXED_DECIMAL else param
        if end - at < size:
            return -ENDS
        if not silent:
            _bytes(data, at, at + size, kind, param, out)
        return at + size
    if kind in (STRING, BYTES, DECIMAL, TEXT_BYTES):
        size, at = _read_long(data, at, end)
        if at < 0:
            return at
        if size < 0 or size > end - at:
            return -LENGTH
        if not silent:
            _bytes(data, at, at + size, kind, param, out)
        return at + size
    if kind == ENUM:
        symbol, at = _read_long(data, at, end)
        if at < 0:
            return at
        edge = program.first[node] + symbol
        if symbol < 0 or symbol >= program.edges[node] or not program.kept[edge]:
            return -SYMBOL
        if not silent:
            put_bytes(out, program.text, program.begin[edge], program.end[edge])
        return at
    if kind == REFUSED:
        return -FOREIGN
    return _number(data, at, end, kind, param, out, silent)


@inlined
def _comma(frames: Frames, depth: int, out: Output) -> None:
    if frames.wrote[depth]:
        put_byte(out, 44)
    frames.wrote[depth] = 1


@inlined
def _next_field(program: Program, frames: Frames, depth: int, out: Output) -> int:
    """The node of the next field, whose name is written; -1: the record ends."""
    node = frames.node[depth]
    if frames.next[depth] == program.edges[node]:
        if not frames.silent[depth]:
            if program.tail_end[node] > program.tail_begin[node]:
                _comma(frames, depth, out)
                put_bytes(out, program.text, program.tail_begin[node], program.tail_end[node])
            put_byte(out, 125)
        return -1
    edge = program.first[node] + frames.next[depth]
    frames.next[depth] += 1
    frames.silent[depth + 1] = frames.silent[depth] or not program.kept[edge]
    if not frames.silent[depth + 1]:
        _comma(frames, depth, out)
        put_bytes(out, program.text, program.begin[edge], program.end[edge])
    return int(program.to[edge])


@inlined
def _next_item(
    data: ByteArray, at: int, end: int, program: Program, frames: Frames, depth: int, out: Output
) -> tuple[int, int]:
    """(node, where it begins) of the next item of an array or a map; -1: it ends."""
    node = frames.node[depth]
    is_map = program.kind[node] == MAP
    if frames.left[depth] == 0:
        count, at = _read_long(data, at, end)
        if at < 0:
            return -1, at
        if count < 0:
            _, at = _read_long(data, at, end)
            if at < 0:
                return -1, at
            if count == -(2**63):
                return -1, -LENGTH
            count = -count
        if count == 0:
            if not frames.silent[depth]:
                put_byte(out, 125 if is_map else 93)
            return -1, at
        frames.left[depth] = count
    frames.left[depth] -= 1
    silent = frames.silent[depth]
    frames.silent[depth + 1] = silent
    if not silent:
        _comma(frames, depth, out)
    if is_map:
        size, at = _read_long(data, at, end)
        if at < 0:
            return -1, at
        if size < 0 or size > end - at:
            return -1, -LENGTH
        if not silent:
            put_text(out, data, at, at + size)
            put_byte(out, 58)
        at += size
    return int(program.to[program.first[node]]), at


@inlined
def _open(program: Program, node: int, frames: Frames, depth: int, out: Output) -> None:
    """Open a record, an array or a map; its frame says already whether it is passed over."""
    frames.node[depth] = node
    frames.next[depth] = frames.left[depth] = frames.wrote[depth] = 0
    if not frames.silent[depth]:
        put_byte(out, 91 if program.kind[node] == ARRAY else 123)


@inlined
def _read_value(data: ByteArray, at: int, end: int, program: Program, frames: Frames, out: Output) -> int:
    """Write one record; the reason why it is none, or FINE."""
    work = WORK_LEAST + WORK_PER_BYTE * (end - at)
    depth, node = 0, 0
    frames.silent[0] = 0
    while True:
        work -= 1
        if work < 0:
            return WORK
        kind = program.kind[node]
        if kind == UNION:
            branch, at = _read_long(data, at, end)
            if at < 0:
                return -at
            if branch < 0 or branch >= program.edges[node]:
                return BRANCH
            node = program.to[program.first[node] + branch]
            continue
        if kind in (RECORD, ARRAY, MAP):
            if depth == LEVELS_MAX:
                return DEEP
            _open(program, node, frames, depth, out)
            depth += 1
        else:
            at = _scalar(data, at, end, node, program, out, frames.silent[depth])
            if at < 0:
                return -at
        node = -1
        while node < 0 and depth > 0:
            if program.kind[frames.node[depth - 1]] == RECORD:
                node = _next_field(program, frames, depth - 1, out)
            else:
                node, at = _next_item(data, at, end, program, frames, depth - 1, out)
                if at < 0:
                    return -at
            if node < 0:
                depth -= 1
        if out.state[AT] > out.state[LIMIT]:
            return TOO_LONG
        if node < 0:
            return FINE if at == end else LEFT_OVER


@borrowing
def read_avro(
    data: ByteArray,
    ends: Int64Array,
    begun: tuple[int, int],
    program: Program,
    frames: Frames,
    out: Output,
    verdicts: ByteArray,
) -> int:
    """Write records while there is room; the first that is not written. begun: the first, and how many bytes
    each begins with that are none of its value.
    """
    first, skipped = begun
    for record in range(first, len(ends)):
        if not begin_text(out):
            return record
        begin = (ends[record - 1] if record else 0) + skipped
        verdicts[record] = _read_value(data, begin, ends[record], program, frames, out)
        end_text(out, record, verdicts[record] == FINE)
    return len(ends)
