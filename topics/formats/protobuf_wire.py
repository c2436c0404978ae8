"""Protobuf's wire format: tags, lengths, values that are passed over, the fields of small messages.

A position that a function returns is minus one of the :data:`REASONS` where it could not read.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from topics.compiled import borrowing, inlined
from topics.formats.binary import DEEP, ENDS, LENGTH, LEVELS_MAX, OWN, read_varint
from topics.formats.binary import REASONS as COMMON_REASONS
from topics.formats.output import ByteArray, Int64Array

AGAIN, TAG, WIRE, GROUP_END, INSTANT, SPAN, SCALE = range(OWN, OWN + 7)

REASONS = {
    **COMMON_REASONS,
    AGAIN: "its fields cannot be put in order",
    TAG: "a field has a number below 1, or of more than 29 bits",
    WIRE: "a field has a wire type that there is not",
    GROUP_END: "a group ends that did not begin",
    INSTANT: "a Timestamp is not in the years 1 to 9999",
    SPAN: "a Duration is longer than 10,000 years, or its parts have different signs",
    SCALE: "a Decimal has a scale below 0 or above 64",
}

Members = npt.NDArray[np.int64]
"""[n] how often field n stands in a small message, where the last begins and ends; [0] the last field, how
many there are.
"""


@inlined
def low(value: np.uint64) -> int:
    """The number with a sign that the low 32 bits are."""
    low: int = np.int64(value & np.uint64(0xFFFFFFFF))  # type: ignore[assignment]
    return low - 2**32 if low >= 2**31 else low


@inlined
def read_tag(data: ByteArray, at: int, end: int) -> tuple[int, int, int]:
    """(number, wire type, where its value begins)."""
    value, at = read_varint(data, at, end)
    if at < 0:
        return 0, 0, at
    if value < np.uint64(8) or value > np.uint64(0xFFFFFFFF):
        return 0, 0, -TAG
    return np.int64(value >> np.uint64(3)), np.int64(value & np.uint64(7)), at  # type: ignore[return-value]


@inlined
def read_length(data: ByteArray, at: int, end: int) -> tuple[int, int]:
    """(length, where the bytes begin)."""
    size, at = read_varint(data, at, end)
    if at < 0:
        return 0, at
    if size > np.uint64(end - at):
        return 0, -LENGTH
    return np.int64(size), at  # type: ignore[return-value]


@inlined
def skip_flat(data: ByteArray, at: int, end: int, wire: int) -> int:
    """Where the next begins after a value that is no group."""
    if wire == 0:
        _, at = read_varint(data, at, end)
        return at
    if wire == 2:
        size, at = read_length(data, at, end)
        return at if at < 0 else at + size
    if wire != 1 and wire != 5:
        return -WIRE
    at += 8 if wire == 1 else 4
    return at if at <= end else -ENDS


@borrowing
def skip(data: ByteArray, at: int, end: int, number: int, wire: int, groups: Int64Array) -> int:
    """Where the next begins after a value that nobody wants."""
    if wire != 3:
        return -GROUP_END if wire == 4 else skip_flat(data, at, end, wire)
    depth = 0
    groups[0] = number
    while depth >= 0:
        number, wire, at = read_tag(data, at, end)
        if at < 0:
            return at
        if wire == 4:
            if number != groups[depth]:
                return -GROUP_END
            depth -= 1
        elif wire == 3:
            depth += 1
            if depth > LEVELS_MAX:
                return -DEEP
            groups[depth] = number
        else:
            at = skip_flat(data, at, end, wire)
            if at < 0:
                return at
    return at


@borrowing
def scan(data: ByteArray, at: int, end: int, wires: int, members: Members, groups: Int64Array) -> int:
    """Find the fields 1 to 7 of a small message, whose wire types are four bits of ``wires`` each; where it
    ends, or minus the reason.
    """
    for number in range(8):
        members[number, 0] = 0
    members[0, 1] = 0
    while at < end:
        number, wire, at = read_tag(data, at, end)
        if at < 0:
            return at
        begin = at
        at = skip(data, at, end, number, wire, groups)
        if at < 0:
            return at
        if number < 8 and wire == (wires >> 4 * number & 15):
            if wire == 2:
                _, begin = read_length(data, begin, end)
            members[number, 0] += 1
            members[number, 1] = begin
            members[number, 2] = at
            members[0, 0] = number
            members[0, 1] += 1
    return at


@inlined
def member(data: ByteArray, number: int, members: Members) -> int:
    """A number that a small message has; 0 where it has not."""
    if members[number, 0] == 0:
        return 0
    value, _ = read_varint(data, members[number, 1], members[number, 2])
    signed: int = np.int64(value)  # type: ignore[assignment]
    return signed
