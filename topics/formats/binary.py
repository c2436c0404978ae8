"""What compiled readers of binary encodings have in common: variable-length numbers, bits, reasons.

A position that a function returns is minus one of the reasons where it could not read.
"""

from __future__ import annotations

import numpy as np

from topics.compiled import inlined
from topics.formats.output import ByteArray

LEVELS_MAX = 64
FINE, ENDS, LENGTH, VARINT, DEEP, TOO_LONG, NO_DATE, OWN = range(8)
"""Verdicts on a record; those that a reader has of its own begin with OWN."""

REASONS = {
    ENDS: "the record ends within a value",
    LENGTH: "a length is negative, or more than the record has",
    VARINT: "a number has more than 64 bits",
    DEEP: f"nested deeper than {LEVELS_MAX} levels",
    TOO_LONG: "as JSON it is longer than a record may be",
    NO_DATE: "a date is not in the years 1 to 9999",
}

WORDS = np.frombuffer(b"nulltruefalse", np.uint8)
"""null is [0:4], true [4:8], false [8:13]."""


@inlined
def read_varint(data: ByteArray, at: int, end: int) -> tuple[np.uint64, int]:
    """(value, where the next begins) of seven bits a byte, the lowest first."""
    value, shift = np.uint64(0), np.uint64(0)
    while shift < np.uint64(70):
        if at >= end:
            return np.uint64(0), -ENDS
        byte = np.uint64(data[at])
        at += 1
        value |= (byte & np.uint64(127)) << shift
        if byte < np.uint64(128):
            if shift == np.uint64(63) and byte > np.uint64(1):
                return np.uint64(0), -VARINT
            return value, at
        shift += np.uint64(7)
    return np.uint64(0), -VARINT


@inlined
def unzigzag(value: np.uint64) -> int:
    """The number with a sign that zigzag makes this one of."""
    number: int = np.int64(value >> np.uint64(1)) ^ -np.int64(value & np.uint64(1))  # type: ignore[assignment]
    return number


@inlined
def read_bits(data: ByteArray, at: int, size: int) -> int:
    """A number of so many bytes, the lowest first, which are there."""
    value = 0
    for turn in range(size - 1, -1, -1):
        value = value << 8 | np.int64(data[at + turn])  # type: ignore[assignment]
    return value
